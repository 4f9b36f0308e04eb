//! The contents of collections: elements and entries, read from the fields of JDK classes.
//!
//! Field names are those of OpenJDK 8 to 25. A subclass of a JDK class is read like the JDK class. In a dump, a
//! collection can be damaged: its size can be wrong, and a chain of nodes can be cyclic or lead to any object.

mod forms;
mod nodes;

use std::ops::Range;

use crate::answers::objects::object::{ArrayView, Body, Content, FieldValue, Raw, Value};
use crate::ids::{ClassIndex, ObjectId, ObjectIndex};
use crate::snapshot::Snapshot;

/// Maximum number of nested views to follow. A view, such as an unmodifiable list, only wraps another collection.
const VIEWS: usize = 8;

/// The kind of an object's contents.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ContentsKind {
    /// Ordered elements: lists, queues, deques, atomic arrays.
    List,
    /// Unordered elements.
    Set,
    /// Keys with values.
    Map,
    /// At most one value: `Optional`, `AtomicLong` and similar classes.
    Value,
    /// A `java.nio` buffer: the elements between its position and its limit.
    Buffer,
    /// A `StringBuilder` or a `StringBuffer`.
    Text,
}

impl ContentsKind {
    /// Returns the name of the kind, such as `list` or `set`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::Set => "set",
            Self::Map => "map",
            Self::Value => "value",
            Self::Buffer => "buffer",
            Self::Text => "text",
        }
    }
}

/// An element, or a key with its value.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Entry {
    /// The key. `None` for contents other than maps.
    pub key: Option<Value>,
    /// The element of a list or set, or the value that a map has for the key.
    pub value: Value,
}

/// The `position` and `limit` of a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// The index where the next element is read or written.
    pub position: u64,
    /// The index where reading or writing ends.
    pub limit: u64,
}

/// The contents of an instance of a collection class; see [`Snapshot::contents`].
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Contents {
    /// The kind of contents.
    pub kind: ContentsKind,
    /// The number of elements, entries or characters according to the object's fields. `None` if no field stores this
    /// number.
    pub size: Option<u64>,
    /// The number of elements for which there is space. For hash tables, the number of buckets. `None` if the object
    /// has no capacity.
    pub capacity: Option<u64>,
    /// Position and limit. Only for buffers.
    pub bounds: Option<Bounds>,
    /// If the contents are text, the characters in the requested range.
    pub text: Option<String>,
    /// The index of the first of the `entries`, counted from the start of the collection.
    pub first: u64,
    /// The requested elements or entries, in the order of Java's iteration. For heaps (`PriorityQueue`), `Hashtable`,
    /// `WeakHashMap`, and immutable sets and maps, the order is that of the underlying array.
    pub entries: Vec<Entry>,
    /// True if the fields are consistent. They might be inconsistent if a thread was changing the collection when the
    /// dump was taken.
    pub whole: bool,
}

impl Contents {
    const fn new(kind: ContentsKind) -> Self {
        Self {
            kind,
            size: None,
            capacity: None,
            bounds: None,
            text: None,
            first: 0,
            entries: Vec::new(),
            whole: true,
        }
    }

    /// Sets the collection's size, which was read from a field of the collection.
    fn with_size(mut self, size: Option<i64>) -> Self {
        self.size = size.and_then(|s| u64::try_from(s).ok());
        self.whole &= self.size.is_some();
        self
    }

    /// Adds the elements of `array` that are in `range`. Sets the capacity to the length of the array.
    fn with_array(self, array: Option<ArrayView<'_>>, range: &Range<u64>) -> Self {
        let size = self.size.unwrap_or(0);
        let (skip, take) = (range.start, range.end.min(size).saturating_sub(range.start));
        let len = array.map_or(0, |a| u64::from(a.len));
        let mut contents = self;
        contents.capacity = Some(len);
        if let Some(array) = array {
            let range = to_array_index(skip)..to_array_index(skip.saturating_add(take));
            let values = array.elements(range);
            contents
                .entries
                .extend(values.map(|value| Entry { key: None, value }));
        }
        contents.whole &= size <= len && (take == 0 || contents.entries.len() as u64 == take);
        contents
    }

    /// Adds the entries that were found. If all entries of the collection were visited, compares their number with the
    /// size, or sets the size if no field stores it.
    fn with_found_entries(mut self, found: nodes::FollowedNodes, range: &Range<u64>) -> Self {
        self.whole &= found.whole;
        if let (true, Some(size)) = (found.complete, self.size) {
            self.whole &= size == found.total;
        }
        if let (true, None) = (found.complete, self.size) {
            self.size = Some(found.total);
        }
        self.first = range.start;
        self.entries = found.entries;
        self
    }

    /// Sets the size and the entries of a collection. `values` has all its elements.
    fn with_values(mut self, values: Vec<Entry>, range: &Range<u64>) -> Self {
        self.size = Some(values.len() as u64);
        let take = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX);
        let skip = usize::try_from(range.start).unwrap_or(usize::MAX);
        self.entries = values.into_iter().skip(skip).take(take).collect();
        self
    }

    /// Turns a map into the set of its keys.
    fn keys(mut self) -> Self {
        self.kind = ContentsKind::Set;
        for entry in &mut self.entries {
            entry.value = entry.key.take().unwrap_or(entry.value);
        }
        self
    }
}

/// Converts a number to an array index. Numbers that do not fit become `u32::MAX`, an index that no array has.
fn to_array_index(place: u64) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}

/// The fields of an object that are declared by a known JDK class or its superclasses. The object's own class can be a
/// subclass of that JDK class.
struct Fields<'a> {
    snapshot: &'a Snapshot,
    raw: Raw<'a>,
    class: ClassIndex,
}

impl<'a> Fields<'a> {
    /// Returns the first field with this name that the known class or a superclass declares. If an application subclass
    /// has its own field with this name, that field is skipped.
    fn get(&self, name: &str) -> Option<Value> {
        let Body::Instance(class, body) = self.raw.body else {
            return None;
        };
        let mut fields = self
            .snapshot
            .fields_in(ObjectId(class), body)
            .skip_while(|f: &FieldValue<'_>| self.is_below(f.class));
        fields.find(|f| f.name == name)?.value
    }

    /// True if a class is a subclass of the known JDK class.
    fn is_below(&self, class: ClassIndex) -> bool {
        class != self.class && self.snapshot.classes().is_subclass(class, self.class)
    }

    /// Returns the same object with its own class as the known class. So [`Fields::get`] also finds the fields of
    /// subclasses.
    fn own_class_first(&self) -> Self {
        Self {
            class: self.own_class().unwrap_or(self.class),
            ..*self
        }
    }

    fn own_class(&self) -> Option<ClassIndex> {
        match self.raw.body {
            Body::Instance(class, _) => self.snapshot.classes().by_id(ObjectId(class)),
            _ => None,
        }
    }

    /// Returns the name of the object's own class.
    fn class_name(&self) -> &'a str {
        let class = self.own_class().unwrap_or(self.class);
        &self.snapshot.classes()[class].name
    }

    fn object(&self, name: &str) -> Option<ObjectIndex> {
        self.get(name)?.object()
    }

    fn integer(&self, name: &str) -> Option<i64> {
        self.get(name)?.integer()
    }

    fn array(&self, name: &str) -> Option<ArrayView<'a>> {
        self.snapshot.array_of(self.object(name)?)
    }
}

impl Snapshot {
    /// Returns the contents of an instance of a JDK collection class: the elements whose indexes are in `range`. `None`
    /// for other objects. For JDK collections that only wrap another collection (unmodifiable or synchronized
    /// collections, key sets of maps), returns the contents of the wrapped collection.
    ///
    /// Cost: for arrays and hash tables, a few times that of [`Snapshot::ids`]. For chains and trees, a walk over every
    /// piece of the file (about a megabyte) that contains one of the nodes up to the end of the range. A piece is
    /// walked again if the chain returns to it later. At most 10,000 nodes are followed.
    #[must_use]
    pub fn contents(&self, object: ObjectIndex, range: Range<u64>) -> Option<Contents> {
        self.contents_within(object, &range, VIEWS)
    }

    fn contents_within(
        &self,
        object: ObjectIndex,
        range: &Range<u64>,
        views: usize,
    ) -> Option<Contents> {
        let of = self.class_of(object)?;
        let known = self
            .classes()
            .chain(of)
            .filter(|&c| self.classes()[c].loader.is_null());
        let mut raw = None;
        for class in known {
            let name = &*self.classes()[class].name;
            if !name.starts_with("java.") {
                continue;
            }
            if raw.is_none() {
                raw = Some(self.records_of(&[object]).pop().flatten()?);
            }
            let fields = Fields {
                snapshot: self,
                raw: raw?,
                class,
            };
            if let Some(mut contents) = forms::read(&fields, name, range, views) {
                contents.first = range.start;
                return Some(contents);
            }
        }
        None
    }

    /// Reads an array. Returns `None` if the object is not an array.
    fn array_of(&self, object: ObjectIndex) -> Option<ArrayView<'_>> {
        match self.read(object).ok()?.content {
            Content::Array(array) => Some(array),
            _ => None,
        }
    }

    /// Returns the object to which a static field of a JDK class refers.
    fn sentinel(&self, class: &str, name: &str) -> Option<ObjectIndex> {
        let class = *self.classes().by_name(class).first()?;
        self.static_value(class, name)?.object()
    }
}
