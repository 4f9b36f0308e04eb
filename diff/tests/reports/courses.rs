//! Tests how reports describe figures that change over several dumps.

use crate::common::{self, app::App};
use heapdiff_diff::{Report, Suspect};
use hprof::Source;
use testdata::writer::Obj;

/// Returns a dump that was taken at a time in seconds. Each static field of the class `Registry` has the given number
/// of entries. The entries of a field with fewer than 100 entries are larger than the entries of other fields.
fn registry(seconds: u64, counts: &[(&str, usize)]) -> Source {
    let mut app = App::at(1_700_000_000_000 + seconds * 1000);
    let names: Vec<&str> = counts.iter().map(|&(name, _)| name).collect();
    let registry = app.class("com.acme.Registry", &[], &names);
    let entry = app.class("com.acme.Entry", &["body"], &[]);
    for &(name, count) in counts {
        let body = if count < 100 { 800 } else { 100 };
        let rows: Vec<Obj> = app.rows(entry, count, body);
        let rows = app.array(rows);
        app.heap.set_static(registry, name, rows);
    }
    Source::from_bytes(app.heap.build())
}

/// Returns the suspect for the field `leak`. The field has these numbers of entries at these times.
fn suspect(series: &[(u64, usize)]) -> Suspect {
    let dumps = series
        .iter()
        .map(|&(at, count)| registry(at, &[("leak", count)]));
    first(common::report(dumps))
}

fn first(report: Report) -> Suspect {
    let of_leak = |s: &Suspect| s.holder == "com.acme.Registry.leak";
    let found = report.suspects.iter().find(|s| of_leak(s)).cloned();
    found.unwrap_or_else(|| panic!("{report:#?}"))
}

#[test]
fn each_course_has_a_sentence() {
    let cases: [(&[usize], &str); 10] = [
        (
            &[1000, 2000, 3000],
            "it grew steadily, in 2 of 2 steps between dumps",
        ),
        (
            &[1000, 2000, 2000, 3000],
            "it grew unevenly, in 2 of 3 steps between dumps",
        ),
        (
            &[10, 500, 800],
            "it grew by less each time, in 2 of 2 steps between dumps",
        ),
        (
            &[100, 100, 100, 900],
            "it stayed level, and grew only between the last two dumps",
        ),
        (
            &[10, 500, 1000, 1000, 1000],
            "it grew at first, and then stayed level",
        ),
        (
            &[0, 600, 900, 990],
            "it grew more and more slowly: only 9 % of the growth is between the last two dumps",
        ),
        (
            &[0, 820, 930, 1000],
            "it grew before the second dump and only a little since, like a warm-up",
        ),
        (
            &[100, 100, 900, 900],
            "it stayed level, grew once, and then stayed level again",
        ),
        (
            &[100, 900, 200, 880],
            "it rises and falls, and is not larger than in an earlier dump: a sawtooth",
        ),
        (
            &[100, 900, 200, 1500],
            "it rises and falls, and is larger in the last dump than in all earlier dumps",
        ),
    ];
    for (at, (counts, sentence)) in cases.iter().enumerate() {
        let series: Vec<(u64, usize)> = counts.iter().map(|&n| (0, n)).collect();
        let suspect = suspect(&series);
        for (other, (_, text)) in cases.iter().enumerate() {
            let says = suspect.reasons.iter().any(|r| r == text);
            assert_eq!(
                says,
                at == other,
                "{counts:?} {sentence} {text}: {suspect:#?}"
            );
        }
    }
}

#[test]
fn each_doubt_has_a_sentence() {
    let says = |suspect: &Suspect, part: &str| {
        assert!(
            suspect.reasons.iter().any(|r| r.contains(part)),
            "{part}: {suspect:#?}"
        );
    };
    let slight = suspect(&[(0, 20_000), (0, 20_700), (0, 21_300)]);
    says(
        &slight,
        "%, which can be random variation: take 5 dumps, or load the agent",
    );
    let short = suspect(&[(0, 100), (75, 10_000), (77, 10_000)]);
    says(
        &short,
        "the growth may have ended, but the 2s without growth are too short to show this: take another dump later",
    );
    // If the times are unknown, all steps (intervals between dumps) count as equally long.
    let unknown: Vec<(u64, usize)> = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10]
        .map(|n| (0, n * 100))
        .into();
    let unknown = suspect(&unknown);
    says(
        &unknown,
        "the growth may have ended, but too few dumps show this: take another dump later",
    );
    let all = |leak: [usize; 3], other: [usize; 3]| {
        let counts = leak.into_iter().zip(other);
        let dumps = counts.map(|(leak, other)| registry(0, &[("leak", leak), ("other", other)]));
        first(common::report(dumps))
    };
    let moved = all([1000, 2000, 3000], [2000, 1000, 1000]);
    says(
        &moved,
        "between two of the dumps, all objects of the class together grew by less than half as much as this suspect: objects may have moved here from other holders",
    );
    let few = all([5, 15, 29], [30_000; 3]);
    says(
        &few,
        "only 24 objects were added, less than 1 % of the heap: this can be random variation, so take 5 dumps",
    );
}

#[test]
fn dumps_in_the_wrong_order_have_a_warning() {
    let warnings = |times: [u64; 2]| {
        let dumps = times.map(|at| registry(at, &[("leak", 1000 + at as usize)]));
        common::report(dumps).warnings
    };
    assert_eq!(warnings([60, 0]), ["(memory) was taken before (memory)"]);
    assert_eq!(warnings([0, 60]), [""; 0]);
}
