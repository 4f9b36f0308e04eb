//! What is asked of a trace.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use heapdiff_diff::pattern;
use heapdiff_trace::Which;
use heapdiff_units::Span;
use regex::Regex;

use super::common::{ListArgs, NamesArgs, ViewArgs, with_names};
use super::push::PushArgs;
use crate::failure::{Failure, Result};
use crate::frame;
use crate::job::{
    Action, ExportFormat, Import, Job, Prune, RunWindow, SampleOrder, SamplesJob, Setup, Task,
    TraceExport, TraceJob,
};
use crate::merge::Merged;
use crate::time::Moment;

const TOP_HELP: &str = "\
Objects that the GC has not freed yet look alive, so heapdiff compares the live bytes after each
full GC. With fewer than five full GCs, heapdiff compares the lowest live bytes of each interval
between two GCs of any kind. The slope is a Theil-Sen estimate; its 95 % interval includes the
sampling error. A class or site is called a leak only if the whole interval is above zero, and the
live bytes grew from the first full GC to the last.

MOMENT: 10m (10 minutes before the end of the run), +5m (5 minutes after the start of the run), or
2026-11-21T22:05:00Z.";

const FLAME_HELP: &str = "\
The extension of the file selects the format: a web page (.html), an SVG (.svg), or collapsed stacks
(.collapsed) for other tools. Widths are bytes, estimated from samples as in `heapdiff trace top`.

MOMENT: 10m (10 minutes before the end of the run), +5m (5 minutes after the start of the run), or
2026-11-21T22:05:00Z.";

const SAMPLES_HELP: &str = "\
A sample is one object whose allocation the agent recorded, with the size of this object; `heapdiff
trace top` scales samples up to all objects. A live sample is one whose object was live at the end
of the run. The agent also keeps samples of objects that the GC freed: the latest 512, and 512 that
are chosen at random (agent option `garbage`).

Each sample has a number (uid). Heap dumps of the same JVM contain samples with the same uids:
`heapdiff query DUMP \"select * from samples\"`.";

#[derive(Debug, Args)]
pub(super) struct TraceArgs {
    #[command(subcommand)]
    command: TraceCommand,
}

#[derive(Debug, Subcommand)]
enum TraceCommand {
    /// Show what a trace contains: runs with their duration, GCs and notes
    Info(InfoArgs),
    /// Rank allocation sites or classes by the trend of their live bytes: what leaks
    Top(TraceTopArgs),
    /// Draw a flame graph of the allocated or live bytes
    Flame(FlameArgs),
    /// List single samples, of live or freed objects, with uid, size, thread and age
    Samples(SamplesArgs),
    /// Export a trace for other tools: as tables, or as pprof profiles of time slices
    Export(TraceExportArgs),
    /// Send live bytes by stack to a profile server (Pyroscope or compatible)
    Push(PushArgs),
    /// Delete old data from a trace
    #[command(alias = "expunge")]
    Prune(PruneArgs),
    /// Create a trace from recordings of JFR or async-profiler
    Import(ImportArgs),
}

#[derive(Debug, Args)]
struct InfoArgs {
    /// Trace that the agent wrote (agent option trace=FILE)
    trace: PathBuf,
    #[command(flatten)]
    view: ViewArgs,
}

#[derive(Debug, Args)]
#[command(after_help = TOP_HELP)]
struct TraceTopArgs {
    /// Trace that the agent wrote (agent option trace=FILE)
    trace: PathBuf,
    #[command(flatten)]
    run: RunArgs,
    /// Rank by allocating frame (all call paths merged), class or stack, or list counted lines of
    /// code (agent option count=on)
    #[arg(long, value_enum, value_name = "WHAT", default_value_t)]
    by: ByArg,
    #[command(flatten)]
    window: WindowArgs,
    #[command(flatten)]
    names: NamesArgs,
    #[command(flatten)]
    view: ListArgs,
}

#[derive(Debug, Args)]
#[command(after_help = FLAME_HELP)]
struct FlameArgs {
    /// Trace that the agent wrote (agent option trace=FILE)
    trace: PathBuf,
    #[command(flatten)]
    run: RunArgs,
    /// Show the bytes that are live at the end, not all allocated bytes
    #[arg(long)]
    live: bool,
    /// Invert the graph: from each class to its allocating frames, then to their callers
    #[arg(long)]
    reverse: bool,
    #[command(flatten)]
    window: WindowArgs,
    #[command(flatten)]
    names: NamesArgs,
    #[command(flatten)]
    view: ViewArgs,
}

/// Which of the JVMs that wrote.
#[derive(Debug, Args)]
pub(super) struct RunArgs {
    /// Run to show, if the trace has several: its number, process id or uid [default: the last]
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
}

/// Which part of the run, and of its stacks.
#[derive(Debug, Args)]
pub(super) struct WindowArgs {
    /// Start stacks at the first matching frame, and drop stacks without a match
    #[arg(long, value_name = "RE", value_parser = frame::pattern)]
    pub(super) focus: Option<Regex>,
    /// Ignore data before this moment
    #[arg(long, value_name = "MOMENT")]
    since: Option<Moment>,
    /// Ignore data after this moment
    #[arg(long, value_name = "MOMENT")]
    until: Option<Moment>,
    /// Use only the data of this much time before the end of the trace, or before --until
    #[arg(long, value_name = "TIME", conflicts_with = "since")]
    window: Option<Span>,
}

impl WindowArgs {
    pub(super) fn of(&self, run: RunArgs) -> RunWindow {
        RunWindow {
            run: run.run,
            since: self.since,
            until: self.until,
            window: self.window,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum ByArg {
    #[default]
    Frame,
    Class,
    #[value(alias = "site")]
    Stack,
    Line,
}

#[derive(Debug, Args)]
#[command(after_help = SAMPLES_HELP)]
struct SamplesArgs {
    /// Trace that the agent wrote (agent option trace=FILE)
    trace: PathBuf,
    #[command(flatten)]
    run: RunArgs,
    /// Show samples of freed objects, not of live objects: the most recent, or a random choice
    #[arg(long, value_enum, value_name = "WHICH")]
    garbage: Option<GarbageArg>,
    /// Show only samples with a matching class or frame
    #[arg(long, value_name = "RE", value_parser = frame::pattern)]
    focus: Option<Regex>,
    /// Show only samples of threads with a matching name
    #[arg(long, value_name = "RE", value_parser = pattern)]
    thread: Option<Regex>,
    /// Sort by age (oldest first) or by size (largest first)
    #[arg(long, value_enum, value_name = "WHAT", default_value_t)]
    by: SampleOrder,
    #[command(flatten)]
    names: NamesArgs,
    #[command(flatten)]
    view: ListArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum GarbageArg {
    Recent,
    Chosen,
}

#[derive(Debug, Args)]
struct TraceExportArgs {
    /// Trace that the agent wrote (agent option trace=FILE)
    trace: PathBuf,
    /// File format: csv, json (JSON Lines) or parquet for one file per table; pprof for one profile
    /// per time slice
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: ExportFormat,
    /// Folder to write to, created if missing; with --table, the file to write
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,
    /// Export only this table, to a file or to standard output
    #[arg(long, value_name = "NAME")]
    table: Option<String>,
    /// Length of a time slice, for pprof [default: 1m]
    #[arg(long, value_name = "TIME")]
    slice: Option<Span>,
    /// Run to export, for pprof [default: the last]
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
    #[command(flatten)]
    names: NamesArgs,
    /// Do not print what was written
    #[arg(short, long)]
    quiet: bool,
}

#[derive(Debug, Args)]
struct PruneArgs {
    /// Trace that the agent wrote (agent option trace=FILE)
    trace: PathBuf,
    /// Delete data that is older than this, counted back from the end of the trace
    #[arg(long, value_name = "TIME")]
    before: Span,
    /// Do not print what was removed
    #[arg(short, long)]
    quiet: bool,
}

const IMPORT_HELP: &str = "\
All recordings must come from one JVM, for example files that JFR.dump wrote from one running
recording. Chunks that are in two recordings are counted once. A recording contains live objects,
with their allocation times, only for some moments: JFR records live objects when it writes a file
(JFR.dump), and async-profiler when it stops.";

#[derive(Debug, Args)]
#[command(after_help = IMPORT_HELP)]
struct ImportArgs {
    /// JFR recordings of one JVM, gzipped or not
    #[arg(required = true, value_name = "RECORDING")]
    recordings: Vec<PathBuf>,
    /// Trace to create
    #[arg(short, long, value_name = "T.db")]
    output: PathBuf,
    /// Replace an existing file
    #[arg(long)]
    force: bool,
    /// Length of a tick [default: 1s, or longer so that there are at most 3,600 ticks]
    #[arg(long, value_name = "TIME")]
    tick: Option<Span>,
    /// Service name to record
    #[arg(long, value_name = "NAME")]
    service: Option<String>,
    /// Host name to record
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// Print only errors to standard error
    #[arg(short, long)]
    quiet: bool,
}

impl TraceArgs {
    pub(super) fn action(self) -> Result<Action> {
        let job = |setup: Setup, trace: PathBuf, job: TraceJob| {
            let task = Task::Trace { trace, job };
            let job = Job { setup, task }.checked()?;
            Ok(Action::Job(Box::new(job)))
        };
        match self.command {
            TraceCommand::Info(args) => job(args.view.setup()?, args.trace, TraceJob::Info),
            TraceCommand::Top(args) => {
                let part = args.window.of(args.run);
                let by = match args.by {
                    ByArg::Frame => Some(Merged::Frame),
                    ByArg::Class => Some(Merged::Class),
                    ByArg::Stack => Some(Merged::Stack),
                    ByArg::Line => None,
                };
                let focus = args.window.focus;
                job(
                    with_names(args.view.setup()?, &args.names)?,
                    args.trace,
                    TraceJob::Top { part, by, focus },
                )
            }
            TraceCommand::Flame(args) => {
                let flame = TraceJob::Flame {
                    part: args.window.of(args.run),
                    focus: args.window.focus,
                    live: args.live,
                    reverse: args.reverse,
                };
                let setup = with_names(args.view.setup()?, &args.names)?;
                job(setup, args.trace, flame)
            }
            TraceCommand::Samples(args) => {
                let samples = SamplesJob {
                    run: args.run.run,
                    which: match args.garbage {
                        None => Which::Live,
                        Some(GarbageArg::Recent) => Which::Recent,
                        Some(GarbageArg::Chosen) => Which::Chosen,
                    },
                    focus: args.focus,
                    thread: args.thread,
                    by: args.by,
                };
                job(
                    with_names(args.view.setup()?, &args.names)?,
                    args.trace,
                    TraceJob::Samples(samples),
                )
            }
            TraceCommand::Export(args) => args.action(),
            TraceCommand::Push(args) => args.action(),
            TraceCommand::Import(args) => args.action(),
            TraceCommand::Prune(args) => Ok(Action::Prune(Prune {
                trace: args.trace,
                before: args.before,
                quiet: args.quiet,
            })),
        }
    }
}

impl ImportArgs {
    fn action(self) -> Result<Action> {
        if self.tick.is_some_and(|tick| tick.0.as_millis() == 0) {
            return Err(Failure::usage("--tick must be longer than 0s"));
        }
        Ok(Action::Import(Import {
            recordings: self.recordings,
            output: self.output,
            force: self.force,
            tick: self.tick,
            service: self.service,
            host: self.host,
            quiet: self.quiet,
        }))
    }
}

impl TraceExportArgs {
    fn action(self) -> Result<Action> {
        let pprof = self.format == ExportFormat::Pprof;
        let wrong = match (&self.output, &self.table) {
            (_, Some(_)) if pprof => {
                "--table does not work with --format pprof: profiles need all tables"
            }
            (None, None) => "add -o PATH, the folder to write to",
            _ if self.slice.is_some() && !pprof => "--slice needs --format pprof",
            _ if self.run.is_some() && !pprof => {
                "--run needs --format pprof: tables contain all runs"
            }
            (None, Some(_)) if self.format == ExportFormat::Parquet => {
                "add -o FILE, because Parquet cannot be written to standard output"
            }
            _ => "",
        };
        if !wrong.is_empty() {
            return Err(Failure::usage(wrong));
        }
        Ok(Action::ExportTrace(TraceExport {
            trace: self.trace,
            format: self.format,
            output: self.output,
            table: self.table,
            slice: self.slice,
            run: self.run,
            mapping: self.names.read()?,
            quiet: self.quiet,
        }))
    }
}
