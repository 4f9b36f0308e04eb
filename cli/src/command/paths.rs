//! `heapdiff paths`: what leads from GC roots to objects.

use std::path::Path;

use heapdiff_model::paths::{Hidden, PathLine, PathsReport};
use heapdiff_report::Viewed;
use hprof::answers::{Merge, PathNode, PathOptions, Paths, Selector};
use hprof::records::Reference;
use hprof::{ObjectIndex, Progress, Snapshot};

use super::describe::totals;
use super::{dump_info, open, select};
use crate::failure::{Failure, Result};
use crate::job::Setup;

const LINES: usize = 30;

pub(crate) fn run(setup: &Setup, dump: &Path, selector: &Selector) -> Result<Viewed<PathsReport>> {
    let (snapshot, meter) = open(setup, dump)?;
    meter.phase("reading the selected objects", 0);
    let selection = select(&snapshot, dump, selector)?;
    let objects = &selection.objects;
    let mut options = PathOptions::default();
    options.follow = setup.analysis.refs;
    options.except = selection.hidden();
    let paths = snapshot
        .paths(objects, &options, &meter)
        .map_err(|e| Failure::input(dump, &e))?;
    let limit = setup.top.unwrap_or(LINES);
    let tree = paths.merged(&snapshot, merge(&snapshot, &paths, objects, limit), limit);
    let first: Vec<ObjectIndex> = tree.nodes.iter().map(|n| n.object).collect();
    let ids = snapshot.ids(&first);
    let report = PathsReport {
        schema: PathsReport::SCHEMA,
        snapshot: dump_info::of(&snapshot, &selection.own),
        selector: selector.to_string(),
        selected: totals(&snapshot, objects),
        without_path: paths.missing().len() as u64,
        tree: tree
            .nodes
            .iter()
            .zip(ids)
            .map(|(node, id)| {
                let id = id.unwrap_or_default().to_string();
                line(&snapshot, node, (node.objects == 1).then_some(id))
            })
            .collect(),
        hidden: hidden(tree.hidden),
    };
    Ok(Viewed {
        data: report,
        view: setup.view(&snapshot),
        more: (),
    })
}

/// The path to a single object is shown object by object, unless it is too long for that.
fn merge(snapshot: &Snapshot, paths: &Paths, objects: &[ObjectIndex], limit: usize) -> Merge {
    let single = match objects {
        [one] => paths.path(snapshot, *one),
        _ => None,
    };
    match single {
        // A smaller limit shows the first lines of the same path.
        Some(path) if path.steps.len() - path.begin <= limit.max(LINES) => Merge::Object,
        _ => Merge::Class,
    }
}

fn line(snapshot: &Snapshot, node: &PathNode, id: Option<String>) -> PathLine {
    PathLine {
        depth: node.depth,
        root: (node.depth == 0).then(|| node.root.map_or("static", |kind| kind.name())),
        via: node.via.map(|via| snapshot.via_name(via)),
        strength: match node.strength {
            Reference::No => "strong",
            Reference::Soft => "soft",
            Reference::Final => "final",
            Reference::Weak => "weak",
            Reference::Phantom => "phantom",
        },
        class: snapshot.name(node.object),
        id,
        objects: node.objects,
        folded: node.folded,
        selected: node.targets,
        selected_here: node.own_targets,
        selected_bytes: node.target_bytes,
        hidden: hidden(node.hidden),
    }
}

fn hidden((lines, selected): (u64, u64)) -> Hidden {
    Hidden { lines, selected }
}
