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
}

use Kind::{Bool, Id, Int, Text};

type Columns = &'static [(&'static str, Kind)];

pub(crate) const OBJECTS: Columns = &[
    ("id", Id),
    ("class", Text),
    ("class_id", Id),
    ("shallow_bytes", Int),
    ("retained_bytes", Int),
    ("retained_objects", Int),
    ("length", Int),
    ("reachable", Bool),
    ("root", Text),
    ("dominator_id", Id),
];

pub(crate) const CLASSES: Columns = &[
    ("id", Id),
    ("class", Text),
    ("superclass", Text),
    ("superclass_id", Id),
    ("loader", Text),
    ("loader_id", Id),
    ("is_array", Bool),
    ("objects", Int),
    ("shallow_bytes", Int),
    ("reachable_objects", Int),
    ("reachable_bytes", Int),
    ("retained_bytes", Int),
];

pub(crate) const REFS: Columns = &[
    ("source_id", Id),
    ("source_class", Text),
    ("kind", Text),
    ("via", Text),
    ("position", Int),
    ("strength", Text),
    ("target_id", Id),
    ("target_class", Text),
];

pub(crate) const ROOTS: Columns = &[
    ("id", Id),
    ("class", Text),
    ("kind", Text),
    ("thread_serial", Int),
    ("depth", Int),
    ("retained_bytes", Int),
];

pub(crate) const STRINGS: Columns = &[
    ("id", Id),
    ("value", Text),
    ("length", Int),
    ("shallow_bytes", Int),
    ("retained_bytes", Int),
];

pub(crate) const THREADS: Columns = &[
    ("id", Id),
    ("name", Text),
    ("class", Text),
    ("thread_serial", Int),
    ("is_daemon", Bool),
    ("is_virtual", Bool),
    ("frames", Int),
    ("retained_bytes", Int),
];

pub(crate) const FRAMES: Columns = &[
    ("thread_id", Id),
    ("thread", Text),
    ("thread_serial", Int),
    ("depth", Int),
    ("class", Text),
    ("method", Text),
    ("file", Text),
    ("line", Int),
    ("locals", Int),
];

pub(crate) const SAMPLES: Columns = &[
    ("uid", Int),
    ("id", Id),
    ("class", Text),
    ("bytes", Int),
    ("thread", Text),
    ("allocated_ms", Int),
    ("collected_ms", Int),
    ("recent", Bool),
    ("chosen", Bool),
    ("is_definition", Bool),
    ("frame", Text),
    ("stack", Text),
];

pub(crate) const ALLOCATED: Columns = &[("class", Text), ("objects", Int), ("bytes", Int)];

pub(crate) const COUNTED_SITES: Columns = &[
    ("class", Text),
    ("method", Text),
    ("line", Int),
    ("allocated", Text),
    ("objects", Int),
    ("bytes", Int),
    ("counted_until_ms", Int),
];

impl Table {
    /// All of them, in the order in which they are told.
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
        }
    }

    /// The table of a name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|table| table.name() == name)
    }

    const fn definition(self) -> Columns {
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
        }
    }

    /// Its columns, in order.
    #[must_use]
    pub fn columns(self) -> Vec<Column> {
        let columns = self.definition().iter();
        columns
            .map(|&(name, kind)| Column::new(name, kind))
            .collect()
    }

    /// The names of its columns, in order.
    pub fn column_names(self) -> impl Iterator<Item = &'static str> {
        self.definition().iter().map(|c| c.0)
    }

    /// The statement that declares the table to SQLite.
    pub(crate) fn declaration(self, name: &str) -> String {
        let columns: Vec<String> = self
            .definition()
            .iter()
            .map(|(name, kind)| format!("{name} {}", declared(*kind)))
            .collect();
        format!("CREATE TABLE {name}({})", columns.join(", "))
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
