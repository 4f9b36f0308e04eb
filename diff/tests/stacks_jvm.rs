//! The stacks that allocated each leak, in dumps of real JVMs with the agent loaded.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

use std::path::{Path, PathBuf};

use heapdiff_diff::{Comparison, Filter, Report, Summary};
use hprof::{Options, Silent, Snapshot};
use testdata::jvm::{DumpOptions, Jdk};
use testdata::scenarios::{self, Mode, Scenario};

/// The agent's library, next to this test's program.
fn library() -> PathBuf {
    let here = std::env::current_exe().unwrap();
    let library = here.with_file_name("libheapdiff_agent.so");
    assert!(library.is_file(), "{} is missing", library.display());
    library
}

fn report(dumps: &[&Path]) -> Report {
    let mut comparison = Comparison::default();
    let mut last = None;
    for dump in dumps {
        drop(last.take());
        let snapshot = Snapshot::open(dump, &Options::default(), &Silent).unwrap();
        comparison.add(Summary::new(&snapshot, dump.display().to_string()).unwrap());
        last = Some(snapshot);
    }
    let filter = Filter {
        classes: &|_| true,
        suspects: 10,
    };
    comparison.report(&last.unwrap(), &filter).unwrap()
}

/// Two dumps of a scenario with the agent, some work apart.
fn diff(jdk: &Jdk, scenario: &Scenario, flags: &[&str], dir: &Path) -> Report {
    let launch = scenario.launch(jdk, Mode::Leak).unwrap().flags(flags);
    let mut target = launch.agent(&library(), "interval=4k").start().unwrap();
    target.wait_ready(1).unwrap();
    let [before, after] = ["before", "after"].map(|n| dir.join(format!("{n}.hprof")));
    target.dump(&before, DumpOptions::default()).unwrap();
    target.advance(2).unwrap();
    target.dump(&after, DumpOptions::default()).unwrap();
    report(&[&before, &after])
}

fn describe(report: &Report) -> String {
    let lines = report.suspects.iter().take(3).map(|s| {
        let stacks = s.stacks.iter().take(3).map(|s| {
            format!(
                "        {} {:?} {} of {} samples, {}/1000 alive, by {:?}\n            {}\n",
                s.estimated_bytes,
                s.ci95,
                s.class,
                s.samples,
                s.survival_permille,
                s.threads,
                s.frames.join("\n            ")
            )
        });
        let stacks: String = stacks.collect();
        format!("    {} | {} | {:?}\n{stacks}", s.holder, s.class, s.coverage)
    });
    lines.collect()
}

#[test]
fn look() {
    for jdk in &Jdk::all_for_scenarios() {
        for scenario in scenarios::ALL {
            let dir = tempfile::tempdir().unwrap();
            let report = diff(jdk, scenario, &[], dir.path());
            println!("=== {} {} {:?} {:?}\n{}", jdk.major(), scenario.name, report.snapshots[1].agent, report.snapshots[1].warnings, describe(&report));
        }
    }
}
