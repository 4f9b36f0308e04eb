//! A heap without room: the agent is loaded into it, or is there while it fills. The JVM goes on.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use heapdiff_sites::Counter;
use testdata::jvm::{Jdk, Launch, Target};
use testdata::programs;

use crate::dumped::Dumped;
use crate::{collectors, jdks, library};

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

/// Whether the JVM prints this on standard error, soon at least: its answer to a command may be read before.
fn told(target: &Target, line: &str) -> bool {
    let end = Instant::now() + Duration::from_secs(10);
    while !target.errors().contains(line) {
        if Instant::now() > end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}

/// In a full heap it does not start, and says so; when there is room again it does.
///
/// A collector that finds room after all, by one more collection, may let it start at once. Serial finds none.
#[test]
fn attached_to_a_full_heap() {
    each(|jdk, collector| {
        let context = format!("JDK {} {collector}", jdk.version());
        let mut target = full(jdk, collector).start().unwrap();
        target.wait_ready(1).unwrap();
        // The JVM's own thread for commands needs memory to come up.
        target.jcmd(["VM.version"]).unwrap();
        target.advance(2).unwrap();
        let answer = target.load_agent(&library(), "interval=1k").unwrap();
        let failed = format!("return code: {}", heapdiff_sites::attach::HEAP_FULL);
        let refused = answer.contains(&failed);
        assert!(
            !refused
                || told(
                    &target,
                    "cannot start (the heap is full); nothing is sampled"
                ),
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
            assert!(answer.contains("return code: 0"), "{context}: {answer}");
        }
        target.advance(4).unwrap();
        let dumped = Dumped::of(&target);
        assert!(dumped.counter(Counter::Recorded) > 1000, "{context}");
        assert_eq!(dumped.counter(Counter::Faults), 0, "{context}");
        assert!(target.finish().unwrap(), "{context}");
    });
}

/// It is there while the heap fills and stays full: samples are lost, its threads go on.
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
        // Both of the agent's threads come by meanwhile.
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
