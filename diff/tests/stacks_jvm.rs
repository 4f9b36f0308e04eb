//! The stacks that allocated each leak, in dumps of real JVMs with the agent loaded.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::of_files;
use heapdiff_diff::{Report, Stack};
use testdata::jvm::{DumpOptions, Jdk, Launch, Selection, Target};
use testdata::programs;
use testdata::scenarios::{self, Mode, Scenario};

/// The agent's library, next to this test's program.
fn library() -> PathBuf {
    let here = std::env::current_exe().unwrap();
    let library = here.with_file_name("libheapdiff_agent.so");
    assert!(library.is_file(), "{} is missing", library.display());
    library
}

fn jdks() -> Vec<Jdk> {
    let jdks = Jdk::all_for_scenarios();
    assert!(!jdks.is_empty(), "no JDK found");
    jdks
}

/// Two dumps of a scenario with the agent, some work apart.
fn diff(jdk: &Jdk, scenario: &Scenario, mode: Mode, flags: &[&str], dir: &Path) -> Report {
    let launch = scenario.launch(jdk, mode).unwrap().flags(flags);
    let mut target = launch.agent(&library(), "interval=4k").start().unwrap();
    target.wait_ready(1).unwrap();
    let [before, after] = ["before", "after"].map(|n| dir.join(format!("{n}.hprof")));
    target.dump(&before, DumpOptions::default()).unwrap();
    target.advance(2).unwrap();
    target.dump(&after, DumpOptions::default()).unwrap();
    of_files(&[&before, &after])
}

fn describe(report: &Report) -> String {
    let lines = report.suspects.iter().take(3).map(|s| {
        let stacks = s.stacks.iter().take(3).map(|s| {
            format!(
                "        {} {:?} {} in {} samples\n            {}\n",
                s.estimated_bytes,
                s.ci95,
                s.class,
                s.samples,
                s.frames.join("\n            ")
            )
        });
        let stacks: String = stacks.collect();
        format!(
            "    {} | {} | {:?}\n{stacks}",
            s.holder, s.class, s.coverage
        )
    });
    lines.collect()
}

/// What is wrong with a report of a scenario's leak.
fn fault(scenario: &Scenario, report: &Report) -> Option<String> {
    let Some(suspect) = report.suspects.first() else {
        return Some("no suspect".to_owned());
    };
    let (Some(stack), coverage) = (suspect.stacks.first(), suspect.coverage) else {
        return Some("no stack".to_owned());
    };
    if !scenario.accepts_holder(&suspect.holder) || !scenario.accepts_class(&suspect.class) {
        return Some("another suspect".to_owned());
    }
    if !scenario.accepts_stack(&stack.frames) {
        return Some(format!("expected {}", scenario.allocator));
    }
    let permille = coverage.sampled_bytes * 1000 / coverage.growth_bytes.max(1);
    // At 4 KiB a megabyte of small objects has 256 samples: 6 % standard error. Here are four and a half.
    if !(720..1280).contains(&permille) {
        return Some(format!("samples explain {permille}/1000 of the growth"));
    }
    let agents = report.snapshots.iter().map(|s| s.agent.clone());
    let Some(agents) = agents.collect::<Option<Vec<_>>>() else {
        return Some("no agent".to_owned());
    };
    let same = |a: &heapdiff_diff::AgentInfo| (a.interval_bytes, a.pid, a.started_ms);
    if agents
        .iter()
        .any(|a| same(a) != same(&agents[0]) || a.interval_bytes != 4096)
    {
        return Some(format!("{agents:?}"));
    }
    own_objects(report)
}

/// The agent must not show.
fn own_objects(report: &Report) -> Option<String> {
    let is_own = |name: &str| name.contains("heapdiff");
    let class = report.classes.iter().map(|c| &c.class).find(|c| is_own(c));
    let suspect = report.suspects.iter().find(|s| {
        let path = s.path.iter().any(|p| is_own(p));
        path || is_own(&s.holder) || is_own(&s.class) || is_own(&s.root)
    });
    let warning = report.snapshots.iter().flat_map(|s| &s.warnings).next();
    class
        .or(suspect.map(|s| &s.holder))
        .or(warning)
        .map(|found| format!("it shows {found}"))
}

#[test]
fn each_leak_is_named_with_the_stack_that_allocated_it() {
    let mut failures = String::new();
    for jdk in jdks() {
        for scenario in scenarios::CORE {
            let dir = tempfile::tempdir().unwrap();
            let report = diff(&jdk, scenario, Mode::Leak, &["-XX:+UseG1GC"], dir.path());
            if let Some(fault) = fault(scenario, &report) {
                let (major, found) = (jdk.major(), describe(&report));
                failures += &format!("JDK {major} {}: {fault}, found\n{found}", scenario.name);
            }
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

/// The control: the same work with the leak mended, and all that grows is the agent's.
#[test]
fn the_agent_is_no_suspect() {
    for jdk in jdks() {
        for scenario in [&scenarios::SESSION_REGISTRY, &scenarios::ALL[6]] {
            let dir = tempfile::tempdir().unwrap();
            let report = diff(&jdk, scenario, Mode::Fixed, &[], dir.path());
            assert!(report.suspects.is_empty(), "{}", describe(&report));
            assert_eq!(own_objects(&report), None);
        }
    }
}

#[test]
fn every_collector() {
    for jdk in jdks() {
        for collector in ["Serial", "Parallel", "Z", "Shenandoah"] {
            let flag = format!("-XX:+Use{collector}GC");
            let starts = Command::new(jdk.java())
                .args([&flag, "-version"])
                .output()
                .unwrap();
            if !starts.status.success() {
                continue;
            }
            let dir = tempfile::tempdir().unwrap();
            let scenario = &scenarios::SESSION_REGISTRY;
            let report = diff(&jdk, scenario, Mode::Leak, &[&flag], dir.path());
            let fault = fault(scenario, &report);
            assert_eq!(
                fault,
                None,
                "{} {collector}\n{}",
                jdk.major(),
                describe(&report)
            );
        }
    }
}

/// `Orders` with the agent sampling everything; 2,000 orders are taken.
fn orders(jdk: &Jdk, flags: &[String]) -> Target {
    let classes = jdk.compile(&programs::agent("Orders.java")).unwrap();
    let launch = Launch::class(jdk, classes, "Orders").flags(flags);
    let launch = launch.flag("-Xmx64m").agent(&library(), "interval=0");
    let mut target = launch.start().unwrap();
    target.wait_ready(1).unwrap();
    target
}

/// The stack of orders' amounts among what grew most.
fn booked(report: &Report) -> &Stack {
    let suspect = report.suspects.first();
    let suspect = suspect.unwrap_or_else(|| panic!("{}", describe(report)));
    let stack = suspect.stacks.iter().find(|s| s.class == "long[]");
    let stack = stack.unwrap_or_else(|| panic!("{}", describe(report)));
    let expected = ["Orders$Order.<init>", "Orders.book", "Orders.take (lambda)"];
    for (frame, expected) in stack.frames.iter().zip(expected) {
        assert!(
            frame.starts_with(&format!("{expected}(Orders.java:")),
            "{frame}"
        );
    }
    assert_eq!(stack.threads, ["main"]);
    stack
}

/// With every allocation sampled the figures are those of the heap.
#[test]
fn whoever_takes_the_dump() {
    for jdk in jdks() {
        let dir = tempfile::tempdir().unwrap();
        let mut target = orders(&jdk, &[]);
        let file = |name: &str| dir.path().join(name);
        let by_jcmd = |target: &Target, name: &str, args: &[&str]| {
            let path = file(name);
            let mut all = vec!["GC.heap_dump"];
            all.extend(args);
            all.push(path.to_str().unwrap());
            target.jcmd(all).unwrap();
            path
        };
        let first = by_jcmd(&target, "first.hprof", &[]);
        target.advance(2).unwrap();
        let jmap = file("jmap.hprof");
        let pid = target.pid().to_string();
        let option = format!("-dump:live,format=b,file={}", jmap.display());
        let done = Command::new(jdk.jcmd().with_file_name("jmap"))
            .args([&option, &pid])
            .output()
            .unwrap();
        assert!(done.status.success(), "{done:?}");
        let mut dumps = vec![jmap, by_jcmd(&target, "packed.hprof.gz", &["-gz=1"])];
        if jdk.major() >= 22 {
            dumps.push(by_jcmd(&target, "parallel.hprof", &["-parallel=2"]));
        }
        let all = file("all.hprof");
        let options = DumpOptions {
            selection: Selection::All,
            gzip: None,
        };
        target.dump(&all, options).unwrap();
        dumps.push(all);
        for dump in &dumps {
            let context = format!("JDK {} {}", jdk.major(), dump.display());
            let report = of_files(&[&first, dump]);
            let stack = booked(&report);
            assert_eq!(report.suspects.len(), 1, "{context}: {}", describe(&report));
            assert_eq!(report.suspects[0].holder, "Orders.open", "{context}");
            // A `long[8]` takes 80 bytes.
            assert_eq!(
                (stack.samples, stack.estimated_bytes, stack.ci95),
                (2000, 160_000, [160_000; 2]),
                "{context}"
            );
            assert_eq!(stack.survival_permille, 1000, "{context}");
            assert_eq!(own_objects(&report), None, "{context}");
            let coverage = report.suspects[0].coverage;
            assert_eq!(coverage.sampled_bytes, coverage.growth_bytes, "{context}");
        }
        let bean = file("bean.hprof");
        target.tell(&format!("dump {}", bean.display())).unwrap();
        target.wait_ready(3).unwrap();
        let report = of_files(&[&first, &bean]);
        assert_eq!(booked(&report).samples, 2000);
    }
}

#[test]
fn on_out_of_memory_error() {
    for jdk in jdks() {
        let dir = tempfile::tempdir().unwrap();
        let first = dir.path().join("first.hprof");
        let path = format!("-XX:HeapDumpPath={}/oome.hprof", dir.path().display());
        let flag = "-XX:+HeapDumpOnOutOfMemoryError".to_owned();
        let mut target = orders(&jdk, &[flag, path]);
        target.dump(&first, DumpOptions::default()).unwrap();
        target.tell("exhaust").unwrap();
        let end = target.wait_ready(2).unwrap_err().to_string();
        assert!(end.contains("OutOfMemoryError"), "{end}");
        let report = of_files(&[&first, &dir.path().join("oome.hprof")]);
        // The list was about to grow: a local variable holds its array beside the list.
        let stack = booked(&report);
        assert!(stack.estimated_bytes > 4 << 20, "{}", describe(&report));
        assert_eq!(own_objects(&report), None);
    }
}
