//! Tables and their columns.

use heapdiff_tables::{Column, Kind};

/// A table that can be queried and exported.
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
    /// All strings with their content.
    Strings,
    /// All threads.
    Threads,
    /// The frames of all threads.
    Frames,
    /// The agent's samples.
    Samples,
    /// The agent's counts by class.
    Allocated,
    /// The agent's counts by line of code.
    CountedSites,
    /// Sums over the rows of `objects`. Some statements on `objects` are rewritten to use this table. It is internal
    /// and not listed.
    #[doc(hidden)]
    ObjectSums,
}

use Kind::{Bool, Id, Int, Text};

/// Columns, each with its name, type and description.
pub(crate) type Columns = &'static [(&'static str, Kind, &'static str)];

pub(crate) const OBJECTS: Columns = &[
    ("id", Id, "id of the object in the dump"),
    ("class", Text, "class of the object"),
    ("class_id", Id, "id of the class object"),
    ("shallow_bytes", Int, "shallow size of the object, in bytes"),
    (
        "retained_bytes",
        Int,
        "bytes that would be freed with the object; null if it is unreachable",
    ),
    (
        "retained_objects",
        Int,
        "number of objects that would be freed with the object",
    ),
    ("length", Int, "length of an array"),
    (
        "reachable",
        Bool,
        "true if the object is reachable from a GC root",
    ),
    (
        "root",
        Text,
        "kind of the GC root that refers to the object directly",
    ),
    ("dominator_id", Id, "immediate dominator of the object"),
];

pub(crate) const CLASSES: Columns = &[
    ("id", Id, "id of the class object"),
    ("class", Text, "name of the class"),
    ("superclass", Text, "name of the superclass"),
    ("superclass_id", Id, "id of the superclass"),
    (
        "loader",
        Text,
        "class of the class loader; null for the boot loader",
    ),
    ("loader_id", Id, "id of the class loader"),
    ("is_array", Bool, "true for an array class"),
    ("objects", Int, "number of instances"),
    ("shallow_bytes", Int, "shallow bytes of all instances"),
    ("reachable_objects", Int, "number of reachable instances"),
    (
        "reachable_bytes",
        Int,
        "shallow bytes of the reachable instances",
    ),
    (
        "retained_bytes",
        Int,
        "retained bytes of all instances together; an instance that another instance dominates is not added twice",
    ),
];

pub(crate) const REFS: Columns = &[
    (
        "source_id",
        Id,
        "id of the object that contains the reference",
    ),
    (
        "source_class",
        Text,
        "class of the object that contains the reference",
    ),
    (
        "kind",
        Text,
        "kind of reference: field, static, element, local, superclass, loader (class to its loader), loads (loader to its class), class part (constant, signer, domain)",
    ),
    (
        "via",
        Text,
        "name of the field, with the class that declares it",
    ),
    (
        "position",
        Int,
        "for an array element its index; for a local variable the position of its frame in the stack",
    ),
    (
        "strength",
        Text,
        "strength of the reference: strong, soft, weak, phantom or final",
    ),
    (
        "target_id",
        Id,
        "id of the object that the reference leads to",
    ),
    (
        "target_class",
        Text,
        "class of the object that the reference leads to; null if the dump does not contain the object",
    ),
];

pub(crate) const ROOTS: Columns = &[
    ("id", Id, "id of the object that the GC root refers to"),
    ("class", Text, "class of the object"),
    ("kind", Text, "kind of GC root"),
    (
        "thread_serial",
        Int,
        "serial number of the thread that the GC root belongs to",
    ),
    (
        "depth",
        Int,
        "position of the frame in the stack, counted from the top",
    ),
    ("retained_bytes", Int, "bytes that the object retains"),
];

pub(crate) const STRINGS: Columns = &[
    ("id", Id, "id of the string"),
    (
        "value",
        Text,
        "characters of the string; long strings are truncated",
    ),
    (
        "length",
        Int,
        "length of the string, as String.length() returns it",
    ),
    ("shallow_bytes", Int, "shallow size of the string, in bytes"),
    (
        "retained_bytes",
        Int,
        "bytes that would be freed with the string",
    ),
];

pub(crate) const THREADS: Columns = &[
    ("id", Id, "id of the thread object"),
    ("name", Text, "name of the thread"),
    ("class", Text, "class of the thread object"),
    (
        "thread_serial",
        Int,
        "serial number of the thread in the dump",
    ),
    ("is_daemon", Bool, "true for a daemon thread"),
    ("is_virtual", Bool, "true for a virtual thread"),
    ("priority", Int, "priority of the thread"),
    (
        "state",
        Text,
        "state of the thread as in Java, such as TIMED_WAITING; null for virtual threads",
    ),
    ("context_loader_id", Id, "id of the context class loader"),
    (
        "context_loader_class",
        Text,
        "class of the context class loader",
    ),
    ("frames", Int, "number of frames in the stack of the thread"),
    (
        "retained_bytes",
        Int,
        "bytes that the thread and its local variables retain together",
    ),
];

pub(crate) const FRAMES: Columns = &[
    ("thread_id", Id, "id of the thread object"),
    ("thread", Text, "name of the thread"),
    (
        "thread_serial",
        Int,
        "serial number of the thread in the dump",
    ),
    (
        "depth",
        Int,
        "position of the frame in the stack; 0 is the top",
    ),
    ("class", Text, "class that declares the method"),
    ("method", Text, "name of the method"),
    ("file", Text, "source file"),
    ("line", Int, "line number in the source file"),
    (
        "locals",
        Int,
        "number of objects that the local variables of the frame hold",
    ),
];

pub(crate) const SAMPLES: Columns = &[
    ("uid", Int, "serial number of the sample"),
    (
        "id",
        Id,
        "id of the sampled object; null if the GC freed the object",
    ),
    ("class", Text, "class of the sampled object"),
    ("bytes", Int, "shallow size of the sampled object"),
    ("thread", Text, "thread that allocated the object"),
    (
        "allocated_ms",
        Int,
        "time of the allocation, in milliseconds since the agent's start",
    ),
    (
        "collected_ms",
        Int,
        "time at which the agent noticed that the GC had freed the object, in milliseconds since the agent's start; null for a live object",
    ),
    (
        "recent",
        Bool,
        "true if the object is one of the most recently freed objects",
    ),
    (
        "chosen",
        Bool,
        "true if the sample was chosen at random among those of freed objects",
    ),
    (
        "is_definition",
        Bool,
        "true if the sample is the definition of a class, not an allocation",
    ),
    ("frame", Text, "innermost stack frame"),
    ("stack", Text, "all stack frames, the innermost first"),
    (
        "labels",
        Text,
        "labels of the thread (library heapdiff-labels), such as tenant=acme, route=/book; null without labels",
    ),
];

pub(crate) const ALLOCATED: Columns = &[
    ("class", Text, "class of the allocated objects"),
    ("objects", Int, "number of allocated objects"),
    ("bytes", Int, "bytes of the allocated objects"),
];

pub(crate) const COUNTED_SITES: Columns = &[
    ("class", Text, "class that contains the code"),
    ("method", Text, "method that allocates"),
    ("line", Int, "line that allocates"),
    ("allocated", Text, "class of the allocated objects"),
    ("objects", Int, "number of executed allocations"),
    ("bytes", Int, "bytes of the allocated objects"),
    (
        "counted_until_ms",
        Int,
        "end of the count, in milliseconds since 1970",
    ),
];

/// Columns of the table `object_sums`. A row has the sums over all reachable or all unreachable objects of one class.
pub(crate) const OBJECT_SUMS: Columns = &[
    ("class", Text, "class of the objects"),
    ("class_id", Id, "id of the class object"),
    (
        "reachable",
        Bool,
        "true if the objects are reachable from GC roots",
    ),
    ("objects", Int, "number of objects"),
    (
        "shallow_bytes_count",
        Int,
        "number of values that are not null",
    ),
    ("shallow_bytes_sum", Int, "sum of the values"),
    ("shallow_bytes_min", Int, "smallest value"),
    ("shallow_bytes_max", Int, "largest value"),
    (
        "retained_bytes_count",
        Int,
        "number of values that are not null",
    ),
    ("retained_bytes_sum", Int, "sum of the values"),
    ("retained_bytes_min", Int, "smallest value"),
    ("retained_bytes_max", Int, "largest value"),
    (
        "retained_objects_count",
        Int,
        "number of values that are not null",
    ),
    ("retained_objects_sum", Int, "sum of the values"),
    ("retained_objects_min", Int, "smallest value"),
    ("retained_objects_max", Int, "largest value"),
    ("length_count", Int, "number of values that are not null"),
    ("length_sum", Int, "sum of the values"),
    ("length_min", Int, "smallest value"),
    ("length_max", Int, "largest value"),
];

impl Table {
    /// All tables that a statement can name, in the order of listings.
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

    /// Returns the table's name.
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

    /// Returns the table with this name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|table| table.name() == name)
    }

    /// Returns a phrase that describes the rows of the table.
    pub(crate) const fn description(self) -> &'static str {
        match self {
            Self::Objects => "every object",
            Self::Classes => "every class, with the number and bytes of its instances",
            Self::Refs => "every reference from one object to another",
            Self::Roots => "every GC root",
            Self::Strings => "every java.lang.String with its text",
            Self::Threads => "every thread",
            Self::Frames => "every stack frame of every thread",
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

    /// Returns the columns, in order.
    #[must_use]
    pub fn columns(self) -> Vec<Column> {
        let columns = self.definition().iter();
        columns
            .map(|&(name, kind, _)| Column::new(name, kind))
            .collect()
    }

    /// Returns the names of the columns, in order.
    pub fn column_names(self) -> impl Iterator<Item = &'static str> {
        self.definition().iter().map(|c| c.0)
    }

    /// Returns the statement that declares the table to SQLite.
    pub(crate) fn declaration(self, name: &str) -> String {
        format!("CREATE TABLE {name}({})", self.declared_columns())
    }

    /// Returns the columns as declared in SQL.
    pub(crate) fn declared_columns(self) -> String {
        let columns: Vec<String> = self
            .definition()
            .iter()
            .map(|(name, kind, _)| format!("{name} {}", declared(*kind)))
            .collect();
        columns.join(", ")
    }
}

/// Returns the declared type of a column. SQLite treats a column as an integer if the type contains `INT`.
pub(crate) const fn declared(kind: Kind) -> &'static str {
    match kind {
        Bool => "BOOLEAN INT",
        Int => "INT",
        Id => "ID INT",
        Kind::Double => "REAL",
        Text => "TEXT",
    }
}

/// Converts the declared SQL type of a column back to the kind of the column.
pub(crate) fn kind_from_declaration(declaration: &str) -> Option<Kind> {
    let mut all = [Bool, Int, Id, Kind::Double, Text].into_iter();
    all.find(|&kind| declared(kind) == declaration)
}
