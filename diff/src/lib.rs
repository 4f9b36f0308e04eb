//! Compares heap dumps of a JVM: what grew between them, and what holds it.
//!
//! Objects have no identity across dumps: the garbage collector moves them, so their addresses mean nothing in the next
//! dump. Only structure can be compared. Each dump is reduced to a [`Summary`]: its class totals, and its dominator
//! tree folded into a trie of labels. A [`Comparison`] aligns the tries and finds the deepest nodes whose number of
//! objects does not change while their content grows. Something accumulates there, and the [`Report`] names the field:
//! a [`Suspect`] with its path, its figures, a [`Verdict`], and the reasons in sentences.
//!
//! # A tour
//!
//! Dumps are opened with [`hprof`], one after the other, the oldest first. Only the last one has to stay open.
//!
//! ```
//! use heapdiff_diff::{Comparison, Filter, Summary, Verdict};
//! use hprof::{Options, Silent, Snapshot};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let open = |name: &str| {
//!     let path = std::path::Path::new("../testdata").join(name);
//!     Snapshot::open(&path, &Options::default(), &Silent)
//! };
//! let before = Summary::new(&open("sampled-before.hprof.gz")?, "before".to_owned())?;
//! let last = open("sampled-after.hprof.gz")?;
//! let summaries = [before, Summary::new(&last, "after".to_owned())?];
//!
//! let comparison = Comparison::new(&summaries, &last)?;
//! let report = comparison.report(&Filter::default());
//! let suspect = &report.suspects[0];
//! assert_eq!(suspect.holder, "Orders.open");
//! assert_eq!(suspect.class, "Orders$Order");
//! assert_eq!(suspect.verdict, Verdict::Growth);
//! # Ok(())
//! # }
//! ```
//!
//! If the agent was loaded, its samples are in the dumps, and each suspect has the stacks that allocated its growth.
//! [`Comparison::report_with_stacks`] also returns all live samples by stack, for profiles and flame graphs. [`Gates`]
//! limit growth, and [`IgnoreRules`] first set known growth aside:
//!
//! ```
//! # use heapdiff_diff::{Comparison, Filter, Gates, IgnoreRules, Summary};
//! # use hprof::{Options, Silent, Snapshot};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let open = |name: &str| {
//! #     let path = std::path::Path::new("../testdata").join(name);
//! #     Snapshot::open(&path, &Options::default(), &Silent)
//! # };
//! # let before = Summary::new(&open("sampled-before.hprof.gz")?, "before".to_owned())?;
//! # let last = open("sampled-after.hprof.gz")?;
//! # let summaries = [before, Summary::new(&last, "after".to_owned())?];
//! # let comparison = Comparison::new(&summaries, &last)?;
//! let mut report = comparison.report(&Filter::default());
//! let stack = &report.suspects[0].stacks[0];
//! assert_eq!(stack.frames[0], "Orders$Order.<init>(Orders.java:22)");
//!
//! let gates = Gates { growth: Some(1 << 20), suspect: true };
//! assert!(gates.failing_suspects(&report, &[]).is_some());
//! let rules = IgnoreRules::parse("holder Orders.open  # the orders of a day are meant to stay")?;
//! let sorted = rules.sort(std::mem::take(&mut report.suspects));
//! assert_eq!(sorted.known.len(), 1);
//! # Ok(())
//! # }
//! ```
//!
//! # Memory and time
//!
//! A comparison takes the memory of one open dump and of all summaries, which take a few megabytes each for usual
//! heaps. Making a summary is one pass over the file and one over the dominator tree. Comparing summaries needs no such
//! pass: it reads a limited number of objects of the last dump.
//!
//! A summary can be cached in a file beside its dump ([`Summary::to_kept`], [`Summary::from_kept`]). The next
//! comparison with the same dump then does not open the dump.
//!
//! # What is stable
//!
//! The items listed below are stable. Items that are hidden from this page serve heapdiff's own programs and can change
//! in any version.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod agent_objects;
mod allocated;
mod comparable;
mod compare;
mod contents;
mod evidence;
mod facts;
mod frame_parts;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzz;
mod gates;
mod growth;
mod headline;
mod heap;
mod ignore;
mod joined;
mod known;
mod left_out;
mod names;
mod next_step;
mod origin;
mod outlook;
mod owners;
mod pending;
mod redaction;
#[doc(hidden)]
pub mod samples;
#[doc(hidden)]
pub mod sentence;
mod snapshot_info;
mod summary;
mod suspect;
mod through;
mod trie;
mod unreachable;
#[doc(hidden)]
pub mod values;
mod waste;

pub use allocated::{Allocated, AllocatedLine};
pub use compare::{Comparison, Filter};
pub use contents::{ContentPattern, find_contents, holding_fields};
pub use gates::{Gates, Grave, Grown, TooMuch};
pub use headline::Headline;
pub use heap::{HeapOptions, OneDump};
pub use heapdiff_model::diff::{
    AgentInfo, AllocatedAt, AssumedRoots, ClassGrowth, Coverage, Delta, Growth, History,
    HistoryGrowth, HistorySeries, HistorySlope, LayoutInfo, Report, SampledBytes, SnapshotInfo,
    Stack, Suspect, Through, Verdict,
};
pub use heapdiff_model::heap::{
    Died, HeapClass, HeapCoverage, HeapReport, HeapSuspect, HeapThread, HeapWaste, ThreadHold,
};
pub use ignore::{IgnoreError, IgnoreFault, IgnoreRule, IgnoreRules, Sorted};
pub use outlook::set_heap_limit;
pub use owners::{JVM, OwnerError, OwnerKind, OwnerSummary, loaders_of_namesakes};
pub use pending::{PendingKind, PendingWork, pending_work};
pub use redaction::redaction_rules;
pub use summary::{SavedRecording, Summary};
pub use unreachable::{explain_unreachable, unreachable_summary};

// Items that only heapdiff's own crates use.
#[doc(hidden)]
pub use self::{
    frame_parts::FrameParts,
    ignore::pattern,
    joined::{ContentLine, Joined, StackSource},
    next_step::{STDIN, quoted},
    samples::attribution::{LiveBySite, LiveClass, by_class, by_site},
    samples::frame_kind::{
        Folded, Frames, Shown, add_frameworks, added_frameworks, allocating_frame,
        is_application_frame, is_jdk_frame,
    },
    samples::frames::frame_text,
    snapshot_info::{assumed_roots, layout_info},
    through::through,
    waste::{ComparedWaste, WasteSummary},
};

/// The examples of the README, run as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
