//! Sentences about wasted memory.

use std::fmt;

/// A statement about all waste of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Waste {
    /// The bytes that could be saved in one dump. `size` can have a style; `share` is the part of the reachable heap.
    Savings {
        /// The bytes.
        size: String,
        /// Their part of the reachable heap.
        share: String,
    },
    /// The bytes that could be saved in the last of several dumps.
    SavingsSince {
        /// The bytes.
        size: String,
        /// The change since the first dump, with its sign.
        change: String,
        /// Their part of the reachable heap.
        share: String,
    },
    /// Small kinds have no list of examples.
    SmallKinds,
}

impl fmt::Display for Waste {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Savings { size, share } => {
                write!(f, "{size} could be saved: {share} of the reachable heap")
            }
            Self::SavingsSince {
                size,
                change,
                share,
            } => write!(
                f,
                "{size} could be saved, {change} since the first dump: {share} of the reachable heap"
            ),
            Self::SmallKinds => f.write_str(
                "kinds below 1% of the total have no list here (--format json has all lists)",
            ),
        }
    }
}
