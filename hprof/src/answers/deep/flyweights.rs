//! Values that the whole program shares, as defined by SizeOf's `isSharedFlyweight`: enum constants, interned strings,
//! `Boolean.TRUE`, `Boolean.FALSE`, and the boxes that `valueOf` caches.
//!
//! Inside a JVM, `String.intern` shows if a string is interned. A dump does not record which strings are interned. But
//! it has the resolved string constants of each class, and all string constants are interned.

use crate::answers::objects::object::{Body, Value};
use crate::ids::{ClassIndex, NONE, ObjectId, ObjectIndex};
use crate::records::record::Kind;
use crate::records::walk::{RootKind, read_id};
use crate::snapshot::Snapshot;

/// HotSpot's dumps show the resolved constants of a class as if they were in a static field with this name.
const RESOLVED: &str = "<resolved_references>";

/// JDK classes whose static field `cache` contains shared boxes. Each pair is the JDK class and the class of the boxes.
const CACHES: [(&str, &str); 5] = [
    ("java.lang.Byte$ByteCache", "java.lang.Byte"),
    ("java.lang.Character$CharacterCache", "java.lang.Character"),
    ("java.lang.Integer$IntegerCache", "java.lang.Integer"),
    ("java.lang.Long$LongCache", "java.lang.Long"),
    ("java.lang.Short$ShortCache", "java.lang.Short"),
];

/// A dump's shared values. See [`Snapshot::flyweights`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flyweights {
    /// Enum constants, that is, instances of subclasses of `java.lang.Enum`. Sorted.
    pub enums: Vec<ObjectIndex>,
    /// `Boolean.TRUE`, `Boolean.FALSE` and the boxes in the caches of `valueOf`. Sorted.
    pub boxes: Vec<ObjectIndex>,
    /// Strings that are known to be interned, sorted: resolved string constants of the classes, and strings that a root
    /// of the kind [`RootKind::InternedString`] holds. A dump does not show strings that the program interned in
    /// another way.
    pub interned: Vec<ObjectIndex>,
}

impl Flyweights {
    /// Returns all shared values.
    pub fn objects(&self) -> impl Iterator<Item = ObjectIndex> + '_ {
        let all = self.enums.iter().chain(&self.boxes).chain(&self.interned);
        all.copied()
    }
}

impl Snapshot {
    /// Returns the values that the whole program shares.
    ///
    /// Cost: one look-up of the class of every object. Also a walk over each piece of the file (about a megabyte) that
    /// holds a cache of boxes or a class's resolved constants.
    #[must_use]
    pub fn flyweights(&self) -> Flyweights {
        Flyweights {
            enums: self.enum_constants(),
            boxes: self.cached_boxes(),
            interned: self.interned_strings(),
        }
    }

    /// Returns the class with this name that the boot loader defined.
    fn boot_class(&self, name: &str) -> Option<ClassIndex> {
        let classes = self.classes();
        let mut named = classes.by_name(name).iter().copied();
        named.find(|&c| classes[c].loader.is_null())
    }

    fn enum_constants(&self) -> Vec<ObjectIndex> {
        let Some(ancestor) = self.boot_class("java.lang.Enum") else {
            return Vec::new();
        };
        let classes = self.classes();
        let enums: Vec<ClassIndex> = classes
            .iter()
            .map(|(i, _)| i)
            .filter(|&i| classes.is_subclass(i, ancestor))
            .collect();
        self.instances(&enums)
    }

    /// Returns `Boolean.TRUE`, `Boolean.FALSE` and the boxes that `valueOf` caches, sorted.
    pub(crate) fn cached_boxes(&self) -> Vec<ObjectIndex> {
        let mut boxes = Vec::new();
        if let Some(class) = self.boot_class("java.lang.Boolean") {
            let value = |name| self.static_value(class, name).and_then(Value::object);
            let both = [value("TRUE"), value("FALSE")].into_iter().flatten();
            boxes.extend(both.filter(|&o| self.class_of(o) == Some(class)));
        }
        for (cache, class) in CACHES {
            let (Some(cache), Some(class)) = (self.boot_class(cache), self.boot_class(class))
            else {
                continue;
            };
            let array = self.static_value(cache, "cache").and_then(Value::object);
            boxes.append(&mut self.elements_of(array.as_slice(), class));
        }
        boxes.sort_unstable();
        boxes.dedup();
        boxes
    }

    fn interned_strings(&self) -> Vec<ObjectIndex> {
        let Some(class) = self.boot_class("java.lang.String") else {
            return Vec::new();
        };
        let is_string = |o: &ObjectIndex| self.class_of(*o) == Some(class);
        let (mut constants, mut arrays) = (Vec::new(), Vec::new());
        for (_, owner) in self.classes().iter() {
            let statics = owner.statics.iter();
            let resolved = statics.filter(|s| &*s.name == RESOLVED && s.kind == Kind::Object);
            arrays.extend(resolved.filter_map(|s| self.find(ObjectId(s.value))));
            // JVMs other than HotSpot write constant pools, which contain the string constants.
            let pool = owner
                .others
                .iter()
                .filter_map(|&id| self.find(ObjectId(id)));
            constants.extend(pool.filter(is_string));
        }
        arrays.sort_unstable();
        arrays.dedup();
        constants.append(&mut self.elements_of(&arrays, class));
        let roots = self.roots.iter();
        let interned = roots.filter(|r| r.kind == RootKind::InternedString);
        constants.extend(interned.filter_map(|r| self.find(r.id)).filter(is_string));
        constants.sort_unstable();
        constants.dedup();
        constants
    }

    /// Returns the elements of these arrays that are instances of exactly this class.
    fn elements_of(&self, arrays: &[ObjectIndex], class: ClassIndex) -> Vec<ObjectIndex> {
        let mut found = Vec::new();
        for raw in self.records_of(arrays).into_iter().flatten() {
            let Body::Objects(_, bytes) = raw.body else {
                continue;
            };
            let size = self.header().id_size;
            let id = |b: &[u8]| match size {
                8 => read_id::<8>(b, 0),
                _ => read_id::<4>(b, 0),
            };
            let numbers = bytes.chunks_exact(size).map(|b| match id(b) {
                0 => NONE,
                id => self.number_of(id),
            });
            let objects = numbers.filter(|&n| n != NONE).map(ObjectIndex);
            found.extend(objects.filter(|&o| self.class_of(o) == Some(class)));
        }
        found
    }
}
