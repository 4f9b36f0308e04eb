//! Tests that line numbers of frames match the source while counts, `usage=on` and other agents rewrite bytecode.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::time::Duration;

use heapdiff_sites::{Line, SiteTable, attach};
use hprof::{Options, Silent, Snapshot};
use testdata::jvm::{Jdk, Target};

use crate::beside::{answer_to, line, redefined};
use crate::counted::{ask, begin, end};
use crate::dumped::Dumped;
use crate::{CHECKED, jdks, launch};

/// Number of objects of each kind that the program allocates in a phase.
const N: usize = 50;

fn started(jdk: &Jdk, options: &str) -> Target {
    let mut target = launch(jdk, "Lines", options)
        .flags(CHECKED)
        .flags(["-Xmx256m", "-XX:+EnableDynamicAgentLoading"])
        .arg(N.to_string())
        .timeout(Duration::from_secs(120))
        .start()
        .unwrap();
    target.wait_ready(1).unwrap();
    target
}

/// Returns the number of the line in `Lines.java` that ends with the comment `comment`.
fn marked(comment: &str) -> Line {
    Line::At(line("Lines.java", &format!("// {comment}")).unwrap())
}

/// Returns the frames of a site with their lines, innermost first.
fn frames(table: &SiteTable, site: u32) -> Vec<(String, Line)> {
    let frames = table.frames(site);
    frames
        .map(|frame| (format!("{}.{}", frame.class, frame.method), frame.line))
        .collect()
}

/// Checks the stacks of all arrays that the program has allocated so far. Returns all stacks of allocations in the
/// program's methods, except those of class loading.
fn checked(dumped: &Dumped, phases: usize, which: &str) -> BTreeSet<String> {
    let arrays = dumped.of_kind("Lines.leaf", "byte[]");
    assert_eq!(arrays.len(), N * phases, "{which}");
    for array in arrays {
        let expected = ["leaf", "mid", "outer", "main"]
            .map(|method| (format!("Lines.{method}"), marked(method)));
        assert_eq!(frames(&dumped.table, array.site), expected, "{which}");
    }
    let sites = dumped.totals.keys();
    sites
        .filter(|&&site| dumped.through(site, "Lines.outer"))
        .map(|&site| format!("{:?}", frames(&dumped.table, site)))
        .filter(|stack| !stack.contains("ClassLoader"))
        .collect()
}

/// Checks that each stack in `now` is also in `plain`. `plain` contains the stacks from before classes were rewritten.
fn assert_same(now: &BTreeSet<String>, plain: &BTreeSet<String>, which: &str) {
    let other: Vec<_> = now.difference(plain).collect();
    assert!(other.is_empty() && !now.is_empty(), "{which}: {other:#?}");
}

/// Checks the lines of the threads' frames in a dump by a forked process.
fn assert_threads(target: &Target, phases: usize, which: &str) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("forked.hprof");
    let snapshot = format!("{}{}", attach::SNAPSHOT, file.display());
    assert_eq!(ask(target, &snapshot), attach::DONE, "{}", target.errors());
    let found = thread_lines(&file);
    let lines = |method: &str| found.get(method).cloned().unwrap_or_default();
    assert_eq!(lines("main"), [marked("reads")], "{which}");
    assert_eq!(lines("waits"), vec![marked("waits"); phases], "{which}");
}

/// Returns the line numbers of the program's frames in all threads, by method.
fn thread_lines(file: &Path) -> HashMap<String, Vec<Line>> {
    let snapshot = Snapshot::open(file, &Options::default(), &Silent).unwrap();
    let mut lines: HashMap<String, Vec<Line>> = HashMap::new();
    for thread in snapshot.threads() {
        for frame in thread.frames.into_iter().map(|f| f.frame) {
            if frame.class == "Lines" {
                let line = match frame.line {
                    hprof::answers::Line::Number(line) => Line::At(line),
                    _ => Line::Unknown,
                };
                lines.entry(frame.method).or_default().push(line);
            }
        }
    }
    lines
}

/// Checks the line numbers in stacks before, during and after a count of allocations. One of the program's methods runs
/// during the whole test.
#[test]
fn lines_during_and_after_a_count() {
    for jdk in jdks() {
        let mut target = started(&jdk, "interval=0");
        let which = |when: &str| format!("JDK {}, {when}", jdk.version());
        target.advance(2).unwrap();
        let all = checked(&Dumped::of(&target), 2, &which("before"));
        assert_threads(&target, 2, &which("before"));
        for (phase, counts) in [(3, true), (5, false), (7, true)] {
            if counts {
                begin(&target, "jdk=on")
            } else {
                _ = end(&target)
            }
            for phase in phase..phase + 2 {
                target.advance(phase).unwrap();
            }
            let which = which(if counts { "during" } else { "after" });
            let phases = phase as usize + 1;
            let now = checked(&Dumped::of(&target), phases, &which);
            assert_same(&now, &all, &which);
            assert_threads(&target, phases, &which);
        }
        let (well, errors) = target.finish_with_errors().unwrap();
        assert!(well && !errors.contains("WARNING"), "{errors}");
    }
}

/// Checks line numbers with the options `count` and `usage`, which are set at the JVM's start or in a running JVM.
#[test]
fn lines_under_options_that_rewrite() {
    for jdk in jdks() {
        let mut plain = started(&jdk, "interval=0");
        plain.advance(2).unwrap();
        let all = checked(&Dumped::of(&plain), 2, "plain");
        for (phase, options) in (3..).zip(["count=on", "usage=on", "count=jdk,usage=on"]) {
            let which = format!("JDK {} {options}", jdk.version());
            let mut target = started(&jdk, &format!("interval=0,{options}"));
            target.advance(2).unwrap();
            let now = checked(&Dumped::of(&target), 2, &which);
            assert_same(&now, &all, &which);
            assert_threads(&target, 2, &which);
            assert!(target.finish().unwrap());
            let change = format!("change:interval=0,{options}");
            assert_eq!(ask(&plain, &change), attach::CHANGED, "{which}");
            plain.advance(phase).unwrap();
            let dumped = Dumped::of(&plain);
            let arrays = dumped.of_kind("Lines.leaf", "byte[]").len();
            assert!(arrays >= N, "{which}: {arrays}");
            assert_same(&checked(&dumped, arrays / N, &which), &all, &which);
            assert_threads(&plain, phase as usize, &which);
        }
        assert!(plain.finish().unwrap());
    }
}

/// Classes are rewritten and restored while the program allocates. Each frame has its correct source line or no line.
#[test]
fn lines_while_classes_are_rewritten() {
    for jdk in jdks() {
        let which = format!("JDK {}", jdk.version());
        let mut target = launch(&jdk, "Lines", "interval=1k,max_samples=100000")
            .flags(["-Xmx256m", "-XX:+EnableDynamicAgentLoading"])
            .arg(N.to_string())
            .arg("runs")
            .timeout(Duration::from_secs(120))
            .start()
            .unwrap();
        target.wait_ready(1).unwrap();
        for _ in 0..5 {
            begin(&target, "");
            end(&target);
        }
        target.advance(2).unwrap();
        let dumped = Dumped::of(&target);
        let expected = ["leaf", "mid", "outer", "runs"];
        let (mut all, mut without) = (0, 0);
        // Check only arrays whose stack contains `Lines.runs`. In other methods, the JVM itself allocates a `byte[]`
        // when it links the call of a hook.
        let arrays = dumped.of_kind("Lines.leaf", "byte[]").into_iter();
        for array in arrays.filter(|array| dumped.through(array.site, "Lines.runs")) {
            let frames = frames(&dumped.table, array.site);
            for ((frame, line), method) in frames.into_iter().zip(expected) {
                assert_eq!(frame, format!("Lines.{method}"), "{which}");
                all += 1;
                match line {
                    Line::Unknown => without += 1,
                    line => assert_eq!(line, marked(method), "{which}"),
                }
            }
        }
        println!("{which}: {without} of {all} frames without a line");
        assert!(all > 100 && without * 100 <= all, "{without} of {all}");
        assert!(target.finish().unwrap(), "{which}");
    }
}

/// Another agent replaces the body of a class while the agent samples.
#[test]
fn lines_of_a_class_that_others_redefine() {
    const ONE: &str = "Redefined$One";
    let at = |text: &str| line("Redefined.java", text).unwrap();
    let old = at("return new byte[i % 10]");
    let new = [at("Object first = new Two()"), at("new Object[] {first")];
    for jdk in jdks() {
        let which = format!("JDK {}", jdk.version());
        let mut target = redefined(&jdk);
        assert_eq!(ask(&target, "interval=0"), attach::DONE, "{which}");
        // After `interval=0`, the next sample of a thread still follows the interval that was set before. This interval
        // is 512 KiB on average, but sometimes several MiB.
        let mut rounds = 0;
        while rounds == 0 || (lines_of(&target, ONE).is_empty() && rounds < 1000) {
            for _ in 0..50 {
                answer_to(&mut target, "work");
            }
            rounds += 50;
        }
        assert_eq!(lines_of(&target, ONE), BTreeSet::from([old]), "{which}");
        assert_eq!(answer_to(&mut target, "redefine"), ["Object[]", "plain"]);
        let mut both = BTreeSet::from([old]);
        both.extend(new);
        assert_eq!(lines_of(&target, ONE), both, "{which}");
        // Another agent has redefined the class. The line numbers must also be correct during a count in this class.
        begin(&target, "");
        answer_to(&mut target, "work");
        assert_eq!(lines_of(&target, ONE), both, "{which}: counted");
        assert!(target.finish().unwrap(), "{which}");
    }
}

/// Returns the line numbers of a class's frames in all stacks so far.
fn lines_of(target: &Target, class: &str) -> BTreeSet<u32> {
    let dumped = Dumped::of(target);
    let frames = dumped.totals.keys().flat_map(|&s| dumped.table.frames(s));
    let lines = frames.filter(|frame| frame.class == class);
    let lines = lines.map(|frame| match frame.line {
        Line::At(line) => line,
        other => panic!("{other:?}"),
    });
    lines.collect()
}
