//! The JDK's collection classes, and the meaning of their fields.

use std::ops::Range;

use super::nodes::{FollowedNodes, Names};
use super::{Bounds, Contents, ContentsKind, Entry, Fields, to_array_index};
use crate::answers::objects::object::{ArrayView, Value};
use crate::ids::{ObjectId, ObjectIndex};

const NULL: Value = Value::Object(ObjectId::NULL, None);

const MAP: Names = Names {
    key: Some("key"),
    value: "value",
    next: "next",
    skips_null: false,
};
const CONCURRENT_MAP: Names = Names {
    value: "val",
    ..MAP
};
const WEAK_MAP: Names = Names {
    key: Some("referent"),
    ..MAP
};
const LINKED_LIST: Names = Names {
    key: None,
    value: "item",
    next: "next",
    skips_null: false,
};
const QUEUE: Names = Names {
    skips_null: true,
    ..LINKED_LIST
};

/// Reads an object as an instance of the given collection class, and returns its contents. Returns `None` if the class
/// is not a collection, or if its fields in the dump are not the expected ones.
pub(super) fn read(
    fields: &Fields<'_>,
    class: &str,
    range: &Range<u64>,
    views: usize,
) -> Option<Contents> {
    let rest = class.strip_prefix("java.")?;
    let (package, name) = rest.rsplit_once('.')?;
    match package {
        "util" => lists(fields, name, range)
            .or_else(|| maps(fields, name, range))
            .or_else(|| immutable(fields, name, range))
            .or_else(|| wrapped(fields, name, range, views))
            .or_else(|| optional(fields, name)),
        "util.concurrent" => {
            concurrent(fields, name, range).or_else(|| wrapped(fields, name, range, views))
        }
        "util.concurrent.atomic" => atomic(fields, name, range),
        "lang" if name == "AbstractStringBuilder" => text(fields, range),
        "lang" if name == "ThreadLocal$ThreadLocalMap" => {
            let map = Contents::new(ContentsKind::Map).with_size(fields.integer("size"));
            table(fields, map, WEAK_MAP, range)
        }
        "nio" if name == "Buffer" => buffer(fields, range),
        _ => None,
    }
}

fn list(fields: &Fields<'_>, size: &str) -> Option<Contents> {
    let size = fields.integer(size)?;
    Some(Contents::new(ContentsKind::List).with_size(Some(size)))
}

fn lists(fields: &Fields<'_>, name: &str, range: &Range<u64>) -> Option<Contents> {
    match name {
        "ArrayList" => {
            fields.get("elementData")?;
            Some(list(fields, "size")?.with_array(fields.array("elementData"), range))
        }
        "Vector" => {
            fields.get("elementData")?;
            Some(list(fields, "elementCount")?.with_array(fields.array("elementData"), range))
        }
        "PriorityQueue" => Some(list(fields, "size")?.with_array(fields.array("queue"), range)),
        "Arrays$ArrayList" => Some(all_array_elements(fields, "a", range)),
        "LinkedList" => {
            let list = list(fields, "size")?;
            let found = fields
                .snapshot
                .chain(fields.get("first"), LINKED_LIST, range);
            Some(list.with_found_entries(found, range))
        }
        "ArrayDeque" => {
            let (head, tail) = (fields.integer("head")?, fields.integer("tail")?);
            let array = fields.array("elements")?;
            let len = i64::from(array.len).max(1);
            let size = (tail.checked_sub(head)?).rem_euclid(len);
            let queue = Contents::new(ContentsKind::List).with_size(Some(size));
            let queue = circular(queue, array, head, range);
            // One slot of the array is always empty.
            let capacity = queue.capacity.map(|slots| slots.saturating_sub(1));
            Some(Contents { capacity, ..queue })
        }
        _ => None,
    }
}

/// Returns the contents of a list or set that consists of all elements of an array.
fn all_array_elements(fields: &Fields<'_>, name: &str, range: &Range<u64>) -> Contents {
    let array = fields.array(name);
    let len = array.map(|a| i64::from(a.len));
    let mut list = Contents::new(ContentsKind::List)
        .with_size(len)
        .with_array(array, range);
    list.capacity = None;
    list
}

/// Adds the elements of a circular array: those from index `head` to the end of the array, then those at its beginning.
fn circular(list: Contents, array: ArrayView<'_>, head: i64, range: &Range<u64>) -> Contents {
    let mut list = list;
    let len = u64::from(array.len);
    list.capacity = Some(len);
    let size = list.size.unwrap_or(0);
    let head = u64::try_from(head).ok().filter(|&h| h < len.max(1));
    let Some(head) = head.filter(|_| size <= len) else {
        list.whole = false;
        return list;
    };
    let (start, end) = (range.start.min(size), range.end.min(size));
    // Each of these indexes is less than twice the array's length, so at most one wrap-around is needed.
    let (first, last) = (head + start, head + end.max(start));
    let parts = [
        first.min(len)..last.min(len),
        first.saturating_sub(len)..last.saturating_sub(len),
    ];
    for part in parts {
        let values = array.elements(to_array_index(part.start)..to_array_index(part.end));
        let entries = values.map(|value| Entry { key: None, value });
        list.entries.extend(entries);
    }
    list.whole &= list.entries.len() as u64 == last - first;
    list
}

/// Reads a map, or another structure that stores chains of nodes in an array of buckets.
fn table(fields: &Fields<'_>, map: Contents, names: Names, range: &Range<u64>) -> Option<Contents> {
    let mut map = map;
    if fields.get("table")? == NULL {
        map.capacity = Some(0);
        map.whole &= map.size == Some(0);
        return Some(map);
    }
    let Some(array) = fields.array("table") else {
        map.whole = false;
        return Some(map);
    };
    map.capacity = Some(u64::from(array.len));
    let heads = |nodes: &[ObjectIndex]| nodes.iter().map(|&n| Some(n)).collect();
    let found = fields.snapshot.buckets(array, names, range, heads);
    Some(map.with_found_entries(found, range))
}

fn maps(fields: &Fields<'_>, name: &str, range: &Range<u64>) -> Option<Contents> {
    let sized =
        |size| Some(Contents::new(ContentsKind::Map).with_size(Some(fields.integer(size)?)));
    match name {
        "HashMap" => table(fields, sized("size")?, MAP, range),
        "Hashtable" => table(fields, sized("count")?, MAP, range),
        "WeakHashMap" => table(fields, sized("size")?, WEAK_MAP, range),
        "LinkedHashMap" => {
            let linked = Names {
                next: "after",
                ..MAP
            };
            let found = fields.snapshot.chain(fields.get("head"), linked, range);
            let mut map = sized("size")?.with_found_entries(found, range);
            map.capacity = fields.array("table").map(|t| u64::from(t.len)).or(Some(0));
            Some(map)
        }
        "TreeMap" => {
            let found = fields.snapshot.tree_entries(fields.get("root"), range);
            Some(sized("size")?.with_found_entries(found, range))
        }
        "IdentityHashMap" => {
            let nothing = fields
                .snapshot
                .sentinel("java.util.IdentityHashMap", "NULL_KEY");
            let mut map = key_value_array(fields, sized("size")?, range)?;
            for entry in &mut map.entries {
                let key = entry.key.and_then(Value::object);
                if key.is_some() && key == nothing {
                    entry.key = Some(NULL);
                }
            }
            Some(map)
        }
        "EnumMap" => {
            let (keys, values) = (fields.array("keyUniverse")?, fields.array("vals")?);
            let pairs = keys.elements(0..u32::MAX).zip(values.elements(0..u32::MAX));
            let held = pairs.filter(|(_, value)| *value != NULL);
            let entry = |(key, value)| Entry {
                key: Some(key),
                value,
            };
            Some(sized("size")?.with_found_entries(listed(held.map(entry), range), range))
        }
        "RegularEnumSet" => {
            let members = fields.integer("elements")?.cast_unsigned();
            let values = fields.array("universe")?.elements(0..64).enumerate();
            let held = values.filter(|(i, _)| members >> i & 1 == 1);
            let entry = |(_, value)| Entry { key: None, value };
            let set =
                Contents::new(ContentsKind::Set).with_size(Some(i64::from(members.count_ones())));
            Some(set.with_found_entries(listed(held.map(entry), range), range))
        }
        _ => None,
    }
}

/// Reads a map that stores keys and values alternately in one array.
fn key_value_array(fields: &Fields<'_>, map: Contents, range: &Range<u64>) -> Option<Contents> {
    fields.get("table")?;
    let Some(array) = fields.array("table") else {
        let whole = map.size == Some(0);
        return Some(Contents { whole, ..map });
    };
    let values = array.elements(0..u32::MAX);
    let next = array.elements(0..u32::MAX).skip(1);
    let pairs = values.zip(next).step_by(2).filter(|(key, _)| *key != NULL);
    let entry = |(key, value)| Entry {
        key: Some(key),
        value,
    };
    let mut map = map.with_found_entries(listed(pairs.map(entry), range), range);
    map.capacity = Some(u64::from(array.len / 2));
    Some(map)
}

/// Returns the entries in `range`. `entries` has all entries of the collection.
fn listed(entries: impl Iterator<Item = Entry>, range: &Range<u64>) -> FollowedNodes {
    let mut found = FollowedNodes::all();
    for entry in entries {
        found.take(entry, range);
    }
    found
}

fn immutable(fields: &Fields<'_>, name: &str, range: &Range<u64>) -> Option<Contents> {
    let name = match name.strip_prefix("ImmutableCollections$") {
        Some(name) => name,
        None => return few(fields, name, range),
    };
    // JDK 9 has a separate class for each of the sizes 0, 1 and 2. Later JDKs use one class for the sizes 1 and 2, and
    // store a sentinel object in place of a missing element.
    let nothing = fields
        .snapshot
        .sentinel("java.util.ImmutableCollections", "EMPTY");
    let there = |value: &Value| *value != NULL && (nothing.is_none() || value.object() != nothing);
    let values = |names: [&str; 2]| -> Vec<Entry> {
        let values = names.iter().filter_map(|name| fields.get(name));
        let entry = |value| Entry { key: None, value };
        values.filter(there).map(entry).collect()
    };
    match name {
        "List0" | "List1" | "List2" | "List12" => {
            Some(Contents::new(ContentsKind::List).with_values(values(["e0", "e1"]), range))
        }
        "Set0" | "Set1" | "Set2" | "Set12" => {
            Some(Contents::new(ContentsKind::Set).with_values(values(["e0", "e1"]), range))
        }
        "ListN" => Some(all_array_elements(fields, "elements", range)),
        "SetN" => {
            let set = Contents::new(ContentsKind::Set).with_size(Some(fields.integer("size")?));
            let array = fields.array("elements")?;
            let held = array.elements(0..u32::MAX).filter(there);
            let found = listed(held.map(|value| Entry { key: None, value }), range);
            let mut set = set.with_found_entries(found, range);
            set.capacity = Some(u64::from(array.len));
            Some(set)
        }
        "Map0" | "Map1" => Some(one_entry(fields, ["k0", "v0"], range)),
        "MapN" => {
            let map = Contents::new(ContentsKind::Map).with_size(Some(fields.integer("size")?));
            key_value_array(fields, map, range)
        }
        _ => None,
    }
}

fn one_entry(fields: &Fields<'_>, names: [&str; 2], range: &Range<u64>) -> Contents {
    let entry = fields.get(names[0]).zip(fields.get(names[1]));
    let entries = entry.map(|(key, value)| Entry {
        key: Some(key),
        value,
    });
    Contents::new(ContentsKind::Map).with_values(entries.into_iter().collect(), range)
}

/// Reads the empty and one-element collections of `java.util.Collections`.
fn few(fields: &Fields<'_>, name: &str, range: &Range<u64>) -> Option<Contents> {
    let one = |kind| {
        let value = fields
            .get("element")
            .map(|value| Entry { key: None, value });
        Contents::new(kind).with_values(value.into_iter().collect(), range)
    };
    Some(match name.strip_prefix("Collections$")? {
        "EmptyList" | "SingletonList" => one(ContentsKind::List),
        "EmptySet" | "SingletonSet" => one(ContentsKind::Set),
        "EmptyMap" | "SingletonMap" => one_entry(fields, ["k", "v"], range),
        _ => return None,
    })
}

/// Reads collections that wrap another collection.
fn wrapped(fields: &Fields<'_>, name: &str, range: &Range<u64>, views: usize) -> Option<Contents> {
    let views = views.checked_sub(1)?;
    let of = |field: &str, range: &Range<u64>| {
        fields
            .snapshot
            .contents_within(fields.object(field)?, range, views)
    };
    let plain = |field| of(field, range);
    let keys = |field| Some(of(field, range)?.keys());
    match name {
        "HashSet" => keys("map"),
        "TreeSet" | "ConcurrentSkipListSet" | "Collections$SetFromMap" => keys("m"),
        "ConcurrentHashMap$CollectionView" => keys("map"),
        "CopyOnWriteArraySet" => Some(Contents {
            kind: ContentsKind::Set,
            ..plain("al")?
        }),
        // In JDK 8, `Properties` has no field `map`. The superclass `Hashtable` then stores the entries.
        "Properties" => plain("map"),
        "Collections$UnmodifiableCollection"
        | "Collections$SynchronizedCollection"
        | "Collections$CheckedCollection" => plain("c"),
        "Collections$UnmodifiableMap"
        | "Collections$SynchronizedMap"
        | "Collections$CheckedMap" => plain("m"),
        "ArrayList$SubList" | "ImmutableCollections$SubList" => {
            let size = u64::try_from(fields.integer("size")?).ok()?;
            let offset = u64::try_from(fields.integer("offset")?).ok()?;
            let end = range.end.min(size);
            let part = offset.checked_add(range.start.min(end))?..offset.checked_add(end)?;
            let root = ["root", "this$0"]
                .into_iter()
                .find(|f| fields.object(f).is_some())?;
            let mut list = of(root, &part)?;
            list.whole &= list.size.is_some_and(|s| offset + size <= s);
            (list.size, list.capacity) = (Some(size), None);
            Some(list)
        }
        _ => None,
    }
}

fn concurrent(fields: &Fields<'_>, name: &str, range: &Range<u64>) -> Option<Contents> {
    let snapshot = fields.snapshot;
    let list = Contents::new(ContentsKind::List);
    let chained = |list: Contents, first: &str| {
        let found = snapshot.chain(Some(fields.get(first)?), QUEUE, range);
        Some(list.with_found_entries(found, range))
    };
    match name {
        "ConcurrentHashMap" => {
            let size = fields.integer("baseCount")?;
            let size = size.checked_add(cells(fields, "counterCells")?)?;
            concurrent_table(
                fields,
                Contents::new(ContentsKind::Map).with_size(Some(size)),
                range,
            )
        }
        "ConcurrentSkipListMap" => {
            let index = fields.object("head");
            let first = index.and_then(|i| snapshot.field_values(&[i], ["node"]).pop().flatten());
            let value = |node: ObjectIndex| snapshot.field_values(&[node], ["val"]).pop().flatten();
            let first = first.and_then(|[node]| node);
            // Up to JDK 8, a node's field for the value is called `value`.
            let newer = first
                .and_then(Value::object)
                .and_then(value)
                .is_some_and(|[value]| value.is_some());
            let names = Names {
                value: if newer { "val" } else { "value" },
                skips_null: true,
                ..MAP
            };
            let found = snapshot.chain(first, names, range);
            Some(Contents::new(ContentsKind::Map).with_found_entries(found, range))
        }
        "CopyOnWriteArrayList" => Some(all_array_elements(fields, "array", range)),
        "ConcurrentLinkedQueue" | "ConcurrentLinkedDeque" => chained(list, "head"),
        "LinkedBlockingDeque" => {
            let list = list.with_size(Some(fields.integer("count")?));
            with_stored_capacity(fields, chained(list, "first")?)
        }
        "LinkedBlockingQueue" => {
            let count = fields.object("count")?;
            let [count] = snapshot.field_values(&[count], ["value"]).pop().flatten()?;
            let list = list.with_size(count.and_then(Value::integer));
            with_stored_capacity(fields, chained(list, "head")?)
        }
        "ArrayBlockingQueue" => {
            let list = list.with_size(Some(fields.integer("count")?));
            let array = fields.array("items")?;
            Some(circular(list, array, fields.integer("takeIndex")?, range))
        }
        "PriorityBlockingQueue" => {
            let list = list.with_size(Some(fields.integer("size")?));
            Some(list.with_array(fields.array("queue"), range))
        }
        "DelayQueue" => snapshot.contents_within(fields.object("q")?, range, 1),
        _ => None,
    }
}

/// Sets the capacity, which a bounded queue stores in a field.
fn with_stored_capacity(fields: &Fields<'_>, list: Contents) -> Option<Contents> {
    let capacity = fields.integer("capacity")?;
    Some(Contents {
        capacity: u64::try_from(capacity).ok(),
        ..list
    })
}

/// Returns the sum of the cells of a striped counter, such as a `LongAdder`. 0 if the counter has no cells.
fn cells(fields: &Fields<'_>, name: &str) -> Option<i64> {
    fields.get(name)?;
    let Some(cells) = fields.array(name) else {
        return Some(0);
    };
    let cells: Vec<ObjectIndex> = cells
        .elements(0..1 << 16)
        .filter_map(Value::object)
        .collect();
    let values = fields.snapshot.field_values(&cells, ["value"]).into_iter();
    let values = values.flatten().filter_map(|[v]| v?.integer());
    Some(values.fold(0, i64::wrapping_add))
}

fn concurrent_table(fields: &Fields<'_>, map: Contents, range: &Range<u64>) -> Option<Contents> {
    let snapshot = fields.snapshot;
    let mut map = map;
    let Some(array) = fields.array("table") else {
        map.capacity = Some(0);
        map.whole &= fields.get("table")? == NULL && map.size == Some(0);
        return Some(map);
    };
    map.capacity = Some(u64::from(array.len));
    // A bucket with many nodes begins with an object that represents a tree. The nodes of this tree also form a chain,
    // which starts at the tree's field `first`. While the table grows, a bucket can begin with a node that only points
    // to the new table.
    let heads = |nodes: &[ObjectIndex]| -> Vec<Option<ObjectIndex>> {
        let fields = snapshot.field_values(nodes, ["first", "nextTable"]);
        let node = |(&node, fields): (&ObjectIndex, Option<[Option<Value>; 2]>)| match fields? {
            [Some(first), _] => first.object(),
            [None, Some(_)] => None,
            [None, None] => Some(node),
        };
        nodes.iter().zip(fields).map(node).collect()
    };
    let found = snapshot.buckets(array, CONCURRENT_MAP, range, heads);
    Some(map.with_found_entries(found, range))
}

fn optional(fields: &Fields<'_>, name: &str) -> Option<Contents> {
    let value = fields.get("value");
    let there = match name {
        "Optional" => value.filter(|v| *v != NULL),
        "OptionalInt" | "OptionalLong" | "OptionalDouble" => {
            let present = fields
                .integer("isPresent")
                .or_else(|| fields.integer("present"))?;
            value.filter(|_| present != 0)
        }
        _ => return None,
    };
    Some(single(there))
}

fn single(value: Option<Value>) -> Contents {
    let mut contents = Contents::new(ContentsKind::Value);
    contents.size = Some(u64::from(value.is_some()));
    contents
        .entries
        .extend(value.map(|value| Entry { key: None, value }));
    contents
}

fn atomic(fields: &Fields<'_>, name: &str, range: &Range<u64>) -> Option<Contents> {
    match name {
        "AtomicInteger" | "AtomicLong" | "AtomicReference" => {
            Some(single(Some(fields.get("value")?)))
        }
        "AtomicBoolean" => {
            let value = fields.integer("value")?;
            Some(single(Some(Value::Boolean(value != 0))))
        }
        // `LongAdder` and similar classes inherit their fields from `Striped64`.
        "Striped64" => {
            let sum = fields
                .integer("base")?
                .wrapping_add(cells(fields, "cells")?);
            let long = fields.class_name().ends_with(".LongAdder");
            long.then(|| single(Some(Value::Long(sum))))
        }
        "AtomicIntegerArray" | "AtomicLongArray" | "AtomicReferenceArray" => {
            Some(all_array_elements(fields, "array", range))
        }
        _ => None,
    }
}

fn text(fields: &Fields<'_>, range: &Range<u64>) -> Option<Contents> {
    let mut text = Contents::new(ContentsKind::Text).with_size(Some(fields.integer("count")?));
    let limit = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX);
    let array = fields.array("value");
    let wide = fields.integer("coder").unwrap_or(0) != 0;
    text.capacity = array.map(|a| u64::from(a.len) >> u32::from(wide));
    let size = usize::try_from(text.size.unwrap_or(0)).unwrap_or(usize::MAX);
    let skip = usize::try_from(range.start).unwrap_or(usize::MAX);
    text.text = array.and_then(|a| fields.snapshot.characters(a, wide, skip, size, limit));
    text.whole &= text.text.is_some() && text.size <= text.capacity;
    Some(text)
}

fn buffer(fields: &Fields<'_>, range: &Range<u64>) -> Option<Contents> {
    let number = |name| u64::try_from(fields.integer(name)?).ok();
    let (position, limit) = (number("position")?, number("limit")?);
    let mut buffer = Contents::new(ContentsKind::Buffer);
    buffer.capacity = number("capacity");
    buffer.bounds = Some(Bounds { position, limit });
    buffer.size = limit.checked_sub(position);
    buffer.whole &= buffer.size.is_some() && Some(limit) <= buffer.capacity;
    // The subclass for the element type (such as `ByteBuffer`) declares the field with the array. Direct buffers have
    // no array.
    let below = fields.own_class_first();
    let array = below.array("hb");
    if let Some(array) = array {
        let offset = below.integer("offset").and_then(|o| u64::try_from(o).ok());
        let first = offset.unwrap_or(0).saturating_add(position);
        let size = buffer.size.unwrap_or(0);
        let (start, end) = (range.start.min(size), range.end.min(size));
        let place = |at: u64| to_array_index(first.saturating_add(at));
        let values = array.elements(place(start)..place(end));
        buffer
            .entries
            .extend(values.map(|value| Entry { key: None, value }));
        buffer.whole &= buffer.entries.len() as u64 == end.saturating_sub(start);
    }
    Some(buffer)
}
