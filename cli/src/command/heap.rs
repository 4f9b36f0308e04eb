//! `heapdiff DUMP`: reports the objects and fields that hold most of the heap in one dump.

use std::path::{Path, PathBuf};

use heapdiff_diff::{Allocated, Filter, HeapOptions, OneDump, StackSource};
use heapdiff_model::heap::HeapReport;
use heapdiff_report::{DumpReport, Format, HeapView, Report, View, Viewed};

use super::diff::{CLASSES, SUSPECTS, opened_last, unused, without_sites};
use super::growth::{Question, each, formats};
use crate::failure::{Failure, Result};
use crate::fits::Classes;
use crate::job::{Formats, Output, Setup, Task};
use crate::joined;
use crate::progress::Meter;

/// The analysis of one dump.
#[derive(Debug)]
pub(crate) struct Heap {
    pub(crate) dump: PathBuf,
    pub(crate) question: Question,
}

impl Task for Heap {
    fn formats() -> Formats {
        |format| formats(format) && format != Format::Junit
    }

    fn check(&self, setup: &Setup, _: Format) -> Result<()> {
        self.question.check(setup)
    }

    fn run(&self, setup: &Setup) -> Result<Vec<Report>> {
        let answers = run(setup, &self.dump, &self.question)?;
        Ok(each(answers, Report::Heap))
    }
}

/// Reduces the dump to its summary, as for a comparison. The dump itself stays open, because the paths to the suspects
/// are later searched in it.
fn run(setup: &Setup, dump: &Path, question: &Question) -> Result<Vec<DumpReport>> {
    let recordings = joined::read(setup, &question.recordings)?;
    let (snapshot, summary) = opened_last(setup, None, dump)?;
    let join = joined::join(
        recordings,
        std::slice::from_ref(&summary),
        Some(&snapshot),
        false,
    )?;
    let meter = Meter::new(setup.progress, dump);
    let classes = Classes::new(&question.classes);
    let filter = Filter {
        recording: join.as_ref().map(|join| join as &dyn StackSource),
        classes: &|names| classes.admits(names),
        suspects: setup.top.unwrap_or(SUSPECTS),
    };
    let options = HeapOptions {
        waste: setup.is_any(|format| !format.has_only_stacks()),
    };
    let one = OneDump::analyze(&summary, &snapshot, &filter, options, &meter);
    let OneDump {
        report: mut heap,
        more_suspects,
        left_out,
        allocated,
    } = one.map_err(|e| Failure::input(dump, &e))?;
    drop(meter);
    if setup.is_any(Format::has_only_stacks) && allocated.is_none() {
        return Err(without_sites(Some(&heap.snapshot)));
    }
    heap.warnings.extend(unused(&classes, &snapshot));
    if let Some(join) = join {
        heap.warnings.extend(join.warnings());
        heap.recordings = join.recordings;
    }
    let more = HeapView {
        more_suspects,
        left_out: Some(left_out),
        more_classes: 0,
    };
    Ok(reports_per_output(setup, heap, (more, allocated), question))
}

/// Returns a report for each output, with the content that the output's format needs.
pub(super) fn reports_per_output(
    setup: &Setup,
    heap: HeapReport,
    (more, allocated): (HeapView, Option<Allocated>),
    question: &Question,
) -> Vec<DumpReport> {
    let shape = |output: &Output| {
        let (mut heap, format) = (heap.clone(), output.format);
        let view = View {
            allocated: allocated.clone().filter(|_| format.shows_stacks()),
            ..question.view(setup)
        };
        if format.is_read_by_people() {
            view.focus_stacks(&mut heap.suspects);
        }
        let limit = setup.top.unwrap_or(SUSPECTS).min(heap.suspects.len());
        let more_suspects = more.more_suspects || limit < heap.suspects.len();
        heap.suspects.truncate(limit);
        let rows = setup.rows_in(format, CLASSES);
        let more_classes = heap.classes.len().saturating_sub(rows);
        heap.classes.truncate(rows);
        Viewed {
            data: heap,
            view,
            more: HeapView {
                more_suspects,
                left_out: more_suspects.then_some(true).or(more.left_out),
                more_classes,
            },
        }
    };
    setup.outputs().map(shape).collect()
}
