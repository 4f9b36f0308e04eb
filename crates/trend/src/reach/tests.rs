use super::*;

const LIMIT: f64 = 1000.0;
/// Number of simulated programs for each kind of growth.
const RUNS: usize = 60;

/// Pseudo-random numbers.
struct Random(u64);

impl Random {
    /// Returns a number from 0 to 1.
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns a normally distributed number with standard deviation 1.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }
}

fn outlook(points: &[(f64, f64)]) -> Option<Outlook> {
    Some(Rise::fit(points)?.reach(LIMIT))
}

fn reach(points: &[(f64, f64)]) -> Reach {
    match outlook(points) {
        Some(Outlook::Reaches(reach)) => reach,
        other => panic!("{other:?}"),
    }
}

fn series(n: u32, f: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
    (0..n).map(|i| (f64::from(i), f(f64::from(i)))).collect()
}

#[test]
fn a_line_reaches_the_limit_exactly() {
    let found = reach(&series(21, |x| 100.0 + 10.0 * x));
    assert!((found.at - 70.0).abs() < 1e-9, "{found:?}");
    // The interval begins when the line reaches 95 % of the limit, because 5 % of the heap may stay unavailable to
    // objects. It ends when the line reaches 103 % of the limit, because up to 3 % may be dead objects.
    let [start, end] = found.ci95;
    assert!(
        (start - 65.0).abs() < 1e-9 && (end - 73.0).abs() < 1e-9,
        "{found:?}"
    );
    let full = reach(&series(21, |x| 900.0 + 10.0 * x));
    assert_eq!(
        (full.at, full.ci95),
        (0.0, [0.0, 3.0]),
        "a part may be dead"
    );
}

#[test]
fn few_points_have_no_outlook() {
    assert_eq!(outlook(&series(4, |x| x)), None);
    assert_eq!(outlook(&[(1.0, 1.0); 9]), None);
    assert_eq!(outlook(&[]), None);
    assert_ne!(outlook(&series(5, |x| 10.0 * x)), None);
}

#[test]
fn a_series_that_levels_off_has_no_end() {
    for (name, points) in [
        ("level", series(40, |_| 500.0)),
        ("cache", series(40, |x| 100.0 + x.min(20.0) * 30.0)),
        (
            "cache that just filled",
            series(40, |x| 100.0 + x.min(34.0) * 15.0),
        ),
        ("warm-up", series(40, |x| 600.0 * (1.0 - (-x / 4.0).exp()))),
        ("falls", series(20, |x| 900.0 - x)),
        ("small growth", series(20, |x| 500.0 + x / 100.0)),
        (
            "five dumps of a cache",
            vec![
                (0.0, 10.0),
                (1.0, 400.0),
                (2.0, 500.0),
                (3.0, 500.0),
                (4.0, 500.0),
            ],
        ),
    ] {
        assert_eq!(outlook(&points), Some(Outlook::NoEnd), "{name}");
    }
}

#[test]
fn a_sawtooth_that_only_returned_to_earlier_levels_has_no_time() {
    let sawtooth = series(60, |x| 300.0 + x % 20.0 * 10.0);
    assert_eq!(outlook(&sawtooth), Some(Outlook::Irregular));
    // A sawtooth whose lowest values rise, as with a leak.
    let leak = series(100, |x| 100.0 + x * 5.0 + x % 7.0 * 10.0);
    assert!(matches!(outlook(&leak), Some(Outlook::Reaches(_))));
}

#[test]
fn a_warm_up_and_the_time_before_the_leak_are_left_out() {
    let warm = |x: f64| 400.0 * (1.0 - (-x / 3.0).exp()) + 2.0 * x;
    let found = reach(&series(100, warm));
    let left = (LIMIT - warm(99.0)) / 2.0;
    assert!((found.at / left - 1.0).abs() < 0.05, "{found:?} {left}");
    let found = reach(&series(100, |x| 200.0 + (x - 60.0).max(0.0) * 5.0));
    assert!((found.at - 121.0).abs() < 5.0, "{found:?}");
}

#[test]
fn a_rate_that_varies_too_much_has_no_interval() {
    let points = [(0.0, 0.0), (1.0, 1.0), (2.0, 2.0), (3.0, 90.0), (4.0, 91.0)];
    assert_eq!(outlook(&points), Some(Outlook::Irregular));
}

/// A program that leaks: its heap after each full GC, and the time at which it reaches the limit.
struct Leak {
    points: Vec<(f64, f64)>,
    end: f64,
}

/// Returns the used heap after each full GC until the limit is reached. The mean growth per unit of time is multiplied
/// by the result of `rate` for the current time. `varies` is the standard deviation of the growth in one unit of time,
/// divided by the mean growth. `noise` is the standard deviation of a random error that is added to each returned
/// figure.
fn leak(random: &mut Random, rate: impl Fn(f64) -> f64, [varies, noise]: [f64; 2]) -> Leak {
    let mean = 2.0 + 6.0 * random.uniform();
    let mut level = 50.0 + 200.0 * random.uniform();
    let (mut time, mut points) = (0.0, Vec::new());
    loop {
        let span = 0.5 + random.uniform();
        let growth = mean * rate(time) * span + mean * varies * span.sqrt() * random.normal();
        if level + growth >= LIMIT {
            return Leak {
                points,
                end: time + span * (LIMIT - level) / growth,
            };
        }
        time += span;
        level += growth;
        points.push((time, level + noise * random.normal()));
    }
}

/// Simulates programs, and predicts when each one reaches the limit, from the points in the first part (`cut`) of its
/// time. Returns the number of intervals that contain the true end, the number of all predictions, and the median width
/// of the intervals. Each width is divided by the true time from the last point used to the end.
fn coverage(cut: f64, make: impl Fn(&mut Random) -> Leak) -> (usize, usize, f64) {
    let mut random = Random(11);
    let (mut covered, mut widths) = (0, Vec::new());
    for _ in 0..RUNS {
        let leak = make(&mut random);
        let seen: Vec<(f64, f64)> = leak
            .points
            .iter()
            .copied()
            .filter(|p| p.0 <= leak.end * cut)
            .collect();
        if let Some(Outlook::Reaches(found)) = outlook(&seen) {
            let left = leak.end - seen.last().unwrap().0;
            let [from, to] = found.ci95;
            covered += usize::from((from..=to).contains(&left));
            widths.push((to - from) / left);
        }
    }
    (covered, widths.len(), median(&widths))
}

#[test]
fn intervals_contain_the_true_end() {
    type Rate = fn(f64) -> f64;
    let steady: Rate = |_| 1.0;
    let daily: Rate = |x| 1.0 + 0.8 * (x / 3.0).sin();
    let shapes: [(&str, Rate, [f64; 2]); 6] = [
        ("linear", steady, [0.0, 1.0]),
        ("noisy", steady, [0.0, 20.0]),
        ("random load", steady, [1.0, 1.0]),
        ("bursts", steady, [2.0, 5.0]),
        ("waves", daily, [0.3, 5.0]),
        ("accelerates", |x| 1.0 + x / 600.0, [0.5, 5.0]),
    ];
    let mut all = [0, 0];
    for (name, rate, varies) in shapes {
        for cut in [0.3, 0.5, 0.75] {
            let (covered, predicted, width) = coverage(cut, |random| leak(random, rate, varies));
            assert!(
                covered * 100 >= predicted * 85,
                "{name} {cut}: {covered} of {predicted}"
            );
            assert!(width < 4.0, "{name} {cut}: width {width}");
            assert!(predicted * 3 >= RUNS, "{name} {cut}: {predicted}");
            all = [all[0] + covered, all[1] + predicted];
        }
    }
    assert!(all[0] * 100 >= all[1] * 95, "{all:?}");
}

#[test]
fn bounded_programs_have_no_end() {
    type Figure = fn(f64, &mut Random) -> f64;
    // There is a full GC each minute for 24 hours, and the first hour is a warm-up. The test checks the series after
    // each hour.
    let shapes: [(&str, Figure); 5] = [
        ("constant", |_, r| 400.0 + 20.0 * r.normal()),
        ("cache", |x, r| {
            100.0 + 10.0 * x.min(50.0) + 5.0 * r.normal()
        }),
        ("sawtooth", |x, r| {
            300.0 + x % 25.0 * 10.0 + 5.0 * r.normal()
        }),
        ("warm-up", |x, _| 500.0 * (1.0 - (-x / 10.0).exp())),
        ("day", |x, r| {
            500.0 + 200.0 * (x / 30.0).sin() + 5.0 * r.normal()
        }),
    ];
    for (name, figure) in shapes {
        let mut alerts = 0;
        for seed in 0..3 {
            let mut random = Random(seed);
            let mut points = Vec::new();
            for minute in 0..1440 {
                let x = f64::from(minute);
                points.push((x, figure(x, &mut random)));
                let is_checked = minute > 60 && minute % 60 == 0;
                if is_checked
                    && matches!(outlook(&points), Some(Outlook::Reaches(r)) if r.at <= 1440.0)
                {
                    alerts += 1;
                }
            }
        }
        assert_eq!(alerts, 0, "{name}");
    }
}

#[test]
fn a_series_with_dips_of_single_points_rises() {
    // Every fourth full GC also frees the young objects.
    let dips = series(25, |x| {
        100.0 + 10.0 * x - if x % 4.0 == 3.0 { 60.0 } else { 0.0 }
    });
    let found = reach(&dips);
    assert!(found.ci95[0] <= 66.0 && found.ci95[1] >= 66.0, "{found:?}");
    // A sawtooth whose teeth all have the same height.
    let teeth = series(25, |x| 100.0 + 10.0 * (x % 9.0));
    assert!(!matches!(outlook(&teeth), Some(Outlook::Reaches(_))));
}
