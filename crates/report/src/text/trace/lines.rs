//! Prints the allocation counts of lines of code, as rates over a part of the run.

use heapdiff_model::trace::{CountedLineRow, CountedLines, SampledLineRow, TraceTopReport};
use heapdiff_units::{Size, counted, grouped};

use crate::document::Column::{Figure, Name};
use crate::document::{Document, dim};
use crate::text::count::{CLASS, EXECUTED, WITHOUT_JDK, jdk, not_counted, place, unknown};
use crate::times::span;
use crate::view::{TraceTopView, Viewed};

/// The line that explains the table column with allocation rates estimated from samples.
const SAMPLED: &str =
    "sampled/s: objects per second, estimated from samples; shown if the difference is significant";

/// Adds the lines of code that allocated the most.
pub(super) fn add(report: &Viewed<TraceTopReport, TraceTopView>, doc: &mut Document) {
    let Some(lines) = &report.lines else {
        return;
    };
    let totals = &lines.totals;
    doc.gap();
    doc.one_line(format!(
        "counted {objects} and {bytes} per second at {places}, from {start} to {end} of the run",
        objects = counted(lines.objects_per_second, "object"),
        bytes = Size(lines.bytes_per_second),
        places = counted(totals.sites, "line"),
        start = span(lines.from_uptime_ms),
        end = span(lines.to_uptime_ms),
    ));
    if let Some(focus) = &report.focus {
        doc.one_line(dim(format!("only lines of code that match {focus}")));
    }
    unknown(totals, doc);
    not_counted(&lines.missed.into(), doc);
    doc.note(EXECUTED);
    jdk(lines.jdk, WITHOUT_JDK, doc);
    rows(lines, doc);
}

fn rows(lines: &CountedLines, doc: &mut Document) {
    let differs = lines.rows.iter().any(|row| differing(row).is_some());
    if differs {
        doc.note(SAMPLED);
    }
    if !lines.rows.is_empty() {
        doc.gap();
        let mut columns = vec![
            ("objects/s", Figure),
            ("bytes/s", Figure),
            ("objects", Figure),
            CLASS,
            ("allocated in", Name),
        ];
        if differs {
            columns.insert(1, ("sampled/s", Figure));
        }
        let rows = lines.rows.iter().map(|row| {
            let CountedLineRow { site, .. } = row;
            let bytes = match (row.bytes_per_second, site.bytes) {
                (Some(rate), Some(bytes)) => per_second(rate, bytes),
                _ => "?".to_owned(),
            };
            let mut cells = vec![
                per_second(row.objects_per_second, site.objects),
                bytes,
                grouped(site.objects),
                site.allocated.clone(),
                place(site),
            ];
            if differs {
                let sampled = differing(row).map_or_else(String::new, |sampled| {
                    per_second(sampled.objects_per_second, sampled.estimated_objects)
                });
                cells.insert(1, sampled);
            }
            cells
        });
        doc.table(&columns, rows);
    }
    let shown = lines.rows.len() as u64;
    doc.add_unlisted_count(lines.totals.sites.saturating_sub(shown), "more line");
}

/// Returns the samples of a line of code if their estimate differs from the line's count by more than random variation.
/// Otherwise returns `None`.
fn differing(row: &CountedLineRow) -> Option<SampledLineRow> {
    row.sampled.filter(|sampled| sampled.beyond_chance)
}

/// Formats a rate per second. If the rate is rounded to 0 but the amount is not 0, returns `<1`.
fn per_second(rate: u64, amount: u64) -> String {
    match (rate, amount) {
        (0, 1..) => "<1".to_owned(),
        _ => grouped(rate),
    }
}

#[cfg(test)]
mod tests {
    use crate::document::WIDTH;
    use crate::text::trace::tests::{growing, rendered, top_of};
    use crate::view::{TraceTopView, Viewed};
    use heapdiff_model::count::{CountSite, CountTotals, CountedMissed};
    use heapdiff_model::trace::{CountedLineRow, CountedLines, SampledLineRow, TraceTopReport};

    const JDK: &str = "In JDK classes some counts are lower bounds";

    fn sampled(objects: u64, beyond_chance: bool) -> SampledLineRow {
        SampledLineRow {
            samples: objects / 100,
            estimated_objects: objects,
            estimated_bytes: objects * 40,
            objects_per_second: objects / 60,
            beyond_chance,
        }
    }

    fn row(line: u32, objects: u64) -> CountedLineRow {
        CountedLineRow {
            site: CountSite {
                class: "com.acme.Foo".to_owned(),
                method: "bar".to_owned(),
                line: Some(line),
                allocated: "byte[]".to_owned(),
                objects,
                bytes: Some(objects * 40),
            },
            objects_per_second: objects / 60,
            bytes_per_second: Some(objects * 40 / 60),
            sampled: Some(sampled(objects, false)),
        }
    }

    fn with(change: impl FnOnce(&mut Viewed<TraceTopReport, TraceTopView>)) -> String {
        let mut report = top_of(vec![growing(1)]);
        report.lines = Some(CountedLines {
            from_uptime_ms: 60_000,
            to_uptime_ms: 119_999,
            jdk: true,
            totals: CountTotals {
                sites: 2,
                objects: 12_003,
                bytes: 480_120,
                sites_without_bytes: 0,
            },
            objects_per_second: 200,
            bytes_per_second: 8002,
            rows: vec![row(17, 12_000), row(18, 3)],
            missed: CountedMissed::default(),
        });
        change(&mut report);
        let text = rendered(&report);
        assert!(text.lines().all(|l| l.chars().count() <= WIDTH), "{text}");
        text
    }

    #[test]
    fn rates_of_lines_are_shown() {
        let none = rendered(&top_of(vec![growing(1)]));
        assert!(
            !none.contains("counted") && !none.contains("executed"),
            "{none}"
        );
        let all = with(|_| ());
        let says = "\n\
counted 200 objects and 7.8 KiB per second at 2 lines, from 1m to 1m59s of the run
counted: allocations by bytecode, even if the JIT compiler removes them; not those by JNI or the JVM
In JDK classes some counts are lower bounds: the JIT compiler replaces some methods with its own
code (for example string concatenation with a StringBuilder), which has no counters.

objects/s  bytes/s  objects  class   allocated in
      200    8,000   12,000  byte[]  com.acme.Foo.bar:17
       <1        2        3  byte[]  com.acme.Foo.bar:18
";
        assert!(all.ends_with(says), "{all}");
    }

    #[test]
    fn missing_figures_of_lines_are_reported() {
        let all = with(|_| ());
        let some = with(|report| {
            report.focus = Some("Foo".to_owned());
            let lines = report.lines.as_mut().unwrap();
            lines.jdk = false;
            lines.totals.sites = 3;
            lines.totals.sites_without_bytes = 1;
            lines.rows[1].site.bytes = None;
            lines.rows[1].bytes_per_second = None;
            lines.missed = CountedMissed {
                sites: 5,
                methods: 1,
                classes: 2,
            };
        });
        for says in [
            "only lines of code that match Foo\n",
            "the bytes of 1 site are unknown, so the total does not include them",
            "not counted, because no counter was left: 5 sites",
            "not counted: 1 method that cannot be instrumented",
            "not counted: 2 classes that cannot be instrumented",
            "JDK classes have no counters; count=jdk adds counters to them.",
            "       <1        ?        3  byte[]  com.acme.Foo.bar:18",
            "and 1 more line (--top N shows more)",
        ] {
            assert!(some.contains(says), "{says}: {some}");
            assert!(!all.contains(says), "{says}: {all}");
        }
        assert!(all.contains(JDK) && !some.contains(JDK), "{some}");
    }

    #[test]
    fn differing_samples_are_shown_next_to_counts() {
        let differs = "sampled/s: objects per second, estimated from samples; shown if the difference is significant\n";
        let same = with(|_| ());
        assert!(!same.contains("sampled/s"), "{same}");
        let unknown = with(|report| {
            let lines = report.lines.as_mut().unwrap();
            lines.rows.iter_mut().for_each(|row| row.sampled = None);
        });
        assert!(!unknown.contains("sampled/s"), "{unknown}");
        let one = with(|report| {
            let lines = report.lines.as_mut().unwrap();
            lines.rows[0].sampled = Some(sampled(600, true));
        });
        let table = "objects/s  sampled/s  bytes/s  objects  class   allocated in
      200         10    8,000   12,000  byte[]  com.acme.Foo.bar:17
       <1                   2        3  byte[]  com.acme.Foo.bar:18
";
        assert!(one.contains(differs) && one.contains(table), "{one}");
    }

    #[test]
    fn lines_alone_are_shown_without_growth() {
        let alone = with(|report| {
            report.by = "line";
            report.candidates.clear();
        });
        for of_growth in ["compared:", "grow", " alive in "] {
            assert!(!alone.contains(of_growth), "{alone}");
        }
        assert!(alone.contains("com.acme.Foo.bar:17"), "{alone}");
    }
}
