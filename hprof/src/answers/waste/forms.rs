//! Field offsets of the JDK classes that the search for waste examines: strings, boxed values and collections.
//!
//! Field names are those of OpenJDK 8 to 25. The form of a class shows where its instances store their content. A
//! subclass of a JDK class has the form of the JDK class.

use crate::ids::ClassIndex;
use crate::records::classes::Classes;
use crate::records::record::Kind;

/// How a collection uses its array.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ArrayUse {
    /// The array holds the elements from index 0 on, without gaps.
    List,
    /// A hash table. The number of buckets is a power of two. The table grows when it has more elements than three
    /// quarters of its buckets.
    Table,
    /// A hash table like `Table` that already grows when the number of elements reaches three quarters of its buckets.
    EarlyTable,
    /// A hash table like `Table`, with any number of buckets.
    AnyTable,
    /// Keys and values alternate in the array. The length of the array is a power of two, and at most two thirds of it
    /// are used.
    Pairs,
    /// The array holds text. In some arrays each character takes one byte, in others two.
    Text,
    /// The collection has no array but a chain or a tree.
    Nothing,
}

/// The form of a class: the fields that the search for waste reads. Numbers are byte offsets in an instance's body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Form {
    /// A string: its array, and the field that shows if a character takes one or two bytes.
    String { value: u32, coder: Option<u32> },
    /// A boxed value.
    Box { value: u32, kind: Kind },
    /// A collection with a field that counts its elements.
    Sized {
        size: u32,
        array: u32,
        usage: ArrayUse,
        coder: Option<u32>,
    },
    /// A map, such as `ConcurrentHashMap`, that counts its elements in one field and, under contention, also in counter
    /// cells. Maps with counter cells are not examined.
    Counted { size: u32, cells: u32, array: u32 },
    /// A queue that uses the part of an array between two indexes.
    Deque { head: u32, tail: u32, array: u32 },
}

/// Returns, for each class, the form of its instances; `None` if the class is not examined.
pub(super) fn all(classes: &Classes, id_size: usize) -> Vec<Option<Form>> {
    let form = |index: ClassIndex| {
        let mut known = classes
            .chain(index)
            .filter(|&c| classes[c].loader.is_null() && classes[c].name.starts_with("java."));
        known.find_map(|c| {
            Subclass {
                classes,
                id_size,
                index,
                known: c,
            }
            .form(&classes[c].name)
        })
    };
    classes.iter().map(|(index, _)| form(index)).collect()
}

/// A class (`index`), and the JDK class that determines its [`Form`] (`known`): the class itself or a superclass.
struct Subclass<'a> {
    classes: &'a Classes,
    id_size: usize,
    index: ClassIndex,
    known: ClassIndex,
}

impl Subclass<'_> {
    /// Returns the offset and type of a field that the known class or one of its superclasses declares. Fields of
    /// subclasses are skipped, because they may have the same name.
    fn field(&self, name: &str) -> Option<(u32, Kind)> {
        let mut at = 0_usize;
        let mut below = true;
        for class in self.classes.chain(self.index) {
            below &= class != self.known;
            for field in &self.classes[class].fields {
                if !below && &*field.name == name {
                    return Some((u32::try_from(at).ok()?, field.kind));
                }
                at = at.checked_add(field.kind.size(self.id_size))?;
            }
        }
        None
    }

    fn of(&self, name: &str, kind: Kind) -> Option<u32> {
        self.field(name).filter(|f| f.1 == kind).map(|f| f.0)
    }

    fn sized(&self, size: &str, array: &str, usage: ArrayUse) -> Option<Form> {
        Some(Form::Sized {
            size: self.of(size, Kind::Int)?,
            array: self.of(array, Kind::Object)?,
            usage,
            coder: None,
        })
    }

    fn chained(&self) -> Option<Form> {
        Some(Form::Sized {
            size: self.of("size", Kind::Int)?,
            array: 0,
            usage: ArrayUse::Nothing,
            coder: None,
        })
    }

    fn form(&self, class: &str) -> Option<Form> {
        let boxed = |kind| {
            let value = self.of("value", kind)?;
            Some(Form::Box { value, kind })
        };
        match class {
            "java.lang.String" => {
                // Up to JDK 6, strings can share parts of one array, so equal strings cannot be found by the hashes of
                // their arrays.
                if self.field("offset").is_some() {
                    return None;
                }
                let value = self.of("value", Kind::Object)?;
                let coder = self.of("coder", Kind::Byte);
                Some(Form::String { value, coder })
            }
            "java.lang.Boolean" => boxed(Kind::Boolean),
            "java.lang.Byte" => boxed(Kind::Byte),
            "java.lang.Character" => boxed(Kind::Char),
            "java.lang.Short" => boxed(Kind::Short),
            "java.lang.Integer" => boxed(Kind::Int),
            "java.lang.Long" => boxed(Kind::Long),
            "java.lang.Float" => boxed(Kind::Float),
            "java.lang.Double" => boxed(Kind::Double),
            "java.lang.AbstractStringBuilder" => Some(Form::Sized {
                size: self.of("count", Kind::Int)?,
                array: self.of("value", Kind::Object)?,
                usage: ArrayUse::Text,
                coder: self.of("coder", Kind::Byte),
            }),
            "java.util.ArrayList" => self.sized("size", "elementData", ArrayUse::List),
            "java.util.Vector" => self.sized("elementCount", "elementData", ArrayUse::List),
            "java.util.PriorityQueue" | "java.util.concurrent.PriorityBlockingQueue" => {
                self.sized("size", "queue", ArrayUse::List)
            }
            "java.util.HashMap" => self.sized("size", "table", ArrayUse::Table),
            // Up to JDK 20, `WeakHashMap` already grows when the number of elements reaches three quarters of its
            // buckets.
            "java.util.WeakHashMap" => self.sized("size", "table", ArrayUse::EarlyTable),
            "java.util.Hashtable" => self.sized("count", "table", ArrayUse::AnyTable),
            "java.util.IdentityHashMap" => self.sized("size", "table", ArrayUse::Pairs),
            "java.util.LinkedList" | "java.util.TreeMap" => self.chained(),
            "java.util.concurrent.ConcurrentHashMap" => Some(Form::Counted {
                size: self.of("baseCount", Kind::Long)?,
                cells: self.of("counterCells", Kind::Object)?,
                array: self.of("table", Kind::Object)?,
            }),
            "java.util.ArrayDeque" => Some(Form::Deque {
                head: self.of("head", Kind::Int)?,
                tail: self.of("tail", Kind::Int)?,
                array: self.of("elements", Kind::Object)?,
            }),
            _ => None,
        }
    }
}

impl ArrayUse {
    /// Returns the array length that `size` elements need. If `wide`, a character takes two elements of the array.
    pub(super) fn needed_length(self, size: u64, wide: bool) -> u64 {
        match self {
            Self::List => size,
            Self::Table => (size * 4).div_ceil(3).next_power_of_two(),
            Self::EarlyTable => (size * 4 / 3 + 1).next_power_of_two(),
            Self::AnyTable => (size * 4).div_ceil(3),
            Self::Pairs => (size * 3).next_power_of_two().max(8),
            Self::Text => size << u32::from(wide),
            Self::Nothing => 0,
        }
    }
}
