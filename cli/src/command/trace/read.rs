//! Opens, selects and describes traces and their runs, for all commands about traces.

use std::path::Path;
use std::sync::Arc;

use clap::Args;
use heapdiff_diff::{HistoryGrowth, HistorySeries, HistorySlope, frame_text};
use heapdiff_jfr::LIVE_TABLE_FULL;
use heapdiff_model::trace::{NoteRow, RunInfo, TraceFile};
use heapdiff_report::Format;
use heapdiff_trace::read::{Frame, Note, Run};
use heapdiff_trace::{Stacks, Steps, Timeline, Trace, Trending, Window};
use heapdiff_units::{Span, counted};
use hprof::NameMapping;
use regex::Regex;

use crate::failure::{Failure, Result, system_message};
use crate::frame;
use crate::job::Setup;
use crate::mapping::originals;
use crate::time::Moment;

/// Default number of rows of a list, in text and in other formats.
const ROWS: [usize; 2] = [10, 100];
/// Maximum number of points of a time series in a report.
const MOMENTS: usize = 60;
/// Maximum number of notes (messages in the trace) that are listed for a run. If there are more, the last notes are
/// listed.
const NOTES: usize = 50;

/// Explains which points in time `--since` and `--until` accept.
pub(super) const MOMENT_HELP: &str = "

MOMENT: 10m (10 minutes before the end of the run), +5m (5 minutes after the start of the run), or
2026-11-21T22:05:00Z.";

/// The option that selects the run of a JVM in a trace.
#[derive(Debug, Args)]
pub(super) struct RunArgs {
    /// Run to show, if the trace has several: its number, process id or uid [default: the last]
    #[arg(long, value_name = "RUN")]
    pub(super) run: Option<String>,
}

/// Options that select the time range of a run and the stacks to report.
#[derive(Debug, Default, Args)]
pub(super) struct WindowArgs {
    /// Start stacks at the first matching frame, and drop stacks without a match
    #[arg(long, value_name = "RE", value_parser = frame::pattern)]
    pub(super) focus: Option<Regex>,
    /// Ignore data before this moment
    #[arg(long, value_name = "MOMENT")]
    pub(super) since: Option<Moment>,
    /// Ignore data after this moment
    #[arg(long, value_name = "MOMENT")]
    pub(super) until: Option<Moment>,
    /// Use only the data of this much time before the end of the trace, or before --until
    #[arg(long, value_name = "TIME", conflicts_with = "since")]
    pub(super) window: Option<Span>,
}

impl WindowArgs {
    /// True if the user selected only a part of the run.
    pub(super) const fn is_partial_run(&self) -> bool {
        self.since.is_some() || self.until.is_some() || self.window.is_some()
    }
}

/// Returns the number of rows of a list: `--top`, or the default of the format.
pub(super) fn rows(setup: &Setup) -> usize {
    let is_text = setup.output.format == Format::Text;
    setup.top.unwrap_or(ROWS[usize::from(!is_text)])
}

/// Opens a trace. All later reads return the data that the trace contains at the time of opening.
pub(super) fn open(path: &Path) -> Result<Trace> {
    readable(path)?;
    let trace = Trace::open(path).map_err(|e| Failure::trace(&e))?;
    trace.hold().map_err(|e| Failure::trace(&e))?;
    Ok(trace)
}

/// Like [`open()`], but shows the original names of a mapping.
pub(crate) fn open_named(mapping: Option<&Arc<dyn NameMapping>>, path: &Path) -> Result<Trace> {
    let mut trace = open(path)?;
    if let Some(names) = originals(mapping) {
        trace.set_names(names);
    }
    Ok(trace)
}

/// Checks that a file exists and is not a folder, because the error messages of SQLite are vague.
pub(crate) fn readable(path: &Path) -> Result<()> {
    let file = std::fs::metadata(path).map_err(|e| {
        let why = system_message(&e);
        Failure::bad_input(format!("{}: {why}", path.display()))
    })?;
    if file.is_dir() {
        return Err(Failure::bad_input(format!(
            "{}: is a directory",
            path.display()
        )));
    }
    Ok(())
}

/// Returns the run with this number, process id or uid, or the last run if none is given. Also returns the number of
/// the run.
pub(super) fn select_run(trace: &Trace, wanted: Option<&str>) -> Result<(u64, Run)> {
    let runs = trace.runs().map_err(|e| Failure::trace(&e))?;
    let count = runs.len();
    let mut numbered = (1_u64..).zip(runs);
    let found = match wanted {
        None => numbered.last(),
        Some(wanted) => {
            let number: Option<u64> = wanted.parse().ok();
            numbered.find(|(n, run)| {
                run.uid == wanted || number.is_some_and(|w| w == *n || w == run.pid)
            })
        }
    };
    found.ok_or_else(|| {
        let path = trace.path().display();
        match wanted {
            Some(wanted) => {
                let runs = counted(count as u64, "run");
                Failure::usage(format!(
                    "{path}: the trace has {runs} of a JVM, but no run {wanted}"
                ))
                .with_hint(format!("list the runs with `heapdiff trace info {path}`"))
            }
            None => Failure::bad_input(format!(
                "{path}: the trace is empty, no JVM has written to it yet"
            )),
        }
    })
}

pub(super) fn file(trace: &Trace) -> TraceFile {
    let path = trace.path();
    let bytes_of = |path: &Path| std::fs::metadata(path).map_or(0, |m| m.len());
    let mut ahead = path.as_os_str().to_owned();
    ahead.push("-wal");
    let mut warnings = Vec::new();
    if trace.invalid_number_count() > 0 {
        let odd = counted(trace.invalid_number_count(), "figure");
        warnings.push(format!(
            "the trace is damaged: impossible values ({odd}) count as 0"
        ));
    }
    TraceFile {
        path: path.display().to_string(),
        bytes: bytes_of(path) + bytes_of(Path::new(&ahead)),
        warnings,
    }
}

/// Returns the path, size and warnings of a trace's file. If the live bytes of the run are only a lower bound, the
/// warnings mention this.
pub(super) fn file_of_run(trace: &Trace, run: i64) -> Result<TraceFile> {
    let mut file = file(trace);
    let full = trace.last_note(run, LIVE_TABLE_FULL);
    if full.map_err(|e| Failure::trace(&e))?.is_some() {
        file.warnings.push(LIVE_TABLE_FULL.to_owned());
    }
    Ok(file)
}

pub(super) fn run_info(number: u64, run: &Run) -> RunInfo {
    RunInfo {
        number,
        uid: run.uid.clone(),
        pid: run.pid,
        host: run.host.clone(),
        service: run.service.clone(),
        jvm: run.jvm.clone(),
        command: run.command.clone(),
        interval_bytes: run.interval_bytes,
        strategy: run.strategy.clone(),
        started_ms: run.started_ms,
        ended_ms: run.ended_ms,
    }
}

pub(super) fn notes(trace: &Trace, run: &Run) -> Result<Vec<NoteRow>> {
    let mut notes = trace.notes(run.id).map_err(|e| Failure::trace(&e))?;
    let first = notes.len().saturating_sub(NOTES);
    let row = |n: Note| NoteRow {
        time_ms: n.time_ms,
        text: n.text,
    };
    Ok(notes.drain(first..).map(row).collect())
}

/// Returns the selected part of a run.
pub(super) fn window(part: &WindowArgs, run: &Run, uptime_ms: u64) -> Result<Window> {
    let at = |moment: Moment| moment.uptime_ms(run.started_ms, uptime_ms);
    let to_ms = part.until.map_or(u64::MAX, at);
    let from_ms = match part.window {
        Some(span) => {
            let span = u64::try_from(span.0.as_millis()).unwrap_or(u64::MAX);
            to_ms.min(uptime_ms).saturating_sub(span)
        }
        None => part.since.map_or(0, at),
    };
    if from_ms <= to_ms {
        Ok(Window { from_ms, to_ms })
    } else {
        Err(Failure::usage("--until must be after --since"))
    }
}

/// Returns the frames of a stack as reports show them, innermost first.
pub(crate) fn frames(stacks: &Stacks, stack: i64) -> Vec<String> {
    let text = |f: &Frame| frame_text(&f.class, &f.method, f.file.as_deref(), f.line);
    stacks.frames(stack).into_iter().map(text).collect()
}

pub(crate) fn growth(trending: &Trending) -> HistoryGrowth {
    HistoryGrowth {
        objects: trending.grown_objects,
        bytes: trending.grown_bytes,
    }
}

pub(crate) fn slope(trending: &Trending) -> HistorySlope {
    HistorySlope {
        bytes_per_hour: trending.bytes.slope,
        ci95: trending.bytes.ci95,
        objects_per_hour: trending.objects.slope,
    }
}

pub(crate) fn series(steps: &Steps, timeline: &Timeline) -> HistorySeries {
    let mut series = HistorySeries::default();
    for (tick, live) in steps.series(timeline, MOMENTS) {
        series.time_ms.push(tick.time_ms);
        series.live_objects.push(live.amount.objects);
        series.live_bytes.push(live.amount.bytes);
    }
    series
}
