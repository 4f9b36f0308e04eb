//! Fixed strings in reports, and patterns of other strings. The JSON schemas contain both as constraints on values.

/// The pattern of an object's id.
pub(crate) const ID: &str = "^0x[0-9a-f]+$";

/// Words for the change of figures over time.
pub(crate) const TRENDS: [&str; 10] = [
    "level",
    "steady",
    "uneven",
    "slowing",
    "late",
    "plateau",
    "warm-up",
    "jump",
    "sawtooth",
    "rising-sawtooth",
];

/// Names of the known leak patterns.
pub(crate) const DETECTORS: [&str; 13] = [
    "class-loader",
    "thread-local",
    "listener",
    "queue",
    "weak-map",
    "finalizer",
    "cleaner",
    "direct-buffer",
    "delete-on-exit",
    "timer",
    "virtual-thread",
    "slice",
    "hash-key",
];

/// Events of flight recordings that have samples of objects.
pub(crate) const EVENTS: [&str; 5] = [
    "jdk.OldObjectSample",
    "profiler.LiveObject",
    "jdk.ObjectAllocationSample",
    "jdk.ObjectAllocationInNewTLAB",
    "jdk.ObjectAllocationOutsideTLAB",
];

/// Returns the given words and null: the allowed values of a key.
pub(crate) fn or_null(words: &[&'static str]) -> Vec<Option<&'static str>> {
    let words = words.iter().copied().map(Some);
    std::iter::once(None).chain(words).collect()
}
