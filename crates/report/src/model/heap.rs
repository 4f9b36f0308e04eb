//! `heapdiff.heap/1`: what keeps most of one dump, with what a report leaves out.

use regex::Regex;
use serde::Serialize;

/// One dump, with what its report leaves out.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct HeapReport {
    /// The report, as JSON has it.
    pub heap: heapdiff_diff::HeapReport,
    /// Whether there are suspects that are not listed.
    #[serde(skip)]
    pub more_suspects: bool,
    /// Whether suspects are left out, by their classes or because they are too many; `None` where a saved report
    /// does not tell.
    #[serde(skip)]
    pub left_out: Option<bool>,
    /// Classes that are not listed.
    #[serde(skip)]
    pub more_classes: usize,
    /// Whether text shows every frame.
    #[serde(skip)]
    pub verbose: bool,
    /// All stacks, where the format shows them and the dump names them.
    #[serde(skip)]
    pub allocated: Option<heapdiff_diff::Allocated>,
    /// Where stacks begin.
    #[serde(skip)]
    pub focus: Option<Regex>,
    /// Labels of each metric.
    #[serde(skip)]
    pub labels: Vec<(String, String)>,
    /// The folder of the repository with the sources.
    #[serde(skip)]
    pub source_root: Option<String>,
}
