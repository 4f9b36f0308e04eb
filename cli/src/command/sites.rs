//! `heapdiff sites`: live bytes by allocation stack.

use std::path::Path;

use heapdiff_diff::samples::{Agent, AgentObjects, Samples};
use heapdiff_diff::{Allocated, by_site};
use heapdiff_report::{
    AgentReport, CollectedReport, CostReport, CounterRow, SiteTotals, SitesReport,
};
use heapdiff_sites::{Counter, Strategy};
use hprof::Progress;
use regex::Regex;

use super::dump_info;
use super::open;
use crate::failure::{Failure, Result};
use crate::job::Setup;

const ROWS: usize = 10;

pub(crate) fn run(setup: &Setup, dump: &Path, focus: Option<&Regex>) -> Result<SitesReport> {
    let (snapshot, meter) = open(setup, dump)?;
    meter.phase("reading samples", 0);
    let own = AgentObjects::of(&snapshot);
    let (samples, fault) = Samples::of(&snapshot, &own);
    let Some(samples) = samples else {
        let dump = dump.display();
        return Err(match fault {
            Some(fault) => Failure::usage(format!("{dump}: {fault}")),
            None => Failure::usage(format!(
                "{dump} names no allocation sites: it was taken without the agent"
            ))
            .with_hint("load it into the JVM with `heapdiff attach PID` before the next dump"),
        });
    };
    let matches = |frames: &[&str], class: &str| {
        focus.is_none_or(|re| re.is_match(class) || frames.iter().any(|f| re.is_match(f)))
    };
    let mut info = dump_info::of_own(&snapshot, &own);
    let reachable = info.reachable_bytes.unwrap_or(0);
    let live = by_site(&samples, &matches, reachable);
    let mut stacks = live.stacks;
    let totals = SiteTotals {
        stacks: stacks.len() as u64,
        samples: live.samples,
        estimated_bytes: live.bytes,
        ci95: live.ci95,
        estimated_objects: live.objects,
        unreachable_samples: samples.unreachable,
        unfinished_samples: samples.unfinished,
        unseen_bytes: live.unseen.there,
        unsampled_bytes: live.unsampled_bytes,
        undersampled_bytes: live.undersampled_bytes,
    };
    if let Some(focus) = focus.filter(|_| stacks.is_empty()) {
        info.warnings.push(format!(
            "--focus {focus}: no class and no frame of the stacks fits"
        ));
    }
    stacks.truncate(setup.rows(ROWS));
    info.agent = samples.info();
    info.warnings.extend(fault);
    let allocated = setup
        .output
        .format
        .is_of_stacks()
        .then(|| Allocated::of(&samples));
    Ok(SitesReport {
        schema: SitesReport::SCHEMA,
        snapshot: info,
        origin: match samples.agent() {
            Some(_) => "agent",
            None => "traces",
        },
        focus: focus.map(ToString::to_string),
        totals,
        agent: samples.agent().map(|a| agent(a, &samples)),
        stacks,
        verbose: setup.progress.verbose,
        allocated,
        only: focus.cloned(),
    })
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
                // Where few samples are followed the others are counted, and not lost.
                is_loss: is_loss(counter)
                    && !(counter == Counter::Thinned && agent.counter(Counter::FewFollowed) > 0),
            })
            .collect(),
    }
}

const fn is_loss(counter: Counter) -> bool {
    matches!(
        counter,
        Counter::DroppedFull
            | Counter::DroppedFailed
            | Counter::DroppedPending
            | Counter::DroppedClasses
            | Counter::Thinned
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
    }
}
