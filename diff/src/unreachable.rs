//! Explains unreachable objects: what they consist of, and what would hold them.

use heapdiff_model::owners::OwnedClass;
use heapdiff_model::unreachable::UnreachableSummary;
use hprof::answers::Unreachable;
use hprof::dominators::Node;
use hprof::{ClassIndex, Progress, Snapshot};

/// Number of classes that a summary lists.
const CLASSES: usize = 3;
/// A report explains unreachable objects if they are more than this part of the dump, in percent.
const MUCH: u128 = 30;

/// Returns a summary if more than 30 % of the dump's bytes are unreachable. Returns `None` for a damaged dump: its
/// objects may be unreachable because GC roots or references are missing.
///
/// Cost: nothing if at most 30 % are unreachable, otherwise that of [`Snapshot::unreachable_objects`].
///
/// # Errors
/// Returns an error if memory runs out.
pub fn explain_unreachable(
    snapshot: &Snapshot,
    progress: &dyn Progress,
) -> hprof::Result<Option<UnreachableSummary>> {
    if snapshot.is_partial() || snapshot.assumed_roots().is_some() {
        return Ok(None);
    }
    let bytes = snapshot.unreachable_bytes();
    if u128::from(bytes) * 100 <= u128::from(all_bytes(snapshot, bytes)) * MUCH {
        return Ok(None);
    }
    let unreachable = snapshot.unreachable_objects(progress)?;
    Ok(Some(unreachable_summary(snapshot, &unreachable, CLASSES)))
}

/// Returns a summary of unreachable objects. Its lists have at most `rows` classes.
#[must_use]
pub fn unreachable_summary(
    snapshot: &Snapshot,
    unreachable: &Unreachable,
    rows: usize,
) -> UnreachableSummary {
    let bytes = snapshot.unreachable_bytes();
    let row = |class: Option<ClassIndex>, objects, bytes| OwnedClass {
        class: match class {
            Some(class) => snapshot.classes()[class].name.to_string(),
            None => "java.lang.Class".to_owned(),
        },
        objects,
        bytes,
    };
    let classes = unreachable.classes(snapshot).into_iter().take(rows);
    let entries = unreachable.entry_classes(snapshot).into_iter().take(rows);
    UnreachableSummary {
        objects: unreachable.count(),
        bytes,
        percent: percent(snapshot, bytes),
        classes: classes
            .map(|(class, total)| row(class, total.objects, total.bytes))
            .collect(),
        holders: entries
            .map(|entry| row(entry.class, entry.entries, entry.retained.bytes))
            .collect(),
    }
}

fn percent(snapshot: &Snapshot, unreachable: u64) -> u64 {
    (u128::from(unreachable) * 100 / u128::from(all_bytes(snapshot, unreachable))) as u64
}

/// Returns the size of all objects, and 1 for an empty dump.
fn all_bytes(snapshot: &Snapshot, unreachable: u64) -> u64 {
    let reachable = snapshot.tree().retained_bytes(Node::ROOT);
    reachable.saturating_add(unreachable).max(1)
}
