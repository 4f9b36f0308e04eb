//! What is asked of traces, checked.

use std::path::PathBuf;
use std::sync::Arc;

use clap::ValueEnum;
use heapdiff_trace::Which;
use heapdiff_units::Span;
use hprof::NameMapping;
use regex::Regex;

use crate::merge::Merged;
use crate::time::Moment;

/// Which part of which run.
#[derive(Debug, Default)]
pub(crate) struct RunWindow {
    pub(crate) run: Option<String>,
    pub(crate) since: Option<Moment>,
    pub(crate) until: Option<Moment>,
    pub(crate) window: Option<Span>,
}

impl RunWindow {
    /// Whether less than the whole run is asked for.
    pub(crate) const fn is_part(&self) -> bool {
        self.since.is_some() || self.until.is_some() || self.window.is_some()
    }
}

/// Which samples of which run.
#[derive(Debug)]
pub(crate) struct SamplesJob {
    pub(crate) run: Option<String>,
    pub(crate) which: Which,
    pub(crate) focus: Option<Regex>,
    pub(crate) thread: Option<Regex>,
    pub(crate) by: SampleOrder,
}

/// A question about a trace that ends in a report.
#[derive(Debug)]
pub(crate) enum TraceJob {
    Info,
    Top {
        part: RunWindow,
        /// What is ranked by what stays alive; `None`: nothing, lines of code are listed alone.
        by: Option<Merged>,
        /// Where stacks begin; those without such a frame are left out.
        focus: Option<Regex>,
    },
    Samples(SamplesJob),
    /// All stacks, as a flame graph.
    Flame {
        part: RunWindow,
        focus: Option<Regex>,
        /// What is alive at the end, not what was allocated.
        live: bool,
        /// Callees first.
        reverse: bool,
    },
}

/// What samples are ordered by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum SampleOrder {
    #[default]
    Age,
    Bytes,
}

/// What is exported, and where to.
#[derive(Debug)]
pub(crate) struct TraceExport {
    pub(crate) trace: PathBuf,
    pub(crate) format: ExportFormat,
    pub(crate) output: Option<PathBuf>,
    pub(crate) table: Option<String>,
    pub(crate) slice: Option<Span>,
    pub(crate) run: Option<String>,
    pub(crate) mapping: Option<Arc<dyn NameMapping>>,
    pub(crate) quiet: bool,
}

/// What other programs read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum ExportFormat {
    Csv,
    Json,
    Parquet,
    Pprof,
}

impl ExportFormat {
    pub(crate) const fn extension(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Json => "jsonl",
            Self::Parquet => "parquet",
            Self::Pprof => "pb.gz",
        }
    }
}

/// What is removed.
#[derive(Debug)]
pub(crate) struct Prune {
    pub(crate) trace: PathBuf,
    pub(crate) before: Span,
    pub(crate) quiet: bool,
}

/// What is imported, and where to.
#[derive(Debug)]
pub(crate) struct Import {
    pub(crate) recordings: Vec<PathBuf>,
    pub(crate) output: PathBuf,
    pub(crate) force: bool,
    pub(crate) tick: Option<Span>,
    pub(crate) service: Option<String>,
    pub(crate) host: Option<String>,
    pub(crate) quiet: bool,
}
