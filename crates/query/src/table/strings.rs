//! `strings`: every `java.lang.String` with its content.

use std::sync::Arc;

use hprof::answers::Value as FieldValue;
use hprof::records::{Class, Kind};
use hprof::{ClassIndex, ObjectId, ObjectIndex};
use rayon::prelude::*;

use super::{Ask, Cursor, LISTED, place};
use crate::error::Result;
use crate::filter::{Op, Span};
use crate::heap::Heap;
use crate::schema::STRINGS;
use crate::value::Value;

const ID: usize = place(STRINGS, "id");
const VALUE: usize = place(STRINGS, "value");
const LENGTH: usize = place(STRINGS, "length");
const SHALLOW: usize = place(STRINGS, "shallow_bytes");
const RETAINED: usize = place(STRINGS, "retained_bytes");

/// Maximum number of characters of a string in the table. A longer string is cut and ends with `…`. Many strings can
/// share one long array, so without this limit a small dump could fill the memory.
pub(crate) const CHARS: usize = 4096;
/// Number of strings in the first batch ([`FIRST`]), and maximum number in later batches ([`MOST`]).
const FIRST: usize = 1 << 8;
const MOST: usize = 1 << 14;

pub(super) fn accepts(column: usize, op: Op) -> bool {
    match column {
        ID => op.is_for_ids(),
        SHALLOW | RETAINED => op.is_for_sizes(),
        _ => false,
    }
}

#[allow(clippy::cast_precision_loss, reason = "an estimate")]
pub(super) fn cost(heap: &Heap, ask: &Ask) -> (f64, u64) {
    match ask.id_lookup_op(ID) {
        Some(Op::In) => return (500.0 * LISTED as f64, LISTED),
        Some(_) => return (500.0, 1),
        None => {}
    }
    let counts = heap.counts();
    let own = classes(heap).into_iter();
    let strings: u64 = own.map(|c| counts[c.index()].all.objects).sum();
    let rows = if ask.constraints.is_empty() {
        strings
    } else {
        strings / 4
    };
    let pass = heap.snapshot().object_count() as f64 / 20.0;
    (pass + rows as f64 * 10.0, rows)
}

/// Returns the classes named `java.lang.String` that the boot loader loaded.
fn classes(heap: &Heap) -> Vec<ClassIndex> {
    let classes = heap.snapshot().classes();
    let own = |c: &&ClassIndex| is_string(&classes[**c]);
    classes
        .by_name("java.lang.String")
        .iter()
        .filter(own)
        .copied()
        .collect()
}

fn is_string(class: &Class) -> bool {
    class.loader.is_null() && &*class.name == "java.lang.String"
}

#[derive(Debug)]
struct StringRow {
    object: ObjectIndex,
    id: ObjectId,
    text: Option<String>,
    length: Option<u64>,
}

/// A cursor over `strings`.
pub(super) struct Strings {
    heap: Arc<Heap>,
    left: std::vec::IntoIter<ObjectIndex>,
    few: bool,
    uses: [bool; 3],
    step: usize,
    batch: Vec<StringRow>,
    at: usize,
}

impl Strings {
    pub(super) fn new(heap: Arc<Heap>, ask: &Ask) -> Self {
        let snapshot = heap.snapshot();
        let (mut shallow, mut retained) = (Span::ALL, Span::ALL);
        for c in &ask.constraints {
            match c.column {
                SHALLOW => shallow.narrow(c.op, &c.value),
                RETAINED => retained.narrow(c.op, &c.value),
                _ => {}
            }
        }
        let has = |&object: &ObjectIndex| {
            // If the flag that ends the query is set, the query returns no more rows, so this list may be incomplete.
            !ask.stop.is_set()
                && (shallow == Span::ALL || shallow.has(snapshot.shallow_bytes(object)))
                && (retained == Span::ALL
                    || snapshot
                        .retained_bytes(object)
                        .is_some_and(|b| retained.has(b)))
                && !heap.own().contains(object)
        };
        let strings = match ask.ids(ID) {
            _ if ask.matches_nothing() => Vec::new(),
            Some(ids) => {
                let objects = ids.into_iter().filter_map(|id| snapshot.find(id));
                let strings = objects.filter(|&o| snapshot.class(o).is_some_and(is_string));
                let mut strings: Vec<_> = strings.filter(has).collect();
                strings.sort_unstable();
                strings.dedup();
                strings
            }
            None => {
                let all = snapshot.instances(&classes(&heap));
                all.into_par_iter().filter(has).collect::<Vec<_>>()
            }
        };
        Self {
            few: strings.len() <= FIRST,
            left: strings.into_iter(),
            uses: [ID, VALUE, LENGTH].map(|c| ask.uses(c)),
            step: FIRST,
            batch: Vec::new(),
            at: 0,
            heap,
        }
    }

    fn rows(&self, objects: &[ObjectIndex]) -> Result<Vec<StringRow>> {
        let [with_id, with_text, with_length] = self.uses;
        let snapshot = self.heap.snapshot();
        let mut rows: Vec<StringRow> = objects
            .iter()
            .map(|&object| StringRow {
                object,
                id: ObjectId::NULL,
                text: None,
                length: None,
            })
            .collect();
        if with_id {
            for (row, id) in rows.iter_mut().zip(self.heap.ids_of(objects, self.few)?) {
                row.id = id;
            }
        }
        if with_text {
            for (row, text) in rows.iter_mut().zip(snapshot.strings(objects, CHARS)) {
                row.text = text;
            }
        }
        if with_length {
            let fields = snapshot.field_values(objects, ["value", "coder", "count"]);
            for (row, fields) in rows.iter_mut().zip(fields) {
                row.length = fields.and_then(|fields| length(&self.heap, fields));
            }
        }
        Ok(rows)
    }
}

/// Returns the value of `String.length()`, in UTF-16 units.
fn length(heap: &Heap, [value, coder, count]: [Option<FieldValue>; 3]) -> Option<u64> {
    let snapshot = heap.snapshot();
    let array = value?.object()?;
    let units = u64::from(snapshot.array_length(array)?);
    let class = &snapshot.classes()[snapshot.class_of(array)?];
    let whole = |value: Option<FieldValue>| value.and_then(FieldValue::integer);
    match class.element? {
        Kind::Byte => match whole(coder).unwrap_or(0) {
            0 => Some(units),
            _ => Some(units / 2),
        },
        Kind::Char => match whole(count) {
            Some(count) => u64::try_from(count).ok(),
            None => Some(units),
        },
        _ => None,
    }
}

impl Cursor for Strings {
    fn advance(&mut self) -> Result<bool> {
        self.at += 1;
        if self.at >= self.batch.len() {
            let objects: Vec<ObjectIndex> = self.left.by_ref().take(self.step).collect();
            if objects.is_empty() {
                return Ok(false);
            }
            self.step = (self.step * 4).min(MOST);
            self.batch = self.rows(&objects)?;
            self.at = 0;
        }
        Ok(true)
    }

    fn cell(&self, column: usize) -> Value<'_> {
        let row = &self.batch[self.at];
        let snapshot = self.heap.snapshot();
        match column {
            ID => Value::id(row.id.0),
            VALUE => Value::or_null(row.text.as_deref(), Value::text),
            LENGTH => Value::or_null(row.length, Value::size),
            SHALLOW => Value::size(snapshot.shallow_bytes(row.object)),
            RETAINED => Value::or_null(snapshot.retained_bytes(row.object), Value::size),
            _ => Value::Null,
        }
    }

    fn rowid(&self) -> Option<i64> {
        self.batch.get(self.at).map(|row| row.object.0.into())
    }
}
