//! `heapdiff.count/1`: the allocations of a running JVM, counted for a while.

use schemars::JsonSchema;
use serde::Serialize;

/// The report of `heapdiff count --format json`: what a running JVM allocated while its allocations were
/// counted. Later versions may add keys.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct CountReport {
    /// Name of the schema.
    pub schema: &'static str,
    /// Process id and main class, as in the text report.
    pub process: String,
    /// Milliseconds between the two readings of the counters.
    pub millis: u64,
    /// True if JDK classes were counted, too (--jdk). Their counts are lower bounds, because the JIT compiler
    /// replaces some of their methods with its own code.
    pub jdk: bool,
    /// True if allocations were counted only in those classes whose methods are in stacks that the agent sampled
    /// (--sampled-classes). Reports of earlier versions lack the key.
    #[schemars(extend("optional" = true))]
    pub only_sampled: bool,
    /// Number of class files that got counters. Each class counts once. Classes that were loaded during the count are
    /// included.
    pub classes: u64,
    /// Totals of all sites, listed or not.
    pub totals: CountTotals,
    /// One entry for each combination of method, line and allocated class. Entries with the most bytes come first; of
    /// equal entries, those with the most objects. Contains all entries unless --top limits them.
    pub sites: Vec<CountSite>,
    /// Allocations that could not be counted.
    pub missed: CountMissed,
}

/// Allocation counts at the time when the agent copied its counters into the heap (`count=on`).
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct CountedInDump {
    /// Milliseconds from the start of the count to the copy of the counters in the heap.
    pub millis: u64,
    /// Milliseconds from the copy of the counters to the dump.
    pub before_dump_ms: u64,
    /// True if JDK classes are counted, too. Their counts are lower bounds, because the JIT compiler replaces
    /// some of their methods with its own code.
    pub jdk: bool,
    /// Totals of all sites, listed or not.
    pub totals: CountTotals,
    /// One entry for each combination of method, line and allocated class. Entries with the most bytes come first; of
    /// equal entries, those with the most objects. Contains all entries unless --top limits them.
    pub sites: Vec<CountSite>,
    /// Allocations that are not counted.
    pub missed: CountedMissed,
    /// Lines of code for which the samples and the count differ by more than random variation, the largest difference
    /// first. If the samples show fewer bytes than the count, the JIT compiler may have removed allocations, which are
    /// counted but never sampled. Or the line called a JDK method that copies an object, such as clone or copyOf. Such
    /// copies are counted at the line, but their samples belong to the JDK method. If the samples show more bytes, some
    /// allocations of the line are not counted. Reports of earlier versions lack the key.
    #[schemars(extend("maxItems" = 10, "optional" = true))]
    pub disagreements: Vec<LineDisagreement>,
    /// Number of lines of code for which the samples and the count differ, listed or not. Reports of earlier versions
    /// lack the key.
    #[schemars(extend("optional" = true))]
    pub disagreement_count: u64,
}

/// A line of code for which the samples and the count differ.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct LineDisagreement {
    /// Name of the class that contains the line.
    pub class: String,
    /// The method.
    pub method: String,
    /// The line.
    pub line: u32,
    /// Counted bytes of all classes that are allocated at the line.
    pub counted_bytes: u64,
    /// Estimate of the allocated bytes, from samples.
    pub estimated_bytes: u64,
    /// 99 % confidence interval of the estimate by samples. The interval includes large objects that a JVM before JDK
    /// 25 may not have sampled.
    pub ci99: [u64; 2],
}

/// Allocations that could not be counted, as far as a dump records them.
#[derive(Clone, Copy, Debug, Default, Serialize, JsonSchema)]
pub struct CountedMissed {
    /// Number of sites for which there was no counter left, or no room in the heap.
    pub sites: u64,
    /// Number of methods that cannot be instrumented.
    pub methods: u64,
    /// Number of classes that cannot be instrumented, or that the JVM rejected.
    pub classes: u64,
}

/// Totals of all sites, listed or not.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct CountTotals {
    /// Number of sites that allocated during the count, listed or not.
    pub sites: u64,
    /// Number of executed allocations, including those that the JIT compiler removes.
    pub objects: u64,
    /// Bytes of the counted allocations, without the sites whose bytes are not known.
    pub bytes: u64,
    /// Number of sites whose bytes are not known.
    pub sites_without_bytes: u64,
}

/// An allocation site.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct CountSite {
    /// Name of the class that contains the code, in the form com.acme.Foo$Bar. In traces, `(other lines)` stands for
    /// all lines that are left out because of the limit `trace_max`.
    pub class: String,
    /// The method. Overloads with the same lines in the source share an entry.
    pub method: String,
    /// The line; null if the class has no line numbers.
    #[schemars(extend("minimum" = 1))]
    pub line: Option<u32>,
    /// Name of the allocated class, in the form com.acme.Foo$Bar or byte[].
    pub allocated: String,
    /// Number of allocations.
    pub objects: u64,
    /// Bytes of these allocations. Null if the bytes are not known, for one of these reasons: the JVM did not report
    /// the size of an object, or the dump has no class of this name, or classes of this name have different sizes.
    pub bytes: Option<u64>,
}

/// Allocations that could not be counted.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct CountMissed {
    /// Number of sites for which the agent had no counter left.
    pub sites: u64,
    /// Number of methods that cannot be instrumented.
    pub methods: u64,
    /// Names of at most 20 methods that cannot be instrumented, each with the reason.
    #[schemars(extend("maxItems" = 20))]
    pub method_names: Vec<String>,
    /// Number of classes that cannot be instrumented, or that the JVM rejected.
    pub classes: u64,
    /// Names of at most 20 classes that cannot be instrumented or that the JVM rejected, each with the reason.
    #[schemars(extend("maxItems" = 20))]
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
