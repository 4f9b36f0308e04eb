//! `heapdiff trace`: the group of commands that analyze traces of the agent.

mod ages;
mod by_site;
mod counts;
mod export;
pub(super) mod flame;
mod gates;
mod import;
mod info;
mod labels;
mod lines;
mod metrics;
mod prune;
mod push;
pub(super) mod read;
mod samples;
mod slices;
mod top;

use clap::{Args, Subcommand};

use super::report;
use crate::args::{ListArgs, NamedArgs, Reported, ViewArgs};
use crate::failure::{Exit, Result};
pub(super) use push::headers_of;

const HELP: &str = "\
Examples:
  heapdiff attach 4711 trace=/tmp/app.db  # let the agent record a trace
  heapdiff trace top /tmp/app.db          # what leaks, and since when";

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct Trace {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show what a trace contains: runs with their duration, GCs and notes
    Info(Reported<info::Info, ViewArgs>),
    /// Rank allocation sites or classes by the trend of their live bytes: what leaks
    Top(Reported<top::Top, NamedArgs<ListArgs>>),
    /// Draw a flame graph of the allocated or live bytes, or of the ages of objects
    Flame(Reported<flame::Flame, NamedArgs<ViewArgs>>),
    /// Show how many GCs objects survive, and which code allocates temporary objects
    Ages(Reported<ages::AgesArgs, NamedArgs<ListArgs>>),
    /// List single samples, of live or freed objects, with uid, size, thread and age
    Samples(Reported<samples::Samples, NamedArgs<ListArgs>>),
    /// Export a trace for other tools: as tables, or as pprof profiles of time slices
    Export(export::Export),
    /// Send live bytes by stack to a profile server (Pyroscope or compatible)
    Push(push::Push),
    /// Print heap, growth and time to OutOfMemoryError as OpenMetrics, for Prometheus
    Metrics(metrics::Metrics),
    /// Delete old data from a trace
    #[command(alias = "expunge")]
    Prune(prune::Prune),
    /// Create a trace from recordings of JFR or async-profiler
    Import(import::Import),
}

impl Trace {
    pub(crate) fn run(self) -> Result<Exit> {
        match self.command {
            Command::Info(args) => report(&args.job()?),
            Command::Top(args) => report(&args.job()?),
            Command::Flame(args) => report(&args.job()?),
            Command::Ages(args) => report(&args.job()?),
            Command::Samples(args) => report(&args.job()?),
            Command::Export(args) => args.run(),
            Command::Push(args) => args.run(),
            Command::Metrics(args) => args.run(),
            Command::Prune(args) => args.run(),
            Command::Import(args) => args.run(),
        }
    }
}
