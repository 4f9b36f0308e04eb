//! Options of a report's output, which are stored beside the report's data.

use std::ops::{Deref, DerefMut};

use heapdiff_diff::{Allocated, Gates, through};
use heapdiff_model::diff::{Report, Suspect};
use heapdiff_model::heap::HeapReport;
use heapdiff_model::owners::{OwnerRow, OwnersReport};
use regex::Regex;
use serde::{Serialize, Serializer};

use crate::collapsed::Columns;
use crate::junit::Gate;
use crate::stacks::stacks_in_focus;
use crate::svg::Measured;

/// A report's data with the options of its output. It dereferences to the data, and its JSON contains only the data.
#[derive(Debug)]
pub struct Viewed<D, M = ()> {
    /// The data, which is also the JSON.
    pub data: D,
    /// The options that several reports have.
    pub view: View,
    /// The options that only this report has.
    pub more: M,
}

impl<D, M: Default> From<D> for Viewed<D, M> {
    fn from(data: D) -> Self {
        Self {
            data,
            view: View::default(),
            more: M::default(),
        }
    }
}

impl<D, M> Deref for Viewed<D, M> {
    type Target = D;
    fn deref(&self) -> &D {
        &self.data
    }
}

impl<D, M> DerefMut for Viewed<D, M> {
    fn deref_mut(&mut self) -> &mut D {
        &mut self.data
    }
}

impl<D: Serialize, M> Serialize for Viewed<D, M> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.data.serialize(serializer)
    }
}

/// Options that several reports have. Each format reads only the options that apply to its report.
#[derive(Debug, Default)]
pub struct View {
    /// True if text shows all frames, stacks and steps, and also candidates that do not grow.
    pub verbose: bool,
    /// The pattern for the frame with which stacks begin (`--focus`).
    pub focus: Option<Regex>,
    /// All allocation stacks. `None` if the format does not show stacks, or if no stacks are known.
    pub allocated: Option<Allocated>,
    /// True if flame graphs begin with the frames that allocate.
    pub reverse: bool,
    /// The figures of collapsed stacks.
    pub columns: Columns,
    /// Labels to add to each metric.
    pub labels: Vec<(String, String)>,
    /// Folder in the repository that contains the sources.
    pub source_root: Option<String>,
    /// True if an object counts as held even if only a weak or phantom reference points to it (`--refs all`).
    pub holds_weakly: bool,
}

impl View {
    /// Cuts the stacks of each suspect to the focus, and finds the frame through which most of the suspect's objects
    /// were allocated.
    pub fn focus_stacks(&self, suspects: &mut [Suspect]) {
        if let Some(focus) = &self.focus {
            for suspect in suspects {
                suspect.stacks = stacks_in_focus(&suspect.stacks, focus);
                suspect.allocated_through = through(&suspect.stacks);
            }
        }
    }
}

/// A comparison, with data and options that only its output needs.
pub type DiffReport = Viewed<Report, DiffView>;

/// Data about a comparison that is not in its JSON: the suspects and classes that the report does not list, and the
/// gates (conditions under which the run fails).
#[derive(Debug, Default)]
pub struct DiffView {
    /// Suspects that are not listed. With gates, these are all such suspects. Without gates, at most one, which shows
    /// that there are more.
    pub more_suspects: Vec<Suspect>,
    /// Number of classes that changed but are not listed.
    pub more_classes: usize,
    /// Suspects that match a rule of known growth, each with that rule.
    pub known: Vec<(Suspect, String)>,
    /// The gates that the user requested: conditions under which the run fails.
    pub gates: Gates,
    /// For each requested gate, whether it makes the run fail.
    pub outcomes: Vec<Gate>,
    /// True if gates are checked even when the dumps cannot be compared (`--allow-partial`).
    pub allow_partial: bool,
}

impl DiffReport {
    /// Returns the warnings. If the gates (`--fail-on-growth`, `--fail-on-suspect`) were not checked, one of the
    /// warnings says so.
    pub(crate) fn all_warnings(&self) -> impl Iterator<Item = &str> {
        let undecided = self.unchecked_gates_reason().map(|_| crate::UNDECIDED);
        let warnings = self.data.warnings.iter().map(String::as_str);
        warnings.chain(undecided)
    }

    /// Returns the reason why gates were not checked: the dumps cannot be compared, and the user did not give
    /// `--allow-partial`. Returns `None` if gates were checked.
    #[must_use]
    pub fn unchecked_gates_reason(&self) -> Option<&str> {
        let more = &self.more;
        let undecided = more.gates.any() && !self.data.comparable && !more.allow_partial;
        let why = self.data.warnings.first().map_or("", |w| w);
        undecided.then_some(why)
    }
}

/// A report of one dump, with data and options that only its output needs.
pub type DumpReport = Viewed<HeapReport, HeapView>;

/// The parts of one dump that the report does not list.
#[derive(Clone, Copy, Debug, Default)]
pub struct HeapView {
    /// True if there are suspects that are not listed.
    pub more_suspects: bool,
    /// True if a filter on classes, or a limit on the number of suspects, left out suspects. `None` if this is not
    /// known, as for a saved report.
    pub left_out: Option<bool>,
    /// Number of classes that are not listed.
    pub more_classes: usize,
}

/// The kind and number of rows in a report of live bytes.
#[derive(Debug, Default)]
pub struct SitesView {
    /// True if the text report lists frames instead of stacks.
    pub lists_frames: bool,
    /// Number of frames, listed or not.
    pub frame_count: u64,
    /// Number of classes, listed or not; 0 if rows are stacks.
    pub class_count: u64,
    /// Number of classes with live samples.
    pub sampled_classes: u64,
}

/// The title of a flame graph of a trace, and the meaning of its widths.
#[derive(Debug)]
pub struct FlameView {
    /// Names of the file and of the run, and a description of the selected part of the run.
    pub title: String,
    /// The meaning of the widths of frames.
    pub measured: Measured,
}

/// The parts of a recording that the report does not list.
#[derive(Debug, Default)]
pub struct RecordingView {
    /// Number of classes, listed or not; 0 if rows are stacks.
    pub class_count: u64,
}

/// How the report of `sizeof` shows classes.
#[derive(Debug, Default)]
pub struct SizeofView {
    /// True if text shows the classes.
    pub shows_classes: bool,
    /// For the classes that are not listed: their number, their objects, and their bytes.
    pub more_classes: (u64, u64, u64),
}

/// A report on owners with the options of its output.
pub type OwnersReportView = Viewed<OwnersReport, OwnersView>;

/// The parts of a report on owners that are not in its JSON.
#[derive(Debug, Default)]
pub struct OwnersView {
    /// The owners that the text report lists.
    pub owners: Vec<OwnerRow>,
    /// Maximum number of groups of owners that the text report lists.
    pub rows: usize,
    /// Number of groups of owners that share memory.
    pub groups: u64,
    /// The requested gates (conditions under which the run fails). A gate that makes the run fail has the reason.
    pub outcomes: Vec<Gate>,
    /// The reason why a gate could not be checked, and what to do.
    pub undecided: Option<(String, &'static str)>,
}

/// The parts of wasted memory that the report does not list.
#[derive(Debug, Default)]
pub struct WasteView {
    /// Number of holders that are not listed, for each kind in the order of the report.
    pub more_holders: Vec<u64>,
}

/// The parts of a trace that the report does not list.
#[derive(Debug, Default)]
pub struct TraceTopView {
    /// True if the agent counted allocations by class, but the report does not show these counts. This happens if the
    /// report covers only a part of the run or of the stacks.
    pub counts_more: bool,
    /// The requested gates (conditions under which the run fails). A gate that makes the run fail has the reason.
    pub outcomes: Vec<Gate>,
    /// The reason why a gate could not be checked, and what to do.
    pub undecided: Option<(String, &'static str)>,
}
