//! Compares recordings of real JVMs with the event counts of the JDK's tool `jfr`.

use heapdiff_jfr::{Event, Recording, Sample};
use testdata::jvm::Jdk;
use testdata::recordings::{counts, record};

fn frames(recording: &Recording, sample: &Sample) -> Vec<String> {
    let names = &recording.names;
    let stack = names.stack(sample.stack);
    let frames = stack.frames.iter().map(|&f| names.frames()[f as usize]);
    let text = |f: heapdiff_jfr::Frame| format!("{}.{}", names.text(f.class), names.text(f.method));
    frames.map(text).collect()
}

fn recorded(jdk: &Jdk) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("leak.jfr");
    let kept = record(jdk, &file, 8).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(kept, 2400);
    let counts = counts(jdk, &file).unwrap_or_else(|e| panic!("{e}"));
    let recording = Recording::open(&file).unwrap_or_else(|e| panic!("{e}"));
    assert!(!recording.is_partial(), "{:?}", recording.damage);
    let count = |name: &str| counts.get(name).copied().unwrap_or(0) as usize;
    for event in [Event::Old, Event::Allocation] {
        let (read, counted) = (recording.of(event).count(), count(event.name()));
        assert_eq!(read, counted, "{} in {counts:?}", event.name());
        assert!(counted > 20, "{}: {counted}", event.name());
    }
    assert_eq!(recording.collections.len(), count("jdk.GarbageCollection"));
    assert_eq!(recording.heap.len(), count("jdk.GCHeapSummary"));
    let states = count("jdk.MetaspaceSummary") + count("jdk.ClassLoadingStatistics");
    assert_eq!(recording.states.len(), states);

    let jvm = recording.jvm.as_ref().expect("jdk.JVMInformation");
    assert!(jvm.version.contains(jdk.version()), "{jvm:?}");
    assert!(jvm.arguments.contains("-Xmx64m"), "{jvm:?}");
    assert!(jvm.command.starts_with("Recorded"), "{jvm:?}");

    let named = |sample: &&Sample, frame: &str| {
        let frames = frames(&recording, sample);
        frames.first().is_some_and(|f| f == frame)
    };
    let names = &recording.names;
    let leaked = recording
        .of(Event::Old)
        .filter(|s| named(s, "Recorded.leak"));
    let leaked: Vec<_> = leaked.collect();
    let old = recording.of(Event::Old).count();
    assert!(leaked.len() * 2 > old, "{} of {old}", leaked.len());
    for sample in &leaked {
        assert_eq!(&**names.text(sample.class), "byte[]");
        assert_eq!(&**names.text(sample.thread), "main");
        assert_eq!(sample.size, 3016);
        assert!((recording.from_ns..sample.time_ns).contains(&sample.allocated_ns));
        assert_eq!(
            frames(&recording, sample),
            ["Recorded.leak", "Recorded.main"]
        );
    }
    assert_eq!(recording.search_times().len(), 1);
    // The program allocates 8 x 300 x 30 arrays of 100 to 129 ints, and 8 x 300 arrays of 3000 bytes. The total may be
    // wrong by the weight of one sample. A weight is the number of bytes that a thread allocated since its last sample.
    // So the first weight includes the JVM's startup, and either of two alternating sites can get most of the weight.
    let churned = 8 * 300 * (0..30).map(|j| 16 + (100 + j) * 4).sum::<u64>();
    let exact = churned + 8 * 300 * 3016;
    let own = |sample: &&Sample| {
        let frames = frames(&recording, sample);
        frames.iter().any(|f| f.starts_with("Recorded."))
    };
    let main = recording.of(Event::Allocation);
    let main = main.filter(|s| &**names.text(s.thread) == "main");
    let sum: u64 = main.skip(1).filter(own).map(|s| s.weight).sum();
    assert!(sum.abs_diff(exact) < exact / 8, "{sum} of {exact}");

    let full = recording.collections.iter();
    let full = full.filter(|c| &**names.text(c.name) == "SerialOld");
    assert!(full.count() >= 8);
    let mut causes = recording.collections.iter().map(|c| names.text(c.cause));
    assert!(causes.any(|cause| &**cause == "System.gc()"));
    let after: Vec<u64> = recording
        .heap
        .iter()
        .filter(|h| h.is_after)
        .map(|h| h.heap_used)
        .collect();
    assert!(after.last() > after.first(), "{after:?}");
    assert!(
        recording
            .heap
            .iter()
            .all(|h| h.heap_committed >= h.heap_used)
    );
}

#[test]
fn jdk_17() {
    recorded(&Jdk::with_major(17).unwrap_or_else(|e| panic!("{e}")));
}

#[test]
fn the_newest_jdk() {
    recorded(&Jdk::all_for_scenarios().pop().expect("a JDK"));
}
