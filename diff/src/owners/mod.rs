//! Memory by owner: which package, jar, class loader, thread pool, bean or tenant holds which part of the heap.
//!
//! The rules by which owners get memory are in [`hprof::answers::Owned`]. This module decides which objects are
//! assigned to an owner directly.

mod find;
mod source;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use heapdiff_model::owners::{OwnedClass, OwnerFigures, OwnerRow, SharedRow};
use heapdiff_units::counted;
use hprof::answers::{Anchors, Belongs, Owned, Owner};
use hprof::{ClassIndex, ObjectIndex, Progress, Snapshot};

pub use self::find::OwnerError;
pub use self::source::loaders_of_namesakes;
pub(crate) use self::source::{code_source, last_part};
use crate::names::stable;
use crate::samples::AgentObjects;

/// Name of the owner of everything that only GC roots and JDK classes hold.
pub const JVM: &str = "JVM";
/// Number of classes listed for each owner.
const CLASSES: usize = 3;

/// The kind of owners.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnerKind {
    /// Class loaders, if at least two loaders other than the JDK's define classes. Otherwise packages.
    Auto,
    /// Packages of application classes, cut to this number of parts. `None` for as many parts as give at most
    /// 40 owners.
    Package(Option<usize>),
    /// Jars, folders and modules from which classes were loaded.
    Jar,
    /// Class loaders: web applications, plugins.
    Loader,
    /// Groups of threads with equal names except for a number.
    Thread,
    /// Beans of Spring and CDI.
    Bean,
    /// Values of an instance field. The strings are the names of the class and of the field.
    Field(String, String),
}

/// The memory of each owner in one dump.
#[derive(Clone, Debug)]
pub struct OwnerSummary {
    /// The kind of owners: `package`, `jar`, `loader`, `thread`, `bean` or `field`.
    pub by: &'static str,
    /// The kind of owners with its parameters, so that other dumps can be summarized in the same way.
    pub kind: OwnerKind,
    /// Objects, bytes and largest classes of each owner.
    owners: BTreeMap<String, Part>,
    /// Objects, bytes and largest classes of memory that several owners share. The key has the names of two owners. The
    /// key is empty for memory that three owners or more share.
    shared: BTreeMap<Vec<String>, Part>,
}

#[derive(Clone, Debug, Default)]
struct Part {
    objects: u64,
    bytes: u64,
    classes: Vec<OwnedClass>,
}

impl OwnerSummary {
    /// Computes the memory of each owner, without the agent's objects. With `is_compared`, the names of owners contain
    /// no addresses, so the summaries of several dumps can be compared.
    ///
    /// Cost: that of [`Snapshot::owned`], and one look-up of the class and size of every object.
    ///
    /// # Errors
    /// Returns an error if the dump has no owners of this kind, or if memory runs out.
    pub fn new(
        snapshot: &Snapshot,
        agent_objects: &AgentObjects,
        kind: &OwnerKind,
        is_compared: bool,
        progress: &dyn Progress,
    ) -> Result<Self, OwnerError> {
        let found = find::owners(snapshot, kind, is_compared)?;
        let owned = snapshot.owned(&found.anchors, progress)?;
        let mut summary = Self {
            by: found.by,
            kind: found.kind,
            owners: BTreeMap::new(),
            shared: BTreeMap::new(),
        };
        let name = |owner: Owner| match owner {
            Owner::Jvm => JVM.to_owned(),
            Owner::Number(number) => found.names[number as usize].clone(),
        };
        for (belongs, part) in parts(snapshot, agent_objects, &owned) {
            match belongs {
                Belongs::One(owner) => {
                    summary.owners.insert(name(owner), part);
                }
                Belongs::Two(a, b) => {
                    summary.shared.insert(vec![name(a), name(b)], part);
                }
                Belongs::Several => {
                    summary.shared.insert(Vec::new(), part);
                }
            }
        }
        Ok(summary)
    }

    /// Returns the figures of several dumps.
    #[must_use]
    pub fn compared(dumps: &[Self]) -> OwnerFigures {
        let by = dumps.last().map_or("", |last| last.by);
        let dumps: &[Self] = &with_short_jars(dumps);
        let mut owners: Vec<OwnerRow> = merged(dumps, |dump| &dump.owners)
            .into_iter()
            .map(|(owner, figures)| OwnerRow {
                kind: if owner == JVM { "jvm" } else { by }.into(),
                owner,
                bytes: figures.bytes,
                objects: figures.objects,
                classes: figures.classes,
            })
            .collect();
        let mut shared: Vec<SharedRow> = merged(dumps, |dump| &dump.shared)
            .into_iter()
            .map(|(owners, figures)| SharedRow {
                owners,
                bytes: figures.bytes,
                objects: figures.objects,
                classes: figures.classes,
            })
            .collect();
        let mut shared_bytes = vec![0; dumps.len()];
        for row in &shared {
            add(&mut shared_bytes, &row.bytes);
        }
        owners.sort_by_key(|row| order(&row.bytes));
        shared.sort_by_key(|row| order(&row.bytes));
        OwnerFigures {
            by: by.into(),
            owners,
            shared_bytes,
            shared,
        }
    }

    /// Keeps the first `most` owners. The other owners are merged into one row of the table.
    pub fn limit(owners: &mut Vec<OwnerRow>, most: usize) {
        let rest = owners.split_off(most.min(owners.len()));
        if rest.is_empty() {
            return;
        }
        let dumps = rest[0].bytes.len();
        let mut row = OwnerRow {
            owner: counted(rest.len() as u64, "other owner"),
            kind: "other".into(),
            bytes: vec![0; dumps],
            objects: vec![0; dumps],
            classes: Vec::new(),
        };
        for other in rest {
            add(&mut row.bytes, &other.bytes);
            add(&mut row.objects, &other.objects);
        }
        owners.push(row);
    }
}

/// Replaces the paths of jars, folders and modules by their last parts. If two paths in one dump have the same last
/// part, all paths with this last part stay complete, in all dumps.
fn with_short_jars(dumps: &[OwnerSummary]) -> Vec<OwnerSummary> {
    let mut dumps = dumps.to_vec();
    let mut ambiguous: BTreeSet<String> = BTreeSet::new();
    for dump in dumps.iter().filter(|dump| dump.kind == OwnerKind::Jar) {
        let mut last_parts = BTreeSet::new();
        let names = dump.owners.keys().chain(dump.shared.keys().flatten());
        for path in names.collect::<BTreeSet<_>>() {
            if !last_parts.insert(last_part(path)) {
                ambiguous.insert(last_part(path).to_owned());
            }
        }
    }
    let short = |path: String| {
        let last = last_part(&path);
        if ambiguous.contains(last) {
            path
        } else {
            last.to_owned()
        }
    };
    for dump in dumps.iter_mut().filter(|dump| dump.kind == OwnerKind::Jar) {
        let owners = std::mem::take(&mut dump.owners).into_iter();
        dump.owners = owners.map(|(path, part)| (short(path), part)).collect();
        let shared = std::mem::take(&mut dump.shared).into_iter();
        let shared = shared.map(|(paths, part)| (paths.into_iter().map(short).collect(), part));
        dump.shared = shared.collect();
    }
    dumps
}

/// Returns the sort key of a row. Rows are sorted by growth if there are several dumps, and then by size, descending.
fn order(bytes: &[u64]) -> (Reverse<i64>, Reverse<u64>) {
    let (first, last) = match bytes {
        [] => (0, 0),
        [one] => (0, *one),
        [first, .., last] => (*first, *last),
    };
    let growth = last.wrapping_sub(first) as i64;
    (Reverse(growth), Reverse(last))
}

fn add(sums: &mut [u64], figures: &[u64]) {
    for (sum, figure) in sums.iter_mut().zip(figures) {
        *sum = sum.saturating_add(*figure);
    }
}

/// The figures of one owner, one for each dump.
struct Figures {
    bytes: Vec<u64>,
    objects: Vec<u64>,
    /// Largest classes of the owner in the last dump.
    classes: Vec<OwnedClass>,
}

fn merged<K: Ord + Clone>(
    dumps: &[OwnerSummary],
    parts: impl Fn(&OwnerSummary) -> &BTreeMap<K, Part>,
) -> BTreeMap<K, Figures> {
    let mut merged: BTreeMap<K, Figures> = BTreeMap::new();
    for (at, dump) in dumps.iter().enumerate() {
        for (key, part) in parts(dump) {
            let figures = merged.entry(key.clone()).or_insert_with(|| Figures {
                bytes: vec![0; dumps.len()],
                objects: vec![0; dumps.len()],
                classes: Vec::new(),
            });
            figures.bytes[at] = part.bytes;
            figures.objects[at] = part.objects;
            if at + 1 == dumps.len() {
                figures.classes.clone_from(&part.classes);
            }
        }
    }
    merged
}

/// Returns the memory of each owner and of each group of owners, with its largest classes.
fn parts(
    snapshot: &Snapshot,
    agent_objects: &AgentObjects,
    owned: &Owned,
) -> HashMap<Belongs, Part> {
    let mut totals: HashMap<(Belongs, Option<ClassIndex>), (u64, u64)> = HashMap::new();
    for object in (0..snapshot.object_count() as u32).map(ObjectIndex) {
        if let Some(belongs) = owned.belongs(object)
            && !agent_objects.contains(object)
        {
            let (class, bytes) = snapshot.class_and_size(object);
            let total = totals.entry((belongs, class)).or_default();
            *total = (total.0 + 1, total.1.saturating_add(bytes));
        }
    }
    let mut parts: HashMap<Belongs, Part> = HashMap::new();
    for ((belongs, class), (objects, bytes)) in totals {
        let part = parts.entry(belongs).or_default();
        part.objects += objects;
        part.bytes = part.bytes.saturating_add(bytes);
        part.classes.extend(class.map(|class| OwnedClass {
            class: stable(&snapshot.classes()[class].name).into_owned(),
            objects,
            bytes,
        }));
    }
    for part in parts.values_mut() {
        let order = |a: &OwnedClass, b: &OwnedClass| {
            b.bytes.cmp(&a.bytes).then_with(|| a.class.cmp(&b.class))
        };
        part.classes.sort_by(order);
        part.classes.truncate(CLASSES);
    }
    parts
}

/// The owners of a dump.
struct Found {
    by: &'static str,
    kind: OwnerKind,
    names: Vec<String>,
    anchors: Anchors,
}

#[cfg(test)]
mod tests;
