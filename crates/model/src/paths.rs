//! `heapdiff.paths/1`: paths from GC roots to objects.

use schemars::JsonSchema;
use serde::Serialize;

use crate::show::SelectedTotals;
use crate::snapshot::SnapshotInfo;
use crate::words::ID;

/// The report of `heapdiff paths --format json`: paths from GC roots to objects. Later versions may add keys.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct PathsReport {
    /// Name of the schema.
    pub schema: &'static str,
    /// The dump.
    pub snapshot: SnapshotInfo,
    /// The selector that the user gave.
    pub selector: String,
    /// The classes and fields through which no path leads (--exclude).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("minItems" = 1))]
    pub excluded: Vec<String>,
    /// Totals of all objects that the selector selects.
    pub selected: SelectedTotals,
    /// Number of selected objects without a path: unreachable objects, and objects held only by references that
    /// --refs does not follow.
    pub without_path: u64,
    /// Shortest paths to all selected objects. Paths are merged if they reach objects of one class by the same
    /// references. Each line of the tree is followed by the lines below it; among these, the lines that lead to the
    /// most objects come first. The path to a single object has one line per object. At most 30 lines unless --top sets
    /// another limit.
    pub tree: Vec<PathLine>,
    /// Lines of depth 0 that are left out because of the limit, together with the lines below them.
    pub hidden: Hidden,
    /// The result of --alternatives.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Alternatives")]
    pub alternatives: Option<Alternatives>,
}

/// Paths without a common reference, and the smallest set of references whose removal leaves no path.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct Alternatives {
    /// Number of paths. No two of them have a common reference. Each leads to one of the selected objects.
    pub count: u64,
    /// True if there are more such paths than the user asked for.
    pub more: bool,
    /// The paths, in the form of `tree`. The shortest path comes first.
    pub tree: Vec<PathLine>,
    /// Lines of depth 0 that are left out because of the limit, together with the lines below them.
    pub hidden: Hidden,
    /// A smallest set of references whose removal frees the selected objects. Null if each such set has more than three
    /// references. Objects that GC roots hold directly are not freed. Empty if no other object has a path.
    pub cut: Option<Vec<CutLine>>,
    /// Number of selected objects that GC roots hold directly.
    pub held_by_roots: u64,
}

/// A reference to remove.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct CutLine {
    /// Class of the object that has the reference, in the form `com.acme.Foo`, or `class com.acme.Foo` for a class
    /// object.
    pub class: String,
    /// Id of this object.
    #[schemars(extend("pattern" = ID))]
    pub id: String,
    /// The reference, as in `via` of a path.
    pub via: String,
    /// Class of the object that it refers to.
    pub to_class: String,
    /// Id of the object that it refers to.
    #[schemars(extend("pattern" = ID))]
    pub to_id: String,
}

/// A line of the tree of paths: objects that are reached through the same references.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct PathLine {
    /// Depth of this line in the tree of paths: 0 for the start of a path, otherwise 1 more than the line from which it
    /// is reached.
    pub depth: u32,
    /// At depth 0: `static` if the path goes through a static field of an application class, otherwise the kind of the
    /// GC root. Null at other depths.
    pub root: Option<&'static str>,
    /// The reference by which the objects of the line above refer to these objects: `com.acme.Foo.entries`, `[]` or
    /// `[12]` (elements), `<local variable>`, `<class loader>` and so on; null at depth 0.
    pub via: Option<String>,
    /// The kind of the reference: strong, unless a java.lang.ref object refers to its referent. Then the class of that
    /// object determines the kind.
    #[schemars(extend("enum" = ["strong", "soft", "final", "weak", "phantom"]))]
    pub strength: &'static str,
    /// Name of the class, in the form `com.acme.Foo$Bar` or `byte[]`.
    pub class: String,
    /// Name of the class loader. Only if several classes have this name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub loader: Option<String>,
    /// Id of the object if the line is a single object; null otherwise.
    #[schemars(extend("pattern" = ID))]
    pub id: Option<String>,
    /// Number of objects on this line.
    pub objects: u64,
    /// True if some of the objects on this line are reached through others on the same line, as in a linked list.
    pub folded: bool,
    /// Number of selected objects that are reached through this line, including those on the line itself.
    pub selected: u64,
    /// Number of selected objects on this line.
    pub selected_here: u64,
    /// Shallow bytes of the selected objects that are reached through this line, including those on the line itself.
    pub selected_bytes: u64,
    /// Lines below this line, at any depth, that are left out because of the limit.
    pub hidden: Hidden,
}

/// Lines that are left out because of the limit.
#[derive(Clone, Copy, Debug, Default, Serialize, JsonSchema)]
pub struct Hidden {
    /// Number of lines.
    pub lines: u64,
    /// Number of selected objects that are reached through these lines.
    pub selected: u64,
}

impl PathsReport {
    /// The schema's name.
    pub const SCHEMA: &'static str = "heapdiff.paths/1";
}
