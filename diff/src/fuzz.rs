//! What the fuzz target for diffs and its smoke test run.

use hprof::{Options, Silent, Snapshot, Source};

use crate::{Comparison, Filter, Report, Summary};

/// What every dump begins with.
const MAGIC: &[u8] = b"JAVA PROFILE";

/// A dump beside itself, and, where another dump follows it in the bytes, the two both ways round.
pub fn diff(bytes: &[u8]) {
    let second = bytes
        .windows(MAGIC.len())
        .skip(1)
        .position(|w| w == MAGIC)
        .map(|at| at + 1);
    let (before, after) = bytes.split_at(second.unwrap_or(bytes.len()));
    if let Some(report) = compare(before, before) {
        assert!(report.suspects.is_empty() && report.classes.is_empty());
        assert_eq!((report.delta.objects, report.delta.shallow_bytes), (0, 0));
    }
    if let (Some(there), Some(back)) = (compare(before, after), compare(after, before)) {
        assert_eq!(there.delta.objects, -back.delta.objects);
        assert_eq!(there.delta.shallow_bytes, -back.delta.shallow_bytes);
        assert_eq!(there.classes.len(), back.classes.len());
    }
}

fn compare(before: &[u8], after: &[u8]) -> Option<Report> {
    let mut comparison = Comparison::default();
    let mut last = None;
    for bytes in [before, after] {
        let source = Source::from_bytes(bytes.to_vec());
        let snapshot = Snapshot::of(source, &Options::default(), &Silent).ok()?;
        comparison.add(Summary::new(&snapshot, String::new()).ok()?);
        last = Some(snapshot);
    }
    let filter = Filter {
        classes: &|_| true,
        suspects: usize::MAX,
    };
    comparison.report(&last?, &filter).ok()
}
