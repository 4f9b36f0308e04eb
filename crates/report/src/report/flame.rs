//! All stacks of a trace, for flame graphs.

use heapdiff_diff::Allocated;
use regex::Regex;
use serde::Serialize;

use super::Condition;
use crate::svg::Measured;

/// What stacks of a trace allocated, or what of it is alive. It is written as a flame graph or as collapsed stacks.
#[derive(Debug, Serialize)]
pub struct FlameReport {
    /// The file.
    pub path: String,
    /// The file, the run and its part, in words.
    #[serde(skip)]
    pub of: String,
    /// Where the part begins, in milliseconds since 1970.
    pub from_ms: u64,
    /// Where it ends.
    pub to_ms: u64,
    /// What widths are of.
    #[serde(skip)]
    pub measured: Measured,
    /// The stacks.
    #[serde(skip)]
    pub allocated: Allocated,
    /// What is wrong with the file.
    pub warnings: Vec<String>,
    /// Where stacks begin.
    #[serde(skip)]
    pub only: Option<Regex>,
    /// Whether callees come first.
    #[serde(skip)]
    pub reverse: bool,
}

impl FlameReport {
    pub(super) fn condition(&self) -> Condition<'_> {
        Condition {
            path: &self.path,
            partial: false,
            lacks_roots: false,
            warnings: &self.warnings,
        }
    }
}
