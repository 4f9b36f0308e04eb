//! Compares virtual threads in two dumps: a snapshot by a forked child, and a dump that the JVM writes at the same
//! moment.

use std::collections::BTreeMap;

use hprof::records::RootKind;
use hprof::{ObjectIndex, Snapshot};
use testdata::jvm::{DumpOptions, Jdk, Launch, Target};
use testdata::programs;

use crate::CHECKED;
use crate::forked::{PATIENCE, frames, histogram, jdks, open, started, take};

const THREADS: u32 = 2500;

fn launch(jdk: &Jdk, threads: u32) -> Launch {
    let classes = jdk.compile(&programs::agent("Parked.java")).unwrap();
    Launch::class(jdk, classes, "Parked")
        .flags(["-Xmx512m", "-XX:+EnableDynamicAgentLoading"])
        .arg(threads.to_string())
        .timeout(PATIENCE)
}

/// Takes a forked snapshot of the program.
fn forked(target: &Target) -> Snapshot {
    let folder = tempfile::tempdir().unwrap();
    // Take two snapshots, because the JVM creates some objects during the first one.
    take(target, folder.path());
    open(&take(target, folder.path()))
}

/// Returns for each thread, by its name: its frames, the retained size of its thread object, and the class of the
/// dominator of this object.
fn threads(snapshot: &Snapshot) -> BTreeMap<String, (bool, Vec<String>, u64, String)> {
    let of = |thread: &hprof::answers::Thread| {
        let object = thread.object.unwrap();
        let retained = snapshot.retained_bytes(object).unwrap();
        let name = thread.name.clone().unwrap();
        let holder = holder(snapshot, object);
        (
            name,
            (
                thread.is_virtual,
                frames(snapshot, thread),
                retained,
                holder,
            ),
        )
    };
    let threads = snapshot.threads();
    // Leave out the thread that takes the dump, because it differs between the two dumps.
    let others = threads
        .iter()
        .filter(|thread| thread.name.as_deref() != Some("Attach Listener"));
    others.map(of).collect()
}

/// Returns the class of an object's dominator.
fn holder(snapshot: &Snapshot, object: ObjectIndex) -> String {
    let dominator = snapshot
        .tree()
        .dominator(object)
        .and_then(|node| snapshot.tree().object(node));
    dominator.map_or_else(
        || "GC root".to_owned(),
        |by| snapshot.class(by).unwrap().name.to_string(),
    )
}

/// Counts two kinds of GC roots by class and kind of root: thread objects, and objects held by frames of threads.
fn thread_roots(snapshot: &Snapshot) -> BTreeMap<(String, String), u32> {
    let mut counts = BTreeMap::new();
    let kinds = [RootKind::Thread, RootKind::JavaFrame];
    for root in snapshot
        .gc_roots()
        .iter()
        .filter(|root| kinds.contains(&root.kind))
    {
        let object = snapshot.find(root.id).unwrap();
        let class = snapshot.name(object);
        let class = class.split(['@', ' ']).next().unwrap().to_owned();
        *counts
            .entry((format!("{:?}", root.kind), class))
            .or_default() += 1;
    }
    counts
}

#[test]
fn virtual_threads_equal_those_in_a_dump_of_the_jvm() {
    // Before JDK 22, the JVM's own dumps have no frames of virtual threads.
    for jdk in jdks().into_iter().filter(|jdk| jdk.major() >= 22) {
        let target = started(&launch(&jdk, THREADS));
        let ours = forked(&target);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("own.hprof");
        target.dump(&file, DumpOptions::default()).unwrap();
        let theirs = open(&file);
        let (a, b) = (threads(&ours), threads(&theirs));
        let names = |threads: &BTreeMap<String, _>| threads.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&a), names(&b));
        let virtual_ones = a.values().filter(|thread| thread.0).count();
        assert_eq!(virtual_ones, THREADS as usize + 1);
        for (name, thread) in &a {
            assert_eq!(thread.1, b[name].1, "frames of {name}");
            if thread.0 {
                assert_eq!((thread.2, &thread.3), (b[name].2, &b[name].3), "{name}");
            }
        }
        let roots = (thread_roots(&ours), thread_roots(&theirs));
        assert_eq!(roots.0, roots.1);
        let (a, b) = (histogram(&ours), histogram(&theirs));
        for class in [
            "Parked$Request",
            "java.lang.VirtualThread",
            "jdk.internal.vm.StackChunk",
            "java.lang.VirtualThread$VThreadContinuation",
        ] {
            assert_eq!(a[class], b[class], "{class}");
        }
        assert_eq!(a["Parked$Request"].0, u64::from(THREADS) + 1);
        let held = |snapshot: &Snapshot| {
            let class = snapshot.classes().by_name("Parked")[0];
            let gate = snapshot.static_value(class, "gate").unwrap();
            snapshot.retained_bytes(gate.object().unwrap())
        };
        assert_eq!(held(&ours), held(&theirs));
        println!("JDK {}: {THREADS} parked threads alike", jdk.version());
        assert!(target.finish().unwrap());
    }
}

#[test]
fn parked_threads_have_frames_from_jdk_21_on() {
    for jdk in jdks().into_iter().filter(|jdk| jdk.major() >= 21) {
        // If the flag is `false`, the virtual threads of this test are in no thread container of the JDK. So the agent
        // does not find these threads there, and the dump contains only the frames that hold objects.
        for flag in ["-Djdk.trackAllThreads=true", "-Djdk.trackAllThreads=false"] {
            let target = started(&launch(&jdk, 20).flag(flag).flags(CHECKED));
            let snapshot = forked(&target);
            let threads = threads(&snapshot);
            let requests = threads
                .iter()
                .filter(|(name, _)| name.starts_with("request "));
            let mut seen = 0;
            for (name, (_, frames, _, _)) in requests {
                let served = frames
                    .iter()
                    .find(|f| f.contains("Parked.serve(Parked.java:"));
                let served = served.unwrap_or_else(|| panic!("{flag} {name}: {frames:#?}"));
                assert!(served.contains("Object[]"), "{served}");
                seen += 1;
            }
            assert_eq!(seen, 20);
            // No platform thread holds local variables of a virtual thread.
            let main = threads["main"].1.join("\n");
            assert!(!main.contains("Request"), "{main}");
            let (well, errors) = target.finish_with_errors().unwrap();
            assert!(well);
            assert_eq!(errors, "", "JDK {}", jdk.version());
        }
    }
}
