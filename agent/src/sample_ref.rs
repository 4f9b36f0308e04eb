//! The class `heapdiff.SampleRef`: the names by which the agent uses it. The class itself is in `java/`.

use heapdiff_bytecode::Damage;

use crate::java;

pub(crate) const CONSTRUCTOR: &str = "(Ljava/lang/Object;JJIIIIII)V";
pub(crate) const SWEEP: &str = "sweep";
pub(crate) const SCAN: &str = "([Ljava/lang/Object;[Ljava/lang/Object;[I)I";
pub(crate) const DRAIN: &str = "([Ljava/lang/Object;[I)I";
pub(crate) const QUEUE: &str = "queue";

pub(crate) const REFERENCE_QUEUE: &str = "java/lang/ref/ReferenceQueue";
pub(crate) const QUEUE_TYPE: &str = "Ljava/lang/ref/ReferenceQueue;";

/// How the agent finds out which objects were collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reaper {
    /// By `Reference.refersTo(null)`.
    Scan,
    /// By a reference queue.
    Queue,
}

/// Returns the class file.
pub(crate) fn bytes(reaper: Reaper) -> Result<Vec<u8>, Damage> {
    java::sample_ref(reaper == Reaper::Queue)
}
