//! `object_sums`: sums over the objects of each class, computed in one pass over flat arrays on all threads.

use std::ops::Range;
use std::sync::Arc;

use hprof::ObjectIndex;
use rayon::prelude::*;

use super::{Ask, Cursor, place};
use crate::error::Result;
use crate::heap::Heap;
use crate::schema::OBJECT_SUMS;
use crate::value::Value;

const CLASS: usize = place(OBJECT_SUMS, "class");
const CLASS_ID: usize = place(OBJECT_SUMS, "class_id");
const REACHABLE: usize = place(OBJECT_SUMS, "reachable");
const OBJECTS: usize = place(OBJECT_SUMS, "objects");
/// Index of the first column for shallow bytes. Each quantity has four columns: count, sum, minimum and maximum. The
/// next three constants are the indexes of the first columns for other quantities.
const SHALLOW: usize = place(OBJECT_SUMS, "shallow_bytes_count");
const RETAINED: usize = place(OBJECT_SUMS, "retained_bytes_count");
const RETAINED_OBJECTS: usize = place(OBJECT_SUMS, "retained_objects_count");
const LENGTH: usize = place(OBJECT_SUMS, "length_count");
/// Number of table columns for each summed quantity: count, sum, minimum and maximum.
const EACH: usize = 4;
/// Number of objects that are summed between two checks of the flag that ends a query.
const CHECK_EVERY: u32 = 1 << 16;
const NUMBERS: usize = (OBJECT_SUMS.len() - SHALLOW) / EACH;

/// The count, sum, minimum and maximum of one quantity, such as shallow bytes, over the objects of a group.
#[derive(Clone, Copy, Debug)]
struct Sums {
    count: u64,
    sum: u64,
    min: u64,
    max: u64,
}

impl Sums {
    const NONE: Self = Self {
        count: 0,
        sum: 0,
        min: u64::MAX,
        max: 0,
    };

    fn add(&mut self, other: Self) {
        self.count += other.count;
        self.sum = self.sum.saturating_add(other.sum);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    fn add_one(&mut self, number: Option<u64>) {
        if let Some(number) = number {
            self.add(Self {
                count: 1,
                sum: number,
                min: number,
                max: number,
            });
        }
    }
}

/// The reachable or the unreachable objects of a class.
#[derive(Clone, Copy, Debug)]
struct Group {
    objects: u64,
    numbers: [Sums; NUMBERS],
}

impl Group {
    const EMPTY: Self = Self {
        objects: 0,
        numbers: [Sums::NONE; NUMBERS],
    };
}

/// A cursor over `object_sums`.
pub(super) struct ObjectSums {
    heap: Arc<Heap>,
    /// Two groups for each class: its unreachable objects and its reachable objects. If the dump lacks the class
    /// `java.lang.Class`, two more groups follow, for class objects.
    groups: Vec<Group>,
    /// Index in `groups` from which `advance` looks for the next row.
    next: usize,
}

impl ObjectSums {
    pub(super) fn new(heap: Arc<Heap>, ask: &Ask) -> Self {
        let objects = u32::try_from(heap.snapshot().object_count()).unwrap_or(u32::MAX);
        // Each thread computes the sums for each class over its own part of the objects.
        let threads = u32::try_from(rayon::current_num_threads()).unwrap_or(1);
        let each = objects.div_ceil(threads.max(1)).max(1);
        let parts: Vec<Range<u32>> = (0..objects.div_ceil(each))
            .map(|part| part * each..objects.min((part + 1).saturating_mul(each)))
            .collect();
        let summed = parts
            .into_par_iter()
            .map(|part| sum_range(&heap, part, ask))
            .reduce_with(|mut all, part| {
                for (own, other) in all.iter_mut().zip(part) {
                    own.objects += other.objects;
                    for (own, other) in own.numbers.iter_mut().zip(other.numbers) {
                        own.add(other);
                    }
                }
                all
            });
        Self {
            groups: summed.unwrap_or_default(),
            heap,
            next: 0,
        }
    }
}

/// Returns the sums over a range of objects. Reads only the quantities that the query needs.
fn sum_range(heap: &Heap, objects: Range<u32>, ask: &Ask) -> Vec<Group> {
    let (snapshot, own) = (heap.snapshot(), heap.own());
    let tree = snapshot.tree();
    let classes = snapshot.classes().len();
    let of_class_objects = snapshot.class_class().map_or(classes, |c| c.index());
    let wants = |first: usize| (first..first + EACH).any(|column| ask.uses(column));
    let [shallow, retained, retained_objects, length] =
        [SHALLOW, RETAINED, RETAINED_OBJECTS, LENGTH].map(wants);
    let mut groups = vec![Group::EMPTY; 2 * (classes + 1)];
    for object in objects.map(ObjectIndex) {
        if object.0 % CHECK_EVERY == 0 && ask.stop.is_set() {
            break;
        }
        if own.contains(object) {
            continue;
        }
        let class = snapshot
            .class_of(object)
            .map_or(of_class_objects, |c| c.index());
        let group = &mut groups[2 * class + usize::from(tree.is_reachable(object))];
        group.objects += 1;
        let mut add = |first: usize, number: Option<u64>| {
            group.numbers[(first - SHALLOW) / EACH].add_one(number);
        };
        if shallow {
            add(SHALLOW, Some(snapshot.shallow_bytes(object)));
        }
        if retained {
            add(RETAINED, snapshot.retained_bytes(object));
        }
        if retained_objects {
            add(RETAINED_OBJECTS, snapshot.retained_objects(object));
        }
        if length {
            add(LENGTH, snapshot.array_length(object).map(u64::from));
        }
    }
    groups
}

impl Cursor for ObjectSums {
    fn advance(&mut self) -> Result<bool> {
        let left = &self.groups[self.next..];
        let Some(found) = left.iter().position(|group| group.objects > 0) else {
            return Ok(false);
        };
        self.next += found + 1;
        Ok(true)
    }

    fn cell(&self, column: usize) -> Value<'_> {
        let Some(at) = self.next.checked_sub(1) else {
            return Value::Null;
        };
        let classes = self.heap.snapshot().classes();
        let class = classes.iter().nth(at / 2).map(|(_, class)| class);
        let group = &self.groups[at];
        match column {
            CLASS => Value::text(class.map_or("java.lang.Class", |c| &c.name)),
            CLASS_ID => Value::or_null(class, |c| Value::id(c.id.0)),
            REACHABLE => Value::Bool(at % 2 == 1),
            OBJECTS => Value::size(group.objects),
            _ if column < SHALLOW => Value::Null,
            _ => {
                let Some(of) = group.numbers.get((column - SHALLOW) / EACH) else {
                    return Value::Null;
                };
                match (column - SHALLOW) % EACH {
                    0 => Value::size(of.count),
                    _ if of.count == 0 => Value::Null,
                    1 => Value::size(of.sum),
                    2 => Value::size(of.min),
                    _ => Value::size(of.max),
                }
            }
        }
    }
}
