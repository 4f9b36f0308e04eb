//! Tests loading the agent at the JVM's start and later, with invalid options, and together with another agent.

use std::fs;

use heapdiff_sites::{Counter, attach};
use hprof::answers::Content;
use hprof::{Options, Silent, Snapshot};
use testdata::jvm::{DumpOptions, Launch, Target};
use testdata::programs;

use crate::dumped::Dumped;
use crate::{CHECKED, jdks, launch, library};

#[test]
fn wrong_options_leave_the_jvm_alone() {
    for jdk in jdks() {
        for (options, said) in [
            ("interval=5x", "option \"interval\" cannot be \"5x\""),
            (
                "sampling=1",
                "unknown option \"sampling\"; the options are interval, depth, include",
            ),
            ("include=[", "option \"include\""),
            ("embed=off", "stores samples in a trace only"),
            ("retain=1h", "\"retain\" needs trace=FILE"),
        ] {
            let mut target = launch(&jdk, "Steady", options).arg("10").start().unwrap();
            target.wait_ready(1).unwrap();
            let classes = target.histogram(testdata::jvm::Selection::Live).unwrap();
            assert_eq!(classes.instances("heapdiff.SampleRef"), 0);
            let (well, errors) = target.finish_with_errors().unwrap();
            let lines: Vec<&str> = errors.lines().filter(|l| l.contains("heapdiff")).collect();
            assert!(well && lines.len() == 1, "{errors}");
            assert!(lines[0].contains(said), "{errors}");
        }
    }
}

#[test]
fn a_jvm_with_the_agent_is_silent() {
    for jdk in jdks() {
        for options in [
            "",
            "interval=0",
            "interval=64k,reaper=queue,verbosity=class",
        ] {
            let mut target = launch(&jdk, "Steady", options)
                .flag("-Xmx128m")
                .flags(CHECKED)
                .flags([
                    "-XX:+UnlockDiagnosticVMOptions",
                    "-XX:+BytecodeVerificationLocal",
                ])
                .arg("1000")
                .start()
                .unwrap();
            target.wait_ready(1).unwrap();
            target.advance(2).unwrap();
            let (well, errors) = target.finish_with_errors().unwrap();
            assert!(well);
            assert_eq!(errors, "", "JDK {}, options {options:?}", jdk.version());
        }
    }
}

#[test]
fn the_same_agent_twice() {
    for jdk in jdks() {
        let mut target = launch(&jdk, "Steady", "interval=0")
            .agent(&library(), "interval=64k")
            .arg("100")
            .start()
            .unwrap();
        target.wait_ready(1).unwrap();
        assert_eq!(Dumped::of(&target).sampling.interval, 0);
        let answer = target.load_agent(&library(), "interval=0").unwrap();
        assert!(
            answer.contains(&attach::ALREADY_LOADED.to_string()),
            "{answer}"
        );
        let (well, errors) = target.finish_with_errors().unwrap();
        let lines = errors
            .lines()
            .filter(|l| l.contains("the agent is already loaded and keeps its options"));
        assert!(well && lines.count() == 2, "{errors}");
    }
}

#[test]
fn another_sampling_agent() {
    for jdk in jdks() {
        // If the library is copied under another name, the JVM treats the copy as another agent.
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("libother.so");
        fs::copy(library(), &copy).unwrap();
        let mut target = launch(&jdk, "Steady", "interval=0")
            .agent(&copy, "interval=64k")
            .arg("100")
            .start()
            .unwrap();
        target.wait_ready(1).unwrap();
        let third = folder.path().join("libthird.so");
        fs::copy(library(), &third).unwrap();
        let answer = target.load_agent(&third, "").unwrap();
        assert!(
            answer.contains(&attach::OTHER_SAMPLER.to_string()),
            "{answer}"
        );
        assert_eq!(
            Dumped::of(&target)
                .of_kind("Steady.keep", "Steady$Kept")
                .len(),
            100
        );
        let (well, errors) = target.finish_with_errors().unwrap();
        let lines: Vec<&str> = errors
            .lines()
            .filter(|l| l.contains("JVMTI error 98"))
            .collect();
        assert!(well && lines.len() == 2, "{errors}");
    }
}

/// Attaches the agent to a JVM that is still in its initialization. Another agent delays the initialization.
#[test]
fn attached_while_another_agent_holds_up_the_start() {
    for jdk in jdks() {
        let folder = tempfile::tempdir().unwrap();
        let classes = jdk.compile(&programs::agent("HeldUp.java")).unwrap();
        let jar = jdk.agent_jar("HeldUp", "", folder.path()).unwrap();
        let mut target = Launch::class(&jdk, classes, "HeldUp")
            .flag(format!("-javaagent:{}", jar.display()))
            .start()
            .unwrap();
        target.wait_ready(1).unwrap();
        let answer = target.load_agent(&library(), "interval=1k").unwrap();
        assert!(answer.contains("return code: 0"), "{answer}");
        target.advance(2).unwrap();
        let dumped = Dumped::of(&target);
        assert!(dumped.counter(Counter::Recorded) > 100);
        assert_eq!(dumped.counter(Counter::Faults), 0);
        let (well, errors) = target.finish_with_errors().unwrap();
        assert!(well && !errors.contains("not started"), "{errors}");
    }
}

#[test]
fn attached_late() {
    for jdk in jdks() {
        let classes = jdk.compile(&programs::agent("Steady.java")).unwrap();
        let mut target = Launch::class(&jdk, classes, "Steady")
            .arg("3000")
            .start()
            .unwrap();
        target.wait_ready(1).unwrap();
        let answer = target.load_agent(&library(), "no=thing").unwrap();
        assert!(
            answer.contains(&attach::BAD_OPTIONS.to_string()),
            "{answer}"
        );
        // After the agent has refused invalid options, it accepts valid options.
        let answer = target.load_agent(&library(), "interval=0").unwrap();
        assert!(answer.contains("return code: 0"), "{answer}");
        // On JDK 17, a thread uses its old interval until its next sample. This sample comes after 512 KiB on average.
        let mut kept = 0;
        for phase in 2..=20 {
            target.advance(phase).unwrap();
            let dumped = Dumped::of(&target);
            let now = dumped.of_kind("Steady.keep", "Steady$Kept").len();
            if now - kept == 3000 {
                break;
            }
            assert!(phase < 20, "{kept} kept, then {now}");
            kept = now;
        }
        let answer = target.load_agent(&library(), "interval=0").unwrap();
        assert!(
            answer.contains(&attach::ALREADY_LOADED.to_string()),
            "{answer}"
        );
        assert!(target.finish().unwrap());
    }
}

/// Counts the arrays of length `PIECES` in the heap. Each agent creates one such array, which refers to the arrays of
/// its site table.
fn site_tables(target: &Target) -> usize {
    const PIECES: u32 = 2048;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("heap.hprof");
    target.dump(&file, DumpOptions::default()).unwrap();
    let snapshot = Snapshot::open(&file, &Options::default(), &Silent).unwrap();
    let arrays = snapshot.instances(snapshot.classes().by_name("java.lang.Object[]"));
    let read = snapshot.read_all(&arrays).into_iter();
    read.filter(|record| match &record.as_ref().unwrap().content {
        Content::Array(array) => array.len == PIECES,
        _ => false,
    })
    .count()
}

/// When an agent is detached, its sampling state is freed. The heap keeps only the tables of the last agent.
#[test]
fn attached_and_detached_again_and_again() {
    for jdk in jdks() {
        let classes = jdk.compile(&programs::agent("Steady.java")).unwrap();
        let mut target = Launch::class(&jdk, classes, "Steady")
            .flags(CHECKED)
            .arg("3000")
            .start()
            .unwrap();
        target.wait_ready(1).unwrap();
        let before = site_tables(&target);
        let ask = |options: &str, code: i32| {
            let answer = target.load_agent(&library(), options).unwrap();
            assert!(answer.contains(&format!("return code: {code}")), "{answer}");
        };
        for round in 0..10 {
            let first = if round == 0 { "" } else { attach::CHANGE };
            ask(&format!("{first}interval=1k"), attach::DONE);
            // Options can also be changed without detaching the agent first.
            ask(&format!("{}interval=2k", attach::CHANGE), attach::CHANGED);
            ask(attach::DETACH, attach::DETACHED);
        }
        assert_eq!(site_tables(&target), before + 1, "JDK {}", jdk.version());
        ask(&format!("{}interval=0", attach::CHANGE), attach::DONE);
        // On JDK 17, a thread uses its old interval until its next sample. This sample comes after 512 KiB on average.
        for phase in 2..=20 {
            target.advance(phase).unwrap();
            let dumped = Dumped::of(&target);
            dumped.assert_complete();
            if !dumped.of_kind("Steady.keep", "Steady$Kept").is_empty() {
                break;
            }
            assert!(phase < 20, "JDK {}", jdk.version());
            println!("JDK {}: nothing sampled in phase {phase}", jdk.version());
        }
        let (well, errors) = target.finish_with_errors().unwrap();
        assert!(well && !errors.contains("WARNING in native"), "{errors}");
    }
}

#[test]
fn a_delay_before_the_first_sample() {
    for jdk in jdks() {
        let mut target = launch(&jdk, "Steady", "interval=0,delay=4")
            .arg("50")
            .start()
            .unwrap();
        target.wait_ready(1).unwrap();
        let before = Dumped::of(&target);
        assert_eq!(before.counter(Counter::Events), 0);
        assert!(before.samples.is_empty() && before.classes.is_empty());
        std::thread::sleep(std::time::Duration::from_secs(4));
        let mut phase = 2;
        loop {
            target.advance(phase).unwrap();
            let dumped = Dumped::of(&target);
            if !dumped.of_kind("Steady.keep", "Steady$Kept").is_empty() {
                assert!(dumped.samples.iter().all(|s| s.time >= 4000));
                break;
            }
            phase += 1;
            assert!(phase < 20, "no sample after the delay");
        }
        assert!(target.finish().unwrap());
    }
}

/// The agent panics in GC callbacks, where JVMTI forbids disabling events. So the agent's thread disables the events,
/// and later GCs do not call the agent. If a callback tried to disable the events, the JVM would refuse, and each later
/// GC would panic again.
#[test]
fn panics_in_gc_callbacks_disable_the_agent() {
    const COLLECTIONS_AFTER: u32 = 6;
    for jdk in jdks() {
        for callback in ["gc-start", "gc-finish"] {
            let folder = tempfile::tempdir().unwrap();
            let trace = folder.path().join("t.db");
            let mut target = launch(&jdk, "Steady", &format!("trace={}", trace.display()))
                .flag("-XX:+UseSerialGC")
                .env("HEAPDIFF_AGENT_PANIC", callback)
                .arg("100")
                .start()
                .unwrap();
            // Each phase runs one GC and then waits for a fifth of a second.
            target.wait_ready(1).unwrap();
            for phase in 2..=3 + COLLECTIONS_AFTER {
                target.advance(phase).unwrap();
            }
            let (well, errors) = target.finish_with_errors().unwrap();
            let lines = |part: &str| errors.lines().filter(|l| l.contains(part)).count();
            let version = jdk.version();
            assert!(well, "JDK {version}, {callback}: {errors}");
            assert_eq!(
                (
                    lines("internal error: "),
                    lines("stopped after repeated internal errors")
                ),
                (3, 1),
                "JDK {version}, {callback}: {errors}"
            );
            assert_eq!(errors.lines().count(), 4, "{errors}");
            assert!(trace.is_file());
        }
    }
}

#[test]
fn only_messages_of_the_chosen_level_are_printed() {
    for jdk in jdks() {
        for (level, expected) in [
            ("error", [false; 3]),
            ("warn", [false; 3]),
            ("info", [true, false, false]),
            ("debug", [true; 3]),
        ] {
            let options = format!("interval=0,max_samples=8000,classes=off,usage=on,log={level}");
            let mut target = launch(&jdk, "Steady", &options)
                .flag("-Xmx128m")
                .arg("10000")
                .start()
                .unwrap();
            target.wait_ready(1).unwrap();
            target.advance(2).unwrap();
            let (well, errors) = target.finish_with_errors().unwrap();
            assert!(well, "{errors}");
            let messages = [
                "heapdiff agent: usage: counting puts, removals and reads",
                "heapdiff agent: started with options \"interval=0,",
                "heapdiff agent: the table of samples is too small",
            ];
            let printed = messages.map(|message| errors.contains(message));
            assert_eq!(printed, expected, "{level} on {jdk:?}: {errors}");
        }
    }
}
