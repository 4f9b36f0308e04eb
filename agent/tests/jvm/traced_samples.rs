//! Compares the samples that a trace lists with the samples in a dump of the same moment.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use heapdiff_trace::{SampleRow, Trace, Which};

use crate::dumped::{Dumped, Sample};
use crate::traced::Traced;
use crate::{jdks, launch};

/// A sample's data other than its uid: class, thread, bytes, and allocation time.
type Facts = (String, String, i64, i64);

fn of_dump(samples: &[Sample]) -> BTreeMap<i64, Facts> {
    let facts = |s: &Sample| (s.kind.clone(), s.thread.clone(), s.size, s.time);
    samples.iter().map(|s| (s.uid, facts(s))).collect()
}

fn of_trace(trace: &Trace, which: Which) -> (BTreeMap<i64, Facts>, Vec<SampleRow>) {
    let (sites, threads) = (trace.sites().unwrap(), trace.threads().unwrap());
    let classes: BTreeMap<i64, &str> = sites.iter().map(|s| (s.id, &*s.class)).collect();
    let run = trace.runs().unwrap()[0].id;
    let mut rows = Vec::new();
    trace.each_sample(run, which, |row| rows.push(row)).unwrap();
    assert_eq!(trace.invalid_number_count(), 0);
    let int = |n: u64| i64::try_from(n).unwrap();
    let facts = |row: &SampleRow| {
        let thread = row.thread.map_or("?", |id| &threads[&id]);
        let class = classes[&row.site].to_owned();
        (
            class,
            thread.to_owned(),
            int(row.bytes),
            int(row.allocated_ms),
        )
    };
    let all = rows.iter().map(|r| (int(r.uid), facts(r))).collect();
    (all, rows)
}

#[test]
fn samples_in_a_trace_equal_those_in_a_dump() {
    // One JDK is enough, because the result of this test does not depend on the JVM.
    let jdk = jdks().pop().unwrap();
    let traced = Traced::new();
    let options = traced.options("interval=0,tick=200ms,garbage=100");
    let mut target = launch(&jdk, "Steady", &options)
        .flags(["-Xmx128m", "-XX:+UseSerialGC"])
        .arg("500")
        .timeout(Duration::from_secs(120))
        .start()
        .unwrap();
    target.wait_ready(1).unwrap();
    target.advance(2).unwrap();
    let dumped = Dumped::of(&target);
    dumped.assert_complete();
    // Within a second, the agent finds out which sampled objects the dump's GC has collected. The next data that it
    // writes to the trace contains these samples.
    std::thread::sleep(Duration::from_millis(1300));
    traced.wait_tick();
    let trace = Trace::open(&traced.path()).unwrap();
    let (mut live, rows) = of_trace(&trace, Which::Live);
    assert!(rows.iter().all(|r| r.collected_ms.is_none()));
    // While the program waits, only the JVM itself allocates, for example for the dump.
    let mut expected = of_dump(&dumped.samples);
    let kept = |all: &BTreeMap<i64, Facts>| {
        let of_kept = all.values().filter(|f| f.0 == "Steady$Kept");
        of_kept.cloned().collect::<Vec<Facts>>()
    };
    assert_eq!(kept(&expected).len(), 1000);
    assert!(kept(&expected).iter().all(|f| f.1 == "main"));
    let until = kept(&expected).iter().map(|f| f.3).max().unwrap();
    live.retain(|_, f| f.3 <= until);
    expected.retain(|_, f| f.3 <= until);
    println!("{} samples live at {until} ms", live.len());
    let only = |a: &BTreeMap<i64, Facts>, b: &BTreeMap<i64, Facts>| {
        let missing = a.iter().filter(|(uid, f)| b.get(uid) != Some(f));
        missing.map(|(u, f)| (*u, f.clone())).collect::<Vec<_>>()
    };
    assert_eq!(only(&expected, &live), [], "in the dump alone");
    assert_eq!(only(&live, &expected), [], "in the trace alone");

    let mut collected = BTreeSet::new();
    // A trace has room for at least 4,096 randomly chosen samples.
    for (which, number) in [(Which::Recent, 100..=100), (Which::Chosen, 101..=4096)] {
        let (facts, rows) = of_trace(&trace, which);
        assert!(number.contains(&rows.len()), "{which:?}: {}", rows.len());
        assert!(
            rows.iter().all(|r| r.collected_ms >= Some(r.allocated_ms)),
            "{which:?}: {rows:?}"
        );
        assert!(facts.keys().all(|uid| !expected.contains_key(uid)));
        let dropped = facts.values().filter(|f| f.0 == "Steady$Dropped");
        println!("{which:?}: {} of Steady$Dropped", dropped.clone().count());
        assert!(which == Which::Recent || dropped.count() > 0);
        collected.extend(facts.into_keys());
    }
    let dead = traced.number("SELECT count(*) FROM sample WHERE collected_ms IS NOT NULL");
    assert_eq!(usize::try_from(dead).unwrap(), collected.len());
    let through = "SELECT count(*) FROM sample JOIN site ON site.id = sample.site
         JOIN class ON class.id = site.class JOIN stack ON stack.id = site.stack
         JOIN frame ON frame.id = stack.frame
         WHERE class.name = 'Steady$Kept' AND frame.method = 'keep' AND collected_ms IS NULL";
    assert_eq!(traced.number(through), 1000);

    // After the JVM was killed, the trace contains the same samples as before.
    drop(trace);
    drop(target);
    let trace = Trace::open(&traced.path()).unwrap();
    let (mut left, _) = of_trace(&trace, Which::Live);
    left.retain(|_, f| f.3 <= until);
    assert_eq!(left, expected);
    traced.assert_whole();
}
