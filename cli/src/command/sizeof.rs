//! `heapdiff sizeof`: measures the deep size of objects, one by one and together.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use clap::{ArgGroup, Args};
use heapdiff_diff::pattern;
use heapdiff_model::sizeof::{
    SizeofClass, SizeofFinals, SizeofFlyweights, SizeofLine, SizeofObject, SizeofOptions,
    SizeofReport, SizeofSet,
};
use heapdiff_report::{Report, SizeofView, Viewed};
use hprof::answers::{
    Deep, DeepLine, DeepOptions, DeepSize, FinalFields, Flyweights, Selector, SkippedModifiers,
};
use hprof::sizes::Total;
use hprof::{ObjectIndex, Progress, Refs, Snapshot};
use regex::Regex;

use super::opened::{Selection, open, select};
use super::{dump_info, thread_locals};
use crate::args::{SELECTOR_HELP, input};
use crate::classpath::{ClassPath, Classpath, class_path};
use crate::failure::{Failure, Result};
use crate::job::{Setup, Task};

/// Maximum number of listed objects.
const OBJECTS: usize = 10;
/// Maximum number of classes in text.
const CLASSES: usize = 20;
/// Maximum number of listed classes whose final fields are unknown.
const UNKNOWN: usize = 5;
/// Maximum number of lines of the tree.
const LINES: usize = 30;
/// Maximum number of objects that are visited to measure the selected objects one by one. If the dump has more objects
/// than this, the limit is the number of objects in the dump. Visiting five million objects takes a few seconds. The
/// selected objects that retain the most are measured first.
const LOOKS: u64 = 5_000_000;

const EXAMPLES: &str = "\
Examples:
  # size of each Cache object, and of all together
  heapdiff sizeof app.hprof com.acme.Cache
  # where the bytes are, field by field
  heapdiff sizeof app.hprof com.acme.Cache.map --tree\n\n";

#[derive(Debug, Default, Args)]
#[command(group(ArgGroup::new("skipped").multiple(true)))]
#[command(after_help = EXAMPLES.to_owned() + SELECTOR_HELP)]
pub(crate) struct Sizeof {
    /// Heap dump (HPROF), gzipped or not
    #[arg(value_parser = input())]
    pub(crate) dump: PathBuf,
    /// Objects to measure (see SELECTOR below); several selectors form one set
    #[arg(required = true)]
    pub(crate) selector: Vec<Selector>,
    /// Also show the deep size by class (always in JSON)
    #[arg(long)]
    pub(crate) by_class: bool,
    /// Show a tree of the bytes by field; each object is counted where a breadth-first search first
    /// reaches it
    #[arg(long)]
    pub(super) tree: bool,
    /// Maximum depth of --tree, in references
    #[arg(long, value_name = "N", default_value_t = 4, requires = "tree")]
    pub(super) depth: u32,
    /// Leave out shared values: enum constants, string constants, Boolean.TRUE and FALSE, and boxes
    /// cached by valueOf
    #[arg(long, help_heading = "Deep size")]
    pub(super) skip_flyweights: bool,
    /// Do not follow the static fields of selected class objects (static fields of other classes
    /// are never followed)
    #[arg(long, help_heading = "Deep size")]
    pub(super) skip_static: bool,
    /// Do not follow final fields; without --classpath, only the final fields of records and
    /// lambdas are known
    #[arg(long, group = "skipped", help_heading = "Deep size")]
    pub(super) skip_final: bool,
    /// Do not follow transient fields, which serialization leaves out; needs --classpath
    #[arg(
        long,
        group = "skipped",
        requires = "classpath",
        help_heading = "Deep size"
    )]
    pub(super) skip_transient: bool,
    /// Class files that show final and transient fields: folders, jars, .jmod files, a JDK home or
    /// lib/modules; separated as in a Java class path
    #[arg(
        long,
        value_name = "PATH",
        value_parser = class_path,
        requires = "skipped",
        help_heading = "Deep size"
    )]
    pub(super) classpath: Vec<ClassPath>,
    /// Leave out objects of matching classes, and objects that are reachable only through them
    #[arg(long, value_name = "RE", value_parser = pattern, help_heading = "Deep size")]
    pub(super) exclude: Vec<Regex>,
    /// Count objects of matching classes, but do not follow their references
    #[arg(long, value_name = "RE", value_parser = pattern, help_heading = "Deep size")]
    pub(super) stop_at: Vec<Regex>,
}

impl Task for Sizeof {
    fn run(&self, setup: &Setup) -> Result<Vec<Report>> {
        let dump = &*self.dump;
        let (snapshot, meter) = open(setup, dump)?;
        meter.phase("reading the selected objects", 0);
        let selection = self.select_all(&snapshot)?;
        let objects = &selection.objects;
        let skipped = SkippedModifiers {
            finals: self.skip_final,
            transients: self.skip_transient,
        };
        let skips_fields = skipped != SkippedModifiers::default();
        let skip_final = if skips_fields {
            meter.phase("reading class files", 0);
            Some(self.skipped_fields(&snapshot, skipped)?)
        } else {
            None
        };
        let mut options = DeepOptions::default();
        options.skip_flyweights = self.skip_flyweights;
        options.skip_static = self.skip_static;
        options.skip_final = skip_final;
        options.exclude = self.exclude.clone();
        options.stop_at = self.stop_at.clone();
        options.except = selection.hidden().to_vec();
        let failed = |e| Failure::input(dump, &e);
        let deep = snapshot.deep_from(objects, &options, &meter);
        let mut deep = deep.map_err(failed)?;
        meter.phase("measuring the selected objects", 0);
        let size = deep.of_set(objects);
        let measured = match objects[..] {
            // If the set has a single object, the size of the set is the size of this object. So the object need not be
            // measured again.
            [object] => vec![(object, size.total)],
            _ => measure(&snapshot, &mut deep, objects),
        };
        let tree = self.tree.then(|| {
            let lines = deep.tree(objects, self.depth);
            tree(&snapshot, &lines, setup.top.unwrap_or(LINES).max(1))
        });
        let flyweights = deep.flyweights().map(count);
        let finals =
            skips_fields.then(|| classes_with_unknown_finals(&snapshot, &deep, objects, &size));
        drop(deep);
        let retained = snapshot.retained_by_all(objects, &meter).map_err(failed)?;
        let sum_deep_bytes =
            (measured.len() == objects.len()).then(|| measured.iter().map(|m| m.1.bytes).sum());
        let selectors = self.selector.iter().map(ToString::to_string);
        let selectors: Vec<String> = selectors.collect();
        // The report shows a command that lists the values of a thread local. That command accepts only one selector,
        // so it gets the first.
        let first = selectors.first().map_or("", |first| first);
        let thread_local =
            thread_locals::values(&snapshot, dump, first, objects, "sizeof", &meter)?;
        let retained_of = |&o: &ObjectIndex| snapshot.retained_bytes(o);
        let set = SizeofSet {
            objects: objects.len() as u64,
            shallow_bytes: objects.iter().map(|&o| snapshot.shallow_bytes(o)).sum(),
            deep_bytes: size.total.bytes,
            deep_objects: size.total.objects,
            retained_bytes: retained.map(|r| r.bytes),
            retained_objects: retained.map(|r| r.objects),
            measured: measured.len() as u64,
            sum_deep_bytes,
            sum_retained_bytes: objects.iter().filter_map(retained_of).sum(),
            class_table_bytes: class_table_bytes(&snapshot, &selection),
        };
        let (by_class, more_classes) = by_class(&snapshot, &size, setup.rows(CLASSES));
        let more = SizeofView {
            shows_classes: self.by_class,
            more_classes,
        };
        let report = SizeofReport {
            schema: SizeofReport::SCHEMA,
            snapshot: dump_info::of(&snapshot, &selection.own),
            selectors,
            options: SizeofOptions {
                skip_flyweights: options.skip_flyweights,
                skip_static: options.skip_static,
                skip_final: self.skip_final,
                skip_transient: self.skip_transient,
                exclude: patterns(&options.exclude),
                stop_at: patterns(&options.stop_at),
                refs: match setup.analysis.refs {
                    Refs::Strong => "strong",
                    Refs::Soft => "soft",
                    Refs::All => "all",
                },
            },
            objects: listed(&snapshot, measured, setup.top.unwrap_or(OBJECTS)),
            set,
            thread_local,
            by_class,
            flyweights,
            finals,
            tree,
        };
        Ok(vec![Report::Sizeof(Box::new(Viewed {
            data: report,
            view: setup.view(&snapshot),
            more,
        }))])
    }
}

impl Sizeof {
    /// Returns the objects that at least one of the selectors names.
    fn select_all(&self, snapshot: &Snapshot) -> Result<Selection> {
        let mut all: Option<Selection> = None;
        for selector in &self.selector {
            let more = select(snapshot, &self.dump, selector)?;
            match &mut all {
                None => all = Some(more),
                Some(all) => {
                    all.objects.extend(more.objects);
                    all.shows_own |= more.shows_own;
                }
            }
        }
        let mut all = all.ok_or_else(|| Failure::usage("no selector was given".to_owned()))?;
        all.objects.sort_unstable();
        all.objects.dedup();
        Ok(all)
    }

    /// Returns which fields of the dump's classes have at least one of the modifiers. The class files contain this
    /// information.
    fn skipped_fields(
        &self,
        snapshot: &Snapshot,
        skipped: SkippedModifiers,
    ) -> Result<FinalFields> {
        let mut classpath = Classpath::open(&self.classpath)?;
        let mut failed = None;
        let declared = |class: &str| match classpath.fields(class) {
            Ok(fields) => fields,
            Err(failure) => {
                failed.get_or_insert(failure);
                None
            }
        };
        let found = FinalFields::with(snapshot.classes(), skipped, declared);
        match failed {
            Some(failure) => Err(failure),
            None => Ok(found),
        }
    }
}

/// If the selected objects are all instances of one class, returns the retained bytes that the class tables of reports
/// show for this class. This is the sum over the instances that no other instance retains.
fn class_table_bytes(snapshot: &Snapshot, selection: &Selection) -> Option<u64> {
    let objects = &selection.objects;
    // Class objects have no line in the tables.
    let class = snapshot.class_of(*objects.first()?)?;
    if !objects.iter().all(|&o| snapshot.class_of(o) == Some(class)) {
        return None;
    }
    let mut totals = snapshot.histogram();
    selection.own.subtract_from(snapshot, &mut totals);
    let total = totals.get(class.index())?;
    (total.all.objects == objects.len() as u64).then_some(total.retained_bytes)
}

/// Returns the classes whose final fields are unknown.
fn classes_with_unknown_finals(
    snapshot: &Snapshot,
    deep: &Deep<'_>,
    objects: &[ObjectIndex],
    size: &DeepSize,
) -> SizeofFinals {
    let unknown = deep.unknown_finals(objects, size);
    let names = unknown
        .iter()
        .map(|&c| snapshot.classes()[c].name.to_string());
    let names: BTreeSet<String> = names.collect();
    SizeofFinals {
        unknown_classes: names.len() as u64,
        unknown: names.into_iter().take(UNKNOWN).collect(),
    }
}

fn patterns(list: &[Regex]) -> Vec<String> {
    list.iter().map(ToString::to_string).collect()
}

/// Measures the deep size of each object. The objects that retain the most are measured first. Stops when the next
/// object would exceed the limit (see [`LOOKS`]).
fn measure(
    snapshot: &Snapshot,
    deep: &mut Deep<'_>,
    objects: &[ObjectIndex],
) -> Vec<(ObjectIndex, Total)> {
    let mut order: Vec<(Reverse<u64>, ObjectIndex)> = objects
        .iter()
        .map(|&o| (Reverse(snapshot.retained_bytes(o).unwrap_or(0)), o))
        .collect();
    order.sort_unstable();
    let mut left = LOOKS.max(snapshot.object_count());
    let mut measured = Vec::new();
    for (_, object) in order {
        let Some(total) = deep.of_one(object, left) else {
            break;
        };
        left -= total.objects;
        measured.push((object, total));
    }
    measured
}

/// Returns the objects with the largest deep size. Objects of equal size are in the order of the dump.
fn listed(
    snapshot: &Snapshot,
    mut measured: Vec<(ObjectIndex, Total)>,
    limit: usize,
) -> Vec<SizeofObject> {
    measured.sort_unstable_by_key(|&(object, total)| (Reverse(total.bytes), object));
    measured.truncate(limit);
    let objects: Vec<ObjectIndex> = measured.iter().map(|m| m.0).collect();
    let ids = snapshot.ids(&objects);
    let rows = measured.into_iter().zip(ids);
    rows.map(|((object, total), id)| SizeofObject {
        id: id.unwrap_or_default().to_string(),
        class: snapshot.name(object),
        shallow_bytes: snapshot.shallow_bytes(object),
        deep_bytes: total.bytes,
        deep_objects: total.objects,
        retained_bytes: snapshot.retained_bytes(object),
        retained_objects: snapshot.retained_objects(object),
    })
    .collect()
}

/// Returns the totals of the `limit` largest classes, by class name over all class loaders. Also returns the number,
/// objects and bytes of the other classes.
fn by_class(
    snapshot: &Snapshot,
    size: &DeepSize,
    limit: usize,
) -> (Vec<SizeofClass>, (u64, u64, u64)) {
    let mut names: BTreeMap<&str, Total> = BTreeMap::new();
    let classes = snapshot.classes().iter().zip(&size.by_class);
    for ((_, class), &total) in classes.filter(|(_, total)| total.objects > 0) {
        *names.entry(&*class.name).or_default() += total;
    }
    let mut rows: Vec<(&str, Total)> = names.into_iter().collect();
    // The sort is stable: classes of equal size stay in the order of their names.
    rows.sort_by_key(|(_, total)| Reverse((total.bytes, total.objects)));
    let rest = rows.iter().skip(limit);
    let more = rest.fold((0, 0, 0), |(classes, objects, bytes), (_, total)| {
        (classes + 1, objects + total.objects, bytes + total.bytes)
    });
    let rows = rows.into_iter().take(limit);
    let rows = rows.map(|(class, total)| SizeofClass {
        class: class.to_owned(),
        objects: total.objects,
        shallow_bytes: total.bytes,
    });
    (rows.collect(), more)
}

fn count(flyweights: &Flyweights) -> SizeofFlyweights {
    SizeofFlyweights {
        enum_constants: flyweights.enums.len() as u64,
        cached_boxes: flyweights.boxes.len() as u64,
        interned_strings: flyweights.interned.len() as u64,
    }
}

/// Returns the `limit` lines with the most bytes, in tree order: each line is followed by its child lines, the largest
/// first.
fn tree(snapshot: &Snapshot, lines: &[DeepLine], limit: usize) -> Vec<SizeofLine> {
    // A line has at most as many bytes as its parent, and the parent precedes it. So the parent of a chosen line is
    // always chosen, too, and the chosen lines form a tree.
    let mut order: Vec<usize> = (0..lines.len()).collect();
    order.sort_by_key(|&at| (Reverse(lines[at].all.bytes), at));
    let taken: BTreeSet<usize> = order.iter().take(limit).copied().collect();
    let mut below: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for &at in order.iter().rev() {
        if let Some(above) = lines[at].above {
            below.entry(above as usize).or_default().push(at);
        }
    }
    let mut shown = Vec::new();
    let mut todo = vec![0];
    while let Some(at) = todo.pop() {
        let line = &lines[at];
        let children = below.get(&at).map_or(&[][..], Vec::as_slice);
        let (listed, hidden): (Vec<usize>, Vec<usize>) =
            children.iter().partition(|child| taken.contains(child));
        shown.push(SizeofLine {
            depth: line.depth,
            via: line.via.map(|via| snapshot.via_name(via)),
            class: line.class.map(|c| snapshot.classes()[c].name.to_string()),
            objects: line.own.objects,
            shallow_bytes: line.own.bytes,
            deep_objects: line.all.objects,
            deep_bytes: line.all.bytes,
            hidden_lines: hidden.len() as u64,
            hidden_bytes: hidden.iter().map(|&at| lines[at].all.bytes).sum(),
        });
        // `todo` is a stack: the line that was pushed last is processed first. So the largest line is pushed last.
        todo.extend(listed);
    }
    shown
}
