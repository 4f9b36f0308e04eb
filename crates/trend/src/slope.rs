//! The slope of a series, with its confidence interval.

/// Maximum number of points used. The number of pairs grows with the square of the points, and more points add little
/// precision.
const MOST_POINTS: usize = 256;
/// Minimum number of points for a 95 % interval. Four points are too few: in random order, they are in ascending order
/// in 1 of 24 cases, which is more than 2.5 %.
pub const LEAST_POINTS: usize = 5;
/// Maximum number of points for which the distribution of Kendall's statistic is computed exactly.
const EXACT: usize = 12;
/// A normally distributed estimate is within this number of standard errors of the true value in 95 % of cases.
pub const Z95: f64 = 1.959_964;

/// The slope of a line through points, robust against outliers.
///
/// It is the Theil-Sen estimator: the median of the slopes between all pairs of points. Its interval comes from the
/// distribution of Kendall's statistic, which determines how many of the smallest and largest slopes are left out. H.
/// Theil, "A rank-invariant method of linear and polynomial regression analysis", Indagationes Mathematicae 12 (1950);
/// P. K. Sen, "Estimates of the regression coefficient based on Kendall's tau", Journal of the American Statistical
/// Association 63 (1968), 1379-1389, equations 2.6 and 3.10.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Slope {
    /// Slope, in units of the figures per unit of time.
    pub slope: f64,
    /// The 95 % interval of the slope. `None` for fewer than [`LEAST_POINTS`] points.
    pub ci95: Option<[f64; 2]>,
    /// Number of points used.
    pub points: usize,
}

impl Slope {
    /// Returns the slope through points of (time, figure), in order of time. `None` for fewer than two different times.
    /// Points that are not finite are left out. At most 256 points are used, evenly spaced.
    ///
    /// Cost: `n² log n` for `n` points.
    #[must_use]
    pub fn fit(points: &[(f64, f64)]) -> Option<Self> {
        let finite = |p: &&(f64, f64)| p.0.is_finite() && p.1.is_finite();
        let all: Vec<(f64, f64)> = points.iter().filter(finite).copied().collect();
        let taken = all.len().min(MOST_POINTS);
        let last = all.len().checked_sub(1)?;
        let chosen: Vec<(f64, f64)> = if taken == all.len() {
            all
        } else {
            (0..taken)
                .map(|i| all[evenly_spaced_index(i, taken, last)])
                .collect()
        };
        let mut slopes = Vec::with_capacity(taken * taken.saturating_sub(1) / 2);
        for (i, a) in chosen.iter().enumerate() {
            for b in &chosen[i + 1..] {
                let slope = (b.1 - a.1) / (b.0 - a.0);
                if b.0 > a.0 && slope.is_finite() {
                    slopes.push(slope);
                }
            }
        }
        if slopes.is_empty() {
            return None;
        }
        slopes.sort_by(f64::total_cmp);
        let ci95 = (taken >= LEAST_POINTS).then(|| interval(&slopes, &chosen));
        Some(Self {
            slope: median(&slopes),
            ci95: ci95.flatten(),
            points: taken,
        })
    }
}

/// Returns the index of the `i`th of `taken` points, evenly spaced over the indices 0 to `last`.
const fn evenly_spaced_index(i: usize, taken: usize, last: usize) -> usize {
    i * last / (taken - 1)
}

fn median(sorted: &[f64]) -> f64 {
    let half = sorted.len() / 2;
    match sorted.len() % 2 {
        1 => sorted[half],
        _ => f64::midpoint(sorted[half - 1], sorted[half]),
    }
}

/// Returns the smallest and the largest slope, after the extreme slopes at both ends are left out.
fn interval(slopes: &[f64], points: &[(f64, f64)]) -> Option<[f64; 2]> {
    let count = slopes.len() as f64;
    let within = if points.len() <= EXACT {
        exact(points.len())?
    } else {
        Z95 * variance(points).sqrt()
    };
    let below = ((count - within) / 2.0).floor().max(0.0) as usize;
    let low = *slopes.get(below.saturating_sub(1))?;
    let high = *slopes.get(slopes.len().checked_sub(below.max(1))?)?;
    Some([low, high])
}

/// Returns the variance of Kendall's statistic for figures in random order, corrected for equal figures.
fn variance(points: &[(f64, f64)]) -> f64 {
    let term = |n: f64| n * (n - 1.0) * (2.0 * n + 5.0);
    let mut figures: Vec<f64> = points.iter().map(|p| p.1).collect();
    figures.sort_by(f64::total_cmp);
    let ties: f64 = figures
        .chunk_by(|a, b| a == b)
        .map(|equal| term(equal.len() as f64))
        .sum();
    (term(points.len() as f64) - ties).max(0.0) / 18.0
}

/// Returns a critical value of Kendall's statistic for `n` figures, minus 2. In at most 2.5 % of all orders of the
/// figures, the statistic is at least the critical value. The subtraction of 2 converts the value to ranks of slopes
/// (Hollander and Wolfe, Nonparametric Statistical Methods, 9.3). Returns `None` if there are too few figures.
fn exact(n: usize) -> Option<f64> {
    // Element i is the number of orders of n figures in which exactly i pairs are in descending order.
    let mut orders = vec![1.0_f64];
    for k in 2..=n {
        let mut next = vec![0.0; orders.len() + k - 1];
        for (inversions, count) in orders.iter().enumerate() {
            for more in 0..k {
                next[inversions + more] += count;
            }
        }
        orders = next;
    }
    let all: f64 = orders.iter().sum();
    let pairs = orders.len() - 1;
    let mut tail = 0.0;
    let mut bound = None;
    for (inversions, count) in orders.iter().enumerate() {
        tail += count;
        if tail / all > 0.025 {
            break;
        }
        bound = Some(pairs as f64 - 2.0 * inversions as f64 - 2.0);
    }
    bound
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(n: usize, f: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
        (0..n).map(|i| (i as f64, f(i as f64))).collect()
    }

    /// Returns pseudo-random numbers from -0.5 to 0.5.
    fn noise(seed: &mut u64) -> f64 {
        *seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (*seed >> 11) as f64 / (1_u64 << 53) as f64 - 0.5
    }

    #[test]
    fn a_line_has_an_exact_slope() {
        let slope = Slope::fit(&line(20, |x| 3.0 * x + 7.0)).unwrap();
        assert_eq!((slope.slope, slope.ci95), (3.0, Some([3.0, 3.0])));
        assert_eq!(slope.points, 20);
    }

    #[test]
    fn outliers_do_not_matter() {
        let mut points = line(30, |x| 3.0 * x);
        for at in [4, 11, 12, 25] {
            points[at].1 = 1e6;
        }
        let slope = Slope::fit(&points).unwrap();
        assert_eq!(slope.slope, 3.0);
        assert!(slope.ci95.unwrap()[0] > 0.0);
    }

    #[test]
    fn few_points_use_the_exact_distribution() {
        assert_eq!(exact(4), None);
        // Kendall's statistic S is the number of rising pairs minus the number of falling pairs. The critical value is
        // the smallest value whose probability P is at most 0.025 for figures in random order. The function returns it
        // minus 2.
        //
        // Five points: P(S >= 8) = 0.042 and P(S >= 10) = 0.008. Six points: P(S >= 11) = 0.028 and P(S >= 13) = 0.008.
        // Ten points: P(S >= 21) = 0.036 and P(S >= 23) = 0.023.
        assert_eq!(exact(5), Some(8.0));
        assert_eq!(exact(6), Some(11.0));
        assert_eq!(exact(10), Some(21.0));
    }

    #[test]
    fn points_are_taken_evenly() {
        let places: Vec<usize> = (0..5).map(|i| evenly_spaced_index(i, 5, 10)).collect();
        assert_eq!(places, [0, 2, 5, 7, 10]);
    }

    #[test]
    fn the_median_of_an_even_number_lies_between() {
        assert_eq!(median(&[4.0]), 4.0);
        assert_eq!(median(&[1.0, 3.0]), 2.0);
        assert_eq!(median(&[0.0, 1.0, 3.0, 9.0]), 2.0);
        assert_eq!(median(&[0.0, 1.0, 2.0, 9.0, 9.0]), 2.0);
    }

    #[test]
    fn equal_figures_reduce_the_variance() {
        let of = |figures: &[f64]| {
            let points: Vec<_> = figures.iter().map(|&f| (0.0, f)).collect();
            variance(&points) * 18.0
        };
        assert!((of(&[1.0, 2.0, 3.0, 4.0]) - 156.0).abs() < 1e-9);
        assert!((of(&[1.0, 3.0, 2.0, 1.0]) - 138.0).abs() < 1e-9);
        assert!(of(&[1.0, 1.0, 1.0]).abs() < 1e-9);
    }

    #[test]
    fn the_interval_matches_published_tables() {
        let of = |slopes: u32, points: usize| {
            let slopes: Vec<f64> = (0..slopes).map(f64::from).collect();
            interval(&slopes, &line(points, |x| x))
        };
        // The values for 5, 6 and 12 points are from the tables of Hollander and Wolfe. The value for 13 points is from
        // the normal distribution.
        assert_eq!(of(10, 5), Some([0.0, 9.0]));
        assert_eq!(of(15, 6), Some([1.0, 13.0]));
        assert_eq!(of(66, 12), Some([18.0, 47.0]));
        assert_eq!(of(78, 13), Some([21.0, 56.0]));
        // Some pairs have no slope, because their times are equal.
        assert_eq!(of(9, 5), Some([0.0, 8.0]));
        assert_eq!(of(3, 5), Some([0.0, 2.0]));
        assert_eq!(of(0, 5), None);
    }

    #[test]
    fn too_few_points_have_no_interval() {
        assert_eq!(Slope::fit(&[]), None);
        assert_eq!(Slope::fit(&[(1.0, 1.0)]), None);
        assert_eq!(Slope::fit(&[(1.0, 1.0), (1.0, 2.0)]), None);
        let slope = Slope::fit(&line(4, |x| x)).unwrap();
        assert_eq!((slope.slope, slope.ci95), (1.0, None));
        let slope = Slope::fit(&line(5, |x| x)).unwrap();
        assert_eq!(slope.ci95, Some([1.0, 1.0]));
    }

    #[test]
    fn the_interval_covers_nineteen_in_twenty() {
        for n in [6, 10, 15, 40] {
            let mut seed = 42;
            let runs = 2000;
            let covered = (0..runs)
                .filter(|_| {
                    let points: Vec<_> = (0..n)
                        .map(|i| (f64::from(i), 2.0 * f64::from(i) + 9.0 * noise(&mut seed)))
                        .collect();
                    let [low, high] = Slope::fit(&points).unwrap().ci95.unwrap();
                    (low..=high).contains(&2.0)
                })
                .count();
            let part = covered as f64 / f64::from(runs);
            assert!((0.93..0.995).contains(&part), "{n}: {part}");
        }
    }

    #[test]
    fn noise_has_no_certain_slope() {
        let mut seed = 7;
        let sure = (0..1000)
            .filter(|_| {
                let points: Vec<_> = (0..20).map(|i| (f64::from(i), noise(&mut seed))).collect();
                Slope::fit(&points).unwrap().ci95.unwrap()[0] > 0.0
            })
            .count();
        assert!(sure < 45, "{sure}");
    }

    #[test]
    fn extreme_figures_are_ignored() {
        let mut points = line(10, |x| x);
        points[3].1 = f64::NAN;
        points[4].1 = f64::INFINITY;
        let slope = Slope::fit(&points).unwrap();
        assert_eq!((slope.slope, slope.points), (1.0, 8));
        assert!(Slope::fit(&[(0.0, -f64::MAX), (1e-300, f64::MAX)]).is_none());
        assert_eq!(Slope::fit(&line(5000, |x| x)).unwrap().points, MOST_POINTS);
    }
}
