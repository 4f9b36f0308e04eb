//! The command line: what clap parses, turned once into an [`Action`] whose options are valid.

mod agent;
mod capture;
mod common;
mod diff;
mod files;
mod fleet;
mod help;
mod implicit_diff;
mod index;
mod labels;
mod mcp;
mod push;
mod query;
mod redact;
mod sizeof;
mod summarize;
mod trace;
mod ui;
mod waste;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use heapdiff_diff::pattern;
use hprof::Selector;
use regex::Regex;

use crate::failure::Result;
use crate::job::{Action, Job, SitesJob, Task};
use agent::AgentArgs;
use capture::{AttachArgs, CountArgs, DetachArgs, DumpJvmArgs, HuntArgs};
use common::{CommonArgs, input};
use diff::DiffArgs;
use fleet::FleetArgs;
use index::{IndexArgs, IndexCommand};
use mcp::McpArgs;
use query::{ExportArgs, QueryArgs};
use redact::RedactArgs;
use sizeof::SizeofArgs;
use summarize::SummarizeArgs;
use trace::TraceArgs;
use ui::UiArgs;
use waste::WasteArgs;

const USAGE: &str = "heapdiff [OPTIONS] BEFORE AFTER [LATER]...
       heapdiff [OPTIONS] DUMP
       heapdiff COMMAND [OPTIONS] ...";

const AFTER_HELP: &str = "\
Sizes are written 10MiB, 1.5GiB, or 512m as in -Xmx. A dump that is named - is read from standard
input; one that is named like a command is written ./histo. `heapdiff help COMMAND` tells more.

Exit codes: 0 done, 1 a gate (--fail-on-...) tripped, 2 wrong usage, 3 an input could not be read,
or a JVM or a server could not be reached.";

const SELECTOR_HELP: &str = "\
SELECTOR: 0x7f0012345678 (an object), com.acme.Foo (all its instances), com.acme.Foo.field (what a
static field holds), 'class com.acme.Foo' (the class itself), /regex/ (classes by name).";

const SITES_HELP: &str = "\
Bytes are estimated from samples, and the part after ± is half of the interval that covers the true
bytes in 95 of 100 cases. Frames are listed from the allocation up to the thread's start. Those of
the runtime are folded; -v shows them all.

`-o flame.html` and `-o flame.svg` draw all stacks; --reverse turns them over, so that each class
shows who allocates it. What was allocated of each class the agent counts with strategy=class.

Of a flight recording: live objects where it has them (profiler.LiveObject; of jdk.OldObjectSample
the objects that the JVM followed, which stand for nothing else), otherwise what was allocated.";

/// Two heap dumps in, the leaking call path out
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
    /// What grew between dumps, and what holds it; of one dump what holds most (the same without the word
    /// `diff`)
    #[command(override_usage = "heapdiff [diff] [OPTIONS] BEFORE AFTER [LATER]...
       heapdiff [diff] [OPTIONS] DUMP")]
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
    /// Live or allocated bytes by stack or class, of a dump taken with the agent loaded or a JFR recording;
    /// flame graphs (-o flame.html)
    Sites(SitesArgs),
    /// Rows of a SELECT over objects, classes, references, strings and threads
    Query(QueryArgs),
    /// All of a dump as Parquet or CSV files, one for each table that `query` knows
    Export(ExportArgs),
    /// A file of megabytes that stands for a dump in later comparisons
    Summarize(SummarizeArgs),
    /// A dump without its texts and contents of arrays, to be handed on
    Redact(RedactArgs),
    /// Load the agent into a running JVM: dumps taken from then on name allocation sites
    Attach(AttachArgs),
    /// Have the agent in a running JVM stop sampling
    Detach(DetachArgs),
    /// Where the agent's library is, for a JVM that is started with it
    Agent(AgentArgs),
    /// Take a heap dump of a running JVM
    Dump(DumpJvmArgs),
    /// Find a leak in a running JVM: load the agent, dump, wait, dump, and compare
    Hunt(HuntArgs),
    /// Count every allocation of a running JVM for a while, by site
    Count(CountArgs),
    /// The indexes that make the second command on a dump fast
    Index(IndexArgs),
    /// What a trace of a JVM over time shows: what leaks, and since when
    Trace(TraceArgs),
    /// The live view of traces, or a report, as a page on this machine
    Ui(UiArgs),
    /// Add traces and reports of many JVMs to a folder of Parquet files
    Fleet(FleetArgs),
    /// Tools for assistants, over the Model Context Protocol on standard input and output
    Mcp(McpArgs),
    /// A completion script for a shell, on standard output
    Completions {
        /// The shell
        shell: Shell,
    },
    /// The manual, a page for each command
    #[command(hide = true)]
    Man {
        /// The folder for the pages
        folder: PathBuf,
    },
}

#[derive(Debug, Args)]
struct HistoArgs {
    /// A heap dump (HPROF), gzipped or not
    #[arg(value_parser = input())]
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
    #[arg(value_parser = input())]
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
    #[arg(value_parser = input())]
    dump: PathBuf,
    /// What was allocated, dead or alive, in place of what is alive
    #[arg(long)]
    allocated: bool,
    /// What rows are: the stacks that allocated, or the classes
    #[arg(long, value_enum, value_name = "WHAT", default_value_t)]
    by: SitesBy,
    /// Have flame graphs and collapsed stacks begin with what was allocated: callees first, callers last
    #[arg(long)]
    reverse: bool,
    /// Only stacks with a frame, or of a class, that a regular expression matches; profiles and flame
    /// graphs match frames alone, begin with the first, and drop its callers
    #[arg(long, value_name = "RE", value_parser = pattern)]
    focus: Option<Regex>,
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum SitesBy {
    #[default]
    #[value(alias = "site")]
    Stack,
    Class,
}

#[derive(Debug, Args)]
struct DumpArgs {
    /// A heap dump (HPROF), gzipped or not
    #[arg(value_parser = input())]
    dump: PathBuf,
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Debug, Args)]
#[command(after_help = SELECTOR_HELP)]
struct SelectArgs {
    /// A heap dump (HPROF), gzipped or not
    #[arg(value_parser = input())]
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
pub(crate) fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Action> {
    let args = implicit_diff::command_first(args.into_iter().collect());
    let mut command_line = command_line();
    let (cli, matches) = command_line
        .try_get_matches_from_mut(args)
        .and_then(|matches| Ok((Cli::from_arg_matches(&matches)?, matches)))
        .unwrap_or_else(|e| e.format(&mut command_line).exit());
    files::check(&command_line, &matches)?;
    let (setup, task) = match cli.command {
        None => {
            if let Some(failure) = cli.diff.first().and_then(implicit_diff::no_command) {
                return Err(failure);
            }
            return Ok(Action::Job(Box::new(cli.diff.job()?.checked()?)));
        }
        Some(Command::Diff(diff)) => return Ok(Action::Job(Box::new(diff.job()?.checked()?))),
        Some(Command::Histo(HistoArgs {
            dump,
            retained,
            common,
        })) => (common.setup()?, Task::Histo { dump, retained }),
        Some(Command::Threads(DumpArgs { dump, common })) => {
            (common.setup()?, Task::Threads { dump })
        }
        Some(Command::Sites(SitesArgs {
            dump,
            allocated,
            by,
            reverse,
            focus,
            common,
        })) => {
            let job = SitesJob {
                focus,
                allocated,
                by_class: by == SitesBy::Class,
                reverse,
            };
            (common.setup()?, Task::Sites { dump, job })
        }
        Some(Command::Paths(SelectArgs {
            dump,
            selector,
            common,
        })) => (common.setup()?, Task::Paths { dump, selector }),
        Some(Command::Sizeof(sizeof)) => sizeof.task()?,
        Some(Command::Waste(waste)) => waste.task()?,
        Some(Command::Query(query)) => query.task()?,
        Some(Command::Export(export)) => export.task()?,
        Some(Command::Show(ShowArgs { select, offset })) => {
            let (dump, selector) = (select.dump, select.selector);
            let setup = select.common.setup()?;
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
        })) => (common.setup()?, Task::Top { dump, under }),
        Some(Command::Attach(attach)) => {
            return Ok(Action::Capture(Box::new(attach.capture())));
        }
        Some(Command::Detach(detach)) => {
            return Ok(Action::Capture(Box::new(detach.capture())));
        }
        Some(Command::Agent(agent)) => return Ok(Action::Agent(agent.copy())),
        Some(Command::Dump(dump)) => return Ok(Action::Capture(Box::new(dump.capture()))),
        Some(Command::Hunt(hunt)) => return Ok(Action::Job(Box::new(hunt.job()?))),
        Some(Command::Count(count)) => count.task()?,
        Some(Command::Index(IndexArgs {
            what: IndexCommand::Clean { paths },
        })) => return Ok(Action::CleanIndexes(paths)),
        Some(Command::Trace(trace)) => return trace.action(),
        Some(Command::Ui(ui)) => return Ok(Action::Ui(ui.job()?)),
        Some(Command::Summarize(summarize)) => {
            return Ok(Action::Summarize(Box::new(summarize.summarize()?)));
        }
        Some(Command::Redact(redact)) => return redact.redact().map(Action::Redact),
        Some(Command::Fleet(fleet)) => return Ok(Action::Fleet(fleet.fleet())),
        Some(Command::Mcp(mcp)) => return Ok(Action::Mcp(Box::new(mcp.setup()?))),
        Some(Command::Completions { shell }) => return Ok(Action::Completions(shell)),
        Some(Command::Man { folder }) => return Ok(Action::Man(folder)),
    };
    Ok(Action::Job(Box::new(Job { setup, task }.checked()?)))
}

/// The whole command line, for completion scripts and the manual.
pub(crate) fn command_line() -> clap::Command {
    help::with_own_formats(Cli::command())
}
