//! The command line: what clap parses, turned once into an [`Action`] whose options are valid.

mod agent;
mod capture;
mod common;
mod diff;
mod examples;
mod files;
mod fleet;
mod help;
mod implicit_diff;
mod index;
mod labels;
mod mcp;
mod mistakes;
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
use hprof::answers::Selector;
use regex::Regex;

use crate::failure::Result;
use crate::frame;
use crate::job::{Action, Job, SitesJob, Task};
use agent::AgentArgs;
use capture::{AttachArgs, CountArgs, DetachArgs, DumpJvmArgs, HuntArgs, StatusArgs};
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
`heapdiff help COMMAND` shows the options and examples of a command. Sizes are written 10MiB, 1.5GiB
or 512m (as in -Xmx). If a dump is given as -, heapdiff reads it from standard input. If a dump has
the same name as a command, such as histo, write ./histo.

Exit codes: 0 = done, 1 = a gate (--fail-on-...) failed the command, 2 = wrong usage, 3 = an input
could not be read, or a JVM or a server could not be reached.";

const SELECTOR_HELP: &str = "\
SELECTOR: an object, class, field, frame or thread, written as in reports. The address, length or
count that a report prints with a name may stay. An address selects this object only.
  0x7f0012345678         an object
  com.acme.Foo           all instances of a class
  com.acme.Foo.field     the value of a static field, or the values of a field in all instances
  'com.acme.Foo[*]'      the elements of all arrays of type com.acme.Foo[]
  'class com.acme.Foo'   the class object
  'com.acme.Foo.run(Foo.java:42)'        the local variables of a frame, in all threads
  'local variable of com.acme.Foo.run'   the local variables of a method, in all threads
  'values of com.acme.Foo.LOCAL'         the values of a ThreadLocal, in all threads
  'worker 1'             a thread
  /regex/                all instances of the classes whose names match
Frames of allocation stacks do not select objects: use `heapdiff sites DUMP --focus FRAME`.";

const PS_HELP: &str = "\
Only JVMs that this user may inspect are listed: those of the same user, or all JVMs if run as root.
Other commands take the process id, or a part of the name of the main class or jar.";

const SITES_HELP: &str = "\
Bytes are estimated from samples. The number after ± is half the width of the 95 % confidence
interval. Frames are listed from the allocation to the start of the thread. JDK frames are folded;
-v shows them.

`-o flame.html` and `-o flame.svg` draw all stacks as a flame graph. With --reverse, each class
shows the frames that allocate it. For allocation totals per class, load the agent with
strategy=class.

From a JFR recording, `heapdiff sites` shows live objects if the recording has them, otherwise
allocations. Live objects are recorded as profiler.LiveObject (async-profiler) or as
jdk.OldObjectSample (JFR). jdk.OldObjectSample covers only objects that the JVM tracked; heapdiff
does not extrapolate these objects to the whole heap.";

/// Compares Java heap dumps and names the field that leaks. With its agent, it also names the code
/// that allocated the objects.
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
    /// Compare heap dumps: what grew and what holds it (the default command). With one dump: what
    /// retains the most
    #[command(override_usage = "heapdiff [diff] [OPTIONS] BEFORE AFTER [LATER]...
       heapdiff [diff] [OPTIONS] DUMP")]
    Diff(DiffArgs),
    /// Show objects and bytes of each class: what fills the heap
    Histo(HistoArgs),
    /// Show the objects that retain the most memory; start here if you have one dump only
    Top(TopArgs),
    /// Measure objects: shallow, deep and retained size, each object alone and all as one set
    Sizeof(SizeofArgs),
    /// Show objects with their fields, elements and referrers
    Show(ShowArgs),
    /// Show the shortest paths from GC roots to objects: why the objects are not freed
    Paths(SelectArgs),
    /// Find wasted memory: duplicate strings and arrays, empty and sparse collections, unused
    /// capacity
    Waste(WasteArgs),
    /// Show threads, their stack frames and what their local variables retain
    Threads(DumpArgs),
    /// Show live or allocated bytes by allocation stack or class, as a table or flame graph (for a dump
    /// taken with the agent, or a JFR recording)
    Sites(SitesArgs),
    /// Query a dump with SQL: objects, classes, references, strings and threads
    Query(QueryArgs),
    /// Export a dump as Parquet or CSV for other tools, one file per table of `query`
    Export(ExportArgs),
    /// Write a small summary (a few MB) of a dump, to compare later dumps against
    Summarize(SummarizeArgs),
    /// Write a copy of a dump without strings and array contents, safe to share
    Redact(RedactArgs),
    /// List the JVMs of this machine with process id, uptime, heap and agent state
    #[command(after_help = PS_HELP)]
    Ps,
    /// Show one JVM: user, version, uptime, heap and agent state
    Status(StatusArgs),
    /// Load the agent into a running JVM, so that later dumps contain allocation sites
    Attach(AttachArgs),
    /// Stop the agent in a running JVM
    Detach(DetachArgs),
    /// Print the path of the agent library, to start a JVM with the agent (-agentpath)
    Agent(AgentArgs),
    /// Take a heap dump of a running JVM
    Dump(DumpJvmArgs),
    /// Find a leak in a running JVM: load the agent, take a dump, wait, take a second dump, compare
    Hunt(HuntArgs),
    /// Count every allocation of a running JVM for a while, by line of code
    Count(CountArgs),
    /// Manage the index files that make later commands on a dump fast
    Index(IndexArgs),
    /// Analyze a trace that the agent recorded over time: what leaks, and since when
    Trace(TraceArgs),
    /// Show running traces, or a report, in the browser
    Ui(UiArgs),
    /// Collect traces and reports of many JVMs in a folder of Parquet files
    Fleet(FleetArgs),
    /// Serve heap analysis to AI assistants, over the Model Context Protocol (MCP) on stdin and
    /// stdout
    Mcp(McpArgs),
    /// Print a completion script for a shell
    Completions {
        /// Shell that loads the script
        shell: Shell,
    },
    /// Write the manual, one page per command
    #[command(hide = true)]
    Man {
        /// Folder for the pages
        folder: PathBuf,
    },
}

#[derive(Debug, Args)]
struct HistoArgs {
    /// Heap dump (HPROF), gzipped or not
    #[arg(value_parser = input())]
    dump: PathBuf,
    /// Also show the bytes that all instances of each class retain together, and sort by these
    /// bytes (slower)
    #[arg(long)]
    retained: bool,
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Debug, Args)]
#[command(after_help = SELECTOR_HELP)]
struct TopArgs {
    /// Heap dump (HPROF), gzipped or not
    #[arg(value_parser = input())]
    dump: PathBuf,
    /// Show only the objects that these objects dominate directly (one level of the dominator tree)
    #[arg(long, value_name = "SELECTOR")]
    under: Option<Selector>,
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Debug, Args)]
#[command(after_help = SITES_HELP)]
struct SitesArgs {
    /// Heap dump (HPROF) or a flight recording (JFR), gzipped or not
    #[arg(value_parser = input())]
    dump: PathBuf,
    /// Show all allocated objects, not only live ones
    #[arg(long)]
    allocated: bool,
    /// Group by allocating frame, stack or class [default: frame; stack with --allocated]
    #[arg(long, value_enum, value_name = "WHAT")]
    by: Option<SitesBy>,
    /// Invert flame graphs and collapsed stacks: the allocated class and frame first, callers after
    /// them
    #[arg(long)]
    reverse: bool,
    /// Show only stacks with a matching frame or class. Flame graphs and profiles match only
    /// frames, and each stack starts at the matching frame
    #[arg(long, value_name = "RE", value_parser = frame::pattern)]
    focus: Option<Regex>,
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SitesBy {
    Frame,
    #[value(alias = "site")]
    Stack,
    Class,
}

#[derive(Debug, Args)]
struct DumpArgs {
    /// Heap dump (HPROF), gzipped or not
    #[arg(value_parser = input())]
    dump: PathBuf,
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Debug, Args)]
#[command(after_help = SELECTOR_HELP)]
struct SelectArgs {
    /// Heap dump (HPROF), gzipped or not
    #[arg(value_parser = input())]
    dump: PathBuf,
    /// Objects to analyze (see SELECTOR below)
    selector: Selector,
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Debug, Args)]
struct ShowArgs {
    #[command(flatten)]
    select: SelectArgs,
    /// Index of the first element to show of arrays and collections (--top sets how many)
    #[arg(long, value_name = "N", default_value_t, hide_default_value = true)]
    offset: u64,
}

/// Parses the arguments. Ends the process for `--help`, `--version` and what clap refuses.
pub(crate) fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Action> {
    let args = implicit_diff::command_first(args.into_iter().collect());
    let mut command_line = command_line();
    let (cli, matches) = command_line
        .try_get_matches_from_mut(&args)
        .and_then(|matches| Ok((Cli::from_arg_matches(&matches)?, matches)))
        .unwrap_or_else(|error| {
            mistakes::explain(error, &mut command_line, &args)
                .format(&mut command_line)
                .exit()
        });
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
                by_class: by == Some(SitesBy::Class),
                by_frame: by.unwrap_or(if allocated {
                    SitesBy::Stack
                } else {
                    SitesBy::Frame
                }) == SitesBy::Frame,
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
        Some(Command::Ps) => return Ok(Action::Ps),
        Some(Command::Status(status)) => return Ok(status.action()),
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
    help::complete(Cli::command())
}
