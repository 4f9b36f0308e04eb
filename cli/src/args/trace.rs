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
use crate::job::{
    Action, ExportFormat, Import, Job, Prune, RunWindow, SampleOrder, SamplesJob, Setup, Task,
    TraceExport, TraceJob,
};
use crate::merge::Merged;
use crate::time::Moment;

const TOP_HELP: &str = "\
Objects that have not been collected yet look alive, so what is compared is what is alive after each
major collection; where there were fewer than five, the least between collections of any kind. The
slope is the Theil-Sen estimate with its 95 % interval, that of the samples included. Only a class
or site that grows for certain from the first major collection to the last is called a leak.

MOMENT: 10m (that long before the end), +5m (that long after the start), 2026-11-21T22:05:00Z (UTC).";

const FLAME_HELP: &str = "\
The file's name says what is written: a web page (.html) with both orders, an SVG, or collapsed
stacks (.collapsed) for other tools. Widths are bytes, estimated from samples as in
`heapdiff trace top`.

MOMENT: 10m (that long before the end), +5m (that long after the start), 2026-11-21T22:05:00Z (UTC).";

const SAMPLES_HELP: &str = "\
A sample is one object that the agent saw allocated; sizes are the objects' own, and `heapdiff trace
top` tells what samples stand for. Those that live are of the run's last tick. Of those that were
collected the agent remembers as many as its option garbage says (512), twice: the last ones, and a
uniform choice of all. Uids are those that a heap dump of the same JVM has: `heapdiff query DUMP
\"select * from samples\"`.";

#[derive(Debug, Args)]
pub(super) struct TraceArgs {
    #[command(subcommand)]
    command: TraceCommand,
}

#[derive(Debug, Subcommand)]
enum TraceCommand {
    /// What a trace holds: runs, their length, collections, notes
    Info(InfoArgs),
    /// What leaks: allocation sites or classes by the trend of what stays alive
    Top(TraceTopArgs),
    /// A flame graph of what was allocated, or is alive (--live): -o flame.html, flame.svg
    Flame(FlameArgs),
    /// Single samples: what lives, or what was collected, each with its uid, size, thread and age
    Samples(SamplesArgs),
    /// The trace for other programs: tables, or profiles of slices of time
    Export(TraceExportArgs),
    /// Send what is alive, by stack, to a server of profiles: Pyroscope, or one that takes the same
    Push(PushArgs),
    /// Remove what is older than some time
    #[command(alias = "expunge")]
    Prune(PruneArgs),
    /// Make a trace of what Java Flight Recorder or async-profiler recorded
    Import(ImportArgs),
}

#[derive(Debug, Args)]
struct InfoArgs {
    /// A trace, as the agent writes it (trace=FILE)
    trace: PathBuf,
    #[command(flatten)]
    view: ViewArgs,
}

#[derive(Debug, Args)]
#[command(after_help = TOP_HELP)]
struct TraceTopArgs {
    /// A trace, as the agent writes it (trace=FILE)
    trace: PathBuf,
    #[command(flatten)]
    run: RunArgs,
    /// What is ranked: the frames of the program that allocate, whatever path leads there; classes; or stacks. line: the
    /// lines of code alone that the agent counts (count=on), by what they allocate
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
    /// A trace, as the agent writes it (trace=FILE)
    trace: PathBuf,
    #[command(flatten)]
    run: RunArgs,
    /// What is alive at the end, in place of what was allocated
    #[arg(long)]
    live: bool,
    /// Callees first: each class shows who allocates it, and who calls that
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
    /// Which run, where a trace has several: its number, process id or uid [default: the last]
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
}

/// Which part of the run, and of its stacks.
#[derive(Debug, Args)]
pub(super) struct WindowArgs {
    /// Have stacks begin with the first frame that a regular expression matches, and leave out those without one
    #[arg(long, value_name = "RE", value_parser = pattern)]
    pub(super) focus: Option<Regex>,
    /// Leave out what was before
    #[arg(long, value_name = "MOMENT")]
    since: Option<Moment>,
    /// Leave out what was later
    #[arg(long, value_name = "MOMENT")]
    until: Option<Moment>,
    /// Only so long before the end, or before --until
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
    /// A trace, as the agent writes it (trace=FILE)
    trace: PathBuf,
    #[command(flatten)]
    run: RunArgs,
    /// Samples that were collected, in place of those that live: the last ones, or a uniform choice of all
    #[arg(long, value_enum, value_name = "WHICH")]
    garbage: Option<GarbageArg>,
    /// Only samples of a class, or with a frame, that a regular expression matches
    #[arg(long, value_name = "RE", value_parser = pattern)]
    focus: Option<Regex>,
    /// Only samples of threads whose name a regular expression matches
    #[arg(long, value_name = "RE", value_parser = pattern)]
    thread: Option<Regex>,
    /// What comes first: what is, or became, oldest; or what is largest
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
    /// A trace, as the agent writes it (trace=FILE)
    trace: PathBuf,
    /// csv, json (JSON Lines) and parquet write a file for each table; pprof a profile for each slice
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: ExportFormat,
    /// The folder to write to, made if it does not exist; with --table a file
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,
    /// Only this table, to a file or to standard output
    #[arg(long, value_name = "NAME")]
    table: Option<String>,
    /// For profiles: the length of a slice [default: 1m]
    #[arg(long, value_name = "TIME")]
    slice: Option<Span>,
    /// For profiles: which run [default: the last]
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
    #[command(flatten)]
    names: NamesArgs,
    /// Do not say what was written
    #[arg(short, long)]
    quiet: bool,
}

#[derive(Debug, Args)]
struct PruneArgs {
    /// A trace, as the agent writes it (trace=FILE)
    trace: PathBuf,
    /// What is older than this before the trace's end is removed
    #[arg(long, value_name = "TIME")]
    before: Span,
    /// Do not say what was removed
    #[arg(short, long)]
    quiet: bool,
}

const IMPORT_HELP: &str = "\
Recordings of one JVM, such as dumps of a recording that goes on: chunks that two of them have count
once. What is alive is known for the moments at which it was looked for (the dumps; the end of an
async-profiler's), and of these objects, when they were allocated.";

#[derive(Debug, Args)]
#[command(after_help = IMPORT_HELP)]
struct ImportArgs {
    /// Flight recordings (JFR), gzipped or not
    #[arg(required = true, value_name = "RECORDING")]
    recordings: Vec<PathBuf>,
    /// The trace to make
    #[arg(short, long, value_name = "T.db")]
    output: PathBuf,
    /// Replace the file if it exists
    #[arg(long)]
    force: bool,
    /// The length of a tick [default: 1s, or more where that would be more than 3,600 ticks]
    #[arg(long, value_name = "TIME")]
    tick: Option<Span>,
    /// A name for the program
    #[arg(long, value_name = "NAME")]
    service: Option<String>,
    /// The machine that it ran on, which recordings do not name
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// Errors only on standard error
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
            return Err(Failure::usage("--tick must be more than zero"));
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
            (_, Some(_)) if pprof => "--table: profiles are made of all tables",
            (None, None) => "-o PATH is needed: the folder to write to",
            _ if self.slice.is_some() && !pprof => "--slice is for --format pprof",
            _ if self.run.is_some() && !pprof => {
                "--run is for --format pprof: tables have all runs"
            }
            (None, Some(_)) if self.format == ExportFormat::Parquet => {
                "-o FILE is needed: Parquet is not text"
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
