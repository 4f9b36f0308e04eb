//! Mappings from names that a shrinker, such as ProGuard or R8, changed to the original names.

use crate::answers::Frame;

/// The names that classes, fields and methods had before a shrinker shortened them.
pub trait NameMapping: std::fmt::Debug + Send + Sync {
    /// Returns the original name of a class, an array class, or a class that the JVM derived from one (`a.b[]`,
    /// `a.b$$Lambda/0x1`), as in Java source; `None` if the mapping does not have it.
    fn class(&self, name: &str) -> Option<String>;

    /// Returns the original name of a field of the class with this name in the dump. `kind` is the field's type as in
    /// Java source, or `Object` for all references. Several fields with different types may have one name.
    fn field(&self, class: &str, field: &str, kind: &str) -> Option<&str>;

    /// Returns the original frames of a frame, the innermost first. The result has several frames if methods were
    /// inlined. Returns `None` if the mapping does not have the class.
    ///
    /// If the frame has no line, or a line that the mapping does not have, several original methods may be possible.
    /// Then the result is one frame with the names of all these methods: `add|remove`.
    fn frames(&self, frame: &Frame) -> Option<Vec<Frame>>;

    /// Returns a hash that distinguishes this mapping of names from other mappings.
    fn hash(&self) -> u64;

    /// True if any name that was looked up is in the mapping.
    fn fits(&self) -> bool;

    /// Records that a name that was looked up is in the mapping. From then on, [`NameMapping::fits`] returns true.
    fn set_used(&self);
}
