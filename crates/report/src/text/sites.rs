//! Live bytes by allocation stack.

use std::io::{self, Write};

use heapdiff_model::sites::{AgentReport, SitesReport};
use heapdiff_units::{Size, counted, grouped};

use super::stacks::is_noted;
use super::table::{Align, Table};
use super::{WIDTH, snapshot, stacks, table};
use crate::style::Style;
use crate::view::{SitesView, Viewed};

const INDENT: usize = 5;
/// What the agent's counts of classes are of.
pub(super) const COUNTED: &str = "allocated: all allocations since the agent's start that pass its filters, except the last second";

pub(crate) fn render(
    report: &Viewed<SitesReport, SitesView>,
    style: Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    let reachable = report.snapshot.reachable_bytes.unwrap_or(0);
    let all = reachable + report.snapshot.unreachable_bytes.unwrap_or(0);
    snapshot::heading(&report.snapshot, all, style, out)?;
    let totals = &report.totals;
    origin(report.agent.as_ref(), totals.unseen_bytes, style, out)?;
    writeln!(out)?;
    let of = match &report.focus {
        Some(focus) => format!("only stacks that match {}", table::printable(focus)),
        None => format!("of {} reachable", Size(reachable)),
    };
    let from = match report.by {
        "class" => classes(report.more.sampled_classes),
        _ => counted(totals.stacks, "stack"),
    };
    let line = format!(
        "{} in {} from {from}, {of}",
        stacks::interval(totals.estimated_bytes, totals.ci95),
        counted(totals.samples, "live sample"),
    );
    writeln!(out, "{}", style.fitted(&line, WIDTH))?;
    if report.by != "class" {
        other_stacks(
            totals.other_stacks_bytes,
            totals.estimated_bytes,
            style,
            out,
        )?;
    }
    if is_noted(totals.unsampled_bytes, reachable) {
        let line = format!(
            "{} of {} reachable is not covered by samples",
            Size(totals.unsampled_bytes),
            Size(reachable)
        );
        writeln!(out, "{}", style.dim(style.fitted(&line, WIDTH)))?;
    }
    if let Some(line) = undersampled(totals.undersampled_bytes) {
        writeln!(out, "{}", style.yellow(line))?;
    }
    if report.by == "class" {
        return by_class(report, style, out);
    }
    if report.more.lists_frames {
        return by_frame(report, style, out);
    }
    if report.stacks.iter().any(|stack| !stack.survival_known) {
        let line = "\"alive\" is unknown for stacks with too few samples of freed objects";
        writeln!(out, "{}", style.dim(line))?;
    }
    for (number, stack) in (1..).zip(&report.stacks) {
        writeln!(out)?;
        write!(out, "{number:>3}  ")?;
        stacks::stack(stack, (INDENT, report.view.verbose), style, out)?;
    }
    let more = totals.stacks.saturating_sub(report.stacks.len() as u64);
    if more > 0 {
        let rest = format!("and {} (--top N shows more)", counted(more, "more stack"));
        writeln!(out, "\n{}", style.dim(rest))?;
    }
    Ok(())
}

/// Writes which part of a total no listed stack has.
pub(super) fn other_stacks(
    part: u64,
    total: u64,
    style: Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    if !is_noted(part, total) {
        return Ok(());
    }
    let line = format!(
        "about {} of this was allocated in stacks without a sample",
        Size(part)
    );
    writeln!(out, "{}", style.dim(style.fitted(&line, WIDTH)))
}

/// `1 class`, `12 classes`.
pub(super) fn classes(count: u64) -> String {
    match count {
        1 => "1 class".to_owned(),
        _ => format!("{} classes", grouped(count)),
    }
}

/// The frames that allocate as a table.
fn by_frame(
    report: &Viewed<SitesReport, SitesView>,
    style: Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out)?;
    let mut table = Table::new(&[
        ("live", Align::Right),
        ("95 % interval", Align::Left),
        ("objects", Align::Right),
        ("samples", Align::Right),
        ("stacks", Align::Right),
        ("class, allocated in", Align::Left),
    ]);
    for row in &report.frames {
        let [low, high] = row.ci95;
        let frame = row.frame.as_deref().unwrap_or("(no stack was recorded)");
        table.row(vec![
            Size(row.estimated_bytes).to_string(),
            format!("{}..{}", Size(low), Size(high)),
            grouped(row.estimated_objects),
            grouped(row.samples),
            grouped(row.stacks),
            format!("{}, {frame}", row.class),
        ]);
    }
    table.print(style, out)?;
    let more = report
        .more
        .frame_count
        .saturating_sub(report.frames.len() as u64);
    let hint = match more {
        0 => "--by stack shows the stacks".to_owned(),
        more => format!(
            "and {} (--top N shows more); --by stack shows the stacks",
            counted(more, "more frame")
        ),
    };
    writeln!(out, "{}", style.dim(hint))
}

/// The classes as a table, with what was allocated of them where that was counted.
fn by_class(
    report: &Viewed<SitesReport, SitesView>,
    style: Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    let counts = report.classes.iter().any(|c| c.allocated.is_some());
    if counts {
        writeln!(out, "{}", style.dim(COUNTED))?;
    }
    writeln!(out)?;
    let mut columns = vec![
        ("live", Align::Right),
        ("95 % interval", Align::Left),
        ("objects", Align::Right),
        ("samples", Align::Right),
    ];
    if counts {
        columns.extend([("allocated objects", Align::Right), ("bytes", Align::Right)]);
    }
    columns.push(("class", Align::Left));
    let mut table = Table::new(&columns);
    for row in &report.classes {
        let [low, high] = row.ci95;
        let mut cells = vec![
            Size(row.estimated_bytes).to_string(),
            format!("{}..{}", Size(low), Size(high)),
            grouped(row.estimated_objects),
            grouped(row.samples),
        ];
        if counts {
            let counts = row.allocated.map(|c| [c.objects, c.bytes].map(grouped));
            cells.extend(counts.unwrap_or_default());
        }
        cells.push(row.class.clone());
        table.row(cells);
    }
    table.print(style, out)?;
    more_classes(report.more.class_count, report.classes.len(), style, out)
}

/// How many classes there are besides those that are shown.
pub(super) fn more_classes(
    all: u64,
    shown: usize,
    style: Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    match all.saturating_sub(shown as u64) {
        0 => Ok(()),
        more => {
            let word = if more == 1 { "class" } else { "classes" };
            let rest = format!("and {} more {word} (--top N shows more)", grouped(more));
            writeln!(out, "{}", style.dim(rest))
        }
    }
}

/// What large objects are told of, where the JVM samples too few of them.
fn undersampled(bytes: u64) -> Option<String> {
    (bytes > 0).then(|| {
        format!(
            "large objects may have up to 50 % more than {}: JVMs before JDK 25 sample too few of them;\n\
             load the agent at start, or compare with a second dump",
            Size(bytes)
        )
    })
}

/// Where the stacks come from.
pub(super) fn origin(
    agent: Option<&AgentReport>,
    unseen: u64,
    style: Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    let Some(agent) = agent else {
        let exact = "the dump records the stack trace of each object: sizes are exact";
        return writeln!(out, "{}", style.dim(exact));
    };
    let count = |name| agent.counters.iter().any(|c| c.name == name && c.count > 0);
    let few = count("few_followed");
    let (filtered, is_full) = (count("filtered"), count("dropped_full"));
    // Where few are followed, one that has no room is counted.
    let uncounted = ["dropped_failed", "dropped_pending"].into_iter().any(count);
    let lost = uncounted || is_full;
    let uncounted = uncounted || is_full && !few;
    let rate = match (agent.strategy, agent.interval_bytes, agent.rate) {
        ("bytes", 0, _) => every(filtered, lost, "sampled"),
        ("bytes", bytes, _) => format!("one sample every {} allocated", Size(bytes)),
        ("time", _, ms) => format!("one sample every {ms} ms"),
        ("class", _, rate) => format!("one sample every {} objects of a class", grouped(rate)),
        (_, _, rate) => format!("one sample every {} objects", grouped(rate)),
    };
    let thinned = match (agent.first_interval_bytes, agent.first_rate) {
        first if first == (agent.interval_bytes, agent.rate) => String::new(),
        (_, ms) if agent.strategy == "time" && few => {
            format!(" is tracked, one every {ms} ms is counted")
        }
        (_, ms) if agent.strategy == "time" => format!(", at first every {ms} ms"),
        (0, 0 | 1) if few => format!(" is tracked, {}", every(filtered, uncounted, "counted")),
        (bytes @ 1.., _) if few => {
            format!(" is tracked, one every {} is counted", Size(bytes))
        }
        (_, rate) if few => format!(" is tracked, one every {} is counted", grouped(rate)),
        (0, 0 | 1) => ", at first every allocation".to_owned(),
        (0, rate) => format!(", at first one every {}", grouped(rate)),
        (bytes, _) => format!(", at first every {}", Size(bytes)),
    };
    let cost = &agent.cost;
    let heap = format!(
        "the agent uses {} of the heap: {} of {} bytes, {} of {} bytes",
        Size(cost.bytes),
        counted(cost.samples, "sample"),
        cost.bytes_per_sample,
        counted(cost.sites, "stack"),
        cost.bytes_per_site,
    );
    let age = agent.collected.median_age_ms;
    let age = age.map_or_else(String::new, |ms| {
        format!(", half within {ms} ms of allocation")
    });
    let collected = format!(
        "{} freed{age}",
        counted(agent.collected.samples, "sampled object")
    );
    let one = format!("{rate}{thinned}; {collected}");
    let said = match one.len() <= WIDTH {
        true => vec![one, heap],
        false => vec![format!("{rate}{thinned}"), collected, heap],
    };
    for line in said {
        writeln!(out, "{}", style.dim(style.fitted(&line, WIDTH)))?;
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
        writeln!(out, "{}", style.yellow(style.fitted(&line, WIDTH)))?;
    }
    Ok(())
}

/// What is true of all allocations, where some were left out by class, or lost.
pub(super) fn every(filtered: bool, lost: bool, done: &str) -> String {
    match (filtered, lost) {
        (false, false) => format!("every allocation is {done}"),
        (true, false) => format!("every allocation that passes the filters is {done}"),
        (false, true) => format!("every allocation except lost ones is {done}"),
        (true, true) => {
            format!("every allocation that passes the filters, except lost ones, is {done}")
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use heapdiff_diff::Stack;

    use super::*;
    use crate::text::tests::snapshot;
    use heapdiff_model::sites::{
        CollectedReport, CostReport, CountRow, CounterRow, LiveClassRow, SiteTotals,
    };

    pub(in crate::text) fn agent() -> AgentReport {
        AgentReport {
            strategy: "bytes",
            interval_bytes: 0,
            rate: 0,
            first_interval_bytes: 0,
            first_rate: 0,
            depth: 64,
            cost: CostReport {
                objects: 10,
                bytes: 2048,
                samples: 7,
                bytes_per_sample: 64,
                sites: 3,
                bytes_per_site: 100,
            },
            collected: CollectedReport {
                samples: 5,
                remembered: 5,
                median_age_ms: None,
            },
            counters: Vec::new(),
        }
    }

    fn live(by: &'static str) -> Viewed<SitesReport, SitesView> {
        SitesReport {
            schema: SitesReport::SCHEMA,
            snapshot: snapshot(),
            origin: "agent",
            by,
            focus: None,
            totals: SiteTotals {
                stacks: 9,
                samples: 4,
                estimated_bytes: 2048,
                ci95: [1024, 4096],
                estimated_objects: 12,
                unreachable_samples: 0,
                unfinished_samples: 0,
                unseen_bytes: 0,
                other_stacks_bytes: 0,
                unsampled_bytes: 0,
                undersampled_bytes: 0,
            },
            agent: Some(agent()),
            stacks: Vec::new(),
            frames: Vec::new(),
            classes: Vec::new(),
        }
        .into()
    }

    fn said(report: &Viewed<SitesReport, SitesView>) -> String {
        let mut out = Vec::new();
        render(report, Style::plain(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn stacks_of_which_too_little_is_known_are_explained() {
        let note = "is unknown for stacks with too few samples of freed objects\n";
        let with = |survival_known: bool| {
            let mut report = live("stack");
            report.stacks = vec![Stack {
                frames: Vec::new(),
                class: "byte[]".to_owned(),
                samples: 4,
                estimated_bytes: 2048,
                ci95: [1024, 4096],
                sampled: None,
                estimated_objects: 12,
                survival_permille: 1000,
                survival_known,
                threads: Vec::new(),
            }];
            said(&report)
        };
        let (known, unknown) = (with(true), with(false));
        assert!(
            unknown.contains(note) && unknown.contains(", alive: unknown\n"),
            "{unknown}"
        );
        assert!(
            !known.contains(note) && known.contains(", all alive\n"),
            "{known}"
        );
    }

    #[test]
    fn classes_have_counts_where_the_agent_counted() {
        let told = |allocated: Option<CountRow>| {
            let mut report = live("class");
            report.classes = vec![LiveClassRow {
                class: "byte[]".to_owned(),
                samples: 4,
                estimated_bytes: 2048,
                ci95: [1024, 4096],
                estimated_objects: 12,
                allocated,
            }];
            report.more.class_count = 2;
            report.more.sampled_classes = 1;
            said(&report)
        };
        let counted = "allocated: all allocations since the agent's start that pass its filters";
        let text = told(None);
        for part in [
            "2.0 KiB (1.0 KiB..4.0 KiB) in 4 live samples from 1 class, of ",
            "   live  95 % interval     objects  samples  class\n",
            "2.0 KiB  1.0 KiB..4.0 KiB       12        4  byte[]\n",
            "and 1 more class (--top N shows more)\n",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains(counted), "{text}");
        let count = CountRow {
            objects: 1234,
            bytes: 56_789,
        };
        let text = told(Some(count));
        assert!(
            text.contains(counted) && text.contains("1,234  56,789  byte[]"),
            "{text}"
        );
    }

    /// What is told of an agent with this strategy, bytes and rate, and of the samples that it lost.
    fn told(sampling: (&'static str, u64, u64), first: (u64, u64), lost: u64) -> String {
        told_by(sampling, first, lost, false)
    }

    /// The same of an agent that follows `few` of its samples.
    fn told_by(
        (strategy, interval_bytes, rate): (&'static str, u64, u64),
        first: (u64, u64),
        lost: u64,
        few: bool,
    ) -> String {
        let report = AgentReport {
            strategy,
            interval_bytes,
            rate,
            first_interval_bytes: first.0,
            first_rate: first.1,
            collected: CollectedReport {
                samples: 5,
                remembered: 5,
                median_age_ms: (lost > 0).then_some(30),
            },
            counters: vec![
                CounterRow {
                    name: "dropped_full",
                    count: lost,
                    is_loss: true,
                },
                CounterRow {
                    name: "few_followed",
                    count: few.into(),
                    is_loss: false,
                },
            ],
            ..agent()
        };
        let mut out = Vec::new();
        origin(Some(&report), lost * 1024, Style::plain(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn exact_sizes_are_told_where_the_dump_names_stacks() {
        let mut out = Vec::new();
        origin(None, 0, Style::plain(), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.ends_with(": sizes are exact\n"), "{text}");
        assert!(!text.contains("the agent uses"), "{text}");
        assert!(!told(("bytes", 0, 0), (0, 0), 0).contains("sizes are exact"));
    }

    #[test]
    fn how_samples_were_chosen_is_told_once() {
        let forms = [
            (("bytes", 0, 0), (0, 0), "every allocation is sampled; "),
            (
                ("bytes", 4096, 0),
                (4096, 0),
                "one sample every 4.0 KiB allocated; ",
            ),
            (("time", 0, 20), (0, 20), "one sample every 20 ms; "),
            (
                ("class", 0, 9),
                (0, 9),
                "one sample every 9 objects of a class; ",
            ),
            (("count", 0, 9), (0, 9), "one sample every 9 objects; "),
            (
                ("bytes", 4096, 0),
                (0, 0),
                " allocated, at first every allocation; ",
            ),
            (
                ("count", 0, 9),
                (0, 3),
                "one sample every 9 objects, at first one every 3; ",
            ),
            (
                ("bytes", 4096, 0),
                (1024, 0),
                " allocated, at first every 1.0 KiB; ",
            ),
        ];
        for (sampling, first, words) in forms {
            let text = told(sampling, first, 0);
            let with = forms.iter().filter(|f| text.contains(f.2)).count();
            assert!(text.contains(words) && with == 1, "{text}");
            assert!(!text.contains("is followed, one every"), "{text}");
        }
        for (sampling, first, words) in [
            (
                ("bytes", 4096, 0),
                (1024, 0),
                "every 4.0 KiB allocated is tracked, one every 1.0 KiB is counted; ",
            ),
            (
                ("count", 0, 9),
                (0, 3),
                "every 9 objects is tracked, one every 3 is counted; ",
            ),
            (
                ("bytes", 4096, 0),
                (0, 0),
                "every 4.0 KiB allocated is tracked, every allocation is counted; ",
            ),
            (
                ("time", 0, 80),
                (4096, 10),
                "every 80 ms is tracked, one every 10 ms is counted; ",
            ),
            (
                ("bytes", 4096, 0),
                (4096, 0),
                "one sample every 4.0 KiB allocated; ",
            ),
        ] {
            let text = told_by(sampling, first, 0, true);
            assert!(text.contains(words) && !text.contains("at first"), "{text}");
        }
        let text = told(("time", 0, 80), (4096, 10), 0);
        assert!(
            text.contains("one sample every 80 ms, at first every 10 ms; "),
            "{text}"
        );
    }

    #[test]
    fn what_was_left_out_or_lost_is_not_said_to_be_sampled() {
        assert!(told(("bytes", 0, 0), (0, 0), 0).contains("every allocation is sampled; "));
        let text = told(("bytes", 0, 0), (0, 0), 3);
        assert!(
            text.contains("every allocation except lost ones is sampled\n5 sampled objects "),
            "{text}"
        );
        // Where few are followed, what had no room to be is counted.
        let text = told_by(("bytes", 4096, 0), (0, 0), 3, true);
        assert!(
            text.starts_with("one sample every 4.0 KiB allocated is tracked, every allocation is counted\n5 sampled objects ")
                && text.contains("lost: 3 dropped full"),
            "{text}"
        );
        let said = [
            "every allocation is counted",
            "every allocation that passes the filters is counted",
            "every allocation except lost ones is counted",
            "every allocation that passes the filters, except lost ones, is counted",
        ];
        let cases = [(false, false), (true, false), (false, true), (true, true)];
        assert_eq!(
            cases.map(|(filtered, lost)| every(filtered, lost, "counted")),
            said
        );
    }

    #[test]
    fn what_the_agent_takes_and_loses_is_told() {
        let (calm, lossy) = (
            told(("bytes", 0, 0), (0, 0), 0),
            told(("bytes", 0, 0), (0, 0), 3),
        );
        let heap =
            "the agent uses 2.0 KiB of the heap: 7 samples of 64 bytes, 3 stacks of 100 bytes";
        assert!(calm.contains(heap) && lossy.contains(heap));
        assert!(calm.contains("5 sampled objects freed\n"));
        assert!(lossy.contains("5 sampled objects freed, half within 30 ms of allocation\n"));
        let lost = "lost: 3 dropped full, up to 3.0 KiB have no sample";
        assert!(lossy.contains(lost) && !calm.contains("lost") && !calm.contains("have no sample"));
    }

    #[test]
    fn too_few_samples_of_large_objects_are_told_where_there_are_such_objects() {
        assert_eq!(undersampled(0), None);
        let told = undersampled(3 << 20).unwrap();
        assert!(told.starts_with("large objects may have up to 50 % more than 3.0 MiB: "));
        assert!(told.lines().all(|line| line.len() <= WIDTH), "{told}");
    }
}
