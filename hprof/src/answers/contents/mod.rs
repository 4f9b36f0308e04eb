//! What collections hold: elements and entries, read from the fields of the JDK's classes.
//!
//! Field names are those of OpenJDK 8 to 25. A class that extends one of the JDK's is read as that.
//! Nothing of the structure is trusted: sizes may be wrong, chains may be cyclic or lead anywhere.

mod forms;
mod nodes;

use std::ops::Range;

use crate::answers::objects::object::{ArrayView, Body, Content, FieldValue, Raw, Value};
use crate::ids::{ClassIndex, ObjectId, ObjectIndex};
use crate::snapshot::Snapshot;

/// The most views of another collection that are followed.
const VIEWS: usize = 8;

/// The kind of an object's contents.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ContentsKind {
    /// Elements in an order: lists, queues, deques, atomic arrays.
    List,
    /// Elements.
    Set,
    /// Keys with values.
    Map,
    /// At most one value: `Optional`, `AtomicLong`, ...
    Value,
    /// A `java.nio` buffer: the elements between its position and its limit.
    Buffer,
    /// A `StringBuilder` or a `StringBuffer`.
    Text,
}

impl ContentsKind {
    /// `list`, `set`, ...
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
    /// `None` but in maps.
    pub key: Option<Value>,
    /// The element.
    pub value: Value,
}

/// A buffer's `position` and `limit`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// The position: where the next element is read or written.
    pub position: u64,
    /// The limit, where reading or writing ends.
    pub limit: u64,
}

/// The contents of an object of a collection class; see [`Snapshot::contents`].
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Contents {
    /// Of which kind it is.
    pub kind: ContentsKind,
    /// How many elements, entries, or characters it says it has; `None` where no field says it.
    pub size: Option<u64>,
    /// For how many it has room: of hash tables, the number of buckets. `None` where there is no
    /// such thing.
    pub capacity: Option<u64>,
    /// Of buffers only.
    pub bounds: Option<Bounds>,
    /// Of text only: its characters, as many as elements were asked for.
    pub text: Option<String>,
    /// The place of the first entry that is listed.
    pub first: u64,
    /// The elements or entries asked for, in the order in which Java iterates over them; heaps
    /// (`PriorityQueue`), `Hashtable`, `WeakHashMap` and immutable sets and maps in the order of their array.
    pub entries: Vec<Entry>,
    /// Whether what was read fits together. A collection that a thread was changing when the dump was
    /// taken may not.
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

    /// Notes what a size field says.
    fn sized(mut self, size: Option<i64>) -> Self {
        self.size = size.and_then(|s| u64::try_from(s).ok());
        self.whole &= self.size.is_some();
        self
    }

    /// The entries of an array's places, which are all the room there is.
    fn of_array(self, array: Option<ArrayView<'_>>, range: &Range<u64>) -> Self {
        let size = self.size.unwrap_or(0);
        let (skip, take) = (range.start, range.end.min(size).saturating_sub(range.start));
        let len = array.map_or(0, |a| u64::from(a.len));
        let mut contents = self;
        contents.capacity = Some(len);
        if let Some(array) = array {
            let range = narrow(skip)..narrow(skip.saturating_add(take));
            let values = array.elements(range);
            contents
                .entries
                .extend(values.map(|value| Entry { key: None, value }));
        }
        contents.whole &= size <= len && (take == 0 || contents.entries.len() as u64 == take);
        contents
    }

    /// Takes entries that were found, all of them where `complete`.
    fn found(mut self, found: nodes::FollowedNodes, range: &Range<u64>) -> Self {
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

    /// A few elements that are known already.
    fn of_values(mut self, values: Vec<Entry>, range: &Range<u64>) -> Self {
        self.size = Some(values.len() as u64);
        let take = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX);
        let skip = usize::try_from(range.start).unwrap_or(usize::MAX);
        self.entries = values.into_iter().skip(skip).take(take).collect();
        self
    }

    /// As a set of a map's keys.
    fn keys(mut self) -> Self {
        self.kind = ContentsKind::Set;
        for entry in &mut self.entries {
            entry.value = entry.key.take().unwrap_or(entry.value);
        }
        self
    }
}

/// A place within an array; those beyond all arrays are none.
fn narrow(place: u64) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}

/// An object's fields, from the class on that is known.
struct Fields<'a> {
    snapshot: &'a Snapshot,
    raw: Raw<'a>,
    class: ClassIndex,
}

impl<'a> Fields<'a> {
    /// The first field of this name that the known class or one above it declares: a class of the
    /// program may have its own of the same name.
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

    /// Whether a class extends the known one.
    fn is_below(&self, class: ClassIndex) -> bool {
        class != self.class && self.snapshot.classes().is_subclass(class, self.class)
    }

    /// All fields, those of the object's own class first.
    fn of_object(&self) -> Self {
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

    /// The name of the object's own class.
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
    /// What an object of one of the JDK's collection classes holds: the elements whose places are in
    /// `range`. `None` for other objects. Collections of the JDK's that only wrap another
    /// (unmodifiable, synchronized, sets of a map's keys) are looked through.
    ///
    /// Cost: for arrays and hash tables as [`Snapshot::ids`], a few times; in chains and trees a walk
    /// over every piece of the file (a megabyte or so) that has one of the nodes up to the end of the
    /// range, again where they lie to and fro. No more than 10,000 nodes are followed.
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
                raw = Some(self.raws(&[object]).pop().flatten()?);
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

    /// An array, to read its elements.
    fn array_of(&self, object: ObjectIndex) -> Option<ArrayView<'_>> {
        match self.read(object).ok()?.content {
            Content::Array(array) => Some(array),
            _ => None,
        }
    }

    /// The object that a class of the boot loader keeps in a static field.
    fn sentinel(&self, class: &str, name: &str) -> Option<ObjectIndex> {
        let class = *self.classes().by_name(class).first()?;
        self.static_value(class, name)?.object()
    }
}
