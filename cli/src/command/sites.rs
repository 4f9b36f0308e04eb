//! `heapdiff sites`: bytes by allocation stack or class, of live objects or of all allocated objects.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use heapdiff_diff::samples::{
    Agent, AgentObjects, AtSites, ClassCount, Disagreement, NotCounted, Samples,
};
use heapdiff_diff::{Allocated, by_class, by_site};
use heapdiff_model::count::{CountedInDump, CountedMissed, LineDisagreement};
use heapdiff_model::sites::{
    AgentReport, AllocatedReport, AllocatedStackRow, AllocatedTotals, CollectedReport, CostReport,
    CountRow, CountedClassRow, CounterRow, LiveClassRow, SiteTotals, SitesReport,
};
use heapdiff_model::snapshot::SnapshotInfo;
use heapdiff_report::{Format, Report, SitesView, View, Viewed};
use heapdiff_sites::{CountedSite, Counter, Interval, Strategy, Unseen};
use hprof::Progress;
use regex::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::count::{row, totals};
use super::opened::open;
use super::trace::flame::FLAME_HINT;
use super::{dump_info, recording};
use crate::args::input;
use crate::failure::{Failure, Result};
use crate::fits;
use crate::frame;
use crate::jfr;
use crate::job::{Formats, Setup, Task, text_and_json};

const ROWS: usize = 10;
/// Default number of classes. It is larger than [`ROWS`], because a class takes only one line.
const CLASSES: usize = 20;

const HELP: &str = "\
Examples:
  heapdiff sites app.hprof                       # live bytes by allocation stack
  heapdiff sites app.hprof -o flame.html         # live bytes as a flame graph
  heapdiff sites app.jfr --allocated --by class  # all allocated objects, by class

Bytes are estimated from samples. The number after ± is half the width of the 95 % confidence
interval. Frames are listed from the allocation to the start of the thread. JDK frames are folded;
-v shows them.

`-o flame.html` and `-o flame.svg` draw all stacks as a flame graph. With --reverse, each class
shows the frames that allocate it. For allocation totals per class, load the agent with
strategy=class.

From a JFR recording, `heapdiff sites` shows live objects if the recording has them, otherwise
allocations. Live objects are recorded as profiler.LiveObject (async-profiler) or as
jdk.OldObjectSample (JFR). jdk.OldObjectSample covers only objects that the JVM tracked; heapdiff
does not extrapolate these objects to the whole heap.";

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct Sites {
    /// Heap dump (HPROF) or a flight recording (JFR), gzipped or not
    #[arg(value_parser = input())]
    pub(crate) dump: PathBuf,
    /// Show all allocated objects, not only live ones
    #[arg(long)]
    pub(crate) allocated: bool,
    /// Group by allocating frame, stack or class [default: frame; stack with --allocated]
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(crate) by: Option<SitesBy>,
    /// Invert flame graphs and collapsed stacks: the allocated class and frame first, callers after
    /// them
    #[arg(long)]
    pub(crate) reverse: bool,
    /// Show only stacks with a matching frame or class. Flame graphs and profiles match only
    /// frames, and each stack starts at the matching frame
    #[arg(long, value_name = "RE", value_parser = frame::pattern)]
    pub(crate) focus: Option<Regex>,
}

#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Deserialize, Serialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SitesBy {
    #[default]
    Frame,
    #[value(alias = "site")]
    Stack,
    Class,
}

impl Sites {
    /// True if rows are classes, not stacks.
    pub(super) fn by_class(&self) -> bool {
        self.by == Some(SitesBy::Class)
    }

    /// True if each row of the text report is for one frame that allocates. This is possible only for live objects of
    /// dumps.
    fn by_frame(&self) -> bool {
        self.by.map_or(!self.allocated, |by| by == SitesBy::Frame)
    }

    /// Returns the view of a report on allocation sites. For formats that show stacks, `allocated` contains all stacks.
    pub(super) fn view(&self, setup: &Setup, allocated: Option<Allocated>) -> View {
        View {
            verbose: setup.progress.verbose,
            focus: self.focus.clone(),
            allocated,
            reverse: self.reverse,
            ..View::default()
        }
    }
}

impl Task for Sites {
    fn formats() -> Formats {
        |format| text_and_json(format) || format.shows_stacks()
    }

    fn check(&self, _: &Setup, format: Format) -> Result<()> {
        let (message, hint) = if self.reverse && !format.is_flame() {
            (
                "--reverse needs a flame graph or collapsed stacks as output",
                FLAME_HINT,
            )
        } else if self.by_frame() && self.allocated {
            (
                "--by frame shows live objects only, so it does not work with --allocated",
                "use --by stack or --by class",
            )
        } else if self.by_class() && format.shows_stacks() {
            (
                "--by class prints a table; flame graphs and profiles need stacks",
                "leave out --by class, or use --format text or --format json",
            )
        } else {
            return Ok(());
        };
        Err(Failure::usage(message).with_hint(hint))
    }

    fn run(&self, setup: &Setup) -> Result<Vec<Report>> {
        let report = if jfr::is_recording(&self.dump) {
            Report::Recording(Box::new(recording::run(setup, self)?))
        } else {
            run(setup, self)?
        };
        Ok(vec![report])
    }
}

fn run(setup: &Setup, job: &Sites) -> Result<Report> {
    let dump = &*job.dump;
    let (snapshot, meter) = open(setup, dump)?;
    meter.phase("reading samples", 0);
    let own = AgentObjects::find(&snapshot);
    let (samples, fault) = if job.allocated || job.by_class() {
        Samples::with_all_sites(&snapshot, &own)
    } else {
        Samples::from_snapshot(&snapshot, &own)
    };
    let Some(samples) = samples else {
        let dump = dump.display();
        return Err(match fault {
            Some(fault) => Failure::usage(format!("{dump}: {fault}")),
            None => Failure::usage(format!(
                "{dump} has no allocation sites, because it was taken without the agent"
            ))
            .with_hint("load the agent before you take the next dump: heapdiff attach PID"),
        });
    };
    let mut info = dump_info::info_without_agent(&snapshot, &own);
    info.agent = samples.info();
    let asked = Asked {
        setup,
        dump,
        job,
        samples: &samples,
    };
    match (job.allocated, samples.agent()) {
        (true, Some(of)) => {
            info.warnings.extend(fault);
            let report = asked.allocated(info, of)?;
            Ok(Report::Allocated(Box::new(report)))
        }
        (true, None) => Err(not_counted(dump, NotCounted::Traces)),
        (false, _) => {
            let report = asked.live(info, fault);
            Ok(Report::Sites(Box::new(report)))
        }
    }
}

/// The request for a report about a dump, with the samples from which it is computed.
struct Asked<'a> {
    setup: &'a Setup,
    dump: &'a Path,
    job: &'a Sites,
    samples: &'a Samples,
}

impl Asked<'_> {
    fn is_wanted(&self, frames: &[&str], class: &str) -> bool {
        let focus = self.job.focus.as_ref();
        focus.is_none_or(|re| re.is_match(class) || frames.iter().any(|f| re.is_match(f)))
    }

    /// Returns the text of the `--focus` pattern. Adds a warning to `info` if the pattern matches nothing.
    fn focus(
        &self,
        is_empty: bool,
        drawn: Option<&Allocated>,
        info: &mut SnapshotInfo,
    ) -> Option<String> {
        let focus = self.job.focus.as_ref()?;
        let unused = match drawn {
            Some(drawn) => fits::frames(focus, drawn),
            None => is_empty.then(|| fits::no_match_warning(focus)),
        };
        info.warnings.extend(unused);
        Some(focus.to_string())
    }

    fn by(&self) -> &'static str {
        if self.job.by_class() {
            "class"
        } else {
            "stack"
        }
    }

    /// Returns the report about live objects.
    fn live(
        &self,
        mut info: SnapshotInfo,
        fault: Option<String>,
    ) -> Viewed<SitesReport, SitesView> {
        let (job, samples) = (self.job, self.samples);
        let reachable = info.reachable_bytes.unwrap_or(0);
        let wanted = |frames: &[&str], class: &str| self.is_wanted(frames, class);
        let live = by_site(samples, &wanted, reachable);
        let (mut stacks, mut frames) = (live.stacks, live.frames);
        let frame_count = frames.len() as u64;
        let totals = SiteTotals {
            stacks: stacks.len() as u64,
            samples: live.samples,
            estimated_bytes: live.bytes,
            ci95: live.ci95,
            estimated_objects: live.objects,
            unreachable_samples: samples.unreachable,
            unfinished_samples: samples.unfinished,
            unseen_bytes: live.unseen.there,
            other_stacks_bytes: live.other_stacks_bytes,
            unsampled_bytes: live.unsampled_bytes,
            undersampled_bytes: live.undersampled_bytes,
        };
        let mut classes = if job.by_class() {
            self.live_classes(live.unseen)
        } else {
            Vec::new()
        };
        let class_count = classes.len() as u64;
        let sampled_classes = classes.iter().filter(|c| c.samples > 0).count() as u64;
        let shows_stacks = self.setup.output.format.shows_stacks();
        let allocated = shows_stacks.then(|| Allocated::of(samples));
        let is_empty = stacks.is_empty() && classes.is_empty();
        let focus = self.focus(is_empty, allocated.as_ref(), &mut info);
        if job.by_class() {
            stacks.clear();
            frames.clear();
        } else {
            stacks.truncate(self.setup.rows(ROWS));
            frames.truncate(self.setup.rows(CLASSES));
        }
        classes.truncate(self.setup.rows(CLASSES));
        info.warnings.extend(fault);
        let report = SitesReport {
            schema: SitesReport::SCHEMA,
            snapshot: info,
            origin: match samples.agent() {
                Some(_) => "agent",
                None => "traces",
            },
            by: self.by(),
            focus,
            totals,
            agent: samples.agent().map(|a| agent(a, samples)),
            stacks,
            frames,
            labels: live.labels,
            classes,
        };
        Viewed {
            data: report,
            view: job.view(self.setup, allocated),
            more: SitesView {
                lists_frames: job.by_frame(),
                frame_count,
                class_count,
                sampled_classes,
            },
        }
    }

    /// Returns one row for each class: first the classes with live samples, then the classes that were counted but have
    /// no live samples.
    fn live_classes(&self, unseen: Unseen) -> Vec<LiveClassRow> {
        let counts = self.samples.classes.as_deref();
        let count = |class: &str| {
            let counts = counts?;
            let at = counts.binary_search_by(|c| c.class.as_str().cmp(class));
            let found = at.ok().and_then(|at| counts.get(at))?;
            Some(CountRow {
                objects: found.objects,
                bytes: found.bytes,
            })
        };
        let wanted = |frames: &[&str], class: &str| self.is_wanted(frames, class);
        let mut rows: Vec<LiveClassRow> = by_class(self.samples, &wanted, unseen)
            .into_iter()
            .map(|live| LiveClassRow {
                samples: live.samples,
                estimated_bytes: live.bytes,
                ci95: live.ci95,
                estimated_objects: live.objects,
                allocated: count(&live.class),
                class: live.class,
            })
            .collect();
        let sampled: BTreeSet<String> = rows.iter().map(|r| r.class.clone()).collect();
        let mut others: Vec<&ClassCount> = counts
            .unwrap_or_default()
            .iter()
            .filter(|c| !sampled.contains(&c.class) && self.is_wanted(&[], &c.class))
            .collect();
        others.sort_by_key(|c| Reverse(c.bytes));
        let [low, high] = unseen.widen_to_bytes(Interval::exact(0.0));
        rows.extend(others.into_iter().map(|other| LiveClassRow {
            class: other.class.clone(),
            samples: 0,
            estimated_bytes: 0,
            // Without a sample, nothing is known about how many of the counted bytes are alive.
            ci95: [low, high.max(other.bytes)],
            estimated_objects: 0,
            allocated: Some(CountRow {
                objects: other.objects,
                bytes: other.bytes,
            }),
        }));
        rows
    }

    /// Returns the report about all allocated objects.
    fn allocated(&self, mut info: SnapshotInfo, of: &Agent) -> Result<Viewed<AllocatedReport>> {
        let (job, samples) = (self.job, self.samples);
        let span_ms = info.taken_ms.saturating_sub(of.started_ms);
        let mut disagreements = Vec::new();
        let (totals, stacks, classes, allocated) = if job.by_class() {
            let (totals, classes) = self.counted_classes()?;
            (totals, Vec::new(), classes, None)
        } else {
            let wanted = |frames: &[&str], classes: &[&str]| {
                self.job.focus.is_none()
                    || classes.iter().any(|class| self.is_wanted(&[], class))
                    || frames.iter().any(|frame| self.is_wanted(&[], frame))
            };
            let all = samples.allocations(&wanted);
            let all = all.map_err(|why| not_counted(self.dump, why))?;
            disagreements.clone_from(&all.disagreements);
            let wants_all = self.setup.output.format.shows_stacks();
            let allocated = wants_all.then(|| Allocated::since_start(samples, &all));
            let totals = AllocatedTotals {
                rows: all.stacks.len() as u64,
                samples: Some(all.samples),
                bytes: all.bytes,
                ci95: all.ci95,
                objects: all.objects,
                other_stacks_bytes: all.other_stacks_bytes,
                unseen_bytes: all.unseen_bytes,
                undersampled_bytes: all.undersampled_bytes,
            };
            let rows = all.stacks.into_iter().take(self.setup.rows(ROWS));
            let rows = rows.map(|stack| AllocatedStackRow {
                frames: samples
                    .sites
                    .frames(stack.site)
                    .map(str::to_owned)
                    .collect(),
                classes: stack.classes,
                samples: stack.samples,
                estimated_bytes: stack.bytes,
                ci95: stack.ci95,
                sampled: stack.sampled,
                estimated_objects: stack.objects,
                survival_permille: stack.survival_permille,
            });
            (totals, rows.collect(), Vec::new(), allocated)
        };
        let at_sites = samples.at_sites.as_ref().filter(|_| !job.by_class());
        let counted_sites = at_sites.map(|all| CountedInDump {
            disagreement_count: disagreements.len() as u64,
            disagreements: disagreements
                .iter()
                .take(ROWS)
                .map(line_disagreement)
                .collect(),
            ..self.counted_sites(all, info.taken_ms)
        });
        let is_empty = totals.rows == 0
            && counted_sites
                .as_ref()
                .is_none_or(|all| all.totals.sites == 0);
        let focus = self.focus(is_empty, allocated.as_ref(), &mut info);
        let report = AllocatedReport {
            schema: AllocatedReport::SCHEMA,
            snapshot: info,
            by: self.by(),
            focus,
            span_ms,
            totals,
            agent: agent(of, samples),
            stacks,
            classes,
            counted: counted_sites,
        };
        Ok(Viewed {
            data: report,
            view: job.view(self.setup, allocated),
            more: (),
        })
    }

    /// Returns the exact counts by line of code.
    fn counted_sites(&self, all: &AtSites, taken_ms: u64) -> CountedInDump {
        let is_wanted = |site: &&CountedSite| {
            self.job.focus.is_none()
                || self.is_wanted(
                    &[&format!("{}.{}", site.class, site.method)],
                    &site.allocated,
                )
        };
        let sites: Vec<&CountedSite> = all.sites.iter().filter(is_wanted).collect();
        let totals = totals(sites.iter().copied());
        let rows = sites.into_iter().take(self.setup.rows(ROWS));
        CountedInDump {
            millis: all.at_ms.saturating_sub(all.since_ms),
            before_dump_ms: taken_ms.saturating_sub(all.at_ms),
            jdk: all.jdk,
            totals,
            sites: rows.map(row).collect(),
            missed: CountedMissed {
                sites: all.missing_sites,
                methods: all.missing_methods,
                classes: all.missing_classes,
            },
            disagreements: Vec::new(),
            disagreement_count: 0,
        }
    }

    fn counted_classes(&self) -> Result<(AllocatedTotals, Vec<CountedClassRow>)> {
        let Some(counts) = &self.samples.classes else {
            let message = format!(
                "{}: the dump has no allocations by class, because the agent did not count classes",
                self.dump.display()
            );
            let hint = "use `heapdiff attach PID strategy=class`, or for a trace `heapdiff trace top TRACE --by class`";
            return Err(Failure::usage(message).with_hint(hint));
        };
        let mut counts: Vec<&ClassCount> = counts
            .iter()
            .filter(|c| self.is_wanted(&[], &c.class))
            .collect();
        counts.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.class.cmp(&b.class)));
        let sum = |figure: fn(&ClassCount) -> u64| {
            let figures = counts.iter().map(|&c| figure(c));
            figures.fold(0, u64::saturating_add)
        };
        let totals = AllocatedTotals {
            rows: counts.len() as u64,
            samples: None,
            bytes: sum(|c| c.bytes),
            ci95: None,
            objects: sum(|c| c.objects),
            other_stacks_bytes: 0,
            unseen_bytes: 0,
            undersampled_bytes: 0,
        };
        let rows = counts.into_iter().take(self.setup.rows(CLASSES));
        let rows = rows.map(|count| CountedClassRow {
            class: count.class.clone(),
            objects: count.objects,
            bytes: count.bytes,
        });
        Ok((totals, rows.collect()))
    }
}

fn line_disagreement(found: &Disagreement) -> LineDisagreement {
    LineDisagreement {
        class: found.class.clone(),
        method: found.method.clone(),
        line: found.line,
        counted_bytes: found.counted_bytes,
        estimated_bytes: found.estimated_bytes,
        ci99: found.ci99,
    }
}

/// The failure for a dump that has no data about all allocations. The hint explains how to get this data.
fn not_counted(dump: &Path, why: NotCounted) -> Failure {
    let dump = dump.display();
    match why {
        NotCounted::Traces => {
            let message = format!(
                "{dump} has the stacks of live objects only, so --allocated is not possible"
            );
            let hint = "load the agent before the next dump (`heapdiff attach PID`), or use a JFR recording";
            Failure::usage(message).with_hint(hint)
        }
        NotCounted::OldAgent => {
            let message = format!(
                "{dump}: --allocated is not possible, because an older agent did not record all allocations"
            );
            let hint =
                "load the agent of this heapdiff version before the next dump: heapdiff attach PID";
            Failure::usage(message).with_hint(hint)
        }
    }
}

fn agent(agent: &Agent, samples: &Samples) -> AgentReport {
    let each = |bytes: u64, count: u64| bytes.checked_div(count).unwrap_or(0);
    let cost = &agent.cost;
    let mut ages: Vec<u64> = samples
        .collected
        .iter()
        .map(|c| c.died_ms.saturating_sub(c.time_ms).into())
        .collect();
    ages.sort_unstable();
    AgentReport {
        strategy: match agent.sampling.strategy {
            Strategy::Bytes => "bytes",
            Strategy::Count => "count",
            Strategy::Time => "time",
            Strategy::Class => "class",
        },
        interval_bytes: agent.sampling.interval,
        rate: agent.sampling.rate,
        first_interval_bytes: agent.first.interval,
        first_rate: agent.first.rate,
        depth: agent.depth,
        cost: CostReport {
            objects: cost.objects,
            bytes: cost.bytes,
            samples: cost.samples,
            bytes_per_sample: each(cost.sample_bytes, cost.samples),
            sites: cost.sites,
            bytes_per_site: each(agent.counter(Counter::BlobBytes), cost.sites),
        },
        collected: CollectedReport {
            samples: agent.counter(Counter::Collected),
            remembered: ages.len() as u64,
            median_age_ms: ages.get(ages.len() / 2).copied(),
        },
        counters: Counter::ALL
            .iter()
            .map(|&counter| CounterRow {
                name: name(counter),
                count: agent.counter(counter),
                // If the counter `FewFollowed` is set, the agent tracks fewer samples than it takes. It still counts
                // the samples that it does not track, so their bytes are not lost.
                is_loss: is_loss_counter(counter)
                    && !(counter == Counter::Thinned && agent.counter(Counter::FewFollowed) > 0),
            })
            .collect(),
    }
}

const fn is_loss_counter(counter: Counter) -> bool {
    matches!(
        counter,
        Counter::DroppedFull
            | Counter::DroppedFailed
            | Counter::DroppedPending
            | Counter::DroppedClasses
            | Counter::Thinned
            | Counter::Values
            | Counter::NoStack
            | Counter::SitesFull
            | Counter::NamesFull
            | Counter::Faults
    )
}

const fn name(counter: Counter) -> &'static str {
    match counter {
        Counter::Uids => "uids",
        Counter::Events => "events",
        Counter::Recorded => "recorded",
        Counter::RecordedBytes => "recorded_bytes",
        Counter::Classes => "classes",
        Counter::Collected => "collected",
        Counter::Filtered => "filtered",
        Counter::DroppedFull => "dropped_full",
        Counter::DroppedFailed => "dropped_failed",
        Counter::DroppedPending => "dropped_pending",
        Counter::DroppedClasses => "dropped_classes",
        Counter::Thinned => "thinned",
        Counter::Thinnings => "thinnings",
        Counter::NoStack => "no_stack",
        Counter::SitesFull => "sites_full",
        Counter::NamesFull => "names_full",
        Counter::Sites => "sites",
        Counter::BlobBytes => "blob_bytes",
        Counter::Collections => "collections",
        Counter::Sweeps => "sweeps",
        Counter::Faults => "faults",
        Counter::DroppedBytes => "dropped_bytes",
        Counter::FromStart => "from_start",
        Counter::FewFollowed => "few_followed",
        Counter::Values => "value_objects",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_for_missing_allocations_is_reported() {
        let told = |why| {
            let failure = not_counted(Path::new("a.hprof"), why);
            (failure.message, failure.hint.unwrap_or_default())
        };
        let (message, hint) = told(NotCounted::Traces);
        assert_eq!(
            message,
            "a.hprof has the stacks of live objects only, so --allocated is not possible"
        );
        assert_eq!(
            hint,
            "load the agent before the next dump (`heapdiff attach PID`), or use a JFR recording"
        );
        let (message, hint) = told(NotCounted::OldAgent);
        assert_eq!(
            message,
            "a.hprof: --allocated is not possible, because an older agent did not record all allocations"
        );
        assert_eq!(
            hint,
            "load the agent of this heapdiff version before the next dump: heapdiff attach PID"
        );
    }
}
