//! `heapdiff REPORT.json`: a report that was written as JSON, in another format, and through gates.

use std::path::Path;

use heapdiff_report::{HeapView, Report};

use super::diff::{self, Found};
use super::{each, heap};
use crate::failure::{Failure, Result};
use crate::job::{Question, Setup};
use crate::mapping;
use crate::report_file::{self, ReportFile};

/// What is asked for of a report.
pub(super) fn run(setup: &Setup, path: &Path, question: &Question) -> Result<Vec<Report>> {
    if setup.analysis.mapping.is_some() {
        return Err(mapping::not_of_reports(path));
    }
    match report_file::open(path)? {
        ReportFile::Growth(report) => {
            let found = Found {
                report: *report,
                allocated: None,
            };
            let reports = diff::shaped(setup, found, None, question)?;
            Ok(each(reports, Report::Diff))
        }
        ReportFile::Heap(heap) => {
            if question.gates.any() || question.growth.is_some() || question.ignore.is_some() {
                let message = format!(
                    "{}: --fail-on-... and --ignore need a report of two dumps",
                    path.display()
                );
                return Err(Failure::usage(message).with_hint("this report is about one dump; create a report of two dumps with `heapdiff BEFORE AFTER -o report.json`"));
            }
            let reports = heap::shaped(setup, *heap, (HeapView::default(), None), question);
            Ok(each(reports, Report::Heap))
        }
    }
}
