//! What grew between heap dumps, and what holds it.
//!
//! Objects have no identity across dumps: the collector moves them, so their addresses mean
//! nothing in the next dump. What can be compared is structure. Each dump is reduced to a
//! [`Summary`]: its class totals, and its dominator tree folded into a trie of labels. The tries
//! are compared, and where the deepest step stays level in number while what it holds grows, there
//! it accumulates.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod agent_objects;
mod allocated;
mod compare;
mod evidence;
mod frame_parts;
#[doc(hidden)]
pub mod fuzz;
mod gates;
mod growth;
mod ignore;
mod names;
mod report;
pub mod samples;
mod summary;
mod suspect;
mod trie;
pub mod values;
mod waste;

pub use allocated::{Allocated, AllocatedLine};
pub use compare::{Comparison, Filter};
pub use frame_parts::FrameParts;
pub use gates::{Gates, Grave, Grown, TooMuch};
pub use ignore::{IgnoreError, IgnoreFault, IgnoreRule, IgnoreRules, Sorted, pattern};
pub use report::{
    AgentInfo, ClassGrowth, Coverage, Delta, Growth, History, HistoryGrowth, HistorySeries,
    HistorySlope, LayoutInfo, Report, SnapshotInfo, Stack, Suspect, Verdict,
};
pub use samples::attribution::{Estimate, Unseen, by_site};
pub use samples::frames::{Shown, folded, frame_text, is_runtime_frame};
pub use summary::Summary;
pub use trie::{Step, StepId, Trie};
pub use waste::{WasteExample, WasteGrowth, WasteHolderRow, WasteRow, WasteSummary};
