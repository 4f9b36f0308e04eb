//! `heapdiff paths`: shows the paths from GC roots to objects.

use std::path::PathBuf;

use clap::Args;
use heapdiff_model::paths::{Hidden, PathLine, PathsReport};
use heapdiff_report::{Report, Viewed};
use hprof::answers::{Merge, PathNode, PathOptions, Selector};
use hprof::{ObjectIndex, Progress, Snapshot};

use super::describe::totals;
use super::dump_info;
use super::opened::{open, select};
use crate::args::{SELECTOR_HELP, input};
use crate::failure::{Failure, Result};
use crate::job::{Setup, Task};

const LINES: usize = 30;

const EXAMPLES: &str = "\
Examples:
  heapdiff paths app.hprof com.acme.Session        # why Session objects are not freed
  heapdiff paths app.hprof /Order$/ --refs strong  # paths of strong references only\n\n";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES.to_owned() + SELECTOR_HELP)]
pub(crate) struct Paths {
    /// Heap dump (HPROF), gzipped or not
    #[arg(value_parser = input())]
    pub(crate) dump: PathBuf,
    /// Objects to analyze (see SELECTOR below)
    pub(crate) selector: Selector,
}

impl Task for Paths {
    fn run(&self, setup: &Setup) -> Result<Vec<Report>> {
        let (snapshot, meter) = open(setup, &self.dump)?;
        meter.phase("reading the selected objects", 0);
        let selection = select(&snapshot, &self.dump, &self.selector)?;
        let objects = &selection.objects;
        let mut options = PathOptions::default();
        options.follow = setup.analysis.refs;
        options.except = selection.hidden();
        let paths = snapshot
            .paths(objects, &options, &meter)
            .map_err(|e| Failure::input(&self.dump, &e))?;
        let limit = setup.top.unwrap_or(LINES);
        let tree = paths.merged(&snapshot, merge(&snapshot, &paths, objects, limit), limit);
        let first: Vec<ObjectIndex> = tree.nodes.iter().map(|n| n.object).collect();
        let ids = snapshot.ids(&first);
        let report = PathsReport {
            schema: PathsReport::SCHEMA,
            snapshot: dump_info::of(&snapshot, &selection.own),
            selector: self.selector.to_string(),
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
        Ok(vec![Report::Paths(Viewed {
            data: report,
            view: setup.view(&snapshot),
            more: (),
        })])
    }
}

/// Chooses how paths are merged. If a single object is selected, its path is shown object by object, unless the path is
/// too long.
fn merge(
    snapshot: &Snapshot,
    paths: &hprof::answers::Paths,
    objects: &[ObjectIndex],
    limit: usize,
) -> Merge {
    let single = match objects {
        [one] => paths.path(snapshot, *one),
        _ => None,
    };
    match single {
        // If the user's limit is below [`LINES`], the path is still shown object by object, but only its first lines.
        Some(path) if path.steps.len() - path.begin <= limit.max(LINES) => Merge::Object,
        _ => Merge::Class,
    }
}

fn line(snapshot: &Snapshot, node: &PathNode, id: Option<String>) -> PathLine {
    PathLine {
        depth: node.depth,
        root: (node.depth == 0).then(|| node.root.map_or("static", |kind| kind.name())),
        via: node.via.map(|via| snapshot.via_name(via)),
        strength: node.strength.strength(),
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
