//! Which dumps to compare, and which growth to speak of.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use heapdiff_diff::{Gates, pattern};
use heapdiff_report::collapsed::Columns;
use regex::Regex;

use super::common::{OutputsArgs, input};
use super::labels::{label, labels};
use crate::failure::{Failure, Result};
use crate::gates::GrowthLimit;
use crate::ignore::IgnoreFile;
use crate::job::{ClassFilter, Job, Question, Task};
use crate::report_file::is_json;

#[derive(Debug, Args)]
pub(super) struct DiffArgs {
    /// The first heap dump (HPROF, gzipped or not), or the only one
    #[arg(value_parser = input())]
    before: Option<PathBuf>,
    /// A dump of the same program, taken later
    #[arg(value_parser = input())]
    after: Option<PathBuf>,
    /// More dumps, oldest first: what grows at every step stands out
    #[arg(value_parser = input())]
    later: Vec<PathBuf>,
    /// What the agent recorded of the JVM over time: tells of each suspect when its growth began, and how fast
    /// it grows
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
            return Err(too_few("there is no dump".to_owned()));
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
            return Err(too_few("there is no report".to_owned()));
        };
        let unfit = [
            (self.trace.is_some(), "--trace"),
            (!self.growth.include.is_empty(), "--include"),
            (!self.growth.exclude.is_empty(), "--exclude"),
            (matches!(self.growth.columns, ColumnsArg::Both), "--columns"),
        ];
        if let Some((_, option)) = unfit.into_iter().find(|(is_given, _)| *is_given) {
            let message = format!(
                "{option} is for dumps, and {} is a report",
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
        match &dumps[..] {
            [] => return Err(too_few("a diff needs two dumps".to_owned())),
            [one] if is_json(one) => return self.again(),
            [one] if self.is_of_growth() => {
                let one = one.display();
                let message = format!("this needs two dumps, and {one} is only one");
                return Err(too_few(message)
                    .with_hint("gates, --ignore, --trace and --columns both are about growth"));
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
    /// Report only classes that a regular expression matches, and suspects that consist of them or
    /// that a field of theirs holds (may be repeated)
    #[arg(long, value_name = "RE", value_parser = pattern, help_heading = "Diff")]
    include: Vec<Regex>,
    /// Leave out classes that a regular expression matches, and suspects that consist of them or
    /// that a field of theirs holds (may be repeated)
    #[arg(long, value_name = "RE", value_parser = pattern, help_heading = "Diff")]
    exclude: Vec<Regex>,
    /// Exit with 1 when the heap, or what one suspect retains, grew by this much or more: by 10MiB, or by 10% of the
    /// heap as it was in the first dump
    #[arg(long, value_name = "SIZE|PERCENT", help_heading = "Diff")]
    fail_on_growth: Option<GrowthLimit>,
    /// Exit with 1 when something is taken for a leak or for growth
    #[arg(long, help_heading = "Diff")]
    fail_on_suspect: bool,
    /// Let gates decide on dumps that are damaged or cannot be compared (the same dump twice, of two programs or
    /// JVMs, named out of order); without it the run ends with 3
    #[arg(long, help_heading = "Diff")]
    allow_partial: bool,
    /// Leave out known growth, and do not let gates trip for it: a file with rules, one a line, such as
    /// `holder com.acme.Cache.*`, `class com.acme.Entry`, `frame com.acme.Cache.warm*`
    #[arg(long, value_name = "FILE", help_heading = "Diff")]
    ignore: Option<PathBuf>,
    /// Have stacks begin with the first frame that a regular expression matches, merge those that are
    /// equal then, and drop those without one (flame graphs, profiles, stacks in text and Markdown)
    #[arg(long, value_name = "RE", value_parser = pattern, help_heading = "Diff")]
    focus: Option<Regex>,
    /// The folder of the repository that the packages of the sources are in, such as src/main/java: places in SARIF and in
    /// annotations begin with it
    #[arg(long, value_name = "DIR", help_heading = "Diff")]
    source_root: Option<String>,
    /// What ends a line of collapsed stacks: net growth in bytes, or the bytes before and after
    #[arg(
        long,
        value_enum,
        value_name = "WHAT",
        default_value_t,
        help_heading = "Diff"
    )]
    columns: ColumnsArg,
    /// A label of each metric in OpenMetrics, such as service=shop; may be repeated
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
