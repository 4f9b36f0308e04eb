//! How reports of a job are printed.

use heapdiff_diff::Allocated;
use heapdiff_report::View;
use hprof::{Refs, Snapshot};

use super::{Question, Setup, SitesJob};

impl Setup {
    /// Returns the view of a report of objects in a snapshot.
    pub(crate) fn view(&self, snapshot: &Snapshot) -> View {
        View {
            verbose: self.progress.verbose,
            holds_weakly: snapshot.refs() == Refs::All,
            ..View::default()
        }
    }
}

impl Question {
    /// Returns the view that all outputs of a comparison or of one dump share.
    pub(crate) fn view(&self, setup: &Setup) -> View {
        View {
            verbose: setup.progress.verbose,
            focus: self.focus.clone(),
            labels: self.labels.clone(),
            source_root: self.source_root.clone(),
            ..View::default()
        }
    }
}

impl SitesJob {
    /// Returns the view of allocation sites; `allocated` has all stacks if the format shows them.
    pub(crate) fn view(&self, setup: &Setup, allocated: Option<Allocated>) -> View {
        View {
            verbose: setup.progress.verbose,
            focus: self.focus.clone(),
            allocated,
            reverse: self.reverse,
            ..View::default()
        }
    }
}
