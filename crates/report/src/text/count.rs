//! Prints allocation counts as a table.

use std::time::Duration;

use heapdiff_diff::sentence::Samples;
use heapdiff_model::count::{
    CountMissed, CountReport, CountSite, CountTotals, CountedInDump, LineDisagreement,
};
use heapdiff_units::{Size, Span, counted, grouped};

use super::stacks::interval;
use crate::document::Column::{self, Cut, Figure, Name};
use crate::document::{self, Document, WIDTH, bold, dim};

/// The column with the name of the allocated class, cut to 48 characters.
pub(super) const CLASS: (&str, Column) = ("class", Cut(48));
/// Lines that the text report prints to explain an allocation count.
const WHAT: [&str; 5] = [
    "Each executed allocation is counted, even if the JIT compiler removes it or the allocation fails.",
    "clone, reflection, array copies, lambdas and string concatenation count at the line that uses them.",
    "Not counted: allocations by JNI, by constructor handles (Foo::new) and by the JVM, and by a method",
    "that was running when the count began, until its next call. The size of an object is the size that",
    "the JVM reports for its class; the size of an array is computed from its length.",
];
/// Lines that the text report prints to explain the allocation counts in JDK classes.
const AT_LEAST: [&str; 2] = [
    "In JDK classes some counts are lower bounds: the JIT compiler replaces some methods with its own",
    "code (for example string concatenation with a StringBuilder), which has no counters.",
];
const NO_JDK: &str = "JDK classes have no counters; --jdk adds counters to them.";

/// The words that the report prints after the number of classes if `--sampled-classes` was given.
const SAMPLED: &str = " in sampled stacks";

/// The line that explains which allocations the counts in a dump or a trace include.
pub(super) const EXECUTED: &str = "counted: allocations by bytecode, even if the JIT compiler removes them; not those by JNI or the JVM";
pub(super) const WITHOUT_JDK: &str =
    "JDK classes have no counters; count=jdk adds counters to them.";

pub(crate) fn build(report: &CountReport, doc: &mut Document) {
    let time = Span(Duration::from_millis(report.millis));
    doc.one_line(bold(format!("{}: {time}", report.process)));
    let totals = &report.totals;
    doc.line(format!(
        "{sites} of {classes}{sampled} allocated {objects}, {bytes}",
        sites = counted(totals.sites, "allocation site"),
        classes = counted(report.classes, "class"),
        sampled = if report.only_sampled { SAMPLED } else { "" },
        objects = counted(totals.objects, "object"),
        bytes = Size(totals.bytes)
    ));
    unknown(totals, doc);
    not_counted(&report.missed, doc);
    sites(&report.sites, totals.sites, doc);
    doc.gap();
    for line in WHAT {
        doc.note(line);
    }
    jdk(report.jdk, NO_JDK, doc);
}

/// Adds the lines that explain counts in JDK classes. `counted` is true if JDK classes have counters; otherwise `none`
/// is the only line.
pub(super) fn jdk(counted: bool, none: &str, doc: &mut Document) {
    let lines = if counted { &AT_LEAST[..] } else { &[none] };
    for &line in lines {
        doc.note(line);
    }
}

/// Adds the table of sites. `all` is the number of sites, listed or not.
fn sites(listed: &[CountSite], all: u64, doc: &mut Document) {
    if !listed.is_empty() {
        doc.gap();
        let columns = [
            ("objects", Figure),
            ("bytes", Figure),
            CLASS,
            ("allocated in", Name),
        ];
        let rows = listed.iter().map(|site| {
            vec![
                grouped(site.objects),
                site.bytes.map_or_else(|| "?".to_owned(), grouped),
                site.allocated.clone(),
                place(site),
            ]
        });
        doc.table(&columns, rows);
    }
    doc.add_unlisted_count(all.saturating_sub(listed.len() as u64), "more site");
}

/// Returns the method and line of an allocation: `com.acme.Foo.add:42`.
pub(super) fn place(site: &CountSite) -> String {
    let line = site.line.map_or(String::new(), |line| format!(":{line}"));
    format!("{}.{}{line}", site.class, site.method)
}

/// Adds the allocation counts in a dump.
pub(super) fn in_dump(report: &CountedInDump, doc: &mut Document) {
    let totals = &report.totals;
    doc.line(format!(
        "allocations counted: {objects} ({bytes}) at {sites}, during {time}; the count ended {before} before the dump",
        objects = counted(totals.objects, "object"),
        bytes = Size(totals.bytes),
        sites = counted(totals.sites, "allocation site"),
        time = Span(Duration::from_millis(report.millis)),
        before = Span(Duration::from_millis(report.before_dump_ms)),
    ));
    unknown(totals, doc);
    not_counted(&report.missed.into(), doc);
    doc.note(EXECUTED);
    jdk(report.jdk, WITHOUT_JDK, doc);
    sites(&report.sites, totals.sites, doc);
    disagreements(report, doc);
}

/// Adds the lines of code for which counts and samples contradict each other, with the possible reasons.
fn disagreements(report: &CountedInDump, doc: &mut Document) {
    for (is_less, sentence) in [
        (true, Samples::LessThanCounted),
        (false, Samples::MoreThanCounted),
    ] {
        let of_kind = |d: &&LineDisagreement| (d.estimated_bytes < d.counted_bytes) == is_less;
        let mut found = report.disagreements.iter().filter(of_kind).peekable();
        if found.peek().is_none() {
            continue;
        }
        doc.prose(dim(crate::capitalized(&sentence.to_string())));
        for d in found {
            let place = format!("{}.{} line {}", d.class, d.method, d.line);
            let figures = format!(
                "counted {}, sampled {}",
                Size(d.counted_bytes),
                interval(d.estimated_bytes, d.ci99)
            );
            let room = WIDTH.saturating_sub(figures.chars().count() + 4);
            let place = document::Span::from(place).within(room);
            doc.spans(["  ".into(), place, format!("  {figures}").into()]);
        }
    }
    let shown = report.disagreements.len() as u64;
    if report.disagreement_count > shown {
        let rest = counted(report.disagreement_count - shown, "more line");
        doc.note(format!("and {rest}"));
    }
}

pub(super) fn unknown(totals: &CountTotals, doc: &mut Document) {
    if totals.sites_without_bytes > 0 {
        let without = counted(totals.sites_without_bytes, "site");
        doc.line(format!(
            "the bytes of {without} are unknown, so the total does not include them"
        ));
    }
}

/// Adds the number of sites, methods and classes whose allocations were not counted.
pub(super) fn not_counted(missed: &CountMissed, doc: &mut Document) {
    if missed.sites > 0 {
        let sites = counted(missed.sites, "site");
        doc.line(format!("not counted, because no counter was left: {sites}"));
    }
    if missed.methods > 0 {
        let methods = counted(missed.methods, "method");
        doc.line(format!(
            "not counted: {methods} that cannot be instrumented"
        ));
    }
    for name in &missed.method_names {
        doc.one_line(format!("  {name}"));
    }
    if missed.classes > 0 {
        let mut line = format!(
            "not counted: {} that cannot be instrumented",
            counted(missed.classes, "class")
        );
        // Each element of `class_names` has a name and a reason. The text report shows only the name of the first
        // element; JSON contains all elements.
        if let Some((name, _)) = missed
            .class_names
            .first()
            .and_then(|name| name.split_once(": "))
        {
            line += &format!(", such as {name}");
        }
        doc.one_line(line);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::text;
    use super::*;
    use crate::report::Report;
    use crate::style::Style;
    use crate::text::tests::printed;
    use heapdiff_model::count::CountedMissed;

    fn report(sites: u64, more: impl FnOnce(&mut CountReport)) -> String {
        let site = CountSite {
            class: "com.acme.Foo".to_owned(),
            method: "bar".to_owned(),
            line: Some(17),
            allocated: "byte[]".to_owned(),
            objects: 1234,
            bytes: Some(56_000),
        };
        let mut report = CountReport {
            schema: CountReport::SCHEMA,
            process: "process 7 (Main)".to_owned(),
            millis: 30_000,
            jdk: true,
            only_sampled: false,
            classes: 1,
            totals: CountTotals {
                sites,
                objects: 1234,
                bytes: 56_000,
                sites_without_bytes: 0,
            },
            sites: vec![site],
            missed: CountMissed::default(),
        };
        more(&mut report);
        text(&Report::Count(report))
    }

    #[test]
    fn sites_are_listed_and_the_rest_is_counted() {
        let one = report(1, |_| ());
        let head = "process 7 (Main): 30s\n1 allocation site of 1 class allocated 1,234 objects, 54.7 KiB\n\n";
        assert!(one.starts_with(head), "{one}");
        assert!(
            one.contains("  1,234  56,000  byte[]  com.acme.Foo.bar:17\n"),
            "{one}"
        );
        assert!(!one.contains("more site"), "{one}");
        let sampled = report(1, |r| r.only_sampled = true);
        assert!(
            sampled.contains(
                "\n1 allocation site of 1 class in sampled stacks allocated 1,234 objects"
            ),
            "{sampled}"
        );
        assert!(!one.contains("in sampled stacks"), "{one}");
        let what = "\n\
Each executed allocation is counted, even if the JIT compiler removes it or the allocation fails.
clone, reflection, array copies, lambdas and string concatenation count at the line that uses them.
Not counted: allocations by JNI, by constructor handles (Foo::new) and by the JVM, and by a method
that was running when the count began, until its next call. The size of an object is the size that
the JVM reports for its class; the size of an array is computed from its length.
In JDK classes some counts are lower bounds: the JIT compiler replaces some methods with its own
code (for example string concatenation with a StringBuilder), which has no counters.
";
        assert!(one.ends_with(what), "{one}");
        let more = report(3, |_| ());
        assert!(
            more.contains("and 2 more sites (--top N shows more)"),
            "{more}"
        );
        let none = report(0, |r| r.sites.clear());
        assert!(
            !none.contains("allocated in") && none.contains("0 allocation sites"),
            "{none}"
        );
    }

    #[test]
    fn uncounted_allocations_are_reported() {
        let all = report(1, |_| ());
        assert!(!all.contains("no counter was left") && !all.contains("cannot be instrumented"));
        assert!(!all.contains("cannot be instrumented"), "{all}");
        assert!(!all.contains("have no counters") && !all.contains("are not known"));
        let some = report(1, |r| {
            r.jdk = false;
            r.totals.sites_without_bytes = 1;
            r.sites[0].bytes = None;
            r.missed = CountMissed {
                sites: 5,
                methods: 1,
                method_names: vec!["com.acme.Long.method: too long".to_owned()],
                classes: 2,
                class_names: vec!["com.acme.Odd: odd".to_owned()],
            };
        });
        for says in [
            "not counted, because no counter was left: 5 sites\n",
            "not counted: 1 method that cannot be instrumented\n  com.acme.Long.method: too long\n",
            "not counted: 2 classes that cannot be instrumented, such as com.acme.Odd\n",
            "the bytes of 1 site are unknown, so the total does not include them\n",
            "JDK classes have no counters; --jdk adds counters to them.",
            "  1,234      ?  byte[]",
        ] {
            assert!(some.contains(says), "{says}: {some}");
        }
        assert!(!AT_LEAST.iter().any(|l| some.contains(l)), "{some}");
    }

    fn dumped(more: impl FnOnce(&mut CountedInDump)) -> String {
        let site = CountSite {
            class: "com.acme.Foo".to_owned(),
            method: "bar".to_owned(),
            line: None,
            allocated: "byte[]".to_owned(),
            objects: 1234,
            bytes: Some(56_000),
        };
        let mut report = CountedInDump {
            millis: 12_000,
            before_dump_ms: 420,
            jdk: true,
            totals: CountTotals {
                sites: 1,
                objects: 1234,
                bytes: 56_000,
                sites_without_bytes: 0,
            },
            sites: vec![site],
            missed: CountedMissed::default(),
            ..CountedInDump::default()
        };
        more(&mut report);
        printed(Style::plain(), |doc| in_dump(&report, doc))
    }

    #[test]
    fn counts_in_a_dump_are_shown() {
        let all = dumped(|_| ());
        let says =
            "allocations counted: 1,234 objects (54.7 KiB) at 1 allocation site, during 12s; the count ended 420ms before the dump
counted: allocations by bytecode, even if the JIT compiler removes them; not those by JNI or the JVM
In JDK classes some counts are lower bounds: the JIT compiler replaces some methods with its own
code (for example string concatenation with a StringBuilder), which has no counters.

objects   bytes  class   allocated in
  1,234  56,000  byte[]  com.acme.Foo.bar
";
        assert_eq!(all, says);
        let some = dumped(|r| {
            r.jdk = false;
            r.totals.sites = 2;
            r.totals.sites_without_bytes = 1;
            r.missed = CountedMissed {
                sites: 5,
                methods: 1,
                classes: 2,
            };
        });
        for says in [
            "JDK classes have no counters; count=jdk adds counters to them.",
            "the bytes of 1 site are unknown",
            "not counted, because no counter was left: 5 sites",
            "not counted: 1 method that cannot be instrumented",
            "not counted: 2 classes that cannot be instrumented\n",
            "and 1 more site (--top N shows more)",
        ] {
            assert!(some.contains(says), "{says}: {some}");
            assert!(!all.contains(says), "{says}: {all}");
        }
        assert!(!AT_LEAST.iter().any(|l| some.contains(l)), "{some}");
    }

    #[test]
    fn disagreeing_samples_are_shown_with_a_possible_reason() {
        let line = |line, counted_bytes, estimated_bytes| LineDisagreement {
            class: "com.acme.Foo".to_owned(),
            method: "bar".to_owned(),
            line,
            counted_bytes,
            estimated_bytes,
            ci99: [estimated_bytes - 1024, estimated_bytes + 1024],
        };
        let fewer = "At these lines the samples show fewer bytes than the counts: allocations that the JIT compiler
removes are never sampled, and objects that the JDK allocates for a line (clone, copyOf) are sampled
in the JDK.";
        let others = "At these lines the samples show more bytes than the counts: not all allocations at these lines are
counted.";
        let none = dumped(|_| ());
        assert!(!none.contains("the samples show"), "{none}");
        let less = dumped(|r| r.disagreements = vec![line(7, 1 << 20, 4096)]);
        assert!(
            less.contains(&format!(
                "{fewer}\n  com.acme.Foo.bar line 7  counted 1.0 MiB, sampled 4.0 KiB ± 1.0 KiB\n"
            )),
            "{less}"
        );
        assert!(!less.contains(others), "{less}");
        let both = dumped(|r| {
            r.disagreements = vec![line(8, 4096, 1 << 20), line(7, 1 << 20, 4096)];
            r.disagreement_count = 5;
        });
        for says in [fewer, others, "and 3 more lines\n"] {
            assert!(both.contains(says), "{says}: {both}");
        }
        let more = dumped(|r| {
            r.disagreements = vec![line(8, 4096, 1 << 20)];
        });
        assert!(!more.contains(fewer), "{more}");
    }
}
