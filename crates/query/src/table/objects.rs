//! `objects`: every object of the dump.

use std::ops::Range;
use std::sync::Arc;

use hprof::{ObjectId, ObjectIndex};
use rayon::prelude::*;

use super::{Ask, Cursor, LISTED, place};
use crate::bounds::Stop;
use crate::error::Result;
use crate::filter::{ClassSet, Op, Span};
use crate::heap::Heap;
use crate::schema::OBJECTS;
use crate::value::Value;

const ID: usize = place(OBJECTS, "id");
pub(super) const CLASS: usize = place(OBJECTS, "class");
const CLASS_ID: usize = place(OBJECTS, "class_id");
const SHALLOW: usize = place(OBJECTS, "shallow_bytes");
const RETAINED: usize = place(OBJECTS, "retained_bytes");
const RETAINED_OBJECTS: usize = place(OBJECTS, "retained_objects");
const LENGTH: usize = place(OBJECTS, "length");
const REACHABLE: usize = place(OBJECTS, "reachable");
const ROOT: usize = place(OBJECTS, "root");
const DOMINATOR: usize = place(OBJECTS, "dominator_id");

/// Number of objects in the first batch ([`FIRST`]), and maximum number in later batches ([`MOST`]). The first batch is
/// small, because a query with a limit may need only a few rows.
const FIRST: usize = 1 << 12;
const MOST: usize = 1 << 18;
/// Maximum number of objects whose ids are looked up one by one. For more objects, the ids of all objects in the dump
/// are read.
const FEW: usize = 1 << 9;

pub(super) fn accepts(column: usize, op: Op) -> bool {
    match column {
        CLASS => op.is_for_names(),
        SHALLOW | RETAINED => op.is_for_sizes(),
        ID | CLASS_ID | DOMINATOR => op.is_for_ids(),
        _ => false,
    }
}

#[allow(clippy::cast_precision_loss, reason = "an estimate")]
pub(super) fn cost(heap: &Heap, ask: &Ask) -> (f64, u64) {
    let all = heap.snapshot().object_count();
    match (ask.id_lookup_op(ID), ask.id_lookup_op(DOMINATOR)) {
        (Some(Op::In), _) => return (2.0 * LISTED as f64, LISTED),
        (Some(_), _) => return (2.0, 1),
        (None, Some(Op::In)) => return (100.0 * LISTED as f64, 100 * LISTED),
        (None, Some(_)) => return (100.0, 100),
        (None, None) => {}
    }
    let mut rows = all;
    for c in &ask.constraints {
        let left = match (c.column, &c.value) {
            (CLASS, value) => {
                ClassSet::from_names(heap, c.op, value).map_or(all / 50, |s| s.instances(heap))
            }
            (CLASS_ID, value) => {
                ClassSet::from_id(heap, value).map_or(all / 50, |s| s.instances(heap))
            }
            (_, _) if c.op.is_for_ids() => all / 50,
            (_, _) => all / 4,
        };
        rows = rows.min(left);
    }
    // Assume that comparing the class or size of an object is 20 times cheaper than creating its row.
    (all as f64 / 20.0 + rows as f64, rows)
}

/// The conditions on classes and sizes. The query needs only objects that meet these conditions.
#[derive(Clone, Debug)]
pub(super) struct WantedObjects {
    pub(super) classes: Option<ClassSet>,
    pub(super) shallow: Span,
    pub(super) retained: Span,
}

impl WantedObjects {
    fn new(heap: &Heap, ask: &Ask) -> Self {
        let mut wanted = Self {
            classes: None,
            shallow: Span::ALL,
            retained: Span::ALL,
        };
        for c in &ask.constraints {
            match c.column {
                CLASS => {
                    let named = ClassSet::from_names(heap, c.op, &c.value);
                    ClassSet::intersect(&mut wanted.classes, named);
                }
                CLASS_ID => {
                    ClassSet::intersect(&mut wanted.classes, ClassSet::from_id(heap, &c.value));
                }
                SHALLOW => wanted.shallow.narrow(c.op, &c.value),
                RETAINED => wanted.retained.narrow(c.op, &c.value),
                _ => {}
            }
        }
        wanted
    }

    pub(super) fn has(&self, heap: &Heap, object: ObjectIndex) -> bool {
        let snapshot = heap.snapshot();
        let classes = self.classes.as_ref();
        classes.is_none_or(|c| c.has_object(heap, object))
            && (self.shallow == Span::ALL || self.shallow.has(snapshot.shallow_bytes(object)))
            && (self.retained == Span::ALL
                || snapshot
                    .retained_bytes(object)
                    .is_some_and(|bytes| self.retained.has(bytes)))
            && !heap.own().contains(object)
    }
}

/// The objects that a cursor visits.
enum Source {
    /// The objects in this list. They were looked up by their id, or by the id of their dominator.
    List(Vec<ObjectIndex>),
    /// All objects whose indexes are in this range.
    Numbers(Range<u32>),
    /// A range of positions in the list of all objects sorted by class name.
    ByClass(Range<usize>),
}

/// The object of one row, with the ids that the query reads.
#[derive(Clone, Copy, Debug)]
struct ObjectRow {
    object: ObjectIndex,
    /// The object's id, or the null id if the query does not read ids.
    id: ObjectId,
    dominator: ObjectId,
}

/// A cursor over `objects`.
pub(super) struct Objects {
    heap: Arc<Heap>,
    stop: Stop,
    wanted: WantedObjects,
    source: Source,
    /// The objects that were looked up by id, each with its id.
    known: Option<Vec<(ObjectIndex, ObjectId)>>,
    with_id: bool,
    with_dominator: bool,
    step: usize,
    batch: Vec<ObjectRow>,
    at: usize,
}

impl Objects {
    pub(super) fn new(heap: Arc<Heap>, ask: &Ask) -> Self {
        let snapshot = heap.snapshot();
        let all = snapshot.object_count();
        let mut known = None;
        let source = if ask.matches_nothing() {
            Source::List(Vec::new())
        } else if let Some(ids) = ask.ids(ID) {
            let found = ids
                .into_iter()
                .filter_map(|id| Some((snapshot.find(id)?, id)));
            let mut found: Vec<_> = found.collect();
            found.sort_unstable_by_key(|f| f.0);
            found.dedup_by_key(|f| f.0);
            let list = found.iter().map(|f| f.0).collect();
            known = Some(found);
            Source::List(sorted(&heap, list, ask.by_class))
        } else if let Some(ids) = ask.ids(DOMINATOR) {
            let mut holders: Vec<_> = ids.into_iter().filter_map(|id| snapshot.find(id)).collect();
            holders.sort_unstable();
            holders.dedup();
            let held = holders
                .into_iter()
                .flat_map(|holder| dominated_objects(&heap, holder));
            Source::List(sorted(&heap, held.collect(), ask.by_class))
        } else if ask.by_class {
            Source::ByClass(0..usize::try_from(all).unwrap_or(usize::MAX))
        } else {
            Source::Numbers(0..u32::try_from(all).unwrap_or(u32::MAX))
        };
        Self {
            wanted: WantedObjects::new(&heap, ask),
            with_id: ask.uses(ID),
            with_dominator: ask.uses(DOMINATOR),
            heap,
            stop: ask.stop.clone(),
            source,
            known,
            step: FIRST,
            batch: Vec::new(),
            at: 0,
        }
    }

    /// Returns the matching objects of the next batch, or `None` after the last batch.
    fn candidates(&mut self) -> Result<Option<Vec<ObjectIndex>>> {
        let step = self.step;
        // Enlarge the next batch, because only a few objects of each batch may match.
        self.step = (step * 4).min(MOST);
        let (heap, wanted) = (&self.heap, &self.wanted);
        let has = |object: &ObjectIndex| wanted.has(heap, *object);
        let found = match &mut self.source {
            Source::List(list) if list.is_empty() => return Ok(None),
            Source::List(list) => {
                let rest = list.split_off(list.len().min(MOST));
                let mut first = std::mem::replace(list, rest);
                first.retain(has);
                first
            }
            Source::Numbers(range) => {
                if range.start >= range.end {
                    return Ok(None);
                }
                let end = range.end.min(range.start.saturating_add(step as u32));
                let numbers = range.start..end;
                range.start = end;
                numbers
                    .into_par_iter()
                    .map(ObjectIndex)
                    .filter(has)
                    .collect()
            }
            Source::ByClass(range) => {
                if range.start >= range.end {
                    return Ok(None);
                }
                let end = range.end.min(range.start + step);
                let numbers = &heap.sorted()?[range.start..end];
                range.start = end;
                let objects = numbers.par_iter().map(|&n| ObjectIndex(n));
                objects.filter(has).collect()
            }
        };
        Ok(Some(found))
    }

    fn rows(&self, objects: &[ObjectIndex]) -> Result<Vec<ObjectRow>> {
        let few = objects.len() <= FEW;
        let nulls = || vec![ObjectId::NULL; objects.len()];
        let ids = match (self.with_id, &self.known) {
            (true, Some(known)) => objects
                .iter()
                .map(|object| {
                    let at = known.binary_search_by_key(object, |k| k.0);
                    at.map_or(ObjectId::NULL, |at| known[at].1)
                })
                .collect(),
            (true, None) => self.heap.ids_of(objects, few)?,
            (false, _) => nulls(),
        };
        let dominators = if self.with_dominator {
            let tree = self.heap.snapshot().tree();
            let holders: Vec<Option<ObjectIndex>> = objects
                .iter()
                .map(|&o| tree.object(tree.dominator(o)?))
                .collect();
            let known: Vec<ObjectIndex> = holders.iter().copied().flatten().collect();
            let mut known = self.heap.ids_of(&known, few)?.into_iter();
            let mut id = |holder: Option<ObjectIndex>| holder.and_then(|_| known.next());
            holders
                .into_iter()
                .map(|h| id(h).unwrap_or_default())
                .collect()
        } else {
            nulls()
        };
        let rows = objects.iter().zip(ids.into_iter().zip(dominators));
        Ok(rows
            .map(|(&object, (id, dominator))| ObjectRow {
                object,
                id,
                dominator,
            })
            .collect())
    }
}

/// Sorts objects by the names of their classes if the query needs this order.
fn sorted(heap: &Heap, mut objects: Vec<ObjectIndex>, by_class: bool) -> Vec<ObjectIndex> {
    if by_class {
        objects.sort_by_key(|&object| class_name(heap, object));
    }
    objects
}

/// Returns the objects that an object immediately dominates.
fn dominated_objects(heap: &Heap, holder: ObjectIndex) -> Vec<ObjectIndex> {
    let tree = heap.snapshot().tree();
    let Some(node) = tree.node(holder) else {
        return Vec::new();
    };
    let children = tree.children(node).filter_map(|n| tree.object(n));
    children.chain(tree.leaves(node)).collect()
}

impl Cursor for Objects {
    fn advance(&mut self) -> Result<bool> {
        self.at += 1;
        while self.at >= self.batch.len() {
            self.stop.check()?;
            let Some(objects) = self.candidates()? else {
                return Ok(false);
            };
            self.batch = self.rows(&objects)?;
            self.at = 0;
        }
        Ok(true)
    }

    fn cell(&self, column: usize) -> Value<'_> {
        let snapshot = self.heap.snapshot();
        let ObjectRow {
            object,
            id,
            dominator,
        } = self.batch[self.at];
        match column {
            ID => Value::Id(id.0),
            CLASS => Value::text(class_name(&self.heap, object)),
            CLASS_ID => Value::or_null(snapshot.class(object), |c| Value::id(c.id.0)),
            SHALLOW => Value::size(snapshot.shallow_bytes(object)),
            RETAINED => Value::or_null(snapshot.retained_bytes(object), Value::size),
            RETAINED_OBJECTS => Value::or_null(snapshot.retained_objects(object), Value::size),
            LENGTH => Value::or_null(snapshot.array_length(object), |n| Value::Int(n.into())),
            REACHABLE => Value::Bool(snapshot.tree().is_reachable(object)),
            ROOT => {
                let kind = snapshot.tree().root_kind(object);
                Value::or_null(kind, |kind| Value::text(kind.name()))
            }
            DOMINATOR => Value::id(dominator.0),
            _ => Value::Null,
        }
    }

    fn rowid(&self) -> Option<i64> {
        self.batch.get(self.at).map(|row| row.object.0.into())
    }
}

/// Returns the name of an object's class.
pub(super) fn class_name(heap: &Heap, object: ObjectIndex) -> &str {
    let class = heap.snapshot().class(object);
    class.map_or("java.lang.Class", |c| &c.name)
}
