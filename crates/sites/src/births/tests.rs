//! Compares the bounds with bounds that were calculated by hand. Also simulates lines of code whose objects die, whose
//! allocations the compiler removes, or whose allocations are not counted.

use super::*;
use crate::{Follow, Keys, Known, Sampling, Strategy, Stratum, Totals};

/// A splitmix64 generator of random numbers.
struct Random(u64);

impl Random {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// A simulated line of code: the number of executed allocations, the part of them that the compiler removes, the part
/// of the objects that survives, and whether the allocations are counted.
#[derive(Clone, Copy)]
struct Place {
    executed: u64,
    removed: f64,
    alive: f64,
    counted: bool,
    stacks: u64,
}

const fn place(executed: u64, removed: f64, alive: f64) -> Place {
    Place {
        executed,
        removed,
        alive,
        counted: true,
        stacks: 1,
    }
}

#[derive(Default, Debug)]
struct Found {
    all: u64,
    covered: [u64; 2],
    error: [f64; 2],
    width: [f64; 2],
}

fn simulated(places: &[Place], p: f64, runs: u64, seed: u64) -> Found {
    let size = 100_u64;
    let interval = (-(size as f64) / (-p).ln_1p()) as u64;
    let sampling = Sampling {
        strategy: Strategy::Bytes,
        interval,
        rate: 0,
    };
    let p = sampling.probability(size).unwrap();
    let mut found = Found::default();
    for run in 0..runs {
        let mut random = Random((run + 1 + seed * 1_000_003).wrapping_mul(0x5851_f42d_4c95_7f2d));
        let mut truth: BTreeMap<(u32, u64), u64> = BTreeMap::new();
        let mut stratum: Stratum<(u32, u64)> = Stratum::default();
        let mut counts: Counts<(u32, u64)> = Counts::default();
        for (number, place) in (0..).zip(places) {
            let mut births = Births {
                objects: place.executed,
                bytes: place.executed * size,
                samples: Some(0),
            };
            for _ in 0..place.executed {
                if random.uniform() < place.removed {
                    continue;
                }
                let key = (number, (random.uniform() * place.stacks as f64) as u64);
                let is_alive = random.uniform() < place.alive;
                let is_sampled = random.uniform() < p;
                if is_sampled {
                    births.samples = births.samples.map(|s| s + 1);
                }
                if is_alive {
                    *truth.entry(key).or_default() += size;
                    stratum.after.add(Known {
                        objects: 1,
                        bytes: size,
                    });
                    if is_sampled {
                        let weight = sampling.weight(size).unwrap();
                        stratum.came.entry(key).or_default().add(&weight, size);
                        let of = counts.stacks.entry(key).or_default();
                        if place.counted {
                            (of.place, of.counted) = (Some(number), of.counted + 1)
                        } else {
                            of.other += 1
                        }
                    }
                }
            }
            if place.counted {
                counts.places.insert(number, births);
            }
        }
        let divide = |stratum: Stratum<(u32, u64)>| {
            let strata = [((), [(0, stratum)].into())].into();
            let (totals, follow) = (Totals::Shared, Follow::Nothing);
            Stratum::divide(strata, &sampling, totals, follow, Keys::Groups).parts
        };
        let without = divide(stratum.clone());
        let with = divide(Stratum {
            counts: Some(counts),
            ..stratum
        });
        for (key, truth) in truth {
            let truth = truth as f64;
            let Some(without) = without.get(&key) else {
                continue;
            };
            found.all += 1;
            for (i, part) in [without, &with[&key]].into_iter().enumerate() {
                let Interval { value, low, high } = part.bytes;
                found.covered[i] += u64::from(low.round() <= truth && truth <= high.round());
                found.error[i] += value / truth - 1.0;
                found.width[i] += (high - low) / 2.0 / truth;
            }
        }
    }
    found
}

/// Simulates the allocations at the given lines of code ([`Place`]s). Estimates their live bytes in two ways: from
/// samples alone, and from samples and counts.
///
/// Returns three results. The first is the percentage of intervals that contain the true value. The second is the mean
/// error in per cent. Both have two values: the first without counts, the second with counts. The third result is the
/// factor by which counts make the intervals narrower.
fn simulated_accuracy(places: &[Place], p: f64) -> ([f64; 2], [f64; 2], f64) {
    let found = simulated(places, p, 300, 1);
    let percent = |part: f64| 100.0 * part / found.all as f64;
    (
        found.covered.map(|covered| percent(covered as f64)),
        found.error.map(percent),
        found.width[0] / found.width[1],
    )
}

#[test]
fn counts_narrow_intervals_that_remain_valid() {
    let three = |place: Place| Place { stacks: 3, ..place };
    let uncounted = |executed| Place {
        counted: false,
        ..place(executed, 0.0, 1.0)
    };
    // Each case has the simulated lines of code ([`Place`]s), the probability of a sample, and the minimum factor by
    // which counts must make the intervals narrower.
    for (places, p, narrower) in [
        // All objects survive.
        (
            vec![place(3000, 0.0, 1.0), place(7000, 0.0, 1.0)],
            0.01,
            2.0,
        ),
        (
            vec![place(3000, 0.0, 1.0), place(7000, 0.0, 1.0)],
            0.05,
            4.0,
        ),
        (vec![place(1000, 0.0, 1.0); 10], 0.05, 2.5),
        // Some objects survive.
        (
            vec![place(3000, 0.0, 0.9), place(7000, 0.0, 0.9)],
            0.05,
            1.8,
        ),
        (vec![place(1000, 0.0, 0.8); 10], 0.05, 1.3),
        (
            vec![place(3000, 0.0, 0.5), place(7000, 0.0, 0.5)],
            0.05,
            1.0,
        ),
        (
            vec![place(3000, 0.0, 0.1), place(17_000, 0.0, 0.1)],
            0.05,
            1.0,
        ),
        (
            vec![
                place(3000, 0.0, 1.0),
                place(3000, 0.0, 0.5),
                place(9000, 0.0, 0.1),
            ],
            0.05,
            1.1,
        ),
        // The compiler removes allocations at two lines of code. Four cases: half of the allocations at both lines,
        // half at one line, a tenth at one line, and again half at one line. In the fourth case, half of all objects
        // die, too.
        (
            vec![place(6000, 0.5, 1.0), place(14_000, 0.5, 1.0)],
            0.05,
            1.0,
        ),
        (
            vec![place(6000, 0.5, 1.0), place(7000, 0.0, 1.0)],
            0.05,
            1.4,
        ),
        (
            vec![place(3300, 0.1, 1.0), place(7000, 0.0, 1.0)],
            0.05,
            1.5,
        ),
        (
            vec![place(6000, 0.5, 0.5), place(7000, 0.0, 0.5)],
            0.05,
            0.99,
        ),
        // Some allocations are not counted.
        (
            vec![
                place(3000, 0.0, 1.0),
                place(7000, 0.0, 1.0),
                uncounted(3000),
            ],
            0.05,
            1.2,
        ),
        // Several stacks allocate at the same line of code.
        (
            vec![three(place(3000, 0.0, 1.0)), three(place(7000, 0.0, 1.0))],
            0.05,
            1.0,
        ),
    ] {
        let (covered, error, ratio) = simulated_accuracy(&places, p);
        assert!(covered.iter().all(|&c| c >= 93.0), "{covered:?}");
        assert!(error.iter().all(|e| e.abs() < 2.0), "{error:?}");
        assert!(ratio >= narrower, "{ratio}");
    }
}

fn bytes(objects: u64, samples: u64) -> Births {
    Births {
        objects,
        bytes: objects * 10,
        samples: Some(samples),
    }
}

fn stacks<const N: usize>(of: [(char, Option<u32>, u64, u64); N]) -> BTreeMap<char, OfStack> {
    let of = of.map(|(key, place, counted, other)| {
        let of = OfStack {
            place,
            counted,
            other,
        };
        (key, of)
    });
    of.into()
}

/// Divides 10,000 bytes among stacks in proportion to their samples.
fn shares<const N: usize>(of: [(char, u64); N]) -> BTreeMap<char, Part> {
    let all: u64 = of.iter().map(|of| of.1).sum();
    let of = of.map(|(key, samples)| {
        let share = samples as f64 / all as f64;
        let part = Part {
            objects: 1000.0 * share,
            bytes: Interval::share(share, all as f64, 0.0).times(10_000.0),
            sampled: None,
        };
        (key, part)
    });
    of.into()
}

#[test]
fn live_bytes_are_bounded_by_counts_and_other_stacks() {
    let counts = Counts {
        stacks: stacks([('a', Some(1), 40, 0), ('b', Some(2), 60, 0)]),
        places: [(1, bytes(300, 40)), (2, bytes(700, 60))].into(),
    };
    let sampled = shares([('a', 40), ('b', 60)]);
    let mut parts = sampled.clone();
    counts.narrow(&mut parts, 10_000.0, 10_000.0);
    // Because of random variation, stack `a` has a larger part of the samples than of the objects.
    let (a, b) = (parts[&'a'], parts[&'b']);
    assert!((a.bytes.value - 3000.0).abs() < 1.0 && (b.bytes.value - 7000.0).abs() < 1.0);
    assert!((a.objects - 300.0).abs() < 0.1 && (b.objects - 700.0).abs() < 0.1);
    // Objects without a sample may belong to a stack without samples.
    let unseen = 10_000.0 * Interval::share(0.0, 100.0, 0.0).high;
    assert!((a.bytes.low - (3000.0 - unseen)).abs() < 1.0, "{a:?}");
    assert!((a.bytes.high - (3000.0 + unseen)).abs() < 1.0, "{a:?}");
    assert_eq!(a.sampled, Some(sampled[&'a'].bytes));
    // The bytes of objects that were not counted are estimated from their part of the samples.
    let mut counts = counts;
    counts.stacks = stacks([('a', Some(1), 30, 10), ('b', None, 0, 60)]);
    let mut parts = sampled.clone();
    counts.narrow(&mut parts, 10_000.0, 10_000.0);
    let ends = |parts: &BTreeMap<char, Part>| (parts[&'b'].bytes.low, parts[&'b'].bytes.high);
    assert_eq!(ends(&parts), ends(&sampled));
    let sum: f64 = parts.values().map(|part| part.bytes.value).sum();
    assert!((sum - 10_000.0).abs() < 1e-6, "{sum}");
    assert!(parts[&'a'].bytes.high > 3000.0, "{parts:?}");
}

#[test]
fn uninformative_counts_change_nothing() {
    let sampled = shares([('a', 40), ('b', 60)]);
    for places in [
        // Nothing was counted.
        BTreeMap::new(),
        // The compiler removed most executed allocations, so the counts are a hundred times the estimates from samples.
        [(1, bytes(40_000, 40)), (2, bytes(60_000, 60))].into(),
        // The number of samples taken is unknown.
        [1, 2]
            .map(|place| {
                (
                    place,
                    Births {
                        samples: None,
                        ..bytes(5000, 0)
                    },
                )
            })
            .into(),
    ] {
        let counts = Counts {
            stacks: stacks([('a', Some(1), 40, 0), ('b', Some(2), 60, 0)]),
            places,
        };
        let mut parts = sampled.clone();
        counts.narrow(&mut parts, 10_000.0, 10_000.0);
        assert_eq!(parts, sampled);
    }
    // The dump contradicts the counts: it contains more bytes than were counted.
    let counts = Counts {
        stacks: stacks([('a', Some(1), 40, 0), ('b', Some(2), 60, 0)]),
        places: [(1, bytes(10, 40)), (2, bytes(10, 60))].into(),
    };
    let mut parts = sampled.clone();
    counts.narrow(&mut parts, 10_000.0, 10_000.0);
    assert_eq!(parts, sampled);
}

#[test]
fn counts_of_several_sizes_are_merged() {
    let mut one = Counts {
        stacks: stacks([('a', Some(1), 3, 1)]),
        places: [(1, bytes(300, 40))].into(),
    };
    one.merge(Counts {
        stacks: stacks([('a', Some(1), 2, 0), ('b', None, 0, 1)]),
        places: [
            (
                1,
                Births {
                    samples: None,
                    ..bytes(300, 0)
                },
            ),
            (2, bytes(7, 0)),
        ]
        .into(),
    });
    assert_eq!(
        one.stacks,
        stacks([('a', Some(1), 5, 1), ('b', None, 0, 1)])
    );
    assert_eq!(
        one.places[&1],
        Births {
            samples: None,
            ..bytes(300, 0)
        }
    );
    assert_eq!(one.places[&2], bytes(7, 0));
}
