//! `heapdiff.count/1`: allocations of a running JVM, counted.

use serde::Serialize;

/// What was counted.
#[derive(Debug, Serialize)]
pub struct CountReport {
    /// The schema's name.
    pub schema: &'static str,
    /// The process, with its main class.
    pub process: String,
    /// The time between the two readings of the counters.
    pub millis: u64,
    /// Whether classes of the JDK's were counted, too.
    pub jdk: bool,
    /// True if only classes in sampled stacks were counted.
    pub only_sampled: bool,
    /// Class files that got counters.
    pub classes: u64,
    /// All sites together, those that are not listed included.
    pub totals: CountTotals,
    /// Sites by bytes, then by objects, most first.
    pub sites: Vec<CountSite>,
    /// What was not counted.
    pub missed: CountMissed,
}

/// What the agent had counted when it copied its counters into the heap (`count=on`).
#[derive(Debug, Serialize)]
pub struct CountedInDump {
    /// From the begin of the count to the copy.
    pub millis: u64,
    /// From the copy to the dump.
    pub before_dump_ms: u64,
    /// Whether classes of the JDK's are counted, too.
    pub jdk: bool,
    /// All sites together, those that are not listed included.
    pub totals: CountTotals,
    /// Sites by bytes, then by objects, most first.
    pub sites: Vec<CountSite>,
    /// What was not counted.
    pub missed: CountedMissed,
    /// Lines of which samples say something else, by the difference, the largest first; at most ten.
    pub disagreements: Vec<LineDisagreement>,
    /// How many there are.
    pub disagreement_count: u64,
}

/// A line whose count and whose samples contradict each other.
#[derive(Clone, Debug, Serialize)]
pub struct LineDisagreement {
    /// The class whose code it is.
    pub class: String,
    /// Its method.
    pub method: String,
    /// The line.
    pub line: u32,
    /// Bytes that were counted, whatever is allocated there.
    pub counted_bytes: u64,
    /// Bytes that samples say.
    pub estimated_bytes: u64,
    /// The 99 % interval of that.
    pub ci99: [u64; 2],
}

/// What was not counted, as far as a dump tells.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct CountedMissed {
    /// Sites for which there was no counter, or no room in the heap.
    pub sites: u64,
    /// Methods that cannot be rewritten.
    pub methods: u64,
    /// Classes that cannot be rewritten, or that the JVM did not take.
    pub classes: u64,
}

/// All sites together.
#[derive(Debug, Default, Serialize)]
pub struct CountTotals {
    /// Sites that allocated.
    pub sites: u64,
    /// Allocations.
    pub objects: u64,
    /// Their bytes, of the sites of which they are known.
    pub bytes: u64,
    /// Sites whose bytes are not known.
    pub sites_without_bytes: u64,
}

/// A site.
#[derive(Debug, Serialize)]
pub struct CountSite {
    /// The class whose code it is.
    pub class: String,
    /// The method.
    pub method: String,
    /// The line, if the class tells lines.
    pub line: Option<u32>,
    /// The class of what is allocated.
    pub allocated: String,
    /// Allocations.
    pub objects: u64,
    /// Their bytes; `None` if the JVM did not tell the size of one.
    pub bytes: Option<u64>,
}

/// What was not counted, though it was asked for.
#[derive(Debug, Default, Serialize)]
pub struct CountMissed {
    /// Sites for which the agent had no counter left.
    pub sites: u64,
    /// Methods that cannot be rewritten.
    pub methods: u64,
    /// Some of them, with the reason.
    pub method_names: Vec<String>,
    /// Classes that cannot be rewritten, or that the JVM did not take.
    pub classes: u64,
    /// Some of them, with the reason.
    pub class_names: Vec<String>,
}

impl From<CountedMissed> for CountMissed {
    fn from(missed: CountedMissed) -> Self {
        Self {
            sites: missed.sites,
            methods: missed.methods,
            classes: missed.classes,
            ..Self::default()
        }
    }
}

impl CountReport {
    /// The schema's name.
    pub const SCHEMA: &'static str = "heapdiff.count/1";
}
