//! Prints the ages of a trace's samples.

use heapdiff_model::ages::{AgeRow, SurvivedRow, TraceAgesReport};
use heapdiff_model::trace::Collections;
use heapdiff_units::{Size, counted, grouped};

use super::trace::run;
use crate::document::{Document, dim};
use crate::times::span;
use crate::view::Viewed;

/// Maximum number of lines of a stack, unless the user requests all.
const FRAMES: usize = 4;

pub(crate) fn build(report: &Viewed<TraceAgesReport>, doc: &mut Document) {
    let gcs = format!(
        "{}, {} of them full",
        counted(report.collections.all, "GC"),
        grouped(report.collections.major)
    );
    doc.subject(&report.trace.path, &gcs);
    run(&report.run, doc);
    doc.one_line(format!(
        "number of GCs that objects survived, from {} and {} of freed objects",
        counted(report.live_samples, "live sample"),
        counted(report.freed_samples, "random sample"),
    ));
    doc.note(match report.sort {
        "temporary" => "the most bytes that the first GC frees come first",
        _ => "the most surviving generations come first",
    });
    if report.freed_by_full_gcs_only {
        doc.one_line(dim(
            "freed objects may have survived fewer GCs, because young GCs of ZGC free no sampled object",
        ));
    }
    if let Some(focus) = &report.focus {
        doc.one_line(dim(format!(
            "only stacks with a frame that matches {focus}"
        )));
    }
    for row in &report.rows {
        doc.gap();
        self::row(row, report, doc);
    }
    let more = report.sites.saturating_sub(report.rows.len() as u64);
    if more > 0 {
        doc.gap();
        doc.note(format!("{} more (--top N shows more)", grouped(more)));
    }
}

fn row(row: &AgeRow, report: &Viewed<TraceAgesReport>, doc: &mut Document) {
    let figures = match (report.sort, row.temporary_bytes, &row.live) {
        ("temporary", Some(bytes), _) => format!("{} temporary", Size(bytes)),
        ("temporary", None, _) => "no freed sample".to_owned(),
        (_, _, Some(live)) => counted(live.generations, "surviving generation"),
        _ => "no live sample".to_owned(),
    };
    doc.ranked(row.rank, None, &row.class, &figures);
    if let Some(live) = &row.live {
        doc.reason(
            "alive",
            format!(
                "{} in {}; the median survived {}, the oldest {}",
                Size(row.live_bytes),
                counted(live.samples, "sample"),
                gcs(live.median_gcs),
                gcs(live.most_gcs),
            ),
        );
    }
    if let Some(freed) = &row.freed {
        doc.reason(
            "freed",
            format!("{}: {}", Size(row.freed_bytes), survived(&row.survived)),
        );
        doc.pair(
            "lived",
            format!(
                "half at most {}, 95 % at most {} ({})",
                span(freed.median_ms),
                span(freed.p95_ms),
                counted(freed.samples, "freed sample"),
            ),
        );
    }
    doc.frames("from", &row.frames, report.view.verbose, FRAMES);
}

/// Formats numbers of GCs: `3 full and 12 young GCs`.
fn gcs(gcs: Collections) -> String {
    let young = gcs.all.saturating_sub(gcs.major);
    format!(
        "{} full and {}",
        grouped(gcs.major),
        counted(young, "young GC")
    )
}

/// Formats which part of the objects was freed at which age: `98.2 % by the first GC, 1.8 % survived 2 to 3 GCs`.
fn survived(rows: &[SurvivedRow]) -> String {
    let some = rows.iter().filter(|row| row.permille > 0);
    let parts = some.map(|row| {
        let age = age(row.from_gcs, row.to_gcs);
        format!("{}.{} % {age}", row.permille / 10, row.permille % 10)
    });
    parts.collect::<Vec<_>>().join(", ")
}

/// Returns the age that freed objects reached, in GCs: `survived 2 to 3 GCs`, or `by the first GC`.
#[must_use]
pub fn age(from_gcs: u64, to_gcs: Option<u64>) -> String {
    match (from_gcs, to_gcs) {
        (0, _) => "by the first GC".to_owned(),
        (from, Some(to)) if from == to => format!("survived {}", counted(from, "GC")),
        (from, Some(to)) => format!("survived {from} to {to} GCs"),
        (from, None) => format!("survived at least {from} GCs"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::text;
    use super::super::trace::tests::{run_info, trace_file};
    use super::*;
    use crate::report::Report;
    use heapdiff_model::ages::Ages;

    fn rendered(sort: &'static str, only_full: bool) -> String {
        let gcs = |major, all| Collections { major, all };
        let ages = Ages {
            samples: 40,
            generations: 12,
            median_gcs: gcs(1, 5),
            most_gcs: gcs(3, 15),
            median_ms: 400,
            p95_ms: 2000,
            most_ms: 9000,
        };
        let survived = [
            (0, Some(0), 900),
            (1, Some(1), 0),
            (2, Some(3), 60),
            (16, None, 40),
        ];
        let survived = survived.map(|(from_gcs, to_gcs, permille)| SurvivedRow {
            from_gcs,
            to_gcs,
            permille,
        });
        let row = |live, freed| AgeRow {
            rank: 1,
            class: "byte[]".to_owned(),
            live_bytes: 1 << 20,
            freed_bytes: 1 << 30,
            temporary_bytes: Some(1 << 29),
            live,
            freed,
            survived: survived.to_vec(),
            ..AgeRow::default()
        };
        let unknown = AgeRow {
            temporary_bytes: None,
            ..row(None, None)
        };
        // Long lines are wrapped.
        let report = text(&Report::TraceAges(
            TraceAgesReport {
                trace: trace_file(),
                run: run_info("bytes", 1024),
                sort,
                focus: only_full.then(|| "Cache".to_owned()),
                collections: gcs(3, 15),
                freed_by_full_gcs_only: only_full,
                sites: 3,
                rows: vec![row(Some(ages), Some(ages)), unknown],
                ..TraceAgesReport::default()
            }
            .into(),
        ));
        report.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn ages_of_live_and_freed_objects_are_stated() {
        let report = rendered("generations", false);
        for part in [
            "15 GCs, 3 of them full",
            "the most surviving generations come first",
            "byte[] 12 surviving generations",
            "alive 1.0 MiB in 40 samples; the median survived 1 full and 4 young GCs, the oldest 3 full and 12 young GCs",
            "freed 1.0 GiB: 90.0 % by the first GC, 6.0 % survived 2 to 3 GCs, 4.0 % survived at least 16 GCs",
            "lived half at most 400ms, 95 % at most 2s (40 freed samples)",
            "byte[] no live sample",
            "1 more (--top N shows more)",
        ] {
            assert!(report.contains(part), "{part}: {report}");
        }
        assert!(!report.contains("upper bounds") && !report.contains("only stacks"));
    }

    #[test]
    fn temporary_objects_and_upper_bounds_are_stated() {
        let report = rendered("temporary", true);
        for part in [
            "the most bytes that the first GC frees come first",
            "freed objects may have survived fewer GCs, because young GCs of ZGC free no sampled object",
            "only stacks with a frame that matches Cache",
            "byte[] 512.0 MiB temporary",
            "byte[] no freed sample",
        ] {
            assert!(report.contains(part), "{part}: {report}");
        }
    }
}
