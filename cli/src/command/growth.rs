//! Options of comparisons: they select the growth to report, and how it is shown.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use heapdiff_diff::Gates;
use heapdiff_report::collapsed::Columns;
use heapdiff_report::{Format, Report, View};
use heapdiff_units::Size;
use regex::Regex;

use crate::args::labels::{label, labels};
use crate::failure::{Failure, Result};
use crate::fits::ClassFilter;
use crate::frame;
use crate::gates::GrowthLimit;
use crate::ignore::IgnoreFile;
use crate::job::{Setup, text_and_json};

/// Options that select the growth to report, and set the gates.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Diff")]
pub(crate) struct Question {
    #[command(flatten)]
    pub(crate) classes: ClassFilter,
    /// Exit with 1 if the heap or one suspect grew by at least this much: 10MiB, or 10% of the
    /// first heap
    #[arg(long = "fail-on-growth", value_name = "SIZE|PERCENT")]
    pub(crate) growth: Option<GrowthLimit>,
    /// Exit with 1 if any suspect has the verdict `leak` or `growth`
    #[arg(long)]
    pub(super) fail_on_suspect: bool,
    /// Maximum heap of the JVM, such as 2GiB, for the time to OutOfMemoryError (five dumps or more)
    /// [default: from --trace]
    #[arg(long, value_name = "SIZE")]
    pub(crate) heap_limit: Option<Size>,
    /// Check the gates (--fail-on-...) even if a dump is damaged or the dumps are not comparable,
    /// instead of exiting with 3
    #[arg(long)]
    pub(crate) allow_partial: bool,
    /// File of known growth to leave out, one rule per line, such as `holder com.acme.Cache.*`,
    /// `class com.acme.Entry` or `frame com.acme.Cache.warm*`
    #[arg(id = "ignore", long, value_name = "FILE")]
    pub(super) ignore_file: Option<PathBuf>,
    // The rules of `--ignore`.
    #[arg(skip)]
    pub(crate) ignore: Option<IgnoreFile>,
    // The files of `--recording`.
    #[arg(skip)]
    pub(crate) recordings: Vec<PathBuf>,
    /// Start stacks at the first matching frame, merge equal stacks, and drop stacks without a
    /// match
    #[arg(long, value_name = "RE", value_parser = frame::pattern)]
    pub(crate) focus: Option<Regex>,
    /// Source folder of the repository, such as src/main/java, put before file paths in SARIF and
    /// annotations
    #[arg(long, value_name = "DIR")]
    pub(super) source_root: Option<String>,
    /// Value columns of collapsed stacks: net growth in bytes, or bytes before and after
    #[arg(long, value_name = "WHAT", default_value = "growth", value_parser = columns())]
    pub(crate) columns: Columns,
    /// Label for each OpenMetrics metric, such as service=shop; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = label)]
    pub(super) label: Vec<(String, String)>,
}

fn columns() -> impl TypedValueParser<Value = Columns> {
    PossibleValuesParser::new(["growth", "both"]).map(|name| match &*name {
        "both" => Columns::Both,
        _ => Columns::Growth,
    })
}

impl Question {
    /// Checks the labels, and reads the rules of `--ignore`.
    pub(super) fn checked(mut self) -> Result<Self> {
        labels(&self.label, &["rank", "verdict", "holder", "class"])?;
        let file = self.ignore_file.as_deref();
        self.ignore = file.map(IgnoreFile::read).transpose()?;
        Ok(self)
    }

    /// Checks that labels are only given with a report that can contain them.
    pub(super) fn check(&self, setup: &Setup) -> Result<()> {
        if self.label.is_empty() || setup.is_any(|format| format == Format::OpenMetrics) {
            return Ok(());
        }
        let message = "--label works only with an OpenMetrics report";
        Err(Failure::usage(message).with_hint("add -o heap.prom"))
    }

    /// Returns the gates: the conditions under which the run fails. A growth limit in percent refers to the size of the
    /// heap in the first dump. Until that dump has been read, the limit is computed for the largest possible heap.
    pub(super) fn gates(&self) -> Gates {
        Gates {
            growth: self.growth.map(|limit| limit.bytes(u64::MAX)),
            suspect: self.fail_on_suspect,
        }
    }

    /// True if an option is set that makes sense only for two dumps.
    pub(super) fn needs_two_dumps(&self) -> bool {
        let both = self.columns == Columns::Both;
        self.gates().any() || both || self.ignore_file.is_some() || self.heap_limit.is_some()
    }

    /// Returns the options of the output that are the same for all outputs. Used for comparisons and for reports of one
    /// dump.
    pub(super) fn view(&self, setup: &Setup) -> View {
        View {
            verbose: setup.progress.verbose,
            focus: self.focus.clone(),
            labels: self.label.clone(),
            source_root: self.source_root.clone(),
            ..View::default()
        }
    }
}

/// True if a comparison can be written in this format.
pub(super) fn formats(format: Format) -> bool {
    use Format::{Github, Html, Junit, Md, OpenMetrics, Sarif};
    let is_document = matches!(format, Html | Md | Junit | OpenMetrics | Sarif | Github);
    text_and_json(format) || format.has_only_stacks() || is_document
}

/// Converts each element of `reports` to a [`Report`] with the function `report`.
pub(super) fn each<R>(reports: Vec<R>, report: impl Fn(Box<R>) -> Report) -> Vec<Report> {
    reports.into_iter().map(|r| report(Box::new(r))).collect()
}
