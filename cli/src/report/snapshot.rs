//! The dump that a report is of.

use heapdiff_diff::samples::{AgentObjects, Samples, is_agent_class};
use heapdiff_diff::{AgentInfo, LayoutInfo};
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
    /// `None` without the agent, and where no graph was built.
    pub(crate) agent: Option<AgentInfo>,
}

fn lines<'a>(warnings: impl IntoIterator<Item = &'a Warning>) -> Vec<String> {
    warnings.into_iter().map(Warning::to_string).collect()
}

impl SnapshotInfo {
    /// A dump whose graph was not built.
    pub(crate) fn of_histogram(histogram: &Histogram) -> Self {
        let source = histogram.source();
        let classes = histogram.classes().iter().zip(histogram.totals());
        let objects = classes
            .filter(|((_, class), _)| !is_agent_class(class))
            .map(|(_, total)| total.all.objects);
        Self {
            path: source.path().display().to_string(),
            bytes: source.file_bytes(),
            taken_ms: histogram.header().taken_ms,
            id_size: histogram.header().id_size,
            jvm: None,
            layout: histogram.layout().into(),
            objects: objects.sum(),
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
    pub(crate) fn of(snapshot: &Snapshot, own: &AgentObjects) -> Self {
        let (samples, fault) = match own.is_empty() {
            true => (None, None),
            false => Samples::of(snapshot, own),
        };
        let mut info = Self::of_own(snapshot, own);
        info.agent = samples.and_then(|s| s.info());
        info.warnings.extend(fault);
        info
    }

    /// As [`SnapshotInfo::of`], without the agent's figures.
    pub(crate) fn of_own(snapshot: &Snapshot, own: &AgentObjects) -> Self {
        let source = snapshot.source();
        let tree = snapshot.tree();
        let (all, live) = (own.total(snapshot), own.reachable(snapshot));
        let reachable = tree.retained_bytes(Node::ROOT).saturating_sub(live.bytes);
        let reachable_objects = tree
            .retained_objects(Node::ROOT)
            .saturating_sub(live.objects);
        let unreachable = snapshot
            .unreachable_bytes()
            .saturating_sub(all.bytes - live.bytes);
        let objects = snapshot.object_count() - all.objects;
        Self {
            path: source.path().display().to_string(),
            bytes: source.file_bytes(),
            taken_ms: snapshot.header().taken_ms,
            id_size: snapshot.header().id_size,
            jvm: snapshot.jvm(),
            layout: snapshot.layout().into(),
            objects,
            reachable_objects: Some(reachable_objects),
            reachable_bytes: Some(reachable),
            unreachable_bytes: Some(unreachable),
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
