//! Which classes hold something, and where in their instances it says what.
//!
//! Field names are those of OpenJDK 8 to 25. A class that extends one of the JDK's is read as that.

use crate::ids::ClassIndex;
use crate::records::classes::Classes;
use crate::records::record::Kind;

/// How an array is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ArrayUse {
    /// From the first place on.
    List,
    /// A table of buckets, as many as a power of two, with three elements to four buckets at most.
    Table,
    /// The same, of tables that grow before the last of these elements comes.
    EarlyTable,
    /// The same, of any length.
    AnyTable,
    /// Keys and values in turn, at most two thirds of a power of two.
    Pairs,
    /// Characters, of one or two bytes.
    Text,
    /// No array: chains or trees.
    Nothing,
}

/// Offsets of the fields of interest in an instance's body, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Form {
    /// A string: its array, and whether two bytes make a character.
    String { value: u32, coder: Option<u32> },
    /// A boxed value.
    Box { value: u32, kind: Kind },
    /// A collection that says how many elements it has.
    Sized {
        size: u32,
        array: u32,
        usage: ArrayUse,
        coder: Option<u32>,
    },
    /// A map that counts in several places; then its count is not taken.
    Counted { size: u32, cells: u32, array: u32 },
    /// A queue between two places of an array.
    Deque { head: u32, tail: u32, array: u32 },
}

/// The form of each class's instances.
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

/// A class as one of those above it.
struct Subclass<'a> {
    classes: &'a Classes,
    id_size: usize,
    index: ClassIndex,
    known: ClassIndex,
}

impl Subclass<'_> {
    /// Where the fields of the known class and those above it begin, by name: a class below may have its own
    /// of the same name.
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
                // Up to JDK 6 several strings may be parts of one array, which no hash tells.
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
            // So up to JDK 20.
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
    /// The length of the array that so many elements need; `wide` characters take two places.
    pub(super) fn need(self, size: u64, wide: bool) -> u64 {
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
