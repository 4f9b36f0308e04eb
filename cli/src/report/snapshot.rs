//! The dump that a report is of.

use heapdiff_diff::LayoutInfo;
use hprof::{Histogram, Node, Snapshot, Warning};
use serde::Serialize;

use super::Condition;

/// One dump, as every report describes it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct SnapshotInfo {
    pub(crate) path: String,
    /// The file's size on disk.
    pub(crate) bytes: u64,
    pub(crate) taken_ms: u64,
    pub(crate) id_size: usize,
    pub(crate) jvm: Option<String>,
    pub(crate) layout: LayoutInfo,
    /// All objects of the dump, class objects included.
    pub(crate) objects: u64,
    /// `None` where no graph was built.
    pub(crate) reachable_objects: Option<u64>,
    pub(crate) reachable_bytes: Option<u64>,
    pub(crate) unreachable_bytes: Option<u64>,
    /// Whether damage keeps some of the dump out of the figures.
    pub(crate) partial: bool,
    pub(crate) warnings: Vec<String>,
    /// Reserved for dumps taken with the agent loaded.
    pub(crate) agent: Option<()>,
}

fn lines<'a>(warnings: impl IntoIterator<Item = &'a Warning>) -> Vec<String> {
    warnings.into_iter().map(Warning::to_string).collect()
}

impl SnapshotInfo {
    /// A dump whose graph was not built.
    pub(crate) fn of_histogram(histogram: &Histogram) -> Self {
        let source = histogram.source();
        Self {
            path: source.path().display().to_string(),
            bytes: source.file_bytes(),
            taken_ms: histogram.header().taken_ms,
            id_size: histogram.header().id_size,
            jvm: None,
            layout: histogram.layout().into(),
            objects: histogram.totals().iter().map(|t| t.all.objects).sum(),
            reachable_objects: None,
            reachable_bytes: None,
            unreachable_bytes: None,
            partial: histogram.warnings().iter().any(|w| w.partial),
            warnings: lines(histogram.warnings()),
            agent: None,
        }
    }

    /// An analysed dump.
    ///
    /// Cost: one parallel pass over the objects.
    pub(crate) fn of(snapshot: &Snapshot) -> Self {
        let source = snapshot.source();
        let tree = snapshot.tree();
        let reachable = tree.retained_bytes(Node::ROOT);
        let objects = snapshot.object_count();
        Self {
            path: source.path().display().to_string(),
            bytes: source.file_bytes(),
            taken_ms: snapshot.header().taken_ms,
            id_size: snapshot.header().id_size,
            jvm: snapshot.jvm(),
            layout: snapshot.layout().into(),
            objects,
            reachable_objects: Some(tree.retained_objects(Node::ROOT)),
            reachable_bytes: Some(reachable),
            unreachable_bytes: Some(snapshot.unreachable_bytes()),
            partial: snapshot.is_partial(),
            warnings: lines(snapshot.warnings().iter().chain(&snapshot.layout_doubt())),
            agent: None,
        }
    }

    pub(crate) fn condition(&self) -> Condition<'_> {
        Condition {
            path: &self.path,
            partial: self.partial,
            warnings: &self.warnings,
        }
    }
}
