//! Sentences that warn about the dumps of a report. Warnings about a single file come from `hprof`, which does not
//! depend on this crate.

use std::fmt;

use heapdiff_units::{counted, grouped};

/// A reason why figures may be wrong, or why differences may not be growth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Warning {
    /// The dump is truncated or damaged.
    Damaged { path: String },
    /// The dump lacks the frames of parked virtual threads.
    NoParkedFrames { path: String },
    /// The dump lacks most GC roots.
    NoRoots { path: String },
    /// The same file is named twice.
    NamedTwice { path: String },
    /// Two files have the same dump.
    SameDump { first: String, second: String },
    /// The second dump was taken before the first.
    Order { first: String, second: String },
    /// The dumps are of two different programs, which have only this number of class names in common.
    TwoPrograms {
        first: String,
        second: String,
        common: usize,
        of: usize,
    },
    /// The dumps are of two different JVMs. `why` is the property in which they differ.
    TwoJvms {
        first: String,
        second: String,
        why: String,
    },
    /// The agent's table of watched collections was full, so some collections were not watched.
    Unwatched { collections: u64 },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Damaged { path } => write!(
                f,
                "{path} is damaged or truncated: the figures do not include the part that could not be read"
            ),
            Self::NoParkedFrames { path } => write!(
                f,
                "{path} has no frames of parked virtual threads (JDK 19 to 21), so reachable objects may \
                 count as unreachable, and unreachable objects as reachable"
            ),
            Self::NoRoots { path } => write!(
                f,
                "{path} has no Java frames, no JNI globals and no system classes among its GC roots (jhsdb), so \
                 reachable objects may count as unreachable, and unreachable objects as reachable"
            ),
            Self::NamedTwice { path } => {
                write!(
                    f,
                    "{path} is given twice: a dump does not differ from itself"
                )
            }
            Self::SameDump { first, second } => write!(f, "{first} and {second} are the same dump"),
            Self::Order { first, second } => write!(f, "{second} was taken before {first}"),
            Self::TwoPrograms {
                first,
                second,
                common,
                of,
            } => write!(
                f,
                "{first} and {second} come from different programs (they share {common} of {}): differences between them \
                 are not growth",
                counted(*of as u64, "class name")
            ),
            Self::TwoJvms { first, second, why } => write!(
                f,
                "{first} and {second} come from two JVMs ({why}): differences between two runs are not always growth"
            ),
            Self::Unwatched { collections } => {
                let plural = if *collections == 1 { "" } else { "s" };
                let count = grouped(*collections);
                write!(
                    f,
                    "the agent had no room to watch at least {count} more large collection{plural}, so the use of these collections is unknown"
                )
            }
        }
    }
}
