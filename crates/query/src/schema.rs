//! The tables and their columns.

use heapdiff_tables::{Column, Kind};

/// A table that queries and exports know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Table {
    /// All objects.
    Objects,
    /// All classes.
    Classes,
    /// All references.
    Refs,
    /// All GC roots.
    Roots,
    /// All strings with their text.
    Strings,
    /// All threads.
    Threads,
    /// The frames of all threads.
    Frames,
    /// The agent's samples.
    Samples,
    /// What the agent counted of each class.
    Allocated,
    /// What the agent counted at each line of code.
    CountedSites,
    /// Sums over `objects` that statements are rewritten to, in no list of tables.
    #[doc(hidden)]
    ObjectSums,
}

use Kind::{Bool, Id, Int, Text};

/// Columns: name, type, and what is in it.
pub(crate) type Columns = &'static [(&'static str, Kind, &'static str)];

pub(crate) const OBJECTS: Columns = &[
    ("id", Id, "the object's id in the dump"),
    ("class", Text, "the name of its class"),
    ("class_id", Id, "the id of the class object"),
    ("shallow_bytes", Int, "its own size"),
    (
        "retained_bytes",
        Int,
        "bytes that would be freed with it; null if it is unreachable",
    ),
    (
        "retained_objects",
        Int,
        "objects that would be freed with it",
    ),
    ("length", Int, "an array's length"),
    ("reachable", Bool, "true if it is reachable from a GC root"),
    (
        "root",
        Text,
        "the kind of GC root that refers to it directly",
    ),
    ("dominator_id", Id, "its immediate dominator"),
];

pub(crate) const CLASSES: Columns = &[
    ("id", Id, "the class object's id"),
    ("class", Text, "its name"),
    ("superclass", Text, "what it extends"),
    ("superclass_id", Id, "the id of its superclass"),
    (
        "loader",
        Text,
        "the class of its class loader; null for the boot loader",
    ),
    ("loader_id", Id, "the class loader's id"),
    ("is_array", Bool, "true if it is an array class"),
    ("objects", Int, "its instances"),
    ("shallow_bytes", Int, "shallow bytes of its instances"),
    ("reachable_objects", Int, "its reachable instances"),
    (
        "reachable_bytes",
        Int,
        "shallow bytes of its reachable instances",
    ),
    (
        "retained_bytes",
        Int,
        "bytes that its instances retain together, nothing counted twice",
    ),
];

pub(crate) const REFS: Columns = &[
    ("source_id", Id, "the object that contains the reference"),
    ("source_class", Text, "its class"),
    (
        "kind",
        Text,
        "field, static, element, local, superclass, loader, loads or class part",
    ),
    ("via", Text, "the field, with the class that declares it"),
    (
        "position",
        Int,
        "an element's index, or a local variable's frame",
    ),
    ("strength", Text, "strong, soft, weak, phantom or final"),
    ("target_id", Id, "the object that is referred to"),
    (
        "target_class",
        Text,
        "its class; null if the dump has no such object",
    ),
];

pub(crate) const ROOTS: Columns = &[
    ("id", Id, "the object"),
    ("class", Text, "its class"),
    ("kind", Text, "the kind of GC root"),
    ("thread_serial", Int, "the thread whose root it is"),
    ("depth", Int, "the frame's place from the top"),
    ("retained_bytes", Int, "bytes that the object retains"),
];

pub(crate) const STRINGS: Columns = &[
    ("id", Id, "the string's id"),
    ("value", Text, "its text; long strings are truncated"),
    ("length", Int, "what length() gives"),
    ("shallow_bytes", Int, "its own size"),
    ("retained_bytes", Int, "bytes that would be freed with it"),
];

pub(crate) const THREADS: Columns = &[
    ("id", Id, "the thread object"),
    ("name", Text, "its name"),
    ("class", Text, "its class"),
    ("thread_serial", Int, "its number in the dump"),
    ("is_daemon", Bool, "true if it is a daemon thread"),
    ("is_virtual", Bool, "true if it is a virtual thread"),
    ("frames", Int, "how many frames it has"),
    (
        "retained_bytes",
        Int,
        "bytes that it retains, with the objects that its local variables hold",
    ),
];

pub(crate) const FRAMES: Columns = &[
    ("thread_id", Id, "the thread object"),
    ("thread", Text, "the thread's name"),
    ("thread_serial", Int, "the thread's number in the dump"),
    ("depth", Int, "the frame's place from the top, from 0"),
    ("class", Text, "the class of the method"),
    ("method", Text, "the method"),
    ("file", Text, "the source file"),
    ("line", Int, "the line"),
    (
        "locals",
        Int,
        "number of objects that its local variables hold",
    ),
];

pub(crate) const SAMPLES: Columns = &[
    ("uid", Int, "the sample's number"),
    ("id", Id, "the object; null if it was collected"),
    ("class", Text, "what was allocated"),
    ("bytes", Int, "shallow size of the object"),
    ("thread", Text, "the thread that allocated it"),
    ("allocated_ms", Int, "milliseconds since the agent's start"),
    (
        "collected_ms",
        Int,
        "when it was found to be collected; null if it is alive",
    ),
    (
        "recent",
        Bool,
        "true if it is one of the last samples that were collected",
    ),
    (
        "chosen",
        Bool,
        "true if it is in the random choice of collected samples",
    ),
    ("is_definition", Bool, "true if it is a class definition"),
    ("frame", Text, "the innermost frame"),
    ("stack", Text, "all frames, the innermost first"),
];

pub(crate) const ALLOCATED: Columns = &[
    ("class", Text, "what was allocated"),
    ("objects", Int, "how many"),
    ("bytes", Int, "their bytes"),
];

pub(crate) const COUNTED_SITES: Columns = &[
    ("class", Text, "the class of the code"),
    ("method", Text, "the method"),
    ("line", Int, "the line"),
    ("allocated", Text, "the class of the allocated objects"),
    ("objects", Int, "executed allocations"),
    ("bytes", Int, "their bytes"),
    (
        "counted_until_ms",
        Int,
        "end of the count, in milliseconds since 1970",
    ),
];

/// Of the objects of one class, those that are reachable or those that are not.
pub(crate) const OBJECT_SUMS: Columns = &[
    ("class", Text, "the name of their class"),
    ("class_id", Id, "the id of the class object"),
    (
        "reachable",
        Bool,
        "true if they are reachable from GC roots",
    ),
    ("objects", Int, "how many"),
    (
        "shallow_bytes_count",
        Int,
        "number of values that are not null",
    ),
    ("shallow_bytes_sum", Int, "their sum"),
    ("shallow_bytes_min", Int, "the smallest"),
    ("shallow_bytes_max", Int, "the largest"),
    (
        "retained_bytes_count",
        Int,
        "number of values that are not null",
    ),
    ("retained_bytes_sum", Int, "their sum"),
    ("retained_bytes_min", Int, "the smallest"),
    ("retained_bytes_max", Int, "the largest"),
    (
        "retained_objects_count",
        Int,
        "number of values that are not null",
    ),
    ("retained_objects_sum", Int, "their sum"),
    ("retained_objects_min", Int, "the smallest"),
    ("retained_objects_max", Int, "the largest"),
    ("length_count", Int, "number of values that are not null"),
    ("length_sum", Int, "their sum"),
    ("length_min", Int, "the smallest"),
    ("length_max", Int, "the largest"),
];

impl Table {
    /// All of them that a statement can name, in the order in which they are told.
    pub const ALL: [Self; 10] = [
        Self::Objects,
        Self::Classes,
        Self::Refs,
        Self::Roots,
        Self::Strings,
        Self::Threads,
        Self::Frames,
        Self::Samples,
        Self::Allocated,
        Self::CountedSites,
    ];

    /// The table's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Objects => "objects",
            Self::Classes => "classes",
            Self::Refs => "refs",
            Self::Roots => "roots",
            Self::Strings => "strings",
            Self::Threads => "threads",
            Self::Frames => "frames",
            Self::Samples => "samples",
            Self::Allocated => "allocated",
            Self::CountedSites => "counted_sites",
            Self::ObjectSums => "object_sums",
        }
    }

    /// The table of a name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|table| table.name() == name)
    }

    /// What its rows are.
    pub(crate) const fn description(self) -> &'static str {
        match self {
            Self::Objects => "every object",
            Self::Classes => "every class with its histogram",
            Self::Refs => "every reference from one object to another",
            Self::Roots => "the GC roots",
            Self::Strings => "every java.lang.String with its text",
            Self::Threads => "the threads",
            Self::Frames => "the frames of the threads' stacks",
            Self::Samples => "every sample of the agent",
            Self::Allocated => "allocations of each class, counted by the agent",
            Self::CountedSites => "allocations at each line of code, counted by the agent",
            Self::ObjectSums => "sums over objects",
        }
    }

    pub(crate) const fn definition(self) -> Columns {
        match self {
            Self::Objects => OBJECTS,
            Self::Classes => CLASSES,
            Self::Refs => REFS,
            Self::Roots => ROOTS,
            Self::Strings => STRINGS,
            Self::Threads => THREADS,
            Self::Frames => FRAMES,
            Self::Samples => SAMPLES,
            Self::Allocated => ALLOCATED,
            Self::CountedSites => COUNTED_SITES,
            Self::ObjectSums => OBJECT_SUMS,
        }
    }

    /// Its columns, in order.
    #[must_use]
    pub fn columns(self) -> Vec<Column> {
        let columns = self.definition().iter();
        columns
            .map(|&(name, kind, _)| Column::new(name, kind))
            .collect()
    }

    /// The names of its columns, in order.
    pub fn column_names(self) -> impl Iterator<Item = &'static str> {
        self.definition().iter().map(|c| c.0)
    }

    /// The statement that declares the table to SQLite.
    pub(crate) fn declaration(self, name: &str) -> String {
        format!("CREATE TABLE {name}({})", self.declared_columns())
    }

    /// Its columns as SQL declares them.
    pub(crate) fn declared_columns(self) -> String {
        let columns: Vec<String> = self
            .definition()
            .iter()
            .map(|(name, kind, _)| format!("{name} {}", declared(*kind)))
            .collect();
        columns.join(", ")
    }
}

/// The type that a column is declared with: SQLite takes `INT` in it for whole numbers.
pub(crate) const fn declared(kind: Kind) -> &'static str {
    match kind {
        Bool => "BOOLEAN INT",
        Int => "INT",
        Id => "ID INT",
        Kind::Double => "REAL",
        Text => "TEXT",
    }
}

/// The type that a column was declared with.
pub(crate) fn of_declared(declaration: &str) -> Option<Kind> {
    let mut all = [Bool, Int, Id, Kind::Double, Text].into_iter();
    all.find(|&kind| declared(kind) == declaration)
}
