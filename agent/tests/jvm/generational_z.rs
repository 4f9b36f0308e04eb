//! Tests the agent with generational ZGC. Its young GCs keep sampled objects alive. So the agent tracks only few
//! samples, but counts all samples.

use std::time::{Duration, Instant};

use heapdiff_sites::{Counter, attach};
use testdata::jvm::{DumpOptions, Jdk, Launch, Selection, Target};

use crate::dumped::Dumped;
use crate::traced::Traced;
use crate::{CHECKED, jdks, launch, library};

/// Number of objects that the program keeps. The program drops fifty times as many objects.
const KEPT: f64 = 100_000.0;
/// Size of each object in bytes: the header and ten numbers.
const SIZE: u64 = 96;
/// Maximum number of unproven samples in a heap of 64 MB. An unproven sample is a sample of which no GC has shown yet
/// whether it is live or dead. All unproven samples together may take 1/200 of the heap, and each sample counts with
/// the object's size plus 160 bytes.
const MOST: usize = (64 << 20) / 200 / (SIZE as usize + 160);

/// Returns the flags of generational ZGC, or `None` if the JDK does not have it.
fn flags(jdk: &Jdk) -> Option<&'static [&'static str]> {
    match jdk.major() {
        ..21 => None,
        21..23 => Some(&["-XX:+UseZGC", "-XX:+ZGenerational"]),
        _ => Some(&["-XX:+UseZGC"]),
    }
}

/// Starts a program that keeps some objects and drops many more. The agent is loaded only if `options` is given.
fn aside(jdk: &Jdk, flags: &[&str], options: Option<&str>) -> Target {
    let started = match options {
        Some(options) => launch(jdk, "Aside", options),
        None => {
            let source = testdata::programs::agent("Aside.java");
            Launch::class(jdk, jdk.compile(&source).unwrap(), "Aside")
        }
    };
    started
        .flag("-Xmx64m")
        .flags(flags)
        .flags(CHECKED)
        .flag("-XX:+EnableDynamicAgentLoading")
        .arg(KEPT.to_string())
        .timeout(Duration::from_secs(180))
        .start()
        .unwrap()
}

/// Takes a dump of the whole heap, including unreachable objects. No GC runs before the dump.
fn dumped(target: &Target) -> Dumped {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("heap.hprof");
    let options = DumpOptions {
        selection: Selection::All,
        ..DumpOptions::default()
    };
    target.dump(&file, options).unwrap();
    Dumped::read(&file).expect("the dump has the agent's class")
}

/// Checks the number of samples that were taken. It must be about the same as with a collector for which the agent
/// tracks all samples. Returns the number of lost samples.
fn assert_all_are_taken(dumped: &Dumped) -> f64 {
    let weight = dumped.first.weight(SIZE).unwrap();
    let taken = f64::from(i32::try_from(dumped.taken("Aside.drop")).unwrap());
    let lost = f64::from(i32::try_from(dumped.counter(Counter::DroppedFull)).unwrap());
    let truth = 50.0 * KEPT / weight.objects;
    assert!(
        (taken - truth).abs() <= 4.0 * truth.sqrt() + lost,
        "{taken} of {truth}, {lost} lost"
    );
    lost
}

/// Without the agent's option `follow`, at most eighty samples are tracked in ten seconds.
#[test]
fn fast_allocation_tracks_few_samples() {
    for jdk in jdks() {
        let Some(flags) = flags(&jdk) else { continue };
        let start = Instant::now();
        let mut target = aside(&jdk, flags, Some("interval=16k"));
        target.wait_ready(1).unwrap();
        let dumped = dumped(&target);
        let windows = usize::try_from(start.elapsed().as_secs() / 10 + 1).unwrap();
        println!(
            "JDK {}: {} samples of {} in {windows} windows, interval {}",
            jdk.version(),
            dumped.samples.len(),
            dumped.counter(Counter::Recorded),
            dumped.sampling.interval,
        );
        assert!(dumped.counter(Counter::Thinnings) > 0);
        assert!(dumped.sampling.interval > dumped.first.interval);
        assert_eq!(dumped.first.interval, 16 << 10);
        // The agent discards each tracked sample with a probability of 1/2, so slightly more samples than the limit may
        // be left.
        let most = 80 * windows + 40;
        assert!(dumped.samples.len() <= most, "{}", dumped.samples.len());
        assert_all_are_taken(&dumped);
        let bytes = 50 * SIZE * 100_000;
        let followed = bytes / dumped.sampling.interval;
        assert!(
            followed <= 2 * most as u64,
            "{followed} at the end's interval"
        );
        let (well, errors) = target.finish_with_errors().unwrap();
        assert!(well && errors.is_empty(), "{errors}");
    }
}

/// In JDK 23 and earlier, ZGC can also run without generations. Then the agent tracks all samples, at any allocation
/// rate.
#[test]
fn zgc_without_generations_tracks_all_samples() {
    for jdk in jdks() {
        let flags: &[&str] = match jdk.major() {
            ..23 => &["-XX:+UseZGC"],
            23 => &["-XX:+UseZGC", "-XX:-ZGenerational"],
            _ => continue,
        };
        let mut target = aside(&jdk, flags, Some("interval=16k"));
        target.wait_ready(1).unwrap();
        let dumped = dumped(&target);
        assert!(dumped.counter(Counter::Recorded) > 20_000);
        assert_eq!(
            dumped.counter(Counter::Thinnings),
            0,
            "JDK {}",
            jdk.version()
        );
        assert_eq!(dumped.sampling, dumped.first);
        assert!(target.finish().unwrap());
    }
}

/// The trace reports young and full GCs as the JVM's beans do.
#[test]
fn a_trace_distinguishes_young_and_full_gcs() {
    for jdk in jdks() {
        let Some(flags) = flags(&jdk) else { continue };
        let traced = Traced::new();
        let options = traced.options("interval=64k,tick=200ms");
        let mut target = aside(&jdk, flags, Some(&options));
        target.wait_ready(1).unwrap();
        traced.wait("SELECT count(*) FROM collection WHERE collector = 'ZGC Minor Cycles'");
        target.histogram(Selection::Live).unwrap();
        traced.wait("SELECT count(*) FROM collection WHERE collector = 'ZGC Major Cycles'");
        let wrong =
            "SELECT count(*) FROM collection WHERE major <> (collector = 'ZGC Major Cycles')";
        assert_eq!(traced.number(wrong), 0, "JDK {}", jdk.version());
        traced.wait(
            "SELECT count(*) FROM note WHERE text LIKE '%tracks only one sampled object per%'",
        );
        assert!(target.finish().unwrap());
    }
}

/// Runs a program that keeps `kept` objects in a heap of at most `heap`. Returns a dump of this heap.
fn steady(jdk: &Jdk, flags: &[&str], options: &str, heap: &str, kept: &str) -> Dumped {
    let mut target = launch(jdk, "Steady", options)
        .flag(format!("-Xmx{heap}"))
        .flags(flags)
        .arg(kept)
        .start()
        .unwrap();
    target.wait_ready(1).unwrap();
    let dumped = Dumped::of(&target);
    assert!(target.finish().unwrap());
    dumped
}

/// Allocates some ten megabytes, with one sample every 256 KiB.
fn slowly(jdk: &Jdk, flags: &[&str], heap: &str) -> Dumped {
    let dumped = steady(jdk, flags, "interval=256k", heap, "40000");
    println!(
        "JDK {}, {heap}: {} samples",
        jdk.version(),
        dumped.counter(Counter::Recorded)
    );
    assert_eq!(dumped.first.interval, 256 << 10);
    dumped
}

#[test]
fn slow_allocation_tracks_all_samples() {
    for jdk in jdks() {
        let Some(flags) = flags(&jdk) else { continue };
        let dumped = slowly(&jdk, flags, "640m");
        assert!(dumped.counter(Counter::Recorded) > 5);
        let changes = [Counter::Thinnings, Counter::Thinned].map(|c| dumped.counter(c));
        assert_eq!(changes, [0, 0]);
        assert_eq!(dumped.sampling, dumped.first);
    }
}

/// In a heap of 64 MiB, only eight samples in ten seconds are tracked, because a memory page is a larger part of a
/// small heap.
#[test]
fn a_small_heap_tracks_fewer_samples() {
    for jdk in jdks() {
        let Some(flags) = flags(&jdk) else { continue };
        let dumped = slowly(&jdk, flags, "64m");
        assert!(dumped.counter(Counter::Thinnings) > 0);
        assert!(dumped.sampling.interval > dumped.first.interval);
    }
}

#[test]
fn few_samples_are_tracked_and_all_are_counted() {
    for jdk in jdks() {
        let Some(flags) = flags(&jdk) else { continue };
        let mut target = aside(&jdk, flags, Some("interval=16k,follow=256k"));
        target.wait_ready(1).unwrap();
        let first = dumped(&target);
        let garbage = |dumped: &Dumped| dumped.of_kind("Aside.drop", "Aside$Dropped").len();
        println!(
            "JDK {}: {} of {} samples are garbage, interval {}, {} dropped, {} collections",
            jdk.version(),
            garbage(&first),
            first.counter(Counter::Recorded),
            first.sampling.interval,
            first.counter(Counter::DroppedFull),
            first.counter(Counter::Collections),
        );
        assert!(first.counter(Counter::Recorded) > 20_000);
        assert!(garbage(&first) <= MOST, "{} of {MOST}", garbage(&first));
        assert!(first.counter(Counter::Thinnings) > 0);
        assert!(first.sampling.interval > first.first.interval && first.first.interval == 16 << 10);
        let lost = assert_all_are_taken(&first);
        // After a full GC, the agent has only samples of kept objects, and the estimate is correct.
        target.advance(2).unwrap();
        let second = dumped(&target);
        let kept = second.of_kind("Aside.keep", "Aside$Kept");
        assert!(!kept.is_empty());
        let weight = second.sampling.weight(SIZE).unwrap();
        let count = f64::from(u32::try_from(kept.len()).unwrap());
        let (objects, deviation) = (count * weight.objects, (KEPT * weight.objects).sqrt());
        println!(
            "JDK {}: {count} samples stand for {objects:.0} objects",
            jdk.version()
        );
        assert!(
            (objects - KEPT).abs() <= 4.0 * deviation + lost * weight.objects,
            "{objects:.0} +- {deviation:.0} of {KEPT}"
        );
        assert!(
            garbage(&second) <= garbage(&first) / 4,
            "{}",
            garbage(&second)
        );
        let (well, errors) = target.finish_with_errors().unwrap();
        assert!(well && errors.is_empty(), "{errors}");
    }
}

#[test]
fn detached_and_attached_again() {
    for jdk in jdks() {
        let Some(flags) = flags(&jdk) else { continue };
        let mut target = aside(&jdk, flags, None);
        target.wait_ready(1).unwrap();
        let load = |options: &str| target.load_agent(&library(), options).unwrap();
        for _ in 0..2 {
            let answer = load("interval=1k");
            assert!(answer.contains("return code: 0"), "{answer}");
            let answer = load(attach::DETACH);
            assert!(answer.contains(&attach::DETACHED.to_string()), "{answer}");
        }
        target.advance(2).unwrap();
        let (well, errors) = target.finish_with_errors().unwrap();
        assert!(well && errors.is_empty(), "{errors}");
    }
}

/// If the user asks for a sample of every allocation, all samples are tracked.
#[test]
fn every_allocation_is_tracked_on_request() {
    for jdk in jdks() {
        let Some(flags) = flags(&jdk) else { continue };
        let dumped = steady(&jdk, flags, "interval=0", "64m", "1000");
        assert_eq!(dumped.of_kind("Steady.keep", "Steady$Kept").len(), 1000);
        assert_eq!(dumped.counter(Counter::Thinnings), 0);
    }
}
