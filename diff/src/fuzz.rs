//! The functions that the fuzz target for diffs and its smoke test run.

use hprof::answers::{MAX_CUT, PathOptions};
use hprof::dominators::Node;
use hprof::{ObjectIndex, Options, Silent, Snapshot, Source};

use crate::evidence::context::Last;
use crate::samples::AgentObjects;
use crate::{
    Comparison, ContentPattern, Filter, OwnerKind, OwnerSummary, Report, Summary, find_contents,
    holding_fields,
};

/// The first bytes of every dump.
const MAGIC: &[u8] = b"JAVA PROFILE";

/// Compares a dump with itself. If the bytes contain a second dump after the first, compares the two in both orders.
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
    owners(before);
    contents(before);
}

/// Checks three things. The bytes that unreachable objects retain are at most the bytes of all unreachable objects. The
/// results of searches for disjoint paths are within the requested limits. Each object that a content search finds
/// matches the pattern.
fn contents(bytes: &[u8]) {
    let source = Source::from_bytes(bytes.to_vec());
    let Ok(snapshot) = Snapshot::of(source, &Options::default(), &Silent) else {
        return;
    };
    if let Ok(unreachable) = snapshot.unreachable_objects(&Silent) {
        let classes = unreachable.classes(&snapshot);
        let sum = classes
            .iter()
            .fold(0_u64, |sum, (_, total)| sum.saturating_add(total.bytes));
        let held = unreachable.entry_classes(&snapshot);
        let held = held
            .iter()
            .fold(0_u64, |sum, row| sum.saturating_add(row.retained.bytes));
        assert!(held <= sum && (held > 0) == (sum > 0));
        if let Ok(tree) = unreachable.into_tree(&snapshot, &Silent) {
            assert!(tree.largest(3, |_| true).len() <= 3);
        }
    }
    let all: Vec<ObjectIndex> = (0..snapshot.object_count() as u32)
        .map(ObjectIndex)
        .collect();
    for targets in all.chunks(7).take(5) {
        let found = snapshot.disjoint_paths(targets, &PathOptions::default(), 2, &Silent);
        if let Ok(found) = found {
            assert!(found.paths.len() <= 2);
            assert!(found.tree(&snapshot, 2, 9).nodes.len() <= 9);
            let size = found.cut.map_or(0, |cut| cut.len());
            assert!(size <= MAX_CUT && size >= found.paths.len().min(size));
        }
    }
    let own = AgentObjects::find(&snapshot);
    for pattern in ["a", "/a.*e/", "hex:61"] {
        if let Ok(pattern) = pattern.parse::<ContentPattern>() {
            let objects = find_contents(&snapshot, &own, &pattern, &Silent);
            for &object in objects.iter().take(9) {
                assert!(pattern.first_match(&snapshot, object).is_some());
            }
            // Only check that the call does not panic. It may return an error if memory runs out.
            let _ = holding_fields(&snapshot, &objects, &Silent);
        }
    }
}

/// Checks that the bytes of all owners and groups of owners add up to the reachable bytes.
fn owners(bytes: &[u8]) {
    let source = Source::from_bytes(bytes.to_vec());
    let Ok(snapshot) = Snapshot::of(source, &Options::default(), &Silent) else {
        return;
    };
    let own = AgentObjects::find(&snapshot);
    let reachable = snapshot.tree().retained_bytes(Node::ROOT) - own.reachable(&snapshot).bytes;
    let field = OwnerKind::Field("java.lang.Thread".to_owned(), "name".to_owned());
    for kind in [
        OwnerKind::Package(None),
        OwnerKind::Loader,
        OwnerKind::Jar,
        OwnerKind::Thread,
        OwnerKind::Bean,
        field,
    ] {
        if let Ok(summary) = OwnerSummary::new(&snapshot, &own, &kind, false, &Silent) {
            let figures = OwnerSummary::compared(&[summary]);
            let owned: u64 = figures.owners.iter().map(|row| row.bytes[0]).sum();
            assert_eq!(owned + figures.shared_bytes[0], reachable, "{kind:?}");
        }
    }
}

/// Version of the format of cached summaries.
pub const KEPT_VERSION: u32 = crate::summary::kept::VERSION;

/// Version of the format of summary files that replace a dump.
pub const FILE_VERSION: u32 = crate::summary::kept::FILE_VERSION;

/// Returns the content of a summary file that replaces a dump.
#[must_use]
pub fn file_content(summary: &Summary, snapshot: &Snapshot) -> Vec<u8> {
    summary.encoded_with_facts(snapshot)
}

/// Returns the content of a cached summary.
#[must_use]
pub fn content(summary: &Summary, snapshot: &Snapshot) -> Vec<u8> {
    summary.encoded(snapshot.object_count())
}

/// Makes many changed copies of a summary file with valid checksums, and decodes each. A copy has to be rejected, or a
/// comparison with it must not panic.
pub fn decode_mutated_summaries(bytes: &[u8]) {
    /// Number of changed copies to make of one summary.
    const CHANGES: u64 = 24;
    let source = Source::from_bytes(bytes.to_vec());
    let Ok(snapshot) = Snapshot::of(source, &Options::default(), &Silent) else {
        return;
    };
    let Ok(summary) = Summary::new(&snapshot, String::new()) else {
        return;
    };
    let objects = snapshot.object_count();
    let with_facts = summary.encoded_with_facts(&snapshot);
    let content = summary.encoded(objects);
    if let Some(same) = Summary::decoded(&content, Some(objects)) {
        assert!(
            same.encoded(objects) == content,
            "the decoded summary differs from the encoded one"
        );
    }
    let mut random = hprof::bytes::hash(bytes);
    let mut next = |below: usize| {
        random = random
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        (random >> 33) as usize % below.max(1)
    };
    for round in 0..CHANGES {
        // In a quarter of the copies, only the encoded `Facts` are changed. A summary file has the `Facts` at the end,
        // after the content of a cached summary. So the changes begin after this content.
        let (mut changed, unchanged) = match round % 4 {
            0 | 1 => (content.clone(), 0),
            2 => (with_facts.clone(), 0),
            _ => (with_facts.clone(), content.len()),
        };
        for _ in 0..=next(3) {
            let at = unchanged.min(changed.len() - 1);
            let at = at + next(changed.len() - at);
            match next(4) {
                0 => changed[at] = next(256) as u8,
                1 => changed[at] ^= 1 << next(8),
                // Change several adjacent bytes at once, so that some figures or lengths become very large.
                2 => changed[at..].iter_mut().take(4).for_each(|b| *b = 0xff),
                _ => changed.truncate(at.max(1)),
            }
        }
        let decoded = if round % 4 < 2 {
            Summary::decoded(&changed, Some(objects))
        } else {
            Summary::decoded_with_facts(&changed)
        };
        let Some(odd) = decoded else {
            continue;
        };
        for pair in [[&odd, &odd], [&summary, &odd]] {
            let pair = pair.map(Summary::clone);
            if let Some(comparison) = Comparison::from_summaries(&pair) {
                let _ = comparison.report_with_stacks(&ALL);
            }
        }
        if round % 4 >= 2 {
            continue;
        }
        for pair in [[&odd, &summary], [&summary, &odd], [&odd, &odd]] {
            let comparison = Comparison {
                summaries: &pair.map(Summary::clone),
                last: Last::Dump(&snapshot),
            };
            let _ = comparison.report_with_stacks(&ALL);
        }
    }
}

/// A filter that admits everything.
const ALL: Filter<'_> = Filter {
    recording: None,
    classes: &|_| true,
    suspects: usize::MAX,
};

fn compare(before: &[u8], after: &[u8]) -> Option<Report> {
    let (mut summaries, mut last) = (Vec::new(), None);
    for bytes in [before, after] {
        let source = Source::from_bytes(bytes.to_vec());
        let snapshot = Snapshot::of(source, &Options::default(), &Silent).ok()?;
        summaries.push(Summary::new(&snapshot, String::new()).ok()?);
        last = Some(snapshot);
    }
    Some(Comparison::new(&summaries, &last?).ok()?.report(&ALL))
}
