//! A summary of unreachable objects: their classes, and the objects that would hold them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::owners::OwnedClass;

/// The unreachable objects of a dump. A GC would free them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnreachableSummary {
    /// Number of unreachable objects.
    pub objects: u64,
    /// Sum of their shallow sizes.
    pub bytes: u64,
    /// Part of all bytes of the dump, in percent.
    pub percent: u64,
    /// The classes with the most of these bytes, at most 3; at most 10 with `heapdiff top --unreachable`.
    pub classes: Vec<OwnedClass>,
    /// Unreachable objects that no other unreachable object refers to, by class, as many as in `classes`. `objects` is
    /// their number. `bytes` is the size of what only objects of this class would hold, themselves included.
    pub holders: Vec<OwnedClass>,
}
