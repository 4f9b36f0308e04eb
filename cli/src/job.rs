//! What is to be done, checked: jobs with valid options, from the command line or from anywhere else.

#[cfg_attr(
    not(target_os = "linux"),
    allow(
        dead_code,
        reason = "all systems parse these options, but only Linux uses them"
    )
)]
mod capture;
mod output;
mod push;
mod query;
mod redact;
mod trace;
mod view;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap_complete::Shell;
use heapdiff_diff::Gates;
use heapdiff_fleet::Labels;
use heapdiff_query::Table;
use heapdiff_report::Format;
use heapdiff_report::collapsed::Columns;
use hprof::NameMapping;
use hprof::answers::{DeepOptions, Selector};
use regex::Regex;

use crate::failure::{Failure, Result};
use crate::gates::GrowthLimit;
use crate::ignore::IgnoreFile;
use crate::progress::Wanted;
pub(crate) use capture::{
    Agent, AgentCopy, Capture, Count, Fork, Forking, Hunt, Hunted, LONGEST_ARGUMENT, Request,
    Target, What, agent_options,
};
pub(crate) use output::{Output, folder_of};
pub(crate) use push::Push;
pub(crate) use query::names as names_of;
pub(crate) use redact::{Place, Redact, RedactWhat};
pub(crate) use trace::{
    ExportFormat, Import, Prune, RunWindow, SampleOrder, SamplesJob, TraceExport, TraceJob,
};

/// What to do, checked.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) setup: Setup,
    pub(crate) task: Task,
}

impl Job {
    /// Refuses formats that the command has no report in.
    pub(crate) fn checked(self) -> Result<Self> {
        self.setup
            .outputs()
            .try_for_each(|output| self.takes(output.format))?;
        Ok(self)
    }

    fn takes(&self, format: Format) -> Result<()> {
        match &self.task {
            Task::Diff { question, .. }
            | Task::Heap { question, .. }
            | Task::Again { question, .. }
            | Task::Hunt { question, .. }
                if !question.labels.is_empty() && !self.setup.is_any(is_metrics) =>
            {
                let message = "--label works only with an OpenMetrics report";
                return Err(Failure::usage(message).with_hint("add -o heap.prom"));
            }
            Task::Sites { job, .. } if job.reverse && !format.is_flame() => {
                let message = "--reverse needs a flame graph or collapsed stacks as output";
                let hint = "add -o flame.html, -o flame.svg or -o flame.collapsed";
                return Err(Failure::usage(message).with_hint(hint));
            }
            Task::Sites { job, .. } if job.by_frame && job.allocated => {
                let message =
                    "--by frame shows live objects only, so it does not work with --allocated";
                return Err(Failure::usage(message).with_hint("use --by stack or --by class"));
            }
            Task::Sites { job, .. } if job.by_class && format.shows_stacks() => {
                let message = "--by class prints a table; flame graphs and profiles need stacks";
                return Err(Failure::usage(message)
                    .with_hint("leave out --by class, or use --format text or --format json"));
            }
            Task::Trace {
                job: TraceJob::Flame { .. },
                ..
            } => {
                if format.is_flame() {
                    return Ok(());
                }
                let message = "this command writes a web page, an SVG or collapsed stacks";
                let hint = "add -o flame.html, -o flame.svg or -o flame.collapsed";
                return Err(Failure::usage(message).with_hint(hint));
            }
            _ => {}
        }
        if self.task.is_written_as(format) {
            return Ok(());
        }
        let name = format.name();
        let message = format!("this command cannot write the format {name}");
        let others = match format {
            _ if format.is_of_stacks() => {
                "for this format use `heapdiff BEFORE AFTER`, `heapdiff sites DUMP` or `heapdiff trace flame TRACE`"
            }
            _ if format.is_of_rows() => {
                "for this format use `heapdiff query DUMP SQL` or `heapdiff export DUMP -o DIR`"
            }
            _ => "for this format use `heapdiff BEFORE AFTER`",
        };
        let own = Format::ALL.into_iter();
        let own = own.filter(|&format| self.task.is_written_as(format));
        let own: Vec<&str> = own.map(Format::name).collect();
        let hint = format!("this command writes {}\n          {others}", own.join(", "));
        Err(Failure::usage(message).with_hint(hint))
    }

    /// Whether the report is shown on the output. A hunt with files keeps its report with the dumps, and shows it
    /// besides only if it is text for people.
    pub(crate) const fn is_shown(&self) -> bool {
        let format = self.setup.output.format;
        let is_kept = matches!(&self.task, Task::Hunt { hunt, .. } if hunt.files);
        !is_kept || matches!(format, Format::Text | Format::Json | Format::Md)
    }
}

fn is_metrics(format: Format) -> bool {
    format == Format::OpenMetrics
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
    /// A report that was written as JSON, again.
    Again {
        report: PathBuf,
        question: Question,
    },
    /// The holders of most memory in one dump.
    Heap {
        dump: PathBuf,
        question: Question,
    },
    /// Dumps of a running JVM, taken and compared.
    Hunt {
        hunt: Hunt,
        question: Question,
    },
    /// Allocations of a running JVM.
    Count(Count),
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
        dumps: Vec<PathBuf>,
        /// A name for each dump; none where there is one dump that needs none.
        names: Vec<String>,
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
        job: SitesJob,
    },
    Trace {
        trace: PathBuf,
        job: TraceJob,
    },
}

impl Task {
    /// Whether its report can be written so.
    const fn is_written_as(&self, format: Format) -> bool {
        let formats = match self {
            Self::Diff { .. } | Self::Hunt { .. } => Formats::Growth,
            Self::Heap { .. } => Formats::Heap,
            Self::Again { .. } => Formats::Again,
            Self::Sites { .. } => Formats::Sites,
            Self::Query { .. } => Formats::Rows,
            Self::Trace {
                job: TraceJob::Flame { .. },
                ..
            } => Formats::Flame,
            _ => Formats::Plain,
        };
        formats.have(format)
    }
}

/// Which formats a command's report has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Formats {
    /// Of what grew.
    Growth,
    /// Of what one dump holds.
    Heap,
    /// Of a report in JSON, which has no stacks but those of suspects.
    Again,
    Sites,
    Rows,
    /// Of tables as files.
    Tables,
    Flame,
    Plain,
}

impl Formats {
    pub(crate) const fn have(self, format: Format) -> bool {
        let is_special = match self {
            Self::Growth => !format.is_of_rows(),
            Self::Heap => !format.is_of_rows() && !matches!(format, Format::Junit),
            Self::Again => !format.is_of_rows() && !format.is_of_stacks(),
            Self::Sites => format.shows_stacks(),
            Self::Rows => format.is_of_rows(),
            Self::Tables => return format.is_of_rows(),
            Self::Flame => return format.is_flame(),
            Self::Plain => false,
        };
        is_special || matches!(format, Format::Text | Format::Json)
    }
}

/// Which growth a diff reports, and how.
#[derive(Debug, Default)]
pub(crate) struct Question {
    pub(crate) classes: ClassFilter,
    /// What makes the run end with exit code 1.
    pub(crate) gates: Gates,
    /// How much growth is too much, as it was asked for.
    pub(crate) growth: Option<GrowthLimit>,
    /// Growth that is known.
    pub(crate) ignore: Option<IgnoreFile>,
    /// Where stacks begin.
    pub(crate) focus: Option<Regex>,
    /// The figures of collapsed stacks.
    pub(crate) columns: Columns,
    /// Whether gates decide on dumps that cannot be compared.
    pub(crate) allow_partial: bool,
    /// Labels of each metric.
    pub(crate) labels: Vec<(String, String)>,
    /// The folder of the repository with the sources, for places in it.
    pub(crate) source_root: Option<String>,
}

/// Which classes and suspects a diff reports.
#[derive(Debug, Default)]
pub(crate) struct ClassFilter {
    pub(crate) include: Vec<Regex>,
    pub(crate) exclude: Vec<Regex>,
}

/// How to work and how to show it: the same for all commands.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) output: Output,
    /// Where the same report goes besides, each time in its own format.
    pub(crate) more: Vec<Output>,
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
    /// Where the report goes.
    pub(crate) fn outputs(&self) -> impl Iterator<Item = &Output> {
        std::iter::once(&self.output).chain(&self.more)
    }

    /// Whether any format is such.
    pub(crate) fn is_any(&self, such: impl Fn(Format) -> bool) -> bool {
        self.outputs().any(|output| such(output.format))
    }

    /// How many rows a list has: as many as the user says, else `text` where people read the whole report,
    /// and all elsewhere.
    pub(crate) fn rows(&self, text: usize) -> usize {
        self.rows_in(self.output.format, text)
    }

    /// The same for one of the outputs.
    pub(crate) fn rows_in(&self, format: Format, text: usize) -> usize {
        let default = if format.is_read_whole() {
            text
        } else {
            usize::MAX
        };
        self.top.unwrap_or(default)
    }
}

/// What the arguments ask for: a report, or something that ends in none.
#[derive(Debug)]
pub(crate) enum Action {
    Job(Box<Job>),
    /// Something that ends in no report.
    Capture(Box<Capture>),
    /// Deletes the indexes of dumps and in folders.
    CleanIndexes(Vec<PathBuf>),
    ExportTrace(TraceExport),
    Prune(Prune),
    Push(Box<Push>),
    Import(Import),
    /// A page, until the user ends it.
    Ui(UiJob),
    Fleet(Fleet),
    /// Answers to assistants, until they ask no more.
    Mcp(Box<Setup>),
    Redact(Redact),
    Summarize(Box<Summarize>),
    Completions(Shell),
    /// The agent's library, as a file.
    /// The JVMs of this machine are listed.
    Ps,
    /// Prints the state of one JVM.
    Status(Target, Duration),
    Agent(AgentCopy),
    /// The manual's pages, in this folder.
    Man(PathBuf),
}

/// A question about sizes of objects, and the rules for deep sizes.
#[derive(Debug)]
pub(crate) struct SizeofJob {
    pub(crate) selectors: Vec<Selector>,
    pub(crate) deep: DeepOptions,
    /// The class path that says which fields are final, if final fields are not to be followed.
    pub(crate) skip_final: Option<Vec<PathBuf>>,
    /// Whether text lists classes.
    pub(crate) by_class: bool,
    /// How deep the tree is, if one is asked for.
    pub(crate) tree: Option<u32>,
}

/// A question about allocation sites.
#[derive(Debug)]
pub(crate) struct SitesJob {
    /// Only stacks with a frame or a class that this matches.
    pub(crate) focus: Option<Regex>,
    /// Whether to report what was allocated, dead or alive.
    pub(crate) allocated: bool,
    /// Whether rows are classes, not stacks.
    pub(crate) by_class: bool,
    /// True if rows of text are frames that allocate. Live objects of dumps only.
    pub(crate) by_frame: bool,
    /// Whether flame graphs begin with what was allocated.
    pub(crate) reverse: bool,
}

/// Tables to export, the folder for them, and their labels.
#[derive(Debug)]
pub(crate) struct ExportJob {
    pub(crate) folder: PathBuf,
    pub(crate) tables: Vec<Table>,
    pub(crate) labels: Vec<(String, String)>,
    /// Parquet or CSV.
    pub(crate) format: Format,
}

/// A dump to reduce to what comparisons need.
#[derive(Debug)]
pub(crate) struct Summarize {
    pub(crate) dump: PathBuf,
    pub(crate) to: PathBuf,
    pub(crate) setup: Setup,
}

/// A page to serve.
#[derive(Debug)]
pub(crate) struct UiJob {
    pub(crate) files: Vec<PathBuf>,
    pub(crate) mapping: Option<Arc<dyn NameMapping>>,
    /// The port to listen on; 0 for any.
    pub(crate) port: u16,
    pub(crate) open: bool,
    pub(crate) quiet: bool,
}

/// Inputs to add to a fleet's folder.
#[derive(Debug)]
pub(crate) struct Fleet {
    pub(crate) inputs: Vec<PathBuf>,
    pub(crate) folder: PathBuf,
    pub(crate) labels: Labels,
    pub(crate) quiet: bool,
}
