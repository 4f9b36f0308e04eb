//! Tests the stacks that allocated each leak. The dumps are of real JVMs in which the agent is loaded.

use std::path::Path;
use std::process::Command;

use crate::common::{self, of_files, of_target};
use heapdiff_diff::samples::{AgentObjects, Samples};
use heapdiff_diff::{Report, Stack, by_site};
use heapdiff_sites::Counter;
use hprof::{Options, Silent, Snapshot, Source};
use testdata::jvm::{DumpOptions, Jdk, Launch, Selection, Target};
use testdata::programs;
use testdata::programs::agent_library as library;
use testdata::scenarios::{self, Mode, Scenario};

fn jdks() -> Vec<Jdk> {
    let jdks = Jdk::all_for_scenarios();
    assert!(!jdks.is_empty(), "no JDK found");
    jdks
}

/// Returns the mean number of bytes between samples. With ZGC, every allocation is sampled (0), because the agent
/// otherwise tracks only few samples in Generational ZGC.
fn interval(flags: &[&str]) -> u64 {
    if flags.contains(&"-XX:+UseZGC") {
        0
    } else {
        4096
    }
}

/// Compares two dumps of a scenario that runs with the agent. The scenario runs one phase between the dumps.
fn diff(jdk: &Jdk, scenario: &Scenario, mode: Mode, flags: &[&str], dir: &Path) -> Report {
    let options = format!("interval={}", interval(flags));
    let launch = scenario.launch(jdk, mode).unwrap().flags(flags);
    diff_of(&launch.agent(&library(), &options), dir)
}

fn diff_of(launch: &Launch, dir: &Path) -> Report {
    let mut target = launch.start().unwrap();
    target.wait_ready(1).unwrap();
    of_target(target, dir)
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

/// Returns a description of what is wrong in a report on a scenario's leak. Returns `None` if the report is right.
fn fault(scenario: &Scenario, report: &Report, interval: u64) -> Option<String> {
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
    // At an interval of 4 KiB, one megabyte of small objects has 256 samples, which is a standard error of 6 %. The
    // permitted range is four and a half standard errors.
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
        .any(|a| same(a) != same(&agents[0]) || a.interval_bytes != interval)
    {
        return Some(format!("{agents:?}"));
    }
    own_objects(report)
}

/// Checks that the agent's objects are not in the report and that the agent lost no samples. Returns a description of
/// the error, if there is one.
fn own_objects(report: &Report) -> Option<String> {
    let mut warnings = report.snapshots.iter().flat_map(|s| &s.warnings);
    shown(report).or_else(|| warnings.next().cloned())
}

/// Checks that the agent's objects are not in the report. Returns a description of the error, if there is one.
fn shown(report: &Report) -> Option<String> {
    let is_own = |name: &str| name.contains("heapdiff");
    let class = report.classes.iter().map(|c| &c.class).find(|c| is_own(c));
    let suspect = report.suspects.iter().find(|s| {
        let path = s.path.iter().any(|p| is_own(p));
        path || is_own(&s.holder) || is_own(&s.class) || is_own(&s.root)
    });
    class
        .or(suspect.map(|s| &s.holder))
        .map(|found| format!("it shows {found}"))
}

#[test]
fn each_leak_is_named_with_the_stack_that_allocated_it() {
    let mut failures = String::new();
    for jdk in jdks() {
        for scenario in scenarios::CORE {
            let dir = tempfile::tempdir().unwrap();
            let report = diff(&jdk, scenario, Mode::Leak, &["-XX:+UseG1GC"], dir.path());
            if let Some(fault) = fault(scenario, &report, interval(&[])) {
                let (major, found) = (jdk.major(), describe(&report));
                failures += &format!("JDK {major} {}: {fault}, found\n{found}", scenario.name);
            }
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

/// The control program does the same work, but has no leak. Only the agent's own data grows.
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
fn leaks_have_their_stack_with_every_collector() {
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
            let fault = fault(scenario, &report, interval(&[&flag]));
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

/// With generational ZGC, almost no sample is tracked. In that case, the report shows the stack whose last sample was
/// of the leaking class.
#[test]
fn without_tracked_samples_the_class_has_the_right_stack() {
    let names = ["static_list", "listeners", "event_bus"];
    for jdk in jdks().into_iter().filter(|jdk| jdk.major() >= 25) {
        for name in names {
            let scenario = scenarios::by_name(name).unwrap();
            let told = |options: &str, flag: &str| {
                let dir = tempfile::tempdir().unwrap();
                let launch = scenario.launch(&jdk, Mode::Leak).unwrap().flag(flag);
                let report = diff_of(&launch.agent(&library(), options), dir.path());
                println!("{}", describe(&report));
                report.suspects.into_iter().next().unwrap()
            };
            let few = told("interval=4k,follow=1g", "-XX:+UseZGC");
            let first = few.allocated_at.first();
            let first = first.unwrap_or_else(|| panic!("{name}: {few:#?}"));
            assert!(few.stacks.is_empty() && first.samples > 0, "{name}");
            assert!(scenario.accepts_stack(&first.frames), "{name}: {first:?}");
            // If all samples are tracked, the report shows the stacks that allocated the objects of the suspect.
            for (options, flag) in [
                ("interval=0", "-XX:+UseZGC"),
                ("interval=4k", "-XX:+UseG1GC"),
            ] {
                let all = told(options, flag);
                assert!(
                    all.allocated_at.is_empty() && !all.stacks.is_empty(),
                    "{name} {flag}"
                );
            }
        }
    }
}

/// Starts `Orders` with an agent that samples every allocation. `Orders` processes 2,000 orders.
fn orders(jdk: &Jdk, flags: &[String]) -> Target {
    let classes = jdk.compile(&programs::agent("Orders.java")).unwrap();
    let launch = Launch::class(jdk, classes, "Orders").flags(flags);
    let launch = launch.flag("-Xmx64m").agent(&library(), "interval=0");
    let mut target = launch.start().unwrap();
    target.wait_ready(1).unwrap();
    target
}

/// Returns the suspect's stack that allocated the `long[]` of the orders.
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

/// Because every allocation is sampled, the figures are exactly those of the heap.
#[test]
fn figures_are_exact_for_every_way_to_take_a_dump() {
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
            // A `long[8]` has 80 bytes.
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

/// Checks reports on single dumps. The report on the dump of an `OutOfMemoryError` has to name the thread that failed,
/// and the list that filled the heap. The report on the earlier dump must not name a thread.
fn assert_died(before: &Path, last: &Path) {
    let [before, last] = [before, last].map(|path| common::alone(Source::open(path).unwrap()));
    assert_eq!(before.died, None);
    let died = last.died.unwrap();
    assert_eq!(died.thread.as_deref(), Some("main"));
    assert!(
        died.frames.iter().any(|f| f.starts_with("Orders.")),
        "{died:?}"
    );
    assert!(!died.frames[0].contains("OutOfMemoryError"), "{died:?}");
    let suspect = last.suspects.first().unwrap();
    assert_eq!(suspect.holder, "Orders.open", "{suspect:#?}");
    assert!(!suspect.stacks.is_empty(), "{suspect:#?}");
}

#[test]
fn stacks_are_right_after_an_out_of_memory_error() {
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
        let last = dir.path().join("oome.hprof");
        assert_died(&first, &last);
        let report = of_files(&[&first, &last]);
        let suspect = report.suspects.first().unwrap();
        // The JVM failed while the list was growing. So local variables, in addition to the static field, hold the list
        // and its array.
        assert_eq!(suspect.holder, "Orders.open", "{}", describe(&report));
        // Almost all growth of `long[]` comes from the orders. So the growth of this class is the number of bytes that
        // the stacks of the orders really allocated. The estimate may differ from it by two and a half half-widths of a
        // 95 % interval, which are five standard errors.
        let class = report.classes.iter().find(|c| c.class == "long[]").unwrap();
        let grown = class.shallow_bytes[1] - class.shallow_bytes[0];
        let booked: Vec<&Stack> = suspect
            .stacks
            .iter()
            .filter(|s| s.class == "long[]" && s.frames[0].starts_with("Orders$Order.<init>"))
            .collect();
        let estimate: u64 = booked.iter().map(|s| s.estimated_bytes).sum();
        let low: u64 = booked.iter().map(|s| s.estimated_bytes - s.ci95[0]).sum();
        let high: u64 = booked.iter().map(|s| s.ci95[1] - s.estimated_bytes).sum();
        // Objects that already existed count as growth if another path leads to them now.
        let other = 200_000;
        println!("JDK {}: {estimate} -{low} +{high} of {grown}", jdk.major());
        assert!(
            estimate <= grown + 5 * low / 2 + other && grown <= estimate + 5 * high / 2 + other,
            "{estimate} -{low} +{high} of {grown}\n{}",
            describe(&report)
        );
        // When the heap is full, the agent may lose samples. The report says so.
        assert_eq!(shown(&report), None);
    }
}

/// The program keeps a known percentage of its arrays. The agent's sample table is far too small for the arrays. The
/// reported survival must be right, although downsampling removed most of the live samples.
#[test]
fn survival_is_right_after_downsampling() {
    for jdk in jdks() {
        let classes = jdk.compile(&programs::agent("Keeper.java")).unwrap();
        for (keep, expected) in [("0.25", 250), ("1.0", 1000)] {
            let launch = Launch::class(&jdk, &classes, "Keeper").flag("-Xmx700m");
            let launch = ["8", "5000", keep, "equal"]
                .iter()
                .fold(launch, |l, a| l.arg(a));
            let options = "interval=0,max_samples=4000";
            let mut target = launch.agent(&library(), options).start().unwrap();
            target.wait_ready(1).unwrap();
            let dir = tempfile::tempdir().unwrap();
            let file = dir.path().join("heap.hprof");
            target.dump(&file, DumpOptions::default()).unwrap();
            let snapshot = Snapshot::open(&file, &Options::default(), &Silent).unwrap();
            let samples = Samples::from_snapshot(&snapshot, &AgentObjects::find(&snapshot))
                .0
                .unwrap();
            let agent = samples.agent().unwrap();
            assert!(agent.counter(Counter::Thinnings) >= 3, "{agent:?}");
            let is_kept = |frames: &[&str], class: &str| {
                class == "int[]" && frames.iter().any(|f| f.starts_with("Keeper.equal("))
            };
            let live = by_site(&samples, &is_kept, u64::MAX);
            let stacks = &live.stacks;
            let [stack] = &stacks[..] else {
                panic!("{stacks:?}");
            };
            // A kept array has 4,016 bytes. The printed numbers of lost and thinned samples include samples of kept
            // arrays and of other objects.
            println!(
                "JDK {} keep {keep}: {} permille, {} samples, interval {}, lost {}, thinned {}, estimate {} ± {}",
                jdk.major(),
                stack.survival_permille,
                live.samples,
                agent.sampling.interval,
                agent.counter(Counter::DroppedFull),
                agent.counter(Counter::Thinned),
                stack.estimated_bytes,
                stack.ci95[1] - stack.estimated_bytes,
            );
            // Each of about a thousand samples is alive with the probability `expected`, in thousandths. Even with only
            // 500 samples, four standard errors of the percentage of live samples are below 80 thousandths.
            assert!(live.samples > 400, "{stack:?}");
            assert!(stack.survival_permille.abs_diff(expected) < 80, "{stack:?}");
        }
    }
}

/// Tests programs compiled by the Kotlin and Scala compilers (`cargo xtask languages`). Each array that a program keeps
/// is allocated in a method whose name the compiler generated.
#[test]
fn names_of_kotlin_and_scala() {
    let kotlin: &[(&str, &[&str])] = &[
        (
            "long[]",
            &[
                "com.acme.kotlin.book(Orders.kt:12)",
                "com.acme.kotlin.book(Orders.kt:12)",
                "com.acme.kotlin.main(Orders.kt:44)",
            ],
        ),
        (
            "int[]",
            &[
                "com.acme.kotlin.Shop.Companion.open(Orders.kt:17)",
                "com.acme.kotlin.main(Orders.kt:45)",
            ],
        ),
        (
            "short[]",
            &["com.acme.kotlin.Shop.sell (lambda)(Orders.kt:22)"],
        ),
        (
            "char[]",
            &[
                "com.acme.kotlin.Shop.refund.each.accept (object)(Orders.kt:30)",
                "com.acme.kotlin.Shop.refund(Orders.kt:33)",
            ],
        ),
        (
            "float[]",
            &[
                "com.acme.kotlin.Registry.with spaces(Orders.kt:39)",
                "com.acme.kotlin.main(Orders.kt:48)",
            ],
        ),
    ];
    let scala: &[(&str, &[&str])] = &[
        (
            "long[]",
            &[
                "com.acme.scala.Basket.open(Orders.scala:29)",
                "com.acme.scala.Orders.main(Orders.scala:36)",
            ],
        ),
        (
            "int[]",
            &[
                "com.acme.scala.Basket.+=(Orders.scala:8)",
                "com.acme.scala.Orders.main(Orders.scala:38)",
            ],
        ),
        (
            "short[]",
            &["com.acme.scala.Basket.sell (lambda)(Orders.scala:11)"],
        ),
        (
            "char[]",
            &[
                "com.acme.scala.Basket.inner(Orders.scala:16)",
                "com.acme.scala.Basket.refund(Orders.scala:17)",
                "com.acme.scala.Orders.main(Orders.scala:40)",
            ],
        ),
        (
            "float[]",
            &[
                "com.acme.scala.Basket (object).accept(Orders.scala:22)",
                "com.acme.scala.Basket.give(Orders.scala:24)",
            ],
        ),
    ];
    for jdk in jdks() {
        for (main, expected) in [
            ("com.acme.kotlin.OrdersKt", kotlin),
            ("com.acme.scala.Orders", scala),
        ] {
            let launch = Launch::class(&jdk, programs::languages(), main).flag("-Xmx64m");
            let mut target = launch.agent(&library(), "interval=0").start().unwrap();
            target.wait_ready(1).unwrap();
            let dir = tempfile::tempdir().unwrap();
            let file = dir.path().join("heap.hprof");
            target.dump(&file, DumpOptions::default()).unwrap();
            let snapshot = Snapshot::open(&file, &Options::default(), &Silent).unwrap();
            let samples = Samples::from_snapshot(&snapshot, &AgentObjects::find(&snapshot))
                .0
                .unwrap();
            for (class, frames) in expected {
                let own = |found: &[&str], kind: &str| {
                    kind == *class && found.first().is_some_and(|f| f.starts_with("com.acme."))
                };
                let stacks = by_site(&samples, &own, u64::MAX).stacks;
                let [stack] = &stacks[..] else {
                    panic!("JDK {} {main} {class}: {stacks:#?}", jdk.major());
                };
                assert_eq!(stack.samples, 1, "{stack:#?}");
                assert_eq!(
                    stack.frames[..frames.len()],
                    **frames,
                    "JDK {}",
                    jdk.major()
                );
                // The code of a lambda is in a function of its own. The compiler generates code that calls this
                // function. The stack must not contain this generated code, whose names have a `$`.
                let rest = &stack.frames[frames.len()..];
                assert!(
                    rest.iter()
                        .all(|f| !f.contains('$') || f.starts_with("java.")),
                    "{rest:#?}"
                );
            }
        }
    }
}
