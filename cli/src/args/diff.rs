//! Which dumps to compare, and which growth to speak of.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use heapdiff_diff::{Gates, pattern};
use heapdiff_report::collapsed::Columns;
use regex::Regex;

use super::common::{OutputsArgs, input};
use super::labels::{label, labels};
use super::query::{command, is_statement};
use crate::failure::{Failure, Result};
use crate::frame;
use crate::gates::GrowthLimit;
use crate::ignore::IgnoreFile;
use crate::job::{ClassFilter, Job, Question, Task};
use crate::report_file::is_json;

#[derive(Debug, Args)]
pub(super) struct DiffArgs {
    /// First heap dump (HPROF, gzipped or not), or the only one
    #[arg(value_parser = input())]
    before: Option<PathBuf>,
    /// Later dump of the same program
    #[arg(value_parser = input())]
    after: Option<PathBuf>,
    /// More dumps, oldest first: with them, heapdiff distinguishes steady growth from a cache that
    /// fills up
    #[arg(value_parser = input())]
    later: Vec<PathBuf>,
    /// Trace of the same JVM: adds to each suspect when its growth began and how fast it grows
    #[arg(long, value_name = "T.db", help_heading = "Diff")]
    trace: Option<PathBuf>,
    #[command(flatten)]
    growth: GrowthArgs,
    #[command(flatten)]
    common: OutputsArgs,
}

impl DiffArgs {
    /// The first argument.
    pub(super) fn first(&self) -> Option<&Path> {
        self.before.as_deref()
    }

    /// Whether something is asked for that only a comparison can tell.
    fn is_of_growth(&self) -> bool {
        let growth = &self.growth;
        let gates = growth.fail_on_growth.is_some() || growth.fail_on_suspect;
        let both = matches!(growth.columns, ColumnsArg::Both);
        gates || both || growth.ignore.is_some() || self.trace.is_some()
    }

    /// What one dump holds.
    fn heap(self) -> Result<Job> {
        let Some(dump) = self.before else {
            return Err(too_few("no dump was given".to_owned()));
        };
        let question = self.growth.checked()?;
        Ok(Job {
            setup: self.common.setup()?,
            task: Task::Heap { dump, question },
        })
    }

    /// A report that there is already.
    fn again(self) -> Result<Job> {
        let Some(report) = self.before else {
            return Err(too_few("no report was given".to_owned()));
        };
        let unfit = [
            (self.trace.is_some(), "--trace"),
            (!self.growth.include.is_empty(), "--include"),
            (!self.growth.exclude.is_empty(), "--exclude"),
            (matches!(self.growth.columns, ColumnsArg::Both), "--columns"),
        ];
        if let Some((_, option)) = unfit.into_iter().find(|(is_given, _)| *is_given) {
            let message = format!(
                "{option} needs dumps, but {} is a saved report",
                report.display()
            );
            return Err(Failure::usage(message));
        }
        let question = self.growth.checked()?;
        Ok(Job {
            setup: self.common.setup()?,
            task: Task::Again { report, question },
        })
    }

    pub(super) fn job(self) -> Result<Job> {
        let named = [&self.before, &self.after];
        let named = named.into_iter().flatten().chain(&self.later);
        let dumps: Vec<PathBuf> = named.cloned().collect();
        if let Some((sql, rest)) = dumps.split_last()
            && let Some(dump) = rest.first()
            && is_statement(sql)
        {
            let message = "a SELECT needs the command `query`";
            return Err(
                Failure::usage(message).with_hint(command(&dump.display().to_string(), sql))
            );
        }
        match &dumps[..] {
            [] => return Err(too_few("no dumps were given".to_owned())),
            [one] if is_json(one) => return self.again(),
            [one] if self.is_of_growth() => {
                let one = one.display();
                let message = format!("these options need two dumps, but only {one} was given");
                return Err(too_few(message)
                    .with_hint("only a comparison has --fail-on-..., --ignore, --trace and `--columns both`: heapdiff BEFORE AFTER"));
            }
            [_] => return self.heap(),
            _ => {}
        }
        let question = self.growth.checked()?;
        Ok(Job {
            setup: self.common.setup()?,
            task: Task::Diff {
                dumps,
                trace: self.trace,
                question,
            },
        })
    }
}

/// Which growth counts.
#[derive(Debug, Args)]
pub(super) struct GrowthArgs {
    /// Report only matching classes, and suspects made up of them or held by their fields; may be
    /// repeated
    #[arg(long, value_name = "RE", value_parser = pattern, help_heading = "Diff")]
    include: Vec<Regex>,
    /// Leave out matching classes, and suspects made up of them or held by their fields; may be
    /// repeated
    #[arg(long, value_name = "RE", value_parser = pattern, help_heading = "Diff")]
    exclude: Vec<Regex>,
    /// Exit with 1 if the heap or one suspect grew by at least this much: 10MiB, or 10% of the
    /// first heap
    #[arg(long, value_name = "SIZE|PERCENT", help_heading = "Diff")]
    fail_on_growth: Option<GrowthLimit>,
    /// Exit with 1 if any suspect has the verdict `leak` or `growth`
    #[arg(long, help_heading = "Diff")]
    fail_on_suspect: bool,
    /// Check the gates (--fail-on-...) even if a dump is damaged or the dumps are not comparable,
    /// instead of exiting with 3
    #[arg(long, help_heading = "Diff")]
    allow_partial: bool,
    /// File of known growth to leave out, one rule per line, such as `holder com.acme.Cache.*`,
    /// `class com.acme.Entry` or `frame com.acme.Cache.warm*`
    #[arg(long, value_name = "FILE", help_heading = "Diff")]
    ignore: Option<PathBuf>,
    /// Start stacks at the first matching frame, merge equal stacks, and drop stacks without a
    /// match
    #[arg(long, value_name = "RE", value_parser = frame::pattern, help_heading = "Diff")]
    focus: Option<Regex>,
    /// Source folder of the repository, such as src/main/java, put before file paths in SARIF and
    /// annotations
    #[arg(long, value_name = "DIR", help_heading = "Diff")]
    source_root: Option<String>,
    /// Value columns of collapsed stacks: net growth in bytes, or bytes before and after
    #[arg(
        long,
        value_enum,
        value_name = "WHAT",
        default_value_t,
        help_heading = "Diff"
    )]
    columns: ColumnsArg,
    /// Label for each OpenMetrics metric, such as service=shop; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = label, help_heading = "Diff")]
    label: Vec<(String, String)>,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum ColumnsArg {
    #[default]
    Growth,
    Both,
}

impl GrowthArgs {
    pub(super) fn checked(self) -> Result<Question> {
        let classes = ClassFilter {
            include: self.include,
            exclude: self.exclude,
        };
        let gates = Gates {
            // How much a part of the heap is the first dump tells.
            growth: self.fail_on_growth.map(|limit| limit.bytes(u64::MAX)),
            suspect: self.fail_on_suspect,
        };
        labels(&self.label, &["rank", "verdict", "holder", "class"])?;
        Ok(Question {
            classes,
            gates,
            growth: self.fail_on_growth,
            ignore: self.ignore.as_deref().map(IgnoreFile::read).transpose()?,
            allow_partial: self.allow_partial,
            focus: self.focus,
            labels: self.label,
            source_root: self.source_root,
            columns: match self.columns {
                ColumnsArg::Growth => Columns::Growth,
                ColumnsArg::Both => Columns::Both,
            },
        })
    }
}

fn too_few(message: String) -> Failure {
    Failure::usage(message).with_hint("usage: heapdiff BEFORE AFTER [LATER]...")
}
