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
    /// The classes with the most unreachable bytes, at most 3; at most 10 with `heapdiff top --unreachable`.
    pub classes: Vec<OwnedClass>,
    /// Unreachable objects that no other unreachable object refers to, grouped by class. The limit is the same as for
    /// `classes`. `objects` is the number of these objects in one class. `bytes` is the size of these objects, and of
    /// the objects that only they refer to, directly or indirectly.
    pub holders: Vec<OwnedClass>,
}
