//! `heapdiff BEFORE AFTER`: reports the objects that grew, and the fields that hold them.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::Args;
use heapdiff_diff::sentence::SITES_LEFT_OUT;
use heapdiff_diff::{
    self as heaps, Allocated, ClassGrowth, Comparison, Filter, Gates, OwnerSummary, SnapshotInfo,
    StackSource, Summary, set_heap_limit,
};
use heapdiff_report::collapsed::Columns;
use heapdiff_report::{DiffReport, DiffView, Format, Report, View, growth};
use heapdiff_trace::Trace;
use hprof::records::Header;
use hprof::{Progress, Snapshot};

use super::again::Again;
use super::growth::{Question, each, formats};
use super::heap::Heap;
use super::opened::{open_after, open_called};
use super::owners::{JSON_ROWS, OwnersOption};
use super::query::{command, is_statement};
use super::{history, side_by_side, summarize};
use crate::args::{OutputsArgs, SetupArgs, input, listing};
use crate::failure::{Failure, Result};
use crate::fits::{self, Classes};
use crate::gates;
use crate::ignore::Ignored;
use crate::index::summary;
use crate::job::{Formats, Job, Output, Setup, Task};
use crate::joined::{self, Recordings};
use crate::progress::Meter;
use crate::report_file::is_json;

pub(super) const SUSPECTS: usize = 10;
/// Maximum number of classes in the text report of a single dump. The JSON report contains all classes.
pub(super) const CLASSES: usize = 15;
/// Maximum number of changed classes in the text report of a comparison. The number is small because suspects are the
/// main content of the report.
const CHANGED_CLASSES: usize = 6;
/// Maximum number of owners in the text report of a comparison.
const OWNERS: usize = 6;

const HELP: &str = "\
Examples:
  heapdiff before.hprof after.hprof                # what grew, and what holds it
  heapdiff 1.hprof 2.hprof 3.hprof -o report.html  # compare three dumps, as a web page
  heapdiff 1.hprof 2.hprof --fail-on-growth 10%    # exit with 1 if the heap grew by at least 10 %";

#[derive(Debug, Args)]
#[command(after_help = HELP, mut_arg("format", listing(formats)))]
pub(crate) struct DiffArgs {
    /// First heap dump (HPROF, gzipped or not), or the only one
    #[arg(value_parser = input())]
    before: Option<PathBuf>,
    /// Later dump of the same program
    #[arg(value_parser = input())]
    after: Option<PathBuf>,
    /// More dumps, oldest first: with them, heapdiff distinguishes steady growth from a cache that
    /// fills up
    #[arg(value_parser = input())]
    later: Vec<PathBuf>,
    /// Trace of the same JVM: adds to each suspect when its growth began and how fast it grows
    #[arg(long, value_name = "T.db", help_heading = "Diff")]
    trace: Option<PathBuf>,
    /// Recording of the same JVM (JFR, async-profiler, collapsed stacks, pprof): adds to each suspect
    /// the stacks that probably allocated it; may be repeated
    #[arg(long, value_name = "FILE", help_heading = "Diff", value_parser = input())]
    recording: Vec<PathBuf>,
    /// Add the memory of each owner: auto, package, jar, loader, thread, bean or CLASS.FIELD (see
    /// `heapdiff owners`)
    #[arg(long, value_name = "KIND", help_heading = "Diff")]
    owners: Option<OwnersOption>,
    #[command(flatten)]
    question: Question,
    #[command(flatten)]
    common: OutputsArgs,
}

impl DiffArgs {
    /// Returns the first argument.
    pub(crate) fn first(&self) -> Option<&Path> {
        self.before.as_deref()
    }

    pub(crate) fn job(self) -> Result<Job> {
        let named = [&self.before, &self.after];
        let named = named.into_iter().flatten().chain(&self.later);
        let dumps: Vec<PathBuf> = named.cloned().collect();
        if let Some((sql, rest)) = dumps.split_last()
            && let Some(dump) = rest.first()
            && is_statement(sql)
        {
            let message = "a SELECT needs the command `query`";
            return Err(
                Failure::usage(message).with_hint(command(&dump.display().to_string(), sql))
            );
        }
        let (mut question, trace) = (self.question, self.trace);
        question.recordings = self.recording;
        if let [report] = &dumps[..]
            && is_json(report)
        {
            let unfit = [
                (trace.is_some(), "--trace"),
                (!question.recordings.is_empty(), "--recording"),
                (self.owners.is_some(), "--owners"),
                (!question.classes.include.is_empty(), "--include"),
                (!question.classes.exclude.is_empty(), "--exclude"),
                (question.columns == Columns::Both, "--columns"),
            ];
            if let Some((_, option)) = unfit.into_iter().find(|(is_given, _)| *is_given) {
                let report = report.display();
                let message = format!("{option} needs dumps, but {report} is a saved report");
                return Err(Failure::usage(message));
            }
        }
        match &dumps[..] {
            [] => return Err(few_dumps_failure("no dumps were given".to_owned())),
            [one] if !is_json(one) && (question.needs_two_dumps() || trace.is_some()) => {
                let one = one.display();
                let message = format!("these options need two dumps, but only {one} was given");
                return Err(few_dumps_failure(message)
                    .with_hint("--fail-on-..., --heap-limit, --ignore, --trace and `--columns both` need two dumps: heapdiff BEFORE AFTER"));
            }
            [one] if self.owners.is_some() => {
                let hint = format!("heapdiff owners {}", one.display());
                return Err(Failure::usage("--owners needs two dumps").with_hint(hint));
            }
            _ => {}
        }
        let question = question.checked()?;
        let setup = self.common.setup()?;
        match <[PathBuf; 1]>::try_from(dumps) {
            Ok([report]) if is_json(&report) => Job::new(setup, Again { report, question }),
            Ok([dump]) => Job::new(setup, Heap { dump, question }),
            Err(dumps) => {
                let diff = Diff {
                    dumps,
                    trace,
                    owners: self.owners,
                    question,
                };
                Job::new(setup, diff)
            }
        }
    }
}

fn few_dumps_failure(message: String) -> Failure {
    Failure::usage(message).with_hint("usage: heapdiff BEFORE AFTER [LATER]...")
}

/// Two or more dumps to compare, oldest first.
#[derive(Debug)]
pub(crate) struct Diff {
    pub(crate) dumps: Vec<PathBuf>,
    /// The trace that the JVM's agent wrote.
    pub(crate) trace: Option<PathBuf>,
    /// The kind of owners whose memory the report shows, if any.
    pub(crate) owners: Option<OwnersOption>,
    pub(crate) question: Question,
}

impl Task for Diff {
    fn formats() -> Formats {
        formats
    }

    fn check(&self, setup: &Setup, _: Format) -> Result<()> {
        self.question.check(setup)
    }

    fn run(&self, setup: &Setup) -> Result<Vec<Report>> {
        let recorded = (self.trace.as_deref(), &*self.question.recordings);
        let owners = self.owners.as_ref();
        let owners = owners.map(|owners| owners.read(setup, &self.dumps));
        let owners = owners.transpose()?;
        let mut reports = run(setup, &self.dumps, recorded, &self.question)?;
        if let Some(owners) = owners {
            for (report, output) in reports.iter_mut().zip(setup.outputs()) {
                add_owners(
                    report,
                    &self.dumps,
                    &owners,
                    setup.rows_in(output.format, OWNERS),
                );
            }
        }
        Ok(each(reports, Report::Diff))
    }
}

/// Adds the memory of each owner to the report. `owners` has the order of `dumps`, which may differ from the order of
/// the dumps in the report.
fn add_owners(report: &mut DiffReport, dumps: &[PathBuf], owners: &[OwnerSummary], rows: usize) {
    let of = |snapshot: &SnapshotInfo| {
        let is_same = |dump: &PathBuf| dump.display().to_string() == snapshot.path;
        let at = dumps.iter().position(is_same)?;
        Some(owners[at].clone())
    };
    let owners: Vec<OwnerSummary> = report.snapshots.iter().filter_map(of).collect();
    let mut figures = OwnerSummary::compared(&owners);
    let rows = rows.min(JSON_ROWS);
    OwnerSummary::limit(&mut figures.owners, rows);
    figures.shared.truncate(rows);
    report.data.owners = Some(figures);
}

/// Compares dumps. Each dump is reduced to its summary. Only the last dump stays open, because the paths to the growth
/// are looked up in it.
pub(crate) fn run(
    setup: &Setup,
    dumps: &[PathBuf],
    (trace, recordings): (Option<&Path>, &[PathBuf]),
    question: &Question,
) -> Result<Vec<DiffReport>> {
    // Open the trace first, so that an unreadable trace is reported before the dumps are read.
    let open = |trace| super::trace::read::open_named(setup.analysis.mapping.as_ref(), trace);
    let trace = trace.map(open).transpose()?;
    let recordings = joined::read(setup, recordings)?;
    report(
        setup,
        Compared::read(setup, dumps)?,
        (trace, recordings),
        question,
    )
}

/// Returns the summary of a dump that is held in memory. The dump itself is freed before the next dump is taken.
pub(crate) fn summary_of(setup: &Setup, dump: &Path, name: &Path) -> Result<Summary> {
    let (snapshot, meter) = open_called(setup, dump, name)?;
    summarize(setup, name, &snapshot, &meter)
}

/// Compares a dump with an earlier dump, of which only the summary exists.
pub(crate) fn compare_with_earlier(
    setup: &Setup,
    earlier: Summary,
    dump: &Path,
    name: &Path,
    question: &Question,
) -> Result<Vec<DiffReport>> {
    let (last, meter) = open_called(setup, dump, name)?;
    let summaries = vec![earlier, summarize(setup, name, &last, &meter)?];
    drop(meter);
    let compared = Compared {
        summaries,
        last: Some(last),
        sorted: false,
    };
    report(setup, compared, (None, Recordings::new()), question)
}

/// The result of a comparison.
pub(super) struct Found {
    pub(super) report: heaps::Report,
    /// All stacks with their bytes. `None` if no output shows stacks, or if the last dump does not contain any.
    pub(super) allocated: Option<Allocated>,
}

/// Compares the dumps, and returns a report for each output.
fn report(
    setup: &Setup,
    compared: Compared,
    (trace, recordings): (Option<Trace>, Recordings),
    question: &Question,
) -> Result<Vec<DiffReport>> {
    let limit = setup.top.unwrap_or(SUSPECTS);
    let classes = Classes::new(&question.classes);
    let several = Summary::are_from_several_jvms(&compared.summaries);
    let join = joined::join(
        recordings,
        &compared.summaries,
        compared.last.as_ref(),
        several,
    )?;
    let filter = Filter {
        recording: join.as_ref().map(|join| join as &dyn StackSource),
        classes: &|names| classes.admits(names),
        // Searches for one suspect more than the report lists, to detect whether there are more. If the user gave gates
        // (`--fail-on-...`) or rules (`--ignore`), searches for all suspects, because gates and rules apply to all of
        // them.
        suspects: if question.gates().any() || question.ignore.is_some() {
            usize::MAX
        } else {
            limit.saturating_add(1)
        },
    };
    let Compared {
        summaries,
        last,
        sorted,
    } = compared;
    let comparison = match &last {
        Some(last) => {
            Comparison::new(&summaries, last).map_err(|error| Failure::changed(&error))?
        }
        None => Comparison::from_summaries(&summaries)
            .ok_or_else(|| summarize::old_summary_failure(&summaries))?,
    };
    let (mut report, allocated) = if setup.is_any(Format::shows_stacks) {
        comparison.report_with_stacks(&filter)
    } else {
        (comparison.report(&filter), None)
    };
    if let Some(last) = &last {
        let explained = heaps::explain_unreachable(last, &hprof::Silent);
        report.unreachable = explained.map_err(|error| Failure::changed(&error))?;
    }
    if sorted {
        let order: Vec<&str> = report.snapshots.iter().map(|s| &*s.path).collect();
        let order = order.join(", ");
        report.add_warning(format!(
            "the dumps were given out of order; heapdiff compares them in the order in which they were taken: {order}"
        ));
    }
    if setup.is_any(Format::has_only_stacks) && allocated.is_none() {
        return Err(without_sites(report.snapshots.last()));
    }
    report.warnings.extend(match &last {
        Some(last) => unused(&classes, last),
        None => {
            let names: BTreeSet<&str> = summaries.iter().flat_map(Summary::class_names).collect();
            classes.unused(&names.into_iter().collect::<Vec<_>>())
        }
    });
    if let Some(join) = join {
        report.warnings.extend(join.warnings());
        report.recordings = join.recordings;
    }
    reports_per_output(setup, Found { report, allocated }, trace, question)
}

/// Returns a warning for each `--include` or `--exclude` pattern that matches no class of the dump.
pub(super) fn unused(classes: &Classes<'_>, snapshot: &Snapshot) -> Vec<String> {
    let loaded = snapshot.classes().iter().map(|(_, class)| &*class.name);
    let loaded: Vec<&str> = loaded.collect();
    classes.unused(&loaded)
}

/// Returns a report for each output, with the content that the output's format needs.
pub(super) fn reports_per_output(
    setup: &Setup,
    found: Found,
    trace: Option<Trace>,
    question: &Question,
) -> Result<Vec<DiffReport>> {
    let Found {
        mut report,
        allocated,
    } = found;
    if let Some(focus) = &question.focus {
        let unused = fits::focus(focus, &report.suspects, allocated.as_ref());
        report.warnings.extend(unused);
    }
    let suspects = std::mem::take(&mut report.suspects);
    let ignored = match &question.ignore {
        Some(file) => file.sort(suspects),
        None => Ignored {
            new: suspects,
            ..Ignored::default()
        },
    };
    report.warnings.extend(ignored.unused_rules);
    report.suspects = ignored.new;
    let limit = setup.top.unwrap_or(SUSPECTS);
    let more_suspects = report.suspects.split_off(limit.min(report.suspects.len()));
    report.list_left_out();
    if let Some(trace) = &trace {
        let strange = history::add_history(trace, &mut report)?;
        report.warnings.extend(strange);
    }
    if !report.comparable {
        report.heap_trend = None;
    }
    let given = question
        .heap_limit
        .map(|size| size.0)
        .filter(|bytes| *bytes > 0);
    let limit = match (given, &trace) {
        (None, Some(trace)) => history::heap_limit(trace, &report)?,
        (given, _) => given,
    };
    if let Some(limit) = limit {
        set_heap_limit(&mut report, limit);
    }
    let before = report.snapshots.first().map_or(0, |s| s.reachable_bytes);
    let gates = Gates {
        growth: question.growth.map(|limit| limit.bytes(before)),
        ..question.gates()
    };
    let shape = |output: &Output| {
        let (mut diff, format) = (report.clone(), output.format);
        let rows = setup.rows_in(format, CHANGED_CLASSES);
        let is_cut_page = format == Format::Html && rows < diff.classes.len();
        if format.is_read_by_people() || is_cut_page {
            // In reports for people, classes are sorted by the growth of their shallow size. Sorting by retained size
            // would put the classes that hold the suspects first. A page has a sortable table, so the order matters
            // only if --top limits the table: then the page must list the same classes as the text.
            let key = |c: &ClassGrowth| (growth(&c.shallow_bytes), growth(&c.objects));
            diff.classes.sort_by_key(|class| Reverse(key(class)));
        }
        let view = View {
            columns: question.columns,
            allocated: allocated.clone().filter(|_| format.shows_stacks()),
            ..question.view(setup)
        };
        if format.is_read_by_people() {
            view.focus_stacks(&mut diff.suspects);
        }
        let more_classes = diff.classes.len().saturating_sub(rows);
        diff.classes.truncate(rows);
        let mut report = DiffReport {
            data: diff,
            view,
            more: DiffView {
                more_suspects: more_suspects.clone(),
                more_classes,
                known: ignored.known.clone(),
                gates,
                outcomes: Vec::new(),
                allow_partial: question.allow_partial,
            },
        };
        report.more.outcomes = gates::outcomes(&report);
        report
    };
    Ok(setup.outputs().map(shape).collect())
}

/// Returns the reason why the last dump has no stacks: its samples are damaged, or no agent was loaded.
pub(super) fn without_sites(last: Option<&SnapshotInfo>) -> Failure {
    let fault = last.and_then(|dump| {
        let mut warnings = dump.warnings.iter();
        let fault = warnings.find(|w| w.ends_with(SITES_LEFT_OUT))?;
        Some(format!("{}: {fault}", dump.path))
    });
    match fault {
        Some(fault) => Failure::usage(fault),
        None => Failure::usage(
            "the last dump has no allocation sites, because it was taken without the agent",
        )
        .with_hint("load the agent before you take the dumps: heapdiff attach PID"),
    }
}

/// Summaries of dumps, in the order in which they are compared.
struct Compared {
    summaries: Vec<Summary>,
    /// The last dump, still open. `None` if the last one is a summary.
    last: Option<Snapshot>,
    /// True if the order in which the dumps are compared differs from the order of the arguments.
    sorted: bool,
}

impl Compared {
    /// Reads dumps in the order of their times. Dumps of different JVMs stay in the order of the arguments, because
    /// only the user knows which JVM is the baseline.
    fn read(setup: &Setup, dumps: &[PathBuf]) -> Result<Self> {
        let order = chronological_order(setup, dumps);
        let ordered: Vec<&Path> = order.iter().map(|&at| dumps[at].as_path()).collect();
        let (mut summaries, mut last) = match ordered[..] {
            [before, after] if side_by_side::is_faster_side_by_side(setup, [before, after]) => {
                let (summaries, last) = side_by_side::opened(setup, before, after)?;
                (summaries, Some(last))
            }
            _ => read_sequentially(setup, &ordered)?,
        };
        let mut sorted = !order.is_sorted();
        if sorted && Summary::are_from_several_jvms(&summaries) {
            sorted = false;
            let mut named: Vec<_> = order.iter().zip(summaries).collect();
            named.sort_by_key(|(place, _)| **place);
            summaries = named.into_iter().map(|(_, summary)| summary).collect();
            if let Some(dump) = dumps.last() {
                last = if Summary::is_file(dump) {
                    None
                } else {
                    Some(open_after(last, setup, dump, false)?.0)
                };
            }
        }
        Ok(Self {
            summaries,
            last,
            sorted,
        })
    }
}

/// Reads dumps one after the other. Each dump reuses the memory of the previous one. The last dump stays open, unless
/// it is a summary.
fn read_sequentially(setup: &Setup, dumps: &[&Path]) -> Result<(Vec<Summary>, Option<Snapshot>)> {
    let Some((last, earlier)) = dumps.split_last() else {
        return Err(Failure::usage("no dumps to compare were given"));
    };
    let mut summaries = Vec::with_capacity(dumps.len());
    let mut open: Option<Snapshot> = None;
    for dump in earlier {
        if let Some(summary) = summarize::read(setup, dump) {
            summaries.push(summary?);
            continue;
        }
        // A comparison needs only the summaries of earlier dumps, so a cached summary is read in place of the dump.
        if let Some(kept) = cached_summary(setup, dump) {
            summaries.push(kept);
            continue;
        }
        let (snapshot, summary) = open_and_summarize(setup, open.take(), dump)?;
        summaries.push(summary);
        open = Some(snapshot);
    }
    if let Some(summary) = summarize::read(setup, last) {
        summaries.push(summary?);
        return Ok((summaries, None));
    }
    let (last, summary) = opened_last(setup, open, last)?;
    summaries.push(summary);
    Ok((summaries, Some(last)))
}

/// Returns when a dump was taken. For a summary file this is the time of its dump.
fn taken_ms(setup: &Setup, dump: &Path) -> Option<u64> {
    match summarize::read(setup, dump) {
        Some(summary) => Some(summary.ok()?.info.taken_ms),
        None => Some(Header::of_file(dump)?.taken_ms),
    }
}

/// Returns the cached summary of a dump, without opening the dump.
pub(super) fn cached_summary(setup: &Setup, dump: &Path) -> Option<Summary> {
    summary::read(setup, dump, None, &Meter::new(setup.progress, dump))
}

/// Opens a dump that has no cached summary, and creates its summary.
pub(super) fn open_and_summarize(
    setup: &Setup,
    previous: Option<Snapshot>,
    dump: &Path,
) -> Result<(Snapshot, Summary)> {
    let (snapshot, meter) = open_after(previous, setup, dump, true)?;
    let summary = summarize(setup, dump, &snapshot, &meter)?;
    Ok((snapshot, summary))
}

/// Opens the last dump of a comparison.
pub(super) fn opened_last(
    setup: &Setup,
    previous: Option<Snapshot>,
    dump: &Path,
) -> Result<(Snapshot, Summary)> {
    let is_kept = cached_summary(setup, dump).is_some();
    let (snapshot, meter) = open_after(previous, setup, dump, !is_kept)?;
    let kept = is_kept.then(|| summary::read(setup, dump, Some(&snapshot), &meter));
    let summary = match kept.flatten() {
        Some(summary) => summary,
        None => summarize(setup, dump, &snapshot, &meter)?,
    };
    Ok((snapshot, summary))
}

/// Returns the summary of an open dump, and saves it for the next comparison.
fn summarize(setup: &Setup, dump: &Path, snapshot: &Snapshot, meter: &Meter) -> Result<Summary> {
    meter.phase("merging the dominator tree by class", 0);
    let summary =
        Summary::new(snapshot, dump.display().to_string()).map_err(|e| Failure::input(dump, &e))?;
    summary::write_later(&summary, snapshot, setup);
    Ok(summary)
}

/// Returns the indexes of the dumps in the order in which they were taken. If the time of a dump is unknown, returns
/// them in the order of the arguments.
fn chronological_order(setup: &Setup, dumps: &[PathBuf]) -> Vec<usize> {
    let taken = dumps
        .iter()
        .map(|dump| taken_ms(setup, dump).filter(|&ms| ms > 0));
    let mut order: Vec<usize> = (0..dumps.len()).collect();
    if let Some(taken) = taken.collect::<Option<Vec<u64>>>() {
        order.sort_by_key(|&at| taken.get(at));
    }
    order
}

#[cfg(test)]
mod tests {
    use heapdiff_report::synthetic;

    use super::*;

    #[test]
    fn the_reason_for_missing_stacks_is_reported() {
        let mut report = synthetic::report(Vec::new(), 0);
        let none = without_sites(report.snapshots.last());
        let without =
            "the last dump has no allocation sites, because it was taken without the agent";
        assert_eq!(none.message, without);
        let hint = "load the agent before you take the dumps: heapdiff attach PID";
        assert_eq!(none.hint.as_deref(), Some(hint));
        let last = report.snapshots.last_mut().unwrap();
        let fault =
            format!("the agent's data names the unknown sampling strategy 9{SITES_LEFT_OUT}");
        last.warnings = vec!["cut off".to_owned(), fault.clone()];
        let told = without_sites(Some(last));
        assert_eq!(told.message, format!("after.hprof: {fault}"));
        assert!(!told.message.contains("taken without the agent") && told.hint.is_none());
    }
}
