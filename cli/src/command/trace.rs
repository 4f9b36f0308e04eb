//! `heapdiff trace`: the reports `info`, `top` and `samples`, and what ends in no report.

mod by_site;
mod counts;
mod export;
mod flame;
mod import;
mod lines;
mod prune;
mod push;
mod samples;
mod slices;

use std::cmp::Reverse;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use heapdiff_diff::{HistoryGrowth, HistorySeries, HistorySlope, allocating_frame, frame_text};
use heapdiff_jfr::LIVE_TABLE_FULL;
use heapdiff_model::trace::{
    CandidateRow, Collections, CountingRow, DumpRow, NoteRow, PathRow, PerWorkRow, RunInfo, RunRow,
    TraceFile, TraceInfoReport, TraceTopReport, TraceTotals, WindowRow,
};
use heapdiff_report::{Format, Report, TraceTopView, View, Viewed};
use heapdiff_trace::read::{Frame, Note, Run, Tick};
use heapdiff_trace::{
    AliveAt, Basis, Candidate, CountedRun, Points, Stacks, Steps, THINNED, Timeline, Trace,
    Trending, Verdict, Window, rank_groups,
};
use heapdiff_units::counted;
use hprof::NameMapping;
use regex::Regex;

use crate::failure::{Failure, Result};
use crate::job::{RunWindow, Setup, TraceJob};
use crate::mapping::originals;
use crate::merge::{Groups, Merged, in_focus};
use counts::Counts;
pub(crate) use export::export;
pub(crate) use import::import;
pub(crate) use prune::prune;
pub(crate) use push::push;

/// The rows of a list in text, and in other formats.
const ROWS: usize = 10;
const ROWS_OF_PROGRAMS: usize = 100;
/// The most moments that a series has in a report.
pub(super) const MOMENTS: usize = 60;
/// The most paths that are listed of a candidate.
const PATHS: usize = 5;
/// The most notes that are listed of a run: the last ones.
const NOTES: usize = 50;

pub(super) fn run(setup: &Setup, path: &Path, job: &TraceJob) -> Result<Report> {
    let trace = open_named(setup.analysis.mapping.as_ref(), path)?;
    match job {
        TraceJob::Info => info(&trace).map(Report::TraceInfo),
        TraceJob::Top { part, by, focus } => {
            let report = top(setup, &trace, part, (*by, focus.as_ref()));
            report.map(|r| Report::TraceTop(Box::new(r)))
        }
        TraceJob::Flame {
            part,
            focus,
            live,
            reverse,
        } => {
            let report = flame::run(&trace, part, (focus.as_ref(), *live, *reverse));
            report.map(|r| Report::Flame(Box::new(r)))
        }
        TraceJob::Samples(job) => samples::run(setup, &trace, job).map(Report::TraceSamples),
    }
}

/// Opens a trace as it is at this moment.
pub(crate) fn open(path: &Path) -> Result<Trace> {
    readable(path)?;
    let trace = Trace::open(path).map_err(|e| Failure::trace(&e))?;
    trace.hold().map_err(|e| Failure::trace(&e))?;
    Ok(trace)
}

/// The same, with the names of a mapping.
pub(super) fn open_named(mapping: Option<&Arc<dyn NameMapping>>, path: &Path) -> Result<Trace> {
    let mut trace = open(path)?;
    if let Some(names) = originals(mapping) {
        trace.set_names(names);
    }
    Ok(trace)
}

/// Refuses a path that is not a file with a clear message; SQLite's are vague.
pub(crate) fn readable(path: &Path) -> Result<()> {
    let file = std::fs::metadata(path).map_err(|e| {
        let why = crate::failure::plain(&e);
        input(format!("{}: {why}", path.display()))
    })?;
    if file.is_dir() {
        return Err(input(format!("{}: is a directory", path.display())));
    }
    Ok(())
}

fn input(message: String) -> Failure {
    Failure {
        exit: crate::failure::Exit::Input,
        message,
        hint: None,
    }
}

/// The run with this number, process id or uid; the last run where none is named.
pub(crate) fn chosen(trace: &Trace, wanted: Option<&str>) -> Result<(u64, Run)> {
    let runs = trace.runs().map_err(|e| Failure::trace(&e))?;
    let count = runs.len();
    let mut numbered = (1_u64..).zip(runs);
    let found = match wanted {
        None => numbered.last(),
        Some(wanted) => {
            let number: Option<u64> = wanted.parse().ok();
            numbered.find(|(n, run)| {
                run.uid == wanted || number.is_some_and(|w| w == *n || w == run.pid)
            })
        }
    };
    found.ok_or_else(|| {
        let path = trace.path().display();
        match wanted {
            Some(wanted) => {
                let runs = counted(count as u64, "run");
                Failure::usage(format!(
                    "{path}: the trace has {runs} of a JVM, but no run {wanted}"
                ))
                .with_hint(format!("list the runs with `heapdiff trace info {path}`"))
            }
            None => input(format!(
                "{path}: the trace is empty, no JVM has written to it yet"
            )),
        }
    })
}

fn file(trace: &Trace) -> TraceFile {
    let path = trace.path();
    let bytes_of = |path: &Path| std::fs::metadata(path).map_or(0, |m| m.len());
    let mut ahead = path.as_os_str().to_owned();
    ahead.push("-wal");
    let mut warnings = Vec::new();
    if trace.odd() > 0 {
        let odd = heapdiff_units::counted(trace.odd(), "figure");
        warnings.push(format!(
            "the trace is damaged: {odd} are impossible and count as 0"
        ));
    }
    TraceFile {
        path: path.display().to_string(),
        bytes: bytes_of(path) + bytes_of(Path::new(&ahead)),
        warnings,
    }
}

/// Returns the file of a trace, with the warning that live bytes of a run are a lower bound, if they are.
fn file_of_run(trace: &Trace, run: i64) -> Result<TraceFile> {
    let mut file = file(trace);
    let full = trace.last_note(run, LIVE_TABLE_FULL);
    if full.map_err(|e| Failure::trace(&e))?.is_some() {
        file.warnings.push(LIVE_TABLE_FULL.to_owned());
    }
    Ok(file)
}

fn run_info(number: u64, run: &Run) -> RunInfo {
    RunInfo {
        number,
        uid: run.uid.clone(),
        pid: run.pid,
        host: run.host.clone(),
        service: run.service.clone(),
        jvm: run.jvm.clone(),
        command: run.command.clone(),
        interval_bytes: run.interval_bytes,
        strategy: run.strategy.clone(),
        started_ms: run.started_ms,
        ended_ms: run.ended_ms,
    }
}

fn notes(trace: &Trace, run: &Run) -> Result<Vec<NoteRow>> {
    let mut notes = trace.notes(run.id).map_err(|e| Failure::trace(&e))?;
    let first = notes.len().saturating_sub(NOTES);
    let row = |n: Note| NoteRow {
        time_ms: n.time_ms,
        text: n.text,
    };
    Ok(notes.drain(first..).map(row).collect())
}

fn counting(run: CountedRun) -> CountingRow {
    CountingRow {
        from_uptime_ms: run.from_ms,
        to_uptime_ms: run.to_ms,
        jdk: run.jdk,
        classes: run.classes,
        missed: lines::missed(&run),
    }
}

fn info(trace: &Trace) -> Result<TraceInfoReport> {
    let failed = |e| Failure::trace(&e);
    let mut rows = Vec::new();
    for (number, run) in (1..).zip(trace.runs().map_err(failed)?) {
        let ticks = trace.ticks(run.id).map_err(failed)?;
        let collections = trace.collections(run.id).map_err(failed)?;
        let sum = |figure: fn(&Tick) -> u64| ticks.iter().map(figure).fold(0, u64::saturating_add);
        let dumps = trace.dumps(run.id).map_err(failed)?;
        rows.push(RunRow {
            ticks: ticks.len() as u64,
            uptime_ms: ticks.last().map_or(0, |t| t.uptime_ms),
            collections: Collections {
                major: collections.iter().filter(|c| c.major).count() as u64,
                all: collections.len() as u64,
            },
            samples: sum(|t| t.samples),
            lost_samples: sum(|t| t.lost_samples),
            lost_bytes: sum(|t| t.lost_bytes),
            counting: trace.counted_run(run.id).map_err(failed)?.map(counting),
            dumps: dumps
                .into_iter()
                .map(|d| DumpRow {
                    time_ms: d.time_ms,
                    path: d.path,
                })
                .collect(),
            thinned: trace.last_note(run.id, THINNED).map_err(failed)?.is_some(),
            notes: notes(trace, &run)?,
            flags: run.flags.clone(),
            options: run.options.clone(),
            run: run_info(number, &run),
        });
    }
    let sites = trace.sites().map_err(failed)?.len() as u64;
    Ok(TraceInfoReport {
        schema: TraceInfoReport::SCHEMA,
        trace: file(trace),
        sites,
        runs: rows,
    })
}

/// The part of a run that is asked for.
fn window(part: &RunWindow, run: &Run, uptime_ms: u64) -> Result<Window> {
    let at = |moment: crate::time::Moment| moment.uptime_ms(run.started_ms, uptime_ms);
    let to_ms = part.until.map_or(u64::MAX, at);
    let from_ms = match part.window {
        Some(span) => {
            let span = u64::try_from(span.0.as_millis()).unwrap_or(u64::MAX);
            to_ms.min(uptime_ms).saturating_sub(span)
        }
        None => part.since.map_or(0, at),
    };
    if from_ms <= to_ms {
        Ok(Window { from_ms, to_ms })
    } else {
        Err(Failure::usage("--until must be after --since"))
    }
}

/// Why there is no line of code to be shown.
fn without_lines(trace: &Trace, run: &Run) -> Result<Failure> {
    let counts = trace.counted_run(run.id).map_err(|e| Failure::trace(&e))?;
    let path = trace.path().display();
    Ok(match counts {
        None => input(format!("{path}: the trace has no counts by line of code")).with_hint(
            "let the agent count every allocation: heapdiff attach PID trace=FILE,count=on",
        ),
        Some(_) => input(format!(
            "{path}: the selected part of the run has no counts by line of code"
        )),
    })
}

fn top(
    setup: &Setup,
    trace: &Trace,
    part: &RunWindow,
    (by, focus): (Option<Merged>, Option<&Regex>),
) -> Result<Viewed<TraceTopReport, TraceTopView>> {
    let failed = |e| Failure::trace(&e);
    let (number, run) = chosen(trace, part.run.as_deref())?;
    let ticks = trace.ticks(run.id).map_err(failed)?;
    let uptime_ms = ticks.last().map_or(0, |t| t.uptime_ms);
    let window = window(part, &run, uptime_ms)?;
    let timeline = Timeline::of(trace, &run, window).map_err(failed)?;
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
    let default = match setup.output.format {
        Format::Text => ROWS,
        _ => ROWS_OF_PROGRAMS,
    };
    let most = setup.top.unwrap_or(default);
    let counted = match by {
        Some(Merged::Class) => Counts::of(trace, run.id, (&ranking.candidates, most))?,
        Some(Merged::Frame | Merged::Stack) | None => None,
    };
    let lines = lines::lines(trace, (&run, window), (most, focus))?;
    if by.is_none() && lines.is_none() {
        return Err(without_lines(trace, &run)?);
    }
    // They are of the whole run and of all stacks.
    let is_part = focus.is_some() || part.is_part();
    let counts_more = is_part && counted.is_some();
    let counted = counted.filter(|_| !is_part);
    let shown = Shown {
        trace,
        timeline: &timeline,
        points: &ranking.points,
        stacks: &stacks,
        by: ranked,
        focus,
        counted: counted.as_ref(),
    };
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
        notes: notes(trace, &run)?,
    };
    Ok(Viewed {
        data: report,
        view: View {
            verbose: setup.progress.verbose,
            ..View::default()
        },
        more: TraceTopView { counts_more },
    })
}

/// What candidates are described with.
struct Shown<'a> {
    trace: &'a Trace,
    timeline: &'a Timeline,
    points: &'a Points,
    stacks: &'a Stacks,
    by: Merged,
    focus: Option<&'a Regex>,
    counted: Option<&'a Counts>,
}

impl Shown<'_> {
    fn steps(&self, sites: &[i64]) -> Result<Steps> {
        Steps::of(self.trace, self.timeline, sites).map_err(|e| Failure::trace(&e))
    }

    fn row(&self, rank: u64, candidate: &Candidate) -> Result<CandidateRow> {
        let sites: Vec<i64> = candidate.sites.iter().map(|s| s.id).collect();
        let steps = self.steps(&sites)?;
        let trending = &candidate.trending;
        let began = if trending.verdict <= Verdict::Unclear {
            steps.began(self.timeline, self.points)
        } else {
            None
        };
        let mut paths = self.paths(candidate)?;
        // Of several, the stack with most alive stands for them.
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
                only_clock_is_over: trending.trend.is_over() && !by_work.trend.is_over(),
            }),
            grew_across_major: trending.across_major,
            survival_permille: trending
                .survival_permille
                .filter(|_| self.points.basis != Basis::Survivors),
            allocated_bytes: candidate.allocated.bytes,
            counted: self.counted.and_then(|c| c.of_class(&candidate.class)),
            collected_bytes: candidate.collected.bytes,
            began_ms: began.map(|b| b.time_ms),
            began_uptime_ms: began.map(|b| b.uptime_ms),
            began_within: began.map(|b| b.within),
            series: series(&steps, self.timeline),
        })
    }

    /// The stacks of a candidate, equal ones merged, the stacks with the most live bytes first.
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
        // Equals stay in the order of their sites.
        paths.sort_by_key(|path| Reverse(path.live_bytes));
        Ok(paths)
    }
}

/// A stack's frames as reports show them, the leaf first.
pub(crate) fn frames(stacks: &Stacks, stack: i64) -> Vec<String> {
    let text = |f: &Frame| frame_text(&f.class, &f.method, f.file.as_deref(), f.line);
    stacks.frames(stack).into_iter().map(text).collect()
}

pub(super) fn growth(trending: &Trending) -> HistoryGrowth {
    HistoryGrowth {
        objects: trending.grown_objects,
        bytes: trending.grown_bytes,
    }
}

pub(super) fn slope(trending: &Trending) -> HistorySlope {
    HistorySlope {
        bytes_per_hour: trending.bytes.slope,
        ci95: trending.bytes.ci95,
        objects_per_hour: trending.objects.slope,
    }
}

pub(super) fn series(steps: &Steps, timeline: &Timeline) -> HistorySeries {
    let mut series = HistorySeries::default();
    for (tick, live) in steps.series(timeline, MOMENTS) {
        series.time_ms.push(tick.time_ms);
        series.live_objects.push(live.amount.objects);
        series.live_bytes.push(live.amount.bytes);
    }
    series
}
