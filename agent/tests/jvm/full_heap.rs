//! Tests the agent in full heaps. Either the agent is loaded into a full heap, or the heap fills while the agent runs.
//! The JVM continues in both cases.

use std::path::PathBuf;
use std::time::Duration;

use heapdiff_sites::{Counter, attach};
use testdata::jvm::{Jdk, Launch, Target};
use testdata::programs;

use crate::dumped::Dumped;
use crate::{CHECKED, collectors, jdks, library};

fn full(jdk: &Jdk, collector: &str) -> Launch {
    let classes: PathBuf = jdk.compile(&programs::agent("Full.java")).unwrap();
    Launch::class(jdk, classes, "Full").flags(["-Xmx24m", collector])
}

fn each(test: impl Fn(&Jdk, &str)) {
    for jdk in jdks() {
        for collector in collectors(&jdk) {
            test(&jdk, collector);
        }
    }
}

/// In a full heap, the agent does not start and prints the reason. When the heap has room again, the agent starts. With
/// collectors other than Serial, the first attempt may succeed, because one more GC may free enough memory.
#[test]
fn attached_to_a_full_heap() {
    each(|jdk, collector| {
        let context = format!("JDK {} {collector}", jdk.version());
        let mut target = full(jdk, collector).start().unwrap();
        target.wait_ready(1).unwrap();
        // The JVM's attach thread needs memory to start.
        target.jcmd(["VM.version"]).unwrap();
        target.advance(2).unwrap();
        let answer = target.load_agent(&library(), "interval=1k").unwrap();
        let failed = format!("return code: {}", attach::HEAP_FULL);
        let refused = answer.contains(&failed);
        assert!(
            !refused || target.prints("not started: the heap is full", 1),
            "{context}: {answer} {}",
            target.errors()
        );
        assert!(
            refused || collector != "-XX:+UseSerialGC",
            "{context}: {answer}"
        );
        target.advance(3).unwrap();
        if refused {
            let answer = target.load_agent(&library(), "interval=1k").unwrap();
            assert!(
                answer.contains("return code: 0"),
                "{context}: {answer} {}",
                target.errors()
            );
        }
        target.advance(4).unwrap();
        let dumped = Dumped::of(&target);
        assert!(dumped.counter(Counter::Recorded) > 1000, "{context}");
        assert_eq!(dumped.counter(Counter::Faults), 0, "{context}");
        assert!(target.finish().unwrap(), "{context}");
    });
}

/// The heap fills and stays full while the agent samples. Samples are lost, but the agent's threads continue.
#[test]
fn filled_while_sampled() {
    each(|jdk, collector| {
        let context = format!("JDK {} {collector}", jdk.version());
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("full.hdt");
        let options = format!("interval=1k,trace={},tick=100ms", trace.display());
        let mut target = full(jdk, collector)
            .agent(&library(), &options)
            .start()
            .unwrap();
        target.wait_ready(1).unwrap();
        target.advance(2).unwrap();
        // Wait until the agent's thread and the trace's thread have run.
        std::thread::sleep(Duration::from_millis(1300));
        assert!(target.is_running(), "{context}: {}", target.errors());
        target.advance(3).unwrap();
        target.advance(4).unwrap();
        let dumped = Dumped::of(&target);
        assert!(dumped.counter(Counter::Recorded) > 1000, "{context}");
        assert_eq!(dumped.counter(Counter::Faults), 0, "{context}");
        assert!(target.finish().unwrap(), "{context}");
    });
}

/// Returns the result code in the agent's answer.
fn code(answer: &str) -> i32 {
    let number = answer
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix("return code: "));
    number.and_then(|n| n.trim().parse().ok()).unwrap_or(-1)
}

fn assert_unharmed(target: &mut Target, context: &str) {
    let errors = target.errors();
    assert!(target.is_running(), "{context}: {errors}");
    let lines: Vec<&str> = errors.lines().collect();
    let warns = lines
        .iter()
        .zip(lines.iter().skip(1).chain([&""]))
        .any(|(line, next)| line.contains("WARNING") && !is_of_a_memory_pool(next));
    assert!(!warns && !errors.contains("FATAL"), "{context}: {errors}");
}

/// Returns true if `frame` names the native method that reads a memory pool. `frame` is the line after a warning of
/// `-Xcheck:jni`. If the heap is full, this method cannot create its result, and calls JNI with the `OutOfMemoryError`
/// pending.
fn is_of_a_memory_pool(frame: &str) -> bool {
    frame.contains("at sun.management.MemoryPoolImpl.getUsage0(")
}

/// At first, the heap has room for only few of the agent's objects. Then it has room for more and more of them.
/// Whichever object finds no room, the JVM continues, and the attach can be repeated until there is room for all
/// objects.
#[test]
fn attached_at_every_level() {
    each(|jdk, collector| {
        let context = format!("JDK {} {collector}", jdk.version());
        let mut target = full(jdk, collector)
            .flags(CHECKED)
            .flag("-XX:+EnableDynamicAgentLoading")
            .arg("step")
            .start()
            .unwrap();
        target.wait_ready(1).unwrap();
        target.jcmd(["VM.version"]).unwrap();
        let mut codes = Vec::new();
        for phase in 2..=9 {
            target.advance(phase).unwrap();
            let answer = target.load_agent(&library(), "interval=1k").unwrap();
            assert_unharmed(&mut target, &format!("{context} {codes:?} {answer}"));
            codes.push(code(&answer));
            if codes.last() == Some(&attach::DONE) {
                break;
            }
        }
        println!("{context}: {codes:?}");
        let (last, before) = codes.split_last().unwrap();
        assert_eq!(
            *last,
            attach::DONE,
            "{context}: {codes:?} {}",
            target.errors()
        );
        assert!(
            before.iter().all(|&code| code == attach::HEAP_FULL),
            "{context}: {codes:?} {}",
            target.errors()
        );
        let full = "not started: the heap is full";
        assert!(target.prints(full, before.len()), "{context}");
        assert_eq!(target.errors().matches(full).count(), before.len());
        for phase in codes.len() + 2..=9 {
            target.advance(u32::try_from(phase).unwrap()).unwrap();
        }
        let dumped = Dumped::of(&target);
        assert_eq!(dumped.counter(Counter::Faults), 0, "{context}");
        assert_unharmed(&mut target, &context);
        assert!(target.finish().unwrap(), "{context}");
    });
}

/// The heap fills up and empties while the agent is loaded, changed and detached. Each command succeeds or reports that
/// the heap is full, and the JVM continues.
#[test]
fn attached_while_the_heap_fills_up() {
    each(|jdk, collector| {
        let context = format!("JDK {} {collector}", jdk.version());
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("churn.hdt");
        let mut target = full(jdk, collector)
            .flags(CHECKED)
            .flag("-XX:+EnableDynamicAgentLoading")
            .arg("churn")
            .start()
            .unwrap();
        target.wait_ready(1).unwrap();
        target.jcmd(["VM.version"]).unwrap();
        target.advance(2).unwrap();
        let sampling = format!("{}interval=64k,trace={}", attach::CHANGE, trace.display());
        let mut codes = Vec::new();
        for round in 0..6 {
            let options = if round % 3 == 2 {
                attach::DETACH
            } else {
                &sampling
            };
            let answer = target.load_agent(&library(), options).unwrap();
            assert_unharmed(&mut target, &format!("{context} {codes:?} {answer}"));
            codes.push(code(&answer));
        }
        println!("{context}: {codes:?}");
        let known = [
            attach::DONE,
            attach::HEAP_FULL,
            attach::CHANGED,
            attach::DETACHED,
            attach::DETACHED_BEFORE,
        ];
        assert!(
            codes.iter().all(|code| known.contains(code)
                || *code == attach::FAILED && target.prints("its thread still runs", 1)),
            "{context}: {codes:?} {}",
            target.errors()
        );
        target.advance(3).unwrap();
        let answer = target.load_agent(&library(), &sampling).unwrap();
        let last = code(&answer);
        assert!(
            [attach::DONE, attach::CHANGED].contains(&last),
            "{context}: {answer} {}",
            target.errors()
        );
        let dumped = Dumped::of(&target);
        assert_eq!(dumped.counter(Counter::Faults), 0, "{context}");
        assert!(target.finish().unwrap(), "{context}");
    });
}
