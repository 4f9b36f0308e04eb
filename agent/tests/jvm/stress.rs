//! Runs everything at the same time for a while, with JNI checks: classes are loaded and unloaded, threads start and
//! end, virtual threads run, stacks overflow, GCs run in a loop, and agents attach to a busy program.
//!
//! Each JVM runs for a few seconds. For longer runs, `cargo xtask soak` sets `HEAPDIFF_SOAK_SECONDS`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use heapdiff_sites::Counter;
use hprof::{Options, Silent, Snapshot};
use testdata::jvm::{Jdk, Launch};
use testdata::programs;

use crate::dumped::Dumped;
use crate::{CHECKED, collectors, jdks, library};

const SECONDS: &str = "HEAPDIFF_SOAK_SECONDS";

fn seconds() -> u64 {
    let told = std::env::var(SECONDS).ok();
    told.map_or(2, |text| text.parse().expect(SECONDS))
}

fn busy(jdk: &Jdk, flags: &[&str]) -> Launch {
    let classes: PathBuf = jdk.compile(&programs::agent("Busy.java")).unwrap();
    Launch::class(jdk, classes, "Busy")
        // Make the whole heap resident from the start, so that a growing heap does not look like a leak of the agent.
        .flags(["-Xms300m", "-Xmx300m", "-XX:+AlwaysPreTouch"])
        .flags(CHECKED)
        .flags(flags)
        .arg(seconds().to_string())
        .timeout(Duration::from_secs(seconds() + 120))
}

/// True for a line that the JVM itself may print on standard error.
fn expected(line: &str) -> bool {
    // JDK 21 and later print these lines when an agent is loaded into a running JVM.
    line.starts_with("WARNING: A JVM TI agent has been loaded dynamically")
        || line.starts_with("WARNING: If a serviceability tool is")
        || line.starts_with("WARNING: Dynamic loading of agents will be")
        || line.is_empty()
}

/// Checks that each sampled object has the class that its sample contains.
fn every_join_is_right(dumped: &Dumped, context: &str) {
    for sample in dumped.samples.iter().chain(&dumped.classes) {
        let referent = sample.referent.as_deref().unwrap();
        // If an object is a class object, the dump reports the class that this object represents.
        if sample.kind == "java.lang.Class" {
            continue;
        }
        // The name of the sampled type does not contain the numbers and suffixes that the JVM adds to names of classes.
        assert!(
            referent.starts_with(sample.kind.trim_end_matches("[]")),
            "{context}: {referent} was sampled as {}",
            sample.kind
        );
    }
}

/// Maximum resident memory in bytes of a JVM that [`busy`] starts. ZGC maps its heap of 300 MB three times. The
/// remaining 400 MB are for the JVM and the agent.
const MOST_RESIDENT: u64 = 1300 << 20;
/// Maximum growth of the resident memory between the middle and the end of a run. The JVM's own caches may grow by less
/// than this number. Between the middle and the end, even the shortest run that is checked takes about 150,000 samples.
/// So the test finds a leak of 200 bytes per sample. A longer run finds a smaller leak.
const MOST_GROWTH: u64 = 24 << 20;
/// Minimum length in seconds of a run whose memory growth is checked. In a shorter run, a leak cannot be distinguished
/// from the growth at the start.
const TELLING: u64 = 30;

/// Readings of a JVM's resident memory, in bytes.
#[derive(Default)]
struct Memory(Vec<u64>);

impl Memory {
    fn look(&mut self, pid: u32) {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let kilobytes = |key: &str| -> u64 {
            let line = status.lines().find(|line| line.starts_with(key)).unwrap();
            line.split_whitespace().nth(1).unwrap().parse().unwrap()
        };
        self.0.push(1024 * kilobytes("VmRSS:"));
    }

    /// Reads the memory four times a second for `time`.
    fn watch(&mut self, pid: u32, time: Duration) {
        let until = Instant::now() + time;
        while Instant::now() < until {
            self.look(pid);
            std::thread::sleep(Duration::from_millis(250));
        }
    }

    /// Returns two medians: that of the second third of the readings, and that of the last third.
    fn later(&self) -> (u64, u64) {
        let third = self.0.len() / 3;
        let median = |part: &[u64]| {
            let mut part = part.to_vec();
            part.sort_unstable();
            part[part.len() / 2]
        };
        (
            median(&self.0[third..2 * third]),
            median(&self.0[2 * third..]),
        )
    }

    fn assert_bounded(&self, context: &str) {
        let (middle, end) = self.later();
        println!(
            "{context}: {} MB resident midway, {} MB at the end",
            middle >> 20,
            end >> 20
        );
        assert!(end < MOST_RESIDENT, "{context}: {end} bytes resident");
        assert!(
            seconds() < TELLING || end < middle + MOST_GROWTH,
            "{context}: resident memory grew from {middle} to {end} bytes"
        );
    }
}

fn stress(jdk: &Jdk, flags: &[&str], options: &str, attach: bool) {
    let context = format!("JDK {} {flags:?} {options} attach {attach}", jdk.version());
    let mut launch = busy(jdk, flags);
    if !attach {
        launch = launch.agent(&library(), options);
    }
    let mut target = launch.start().unwrap();
    target.wait_line("BUSY").unwrap();
    if attach {
        let answer = target.load_agent(&library(), options).unwrap();
        assert!(answer.contains("return code: 0"), "{context}: {answer}");
    }
    // Take two dumps while everything runs. On a slow machine, there may be no sample yet at the first dump.
    for _ in 0..2 {
        std::thread::sleep(Duration::from_millis(seconds() * 150));
        every_join_is_right(&Dumped::of(&target), &context);
    }
    // Measure the memory only after the dumps: a dump adds up to 200 MB to the JVM's memory, with or without an agent.
    let mut memory = Memory::default();
    memory.watch(target.pid(), Duration::from_millis(seconds() * 550));
    target.wait_ready(1).unwrap();
    memory.assert_bounded(&context);
    std::thread::sleep(Duration::from_millis(1500));
    let dumped = Dumped::of(&target);
    every_join_is_right(&dumped, &context);
    assert_eq!(dumped.counter(Counter::Faults), 0, "{context}");
    assert!(dumped.counter(Counter::Recorded) > 0, "{context}");
    assert!(dumped.counter(Counter::Collected) > 0, "{context}");
    println!(
        "{context}: {} recorded, {} classes, {} collected, {} live, {} sites, dropped {} full {} failed {} pending {} classes, {} thinnings",
        dumped.counter(Counter::Recorded),
        dumped.counter(Counter::Classes),
        dumped.counter(Counter::Collected),
        dumped.samples.len(),
        dumped.counter(Counter::Sites),
        dumped.counter(Counter::DroppedFull),
        dumped.counter(Counter::DroppedFailed),
        dumped.counter(Counter::DroppedPending),
        dumped.counter(Counter::DroppedClasses),
        dumped.counter(Counter::Thinnings),
    );
    let (well, errors) = target.finish_with_errors().unwrap();
    let unexpected: Vec<&str> = errors.lines().filter(|line| !expected(line)).collect();
    assert!(well && unexpected.is_empty(), "{context}: {unexpected:#?}");
}

#[test]
fn everything_at_once() {
    for jdk in jdks() {
        for collector in collectors(&jdk) {
            stress(&jdk, &[collector], "interval=16k", false);
        }
        stress(&jdk, &[], "interval=4k,max_samples=2000,depth=300", false);
        stress(&jdk, &[], "interval=16k,reaper=queue", false);
    }
}

#[test]
fn attached_while_busy() {
    for jdk in jdks() {
        stress(&jdk, &[], "interval=16k", true);
    }
}

#[test]
fn every_allocation_while_busy() {
    for jdk in jdks() {
        stress(&jdk, &[], "interval=0,max_samples=20000", false);
        stress(&jdk, &[], "strategy=class,rate=20,include=^Busy", false);
    }
}

/// The JVM ends while every thread allocates.
#[test]
fn the_jvm_ends_while_busy() {
    for jdk in jdks() {
        for run in 0..6 {
            let options = ["interval=0,max_samples=5000", "interval=1k,reaper=queue"][run % 2];
            let classes: PathBuf = jdk.compile(&programs::agent("Busy.java")).unwrap();
            let target = Launch::class(&jdk, classes, "Busy")
                .flag("-Xmx300m")
                .flags(CHECKED)
                .agent(&library(), options)
                .arg("0")
                .arg("exit")
                .start()
                .unwrap();
            let (well, errors) = target.finish_with_errors().unwrap();
            assert!(
                well && errors.is_empty(),
                "JDK {} {options}: {errors}",
                jdk.version()
            );
        }
    }
}

/// The heap is full. Samples are dropped and counted, and the JVM continues. The dump that the JVM writes by itself
/// contains the other samples.
#[test]
fn out_of_memory() {
    for jdk in jdks() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("oom.hprof");
        let mut path = OsString::from("-XX:HeapDumpPath=");
        path.push(&file);
        let classes: PathBuf = jdk.compile(&programs::agent("Exhaust.java")).unwrap();
        let mut target = Launch::class(&jdk, classes, "Exhaust")
            .flags(["-Xmx48m", "-XX:+HeapDumpOnOutOfMemoryError"])
            .flags(CHECKED)
            .flag(&path)
            .agent(&library(), "interval=1k,max_samples=500000")
            .start()
            .unwrap();
        target.wait_ready(1).unwrap();
        let dumped = Dumped::read(&file).expect("the dump has the agent's class");
        let filling = dumped.of_kind("Exhaust.fill", "Exhaust$Filling");
        let (mut objects, mut variance) = (0.0, 0.0);
        for sample in filling {
            let weight = dumped.sampling.weight(sample.size.cast_unsigned()).unwrap();
            objects += weight.objects;
            variance += weight.objects_variance;
        }
        let snapshot = Snapshot::open(&file, &Options::default(), &Silent).unwrap();
        let class = snapshot.classes().by_name("Exhaust$Filling");
        #[allow(clippy::cast_precision_loss, reason = "small")]
        let there = snapshot.instances(class).len() as f64;
        println!(
            "JDK {}: {objects:.0} objects estimated, {there} there",
            jdk.version()
        );
        assert!(
            there > 100_000.0 && (objects - there).abs() < 5.0 * variance.sqrt() + 0.02 * there
        );
        assert_eq!(dumped.counter(Counter::Faults), 0);
        // The agent has recovered from the full heap.
        target.advance(2).unwrap();
        let after = Dumped::of(&target);
        assert!(after.counter(Counter::Recorded) > dumped.counter(Counter::Recorded));
        assert_eq!(after.counter(Counter::Faults), 0);
        let (well, errors) = target.finish_with_errors().unwrap();
        assert!(well && !errors.contains("WARNING"), "{errors}");
    }
}
