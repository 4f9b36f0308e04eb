//! Checks live and collected objects with every collector. Also checks the strategies, filters, and downsampling.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use heapdiff_sites::{Counter, Strategy};
use testdata::jvm::{Jdk, Target};

use crate::dumped::{Dumped, Sample};
use crate::{collectors, jdks, launch};

fn steady(jdk: &Jdk, options: &str, flags: &[&str], n: &str) -> Target {
    let mut target = launch(jdk, "Steady", options)
        .flag("-Xmx256m")
        .flags(flags)
        .arg(n)
        .timeout(Duration::from_secs(120))
        .start()
        .unwrap();
    target.wait_ready(1).unwrap();
    target
}

fn kept(dumped: &Dumped) -> Vec<&Sample> {
    dumped.of_kind("Steady.keep", "Steady$Kept")
}

#[test]
fn all_samples_are_tracked_with_every_collector() {
    for jdk in jdks() {
        for collector in collectors(&jdk) {
            for reaper in ["scan", "queue"] {
                let context = format!("JDK {} {collector} {reaper}", jdk.version());
                let options = format!("interval=0,garbage=100,reaper={reaper}");
                let mut target = steady(&jdk, &options, &[collector], "500");
                let first = Dumped::of(&target);
                first.assert_complete();
                assert_eq!(kept(&first).len(), 500, "{context}");
                assert!(
                    kept(&first)
                        .iter()
                        .all(|s| s.referent.as_deref() == Some("Steady$Kept"))
                );
                target.advance(2).unwrap();
                // The agent's thread runs at least once a second.
                std::thread::sleep(Duration::from_millis(1300));
                let second = Dumped::of(&target);
                assert_eq!(kept(&second).len(), 1000, "{context}");
                // The number may include a few objects that the JVM creates in this method when a class is first used.
                let taken = second.taken("Steady.drop");
                assert!((3000..3200).contains(&taken), "{context}: {taken}");
                // An object has the same uid in both dumps.
                let uids: HashSet<i64> = kept(&second).iter().map(|s| s.uid).collect();
                assert!(
                    kept(&first).iter().all(|s| uids.contains(&s.uid)),
                    "{context}"
                );
                let most = second.counter(Counter::Uids);
                assert!(uids.iter().all(|uid| (1..=most).contains(uid)));
                // The agent must find out that the dropped objects were garbage-collected.
                assert!(second.counter(Counter::Collected) >= 2500, "{context}");
                assert_eq!(
                    (second.recent.len(), second.reservoir.len()),
                    (100, 100),
                    "{context}"
                );
                for dead in second.recent.iter().chain(&second.reservoir) {
                    assert_eq!(dead.referent, None, "{context}");
                    // The JVM itself allocates some objects, which have no stack.
                    let no_stack = second.counter(Counter::NoStack) > 0;
                    let has_stack = !second.frames(dead.site).is_empty();
                    assert!(
                        dead.kind != "?" && (has_stack || dead.site == 0 && no_stack),
                        "{context}: {dead:?}"
                    );
                }
                let dropped = |dead: &&Sample| dead.kind == "Steady$Dropped";
                assert!(
                    second.reservoir.iter().filter(dropped).count() >= 10,
                    "{context}"
                );
                assert!(target.finish().unwrap());
            }
        }
    }
}

#[test]
fn a_full_table_is_downsampled_and_estimates_stay_right() {
    for jdk in jdks() {
        // The program keeps 20,000 objects of about 40 bytes. The table has 2,000 slots.
        let mut target = steady(&jdk, "interval=64,max_samples=2000", &[], "1000");
        for phase in 2..=20 {
            target.advance(phase).unwrap();
        }
        std::thread::sleep(Duration::from_millis(1500));
        let dumped = Dumped::of(&target);
        println!(
            "JDK {}: {} thinnings, {} thinned, {} recorded, {} live, {} dropped, interval {}",
            jdk.version(),
            dumped.counter(Counter::Thinnings),
            dumped.counter(Counter::Thinned),
            dumped.counter(Counter::Recorded),
            dumped.samples.len(),
            dumped.counter(Counter::DroppedFull),
            dumped.sampling.interval
        );
        assert!(dumped.counter(Counter::Thinnings) >= 2);
        assert!(dumped.counter(Counter::Thinned) > 1000);
        assert!(dumped.sampling.interval >= 256 && dumped.first.interval == 64);
        assert!(dumped.samples.len() <= 2000);
        let (mut objects, mut variance) = (0.0, 0.0);
        for sample in kept(&dumped) {
            let weight = dumped.sampling.weight(sample.size.cast_unsigned()).unwrap();
            objects += weight.objects;
            variance += weight.objects_variance;
        }
        // The estimate does not include the samples that were lost because the table was full.
        let lost = f64::from(i32::try_from(dumped.counter(Counter::DroppedFull)).unwrap());
        println!(
            "JDK {}: {objects:.0} of 20000, {lost} dropped, interval {}",
            jdk.version(),
            dumped.sampling.interval
        );
        let error = 5.0 * variance.sqrt();
        let most_lost = lost * dumped.sampling.weight(40).unwrap().objects;
        assert!(
            objects < 20_000.0 + error && objects > 20_000.0 - error - most_lost,
            "{objects} ± {error}"
        );
        assert!(target.finish().unwrap());
    }
}

/// The program allocates 60,000 objects. The table has 20,000 slots, and the JVM runs no GC by itself. One tenth of the
/// objects stays alive. The agent does not discard their samples.
#[test]
fn unreachable_objects_make_room_before_downsampling() {
    for jdk in jdks() {
        for reaper in ["scan", "queue"] {
            let options = format!("interval=0,max_samples=20000,reaper={reaper},classes=off");
            let mut target = launch(&jdk, "Litter", &options)
                .flags(["-Xmx512m", "-Xmn400m", "-XX:+UseSerialGC"])
                .arg("60000")
                .timeout(Duration::from_secs(120))
                .start()
                .unwrap();
            target.wait_ready(1).unwrap();
            let dumped = Dumped::of(&target);
            let context = format!("JDK {} {reaper}", jdk.version());
            assert_eq!(dumped.counter(Counter::Thinnings), 0, "{context}");
            assert_eq!(dumped.counter(Counter::DroppedFull), 0, "{context}");
            assert_eq!(dumped.sampling.interval, 0, "{context}");
            assert!(dumped.counter(Counter::Recorded) >= 60_000, "{context}");
            let kept = dumped.of_kind("Litter.keep", "Litter$Kept").len();
            assert_eq!(kept, 6000, "{context}");
            assert!(target.finish().unwrap());
        }
    }
}

#[test]
fn strategies_by_count_and_by_class() {
    for jdk in jdks() {
        let mut target = steady(&jdk, "strategy=count,rate=10", &[], "20000");
        let dumped = Dumped::of(&target);
        dumped.assert_complete();
        assert_eq!(
            (dumped.sampling.strategy, dumped.sampling.rate),
            (Strategy::Count, 10)
        );
        let expected = 2000.0;
        let found = f64::from(u32::try_from(kept(&dumped).len()).unwrap());
        // The distances between samples vary by up to half of the rate, so the standard deviation of the distances is
        // 29 % of their mean. The check allows a difference of five standard errors.
        assert!((found - expected).abs() < 150.0, "{found}");
        target.advance(2).unwrap();
        assert!(target.finish().unwrap());

        let target = steady(&jdk, "strategy=class,rate=50", &[], "20000");
        std::thread::sleep(Duration::from_millis(2500));
        let dumped = Dumped::of(&target);
        dumped.assert_complete();
        // All objects of each class are counted, and every 50th object has a sample with its stack.
        assert_eq!(dumped.class_totals["Steady$Kept"].0, 20_000);
        assert_eq!(dumped.class_totals["Steady$Dropped"].0, 60_000);
        let (objects, bytes) = dumped.class_totals["Steady$Kept"];
        let size = kept(&dumped)[0].size;
        assert_eq!(bytes, objects * size);
        let found = kept(&dumped).len();
        // Each of the 400 distances has a standard deviation of 29 % of its mean, so the number of samples has a
        // standard deviation of 5.8. The check allows five times this deviation.
        assert!((371..=429).contains(&found), "{found}");
        assert!(target.finish().unwrap());
    }
}

#[test]
fn a_strategy_by_time() {
    for jdk in jdks() {
        let start = Instant::now();
        let target = steady(&jdk, "strategy=time,ms=20,interval=0", &[], "20000");
        let dumped = Dumped::of(&target);
        dumped.assert_complete();
        assert_eq!(dumped.sampling.weight(24), None);
        let recorded = dumped.counter(Counter::Recorded);
        assert!(recorded > 0);
        // Any two samples are at least half of the mean time apart. This limits the number of samples.
        let elapsed = i64::try_from(start.elapsed().as_millis()).unwrap();
        assert!(
            recorded <= elapsed / 10 + 2,
            "{recorded} samples in {elapsed} ms"
        );
        assert!(target.finish().unwrap());
    }
}

#[test]
fn filters() {
    for jdk in jdks() {
        let options = "interval=0,include=^Steady\\$,exclude=Dropped,classes=off";
        let target = steady(&jdk, options, &[], "400");
        let dumped = Dumped::of(&target);
        dumped.assert_complete();
        assert_eq!(kept(&dumped).len(), 400);
        let kinds: HashSet<&str> = dumped.samples.iter().map(|s| &*s.kind).collect();
        assert_eq!(kinds, HashSet::from(["Steady$Kept"]));
        assert!(dumped.counter(Counter::Filtered) >= 1200);
        assert!(dumped.classes.is_empty());
        assert!(target.finish().unwrap());
    }
}

/// The filter decides by the class whose code allocates. That class may allocate directly or through a JDK collection.
#[test]
fn filters_by_the_class_whose_code_allocates() {
    for jdk in jdks() {
        let counts = |filter: &str| {
            let options = format!("interval=0,classes=off,{filter}");
            let mut target = launch(&jdk, "Pets", &options).arg("300").start().unwrap();
            target.wait_ready(1).unwrap();
            let dumped = Dumped::of(&target);
            dumped.assert_complete();
            assert!(target.finish().unwrap());
            let kinds = ["byte[]", "java.util.ArrayList", "java.lang.Object[]"];
            ["Owner", "Other"].map(|class| {
                let by = |sample: &&Sample| {
                    let frames = dumped.frames(sample.site);
                    let is_of = |frame: &String| frame.contains(&format!("Pets${class}."));
                    frames.iter().any(is_of)
                };
                kinds.map(|kind| {
                    // The JVM itself creates small arrays in this method.
                    let is_ours =
                        |s: &&Sample| s.kind == kind && (kind != "byte[]" || s.size > 999);
                    let samples = dumped.samples.iter().filter(is_ours);
                    samples.filter(by).count()
                })
            })
        };
        let (all, none) = ([300; 3], [0; 3]);
        assert_eq!(counts("include=^Pets\\$Owner$"), [all, none]);
        assert_eq!(counts("exclude=^Pets\\$Owner$"), [none, all]);
        let bytes = [300, 0, 0];
        assert_eq!(counts("include=^byte"), [bytes, bytes]);
        let both = "include=^byte,exclude=Owner";
        assert_eq!(counts(both), [none, bytes]);
    }
}

#[test]
fn frames_follow_the_option_verbosity() {
    for jdk in jdks() {
        let mut sites = HashMap::new();
        for verbosity in ["line", "method", "class"] {
            let target = steady(
                &jdk,
                &format!("interval=0,verbosity={verbosity},depth=3"),
                &[],
                "10",
            );
            let dumped = Dumped::of(&target);
            let sample = dumped
                .samples
                .iter()
                .find(|s| s.kind == "Steady$Kept")
                .unwrap()
                .clone();
            let frames: Vec<String> = dumped
                .table
                .frames(sample.site)
                .map(|f| format!("{} {} {:?}", f.class, f.method, f.line))
                .collect();
            sites.insert(verbosity, frames);
            assert!(target.finish().unwrap());
        }
        assert!(sites["line"][0].starts_with("Steady keep At("));
        assert_eq!(
            sites["method"],
            ["Steady keep Unknown", "Steady main Unknown"]
        );
        assert_eq!(sites["class"], ["Steady  Unknown"]);
    }
}

/// Measures how many bytes of the heap the agent uses for each sample and for each site.
#[test]
fn bytes_for_each_sample_and_site() {
    for jdk in jdks() {
        let target = steady(&jdk, "interval=0,garbage=0,classes=off", &[], "30000");
        let dumped = Dumped::of(&target);
        let live = u64::try_from(dumped.samples.len()).unwrap();
        let sites = u64::try_from(dumped.counter(Counter::Sites)).unwrap();
        let blobs = u64::try_from(dumped.counter(Counter::BlobBytes)).unwrap();
        let refs = target.histogram(testdata::jvm::Selection::Live).unwrap();
        let refs = refs
            .classes
            .iter()
            .find(|c| c.class == "heapdiff.SampleRef")
            .unwrap();
        assert_eq!(refs.bytes / refs.instances, 64);
        println!(
            "JDK {}: {} bytes for {live} live samples, {} each; {sites} sites, {} bytes each",
            jdk.version(),
            dumped.bytes,
            dumped.bytes / live,
            blobs / sites
        );
        assert!(live >= 30_000);
        assert!(
            dumped.bytes / live <= 110,
            "{} bytes a sample",
            dumped.bytes / live
        );
        assert!(blobs / sites <= 400, "{} bytes a site", blobs / sites);
        assert!(target.finish().unwrap());
    }
}
