//! `heapdiff trace prune`: removes old data from a trace.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use heapdiff_report::utc;
use heapdiff_trace::{Database, Trace};
use heapdiff_units::{Size, Span, counted};

use super::read::open;
use crate::failure::{Exit, Failure, Result};
use crate::messages;

const HELP: &str = "\
Examples:
  heapdiff trace prune app.db --before 24h    # keep the last 24 hours
  heapdiff trace prune app.db --before 7d -q  # keep a week, and print nothing";

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct Prune {
    /// Trace that the agent wrote (agent option trace=FILE)
    trace: PathBuf,
    /// Delete data that is older than this, counted back from the end of the trace
    #[arg(long, value_name = "TIME")]
    before: Span,
    /// Do not print what was removed
    #[arg(short, long)]
    quiet: bool,
}

impl Prune {
    /// Removes old data and prints the numbers of removed ticks and GCs.
    pub(crate) fn run(&self) -> Result<Exit> {
        let failure = |e| Failure::trace(&e);
        let path = &self.trace;
        let before = Content::from_trace(&open(path)?)?;
        if before.triggers > 0 {
            // A trace has no triggers. Triggers in another database would run during the removal and could change
            // anything.
            let message = format!(
                "{}: not a trace, because the database contains triggers",
                path.display()
            );
            return Err(Failure::usage(message));
        }
        let span = u64::try_from(self.before.0.as_millis()).unwrap_or(u64::MAX);
        let cut = before.end_ms.saturating_sub(span);
        let cut_ms = i64::try_from(cut).unwrap_or(i64::MAX);
        let size = size(path);
        let mut database = Database::create(path).map_err(failure)?;
        database.prune(cut_ms).map_err(failure)?;
        drop(database);
        let after = Content::from_trace(&open(path)?)?;
        if !self.quiet {
            let gone =
                |before: u64, after: u64, one: &str| counted(before.saturating_sub(after), one);
            messages::print_done(&format!(
                "deleted all data before {time} UTC ({ticks}, {collections}); the trace now has {now} (before: {size})",
                time = utc(cut),
                ticks = gone(before.ticks, after.ticks, "tick"),
                collections = gone(before.collections, after.collections, "GC"),
                now = Size(self::size(path)),
                size = Size(size),
            ));
        }
        Ok(Exit::Done)
    }
}

fn size(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |m| m.len())
}

/// Figures about the content of a trace. The report on removed data is computed from the figures before and after the
/// removal.
struct Content {
    ticks: u64,
    collections: u64,
    end_ms: u64,
    triggers: u64,
}

impl Content {
    fn from_trace(trace: &Trace) -> Result<Self> {
        let mut content = Self {
            ticks: 0,
            collections: 0,
            end_ms: 0,
            triggers: trace.triggers().map_err(|e| Failure::trace(&e))?,
        };
        for run in trace.runs().map_err(|e| Failure::trace(&e))? {
            let ticks = trace.ticks(run.id).map_err(|e| Failure::trace(&e))?;
            let collections = trace.collections(run.id).map_err(|e| Failure::trace(&e))?;
            content.ticks += ticks.len() as u64;
            content.collections += collections.len() as u64;
            let end = ticks.iter().map(|t| t.time_ms).max().unwrap_or(0);
            content.end_ms = content.end_ms.max(end);
        }
        Ok(content)
    }
}
