//! `heapdiff paths`: shows the paths from GC roots to objects.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::Args;
use heapdiff_diff::loaders_of_namesakes;
use heapdiff_model::paths::{Alternatives, CutLine, Hidden, PathLine, PathsReport};
use heapdiff_report::{Report, Viewed};
use hprof::answers::{DisjointPaths, Merge, PathNode, PathOptions, PathTree, Selector, Via};
use hprof::records::Class;
use hprof::{ClassIndex, ObjectIndex, Progress, Snapshot};

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
  heapdiff paths app.hprof /Order$/ --refs strong  # paths of strong references only
  heapdiff paths app.hprof com.acme.Session --exclude com.acme.Registry.sessions
  heapdiff paths app.hprof 0xfacab0b8 --alternatives 3\n\n";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES.to_owned() + SELECTOR_HELP)]
pub(crate) struct Paths {
    /// Heap dump (HPROF), gzipped or not
    #[arg(value_parser = input())]
    pub(crate) dump: PathBuf,
    /// Objects to analyze (see SELECTOR below)
    pub(crate) selector: Selector,
    /// Find paths without this field (CLASS.FIELD) or without objects of this class; may be repeated
    #[arg(long, value_name = "FIELD|CLASS")]
    pub(crate) exclude: Vec<String>,
    /// Show up to N paths without a common reference, and the references whose removal frees the objects
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=50))]
    pub(crate) alternatives: Option<u8>,
}

impl Task for Paths {
    fn run(&self, setup: &Setup) -> Result<Vec<Report>> {
        let (snapshot, meter) = open(setup, &self.dump)?;
        meter.phase("reading the selected objects", 0);
        let selection = select(&snapshot, &self.dump, &self.selector)?;
        let objects = &selection.objects;
        let mut options = PathOptions::default();
        options.follow = setup.analysis.refs;
        let excluded = Excluded::find(&snapshot, &self.dump, &self.exclude)?;
        let hidden_objects = [selection.hidden(), &excluded.objects].concat();
        options.except = &hidden_objects;
        options.without = &excluded.fields;
        let paths = snapshot
            .paths(objects, &options, &meter)
            .map_err(|e| Failure::input(&self.dump, &e))?;
        let limit = setup.top.unwrap_or(LINES);
        let tree = paths.merged(&snapshot, merge(&snapshot, &paths, objects, limit), limit);
        let alternatives = self.alternatives.map(|wanted| {
            // Search for one path more than the user requested, to detect whether there are more paths.
            snapshot
                .disjoint_paths(objects, &options, usize::from(wanted) + 1, &meter)
                .map(|found| alternatives(&snapshot, &found, usize::from(wanted), limit))
                .map_err(|e| Failure::input(&self.dump, &e))
        });
        let report = PathsReport {
            schema: PathsReport::SCHEMA,
            snapshot: dump_info::of(&snapshot, &selection.own),
            selector: self.selector.to_string(),
            excluded: self.exclude.clone(),
            selected: totals(&snapshot, objects),
            without_path: paths.missing().len() as u64,
            tree: lines(&snapshot, &tree),
            hidden: hidden(tree.hidden),
            alternatives: alternatives.transpose()?,
        };
        Ok(vec![Report::Paths(Viewed {
            data: report,
            view: setup.view(&snapshot),
            more: (),
        })])
    }
}

/// The objects and fields that `--exclude` names.
#[derive(Default)]
struct Excluded {
    objects: Vec<ObjectIndex>,
    fields: Vec<Via>,
}

impl Excluded {
    fn find(snapshot: &Snapshot, dump: &Path, names: &[String]) -> Result<Self> {
        let mut all = Self::default();
        for name in names {
            let classes = snapshot.classes().by_name(name);
            let fields = fields_named(snapshot, name);
            if classes.is_empty() && fields.is_empty() {
                let message = format!("{}: no class or field is named {name}", dump.display());
                return Err(Failure::usage(message).with_hint(
                    "--exclude needs a name such as com.acme.Cache or com.acme.Cache.entries",
                ));
            }
            let is_own = |c: ClassIndex| {
                classes
                    .iter()
                    .any(|of| snapshot.classes().is_subclass(c, *of))
            };
            let all_classes = snapshot.classes().iter().map(|(index, _)| index);
            let own: Vec<ClassIndex> = all_classes.filter(|c| is_own(*c)).collect();
            all.objects.extend(snapshot.instances(&own));
            all.fields.extend(fields);
        }
        Ok(all)
    }
}

/// Returns the instance and static fields with a name such as `com.acme.Cache.entries`. The class or one of its
/// superclasses declares the field.
fn fields_named(snapshot: &Snapshot, name: &str) -> Vec<Via> {
    let Some((class, field)) = name.rsplit_once('.') else {
        return Vec::new();
    };
    let classes = snapshot.classes();
    let mut found = Vec::new();
    for class in classes.by_name(class) {
        for declaring in classes.chain(*class) {
            let Class {
                fields, statics, ..
            } = &classes[declaring];
            let own = fields.iter().position(|f| &*f.name == field);
            found.extend(own.map(|at| Via::Field(declaring, at as u16)));
            let own = statics.iter().position(|f| &*f.name == field);
            found.extend(own.map(|at| Via::Static(declaring, at as u16)));
        }
    }
    found
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

fn lines(snapshot: &Snapshot, tree: &PathTree) -> Vec<PathLine> {
    let first: Vec<ObjectIndex> = tree.nodes.iter().map(|n| n.object).collect();
    let ids = snapshot.ids(&first);
    let class = |object| snapshot.represents(object).or(snapshot.class_of(object));
    let classes: BTreeSet<ClassIndex> = first.iter().filter_map(|&o| class(o)).collect();
    let loaders = loaders_of_namesakes(snapshot, &classes);
    let lines = tree.nodes.iter().zip(ids).map(|(node, id)| {
        let id = id.unwrap_or_default().to_string();
        PathLine {
            loader: class(node.object).and_then(|class| loaders.get(&class).cloned()),
            ..line(snapshot, node, (node.objects == 1).then_some(id))
        }
    });
    lines.collect()
}

fn alternatives(
    snapshot: &Snapshot,
    found: &DisjointPaths,
    wanted: usize,
    limit: usize,
) -> Alternatives {
    let shown = found.paths.len().min(wanted);
    let tree = found.tree(snapshot, wanted, limit.max(LINES));
    let ids = |object: ObjectIndex| {
        let id = snapshot.ids(&[object]).pop().flatten();
        id.unwrap_or_default().to_string()
    };
    let cut = found.cut.as_ref().map(|cut| {
        let lines = cut.iter().map(|reference| CutLine {
            class: snapshot.name(reference.source),
            id: ids(reference.source),
            via: snapshot.via_name(reference.via),
            to_class: snapshot.name(reference.target),
            to_id: ids(reference.target),
        });
        lines.collect()
    });
    Alternatives {
        count: shown as u64,
        more: found.paths.len() > wanted,
        tree: lines(snapshot, &tree),
        hidden: hidden(tree.hidden),
        cut,
        held_by_roots: found.held_by_roots,
    }
}

fn line(snapshot: &Snapshot, node: &PathNode, id: Option<String>) -> PathLine {
    PathLine {
        depth: node.depth,
        root: (node.depth == 0).then(|| node.root.map_or("static", |kind| kind.name())),
        via: node.via.map(|via| snapshot.via_name(via)),
        strength: node.strength.strength(),
        class: snapshot.name(node.object),
        loader: None,
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
