//! A task with its settings, both already checked. They come from a command line, or from a tool call of an AI
//! assistant.

mod output;

use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;

use heapdiff_report::{Format, Report, View};
use hprof::{Refs, Snapshot};

use crate::failure::{Failure, Result};
use crate::progress::Wanted;
pub(crate) use output::{Output, check_file, folder_of};

/// A function that returns true for each format that a command can write.
pub(crate) type Formats = fn(Format) -> bool;

/// True for the formats that most commands can write: text and JSON.
pub(crate) fn text_and_json(format: Format) -> bool {
    matches!(format, Format::Text | Format::Json)
}

/// The work of a command whose result is a report.
pub(crate) trait Task: Debug + Send {
    /// Returns the formats of the report.
    fn formats() -> Formats
    where
        Self: Sized,
    {
        text_and_json
    }

    /// Refuses options of the task that do not fit the [`Setup`] (the settings that all commands share) or the format
    /// of an output. The error has a specific message.
    fn check(&self, _: &Setup, _: Format) -> Result<()> {
        Ok(())
    }

    /// Reads the inputs and creates the report. Returns one report for each output, or a single report for all outputs.
    fn run(&self, setup: &Setup) -> Result<Vec<Report>>;

    /// True if the report is to be written to the outputs. `format` is the format of the first output.
    fn is_shown(&self, _: Format) -> bool {
        true
    }

    /// Prints the messages that follow the report.
    fn end(&self, _: &Setup, _: &Report) {}
}

/// A task with its setup.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) setup: Setup,
    pub(crate) task: Box<dyn Task>,
}

impl Job {
    /// Creates a job. Refuses formats that the task cannot write.
    pub(crate) fn new<T: Task + 'static>(setup: Setup, task: T) -> Result<Self> {
        for output in setup.outputs() {
            task.check(&setup, output.format)?;
            check_format(output.format, T::formats())?;
        }
        let task = Box::new(task);
        Ok(Self { setup, task })
    }
}

fn check_format(format: Format, formats: Formats) -> Result<()> {
    if formats(format) {
        return Ok(());
    }
    let name = format.name();
    let message = format!("this command cannot write the format {name}");
    let others = match format {
        _ if format.has_only_stacks() => {
            "for this format use `heapdiff BEFORE AFTER`, `heapdiff sites DUMP` or `heapdiff trace flame TRACE`"
        }
        _ if format.has_only_rows() => {
            "for this format use `heapdiff query DUMP SQL` or `heapdiff export DUMP -o DIR`"
        }
        _ => "for this format use `heapdiff BEFORE AFTER`",
    };
    let own = Format::ALL.into_iter().filter(|&format| formats(format));
    let own: Vec<&str> = own.map(Format::name).collect();
    let hint = format!(
        "the formats of this command are {}\n          {others}",
        own.join(", ")
    );
    Err(Failure::usage(message).with_hint(hint))
}

/// Dumps that stay open between tasks: their paths and snapshots.
#[derive(Clone, Default)]
pub(crate) struct OpenDumps(pub(crate) Arc<Vec<(PathBuf, Arc<Snapshot>)>>);

impl Debug for OpenDumps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let paths = self.0.iter().map(|(path, _)| path);
        f.debug_list().entries(paths).finish()
    }
}

/// Settings of the analysis and the output, which all commands share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Setup {
    pub(crate) output: Output,
    /// Further outputs of the same report, each in its own format.
    pub(crate) more: Vec<Output>,
    /// Number of rows of each list, if the command line sets it.
    pub(crate) top: Option<usize>,
    pub(crate) progress: Wanted,
    pub(crate) analysis: hprof::Options,
    pub(crate) threads: Option<usize>,
    pub(crate) strict: bool,
    /// True if indexes are read and written.
    pub(crate) index: bool,
    /// Open dumps, which commands do not open again.
    pub(crate) open: OpenDumps,
}

impl Setup {
    /// Returns the outputs of the report.
    pub(crate) fn outputs(&self) -> impl Iterator<Item = &Output> {
        std::iter::once(&self.output).chain(&self.more)
    }

    /// True if at least one output has a format for which `such` returns true.
    pub(crate) fn is_any(&self, such: impl Fn(Format) -> bool) -> bool {
        self.outputs().any(|output| such(output.format))
    }

    /// Returns the number of rows of a list. This is the value of `--top` if the user gives it. Otherwise it
    /// is the parameter `text` for formats that people read, and unlimited for other formats.
    pub(crate) fn rows(&self, text: usize) -> usize {
        self.rows_in(self.output.format, text)
    }

    /// Like [`Self::rows`], but for the given format.
    pub(crate) fn rows_in(&self, format: Format, text: usize) -> usize {
        let default = if format.is_read_by_people() {
            text
        } else {
            usize::MAX
        };
        self.top.unwrap_or(default)
    }

    /// Returns the display options of a report on objects of this snapshot.
    pub(crate) fn view(&self, snapshot: &Snapshot) -> View {
        View {
            verbose: self.progress.verbose,
            holds_weakly: snapshot.refs() == Refs::All,
            ..View::default()
        }
    }

    /// Sets the number of threads of the analysis.
    pub(crate) fn use_threads(&self) -> Result<()> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(self.threads.unwrap_or(0));
        pool.build_global()
            .map_err(|e| Failure::usage(format!("--threads: {e}")))
    }
}
