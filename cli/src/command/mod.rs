//! The list of commands. Each command has a file with its arguments, checks and code.

mod again;
mod agent;
mod agent_help;
mod attach;
mod completions;
mod count;
mod describe;
mod detach;
mod diff;
mod dump;
mod dump_info;
mod export;
mod find;
mod fleet;
mod growth;
mod guard;
mod heap;
mod histo;
mod history;
mod hunt;
mod index;
mod man;
mod mcp;
mod opened;
mod owners;
mod paths;
mod ps;
mod query;
mod recording;
mod redact;
mod repair;
mod show;
mod side_by_side;
mod sites;
mod sizeof;
mod status;
mod summarize;
mod thread_locals;
mod threads;
mod top;
mod trace;
mod ui;
mod waste;

use clap::Subcommand;
use heapdiff_report::Report;

use crate::args::{NamedArgs, Reported, ViewArgs};
use crate::failure::{Exit, Result};
use crate::interrupt;
use crate::job::Job;
use crate::messages;
use crate::write;
pub(crate) use diff::DiffArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Compare heap dumps: what grew and what holds it (the default command). With one dump: what
    /// retains the most
    #[command(override_usage = "heapdiff [diff] [OPTIONS] BEFORE AFTER [LATER]...
       heapdiff [diff] [OPTIONS] DUMP")]
    Diff(diff::DiffArgs),
    /// Show objects and bytes of each class: what fills the heap
    Histo(Reported<histo::Histo>),
    /// Show the objects that retain the most memory; start here if you have one dump only
    Top(Reported<top::Top>),
    /// Measure objects: shallow, deep and retained size, each object alone and all as one set
    Sizeof(Reported<sizeof::Sizeof>),
    /// Show objects with their fields, elements and referrers
    Show(Reported<show::Show>),
    /// Show the shortest paths from GC roots to objects: why the objects are not freed
    Paths(Reported<paths::Paths>),
    /// Find strings and arrays that contain a text, a regular expression or bytes, and what holds them
    Find(Reported<find::Find>),
    /// Find wasted memory: duplicate strings and arrays, empty and sparse collections, unused
    /// capacity
    Waste(Reported<waste::Waste>),
    /// Show memory by owner: package, jar, class loader, thread, bean or tenant
    Owners(Reported<owners::Owners>),
    /// Show threads, their stack frames, what their local variables retain, and pending work
    Threads(Reported<threads::Threads>),
    /// Show live or allocated bytes by allocation stack or class, as a table or flame graph (for a dump
    /// taken with the agent, or a JFR recording)
    Sites(Reported<sites::Sites>),
    /// Query a dump with SQL: objects, classes, references, strings and threads
    Query(query::QueryArgs),
    /// Export a dump as Parquet or CSV for other tools, one file per table of `query`
    Export(export::ExportArgs),
    /// Write a small summary (a few MB) of a dump, to compare later dumps against
    Summarize(summarize::Summarize),
    /// Write a copy of a dump without strings and array contents, safe to share
    Redact(redact::Redact),
    /// Write a whole dump from a truncated or damaged one, or from a dump and its segments, for other
    /// tools
    Repair(repair::RepairArgs),
    /// List the JVMs of this machine with process id, uptime, heap and agent state
    Ps(ps::Ps),
    /// Show one JVM: user, version, uptime, heap and agent state
    Status(status::Status),
    /// Load the agent into a running JVM, so that later dumps contain allocation sites
    Attach(attach::Attach),
    /// Stop the agent in a running JVM
    Detach(detach::Detach),
    /// Print the path of the agent library, to start a JVM with the agent (-agentpath)
    Agent(agent::Agent),
    /// Take a heap dump of a running JVM
    Dump(dump::Dump),
    /// Find a leak in a running JVM: load the agent, take a dump, wait, take a second dump, compare
    Hunt(hunt::HuntArgs),
    /// Let the agent take a dump before the JVM dies; summarize and upload the dump
    Guard(guard::GuardArgs),
    /// Count every allocation of a running JVM for a while, by line of code
    Count(Reported<count::Count, NamedArgs<ViewArgs>>),
    /// Manage the index files that make later commands on a dump fast
    Index(index::Index),
    /// Analyze a trace that the agent recorded over time: what leaks, and since when
    Trace(trace::Trace),
    /// Show dumps, running traces or a report in the browser
    Ui(ui::Ui),
    /// Collect traces and reports of many JVMs in a folder of Parquet files
    Fleet(fleet::Fleet),
    /// Serve heap analysis to AI assistants, over the Model Context Protocol (MCP) on stdin and
    /// stdout
    Mcp(mcp::Mcp),
    /// Print a completion script for a shell
    Completions(completions::Completions),
    /// Write the manual, one page per command
    #[command(hide = true)]
    Man(man::Man),
}

impl Command {
    /// Runs the command. `line` returns clap's description of all commands and options, which completion scripts and
    /// the manual need.
    pub(crate) fn run(self, line: fn() -> clap::Command) -> Result<Exit> {
        match self {
            Self::Diff(args) => report(&args.job()?),
            Self::Find(args) => report(&args.job()?),
            Self::Histo(args) => report(&args.job()?),
            Self::Top(args) => report(&args.job()?),
            Self::Sizeof(args) => report(&args.job()?),
            Self::Show(args) => report(&args.job()?),
            Self::Paths(args) => report(&args.job()?),
            Self::Waste(args) => report(&args.job()?),
            Self::Owners(args) => report(&args.job()?),
            Self::Threads(args) => report(&args.job()?),
            Self::Sites(args) => report(&args.job()?),
            Self::Query(args) => report(&args.job()?),
            Self::Export(args) => report(&args.job()?),
            Self::Summarize(args) => args.run(),
            Self::Redact(args) => args.run(),
            Self::Repair(args) => args.run(),
            Self::Ps(args) => args.run(),
            Self::Status(args) => args.run(),
            Self::Attach(args) => args.run(),
            Self::Detach(args) => args.run(),
            Self::Agent(args) => args.run(),
            Self::Dump(args) => args.run(),
            Self::Hunt(args) => report(&args.job()?),
            Self::Guard(args) => args.run(),
            Self::Count(args) => report(&args.job()?),
            Self::Index(args) => args.run(),
            Self::Trace(args) => args.run(),
            Self::Ui(args) => args.run(),
            Self::Fleet(args) => args.run(),
            Self::Mcp(args) => args.run(),
            Self::Completions(args) => args.run(line()),
            Self::Man(args) => args.run(line()),
        }
    }
}

/// Runs a job and writes its report.
fn report(job: &Job) -> Result<Exit> {
    interrupt::handle();
    let (setup, task) = (&job.setup, &job.task);
    setup.use_threads()?;
    let reports = task.run(setup)?;
    if let Some(report) = reports.first() {
        messages::conditions(report, setup)?;
    }
    messages::mapping(setup);
    if task.is_shown(setup.output.format) {
        for (output, report) in setup.outputs().zip(&reports) {
            write::report(output, report)?;
        }
    }
    let Some(report) = reports.first() else {
        return Ok(Exit::Done);
    };
    task.end(setup, report);
    Ok(check_gates(job, report))
}

/// Prints which gates make the run fail. A gate is a condition such as `--fail-on-growth`. If gates cannot be checked,
/// prints the reason. Returns the exit code of the run.
fn check_gates(job: &Job, report: &Report) -> Exit {
    let (undecided, outcomes) = match report {
        Report::Diff(diff) => {
            let hint = "add --allow-partial to check the gates anyway";
            let why = diff.unchecked_gates_reason();
            (why.map(|why| (why.to_owned(), hint)), &diff.more.outcomes)
        }
        Report::TraceTop(top) => (top.more.undecided.clone(), &top.more.outcomes),
        Report::Owners(owners) => (owners.more.undecided.clone(), &owners.more.outcomes),
        _ => return Exit::Done,
    };
    if let Some((why, hint)) = undecided {
        messages::print_undecided_gates(&why, hint);
        return Exit::Input;
    }
    let outcomes = outcomes.iter();
    let tripped: Vec<&str> = outcomes
        .filter_map(|gate| gate.tripped.as_deref())
        .collect();
    if tripped.is_empty() {
        return Exit::Done;
    }
    messages::gates(&tripped, &job.setup);
    Exit::Gate
}
