//! Names of classes and fields, and constants, of the data that the agent stores in the heap.

/// Name of the Java class that holds the data, as in Java source.
pub const CLASS: &str = "heapdiff.SampleRef";
/// Name of the same class, as in class files.
pub const CLASS_INTERNAL: &str = "heapdiff/SampleRef";
/// Name of the Java class through which threads get labels, as in Java source. It has no data.
pub const LABELS_CLASS: &str = "heapdiff.Labels";
/// Version of the format that this crate describes.
pub const FORMAT: i32 = 1;
/// Value of the field `mark` in the agent's record (`SampleRef`) of a sampled object.
pub const MARK_SAMPLE: i32 = 1;
/// Value of the field `mark` in the agent's record (`SampleRef`) of a class definition.
pub const MARK_CLASS: i32 = 2;
/// Number of elements in a chunk of `samples` and `classes`.
pub const CHUNK: usize = 4096;
/// Number of sites (or types) in a chunk of `totals` and `classTotals`; each takes two `long`s.
pub const TOTALS_CHUNK: usize = 1024;

/// Names of static fields.
#[allow(
    missing_docs,
    reason = "the table in the crate documentation explains these names"
)]
pub mod statics {
    pub const FORMAT: &str = "format";
    pub const STARTED: &str = "started";
    pub const PID: &str = "pid";
    pub const STRATEGY: &str = "strategy";
    pub const INTERVAL: &str = "interval";
    pub const RATE: &str = "rate";
    pub const FIRST_INTERVAL: &str = "firstInterval";
    pub const FIRST_RATE: &str = "firstRate";
    pub const DEPTH: &str = "depth";
    pub const VERBOSITY: &str = "verbosity";
    pub const COUNTERS: &str = "counters";
    pub const SAMPLES: &str = "samples";
    pub const CLASSES: &str = "classes";
    pub const BLOBS: &str = "blobs";
    pub const TOTALS: &str = "totals";
    pub const CLASS_TOTALS: &str = "classTotals";
    pub const ALLOCATED: &str = "allocated";
    pub const SITE_TYPES: &str = "siteTypes";
    pub const COUNTED: &str = "counted";
    pub const COUNTED_SITES: &str = "countedSites";
    pub const COUNTED_TOTALS: &str = "countedTotals";
    pub const USAGE: &str = "usage";
    pub const RECENT: &str = "recent";
    pub const RECENT_DIED: &str = "recentDied";
    pub const RESERVOIR: &str = "reservoir";
    pub const RESERVOIR_DIED: &str = "reservoirDied";
    pub const DEAD: &str = "dead";
    pub const PLACES: &str = "places";
}

/// Names of instance fields.
#[allow(
    missing_docs,
    reason = "the table in the crate documentation explains these names"
)]
pub mod fields {
    pub const REFERENT: &str = "referent";
    pub const MARK: &str = "mark";
    pub const UID: &str = "uid";
    pub const SIZE: &str = "size";
    pub const SITE: &str = "site";
    pub const TYPE: &str = "type";
    pub const THREAD: &str = "thread";
    pub const TIME: &str = "time";
}

macro_rules! counters {
    ($($(#[doc = $doc:literal])+ $name:ident,)+) => {
        /// A counter of the agent. It may lack samples and classes that the agent was recording when the dump was
        /// taken.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Counter {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Counter {
            /// All counters, in the order of their indices.
            pub const ALL: &'static [Counter] = &[$(Counter::$name,)+];
        }
    };
}

counters! {
    /// The highest uid that the agent has assigned so far.
    Uids,
    /// Samples that the JVM reported, whether or not the agent recorded them.
    Events,
    /// Samples recorded.
    Recorded,
    /// Bytes of the recorded samples.
    RecordedBytes,
    /// Class definitions recorded.
    Classes,
    /// Samples and class definitions that the agent found dead: a GC has collected their objects.
    Collected,
    /// Samples excluded by a filter or a strategy. They do not count as lost.
    Filtered,
    /// Samples dropped because the agent already stores `max_samples` live samples, and downsampling has not made room
    /// yet. With [`FewFollowed`](Self::FewFollowed), the totals still count such a sample.
    DroppedFull,
    /// Samples dropped because the Java heap or the thread's stack had no room for the agent's object.
    DroppedFailed,
    /// Samples dropped because an exception was pending in the thread.
    DroppedPending,
    /// Class definitions dropped because the table is full, or because there was no room for the agent's object.
    DroppedClasses,
    /// Live samples dropped by downsampling.
    Thinned,
    /// Number of times that the agent doubled `interval` or `rate`.
    Thinnings,
    /// Samples recorded with site 0 because the JVM returned no stack.
    NoStack,
    /// Samples recorded with site 0 because the site table is full, or because the heap had no room for the bytes of
    /// the site.
    SitesFull,
    /// Samples recorded with thread 0 or type 0 because there are too many names.
    NamesFull,
    /// Number of sites in the table.
    Sites,
    /// Bytes of the site table.
    BlobBytes,
    /// Garbage collections that the JVM reported.
    Collections,
    /// Number of times that the agent's thread looked for dead samples.
    Sweeps,
    /// Internal errors after which the agent continued.
    Faults,
    /// Bytes that dropped samples represent: samples dropped because the table was full, because there was no room for
    /// the agent's object, or because an exception was pending.
    DroppedBytes,
    /// 1 if sampling began when the JVM started, so that only the JVM's first objects were allocated before sampling
    /// began.
    FromStart,
    /// 1 if the agent tracks only some of the samples. The totals count all samples of the initial sampling interval.
    /// The heap stores only the samples that the current interval also selects. The agent does this with generational
    /// ZGC, whose young GCs treat sampled objects as live.
    FewFollowed,
    /// Samples of value objects. The JVM does not let an agent track value objects, so only the totals count them.
    Values,
}

impl Counter {
    /// Returns the index in the array.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// The elements of the array `counted`, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// Time at which the counters were last copied into the heap, in milliseconds since 1970. 0 if the agent does not
    /// count, or has not copied the counters yet.
    At,
    /// Start of the counting, in milliseconds since 1970.
    Since,
    /// Number of classes into which the agent inserted counters. A class that is loaded several times counts several
    /// times.
    Classes,
    /// 1 if JDK classes are counted, too.
    Jdk,
    /// Number of allocation sites for which the agent had no counter left.
    NoRoom,
    /// Number of allocation sites that have a counter, but whose count is missing because the heap had no room for it.
    HeapFull,
    /// Number of methods into which the agent could not insert counters.
    LeftAlone,
    /// Number of classes into which the agent could not insert counters, or whose changed version the JVM rejected.
    Refused,
}

impl Counted {
    /// Number of elements.
    pub const LEN: usize = 8;

    /// Returns the index in the array.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// The parts of a frame that the agent records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Verbosity {
    /// Class, method and line.
    #[default]
    Line,
    /// Class and method.
    Method,
    /// Only the class is recorded. Consecutive frames of one class are merged.
    Class,
}

impl Verbosity {
    /// Returns the number in the static field `verbosity`.
    #[must_use]
    pub const fn code(self) -> i32 {
        match self {
            Self::Line => 0,
            Self::Method => 1,
            Self::Class => 2,
        }
    }

    /// Returns the verbosity with this number.
    #[must_use]
    pub const fn from_code(code: i32) -> Option<Self> {
        match code {
            0 => Some(Self::Line),
            1 => Some(Self::Method),
            2 => Some(Self::Class),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_stored_in_the_heap_do_not_change() {
        for (place, counter) in Counter::ALL.iter().enumerate() {
            assert_eq!(counter.index(), place);
        }
        for (code, verbosity) in [
            (0, Verbosity::Line),
            (1, Verbosity::Method),
            (2, Verbosity::Class),
        ] {
            assert_eq!(verbosity.code(), code);
            assert_eq!(Verbosity::from_code(code), Some(verbosity));
        }
        assert_eq!(Verbosity::from_code(3), None);
        assert_eq!(Verbosity::from_code(-1), None);
    }
}
