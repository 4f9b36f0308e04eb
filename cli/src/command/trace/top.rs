//! `heapdiff trace top`: reports which classes or sites leak, and since when.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use heapdiff_diff::allocating_frame;
use heapdiff_model::trace::{
    CandidateRow, Collections, HeapTrendRow, Oom, PathRow, PerWorkRow, TraceTopReport, TraceTotals,
    WindowRow,
};
use heapdiff_report::{Format, Report, TraceTopView, View, Viewed};
use heapdiff_trace::read::{Run, Tick};
use heapdiff_trace::{
    AliveAt, Basis, Candidate, HeapOutlook, Points, Stacks, Steps, Timeline, Trace, Verdict,
    rank_groups,
};
use heapdiff_units::Size;
use regex::Regex;

use super::counts::Counts;
use super::gates::GateArgs;
use super::labels::LiveLabels;
use super::lines;
use super::read::{
    MOMENT_HELP, RunArgs, WindowArgs, file_of_run, growth, notes, open_named, rows, run_info,
    select_run, series, slope, window,
};
use crate::failure::{Failure, Result};
use crate::job::{Setup, Task};
use crate::merge::{Groups, Merged, in_focus};

/// Maximum number of allocation paths that are listed for a possible leak.
const PATHS: usize = 5;

const HELP: &str = "\
Examples:
  # frames that allocate, by growth of live bytes
  heapdiff trace top app.db
  # classes by growth, in the last hour
  heapdiff trace top app.db --by class --window 1h
  # exit with 1 if the heap is full within a day
  heapdiff trace top app.db --oom-within 24h

Objects that the GC has not freed yet look alive, so heapdiff compares the live bytes after each
full GC. With fewer than five full GCs, heapdiff compares the lowest live bytes of each interval
between two GCs of any kind. The slope is a Theil-Sen estimate; its 95 % interval includes the
sampling error. A class or site is called a leak only if the whole interval is above zero, and the
live bytes grew from the first full GC to the last.";

#[derive(Debug, Args)]
#[command(after_help = HELP.to_owned() + MOMENT_HELP)]
pub(crate) struct Top {
    /// Trace that the agent wrote (agent option trace=FILE)
    trace: PathBuf,
    #[command(flatten)]
    run: RunArgs,
    /// Rank by allocating frame (all call paths merged), class or stack, or list counted lines of
    /// code (agent option count=on)
    #[arg(long, value_enum, value_name = "WHAT", default_value_t)]
    by: By,
    #[command(flatten)]
    window: WindowArgs,
    #[command(flatten)]
    gates: GateArgs,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum By {
    #[default]
    Frame,
    Class,
    #[value(alias = "site")]
    Stack,
    Line,
}

impl Task for Top {
    fn check(&self, _: &Setup, _: Format) -> Result<()> {
        if matches!(self.by, By::Line) && self.gates.needs_candidates() {
            let message = "--fail-on-suspect and --fail-on-growth need a ranking, which --by line does not have";
            return Err(Failure::usage(message).with_hint("use --by frame"));
        }
        Ok(())
    }

    fn run(&self, setup: &Setup) -> Result<Vec<Report>> {
        let (report, ..) = self.read(setup)?;
        Ok(vec![Report::TraceTop(Box::new(report))])
    }
}

impl Top {
    /// Creates the task that ranks the allocations of a whole run by frame.
    pub(super) fn of_run(trace: PathBuf, run: RunArgs, heap_limit: Option<Size>) -> Self {
        Self {
            trace,
            run,
            by: By::Frame,
            window: WindowArgs::default(),
            gates: GateArgs {
                heap_limit,
                ..GateArgs::default()
            },
        }
    }

    /// Returns the report, the trend of the heap, and the last tick (recorded period) of the run.
    pub(super) fn read(
        &self,
        setup: &Setup,
    ) -> Result<(
        Viewed<TraceTopReport, TraceTopView>,
        HeapOutlook,
        Option<Tick>,
    )> {
        let failed = |e| Failure::trace(&e);
        let trace = &open_named(setup.analysis.mapping.as_ref(), &self.trace)?;
        let by = match self.by {
            By::Frame => Some(Merged::Frame),
            By::Class => Some(Merged::Class),
            By::Stack => Some(Merged::Stack),
            By::Line => None,
        };
        let (part, focus) = (&self.window, self.window.focus.as_ref());
        let (number, run) = select_run(trace, self.run.run.as_deref())?;
        let ticks = trace.ticks(run.id).map_err(failed)?;
        let uptime_ms = ticks.last().map_or(0, |t| t.uptime_ms);
        let window = window(part, &run, uptime_ms)?;
        let timeline = Timeline::of(trace, &run, window).map_err(failed)?;
        let limit = trace.heap_limit(&run).map_err(failed)?;
        let outlook = HeapOutlook::of(&timeline, self.gates.limit(limit));
        let stacks = trace.stacks().map_err(failed)?;
        let ranked = by.unwrap_or_default();
        let mut groups = Groups::new(&stacks, ranked, focus);
        let mut ranking = rank_groups(trace, &timeline, |site| groups.of(site)).map_err(failed)?;
        let mut file = file_of_run(trace, run.id)?;
        if by.is_none() {
            ranking.candidates.clear();
        } else if let Some(focus) = focus.filter(|_| ranking.candidates.is_empty()) {
            file.warnings
                .push(format!("--focus {focus}: no stack frame matches"));
        }
        let most = rows(setup);
        let counted = match by {
            Some(Merged::Class) => Counts::read(trace, run.id, &ranking.candidates, most)?,
            Some(Merged::Frame | Merged::Stack) | None => None,
        };
        let lines = lines::lines(trace, &run, window, most, focus)?;
        if by.is_none() && lines.is_none() {
            return Err(without_lines(trace, &run)?);
        }
        // Counts by class exist only for the whole run and all stacks, so they are not shown for a part of the run or
        // of the stacks.
        let is_part = focus.is_some() || part.is_partial_run();
        let counts_more = is_part && counted.is_some();
        let counted = counted.filter(|_| !is_part);
        // Labels are read only from the samples that are alive at the end of the run, so a part of the run has no
        // labels.
        let labels = if part.is_partial_run() {
            None
        } else {
            LiveLabels::read(trace, &run).map_err(failed)?
        };
        let shown = Shown {
            trace,
            timeline: &timeline,
            points: &ranking.points,
            labels: labels.as_ref(),
            stacks: &stacks,
            by: ranked,
            focus,
            counted: counted.as_ref(),
            outlook: &outlook,
        };
        let outcomes = self
            .gates
            .outcomes(&ranking.candidates, &outlook, |c| shown.name(c))?;
        let mut candidates = Vec::new();
        for (rank, candidate) in (1..).zip(&ranking.candidates).take(most) {
            candidates.push(shown.row(rank, candidate)?);
        }
        let ticks = timeline.ticks();
        let sum = |figure: fn(&Tick) -> u64| ticks.iter().map(figure).fold(0, u64::saturating_add);
        let growing = |c: &&Candidate| c.trending.verdict <= Verdict::Unclear;
        let (first, last) = (ticks.first(), ticks.last());
        let report = TraceTopReport {
            schema: TraceTopReport::SCHEMA,
            trace: file,
            run: run_info(number, &run),
            window: WindowRow {
                from_ms: first.map_or(0, |t| t.time_ms.saturating_sub(t.span_ms)),
                to_ms: last.map_or(0, |t| t.time_ms),
                from_uptime_ms: first.map_or(0, |t| t.uptime_ms.saturating_sub(t.span_ms)),
                to_uptime_ms: last.map_or(0, |t| t.uptime_ms),
                ticks: ticks.len() as u64,
            },
            by: by.map_or("line", Merged::name),
            focus: focus.map(ToString::to_string),
            basis: ranking.points.basis.name(),
            points: ranking.points.len() as u64,
            alive_at: timeline.alive_at().name(),
            alive_at_uptime_ms: match timeline.alive_at() {
                AliveAt::Major { uptime_ms, .. } => Some(uptime_ms),
                AliveAt::End | AliveAt::Unknown => None,
            },
            alive_of_uptime_ms: match timeline.alive_at() {
                AliveAt::Major { tried_ms, .. } => tried_ms,
                AliveAt::End | AliveAt::Unknown => None,
            },
            collections: Collections {
                major: ranking.points.majors as u64,
                all: ranking.points.collections as u64,
            },
            totals: TraceTotals {
                candidates: ranking.candidates.len() as u64,
                growing: ranking.candidates.iter().filter(growing).count() as u64,
                live_bytes: ranking.live.amount.bytes,
                ci95: ranking.live.ci95(),
                live_objects: ranking.live.amount.objects,
                live_samples: ranking.live.amount.samples,
                allocated_bytes: ranking.allocated.bytes,
                collected_bytes: ranking.collected.bytes,
                lost_samples: sum(|t| t.lost_samples),
                lost_bytes: sum(|t| t.lost_bytes),
            },
            candidates,
            counted: counted.map(|c| c.all),
            lines,
            oom: outlook.left.map(|left| Oom {
                at_ms: left.at_ms,
                from_ms: left.from_ms,
                to_ms: left.to_ms,
            }),
            heap_after_full_gcs: HeapTrendRow {
                outlook: outlook.state.name(),
                full_gcs: outlook.full_gcs,
                since_uptime_ms: outlook.since_ms,
                bytes_per_hour: outlook.slope.map(|slope| slope.slope),
                ci95: outlook.slope.and_then(|slope| slope.ci95),
                limit_bytes: outlook.limit.map(|limit| limit.bytes),
                limit: outlook.limit.map(|limit| limit.source.name()),
            },
            notes: notes(trace, &run)?,
        };
        let last = last.copied();
        let report = Viewed {
            data: report,
            view: View {
                verbose: setup.progress.verbose,
                ..View::default()
            },
            more: TraceTopView {
                counts_more,
                outcomes,
                undecided: self.gates.undecided(&outlook),
            },
        };
        Ok((report, outlook, last))
    }
}

/// The failure if the report is about lines of code, but the trace has no counts for them.
fn without_lines(trace: &Trace, run: &Run) -> Result<Failure> {
    let counts = trace.counted_run(run.id).map_err(|e| Failure::trace(&e))?;
    let path = trace.path().display();
    Ok(match counts {
        None => Failure::bad_input(format!("{path}: the trace has no counts by line of code"))
            .with_hint(
                "let the agent count every allocation: heapdiff attach PID trace=FILE,count=on",
            ),
        Some(_) => Failure::bad_input(format!(
            "{path}: the selected part of the run has no counts by line of code"
        )),
    })
}

/// The data that is needed to describe candidates (possible leaks).
struct Shown<'a> {
    trace: &'a Trace,
    timeline: &'a Timeline,
    points: &'a Points,
    labels: Option<&'a LiveLabels>,
    stacks: &'a Stacks,
    by: Merged,
    focus: Option<&'a Regex>,
    counted: Option<&'a Counts>,
    outlook: &'a HeapOutlook,
}

impl Shown<'_> {
    /// Returns the name of a candidate (a possible leak) for messages: its class, and the frame that allocates its
    /// objects.
    fn name(&self, candidate: &Candidate) -> Result<String> {
        let row = self.row(0, candidate)?;
        let frame = match self.by {
            Merged::Class => None,
            Merged::Frame | Merged::Stack => row.frame.or_else(|| row.frames.into_iter().next()),
        };
        Ok(frame.map_or_else(
            || row.class.clone(),
            |frame| format!("{} allocated in {frame}", row.class),
        ))
    }

    fn steps(&self, sites: &[i64]) -> Result<Steps> {
        Steps::of(self.trace, self.timeline, sites).map_err(|e| Failure::trace(&e))
    }

    fn row(&self, rank: u64, candidate: &Candidate) -> Result<CandidateRow> {
        let sites: Vec<i64> = candidate.sites.iter().map(|s| s.id).collect();
        let steps = self.steps(&sites)?;
        let trending = &candidate.trending;
        let began = if trending.verdict <= Verdict::Unclear {
            steps.growth_start(self.timeline, self.points)
        } else {
            None
        };
        let mut paths = self.paths(candidate)?;
        // If a candidate has several stacks, the stack with the most live bytes represents it.
        let frames = paths
            .first()
            .map_or_else(Vec::new, |path| path.frames.clone());
        let frame = match self.by {
            Merged::Frame => allocating_frame(&frames).map(str::to_owned),
            Merged::Class | Merged::Stack => None,
        };
        let stacks = paths.len() as u64;
        if stacks < 2 {
            paths.clear();
        }
        paths.truncate(PATHS);
        Ok(CandidateRow {
            rank,
            verdict: trending.verdict.name(),
            trend: trending.trend.name(),
            class: candidate.class.to_string(),
            sites: sites.len() as u64,
            frame,
            frames,
            stacks,
            paths,
            live_bytes: candidate.live.amount.bytes,
            ci95: candidate.live.ci95(),
            live_objects: candidate.live.amount.objects,
            live_samples: candidate.live.amount.samples,
            growth: growth(trending),
            slope: slope(trending),
            per_work: trending.per_work.map(|by_work| PerWorkRow {
                trend: by_work.trend.name(),
                bytes_per_gib: by_work.bytes.slope,
                ci95: by_work.bytes.ci95,
                only_clock_is_over: trending.trend.has_stopped_growing()
                    && !by_work.trend.has_stopped_growing(),
            }),
            grew_across_major: trending.across_major,
            heap_growth_permille: self
                .outlook
                .share_permille(&steps, self.timeline, self.points)
                .filter(|_| trending.verdict <= Verdict::Unclear),
            survival_permille: trending
                .survival_permille
                .filter(|_| self.points.basis != Basis::Survivors),
            allocated_bytes: candidate.allocated.bytes,
            counted: self.counted.and_then(|c| c.of_class(&candidate.class)),
            collected_bytes: candidate.collected.bytes,
            began_ms: began.map(|b| b.time_ms),
            began_uptime_ms: began.map(|b| b.uptime_ms),
            began_within: began.map(|b| b.within),
            labels: self.labels.and_then(|labels| labels.of_sites(&sites)),
            series: series(&steps, self.timeline),
        })
    }

    /// Returns the stacks of a candidate (a possible leak), the stack with the most live bytes first. Equal stacks are
    /// merged.
    fn paths(&self, candidate: &Candidate) -> Result<Vec<PathRow>> {
        let mut paths: Vec<PathRow> = Vec::new();
        let mut index: HashMap<Vec<String>, usize> = HashMap::new();
        for site in &candidate.sites {
            let frames = in_focus(self.stacks, site, self.focus).unwrap_or_default();
            let live = match candidate.sites.len() {
                1 => candidate.live.amount,
                _ => self.steps(&[site.id])?.alive(self.timeline).amount,
            };
            let at = *index.entry(frames).or_insert_with_key(|frames| {
                paths.push(PathRow {
                    frames: frames.clone(),
                    live_bytes: 0,
                    live_samples: 0,
                });
                paths.len() - 1
            });
            paths[at].live_bytes = paths[at].live_bytes.saturating_add(live.bytes);
            paths[at].live_samples = paths[at].live_samples.saturating_add(live.samples);
        }
        // The sort is stable: equal stacks stay in the order of their sites.
        paths.sort_by_key(|path| Reverse(path.live_bytes));
        Ok(paths)
    }
}
