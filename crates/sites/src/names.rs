//! Names and numbers of what the agent leaves in the heap.

/// The class, as in Java source.
pub const CLASS: &str = "heapdiff.SampleRef";
/// The class, as in class files.
pub const CLASS_INTERNAL: &str = "heapdiff/SampleRef";
/// The version of everything that this crate describes.
pub const FORMAT: i32 = 1;
/// `mark` of a sampled object.
pub const MARK_SAMPLE: i32 = 1;
/// `mark` of a class definition.
pub const MARK_CLASS: i32 = 2;
/// Places in a chunk of `samples` and `classes`.
pub const CHUNK: usize = 4096;
/// Sites (or types) in a chunk of `totals` and `classTotals`; each takes two `long`s.
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
        /// What the agent counts. Numbers of samples and classes in flight may be missing.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Counter {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Counter {
            /// All, in the order of their places.
            pub const ALL: &'static [Counter] = &[$(Counter::$name,)+];
        }
    };
}

counters! {
    /// The highest uid given so far.
    Uids,
    /// Samples the JVM handed over, whether or not they were kept.
    Events,
    /// Samples recorded.
    Recorded,
    /// Bytes of the recorded samples.
    RecordedBytes,
    /// Class definitions recorded.
    Classes,
    /// Samples and class definitions found to be collected.
    Collected,
    /// Samples that a filter or a strategy left out; no loss.
    Filtered,
    /// Dropped: `max_samples` live samples are kept already and thinning has not come round to it. With [`FewFollowed`](Self::FewFollowed)
    /// what has no place is not among the live samples, and counted all the same.
    DroppedFull,
    /// Dropped: the Java heap or the thread's stack had no room for the agent's object.
    DroppedFailed,
    /// Dropped: an exception was under way in the thread.
    DroppedPending,
    /// Class definitions dropped: table full, or as `DroppedFailed`.
    DroppedClasses,
    /// Live samples dropped by thinning.
    Thinned,
    /// How many times interval or rate were doubled.
    Thinnings,
    /// Recorded with site 0: the JVM gave no stack.
    NoStack,
    /// Recorded with site 0: the site table is full, or the heap had no room for its bytes.
    SitesFull,
    /// Recorded with thread 0 or type 0: too many names.
    NamesFull,
    /// Sites in the table.
    Sites,
    /// Bytes of the site table.
    BlobBytes,
    /// Garbage collections that the JVM reported.
    Collections,
    /// Times the agent's thread looked for collected samples.
    Sweeps,
    /// Faults in the agent itself that it survived.
    Faults,
    /// Bytes that the dropped samples (full, failed, pending) stood for.
    DroppedBytes,
    /// 1 where sampling began as the JVM came up, so that only what the JVM itself makes at its start is older.
    FromStart,
    /// 1 where all samples are counted, at the first interval, and only those are kept in the heap that the present one
    /// keeps: under generational ZGC, whose minor collections keep what has a sample.
    FewFollowed,
}

impl Counter {
    /// The place in the array.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// What `counted` holds, in the order of its places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// When the copy was made, in milliseconds since the epoch; 0: nothing is counted, or nothing was copied yet.
    At,
    /// When counting began, likewise.
    Since,
    /// Classes with counters, each time that one was loaded.
    Classes,
    /// 1 where classes of the JDK's are counted as well.
    Jdk,
    /// Sites for which there was no counter.
    NoRoom,
    /// Sites with a counter for which the heap had no room.
    HeapFull,
    /// Methods that cannot be rewritten.
    LeftAlone,
    /// Classes that cannot be rewritten, or that the JVM did not take.
    Refused,
}

impl Counted {
    /// How many places there are.
    pub const LEN: usize = 8;

    /// The place in the array.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// What frames tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Verbosity {
    /// Class, method and line.
    #[default]
    Line,
    /// Class and method.
    Method,
    /// Class; frames of one class that follow each other are one.
    Class,
}

impl Verbosity {
    /// The number in the static field `verbosity`.
    #[must_use]
    pub const fn code(self) -> i32 {
        match self {
            Self::Line => 0,
            Self::Method => 1,
            Self::Class => 2,
        }
    }

    /// The verbosity of this number.
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
    fn numbers_in_the_heap_stay_what_they_are() {
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
