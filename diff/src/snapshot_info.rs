//! Parts of a snapshot's description that every report has.

use heapdiff_model::diff::{AssumedRoots, LayoutInfo};
use hprof::Snapshot;
use hprof::sizes::Layout;

/// Returns the object layout as reports describe it.
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

/// Returns the roots that are assumed in a dump that lacks GC roots; `None` if the dump is complete.
#[must_use]
pub fn assumed_roots(snapshot: &Snapshot) -> Option<AssumedRoots> {
    let (missing, total) = snapshot.assumed_roots()?;
    Some(AssumedRoots {
        kind: missing.root_kind().name().into(),
        objects: total.objects,
        retained_bytes: total.bytes,
    })
}
