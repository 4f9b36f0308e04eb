//! Prints live bytes by allocation stack.

use heapdiff_diff::sentence::{First, Rate, Samples};
use heapdiff_model::sites::{AgentReport, SitesReport};
use heapdiff_units::{Size, counted, grouped};

use super::stacks::is_worth_mentioning;
use super::{snapshot, stacks};
use crate::coverage;
use crate::document::Column::{Figure, Name};
use crate::document::{Document, WIDTH, dim, yellow};
use crate::view::{SitesView, Viewed};

pub(crate) fn build(report: &Viewed<SitesReport, SitesView>, doc: &mut Document) {
    let reachable = report.snapshot.reachable_bytes.unwrap_or(0);
    snapshot::heading(&report.snapshot, doc);
    let totals = &report.totals;
    origin(report.agent.as_ref(), totals.unseen_bytes, doc);
    doc.gap();
    let from = match report.by {
        "class" => counted(report.more.sampled_classes, "class"),
        _ => counted(totals.stacks, "stack"),
    };
    let line = Samples::Live {
        amount: stacks::interval(totals.estimated_bytes, totals.ci95),
        samples: totals.samples,
        from,
        reachable: Size(reachable),
        focus: report.focus.clone(),
    };
    doc.one_line(line);
    if report.by != "class" {
        other_stacks(totals.other_stacks_bytes, totals.estimated_bytes, doc);
    }
    if is_worth_mentioning(totals.unsampled_bytes, reachable) {
        doc.note(Samples::UncoveredHeap {
            size: Size(totals.unsampled_bytes),
            reachable: Size(reachable),
        });
    }
    large_objects(totals.undersampled_bytes, true, doc);
    if let Some(labels) = &report.labels {
        doc.note(coverage::labels(labels));
    }
    if report.by == "class" {
        return by_class(report, doc);
    }
    if report.more.lists_frames {
        return by_frame(report, doc);
    }
    if report.stacks.iter().any(|stack| !stack.survival_known) {
        doc.note(Samples::AliveUnknown);
    }
    for (number, stack) in (1..).zip(&report.stacks) {
        doc.gap();
        stacks::stack(stack, Some(number), report.view.verbose, doc);
    }
    let more = totals.stacks.saturating_sub(report.stacks.len() as u64);
    doc.add_unlisted_blocks(more, "more stack");
}

/// Adds a line about objects that were allocated by stacks without samples. `part` is the number of bytes of these
/// objects. Adds nothing if `part` is less than one per cent of `total`.
pub(super) fn other_stacks(part: u64, total: u64, doc: &mut Document) {
    if is_worth_mentioning(part, total) {
        doc.note(Samples::OtherStacks { size: Size(part) });
    }
}

/// Adds the table of allocating frames.
fn by_frame(report: &Viewed<SitesReport, SitesView>, doc: &mut Document) {
    doc.gap();
    let no_stack = Samples::NoStack.to_string();
    let columns = [
        ("live", Figure),
        ("95 % interval", Name),
        ("objects", Figure),
        ("samples", Figure),
        ("stacks", Figure),
        ("class, allocated in", Name),
    ];
    let rows = report.frames.iter().map(|row| {
        let [low, high] = row.ci95;
        let frame = row.frame.as_deref().unwrap_or(&no_stack);
        vec![
            Size(row.estimated_bytes).to_string(),
            format!("{}..{}", Size(low), Size(high)),
            grouped(row.estimated_objects),
            grouped(row.samples),
            grouped(row.stacks),
            format!("{}, {frame}", row.class),
        ]
    });
    doc.table(&columns, rows);
    let all = report.more.frame_count;
    let more = all.saturating_sub(report.frames.len() as u64);
    let hint = match more {
        0 => "--by stack shows the stacks".to_owned(),
        more => format!(
            "and {} (--top N shows more); --by stack shows the stacks",
            counted(more, "more frame")
        ),
    };
    doc.note(hint);
}

/// Adds the table of classes, with allocation counts if the agent counts classes.
fn by_class(report: &Viewed<SitesReport, SitesView>, doc: &mut Document) {
    let counts = report.classes.iter().any(|c| c.allocated.is_some());
    if counts {
        doc.note(Samples::AllocatedColumns);
    }
    doc.gap();
    let mut columns = vec![
        ("live", Figure),
        ("95 % interval", Name),
        ("objects", Figure),
        ("samples", Figure),
    ];
    if counts {
        columns.extend([("allocated objects", Figure), ("bytes", Figure)]);
    }
    columns.push(("class", Name));
    let rows = report.classes.iter().map(|row| {
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
        cells
    });
    doc.table(&columns, rows);
    more_classes(report.more.class_count, report.classes.len(), doc);
}

/// Adds the number of classes that are not listed.
pub(super) fn more_classes(all: u64, shown: usize, doc: &mut Document) {
    doc.add_unlisted_count(all.saturating_sub(shown as u64), "more class");
}

/// Adds the warning that the JVM may have sampled large objects too rarely. `is_live` is true if the figures are about
/// live objects.
pub(super) fn large_objects(bytes: u64, is_live: bool, doc: &mut Document) {
    if bytes > 0 {
        let size = Size(bytes);
        doc.prose(yellow(Samples::LargeObjects { size, is_live }));
    }
}

/// Adds a description of where the stacks come from: the agent, with its settings and losses, or the stack traces in
/// the dump.
pub(super) fn origin(agent: Option<&AgentReport>, unseen: u64, doc: &mut Document) {
    let Some(agent) = agent else {
        return doc.note(Samples::Exact);
    };
    let count = |name| agent.counters.iter().any(|c| c.name == name && c.count > 0);
    let few = count("few_followed");
    let (filtered, is_full) = (count("filtered"), count("dropped_full"));
    // If its table of samples is full, the agent drops samples. But an agent that tracks only some of its samples
    // counts the allocations of dropped samples nevertheless.
    let uncounted = ["dropped_failed", "dropped_pending"].into_iter().any(count);
    let lost = uncounted || is_full;
    let uncounted = uncounted || is_full && !few;
    let once = |first| {
        if few {
            First::Counted(first)
        } else {
            First::Other(first)
        }
    };
    let rate = |bytes, rate| match (agent.strategy, bytes) {
        ("bytes", 0) => Rate::Each {
            is_filtered: filtered,
            has_lost: lost,
            is_counted: false,
        },
        ("bytes", bytes) => Rate::Bytes(bytes),
        ("time", _) => Rate::Milliseconds(rate),
        ("class", _) => Rate::OfClass(rate),
        _ => Rate::Objects(rate),
    };
    // With the interval 0 and a rate of 0 or 1, the agent samples each allocation, except with the strategy `time`.
    let first = match (agent.first_interval_bytes, agent.first_rate) {
        first if first == (agent.interval_bytes, agent.rate) => First::Same,
        (0, 0 | 1) if agent.strategy != "time" => once(Rate::Each {
            is_filtered: filtered,
            has_lost: uncounted,
            is_counted: true,
        }),
        (bytes @ 1.., _) if agent.strategy != "time" => once(Rate::Bytes(bytes)),
        (bytes, first_rate) => once(rate(bytes, first_rate)),
    };
    let rate = Samples::Rate {
        rate: rate(agent.interval_bytes, agent.rate),
        first,
    };
    let freed = Samples::Freed {
        samples: agent.collected.samples,
        median_ms: agent.collected.median_age_ms,
    };
    let one = format!("{rate}; {freed}");
    let lines = if one.len() <= WIDTH {
        vec![one]
    } else {
        vec![rate.to_string(), freed.to_string()]
    };
    for line in lines {
        doc.one_line(dim(line));
    }
    let cost = &agent.cost;
    doc.internal(Samples::AgentHeap {
        size: Size(cost.bytes),
        samples: cost.samples,
        sample_bytes: cost.bytes_per_sample,
        stacks: cost.sites,
        stack_bytes: cost.bytes_per_site,
    });
    let lost = agent.counters.iter().filter(|c| c.is_loss && c.count > 0);
    let reasons: Vec<(u64, String)> = lost.map(|c| (c.count, c.name.replace('_', " "))).collect();
    if !reasons.is_empty() {
        let size = Size(unseen);
        doc.one_line(yellow(Samples::AllLost { reasons, size }));
    }
}

#[cfg(test)]
pub(super) mod tests {
    use heapdiff_diff::Stack;

    use super::*;
    use crate::style::Style;
    use crate::text::tests::printed;
    use crate::text::tests::snapshot;
    use heapdiff_model::sites::{
        CollectedReport, CostReport, CountRow, CounterRow, LiveClassRow, SiteTotals,
    };

    pub(in crate::text) fn agent() -> AgentReport {
        AgentReport {
            strategy: "bytes",
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
            ..AgentReport::default()
        }
    }

    fn live(by: &'static str) -> Viewed<SitesReport, SitesView> {
        SitesReport {
            schema: SitesReport::SCHEMA,
            snapshot: snapshot(),
            origin: "agent",
            by,
            totals: SiteTotals {
                stacks: 9,
                samples: 4,
                estimated_bytes: 2048,
                ci95: [1024, 4096],
                estimated_objects: 12,
                ..SiteTotals::default()
            },
            agent: Some(agent()),
            ..SitesReport::default()
        }
        .into()
    }

    fn said(report: &Viewed<SitesReport, SitesView>) -> String {
        printed(Style::plain(), |doc| build(report, doc))
    }

    #[test]
    fn stacks_with_too_few_samples_are_explained() {
        let note = "is unknown for stacks with too few samples of freed objects\n";
        let with = |survival_known: bool| {
            let mut report = live("stack");
            report.stacks = vec![Stack {
                class: "byte[]".to_owned(),
                samples: 4,
                estimated_bytes: 2048,
                ci95: [1024, 4096],
                estimated_objects: 12,
                survival_permille: 1000,
                survival_known,
                ..Stack::default()
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
    fn classes_have_counts_if_the_agent_counted() {
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

    /// Returns the text about an agent. `sampling` is its strategy, interval and rate, `first` its initial interval and
    /// rate, and `lost` the number of samples lost because the table was full.
    fn told(sampling: (&'static str, u64, u64), first: (u64, u64), lost: u64) -> String {
        told_by(sampling, first, lost, false)
    }

    /// Like [`told`], but if `few` is true, the agent tracks only a few of its samples.
    fn told_by(
        sampling: (&'static str, u64, u64),
        first: (u64, u64),
        lost: u64,
        few: bool,
    ) -> String {
        styled(sampling, first, (lost, few), Style::plain())
    }

    fn styled(
        (strategy, interval_bytes, rate): (&'static str, u64, u64),
        first: (u64, u64),
        (lost, few): (u64, bool),
        style: Style,
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
        printed(style, |doc| origin(Some(&report), lost * 1024, doc))
    }

    #[test]
    fn exact_sizes_are_stated_if_the_dump_has_stacks() {
        let text = printed(Style::plain(), |doc| origin(None, 0, doc));
        assert!(text.ends_with(": sizes are exact\n"), "{text}");
        assert!(!text.contains("the agent uses"), "{text}");
        assert!(!told(("bytes", 0, 0), (0, 0), 0).contains("sizes are exact"));
    }

    #[test]
    fn the_sampling_is_described_once() {
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
                " allocated, at first one every 1.0 KiB; ",
            ),
        ];
        for (sampling, first, words) in forms {
            let text = told(sampling, first, 0);
            let with = forms.iter().filter(|f| text.contains(f.2)).count();
            assert!(text.contains(words) && with == 1, "{text}");
            assert!(!text.contains("is tracked, one every"), "{text}");
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
            text.contains("one sample every 80 ms, at first one every 10 ms; "),
            "{text}"
        );
    }

    #[test]
    fn filtered_and_lost_allocations_are_not_called_sampled() {
        assert!(told(("bytes", 0, 0), (0, 0), 0).contains("every allocation is sampled; "));
        let text = told(("bytes", 0, 0), (0, 0), 3);
        assert!(
            text.contains("every allocation except lost ones is sampled\n5 sampled objects "),
            "{text}"
        );
        // If the agent tracks only some of its samples, it counts all allocations, even those whose sample it dropped
        // because the table was full.
        let text = told_by(("bytes", 4096, 0), (0, 0), 3, true);
        assert!(
            text.starts_with("one sample every 4.0 KiB allocated is tracked, every allocation is counted\n5 sampled objects ")
                && text.contains("lost: 3 dropped full"),
            "{text}"
        );
    }

    #[test]
    fn memory_and_losses_of_the_agent_are_reported() {
        let (calm, lossy) = (
            told(("bytes", 0, 0), (0, 0), 0),
            told(("bytes", 0, 0), (0, 0), 3),
        );
        assert!(calm.contains("5 sampled objects freed\n"));
        let verbose = Style::plain().with_internals(true);
        let memory = "the agent uses 2.0 KiB of the Java heap: 7 samples (64 bytes each), 3 stacks (100 bytes each)\n";
        assert!(styled(("bytes", 0, 0), (0, 0), (0, false), verbose).ends_with(memory));
        assert!(!calm.contains("the agent uses"), "{calm}");
        assert!(
            lossy.contains(
                "5 sampled objects freed, half of them within 30 ms of their allocation\n"
            )
        );
        let lost = "lost: 3 dropped full; up to 3.0 KiB of the allocated bytes have no sample";
        assert!(lossy.contains(lost) && !calm.contains("lost") && !calm.contains("have no sample"));
    }

    #[test]
    fn too_few_samples_of_large_objects_are_reported() {
        let told = |bytes| printed(Style::plain(), |doc| large_objects(bytes, true, doc));
        assert_eq!(told(0), "");
        let told = told(3 << 20);
        assert!(
            told.starts_with(
                "the true size of large objects may be up to 50 % more than 3.0 MiB: "
            )
        );
        assert!(told.lines().all(|line| line.len() <= WIDTH), "{told}");
    }
    #[test]
    fn filters_and_losses_are_named_if_all_is_sampled() {
        let cases = [
            (false, false, "every allocation is sampled"),
            (
                true,
                false,
                "every allocation that passes the filters is sampled",
            ),
            (false, true, "every allocation except lost ones is sampled"),
            (
                true,
                true,
                "every allocation that passes the filters, except lost ones, is sampled",
            ),
        ];
        for (is_filtered, has_lost, said) in cases {
            let rate = |is_counted| {
                let rate = Rate::Each {
                    is_filtered,
                    has_lost,
                    is_counted,
                };
                let first = First::Same;
                Samples::Rate { rate, first }.to_string()
            };
            assert_eq!(rate(false), said);
            assert_eq!(rate(true), said.replace("sampled", "counted"));
        }
    }
}
