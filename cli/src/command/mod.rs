//! Commands, a file for each: from a checked job to its report, or to what it does instead.

mod again;
mod count;
mod describe;
pub(crate) mod diff;
mod dump_info;
mod export;
pub(crate) mod fleet;
mod heap;
mod histo;
mod history;
pub(crate) mod hunt;
pub(crate) mod mcp;
mod paths;
pub(crate) mod query;
pub(crate) mod recording;
pub(crate) mod redact;
mod show;
mod side_by_side;
mod sites;
mod sizeof;
pub(crate) mod summarize;
mod thread_locals;
mod threads;
mod top;
pub(crate) mod trace;
pub(crate) mod ui;
mod waste;

use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use heapdiff_diff::samples::{AgentObjects, Sample, Samples};
use heapdiff_diff::{FrameParts, quoted};
use heapdiff_report::Report;
use heapdiff_sites::CLASS;
use heapdiff_sites::types::stable;
use hprof::answers::{SelectError, Selected, Selector};
use hprof::{ObjectIndex, Snapshot};

use crate::failure::{Failure, Result};
use crate::frame;
use crate::index;
use crate::jfr;
use crate::job::{Job, Setup, Task};
use crate::progress::Meter;

/// Reads the dumps and answers, once for each output.
pub(crate) fn run(job: &Job) -> Result<Vec<Report>> {
    let setup = &job.setup;
    let report = match &job.task {
        Task::Diff {
            dumps,
            trace,
            question,
        } => {
            let reports = diff::run(setup, dumps, trace.as_deref(), question)?;
            return Ok(each(reports, Report::Diff));
        }
        Task::Heap { dump, question } => {
            return Ok(each(heap::run(setup, dump, question)?, Report::Heap));
        }
        Task::Again { report, question } => return again::run(setup, report, question),
        Task::Hunt { hunt, question } => return hunt::run(setup, hunt, question),
        Task::Count(job) => count::run(setup, job).map(Report::Count),
        Task::Histo { dump, retained } => histo::run(setup, dump, *retained).map(Report::Histo),
        Task::Top { dump, under } => top::run(setup, dump, under.as_ref()).map(Report::Top),
        Task::Show {
            dump,
            selector,
            offset,
        } => show::run(setup, dump, selector, *offset).map(Report::Show),
        Task::Paths { dump, selector } => paths::run(setup, dump, selector).map(Report::Paths),
        Task::Sites { dump, job } if jfr::is_recording(dump) => {
            let report = recording::run(setup, dump, job)?;
            Ok(Report::Recording(Box::new(report)))
        }
        Task::Sites { dump, job } => sites::run(setup, dump, job),
        Task::Sizeof { dump, job } => {
            sizeof::run(setup, dump, job).map(|r| Report::Sizeof(Box::new(r)))
        }
        Task::Waste { dumps } => waste::run(setup, dumps).map(|r| Report::Waste(Box::new(r))),
        Task::Trace { trace, job } => trace::run(setup, trace, job),
        Task::Threads { dump } => threads::run(setup, dump).map(Report::Threads),
        Task::Query {
            dumps,
            names,
            sql,
            limits,
        } => {
            let report = query::run(setup, dumps, names, sql, *limits)?;
            Ok(Report::Query(Box::new(report)))
        }
        Task::Export { dump, job } => export::run(setup, dump, job).map(Report::Export),
    };
    report.map(|report| vec![report])
}

/// Reports of one kind.
fn each<R>(reports: Vec<R>, report: impl Fn(Box<R>) -> Report) -> Vec<Report> {
    reports.into_iter().map(|r| report(Box::new(r))).collect()
}

/// Opens and analyses one dump. Progress is shown until the meter is dropped.
fn open<'a>(setup: &'a Setup, dump: &Path) -> Result<(Opened<'a>, Meter)> {
    let meter = Meter::new(setup.progress, dump);
    let options = &setup.analysis;
    let (snapshot, indexed) = match index::read(setup, dump, &meter, Snapshot::from_index) {
        Some(snapshot) => (snapshot, true),
        None => {
            let snapshot = Snapshot::open(dump, options, &meter);
            (with_objects(snapshot, dump)?, false)
        }
    };
    let opened = Opened {
        snapshot: Arc::new(snapshot),
        setup,
        indexed,
    };
    Ok((opened, meter))
}

/// A dump that a command asks questions of.
struct Opened<'a> {
    snapshot: Arc<Snapshot>,
    setup: &'a Setup,
    /// Whether it comes from an index.
    indexed: bool,
}

impl Deref for Opened<'_> {
    type Target = Snapshot;
    fn deref(&self) -> &Snapshot {
        &self.snapshot
    }
}

impl Drop for Opened<'_> {
    /// Has an index written for the next command.
    fn drop(&mut self) {
        let damaged = self.indexed && hprof::index::is_damaged(&self.snapshot);
        if damaged {
            index::note_damage(&self.snapshot, self.setup);
        }
        if !self.indexed || damaged {
            index::write_later(self.snapshot.clone(), self.setup);
        }
    }
}

/// Opens a dump in place of a snapshot that is no longer needed, to be asked for what holds its objects if `holders`
/// says so; its index is read if it has one.
fn open_after(
    previous: Option<Snapshot>,
    setup: &Setup,
    dump: &Path,
    holders: bool,
) -> Result<(Snapshot, Meter)> {
    let meter = Meter::new(setup.progress, dump);
    if let Some(snapshot) = index::read(setup, dump, &meter, Snapshot::from_index) {
        return Ok((snapshot, meter));
    }
    let mut options = setup.analysis.clone();
    options.holders = holders;
    let snapshot = match previous {
        Some(previous) => Snapshot::open_after(previous, dump, &options, &meter),
        None => Snapshot::open(dump, &options, &meter),
    };
    Ok((with_objects(snapshot, dump)?, meter))
}

/// Opens a dump that has a name besides its path, and nothing beside it, to be asked for what holds its objects.
fn open_called(setup: &Setup, dump: &Path, name: &Path) -> Result<(Snapshot, Meter)> {
    let meter = Meter::new(setup.progress, name);
    let mut options = setup.analysis.clone();
    options.holders = true;
    let snapshot = Snapshot::open(dump, &options, &meter);
    Ok((with_objects(snapshot, name)?, meter))
}

/// Refuses a whole dump that has classes but no objects of them.
fn with_objects(snapshot: hprof::Result<Snapshot>, name: &Path) -> Result<Snapshot> {
    let snapshot = snapshot.map_err(|e| Failure::input(name, &e))?;
    // Class objects come first.
    let last = ObjectIndex((snapshot.object_count() as u32).saturating_sub(1));
    if snapshot.represents(last).is_some() && !snapshot.is_partial() {
        return Err(Failure::no_objects(name));
    }
    Ok(snapshot)
}

/// The objects that a selector names in a dump.
struct Selection {
    objects: Vec<ObjectIndex>,
    /// The agent's objects, which are no part of the program's heap.
    own: AgentObjects,
    shows_own: bool,
    /// True if they are values of a field of instances, elements of arrays, or local variables.
    are_values: bool,
}

impl Selection {
    /// The agent's objects that are hidden.
    fn hidden(&self) -> &[ObjectIndex] {
        if self.shows_own {
            &[]
        } else {
            self.own.objects()
        }
    }

    fn hides(&self, object: ObjectIndex) -> bool {
        !self.shows_own && self.own.contains(object)
    }
}

/// The objects that a selector names. The agent's are left out unless it names the agent or nothing else.
fn select(snapshot: &Snapshot, dump: &Path, selector: &Selector) -> Result<Selection> {
    let failure = |e: SelectError| {
        let failure = Failure::usage(format!("{}: {e}", dump.display()));
        match hint(snapshot, dump, selector, &e) {
            Some(hint) => failure.with_hint(hint),
            None => failure,
        }
    };
    let selected = snapshot
        .resolve_printed(selector, &stable)
        .map_err(failure)?;
    let are_values = matches!(selected, Selected::Values(_));
    let mut objects = snapshot.selected(selector, selected).map_err(failure)?;
    let own = AgentObjects::of(snapshot);
    let package = CLASS.split('.').next().unwrap_or(CLASS);
    let shows_own =
        objects.iter().all(|&o| own.contains(o)) || selector.to_string().contains(package);
    if !shows_own {
        objects.retain(|&o| !own.contains(o));
    }
    Ok(Selection {
        objects,
        own,
        shows_own,
        are_values,
    })
}

/// The command that works on a name that selects no objects: frames of samples are not in the heap.
fn hint(
    snapshot: &Snapshot,
    dump: &Path,
    selector: &Selector,
    error: &SelectError,
) -> Option<String> {
    let frame = match (error, selector) {
        (SelectError::NoFrame { frame, .. } | SelectError::NoLocal { frame }, _) => frame,
        (SelectError::NoField { .. } | SelectError::NoClass { .. }, Selector::Name(name)) => name,
        _ => return None,
    };
    let dump = quoted(&dump.display().to_string());
    let frame = frame::without_gap(frame);
    let is_meant = |text: &str| text == frame || FrameParts::parse(text).function == frame;
    let (samples, _) = Samples::of(snapshot, &AgentObjects::of(snapshot));
    let allocated = samples.is_some_and(|samples| {
        let frames = |sample: &Sample| samples.sites.frames(sample.site).any(is_meant);
        samples.live.iter().any(frames)
    });
    if allocated {
        let focus = quoted(&frame);
        return Some(format!(
            "live samples were allocated through this frame: heapdiff sites {dump} --focus {focus}"
        ));
    }
    let is_frame = matches!(
        error,
        SelectError::NoFrame { .. } | SelectError::NoLocal { .. }
    );
    is_frame.then(|| format!("heapdiff threads {dump} lists the frames"))
}
