//! `heapdiff REPORT.json`: reads a saved JSON report, writes it in another format, and checks it against gates.

use std::path::PathBuf;

use heapdiff_report::{Format, HeapView, Report};

use super::diff::{self, Found};
use super::growth::{Question, each, formats};
use super::heap;
use crate::failure::{Failure, Result};
use crate::job::{Formats, Setup, Task};
use crate::mapping;
use crate::report_file::{self, ReportFile};

/// A JSON report of an earlier run, which is rendered again and checked against gates again.
#[derive(Debug)]
pub(crate) struct Again {
    pub(crate) report: PathBuf,
    pub(crate) question: Question,
}

impl Task for Again {
    /// Returns all formats of a comparison except flame graphs and similar formats. Flame graphs need all stacks, and a
    /// saved report contains only the stacks of suspects.
    fn formats() -> Formats {
        |format| formats(format) && !format.has_only_stacks()
    }

    fn check(&self, setup: &Setup, _: Format) -> Result<()> {
        self.question.check(setup)
    }

    fn run(&self, setup: &Setup) -> Result<Vec<Report>> {
        let (path, question) = (&*self.report, &self.question);
        if setup.analysis.mapping.is_some() {
            return Err(mapping::mapping_of_report_failure(path));
        }
        match report_file::open(path)? {
            ReportFile::Growth(report) => {
                let found = Found {
                    report: *report,
                    allocated: None,
                };
                let reports = diff::reports_per_output(setup, found, None, question)?;
                Ok(each(reports, Report::Diff))
            }
            ReportFile::Heap(heap) => {
                if question.gates().any() || question.ignore.is_some() {
                    let message = format!(
                        "{}: --fail-on-... and --ignore need a report of two dumps",
                        path.display()
                    );
                    return Err(Failure::usage(message).with_hint("this report is about one dump; create a report of two dumps with `heapdiff BEFORE AFTER -o report.json`"));
                }
                let reports =
                    heap::reports_per_output(setup, *heap, (HeapView::default(), None), question);
                Ok(each(reports, Report::Heap))
            }
        }
    }
}
