//! The parts of a snapshot's description that all kinds of reports have in common.

use heapdiff_model::diff::{AssumedRoots, LayoutInfo};
use hprof::Snapshot;
use hprof::sizes::Layout;

/// Converts the layout of objects to the type that reports use.
#[must_use]
pub fn layout_info(layout: &Layout) -> LayoutInfo {
    LayoutInfo {
        reference: layout.reference,
        header: layout.header,
        array_header: layout.array_header,
        align: layout.align,
        source: layout.source.name().into(),
    }
}

/// If a dump lacks GC roots, returns the roots that are assumed instead. Returns `None` if the dump has GC roots.
#[must_use]
pub fn assumed_roots(snapshot: &Snapshot) -> Option<AssumedRoots> {
    let (missing, total) = snapshot.assumed_roots()?;
    Some(AssumedRoots {
        kind: missing.root_kind().name().into(),
        objects: total.objects,
        retained_bytes: total.bytes,
    })
}
