//! What grew between heap dumps, and what holds it.
//!
//! Objects have no identity across dumps: the collector moves them, so their addresses mean
//! nothing in the next dump. What can be compared is structure. Each dump is reduced to a
//! [`Summary`]: its class totals, and its dominator tree folded into a trie of labels. The tries
//! are compared, and where the deepest step stays level in number while what it holds grows, there
//! it accumulates.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod allocated;
mod attribution;
mod bounds;
mod case;
mod compare;
mod detect;
mod facts;
mod figures;
mod frame_parts;
mod frames;
#[doc(hidden)]
pub mod fuzz;
mod gates;
mod growth;
mod ignore;
mod locate;
mod names;
mod partings;
mod report;
pub mod samples;
mod shared;
pub mod size;
mod summary;
mod survival;
mod suspect;
mod trie;
pub mod values;
mod verdict;
mod waste;

pub use allocated::{Allocated, AllocatedLine};
pub use attribution::{Estimate, Unseen, by_site};
pub use compare::{Comparison, Filter};
pub use frame_parts::FrameParts;
pub use frames::{Shown, folded, frame_text, is_runtime_frame};
pub use gates::{Gates, Grave, Grown, TooMuch};
pub use ignore::{IgnoreError, IgnoreFault, IgnoreRule, IgnoreRules, Sorted, pattern};
pub use report::{
    AgentInfo, ClassGrowth, Coverage, Delta, Growth, History, HistoryGrowth, HistorySeries,
    HistorySlope, LayoutInfo, Report, SnapshotInfo, Stack, Suspect, Verdict,
};
pub use summary::Summary;
pub use trie::{Step, StepId, Trie};
pub use waste::{WasteExample, WasteGrowth, WasteHolderRow, WasteRow, WasteSummary};
