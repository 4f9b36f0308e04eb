//! Checks reports on the leak scenarios with dumps of real JVMs: each has to name the growing structure and its holder.
//! Each scenario runs on one JDK, and the scenarios take turns through all JDKs. `cargo xtask accuracy` runs each
//! scenario on all JDKs.

use std::path::Path;

use crate::common::of_target;
use heapdiff_diff::{Report, Verdict};
use testdata::jvm::Jdk;
use testdata::scenarios::{self, Mode, Scenario};

/// Compares two dumps of a scenario. The scenario runs one phase between the dumps.
fn diff(jdk: &Jdk, scenario: &Scenario, mode: Mode, dir: &Path) -> Report {
    of_target(scenario.start(jdk, mode).unwrap(), dir)
}

fn describe(report: &Report) -> String {
    let lines = report.suspects.iter().take(4).map(|s| {
        format!(
            "    {} | {} | {} | {:?} | {:?} {:+} | {:?} {:?} {:#?}\n",
            s.holder,
            s.class,
            s.root,
            s.path,
            s.objects,
            s.growth.retained_bytes,
            s.verdict,
            s.detector.as_deref(),
            s.reasons
        )
    });
    lines.collect()
}

/// Runs the scenarios in `scenarios::CORE`. If a report is wrong, `wrong` returns a description of the error.
fn check(mode: Mode, wrong: impl Fn(&Jdk, &Scenario, &Report) -> Option<String>) {
    let jdks = Jdk::all_for_scenarios();
    assert!(!jdks.is_empty(), "no JDK found");
    let mut failures = String::new();
    // The program with the leak and the fixed program run on different JDKs.
    let first = usize::from(mode == Mode::Fixed);
    for (scenario, jdk) in scenarios::CORE.iter().zip(jdks.iter().cycle().skip(first)) {
        let dir = tempfile::tempdir().unwrap();
        let report = diff(jdk, scenario, mode, dir.path());
        if let Some(wrong) = wrong(jdk, scenario, &report) {
            let (major, found) = (jdk.major(), describe(&report));
            failures += &format!("JDK {major} {}: {wrong}, found\n{found}", scenario.name);
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

#[test]
fn each_leak_is_named_with_its_holder() {
    check(Mode::Leak, |jdk, scenario, report| {
        let jvm = report.snapshots[1].jvm.as_deref().unwrap_or_default();
        if !jvm.starts_with(&jdk.major().to_string()) {
            return Some(format!("the JVM says {jvm:?}"));
        }
        let right = report.suspects.first().is_some_and(|s| {
            scenario.accepts_holder(&s.holder) && scenario.accepts_class(&s.class)
        });
        let (holders, classes) = (scenario.holders, scenario.classes);
        if !right {
            return Some(format!("expected {holders:?} holding {classes:?}"));
        }
        if let Some(expected) = scenario.detector
            && report.suspects[0].detector.as_deref() != Some(expected)
        {
            return Some(format!("expected it to be called {expected}"));
        }
        let grave = matches!(report.suspects[0].verdict, Verdict::Leak | Verdict::Growth);
        (!grave).then(|| "expected a verdict of leak or growth".to_owned())
    });
}

/// The control program does the same work, but has no leak.
#[test]
fn programs_without_a_leak_have_no_suspect() {
    check(Mode::Fixed, |_, _, report| {
        (!report.suspects.is_empty()).then(|| "expected nothing".to_owned())
    });
}
