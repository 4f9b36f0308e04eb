//! `heapdiff trace samples`: lists single samples.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use heapdiff_diff::pattern;
use heapdiff_diff::samples::labels_of_thread;
use heapdiff_model::trace::{SampleReportRow, SampleTotals, TraceSamplesReport};
use heapdiff_report::{Report, View, Viewed};
use heapdiff_sites::labels;
use heapdiff_trace::{SampleRow, Trace, Which};
use regex::Regex;

use super::read::{RunArgs, file, frames, open_named, rows, run_info, select_run};
use crate::failure::{Failure, Result};
use crate::frame;
use crate::job::{Setup, Task};

/// Number of samples that are collected in addition to the shown samples. When this number is reached, the samples that
/// come last in the sort order are dropped.
const AT_HAND: usize = 1 << 16;
pub(super) const OLD: &str =
    "this trace has only totals and no individual samples, because an older agent wrote the trace";

/// The class and frames of an allocation site, and true if the report lists samples of this site.
struct Named {
    class: String,
    frames: Vec<String>,
    wanted: bool,
}

const HELP: &str = "\
Examples:
  heapdiff trace samples app.db --focus Session   # live samples with Session in class or stack
  heapdiff trace samples app.db --garbage recent  # samples of the objects that the GC freed last

A sample is one object whose allocation the agent recorded, with the size of this object; `heapdiff
trace top` scales samples up to all objects. A live sample is one whose object was live at the end
of the run. The agent also keeps samples of objects that the GC freed: the latest 512, and 4,096
that are chosen at random (agent option `garbage`).

Each sample has a number (uid). Heap dumps of the same JVM contain samples with the same uids:
`heapdiff query DUMP \"select * from samples\"`.";

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct Samples {
    /// Trace that the agent wrote (agent option trace=FILE)
    trace: PathBuf,
    #[command(flatten)]
    run: RunArgs,
    /// Show samples of freed objects, not of live objects: the most recent, or a random choice
    #[arg(long, value_enum, value_name = "WHICH")]
    garbage: Option<Garbage>,
    /// Show only samples with a matching class or frame
    #[arg(long, value_name = "RE", value_parser = frame::pattern)]
    focus: Option<Regex>,
    /// Show only samples of threads with a matching name
    #[arg(long, value_name = "RE", value_parser = pattern)]
    thread: Option<Regex>,
    /// Show only samples with a matching label, such as tenant=acme (library heapdiff-labels)
    #[arg(long, value_name = "RE", value_parser = pattern)]
    label: Option<Regex>,
    /// Sort by age (oldest first) or by size (largest first)
    #[arg(long, value_enum, value_name = "WHAT", default_value_t)]
    by: SampleOrder,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Garbage {
    Recent,
    Chosen,
}

/// The sort order of samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum SampleOrder {
    #[default]
    Age,
    Bytes,
}

impl Task for Samples {
    fn run(&self, setup: &Setup) -> Result<Vec<Report>> {
        let trace = &open_named(setup.analysis.mapping.as_ref(), &self.trace)?;
        let which = match self.garbage {
            None => Which::Live,
            Some(Garbage::Recent) => Which::Recent,
            Some(Garbage::Chosen) => Which::Chosen,
        };
        let failed = |e| Failure::trace(&e);
        let (number, run) = select_run(trace, self.run.run.as_deref())?;
        let ticks = trace.ticks(run.id).map_err(failed)?;
        let last = ticks.last();
        let at_uptime_ms = last.map_or(0, |t| t.uptime_ms);
        let sites = self.sites(trace)?;
        let threads = trace.threads().map_err(failed)?;
        let name_of = |s: &SampleRow| s.thread.and_then(|id| threads.get(&id));
        let age = |s: &SampleRow| {
            let end = s.collected_ms.unwrap_or(at_uptime_ms);
            end.saturating_sub(s.allocated_ms)
        };
        let order = |s: &SampleRow| {
            let first = match self.by {
                SampleOrder::Age => age(s),
                SampleOrder::Bytes => s.bytes,
            };
            (Reverse(first), s.uid)
        };
        let limit = rows(setup);
        let mut totals = SampleTotals::default();
        let mut kept: Vec<SampleRow> = Vec::new();
        let shorten = |rows: &mut Vec<SampleRow>| {
            rows.sort_unstable_by_key(order);
            rows.truncate(limit);
        };
        let take = |sample: SampleRow| {
            let of_site = sites.get(&sample.site).is_none_or(|site| site.wanted);
            let of_thread = self.thread.as_ref().is_none_or(|re| {
                let name = name_of(&sample);
                name.is_some_and(|name| re.is_match(labels::split(name).0))
            });
            let has_label = self.label.as_ref().is_none_or(|re| {
                let mut labels = name_of(&sample)
                    .into_iter()
                    .flat_map(|name| labels_of_thread(name));
                labels.any(|label| re.is_match(&format!("{}={}", label.key, label.value)))
            });
            if !of_site || !of_thread || !has_label {
                return;
            }
            totals.samples += 1;
            totals.bytes = totals.bytes.saturating_add(sample.bytes);
            kept.push(sample);
            if kept.len() > limit.saturating_add(AT_HAND) {
                shorten(&mut kept);
            }
        };
        trace.each_sample(run.id, which, take).map_err(failed)?;
        shorten(&mut kept);
        let samples = kept.iter().map(|s| {
            let site = sites.get(&s.site);
            let at = |uptime_ms| run.started_ms.saturating_add(uptime_ms);
            SampleReportRow {
                uid: s.uid,
                class: site.map_or_else(|| "(unknown class)".to_owned(), |s| s.class.clone()),
                bytes: s.bytes,
                thread: name_of(s).map(|name| labels::split(name).0.to_owned()),
                labels: name_of(s).map_or_else(Vec::new, |name| labels_of_thread(name).collect()),
                allocated_ms: at(s.allocated_ms),
                allocated_uptime_ms: s.allocated_ms,
                collected_ms: s.collected_ms.map(at),
                collected_uptime_ms: s.collected_ms,
                age_ms: age(s),
                frames: site.map_or_else(Vec::new, |s| s.frames.clone()),
            }
        });
        let samples = samples.collect();
        let mut file = file(trace);
        if !trace.has_samples() {
            file.warnings.push(OLD.to_owned());
        }
        let patterns = [
            ("--focus", &self.focus),
            ("--thread", &self.thread),
            ("--label", &self.label),
        ];
        let given: Vec<String> = patterns
            .iter()
            .filter_map(|(option, re)| Some(format!("{option} {}", re.as_ref()?)))
            .collect();
        if totals.samples == 0 && !given.is_empty() {
            let given = given.join(" ");
            file.warnings.push(format!("{given}: no sample matches"));
        }
        let report = TraceSamplesReport {
            schema: TraceSamplesReport::SCHEMA,
            trace: file,
            run: run_info(number, &run),
            which: match which {
                Which::Live => "live",
                Which::Recent => "recent",
                Which::Chosen => "chosen",
            },
            by: match self.by {
                SampleOrder::Age => "age",
                SampleOrder::Bytes => "bytes",
            },
            focus: self.focus.as_ref().map(ToString::to_string),
            thread: self.thread.as_ref().map(ToString::to_string),
            label: self.label.as_ref().map(ToString::to_string),
            at_ms: last.map_or(run.started_ms, |t| t.time_ms),
            at_uptime_ms,
            totals,
            samples,
        };
        Ok(vec![Report::TraceSamples(Viewed {
            data: report,
            view: View {
                verbose: setup.progress.verbose,
                ..View::default()
            },
            more: (),
        })])
    }
}

impl Samples {
    fn sites(&self, trace: &Trace) -> Result<HashMap<i64, Named>> {
        let failed = |e| Failure::trace(&e);
        let stacks = trace.stacks().map_err(failed)?;
        let sites = trace.sites().map_err(failed)?.into_iter().map(|site| {
            let frames = site.stack.map_or_else(Vec::new, |s| frames(&stacks, s));
            let wanted = self.focus.as_ref().is_none_or(|re| {
                re.is_match(&site.class) || frames.iter().any(|frame| re.is_match(frame))
            });
            let named = Named {
                class: site.class.to_string(),
                frames,
                wanted,
            };
            (site.id, named)
        });
        Ok(sites.collect())
    }
}
