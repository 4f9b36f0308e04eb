//! `classes`: every class, with the number and bytes of its objects.

use std::sync::Arc;

use hprof::ClassIndex;

use super::{Ask, Cursor, place};
use crate::error::Result;
use crate::filter::{ClassSet, Op};
use crate::heap::Heap;
use crate::schema::CLASSES;
use crate::value::Value;

const ID: usize = place(CLASSES, "id");
const CLASS: usize = place(CLASSES, "class");
const SUPERCLASS: usize = place(CLASSES, "superclass");
const SUPERCLASS_ID: usize = place(CLASSES, "superclass_id");
const LOADER: usize = place(CLASSES, "loader");
const LOADER_ID: usize = place(CLASSES, "loader_id");
const IS_ARRAY: usize = place(CLASSES, "is_array");
const OBJECTS: usize = place(CLASSES, "objects");
const SHALLOW: usize = place(CLASSES, "shallow_bytes");
const REACHABLE_OBJECTS: usize = place(CLASSES, "reachable_objects");
const REACHABLE_BYTES: usize = place(CLASSES, "reachable_bytes");
const RETAINED: usize = place(CLASSES, "retained_bytes");

pub(super) fn accepts(column: usize, op: Op) -> bool {
    match column {
        ID => op.is_for_ids(),
        CLASS => op.is_for_names(),
        _ => false,
    }
}

#[allow(clippy::cast_precision_loss, reason = "an estimate")]
pub(super) fn cost(heap: &Heap, ask: &Ask) -> (f64, u64) {
    let all = heap.snapshot().classes().len() as u64;
    match ask.constraints.is_empty() {
        true => (all as f64, all),
        // Comparing names and ids is cheaper than creating a row for each class, so the estimated cost is lower.
        false => (all as f64 / 10.0, 2),
    }
}

/// A cursor over `classes`.
pub(super) struct Classes {
    heap: Arc<Heap>,
    left: std::vec::IntoIter<ClassIndex>,
    class: ClassIndex,
}

impl Classes {
    pub(super) fn new(heap: Arc<Heap>, ask: &Ask) -> Self {
        let mut wanted = None;
        for c in &ask.constraints {
            let set = match c.column {
                ID => ClassSet::from_id(&heap, &c.value),
                _ => ClassSet::from_names(&heap, c.op, &c.value),
            };
            ClassSet::intersect(&mut wanted, set);
        }
        let nothing = ask.matches_nothing();
        let all = heap.snapshot().classes().iter();
        let own = |class| heapdiff_diff::samples::is_agent_class(class);
        let listed: Vec<ClassIndex> = all
            .filter(|(index, class)| {
                !nothing && !own(class) && wanted.as_ref().is_none_or(|w| w.has(*index))
            })
            .map(|(index, _)| index)
            .collect();
        Self {
            heap,
            left: listed.into_iter(),
            class: ClassIndex(0),
        }
    }
}

impl Cursor for Classes {
    fn advance(&mut self) -> Result<bool> {
        let next = self.left.next();
        self.class = next.unwrap_or(self.class);
        Ok(next.is_some())
    }

    fn cell(&self, column: usize) -> Value<'_> {
        let snapshot = self.heap.snapshot();
        let classes = snapshot.classes();
        let class = &classes[self.class];
        let superclass = class.superclass.map(|s| &classes[s]);
        let total = || &self.heap.totals()[self.class.index()];
        let sum = || &self.heap.sums()[self.class.index()];
        match column {
            ID => Value::id(class.id.0),
            CLASS => Value::text(&class.name),
            SUPERCLASS => Value::or_null(superclass, |s| Value::text(&s.name)),
            SUPERCLASS_ID => Value::or_null(superclass, |s| Value::id(s.id.0)),
            LOADER => {
                let loader = snapshot.find(class.loader).and_then(|o| snapshot.class(o));
                Value::or_null(loader, |c| Value::text(&c.name))
            }
            LOADER_ID => Value::id(class.loader.0),
            IS_ARRAY => Value::Bool(class.element.is_some()),
            OBJECTS => Value::size(sum().all.objects),
            SHALLOW => Value::size(sum().all.bytes),
            REACHABLE_OBJECTS => Value::size(total().reachable.objects),
            REACHABLE_BYTES => Value::size(total().reachable.bytes),
            RETAINED => Value::size(total().retained_bytes),
            _ => Value::Null,
        }
    }

    fn rowid(&self) -> Option<i64> {
        i64::try_from(self.class.index()).ok()
    }
}
