//! With `count=on`, each dump contains the allocation counts. The tests compare these counts with what the program
//! allocates.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use heapdiff_sites::{CLASS, Counted, Counts, SiteTable, TOTALS_CHUNK, attach, statics};
use hprof::answers::{Content, Value};
use hprof::{ObjectIndex, Options, Silent, Snapshot};
use testdata::jvm::{DumpOptions, Jdk, Launch, Target};
use testdata::programs;

use crate::counted::{TOKEN, USUAL, ask, assert_exact, begin, end, expected, jdks};
use crate::{CHECKED, library};

/// The counts in a dump.
pub(crate) struct Dumped {
    head: Vec<i64>,
    /// Number of objects, and bytes of arrays, at each site. The key consists of class, method, line and allocated
    /// class.
    pub(crate) sites: BTreeMap<(String, String, u32, String), (u64, u64)>,
}

impl Dumped {
    fn read(file: &Path) -> Self {
        let snapshot = Snapshot::open(file, &Options::default(), &Silent).unwrap();
        let class = snapshot.classes().by_name(CLASS)[0];
        let array = |name| snapshot.static_value(class, name).unwrap().object();
        let elements = |object: ObjectIndex| -> Vec<Value> {
            match snapshot.read_all(&[object]).remove(0).unwrap().content {
                Content::Array(array) => array.elements(0..array.len).collect(),
                other => panic!("{other:?}"),
            }
        };
        let longs = |object: ObjectIndex| -> Vec<i64> {
            let values = elements(object).into_iter();
            values.map(|value| value.integer().unwrap()).collect()
        };
        let objects = |name| -> Vec<Option<ObjectIndex>> {
            let values = elements(array(name).unwrap()).into_iter();
            values.map(Value::object).collect()
        };
        let blobs: Vec<ObjectIndex> = objects(statics::COUNTED_SITES)
            .into_iter()
            .flatten()
            .collect();
        let records = snapshot.read_all(&blobs);
        let pieces = records.iter().map(|r| match &r.as_ref().unwrap().content {
            Content::Array(array) => array.bytes(),
            other => panic!("{other:?}"),
        });
        let table = SiteTable::decode(pieces).unwrap();
        let mut sites = BTreeMap::new();
        for (chunk, object) in objects(statics::COUNTED_TOTALS).into_iter().enumerate() {
            let Some(object) = object else { continue };
            for (place, pair) in longs(object).chunks_exact(2).enumerate() {
                if pair[0] == 0 {
                    continue;
                }
                let id = u32::try_from(chunk * TOTALS_CHUNK + place).unwrap();
                let frame = table.frames(id).next().expect("a site has a frame");
                let line = match frame.line {
                    heapdiff_sites::Line::At(line) => line,
                    _ => 0,
                };
                let key = (
                    frame.class.to_owned(),
                    frame.method.to_owned(),
                    line,
                    table.class(id).unwrap().to_owned(),
                );
                let sum: &mut (u64, u64) = sites.entry(key).or_default();
                sum.0 += u64::try_from(pair[0]).unwrap();
                sum.1 += u64::try_from(pair[1]).unwrap();
            }
        }
        Self {
            head: longs(array(statics::COUNTED).unwrap()),
            sites,
        }
    }

    fn head(&self, place: Counted) -> i64 {
        self.head[place.index()]
    }

    /// Takes dumps until a dump contains counts that were copied to the heap after this call.
    pub(crate) fn after_now(target: &Target) -> Self {
        let now = now();
        let start = Instant::now();
        loop {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("heap.hprof");
            target.dump(&file, DumpOptions::default()).unwrap();
            let dumped = Self::read(&file);
            if dumped.head(Counted::At) > now {
                return dumped;
            }
            assert!(start.elapsed() < Duration::from_secs(60), "no copy");
            std::thread::sleep(Duration::from_millis(300));
        }
    }

    fn assert_exact(&self, (t, n): (u64, u64), times: u64, which: &str) {
        for (method, class, objects, bytes) in expected(t, n, USUAL) {
            let found = self
                .sites
                .iter()
                .filter(|((c, m, _, a), _)| c.starts_with("Counted") && m == method && a == class);
            let (is, of) = found.fold((0, 0), |sum, (_, of)| (sum.0 + of.0, sum.1 + of.1));
            assert_eq!(is, times * objects, "{which}: {method} {class}");
            let bytes = bytes.unwrap_or(0);
            assert_eq!(of, times * bytes, "{which}: bytes of {method} {class}");
        }
        for place in [Counted::NoRoom, Counted::HeapFull, Counted::Refused] {
            assert_eq!(self.head(place), 0, "{which}: {place:?}");
        }
    }
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(since.as_millis()).unwrap()
}

fn launch(jdk: &Jdk, (threads, n): (u64, u64)) -> Launch {
    let classes = jdk.compile(&programs::agent("Counted.java")).unwrap();
    Launch::class(jdk, classes, "Counted")
        .flags(["-Xmx256m", "-XX:+EnableDynamicAgentLoading"])
        .arg(threads.to_string())
        .arg(n.to_string())
        .timeout(Duration::from_secs(300))
}

fn started(launch: &Launch) -> Target {
    let mut target = launch.start().unwrap();
    target.wait_ready(1).unwrap();
    target
}

/// The agent counts from the start of the program. This includes allocations in `main`, which runs until the program
/// ends.
#[test]
fn a_dump_contains_all_counts() {
    for jdk in jdks() {
        let of = (4, 5000);
        let with = |options: &str| launch(&jdk, of).flags(CHECKED).agent(&library(), options);
        let mut target = started(&with("count=on"));
        let begun = now();
        for times in 1..=2 {
            target.advance(times + 1).unwrap();
            let dumped = Dumped::after_now(&target);
            let which = format!("JDK {}, phase {times}", jdk.version());
            dumped.assert_exact(of, times.into(), &which);
            assert_eq!(dumped.head(Counted::Jdk), 0);
            assert!(dumped.head(Counted::Classes) > 0);
            let since = dumped.head(Counted::Since);
            assert!((begun - 60_000..=begun).contains(&since), "{since} {begun}");
            let mut classes = dumped.sites.keys().map(|key| &key.0);
            assert!(classes.all(|class| class.starts_with("Counted")), "{which}");
            // `main` has run since before the second phase. Its allocations in that phase are counted, too.
            let main = dumped.sites.iter().find(|((_, method, _, allocated), _)| {
                method == "main" && allocated.ends_with("[]")
            });
            assert_eq!(main.unwrap().1.0, u64::from(times), "{which}");
            // The line numbers in the counts are those of the source.
            let source = fs::read_to_string(programs::agent("Counted.java")).unwrap();
            let line = source.lines().position(|l| l.contains("new Removed(i).v"));
            let mut removed = dumped.sites.keys().filter(|key| key.1 == "removed");
            assert_eq!(removed.next().unwrap().2 as usize, line.unwrap() + 1);
        }
        let (well, errors) = target.finish_with_errors().unwrap();
        assert!(well, "{errors}");
        assert!(
            !errors.contains("heapdiff") && !errors.contains("WARNING"),
            "{errors}"
        );
    }
}

/// If the agent is attached to a running program, it rewrites loaded classes and prints a message about this. Filters
/// select the classes. The counts in a dump by a forked child are up to date.
#[test]
fn an_attached_agent_counts_from_then_on() {
    for jdk in jdks() {
        let of = (2, 2000);
        let mut target = started(&launch(&jdk, of));
        target.advance(2).unwrap();
        assert_eq!(ask(&target, "count=on,exclude=Pair$"), attach::DONE);
        assert!(
            target.prints("count: inserted counters into ", 1),
            "{}",
            target.errors()
        );
        target.advance(3).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("forked.hprof");
        let before = now();
        let snapshot = format!("{}{}", attach::SNAPSHOT, file.display());
        assert_eq!(ask(&target, &snapshot), attach::DONE, "{}", target.errors());
        let dumped = Dumped::read(&file);
        assert!(dumped.head(Counted::At) >= before, "JDK {}", jdk.version());
        dumped.assert_exact(of, 1, &format!("JDK {}", jdk.version()));
        // The agent refuses the request, because the request is for other classes than those in which the agent counts.
        assert_eq!(
            ask(&target, &format!("{}seconds=5", attach::COUNT)),
            attach::COUNTS_ALREADY
        );
        assert!(target.prints("the agent already counts, but in other classes", 1));
        // If options change, a new count starts. If the new options lack `count`, no count runs.
        assert_eq!(
            ask(&target, "change:count=on,include=^nothing$"),
            attach::CHANGED
        );
        target.advance(4).unwrap();
        let none = Dumped::after_now(&target);
        assert_eq!((none.sites.len(), none.head(Counted::Classes)), (0, 0));
        assert_eq!(ask(&target, "change:interval=1m"), attach::CHANGED);
        std::thread::sleep(Duration::from_millis(1500));
        let file = folder.path().join("off.hprof");
        target.dump(&file, DumpOptions::default()).unwrap();
        let off = Dumped::read(&file);
        assert_eq!(off.head, [0; Counted::LEN]);
        // The counters were removed from the classes, so `heapdiff count` can start a count.
        begin(&target, "");
        target.advance(5).unwrap();
        assert_exact(&end(&target), of, USUAL, "after the agent's");
        let (well, errors) = target.finish_with_errors().unwrap();
        assert!(well, "{errors}");
    }
}

/// Checks the counts of `main`, which allocates one array in each phase. `main` runs until the program ends, so it
/// keeps the counters that were inserted earlier. Returns the counts of all other methods.
fn without_main(mut counts: Counts, phases: u64) -> Counts {
    let is_array = |allocated: &str| allocated.ends_with("[]");
    let main = counts
        .sites
        .iter()
        .filter(|site| site.method == "main" && is_array(&site.allocated));
    assert_eq!(main.map(|site| site.objects).sum::<u64>(), phases);
    counts.sites.retain(|site| site.method != "main");
    counts
}

/// `heapdiff count` uses the counters that the option `count=on` has inserted, and leaves them in the classes.
/// Detaching the agent removes all counters.
#[test]
fn a_second_count_shares_counters_and_detaching_removes_them() {
    for jdk in jdks() {
        let of = (2, 2000);
        let mut target = started(&launch(&jdk, of).agent(&library(), "count=on"));
        target.advance(2).unwrap();
        begin(&target, "");
        let again = format!("{}seconds=5", attach::COUNT);
        assert_eq!(ask(&target, &again), attach::COUNTS_ALREADY);
        target.advance(3).unwrap();
        let counts = without_main(end(&target), 1);
        assert_exact(&counts, of, USUAL, "beside count=on");
        let ended = format!("{}{TOKEN}", attach::COUNT_END);
        assert_eq!(ask(&target, &ended), attach::COUNTS_NOT);
        begin(&target, "exclude=Counted");
        target.advance(4).unwrap();
        let none = end(&target);
        assert!(none.sites.is_empty(), "{none:?}");
        let jdk_too = format!("{}jdk=on", attach::COUNT);
        assert_eq!(ask(&target, &jdk_too), attach::COUNTS_ALREADY);
        // The dump contains the counts of all three phases.
        Dumped::after_now(&target).assert_exact(of, 3, &format!("JDK {}", jdk.version()));
        assert_eq!(ask(&target, attach::DETACH), attach::DETACHED);
        assert_eq!(ask(&target, &ended), attach::COUNTS_NOT);
        begin(&target, "include=^nothing$");
        target.advance(5).unwrap();
        // `main` keeps its counters until it returns.
        let none = without_main(end(&target), 1);
        assert!(none.sites.is_empty(), "{none:?}");
        // If another count runs when the agent is attached, the agent samples and prints that it does not count.
        begin(&target, "");
        assert_eq!(ask(&target, "count=on"), attach::DONE);
        assert!(
            target.prints("already counts in this JVM", 1),
            "{}",
            target.errors()
        );
        target.advance(6).unwrap();
        let counts = without_main(end(&target), 1);
        assert_exact(&counts, of, USUAL, "before count=on");
        assert!(target.finish().unwrap());
    }
}

/// Counts allocations in JDK classes. These classes are loaded before counting begins.
#[test]
fn jdk_classes_are_counted_on_request() {
    for jdk in jdks() {
        let of = (2, 1000);
        let options = "count=jdk,interval=64k";
        let mut target = started(&launch(&jdk, of).flags(CHECKED).agent(&library(), options));
        target.advance(2).unwrap();
        let dumped = Dumped::after_now(&target);
        let which = format!("JDK {}", jdk.version());
        dumped.assert_exact(of, 1, &which);
        assert_eq!(dumped.head(Counted::Jdk), 1);
        let classes = dumped.head(Counted::Classes);
        println!("{which}: {classes} classes, {} sites", dumped.sites.len());
        assert!(classes > 100, "{classes}");
        let of_jdk = |key: &&(String, String, u32, String)| key.0.starts_with("java.");
        assert!(dumped.sites.keys().filter(of_jdk).count() > 50, "{which}");
        let (well, errors) = target.finish_with_errors().unwrap();
        assert!(
            well && errors.contains("count: inserted counters into "),
            "{errors}"
        );
        assert!(!errors.contains("WARNING"), "{errors}");
        println!("{errors}");
    }
}
