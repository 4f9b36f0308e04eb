//! Computes when the reachable heap of several dumps reaches the maximum heap.

use heapdiff_model::diff::{HeapTrend, Oom, Report};
use heapdiff_trend::{Outlook, Rise, Rising, Slope};

const MS_PER_HOUR: f64 = 3_600_000.0;
/// Minimum time between two dumps for a rate, in milliseconds. The growth of a few seconds says little about an hour.
const LEAST_SPAN: u64 = 60_000;
/// Maximum time to OutOfMemoryError that is reported, in milliseconds: a thousand years.
const LONGEST_MS: f64 = 1000.0 * 365.25 * 24.0 * MS_PER_HOUR;

/// Sets the trend of the reachable heap. All dumps must be of one JVM.
pub(crate) fn add(report: &mut Report, limit: Option<u64>) {
    let is_rising_time = report
        .snapshots
        .windows(2)
        .all(|w| w[0].taken_ms < w[1].taken_ms);
    let is_enough = match &*report.snapshots {
        [] | [_] => false,
        [first, last] => last.taken_ms.saturating_sub(first.taken_ms) >= LEAST_SPAN,
        _ => true,
    };
    if !report.comparable || !is_rising_time || !is_enough {
        (report.heap_trend, report.oom) = (None, None);
        return;
    }
    let points = report.snapshots.iter();
    let points: Vec<(f64, f64)> = points
        .map(|s| (s.taken_ms as f64, s.reachable_bytes as f64))
        .collect();
    let hourly = |rate: f64| (rate * MS_PER_HOUR).round() as i64;
    let (slope, outlook, oom) = match Rise::fit(&points) {
        None => (Slope::fit(&points), "too-few", None),
        Some(rise) => {
            let (outlook, oom) = match limit.map(|limit| rise.reach(limit as f64)) {
                _ if rise.rising == Rising::No => ("no-end", None),
                _ if rise.rising == Rising::Unclear => ("irregular", None),
                None => ("no-limit", None),
                Some(Outlook::Irregular) => ("irregular", None),
                Some(Outlook::Reaches(reach)) if reach.at <= LONGEST_MS => {
                    // A cast with `as` saturates: it never overflows.
                    let ms = |after: f64| after.min(LONGEST_MS).round() as u64;
                    let oom = Oom {
                        at_ms: ms(reach.at),
                        from_ms: ms(reach.ci95[0]),
                        to_ms: ms(reach.ci95[1]),
                    };
                    ("ends", Some(oom))
                }
                Some(Outlook::NoEnd | Outlook::Reaches(_)) => ("no-end", None),
            };
            (Some(rise.slope), outlook, oom)
        }
    };
    report.oom = oom;
    report.heap_trend = slope.map(|slope| HeapTrend {
        outlook: outlook.into(),
        bytes_per_hour: hourly(slope.slope),
        ci95: slope.ci95.map(|ends| ends.map(hourly)),
        limit_bytes: limit,
    });
}

/// Computes the time to OutOfMemoryError with this maximum heap, if the report has a trend of the heap.
pub fn set_heap_limit(report: &mut Report, limit: u64) {
    if report.heap_trend.is_some() {
        add(report, Some(limit));
    }
}

#[cfg(test)]
mod tests {
    use heapdiff_model::diff::SnapshotInfo;

    use super::*;

    fn report(megabytes: &[u64]) -> Report {
        let snapshots = (0..).zip(megabytes).map(|(i, mb)| SnapshotInfo {
            taken_ms: 1_760_000_000_000 + i * 60_000,
            reachable_bytes: mb << 20,
            ..SnapshotInfo::default()
        });
        let mut report = Report {
            comparable: true,
            snapshots: snapshots.collect(),
            ..Report::default()
        };
        add(&mut report, None);
        report
    }

    fn outlook(report: &Report) -> Option<&str> {
        report.heap_trend.as_ref().map(|trend| &*trend.outlook)
    }

    #[test]
    fn five_dumps_that_grow_have_a_time_with_a_limit() {
        let mut leak = report(&[100, 110, 120, 130, 140]);
        assert_eq!((outlook(&leak), leak.oom), (Some("no-limit"), None));
        set_heap_limit(&mut leak, 240 << 20);
        let oom = leak.oom.unwrap();
        assert_eq!((outlook(&leak), oom.at_ms), (Some("ends"), 600_000));
        assert!(
            oom.from_ms <= oom.at_ms && oom.at_ms <= oom.to_ms,
            "{oom:?}"
        );
        let trend = leak.heap_trend.unwrap();
        assert_eq!(trend.bytes_per_hour, 600 << 20);
        assert_eq!(trend.limit_bytes, Some(240 << 20));
    }

    #[test]
    fn fewer_dumps_have_only_a_rate_and_level_dumps_have_no_end() {
        let mut three = report(&[100, 110, 120]);
        set_heap_limit(&mut three, 240 << 20);
        assert_eq!((outlook(&three), three.oom), (Some("too-few"), None));
        let two = report(&[100, 110]).heap_trend.unwrap();
        assert_eq!((&*two.outlook, two.bytes_per_hour), ("too-few", 600 << 20));
        let mut soon = report(&[100, 110]);
        soon.snapshots[1].taken_ms -= 1;
        add(&mut soon, None);
        assert_eq!(soon.heap_trend, None, "less than a minute");
        assert_eq!(report(&[100]).heap_trend, None);
        let mut level = report(&[100, 140, 150, 150, 150]);
        set_heap_limit(&mut level, 240 << 20);
        assert_eq!((outlook(&level), level.oom), (Some("no-end"), None));
        let mut other = report(&[100, 110, 120, 130, 140]);
        other.comparable = false;
        add(&mut other, Some(240 << 20));
        assert_eq!((outlook(&other), other.oom), (None, None));
    }
}
