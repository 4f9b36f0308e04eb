//! The data about a dump that a report contains, such as the file's size and the number of objects.

use heapdiff_diff::samples::{AgentObjects, Samples, is_agent_class};
use heapdiff_diff::{assumed_roots, layout_info};
use heapdiff_model::snapshot::SnapshotInfo;
use hprof::answers::Histogram;
use hprof::dominators::Node;
use hprof::{Snapshot, Warning};

fn lines<'a>(warnings: impl IntoIterator<Item = &'a Warning>) -> Vec<String> {
    warnings.into_iter().map(Warning::to_string).collect()
}

/// Returns the size, object count and other properties of a dump of which only the histogram was read.
pub(crate) fn info_from_histogram(histogram: &Histogram) -> SnapshotInfo {
    let source = histogram.source();
    let classes = histogram.classes().iter().zip(histogram.totals());
    let objects = classes
        .filter(|((_, class), _)| !is_agent_class(class))
        .map(|(_, total)| total.all.objects);
    SnapshotInfo {
        path: source.path().display().to_string(),
        bytes: source.file_bytes(),
        taken_ms: histogram.header().taken_ms,
        id_size: histogram.header().id_size as u32,
        jvm: None,
        layout: layout_info(histogram.layout()),
        objects: objects.sum(),
        reachable_objects: None,
        reachable_bytes: None,
        unreachable_bytes: None,
        partial: histogram.warnings().iter().any(|w| w.partial),
        warnings: lines(histogram.warnings()),
        assumed_roots: None,
        agent: None,
    }
}

/// Returns the size, object counts and other properties of an analyzed dump, for a report.
///
/// Cost: one parallel pass over the objects.
pub(crate) fn of(snapshot: &Snapshot, own: &AgentObjects) -> SnapshotInfo {
    let (samples, fault) = if own.is_empty() {
        (None, None)
    } else {
        Samples::from_snapshot(snapshot, own)
    };
    let mut info = info_without_agent(snapshot, own);
    info.agent = samples.and_then(|s| s.info());
    info.warnings.extend(fault);
    info
}

/// Like [`of`], but without the settings and counters of the agent.
pub(crate) fn info_without_agent(snapshot: &Snapshot, own: &AgentObjects) -> SnapshotInfo {
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
    SnapshotInfo {
        path: source.path().display().to_string(),
        bytes: source.file_bytes(),
        taken_ms: snapshot.header().taken_ms,
        id_size: snapshot.header().id_size as u32,
        jvm: snapshot.jvm(),
        layout: layout_info(snapshot.layout()),
        objects,
        reachable_objects: Some(reachable_objects),
        reachable_bytes: Some(reachable),
        unreachable_bytes: Some(unreachable),
        partial: snapshot.is_partial(),
        warnings: lines(snapshot.warnings().iter().chain(&snapshot.layout_doubt())),
        assumed_roots: assumed_roots(snapshot),
        agent: None,
    }
}
