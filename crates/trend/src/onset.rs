//! The time at which growth begins.

/// Returns the index of the point at which a series of (time, figure) begins to grow. Returns `None` if the series does
/// not grow or has fewer than three points, and 0 if it grows from the first point on.
///
/// The function fits a line that is level up to a point (the knee) and rises after it. The result is the index of the
/// knee:
///
/// ```text
///         /
///        /
/// ______/   <- knee
/// ```
///
/// The fit is by least squares over all knees (D. V. Hinkley, "Inference in two-phase regression", Journal of the
/// American Statistical Association 66 (1971), 736-743).
///
/// Cost: linear in the number of points.
#[must_use]
pub fn onset(points: &[(f64, f64)]) -> Option<usize> {
    if points.len() < 3 || !points.iter().all(|p| p.0.is_finite() && p.1.is_finite()) {
        return None;
    }
    let n = points.len() as f64;
    // Times and amounts are centred and scaled for the fit, because squares of milliseconds and bytes would exceed the
    // precision of doubles.
    let (x0, y0) = points[0];
    let span = (points[points.len() - 1].0 - x0).max(f64::MIN_POSITIVE);
    let range = points.iter().map(|p| (p.1 - y0).abs()).fold(0.0, f64::max);
    if range <= 0.0 || !range.is_finite() || !span.is_finite() {
        return None;
    }
    let at = |i: usize| ((points[i].0 - x0) / span, (points[i].1 - y0) / range);
    let sum_y: f64 = (0..points.len()).map(|i| at(i).1).sum();
    // Sums over the points after the knee, for the least-squares fit: the number of points, and the sums of x, y, x²
    // and x·y.
    let (mut m, mut x, mut y, mut xx, mut xy) = (0.0, 0.0, 0.0, 0.0, 0.0);
    let mut best: Option<(f64, usize)> = None;
    for knee in (0..points.len()).rev() {
        let (a, b) = at(knee);
        let h = x - m * a;
        let hh = xx - 2.0 * a * x + m * a * a;
        let hy = xy - a * y;
        let spread = hh - h * h / n;
        let common = hy - h * sum_y / n;
        if spread > 1e-12 && common > 0.0 {
            let explained = common * common / spread;
            // If the line with the knee at this point fits as well as the best line so far, prefer this knee, because
            // it is earlier.
            if best.is_none_or(|(most, _)| explained >= most) {
                best = Some((explained, knee));
            }
        }
        m += 1.0;
        x += a;
        y += b;
        xx += a * a;
        xy += a * b;
    }
    best.map(|(_, knee)| knee)
}

#[cfg(test)]
mod tests {
    use super::onset;

    fn series(n: i32, f: impl Fn(i32) -> f64) -> Vec<(f64, f64)> {
        (0..n)
            .map(|i| (1.76e12 + f64::from(i) * 1000.0, f(i)))
            .collect()
    }

    #[test]
    fn a_knee_is_found() {
        for knee in [1, 5, 50, 90] {
            let found = onset(&series(100, |i| 1e9 + f64::from((i - knee).max(0)) * 5e5));
            assert_eq!(found, Some(knee.unsigned_abs() as usize));
        }
    }

    #[test]
    fn steps_and_noise_move_the_onset_little() {
        // The series grows only at every third point, and it varies before the knee.
        let found = onset(&series(200, |i| {
            f64::from((i - 60).max(0) / 3 * 30 + i % 5)
        }))
        .unwrap();
        assert!(found.abs_diff(60) <= 4, "{found}");
    }

    #[test]
    fn growth_from_the_first_point_on() {
        assert_eq!(onset(&series(50, |i| f64::from(i) * 7.0)), Some(0));
    }

    #[test]
    fn three_points_are_enough_and_times_may_begin_at_zero() {
        assert_eq!(onset(&[(0.0, 0.0), (1.0, 0.0), (2.0, 1.0)]), Some(1));
        assert_eq!(onset(&[(0.0, 0.0), (1.0, 1.0)]), None);
    }

    #[test]
    fn the_onset_does_not_depend_on_units() {
        // Three hard cases: times with very small differences, figures near the maximum of `f64`, and large figures
        // with small differences.
        assert_eq!(onset(&[(0.0, 0.0), (1e-7, 0.0), (2e-7, 1.0)]), Some(1));
        assert_eq!(
            onset(&[(0.0, 1e308), (1.0, 1e308), (2.0, 1.5e308)]),
            Some(1)
        );
        let found = onset(&series(100, |i| 1e15 + f64::from((i - 50).max(0))));
        assert_eq!(found, Some(50));
    }

    #[test]
    fn a_series_without_growth_has_no_onset() {
        assert_eq!(onset(&series(50, |_| 7.0)), None);
        assert_eq!(onset(&series(50, |i| f64::from(-i))), None);
        assert_eq!(onset(&[]), None);
        // The series rises and falls back.
        assert_eq!(onset(&[(0.0, 0.0), (1.0, 1.0), (2.0, 0.0)]), None);
        let no_time = [
            (0.0, 0.0),
            (f64::NAN, 0.0),
            (2.0, 0.0),
            (3.0, 1.0),
            (4.0, 2.0),
        ];
        assert_eq!(onset(&no_time), None);
        assert_eq!(onset(&[(0.0, f64::NAN), (1.0, 1.0), (2.0, 2.0)]), None);
        assert_eq!(onset(&[(0.0, 0.0), (0.0, 1.0), (0.0, 2.0)]), None);
        let far = [(0.0, -f64::MAX), (1.0, 0.0), (2.0, f64::MAX)];
        assert_eq!(onset(&far), None);
    }
}
