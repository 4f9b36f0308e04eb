//! `heapdiff trace ages`: shows how many GCs objects survive, and which objects are temporary.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use heapdiff_diff::allocating_frame;
use heapdiff_model::ages::{AgeRow, Ages as AgesRow, SurvivedRow, TraceAgesReport};
use heapdiff_model::trace::Collections;
use heapdiff_report::{Report, View, Viewed};
use heapdiff_trace::read::Run;
use heapdiff_trace::{
    AGE_GROUPS, AgeSummary, Ages, AliveAt, Candidate, ObjectAge, SiteAges, Stacks, SurvivedGcs,
    Timeline, Window, rank_groups, survived_shares,
};
use regex::Regex;

use super::read::{RunArgs, file_of_run, open_named, rows, run_info, select_run};
use super::samples::OLD;
use crate::failure::{Failure, Result};
use crate::frame;
use crate::job::{Setup, Task};
use crate::merge::{Groups, Merged, in_focus};

const HELP: &str = "\
Examples:
  # objects that accumulate over the most GCs
  heapdiff trace ages app.db
  # code that allocates the most temporary objects
  heapdiff trace ages app.db --sort temporary

The age of an object is the number of GCs that it survived. Live objects of a leak have many
different ages (surviving generations), and objects that are loaded once have few. The agent
remembers all live samples, and a random choice of at least 4,096 freed samples (agent option
`garbage`).";

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct AgesArgs {
    /// Trace that the agent wrote (agent option trace=FILE)
    trace: PathBuf,
    #[command(flatten)]
    run: RunArgs,
    /// Group by allocating frame (all call paths merged), class or stack
    #[arg(long, value_enum, value_name = "WHAT", default_value_t)]
    by: By,
    /// Sort by the number of surviving generations, or by the bytes that the first GC frees
    #[arg(long, value_enum, value_name = "WHAT", default_value_t)]
    sort: AgeOrder,
    /// Start stacks at the first matching frame, and drop stacks without a match
    #[arg(long, value_name = "RE", value_parser = frame::pattern)]
    focus: Option<Regex>,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum By {
    #[default]
    Frame,
    Class,
    Stack,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum AgeOrder {
    #[default]
    Generations,
    Temporary,
}

/// Refuses runs that were imported from recordings, because recordings do not contain the ages of objects.
pub(super) fn check_has_ages(trace: &Path, run: &Run) -> Result<()> {
    if run.strategy != "recording" {
        return Ok(());
    }
    let message = format!(
        "{} was imported from a recording, which does not contain the ages of objects",
        trace.display()
    );
    let hint = "record a trace with the agent: heapdiff attach PID trace=FILE";
    Err(Failure::bad_input(message).with_hint(hint))
}

impl Task for AgesArgs {
    fn run(&self, setup: &Setup) -> Result<Vec<Report>> {
        let failed = |e| Failure::trace(&e);
        let trace = &open_named(setup.analysis.mapping.as_ref(), &self.trace)?;
        let (number, run) = select_run(trace, self.run.run.as_deref())?;
        check_has_ages(&self.trace, &run)?;
        let timeline = Timeline::of(trace, &run, Window::ALL).map_err(failed)?;
        let ages = Ages::new(trace, &run).map_err(failed)?;
        let stacks = trace.stacks().map_err(failed)?;
        let by = match self.by {
            By::Frame => Merged::Frame,
            By::Class => Merged::Class,
            By::Stack => Merged::Stack,
        };
        let focus = self.focus.as_ref();
        let mut groups = Groups::new(&stacks, by, focus);
        let ranking = rank_groups(trace, &timeline, |site| groups.of(site)).map_err(failed)?;
        let mut file = file_of_run(trace, run.id)?;
        if !trace.has_samples() {
            file.warnings.push(OLD.to_owned());
        }
        if let Some(focus) = focus.filter(|_| ranking.candidates.is_empty()) {
            file.warnings
                .push(format!("--focus {focus}: no stack frame matches"));
        }
        let named = Named {
            stacks: &stacks,
            by,
            focus,
            ages: &ages,
        };
        let mut all: Vec<AgeRow> = ranking.candidates.iter().map(|c| named.row(c)).collect();
        let sum = |samples: fn(&AgeRow) -> Option<AgesRow>| {
            let samples = all.iter().filter_map(samples).map(|ages| ages.samples);
            samples.sum::<u64>()
        };
        let (live_samples, freed_samples) = (sum(|row| row.live), sum(|row| row.freed));
        let sites = all.len() as u64;
        // The sort is stable, so rows with equal keys stay in the order of `trace top`.
        match self.sort {
            AgeOrder::Generations => all.sort_by_key(|row| {
                Reverse((row.live.map_or(0, |ages| ages.generations), row.live_bytes))
            }),
            AgeOrder::Temporary => all.sort_by_key(|row| Reverse(row.temporary_bytes)),
        }
        all.truncate(rows(setup));
        for (rank, row) in (1..).zip(&mut all) {
            row.rank = rank;
        }
        let report = TraceAgesReport {
            schema: TraceAgesReport::SCHEMA,
            trace: file,
            run: run_info(number, &run),
            by: by.name(),
            sort: match self.sort {
                AgeOrder::Generations => "generations",
                AgeOrder::Temporary => "temporary",
            },
            focus: focus.map(ToString::to_string),
            collections: collections(ages.gcs),
            freed_by_full_gcs_only: timeline.alive_at() != AliveAt::End,
            live_samples,
            freed_samples,
            sites,
            rows: all,
        };
        Ok(vec![Report::TraceAges(Viewed {
            data: report,
            view: View {
                verbose: setup.progress.verbose,
                ..View::default()
            },
            more: (),
        })])
    }
}

/// The data that is needed to create the rows of the report.
struct Named<'a> {
    stacks: &'a Stacks,
    by: Merged,
    focus: Option<&'a Regex>,
    ages: &'a Ages,
}

impl Named<'_> {
    fn row(&self, candidate: &Candidate) -> AgeRow {
        let SiteAges { live, freed } = self.ages.at(candidate.sites.iter().map(|site| site.id));
        let samples = |id: i64| {
            let ages = self.ages.at([id]);
            ages.live.len() + ages.freed.len()
        };
        let main = candidate
            .sites
            .iter()
            .min_by_key(|site| Reverse(samples(site.id)));
        let frames = main.and_then(|site| in_focus(self.stacks, site, self.focus));
        let frames = frames.unwrap_or_default();
        let shares = survived_shares(&freed);
        let freed_bytes = candidate.collected.bytes;
        AgeRow {
            rank: 0,
            class: candidate.class.to_string(),
            frame: match self.by {
                Merged::Frame => allocating_frame(&frames).map(str::to_owned),
                Merged::Class | Merged::Stack => None,
            },
            frames,
            sites: candidate.sites.len() as u64,
            allocated_bytes: candidate.allocated.bytes,
            live_bytes: candidate.live.amount.bytes,
            freed_bytes,
            temporary_bytes: (!freed.is_empty()).then(|| part(freed_bytes, shares[0])),
            live: summary(&live),
            freed: summary(&freed),
            survived: if freed.is_empty() {
                Vec::new()
            } else {
                survived(shares)
            },
        }
    }
}

/// Returns the part `share` (from 0 to 1) of `bytes`, rounded.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an estimate, and the share is from 0 to 1"
)]
pub(super) fn part(bytes: u64, share: f64) -> u64 {
    (bytes as f64 * share).round() as u64
}

fn collections(gcs: SurvivedGcs) -> Collections {
    Collections {
        major: gcs.full,
        all: gcs.all(),
    }
}

fn summary(ages: &[ObjectAge]) -> Option<AgesRow> {
    let summary = AgeSummary::new(ages)?;
    Some(AgesRow {
        samples: summary.samples,
        generations: summary.generations,
        median_gcs: collections(summary.median_gcs),
        most_gcs: collections(summary.most_gcs),
        median_ms: summary.median_ms,
        p95_ms: summary.p95_ms,
        most_ms: summary.most_ms,
    })
}

fn survived(shares: [f64; AGE_GROUPS.len()]) -> Vec<SurvivedRow> {
    let rows = AGE_GROUPS.into_iter().zip(shares);
    rows.map(|((from_gcs, to_gcs), share)| SurvivedRow {
        from_gcs,
        to_gcs,
        permille: part(1000, share),
    })
    .collect()
}
