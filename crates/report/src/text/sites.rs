//! Live bytes by allocation stack.

use std::io::{self, Write};

use heapdiff_units::{Size, counted, grouped};

use super::stacks::is_noted;
use super::{WIDTH, snapshot, stacks, table};
use crate::model::{AgentReport, SitesReport};
use crate::style::Style;

const INDENT: usize = 5;

pub(crate) fn render(report: &SitesReport, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let reachable = report.snapshot.reachable_bytes.unwrap_or(0);
    let all = reachable + report.snapshot.unreachable_bytes.unwrap_or(0);
    snapshot::heading(&report.snapshot, all, style, out)?;
    match &report.agent {
        Some(agent) => self::agent(agent, report.totals.unseen_bytes, style, out)?,
        None => writeln!(
            out,
            "{}",
            style.dim("the dump names the stack trace of each object: sizes are exact")
        )?,
    }
    let totals = &report.totals;
    writeln!(out)?;
    let of = match &report.focus {
        Some(focus) => format!("what matches {}", table::printable(focus)),
        None => format!("{} reachable", Size(reachable)),
    };
    let line = format!(
        "{} in {} from {}, of {of}",
        stacks::interval(totals.estimated_bytes, totals.ci95),
        counted(totals.samples, "live sample"),
        counted(totals.stacks, "stack"),
    );
    writeln!(out, "{}", table::shortened(&line, WIDTH))?;
    if is_noted(totals.unsampled_bytes, reachable) {
        let line = format!(
            "no sample speaks for {} of {} reachable",
            Size(totals.unsampled_bytes),
            Size(reachable)
        );
        writeln!(out, "{}", style.dim(table::shortened(&line, WIDTH)))?;
    }
    for (number, stack) in (1..).zip(&report.stacks) {
        writeln!(out)?;
        write!(out, "{number:>3}  ")?;
        stacks::stack(stack, (INDENT, report.verbose), style, out)?;
    }
    let more = totals.stacks.saturating_sub(report.stacks.len() as u64);
    if more > 0 {
        let rest = format!("and {} more stacks (--top N shows more)", grouped(more));
        writeln!(out, "\n{}", style.dim(rest))?;
    }
    Ok(())
}

fn agent(agent: &AgentReport, unseen: u64, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let rate = match (agent.strategy, agent.interval_bytes, agent.rate) {
        ("bytes", 0, _) => "every allocation is sampled".to_owned(),
        ("bytes", bytes, _) => format!("one sample every {} allocated", Size(bytes)),
        ("time", _, ms) => format!("one sample every {ms} ms"),
        ("class", _, rate) => format!("one sample every {} objects of a class", grouped(rate)),
        (_, _, rate) => format!("one sample every {} objects", grouped(rate)),
    };
    let thinned = match (agent.first_interval_bytes, agent.first_rate) {
        first if first == (agent.interval_bytes, agent.rate) => String::new(),
        (0, 0 | 1) => ", at first every allocation".to_owned(),
        (0, rate) => format!(", at first every {}", grouped(rate)),
        (bytes, _) => format!(", at first every {}", Size(bytes)),
    };
    let cost = &agent.cost;
    let heap = format!(
        "the agent takes {} of the heap: {} bytes a sample ({}), {} bytes a stack ({})",
        Size(cost.bytes),
        cost.bytes_per_sample,
        grouped(cost.samples),
        cost.bytes_per_site,
        grouped(cost.sites),
    );
    let age = agent.collected.median_age_ms;
    let age = age.map_or_else(String::new, |ms| format!(", half of them within {ms} ms"));
    let collected = format!(
        "{} collected{age}",
        counted(agent.collected.samples, "sample")
    );
    for line in [format!("{rate}{thinned}; {collected}"), heap] {
        writeln!(out, "{}", style.dim(table::shortened(&line, WIDTH)))?;
    }
    let lost = agent.counters.iter().filter(|c| c.is_loss && c.count > 0);
    let mut lost: Vec<String> = lost
        .map(|c| format!("{} {}", grouped(c.count), c.name.replace('_', " ")))
        .collect();
    if !lost.is_empty() {
        if unseen > 0 {
            lost.push(format!("up to {} have no sample", Size(unseen)));
        }
        let line = format!("lost: {}", lost.join(", "));
        writeln!(out, "{}", style.yellow(table::shortened(&line, WIDTH)))?;
    }
    Ok(())
}
