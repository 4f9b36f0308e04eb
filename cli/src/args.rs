//! The command line: what clap parses, turned once into a [`Job`] whose options are valid.

mod capture;
mod common;
mod diff;
mod fleet;
mod index;
mod lead;
mod query;
mod sizeof;
mod trace;
mod ui;
mod waste;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use heapdiff_report::collapsed::Columns;
use hprof::Selector;
use regex::Regex;

use crate::capture::{Capture, Hunt};
use crate::failure::{Failure, Result};
use crate::fleet::Fleet;
use crate::known::Known;
use crate::output::Output;
use crate::progress::Wanted;
use crate::render::Format;
use crate::size::Size;
use crate::trace::{Export, Expunge, Import};
use capture::{AttachArgs, DumpJvmArgs, HuntArgs};
use common::CommonArgs;
use diff::DiffArgs;
pub(crate) use diff::pattern;
use fleet::FleetArgs;
use index::{IndexArgs, IndexCommand};
pub(crate) use query::ExportJob;
use query::{ExportArgs, QueryArgs};
use sizeof::SizeofArgs;
pub(crate) use sizeof::SizeofJob;
use trace::TraceArgs;
pub(crate) use trace::{Part, SampleOrder, SamplesJob, TraceJob};
use ui::UiArgs;
pub(crate) use ui::UiJob;
use waste::WasteArgs;

/// What to do, checked.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) setup: Setup,
    pub(crate) task: Task,
}

impl Job {
    /// Refuses formats that the command has no report in.
    fn checked(self) -> Result<Self> {
        let format = self.setup.output.format;
        let fits = match &self.task {
            Task::Diff { .. } | Task::Hunt { .. } => !format.is_of_rows(),
            Task::Sites { .. } => format.is_of_stacks(),
            Task::Query { .. } => format.is_of_rows(),
            _ => false,
        };
        if fits || matches!(format, Format::Text | Format::Json) {
            return Ok(self);
        }
        let name = format.name();
        let message = format!("this command has no report in the format {name}");
        Err(Failure::usage(message).with_hint(match format {
            _ if format.is_of_stacks() => "`heapdiff BEFORE AFTER` and `heapdiff sites` have",
            _ if format.is_of_rows() => "`heapdiff query` and `heapdiff export` have",
            _ => "`heapdiff BEFORE AFTER` has",
        }))
    }

    /// Whether the report goes where the output goes: a hunt keeps it with the dumps, and what is no text
    /// for people is not shown besides.
    pub(crate) const fn is_shown(&self) -> bool {
        let format = self.setup.output.format;
        !matches!(self.task, Task::Hunt { .. })
            || matches!(format, Format::Text | Format::Json | Format::Md)
    }
}

/// The question, with the dumps that it is asked of.
#[derive(Debug)]
pub(crate) enum Task {
    Diff {
        /// Two or more, oldest first.
        dumps: Vec<PathBuf>,
        /// What the JVM's agent recorded.
        trace: Option<PathBuf>,
        question: Question,
    },
    /// Dumps of a running JVM, taken and compared.
    Hunt {
        hunt: Hunt,
        question: Question,
    },
    Histo {
        dump: PathBuf,
        retained: bool,
    },
    Top {
        dump: PathBuf,
        under: Option<Selector>,
    },
    Show {
        dump: PathBuf,
        selector: Selector,
        /// The first element that is shown of arrays and collections.
        offset: u64,
    },
    Paths {
        dump: PathBuf,
        selector: Selector,
    },
    Sizeof {
        dump: PathBuf,
        job: SizeofJob,
    },
    Threads {
        dump: PathBuf,
    },
    Waste {
        /// One, or several to compare, oldest first.
        dumps: Vec<PathBuf>,
    },
    /// One SELECT.
    Query {
        dump: PathBuf,
        sql: String,
        limits: heapdiff_query::Limits,
    },
    /// Tables as files.
    Export {
        dump: PathBuf,
        job: ExportJob,
    },
    Sites {
        dump: PathBuf,
        /// Only stacks with a frame or a class that this matches.
        focus: Option<Regex>,
        /// Of a recording: what was allocated, whatever is alive of it.
        allocated: bool,
    },
    Trace {
        trace: PathBuf,
        job: TraceJob,
    },
}

/// Which growth a diff speaks of, and how.
#[derive(Debug, Default)]
pub(crate) struct Question {
    pub(crate) classes: ClassFilter,
    pub(crate) gates: Gates,
    /// Growth that is known.
    pub(crate) known: Option<Known>,
    /// Where stacks begin.
    pub(crate) focus: Option<Regex>,
    /// The figures of collapsed stacks.
    pub(crate) columns: Columns,
}

/// Which classes and suspects a diff speaks of.
#[derive(Debug, Default)]
pub(crate) struct ClassFilter {
    include: Vec<Regex>,
    exclude: Vec<Regex>,
}

impl ClassFilter {
    /// Whether what bears these class names is reported: any `--include` matches one of them, no
    /// `--exclude` does.
    pub(crate) fn admits(&self, names: &[&str]) -> bool {
        let any = |list: &[Regex]| list.iter().any(|re| names.iter().any(|n| re.is_match(n)));
        (self.include.is_empty() || any(&self.include)) && !any(&self.exclude)
    }
}

/// What makes a diff end with exit code 1.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Gates {
    pub(crate) growth: Option<Size>,
    pub(crate) suspect: bool,
}

impl Gates {
    /// Whether there are any.
    pub(crate) const fn any(&self) -> bool {
        self.growth.is_some() || self.suspect
    }
}

/// How to work and how to show it: the same for all commands.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) output: Output,
    /// Rows of each list, where the user says.
    pub(crate) top: Option<usize>,
    pub(crate) progress: Wanted,
    pub(crate) analysis: hprof::Options,
    pub(crate) threads: Option<usize>,
    pub(crate) strict: bool,
    /// Whether indexes are read and written.
    pub(crate) index: bool,
}

impl Setup {
    /// How many rows a list has: what the user says, else `text` where people read the whole report,
    /// and all elsewhere.
    pub(crate) fn rows(&self, text: usize) -> usize {
        let default = match self.output.format.is_read_whole() {
            true => text,
            false => usize::MAX,
        };
        self.top.unwrap_or(default)
    }
}

/// What the arguments ask for.
#[derive(Debug)]
pub(crate) enum Asked {
    Job(Box<Job>),
    /// Something that ends in no report.
    Capture(Box<Capture>),
    /// Deletes the indexes of dumps and in folders.
    CleanIndexes(Vec<PathBuf>),
    Export(Export),
    Expunge(Expunge),
    Import(Import),
    /// A page, until the user ends it.
    Ui(UiJob),
    Fleet(Fleet),
    Completions(Shell),
}

const USAGE: &str = "heapdiff [OPTIONS] BEFORE AFTER [LATER]...
       heapdiff COMMAND [OPTIONS] ...";

const AFTER_HELP: &str = "\
Sizes are written 10MB, 1.5GiB, or 512m as in -Xmx. A dump that is named like a command is written
./histo. `heapdiff help COMMAND` tells more.

Exit codes: 0 done, 1 a gate (--fail-on-...) tripped, 2 wrong usage, 3 an input could not be read
or a JVM could not be reached.";

const SELECTOR_HELP: &str = "\
SELECTOR: 0x7f0012345678 (an object), com.acme.Foo (all its instances), com.acme.Foo.field (what a
static field holds), 'class com.acme.Foo' (the class itself), /regex/ (classes by name).";

const SITES_HELP: &str = "\
Bytes are estimated from samples, and the part after ± is half of the interval that covers the true
bytes in 95 of 100 cases. Frames are listed from the allocation up to the thread's start. Those of the
runtime are folded; -v shows them all.

Of a flight recording: live objects where it has them (profiler.LiveObject; of jdk.OldObjectSample
the objects that the JVM followed, which stand for nothing else), otherwise what was allocated.";

/// Diffs JVM heap dumps and names what holds the growth; answers questions about one dump; takes them
#[derive(Debug, Parser)]
#[command(
    version,
    override_usage = USAGE,
    after_help = AFTER_HELP,
    max_term_width = 100,
    arg_required_else_help = true,
    args_conflicts_with_subcommands = true
)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    diff: DiffArgs,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// What grew between dumps, and what holds it (the same without the word `diff`)
    #[command(override_usage = "heapdiff [diff] [OPTIONS] BEFORE AFTER [LATER]...")]
    Diff(DiffArgs),
    /// Objects and bytes of each class
    Histo(HistoArgs),
    /// The objects that retain most, or what lies directly below one
    Top(TopArgs),
    /// Shallow, deep and retained size of objects, alone and as a set
    Sizeof(SizeofArgs),
    /// Objects with their fields, elements and what holds them
    Show(ShowArgs),
    /// Shortest paths from GC roots to objects, merged for many
    Paths(SelectArgs),
    /// Memory that the program could do without: duplicates, empty and sparse collections, unused room
    Waste(WasteArgs),
    /// Threads, their frames and what their local variables retain
    Threads(DumpArgs),
    /// Live bytes by the stack that allocated them, in a dump taken with the agent loaded or a JFR recording
    Sites(SitesArgs),
    /// Rows of a SELECT over objects, classes, references, strings and threads
    Query(QueryArgs),
    /// All of a dump as Parquet or CSV files, one for each table that `query` knows
    Export(ExportArgs),
    /// Load the agent into a running JVM: dumps taken from then on name allocation sites
    Attach(AttachArgs),
    /// Take a heap dump of a running JVM
    Dump(DumpJvmArgs),
    /// Find a leak in a running JVM: load the agent, dump, wait, dump, and compare
    Hunt(HuntArgs),
    /// The indexes that make the second command on a dump fast
    Index(IndexArgs),
    /// What a trace of a JVM over time shows: what leaks, and since when
    Trace(TraceArgs),
    /// The live view of traces, or a report, as a page on this machine
    Ui(UiArgs),
    /// Add traces and reports of many JVMs to a folder of Parquet files
    Fleet(FleetArgs),
    /// A completion script for a shell, on standard output
    Completions {
        /// The shell
        shell: Shell,
    },
}

#[derive(Debug, Args)]
struct HistoArgs {
    /// A heap dump (HPROF), gzipped or not
    dump: PathBuf,
    /// Also what each class retains as a set, and sort by it (takes longer: links all objects)
    #[arg(long)]
    retained: bool,
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Debug, Args)]
#[command(after_help = SELECTOR_HELP)]
struct TopArgs {
    /// A heap dump (HPROF), gzipped or not
    dump: PathBuf,
    /// Only what these objects dominate directly: one level of the dominator tree
    #[arg(long, value_name = "SELECTOR")]
    under: Option<Selector>,
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Debug, Args)]
#[command(after_help = SITES_HELP)]
struct SitesArgs {
    /// A heap dump (HPROF) or a flight recording (JFR), gzipped or not
    dump: PathBuf,
    /// Of a recording: what was allocated, even if it tells what is alive
    #[arg(long)]
    allocated: bool,
    /// Only stacks with a frame, or of a class, that a regular expression matches; profiles and flame
    /// graphs begin with the first such frame, and drop its callers
    #[arg(long, value_name = "RE", value_parser = diff::pattern)]
    focus: Option<Regex>,
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Debug, Args)]
struct DumpArgs {
    /// A heap dump (HPROF), gzipped or not
    dump: PathBuf,
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Debug, Args)]
#[command(after_help = SELECTOR_HELP)]
struct SelectArgs {
    /// A heap dump (HPROF), gzipped or not
    dump: PathBuf,
    /// Which objects
    selector: Selector,
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Debug, Args)]
struct ShowArgs {
    #[command(flatten)]
    select: SelectArgs,
    /// The first element that is shown of arrays and collections; --top says how many
    #[arg(long, value_name = "N", default_value_t, hide_default_value = true)]
    offset: u64,
}

/// Parses the arguments. Ends the process for `--help`, `--version` and what clap refuses.
pub(crate) fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Asked> {
    let args = lead::lead_with_command(args.into_iter().collect());
    let cli = Cli::try_parse_from(args).unwrap_or_else(|e| e.exit());
    let (setup, task) = match cli.command {
        None => return Ok(Asked::Job(Box::new(cli.diff.job()?.checked()?))),
        Some(Command::Diff(diff)) => return Ok(Asked::Job(Box::new(diff.job()?.checked()?))),
        Some(Command::Histo(HistoArgs {
            dump,
            retained,
            common,
        })) => (
            common.setup(std::slice::from_ref(&dump))?,
            Task::Histo { dump, retained },
        ),
        Some(Command::Threads(DumpArgs { dump, common })) => (
            common.setup(std::slice::from_ref(&dump))?,
            Task::Threads { dump },
        ),
        Some(Command::Sites(SitesArgs {
            dump,
            allocated,
            focus,
            common,
        })) => (
            common.setup(std::slice::from_ref(&dump))?,
            Task::Sites {
                dump,
                focus,
                allocated,
            },
        ),
        Some(Command::Paths(SelectArgs {
            dump,
            selector,
            common,
        })) => (
            common.setup(std::slice::from_ref(&dump))?,
            Task::Paths { dump, selector },
        ),
        Some(Command::Sizeof(sizeof)) => sizeof.task()?,
        Some(Command::Waste(waste)) => waste.task()?,
        Some(Command::Query(query)) => query.task()?,
        Some(Command::Export(export)) => export.task()?,
        Some(Command::Show(ShowArgs { select, offset })) => {
            let (dump, selector) = (select.dump, select.selector);
            let setup = select.common.setup(std::slice::from_ref(&dump))?;
            (
                setup,
                Task::Show {
                    dump,
                    selector,
                    offset,
                },
            )
        }
        Some(Command::Top(TopArgs {
            dump,
            under,
            common,
        })) => (
            common.setup(std::slice::from_ref(&dump))?,
            Task::Top { dump, under },
        ),
        Some(Command::Attach(attach)) => {
            return Ok(Asked::Capture(Box::new(attach.capture())));
        }
        Some(Command::Dump(dump)) => return Ok(Asked::Capture(Box::new(dump.capture()))),
        Some(Command::Hunt(hunt)) => return Ok(Asked::Job(Box::new(hunt.job()?))),
        Some(Command::Index(IndexArgs {
            what: IndexCommand::Clean { paths },
        })) => return Ok(Asked::CleanIndexes(paths)),
        Some(Command::Trace(trace)) => return trace.asked(),
        Some(Command::Ui(ui)) => return Ok(Asked::Ui(ui.job())),
        Some(Command::Fleet(fleet)) => return Ok(Asked::Fleet(fleet.fleet())),
        Some(Command::Completions { shell }) => return Ok(Asked::Completions(shell)),
    };
    Ok(Asked::Job(Box::new(Job { setup, task }.checked()?)))
}

/// The whole command line, for completion scripts.
pub(crate) fn command_line() -> clap::Command {
    Cli::command()
}
