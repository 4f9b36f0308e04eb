//! `heapdiff.sizeof/1`: sizes of objects, alone and as a set.

use schemars::JsonSchema;
use serde::Serialize;

use crate::show::ThreadLocalValues;
use crate::snapshot::SnapshotInfo;
use crate::words::ID;

/// The report of `heapdiff sizeof --format json`: shallow, deep and retained sizes of objects, alone and as a
/// set. Later versions may add keys.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct SizeofReport {
    /// Name of the schema.
    pub schema: &'static str,
    /// The dump.
    pub snapshot: SnapshotInfo,
    /// The selectors that the user gave. All objects that they select are one set.
    pub selectors: Vec<String>,
    /// Options that decide which objects are included in deep sizes, and which references are followed.
    pub options: SizeofOptions,
    /// The selected objects with the largest deep size, the largest first. At most 10 unless --top sets another
    /// limit.
    pub objects: Vec<SizeofObject>,
    /// The selected objects taken as one set.
    pub set: SizeofSet,
    /// The values of the ThreadLocals among the selected objects; null if there is no ThreadLocal.
    pub thread_local: Option<ThreadLocalValues>,
    /// The deep size of the set by class, most bytes first.
    pub by_class: Vec<SizeofClass>,
    /// Number of shared values in the whole dump. The option skip_flyweights leaves them out of deep sizes. Null
    /// without that option.
    pub flyweights: Option<SizeofFlyweights>,
    /// Classes for which skip_final and skip_transient have no information about modifiers of fields; null without these
    /// options.
    pub finals: Option<SizeofFinals>,
    /// The deep size of the set as a tree of lines, with --tree. Each object is counted on only one line, where a
    /// breadth-first search first reaches it. Each line is followed by the lines below it. Contains the 30 lines with
    /// the most bytes unless --top sets another limit. Null without --tree.
    pub tree: Option<Vec<SizeofLine>>,
}

/// Options of deep sizes.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct SizeofOptions {
    /// True if shared values are left out.
    pub skip_flyweights: bool,
    /// True if static fields of selected class objects are not followed.
    pub skip_static: bool,
    /// True if final fields are not followed. This applies only to fields that are known to be final: see `finals`.
    pub skip_final: bool,
    /// True if transient fields are not followed. This applies only to fields that are known to be transient: see
    /// `finals`.
    pub skip_transient: bool,
    /// Regular expressions. Objects of matching classes are left out, and so are the objects that are reachable only
    /// through them.
    pub exclude: Vec<String>,
    /// Regular expressions. Objects of matching classes are counted, but their references are not followed.
    pub stop_at: Vec<String>,
    /// Kinds of java.lang.ref references that are followed and that retain their referent: only strong references
    /// (strong), soft and final references too (soft), or all (all).
    #[schemars(extend("enum" = ["strong", "soft", "all"]))]
    pub refs: &'static str,
}

/// One selected object.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct SizeofObject {
    /// The object's id in this dump.
    #[schemars(extend("pattern" = ID))]
    pub id: String,
    /// Class of the object; `class com.acme.Foo` for the class object of com.acme.Foo.
    pub class: String,
    /// Shallow size of the object, in bytes.
    pub shallow_bytes: u64,
    /// Size of the object and of all objects that are reachable from it by fields and elements, each object
    /// once. 0 for an object that the options leave out.
    pub deep_bytes: u64,
    /// Number of objects that are counted in deep_bytes.
    pub deep_objects: u64,
    /// Bytes that would be freed if the object were removed; null for an unreachable object.
    pub retained_bytes: Option<u64>,
    /// Number of objects that would be freed with it, itself included; null for an unreachable object.
    pub retained_objects: Option<u64>,
}

/// All selected objects, taken as one set.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct SizeofSet {
    /// Number of selected objects.
    pub objects: u64,
    /// Sum of the shallow sizes of the selected objects, in bytes.
    pub shallow_bytes: u64,
    /// Size of the selected objects and of all objects that are reachable from any of them, each object once.
    pub deep_bytes: u64,
    /// Number of objects that are counted in deep_bytes.
    pub deep_objects: u64,
    /// Bytes that would be freed if all selected objects were removed; null if all are unreachable.
    pub retained_bytes: Option<u64>,
    /// Number of objects that would be freed with them; null if all are unreachable.
    pub retained_objects: Option<u64>,
    /// Number of selected objects whose own deep size was measured. Usually, all selected objects were measured. If
    /// this would take too long, because they share many objects, only the selected objects that retain the most were
    /// measured.
    pub measured: u64,
    /// Sum of the deep sizes of the selected objects. If several selected objects reach the same object, it is included
    /// several times, so the sum is larger than the deep size of the set. Null if not all were measured.
    pub sum_deep_bytes: Option<u64>,
    /// Sum of the retained sizes of the selected objects. The sum is larger than the retained size of the set if some
    /// selected objects retain other selected objects. It is smaller if some objects are retained only by several
    /// selected objects together.
    pub sum_retained_bytes: u64,
    /// Size that class tables of reports show: the sum over the instances that no other instance retains. Null
    /// unless the selected objects are all instances of one class.
    pub class_table_bytes: Option<u64>,
}

/// Objects of one class.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct SizeofClass {
    /// Name of the class. Classes with the same name but different loaders share a row.
    pub class: String,
    /// Number of objects.
    pub objects: u64,
    /// Sum of the shallow sizes of these objects, in bytes.
    pub shallow_bytes: u64,
}

/// Objects that are reached by the same fields. Each object is counted where a breadth-first search reaches it first.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct SizeofLine {
    /// Depth of the line: 0 for the selected objects, 1 for the objects to which they refer, and so on.
    pub depth: u32,
    /// How the objects of the line above refer to these: a field, or `[]` for elements of arrays; null for the
    /// selected objects.
    pub via: Option<String>,
    /// Class of the objects; null if they have several classes, or are class objects.
    pub class: Option<String>,
    /// Number of objects on this line.
    pub objects: u64,
    /// Sum of the shallow sizes of these objects, in bytes.
    pub shallow_bytes: u64,
    /// Number of objects on this line and below it at any depth, listed or not.
    pub deep_objects: u64,
    /// Bytes of the objects on this line and below it at any depth, listed or not. On the first line, this is the deep
    /// size of the set.
    pub deep_bytes: u64,
    /// Number of lines directly below this line that are not listed.
    pub hidden_lines: u64,
    /// Deep bytes of the lines that are not listed.
    pub hidden_bytes: u64,
}

/// Shared values in the dump.
#[derive(Clone, Copy, Debug, Default, Serialize, JsonSchema)]
pub struct SizeofFlyweights {
    /// Number of instances of subclasses of java.lang.Enum.
    pub enum_constants: u64,
    /// Number of cached boxes: Boolean.TRUE, Boolean.FALSE and the boxes that valueOf caches.
    pub cached_boxes: u64,
    /// Number of strings that are known to be interned: string constants that classes resolved. Other interned strings
    /// are not marked in a dump, so they are not included.
    pub interned_strings: u64,
}

/// Classes whose final fields are not known, and whose objects are included in the deep size. References in all fields
/// of these classes are followed.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct SizeofFinals {
    /// Number of classes with objects in the deep size for which --classpath has no class file with the same fields as
    /// the dump. Classes with the same name count once. References in their final fields are followed.
    pub unknown_classes: u64,
    /// Names of these classes in alphabetical order, at most 5.
    pub unknown: Vec<String>,
}

impl SizeofReport {
    /// The schema's name.
    pub const SCHEMA: &'static str = "heapdiff.sizeof/1";
}
