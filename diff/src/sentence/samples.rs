//! Sentences about allocation samples: how they were taken, what they cover, and why their figures are uncertain.

use std::fmt;

use heapdiff_units::{Size, counted, grouped};

/// The end of sentences which say that samples cannot be used.
pub const SITES_LEFT_OUT: &str = "; allocation sites are left out";

/// A statement about allocation samples, or about the stacks in them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Samples {
    /// The current sampling rate, and the rate at the start if it was another one.
    Rate { rate: Rate, first: First },
    /// Sampled objects that were freed. `median_ms` is the median of their lifetimes in milliseconds.
    Freed {
        samples: u64,
        median_ms: Option<u64>,
    },
    /// The memory that the agent itself uses. The sizes of a sample and of a stack are means.
    AgentHeap {
        size: Size,
        samples: u64,
        sample_bytes: u64,
        stacks: u64,
        stack_bytes: u64,
    },
    /// The dump has the allocation stack of each object.
    Exact,
    /// The text that replaces a stack. Used for objects for which no stack was recorded.
    NoStack,

    /// The total of all live samples. `from` is the number of stacks or classes, `focus` the pattern of `--focus`.
    Live {
        amount: String,
        samples: u64,
        from: String,
        reachable: Size,
        focus: Option<String>,
    },
    /// The total of all allocations since the agent's start. `things` is the word for what is counted: samples or
    /// objects.
    Allocated {
        amount: String,
        span: String,
        things: String,
        from: String,
        focus: Option<String>,
    },
    /// Explains the columns of figures about all allocations, dead or alive.
    AllocatedColumns,
    /// The objects and samples of one stack. `is_counted` is true if the allocations of the stack were also counted
    /// exactly.
    Stack {
        objects: u64,
        samples: u64,
        is_counted: bool,
        alive: Alive,
    },
    /// The part of all bytes that was allocated through one frame.
    Through {
        permille: u64,
        stacks: u64,
        of: usize,
    },
    /// The dump has no sample of the content of a suspect.
    NotTracked,

    /// The part of a suspect that is covered by samples.
    Covered {
        sampled: Size,
        size: Size,
        whole: Whole,
        samples: u64,
    },
    /// The part of a suspect that is not covered by samples.
    Uncovered { size: Size, whole: Whole },
    /// The part of the heap that is not covered by samples.
    UncoveredHeap { size: Size, reachable: Size },
    /// The samples represent more bytes than the suspect has.
    MoreThan(Whole),
    /// The part of the bytes that was allocated by stacks without a sample.
    OtherStacks { size: Size },
    /// The samples of a suspect that the agent lost. They represent at most `size`.
    Lost { size: Size },
    /// Numbers of samples that the agent lost, with the reasons for the loss. `size` is an upper bound of the bytes
    /// that these samples represent.
    AllLost {
        reasons: Vec<(u64, String)>,
        size: Size,
    },

    /// JVMs before JDK 25 sample too few large objects. `is_live` is true if the objects are alive.
    LargeObjects { size: Size, is_live: bool },
    /// For some stacks, it is unknown how many of their objects are alive.
    AliveUnknown,
    /// Samples were taken by time.
    ByTime,
    /// The agent lost samples.
    AgentLost {
        size: Size,
        reasons: Vec<(u64, Loss)>,
    },
    /// The agent failed.
    AgentFailed,
    /// The samples cannot be read.
    Unreadable { why: String },
    /// The samples represent fewer allocated bytes than the agent counted exactly.
    LessThanCounted,
    /// The samples represent more allocated bytes than the agent counted exactly.
    MoreThanCounted,
}

/// The sampling rate: how often a sample is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// Each allocation is sampled, except those that a filter excludes and samples that were lost. If `is_counted` is
    /// true, the sentence says "counted" in place of "sampled".
    Each {
        is_filtered: bool,
        has_lost: bool,
        is_counted: bool,
    },
    /// Mean number of allocated bytes between samples.
    Bytes(u64),
    /// Mean time between samples, in milliseconds.
    Milliseconds(u64),
    /// Mean number of allocated objects of one class between samples of this class.
    OfClass(u64),
    /// Mean number of allocated objects between samples.
    Objects(u64),
}

/// The sampling rate at the start, compared with the current rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum First {
    /// The rate at the start was the current rate.
    Same,
    /// The rate at the start was higher than the current rate.
    Other(Rate),
    /// The agent still takes and counts samples at its initial rate, but tracks only a part of these samples.
    Counted(Rate),
}

/// The figure with which the samples of a suspect are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whole {
    /// The growth between dumps.
    Growth,
    /// The retained size in one dump.
    Retained,
}

/// The part of a stack's bytes that is alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alive {
    /// The part in thousandths.
    Permille(u64),
    /// It is unknown which part is alive, because there are too few samples of freed objects.
    Unknown,
    /// The report does not state which part of the samples is alive.
    Omitted,
}

/// The reason why the agent lost samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The table of samples was full.
    TableFull,
    /// The agent's table of tracked samples was full.
    TrackedFull,
    /// The heap was full.
    HeapFull,
    /// The thread was throwing an exception.
    Exception,
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Each { .. } => f.write_str("every allocation"),
            Self::Bytes(bytes) => write!(f, "one every {}", Size(*bytes)),
            Self::Milliseconds(ms) => write!(f, "one every {ms} ms"),
            Self::OfClass(objects) | Self::Objects(objects) => {
                write!(f, "one every {}", grouped(*objects))
            }
        }
    }
}

impl Rate {
    /// Writes the rate as a whole sentence.
    fn whole(self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Each {
                is_filtered,
                has_lost,
                is_counted,
            } => {
                f.write_str(match (is_filtered, has_lost) {
                    (false, false) => "every allocation",
                    (true, false) => "every allocation that passes the filters",
                    (false, true) => "every allocation except lost ones",
                    (true, true) => "every allocation that passes the filters, except lost ones,",
                })?;
                f.write_str(if is_counted {
                    " is counted"
                } else {
                    " is sampled"
                })
            }
            Self::Bytes(bytes) => write!(f, "one sample every {} allocated", Size(bytes)),
            Self::Milliseconds(ms) => write!(f, "one sample every {ms} ms"),
            Self::OfClass(objects) => {
                write!(
                    f,
                    "one sample every {} objects of a class",
                    grouped(objects)
                )
            }
            Self::Objects(objects) => write!(f, "one sample every {} objects", grouped(objects)),
        }
    }
}

impl fmt::Display for Whole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Growth => "growth",
            Self::Retained => "retained size",
        })
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TableFull => "its table was full (max_samples)",
            Self::TrackedFull => "there was no room to track them",
            Self::HeapFull => "the heap had no room for them",
            Self::Exception => "the thread was throwing an exception",
        })
    }
}

impl fmt::Display for Alive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Permille(1000) => f.write_str(", all alive"),
            Self::Permille(0..10) => f.write_str(", under 1 % alive"),
            Self::Permille(permille) => write!(f, ", {} % alive", permille / 10),
            Self::Unknown => f.write_str(", alive: unknown"),
            Self::Omitted => Ok(()),
        }
    }
}

impl fmt::Display for Samples {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rate { rate, first } => {
                rate.whole(f)?;
                match first {
                    First::Same => Ok(()),
                    First::Other(first) => write!(f, ", at first {first}"),
                    First::Counted(each @ Rate::Each { .. }) => {
                        f.write_str(" is tracked, ")?;
                        each.whole(f)
                    }
                    First::Counted(first) => write!(f, " is tracked, {first} is counted"),
                }
            }
            Self::Freed { samples, median_ms } => {
                write!(f, "{} freed", counted(*samples, "sampled object"))?;
                match median_ms {
                    Some(ms) => write!(f, ", half of them within {ms} ms of their allocation"),
                    None => Ok(()),
                }
            }
            Self::AgentHeap {
                size,
                samples,
                sample_bytes,
                stacks,
                stack_bytes,
            } => write!(
                f,
                "the agent uses {size} of the Java heap: {} ({sample_bytes} bytes each), {} ({stack_bytes} bytes each)",
                counted(*samples, "sample"),
                counted(*stacks, "stack")
            ),
            Self::Exact => {
                f.write_str("the dump records the stack trace of each object: sizes are exact")
            }
            Self::NoStack => f.write_str("(no stack was recorded)"),
            Self::Live {
                amount,
                samples,
                from,
                reachable,
                focus,
            } => {
                let samples = counted(*samples, "live sample");
                write!(f, "{amount} in {samples} from {from}")?;
                match focus {
                    Some(focus) => only(focus, f),
                    None => write!(f, ", of {reachable} reachable"),
                }
            }
            Self::Allocated {
                amount,
                span,
                things,
                from,
                focus,
            } => {
                write!(f, "{amount} allocated in {span}: {things} from {from}")?;
                focus.as_ref().map_or(Ok(()), |focus| only(focus, f))
            }
            Self::AllocatedColumns => f.write_str(
                "allocated: all allocations since the agent's start that pass its filters, except the last second",
            ),
            Self::Stack {
                objects,
                samples,
                is_counted,
                alive,
            } => write!(
                f,
                "{}, {}{}{alive}",
                counted(*objects, "object"),
                counted(*samples, "sample"),
                if *is_counted { " and counts" } else { "" }
            ),
            Self::Through {
                permille,
                stacks,
                of,
            } => write!(
                f,
                "{}.{} % of the bytes that the stacks allocated, on {stacks} of {of} stacks",
                permille / 10,
                permille % 10
            ),
            Self::NotTracked => f.write_str(
                "the agent tracks no sample of these objects, so the stacks show all allocations of the class since \
                 the first dump, alive or not",
            ),
            Self::Covered {
                sampled,
                size,
                whole,
                samples,
            } => write!(
                f,
                "{sampled} of {size} {}, in {}",
                match whole {
                    Whole::Growth => "growth",
                    Whole::Retained => "retained",
                },
                counted(*samples, "sample")
            ),
            Self::Uncovered { size, whole } => {
                write!(f, "{size} of the {whole} is not covered by samples")
            }
            Self::UncoveredHeap { size, reachable } => {
                write!(f, "{size} of {reachable} reachable is not covered by samples")
            }
            Self::MoreThan(Whole::Growth) => f.write_str(
                "the estimate from the samples is more than the growth: it has a sampling error, and includes objects that replaced freed objects",
            ),
            Self::MoreThan(Whole::Retained) => f.write_str(
                "the estimate from the samples is more than the retained size, because it has a sampling error",
            ),
            Self::OtherStacks { size } => {
                write!(f, "about {size} of this was allocated by stacks that have no sample")
            }
            Self::Lost { size } => write!(f, "lost samples represent up to {size}"),
            Self::AllLost { reasons, size } => {
                f.write_str("lost: ")?;
                for (i, (count, reason)) in reasons.iter().enumerate() {
                    let comma = if i > 0 { ", " } else { "" };
                    write!(f, "{comma}{} {reason}", grouped(*count))?;
                }
                match size {
                    Size(0) => Ok(()),
                    size => write!(f, "; up to {size} of the allocated bytes have no sample"),
                }
            }
            Self::LargeObjects { size, is_live } => {
                write!(
                    f,
                    "the true size of large objects may be up to 50 % more than {size}: JVMs before JDK 25 sample too few of them"
                )?;
                if *is_live {
                    f.write_str("; load the agent at start, or compare with a second dump")?;
                }
                Ok(())
            }
            Self::AliveUnknown => {
                f.write_str("\"alive\" is unknown for stacks with too few samples of freed objects")
            }
            Self::ByTime => f.write_str(
                "samples were taken at time intervals, so the bytes that a sample represents are unknown: the bytes of a stack are only the sizes of its sampled objects",
            ),
            Self::AgentLost { size, reasons } => {
                write!(f, "the agent lost samples that represent up to {size}: ")?;
                for (i, (count, reason)) in reasons.iter().enumerate() {
                    let comma = if i > 0 { ", " } else { "" };
                    write!(f, "{comma}{} because {reason}", grouped(*count))?;
                }
                f.write_str("; bytes by stack may be too low by this amount")
            }
            Self::AgentFailed => f.write_str(
                "the agent failed and may have stopped sampling: see the JVM's standard error",
            ),
            Self::Unreadable { why } => write!(f, "{why}{SITES_LEFT_OUT}"),
            Self::LessThanCounted => f.write_str(
                "at these lines the samples show fewer bytes than the counts: allocations that the JIT compiler removes are \
                 never sampled, and objects that the JDK allocates for a line (clone, copyOf) are sampled in the JDK",
            ),
            Self::MoreThanCounted => f.write_str(
                "at these lines the samples show more bytes than the counts: not all allocations at these lines are counted",
            ),
        }
    }
}

/// Writes that only stacks that match the pattern `focus` are counted.
fn only(focus: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, ", only stacks that match {focus}")
}
