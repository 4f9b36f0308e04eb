//! Tests allocation sites in heaps in which every object is known.

use std::ops::RangeInclusive;

use crate::common;
use heapdiff_diff::samples::{AgentObjects, Samples};
use heapdiff_diff::{
    Allocated, AllocatedLine, Comparison, Filter, Report, Summary, Verdict, by_site,
};
use heapdiff_sites::{Interval, MARK_CLASS, Sampling, statics};
use hprof::{Options, Silent, Snapshot, Source};
use testdata::sampled::{AgentHeap, Sampled};
use testdata::writer::{self, Elements, FieldType, Frame, HeapBuilder, Obj, Value};

/// Size of a `byte[1000]` in bytes: a header of 16 bytes and the elements.
const SIZE: i64 = 1016;
const ADD: &[&str] = &["com.acme.Registry.add", "com.acme.Main.main"];
const LOAD: &[&str] = &["java.io.InputStream.read", "com.acme.Loader.load"];

fn snapshot(dump: Vec<u8>) -> Snapshot {
    Snapshot::of(Source::from_bytes(dump), &Options::default(), &Silent).unwrap()
}

fn report(dumps: Vec<Vec<u8>>) -> Report {
    common::report(dumps.into_iter().map(Source::from_bytes))
}

/// Adds a registry with a list of `count` byte arrays and a list of 300 byte arrays. Returns the arrays of the first
/// list.
fn program(heap: &mut HeapBuilder, count: usize) -> Vec<Obj> {
    let [entries, _] = program_of(heap, count, 300);
    entries
}

/// Adds a registry with two lists of byte arrays, in the static fields `entries` and `steady`. Returns the byte arrays.
fn program_of(heap: &mut HeapBuilder, entries: usize, steady: usize) -> [Vec<Obj>; 2] {
    let boot = heap.boot();
    let loader_class = heap.add_class("com.acme.AppLoader", Some(boot.class_loader), &[], &[]);
    let loader = heap.add_class_loader(loader_class, "app");
    let statics = [("entries", Value::NULL), ("steady", Value::NULL)];
    let registry = heap.add_class("com.acme.Registry", Some(boot.object), &[], &statics);
    heap.set_loader(registry, loader);
    heap.add_root(writer::Root::JniGlobal { global_ref: 1 }, loader);
    let mut arrays = |name: &str, count: usize| {
        let bytes =
            (0..count).map(|_| heap.add_primitive_array(Elements::Zeros(FieldType::Byte, 1000)));
        let bytes: Vec<Obj> = bytes.collect();
        let all = heap.add_object_array(boot.object, bytes.clone());
        heap.set_static(registry, name, all);
        bytes
    };
    let steady = arrays("steady", steady);
    [arrays("entries", entries), steady]
}

/// Returns a dump of the program with an agent that sampled each byte array in `entries`. The uids are in the order of
/// the arrays. Arrays with a uid above `loaded` were allocated at site 2, all others at site 1.
fn sampled(uids: RangeInclusive<i64>, loaded: i64, pid: i64) -> Vec<u8> {
    let mut heap = HeapBuilder::new(writer::Options::default());
    let entries = program(&mut heap, uids.clone().count());
    let mut agent = AgentHeap::new(&[ADD, LOAD]);
    agent.pid = pid;
    for (&entry, uid) in entries.iter().zip(uids) {
        let site = if uid > loaded { 2 } else { 1 };
        agent.sample(Sampled::new(entry, uid, SIZE, site));
    }
    agent.add_to(&mut heap);
    heap.build()
}

fn with_stacks(dumps: Vec<Vec<u8>>) -> (Report, Option<Allocated>) {
    let (mut summaries, mut last) = (Vec::new(), None);
    for dump in dumps {
        let snapshot = snapshot(dump);
        summaries.push(Summary::new(&snapshot, "a".to_owned()).unwrap());
        last = Some(snapshot);
    }
    let last = last.unwrap();
    let comparison = Comparison::new(&summaries, &last).unwrap();
    comparison.report_with_stacks(&Filter::default())
}

fn frames(report: &Report) -> Vec<(String, u64, u64)> {
    let stacks = report.suspects[0].stacks.iter();
    stacks
        .map(|s| (s.frames.join(" "), s.samples, s.estimated_bytes))
        .collect()
}

const ADDED: &str = "com.acme.Registry.add(Registry.java:7) com.acme.Main.main(Main.java:7)";
const LOADED: &str =
    "java.io.InputStream.read(InputStream.java:7) com.acme.Loader.load(Loader.java:7)";

#[test]
fn sample_ids_separate_added_from_freed_objects() {
    // The first dump has a hundred entries. Before the second dump, ten of these were removed and sixty were added.
    // Twenty of the sixty were allocated at the second site.
    let report = report(vec![sampled(1..=100, 500, 1), sampled(11..=160, 140, 1)]);
    assert_eq!(report.suspects.len(), 1, "{:#?}", report.suspects);
    let suspect = &report.suspects[0];
    assert_eq!(suspect.holder, "com.acme.Registry.entries");
    // Of the first stack's entries, forty were added and ten were removed.
    let expected = [
        (ADDED.to_owned(), 40, 30 * 1016),
        (LOADED.to_owned(), 20, 20 * 1016),
    ];
    assert_eq!(frames(&report), expected);
    assert_eq!(suspect.coverage.samples, 60);
    assert_eq!(suspect.coverage.sampled_bytes, 50 * 1016);
    assert_eq!(suspect.coverage.growth_bytes, 50 * 1016);
    let stack = &suspect.stacks[0];
    assert_eq!(
        (&*stack.class, &stack.threads[..]),
        ("byte[]", &["worker-1".to_owned()][..])
    );
    assert_eq!((stack.ci95, stack.estimated_objects), ([30 * 1016; 2], 30));
    assert_eq!(stack.survival_permille, 1000);
}

#[test]
fn samples_that_all_survive_show_a_leak() {
    // The program adds an entry every ten milliseconds. It replaces the first `freed` entries.
    let dump = |count: usize, freed: usize| {
        let mut heap = HeapBuilder::new(writer::Options::default());
        let entries = program(&mut heap, count);
        let mut agent = AgentHeap::new(&[ADD, LOAD]);
        for (at, &entry) in entries.iter().enumerate() {
            let uid = if at < freed { at + 10_000 } else { at + 1 };
            let mut sample = Sampled::new(entry, i64::try_from(uid).unwrap(), SIZE, 1);
            sample.time_ms = i32::try_from(at * 10).unwrap();
            agent.sample(sample);
        }
        agent.add_to(&mut heap);
        heap.build()
    };
    let told = |freed| {
        let report = self::report(vec![dump(100, 0), dump(400, freed)]);
        let suspect = &report.suspects[0];
        (suspect.verdict, suspect.reasons.join("; "))
    };
    let (verdict, reasons) = told(0);
    let sentence = "100 of 100 samples of the first dump are still held, and 100.0 % of all sampled objects of the \
                    allocating stacks are alive";
    assert!(
        verdict == Verdict::Leak && reasons.contains(sentence),
        "{reasons}"
    );
    // The growth is small compared with the number of replaced entries.
    let report = report(vec![dump(100, 0), dump(120, 60)]);
    let reasons = report.suspects[0].reasons.join("; ");
    let sentence = "the growth is less than half of the bytes that were replaced, so it can be random variation";
    assert!(reasons.contains(sentence), "{reasons}");
    let (verdict, reasons) = told(30);
    let sentence = "70 of 100 samples of the first dump are still held there";
    assert!(
        verdict == Verdict::Growth && reasons.contains(sentence),
        "{reasons}"
    );
}

/// For an hour, the size does not change. In one case, the program allocates almost nothing in this time, in the other
/// it allocates much.
#[test]
fn a_level_period_without_work_is_not_enough() {
    let dump = |seconds: u64, entries: usize, allocated: i64| {
        let mut heap = HeapBuilder::new(writer::Options {
            timestamp_ms: 1_700_000_000_000 + seconds * 1000,
            ..writer::Options::default()
        });
        let entries = program(&mut heap, entries);
        let mut agent = AgentHeap::new(&[ADD, LOAD]);
        for (&entry, uid) in entries.iter().zip(1..) {
            agent.sample(Sampled::new(entry, uid, SIZE, 1));
        }
        agent.totals[1] = (allocated, allocated * SIZE);
        agent.allocated = vec![0, allocated * SIZE, 0];
        agent.add_to(&mut heap);
        heap.build()
    };
    let reasons = |late: i64| {
        let dumps = vec![
            dump(0, 100, 100),
            dump(60, 900, 10_000),
            dump(3600, 900, 10_000 + late),
        ];
        report(dumps).suspects[0].reasons.join("; ")
    };
    let sentence = "the program allocated almost nothing while the size was level: take a dump after more work";
    assert!(reasons(10).contains(sentence), "{}", reasons(10));
    assert!(!reasons(600_000).contains(sentence));
}

#[test]
fn dumps_of_two_jvms_are_compared_by_stack() {
    let report = report(vec![sampled(1..=100, 50, 1), sampled(1..=160, 40, 2)]);
    // The first stack has ten entries fewer than before, the second has seventy more.
    assert_eq!(frames(&report), [(LOADED.to_owned(), 70, 70 * 1016)]);
    assert_eq!(report.suspects[0].coverage.sampled_bytes, 60 * 1016);
}

#[test]
fn stacks_get_at_most_the_growth_if_the_first_dump_has_no_agent() {
    let mut heap = HeapBuilder::new(writer::Options::default());
    program(&mut heap, 100);
    let report = report(vec![heap.build(), sampled(1..=160, 500, 1)]);
    assert_eq!(frames(&report), [(ADDED.to_owned(), 160, 60 * 1016)]);
}

/// Returns a dump of the program with an agent that sampled the arrays of both lists at this interval. The same two
/// stacks allocated the arrays of both lists.
fn thinly_sampled(entries: usize, steady: usize, interval: i64) -> Vec<u8> {
    let mut heap = HeapBuilder::new(writer::Options::default());
    let arrays = program_of(&mut heap, entries, steady);
    let mut agent = AgentHeap::new(&[ADD, LOAD]);
    (agent.first_interval, agent.interval) = (Some(0), interval);
    agent.from_start = true;
    let [first, now] = [0, interval.cast_unsigned()].map(|interval| Sampling {
        interval,
        ..Sampling::default()
    });
    for (arrays, uids) in arrays.iter().zip([1_i64.., 1_000_000..]) {
        for (&array, uid) in arrays.iter().zip(uids) {
            if now.would_take(&first, uid.cast_unsigned(), SIZE.cast_unsigned()) {
                let site = if uid % 3 == 0 { 2 } else { 1 };
                agent.sample(Sampled::new(array, uid, SIZE, site));
            }
        }
    }
    agent.add_to(&mut heap);
    heap.build()
}

/// Flame graphs and profiles show the same figures as suspects. This is also true if the heap has further arrays of the
/// same class and size that the suspect does not hold.
#[test]
fn all_stacks_add_up_to_the_suspects_and_sites() {
    let dumps = vec![
        thinly_sampled(200, 3000, 4096),
        thinly_sampled(2200, 3000, 4096),
    ];
    let (report, all) = with_stacks(dumps.clone());
    let all = all.unwrap();
    let [suspect] = &report.suspects[..] else {
        panic!("{:#?}", report.suspects);
    };
    assert_eq!(suspect.coverage.sampled_bytes, 2000 * 1016);
    let told: u64 = suspect.stacks.iter().map(|s| s.estimated_bytes).sum();
    let drawn: i64 = all.lines.iter().map(AllocatedLine::growth_bytes).sum();
    assert_eq!(suspect.stacks.len(), 2);
    assert_eq!(u64::try_from(drawn).unwrap(), told, "{all:#?}");
    for stack in &suspect.stacks {
        let line = all.lines.iter().find(|l| {
            all.stack(l).eq(stack.frames.iter().map(String::as_str)) && all.class(l) == stack.class
        });
        let line = line.unwrap();
        let grown = u64::try_from(line.growth_bytes()).unwrap();
        assert_eq!(grown, stack.estimated_bytes, "{stack:?}");
        let objects = u64::try_from(line.growth_objects()).unwrap();
        assert_eq!(objects, stack.estimated_objects, "{stack:?}");
    }
    // The live bytes of all stacks add up to those of all arrays. The weights of samples alone could give a larger sum.
    for (at, held) in [(0, 3200 * 1016), (1, 5200 * 1016)] {
        let alive: u64 = all.lines.iter().map(|l| l.bytes[at]).sum();
        assert!(alive.abs_diff(held) <= 2, "{alive} of {held}");
    }
    // The figures of each dump are the same as in the list of this dump's sites.
    for dump in dumps {
        let snapshot = snapshot(dump);
        let (samples, _) = Samples::from_snapshot(&snapshot, &AgentObjects::find(&snapshot));
        let samples = samples.unwrap();
        let sites = by_site(&samples, &|_, _| true, u64::MAX);
        let all = Allocated::of(&samples);
        assert_eq!(all.lines.len(), sites.stacks.len());
        for (line, site) in all.lines.iter().zip(&sites.stacks) {
            assert!(all.stack(line).eq(site.frames.iter().map(String::as_str)));
            let figures = (line.samples[0], line.objects[0], line.bytes[0]);
            let expected = (site.samples, site.estimated_objects, site.estimated_bytes);
            assert_eq!(figures, expected);
        }
    }
}

#[test]
fn the_agents_objects_are_not_shown() {
    let plain = |count| {
        let mut heap = HeapBuilder::new(writer::Options::default());
        program(&mut heap, count);
        heap.build()
    };
    let [without, with] = [
        report(vec![plain(100), plain(160)]),
        report(vec![sampled(1..=100, 500, 1), sampled(1..=160, 500, 1)]),
    ];
    assert_eq!(with.classes, without.classes);
    assert_eq!(with.delta, without.delta);
    assert_eq!(with.suspects.len(), 1);
    for (with, without) in with.snapshots.iter().zip(&without.snapshots) {
        let figures = |s: &heapdiff_diff::SnapshotInfo| {
            (
                s.objects,
                s.reachable_objects,
                s.reachable_bytes,
                s.unreachable_bytes,
            )
        };
        assert_eq!(figures(with), figures(without));
        assert_eq!(without.agent, None);
    }
    let agent = with.snapshots[1].agent.clone().unwrap();
    assert_eq!((agent.live_samples, agent.sites, agent.pid), (160, 2, 1));
    assert_eq!(agent.started_ms, 1_700_000_000_000);
}

#[test]
fn weights_and_intervals_match_the_sampling() {
    let mut heap = HeapBuilder::new(writer::Options::default());
    let entries = program(&mut heap, 60);
    let mut agent = AgentHeap::new(&[ADD]);
    agent.interval = 4096;
    for (&entry, uid) in entries.iter().zip(1..) {
        agent.sample(Sampled::new(entry, uid, SIZE, 1));
    }
    // The agent took 180 more samples, whose objects are gone.
    agent.totals[1] = (240, 240 * SIZE);
    agent.add_to(&mut heap);
    let snapshot = snapshot(heap.build());
    let (samples, fault) = Samples::from_snapshot(&snapshot, &AgentObjects::find(&snapshot));
    assert_eq!(fault, None);
    let live = by_site(&samples.unwrap(), &|_, _| true, u64::MAX);
    let stacks = &live.stacks;
    let sampling = Sampling {
        interval: 4096,
        ..Sampling::default()
    };
    let weight = sampling.weight(1016).unwrap();
    let bytes = 60.0 * weight.bytes;
    let interval = Interval::count(bytes, 60.0 * weight.bytes_variance);
    let [stack] = &stacks[..] else {
        panic!("{stacks:?}");
    };
    let near = |is: u64, expected: f64| (is as f64 - expected).abs() <= 1.0;
    assert!(near(stack.estimated_bytes, bytes), "{stack:?}");
    assert!(
        near(stack.ci95[0], interval.low) && near(stack.ci95[1], interval.high),
        "{stack:?}"
    );
    assert!(near(stack.estimated_objects, 60.0 * weight.objects));
    // This agent counts only samples. It does not add up the bytes that they represent.
    assert_eq!(stack.survival_permille, 250);
    assert_eq!((live.samples, live.bytes), (60, stack.estimated_bytes));
}

/// When the agent downsamples, it first writes the coarser interval and then drops samples. A dump between these steps
/// contains samples that were about to be dropped.
#[test]
fn a_dump_during_downsampling_is_read_as_one_after_it() {
    let estimate = |interval: i64, thinned: bool| {
        let mut heap = HeapBuilder::new(writer::Options::default());
        let entries = program(&mut heap, 4000);
        let mut agent = AgentHeap::new(&[ADD]);
        (agent.first_interval, agent.interval) = (Some(0), interval);
        let sampling = |interval| Sampling {
            interval,
            ..Sampling::default()
        };
        let now = sampling(interval.cast_unsigned());
        for (&entry, uid) in entries.iter().zip(1_i64..) {
            if !thinned || now.would_take(&sampling(0), uid.cast_unsigned(), SIZE.cast_unsigned()) {
                agent.sample(Sampled::new(entry, uid, SIZE, 1));
            }
        }
        // The agent's totals count all samples that were ever taken at the site.
        agent.totals[1] = (8000, 8000 * SIZE);
        agent.allocated = vec![0, 8000 * SIZE];
        agent.add_to(&mut heap);
        let snapshot = snapshot(heap.build());
        let (samples, fault) = Samples::from_snapshot(&snapshot, &AgentObjects::find(&snapshot));
        assert_eq!(fault, None);
        by_site(&samples.unwrap(), &|_, _| true, u64::MAX)
            .stacks
            .remove(0)
    };
    let exact = estimate(0, false);
    assert_eq!((exact.samples, exact.estimated_bytes), (4000, 4000 * 1016));
    assert_eq!(exact.ci95, [4000 * 1016; 2]);
    assert_eq!(exact.survival_permille, 500);
    for interval in [4096, 32_768] {
        let [during, after] = [false, true].map(|thinned| estimate(interval, thinned));
        assert_eq!(during, after);
        assert!(during.samples < 1000, "{during:?}");
        let half = (during.ci95[1] - during.ci95[0]) / 2;
        // The limit is five standard errors.
        let off = during.estimated_bytes.abs_diff(4000 * 1016);
        assert!(half > 10_000 && off < half * 5 / 2, "{during:?}");
        // The relative error of the reported survival must be within the same limit as that of the estimated bytes,
        // although downsampling removed samples from the dump.
        let off = during.survival_permille.abs_diff(500);
        assert!(
            off * 4000 * 1016 < half * 5 / 2 * 500 + 4000 * 1016,
            "{during:?}"
        );
    }
}

/// Samples that the agent dropped because its table was full may belong to any stack.
#[test]
fn losses_widen_intervals_and_are_reported() {
    let with = |sampled: usize, lost: [(i64, i64); 2]| {
        let heap = |count: usize, sampled: usize, lost| {
            let mut heap = HeapBuilder::new(writer::Options::default());
            let entries = program(&mut heap, count);
            let mut agent = AgentHeap::new(&[ADD, LOAD]);
            agent.lost = lost;
            for (&entry, uid) in entries.iter().zip(1..).take(sampled) {
                let site = if uid % 4 == 0 { 2 } else { 1 };
                agent.sample(Sampled::new(entry, uid, SIZE, site));
            }
            agent.add_to(&mut heap);
            heap.build()
        };
        report(vec![heap(100, 100, lost[0]), heap(200, sampled, lost[1])])
    };
    // In this report, forty of the hundred new objects have a sample. The agent dropped no sample, so the figures of
    // the stacks are exact.
    let report = with(140, [(0, 0); 2]);
    let suspect = &report.suspects[0];
    assert_eq!(suspect.stacks[0].ci95, [30 * 1016; 2]);
    assert_eq!(suspect.coverage.unseen_bytes, 0);
    // The other sixty new objects have no sample, because the agent dropped samples. All dropped samples may belong to
    // one stack, so the upper end of each interval includes them.
    for (lost, unseen) in [(60, 60), (1000, 60), (5, 5)] {
        let report = with(140, [(0, 0), (lost, lost * SIZE)]);
        let suspect = &report.suspects[0];
        let intervals: Vec<[u64; 2]> = suspect.stacks.iter().map(|s| s.ci95).collect();
        let up_to = |n: u64| [n * 1016, (n + unseen) * 1016];
        assert_eq!(intervals, [up_to(30), up_to(10)], "{lost}");
        assert_eq!(suspect.coverage.unseen_bytes, unseen * 1016);
        assert_eq!(suspect.coverage.sampled_bytes, 40 * 1016);
        assert!(report.snapshots[0].warnings.is_empty());
        let [warning] = &report.snapshots[1].warnings[..] else {
            panic!("{:?}", report.snapshots[1].warnings);
        };
        let lost = heapdiff_units::grouped(lost.unsigned_abs());
        let says = format!("{lost} because its table was full (max_samples)");
        assert!(warning.contains(&says), "{warning}");
        assert!(
            !warning.contains("allocation sites are left out"),
            "{warning}"
        );
    }
    // In general, growth could look too large if samples were dropped before the first dump. This cannot happen here,
    // because in the first dump all objects had a sample.
    let report = with(200, [(7, 7 * SIZE), (7, 7 * SIZE)]);
    assert_eq!(report.suspects[0].stacks[0].ci95, [75 * 1016; 2]);
}

#[test]
fn samples_that_are_not_live_are_omitted_and_counted() {
    let mut heap = HeapBuilder::new(writer::Options::default());
    let entries = program(&mut heap, 10);
    let boot = heap.boot();
    let garbage = heap.add_primitive_array(Elements::Zeros(FieldType::Byte, 1000));
    let mut agent = AgentHeap::new(&[ADD, LOAD]);
    agent.sample(Sampled::new(entries[0], 1, SIZE, 1));
    let unfinished = Sampled {
        mark: 0,
        ..Sampled::new(entries[1], 2, SIZE, 1)
    };
    agent.sample(unfinished);
    agent.sample(Sampled::new(garbage, 3, SIZE, 1));
    agent.sample(Sampled::new(None::<Obj>, 4, SIZE, 1));
    let definition = Sampled {
        mark: MARK_CLASS,
        ..Sampled::new(boot.thread, 5, 0, 2)
    };
    agent.sample(definition);
    // The agent also has a sample (uid 6) whose object is the same class object.
    agent.sample(Sampled::new(boot.thread, 6, 112, 1));
    agent
        .collected
        .push((Sampled::new(None::<Obj>, 7, SIZE, 2), 35));
    agent.add_to(&mut heap);
    let snapshot = snapshot(heap.build());
    let (samples, fault) = Samples::from_snapshot(&snapshot, &AgentObjects::find(&snapshot));
    let samples = samples.unwrap();
    assert_eq!(fault, None);
    let live: Vec<_> = samples
        .live
        .iter()
        .map(|s| (s.uid, samples.name(s.class)))
        .collect();
    assert_eq!(live, [(1, "byte[]"), (5, "class java.lang.Thread")]);
    assert_eq!((samples.unfinished, samples.unreachable), (1, 1));
    let [dead] = samples.collected[..] else {
        panic!("{:?}", samples.collected);
    };
    assert_eq!(
        (dead.uid, dead.size, dead.time_ms, dead.died_ms),
        (7, 1016, 10, 35)
    );
    assert_eq!(samples.agent().unwrap().last_uid, 7);
}

/// Returns the report on a heap that grew. The agent's data in the dump was changed.
fn tampered(tamper: impl Fn(&mut AgentHeap)) -> Report {
    let heap = |count: usize| {
        let mut heap = HeapBuilder::new(writer::Options::default());
        let entries = program(&mut heap, count);
        let mut agent = AgentHeap::new(&[ADD]);
        for (&entry, uid) in entries.iter().zip(1..) {
            agent.sample(Sampled::new(entry, uid, SIZE, 1));
        }
        tamper(&mut agent);
        agent.add_to(&mut heap);
        heap.build()
    };
    report(vec![heap(100), heap(160)])
}

#[test]
fn damaged_and_foreign_tables_leave_the_diff_without_stacks() {
    let check = |what: &str, report: &Report, says: &str| {
        let [suspect] = &report.suspects[..] else {
            panic!("{what}: {:?}", report.suspects);
        };
        assert_eq!(suspect.growth.retained_bytes, 60 * 1016, "{what}");
        assert!(suspect.stacks.is_empty(), "{what}");
        for snapshot in &report.snapshots {
            let [warning] = &snapshot.warnings[..] else {
                panic!("{what}: {:?}", snapshot.warnings);
            };
            assert!(warning.contains(says), "{what}: {warning}");
            assert!(
                warning.ends_with("; allocation sites are left out"),
                "{warning}"
            );
            assert_eq!(snapshot.agent, None, "{what}");
        }
    };
    let table = AgentHeap::new(&[ADD]).table;
    for at in [0, 2, 4, 8, 12, table.len() / 2, 20] {
        let report = tampered(|agent| agent.table[at] ^= 0x55);
        check(&format!("byte {at}"), &report, "site table, piece 0, byte ");
    }
    check(
        "cut",
        &tampered(|a| a.table.truncate(30)),
        "bytes are needed",
    );
    check(
        "later",
        &tampered(|a| a.format = 2),
        "unknown format version 2",
    );
    for name in [
        statics::PID,
        statics::BLOBS,
        statics::SAMPLES,
        statics::COUNTERS,
    ] {
        let report = tampered(|agent| agent.without.push(name));
        check(name, &report, &format!("the static field `{name}`"));
    }
    check("negative", &tampered(|a| a.interval = -1), "`interval`");
    let strategy = "unknown sampling strategy 9";
    check("strategy", &tampered(|a| a.strategy = 9), strategy);
}

#[test]
fn an_agent_that_is_not_set_up_is_ignored() {
    let unset = tampered(|agent| agent.format = 0);
    let foreign = tampered(|agent| agent.without.push(statics::FORMAT));
    for report in [unset, foreign] {
        assert!(report.suspects[0].stacks.is_empty());
        assert!(
            report
                .snapshots
                .iter()
                .all(|s| s.agent.is_none() && s.warnings.is_empty())
        );
    }
}

/// No agent writes values like those in this test. They must not cause a panic or a wrong report.
#[test]
fn senseless_samples_do_no_harm() {
    let report = tampered(|agent| {
        for (sample, i) in agent.samples.iter_mut().zip(0_i32..) {
            (sample.site, sample.kind, sample.thread) = (i % 7 - 3, -i, i * 1_000_003);
            sample.size = [1016, 0, i64::MAX, i64::MIN][i as usize % 4];
            sample.uid = [5, i64::MAX, i64::from(i)][i as usize % 3];
        }
        agent.interval = i64::MAX;
        agent.totals = vec![(-5, i64::MIN); 5];
    });
    assert_eq!(report.suspects[0].growth.retained_bytes, 60 * 1016);
    assert!(report.snapshots.iter().all(|s| s.warnings.is_empty()));
}

/// If a dump names the stack trace of each object, the figures are exact.
#[test]
fn stack_traces_of_objects_are_sites() {
    let heap = |count: usize| {
        let mut heap = HeapBuilder::new(writer::Options::default());
        let entries = program(&mut heap, count);
        let boot = heap.boot();
        let main = heap.add_class("com.acme.Main", Some(boot.object), &[], &[]);
        let [add, load] = ["lambda$add$0", "load"].map(|method| {
            let frames = [method, "main"].map(|m| Frame::new(&heap, main, m, 42));
            heap.add_stack_trace(0, &frames)
        });
        for (i, &entry) in entries.iter().enumerate() {
            heap.set_trace(entry, if i % 4 == 0 { load } else { add });
        }
        heap.build()
    };
    let report = report(vec![heap(100), heap(160)]);
    let main = "com.acme.Main.main(Main.java:42)";
    let expected = [
        (
            format!("com.acme.Main.add (lambda)(Main.java:42) {main}"),
            45,
            45 * 1016,
        ),
        (
            format!("com.acme.Main.load(Main.java:42) {main}"),
            15,
            15 * 1016,
        ),
    ];
    assert_eq!(frames(&report), expected);
    assert_eq!(report.snapshots[1].agent, None);
    let coverage = report.suspects[0].coverage;
    assert_eq!((coverage.samples, coverage.sampled_bytes), (60, 60 * 1016));
}

#[test]
fn all_stacks_are_listed_including_shrinking_ones() {
    let allocated = |dumps: Vec<Vec<u8>>| with_stacks(dumps).1.unwrap();
    let lines = |all: &Allocated| -> Vec<(String, Vec<u64>, i64)> {
        let line = |l: &AllocatedLine| {
            let frames: Vec<&str> = all.stack(l).collect();
            (frames.join(" "), l.bytes.clone(), l.growth_bytes())
        };
        all.lines.iter().map(line).collect()
    };
    // Sites are numbered by first use, so their numbers differ between these dumps.
    let dumps = vec![sampled(1..=100, 80, 1), sampled(81..=160, 140, 2)];
    let all = allocated(dumps.clone());
    let each = |samples: i64| u64::try_from(samples * SIZE).unwrap();
    let (added, loaded) = (vec![each(80), each(60)], vec![each(20), each(20)]);
    assert_eq!(
        lines(&all),
        [
            (LOADED.to_owned(), loaded, 0),
            (ADDED.to_owned(), added, -20 * SIZE),
        ]
    );
    assert_eq!(all.lines[1].objects, [80, 60]);
    assert_eq!(all, allocated(dumps));
    // Two dumps of one JVM contain some of the same samples.
    let all = allocated(vec![sampled(1..=100, 90, 1), sampled(11..=160, 90, 1)]);
    let (added, loaded) = (vec![each(90), each(80)], vec![each(10), each(70)]);
    assert_eq!(
        lines(&all),
        [
            (LOADED.to_owned(), loaded, 60 * SIZE),
            (ADDED.to_owned(), added, -10 * SIZE),
        ]
    );
    // If the first dump was taken without the agent, all samples of the second are new.
    let mut plain = HeapBuilder::new(writer::Options::default());
    program(&mut plain, 10);
    let all = allocated(vec![plain.build(), sampled(1..=5, 9, 1)]);
    assert_eq!(
        lines(&all),
        [(ADDED.to_owned(), vec![0, each(5)], 5 * SIZE)]
    );
    let mut plain = HeapBuilder::new(writer::Options::default());
    program(&mut plain, 10);
    assert_eq!(with_stacks(vec![plain.build()]).1, None);
}

/// Returns a snapshot with an agent. The agent has these totals, and these bytes, at its two sites.
fn allocated_by(agent: impl FnOnce(&mut AgentHeap)) -> Snapshot {
    let mut heap = HeapBuilder::new(writer::Options::default());
    let entries = program(&mut heap, 20);
    let mut sampled = AgentHeap::new(&[ADD, LOAD]);
    for (&entry, uid) in entries.iter().zip(1..) {
        sampled.sample(Sampled::new(entry, uid, SIZE, 1));
    }
    agent(&mut sampled);
    sampled.add_to(&mut heap);
    snapshot(heap.build())
}

#[test]
fn allocations_are_known_for_stacks_without_a_sample() {
    let told = |snapshot: &Snapshot| {
        let own = AgentObjects::find(snapshot);
        let (samples, _) = Samples::with_all_sites(snapshot, &own);
        let samples = samples.unwrap();
        let all = samples.allocations(&|_, _| true)?;
        let text = |s: &heapdiff_diff::samples::StackAllocations| {
            let leaf = samples.sites.frames(s.site).next().unwrap().to_owned();
            (
                leaf,
                s.class().to_owned(),
                s.samples,
                s.objects,
                s.bytes,
                s.ci95,
            )
        };
        let drawn = Allocated::since_start(&samples, &all);
        let drawn: u64 = drawn.lines.iter().map(|l| l.bytes[0]).sum();
        assert_eq!(drawn, all.bytes);
        Ok::<_, heapdiff_diff::samples::NotCounted>(all.stacks.iter().map(text).collect::<Vec<_>>())
    };
    // Every allocation is sampled, so the figures are counts. All objects of the second site are gone.
    let exact = allocated_by(|agent| {
        agent.totals[1] = (100, 100 * SIZE);
        agent.totals[2] = (7, 7000);
    });
    let add = "com.acme.Registry.add(Registry.java:7)".to_owned();
    let load = "java.io.InputStream.read(InputStream.java:7)".to_owned();
    assert_eq!(
        told(&exact).unwrap(),
        [
            (
                add.clone(),
                "byte[]".to_owned(),
                100,
                100,
                101_600,
                Some([101_600; 2])
            ),
            (
                load.clone(),
                "(class not remembered)".to_owned(),
                7,
                7,
                7000,
                Some([7000; 2])
            ),
        ]
    );
    // The agent downsampled its samples. If `adds_up` is true, it also stored the total of the bytes that the samples
    // represented when they were taken. Without this total, the allocations cannot be estimated.
    let thinned = |adds_up: bool| {
        allocated_by(|agent| {
            (agent.interval, agent.first_interval) = (8192, Some(4096));
            agent.totals[1] = (40, 40 * SIZE);
            if adds_up {
                agent.allocated = vec![0, 203_200, 0];
            }
        })
    };
    let rows = told(&thinned(true)).unwrap();
    let (_, class, samples, objects, bytes, ci95) = &rows[0];
    assert_eq!(
        (&**class, *samples, *objects, *bytes),
        ("byte[]", 40, 200, 203_200)
    );
    let [low, high] = &ci95.unwrap();
    assert!(
        *low < 150_000 && *low > 40 * 1016 && *high > 280_000,
        "{low}..{high}"
    );
    assert_eq!(
        told(&thinned(false)).unwrap_err(),
        heapdiff_diff::samples::NotCounted::OldAgent
    );
    // Only one in two samples is tracked, but all samples are counted. The figures of allocated objects are as exact as
    // with the first interval, which was half as long. But it is unknown how many of the objects are alive.
    let all_counted = allocated_by(|agent| {
        (agent.interval, agent.first_interval) = (8192, Some(4096));
        agent.few_followed = true;
        agent.totals[1] = (40, 40 * SIZE);
        agent.allocated = vec![0, 203_200, 0];
    });
    let [narrow_low, narrow_high] = told(&all_counted).unwrap()[0].5.unwrap();
    assert!(low < &narrow_low && narrow_high < *high);
    let survival = |interval: i64| {
        let heap = allocated_by(|agent| {
            (agent.interval, agent.first_interval) = (interval, Some(4096));
            agent.totals[1] = (40, 40 * SIZE);
            agent.allocated = vec![0, 203_200, 0];
        });
        let own = AgentObjects::find(&heap);
        let samples = Samples::with_all_sites(&heap, &own).0.unwrap();
        samples.allocations(&|_, _| true).unwrap().stacks[0].survival_permille
    };
    // The live samples of the stack represent 203,200 bytes. The part that is alive is known only if at least sixteen
    // samples of the stack are tracked.
    assert!(survival(4096).is_some() && survival(8192).is_some());
    assert_eq!(survival(16_384), None);
    // If the interval never changed, an estimate needs only the mean size of the samples.
    let one_rate = allocated_by(|agent| {
        agent.interval = 8192;
        agent.totals[1] = (40, 40 * SIZE);
    });
    let rows = told(&one_rate).unwrap();
    let weight = Sampling {
        interval: 8192,
        ..Sampling::default()
    };
    let weight = weight.weight(1016).unwrap().bytes;
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "small"
    )]
    let expected = (40.0 * weight).round() as u64;
    assert_eq!(rows[0].4, expected);
}

/// The samples of the stack represent 203,200 bytes. The part of these bytes that is alive is known only if at least
/// sixteen samples are tracked.
#[test]
fn the_live_share_is_known_if_enough_samples_are_tracked() {
    let stack = |interval: i64| {
        let heap = allocated_by(|agent| {
            (agent.interval, agent.first_interval) = (interval, Some(4096));
            agent.totals[1] = (40, 40 * SIZE);
            agent.allocated = vec![0, 203_200, 0];
        });
        let samples = Samples::from_snapshot(&heap, &AgentObjects::find(&heap))
            .0
            .unwrap();
        by_site(&samples, &|_, _| true, u64::MAX).stacks.remove(0)
    };
    for interval in [4096, 8192] {
        assert!(stack(interval).survival_known, "{interval}");
    }
    let few = stack(16_384);
    assert!(!few.survival_known && few.samples > 0, "{few:?}");
}

#[test]
fn classes_are_counted_if_the_strategy_counts_them() {
    let counts = |snapshot: &Snapshot| {
        let own = AgentObjects::find(snapshot);
        let all = Samples::with_all_sites(snapshot, &own).0.unwrap();
        assert_eq!(
            Samples::from_snapshot(snapshot, &own).0.unwrap().classes,
            None
        );
        all.classes
    };
    let with = allocated_by(|agent| {
        agent.strategy = 3;
        agent.classes = vec![(2, 48), (60_000, 960_000)];
    });
    let found = counts(&with).unwrap();
    let texts: Vec<_> = found
        .iter()
        .map(|c| (&*c.class, c.objects, c.bytes))
        .collect();
    assert_eq!(
        texts,
        [("(unknown class)", 2, 48), ("byte[]", 60_000, 960_000)]
    );
    assert_eq!(counts(&allocated_by(|_| ())), None);
}

/// Returns a dump of the program in which no entry of the registry has a sample. `totals` are the agent's totals at its
/// two sites. `types` has, for each site, the class of its last sample.
fn counted(entries: usize, pid: i64, totals: [(i64, i64); 2], types: Vec<i64>) -> Vec<u8> {
    let mut heap = HeapBuilder::new(writer::Options::default());
    program(&mut heap, entries);
    let mut agent = AgentHeap::new(&[ADD, LOAD]);
    agent.pid = pid;
    agent.few_followed = true;
    agent.totals = vec![(0, 0), totals[0], totals[1]];
    agent.allocated = vec![0, totals[0].1, totals[1].1];
    agent.site_types = types;
    agent.add_to(&mut heap);
    heap.build()
}

#[test]
fn without_a_stack_the_allocations_of_the_class_are_shown() {
    let told = |pid: i64, before: [(i64, i64); 2], types: &[i64]| {
        let now = [(30, 300_000), (90, 900_000)];
        let dumps = [
            counted(100, 1, before, types.to_vec()),
            counted(200, pid, now, types.to_vec()),
        ];
        let report = report(dumps.to_vec());
        let suspect = &report.suspects[0];
        assert_eq!(suspect.holder, "com.acme.Registry.entries");
        assert!(suspect.stacks.is_empty());
        let at = suspect.allocated_at.iter();
        at.map(|at| (at.frames.join(" "), at.samples, at.estimated_bytes))
            .collect::<Vec<_>>()
    };
    let (added, loaded) = (ADDED.to_owned(), LOADED.to_owned());
    // At the second site, 80 of the 90 samples were taken before the first dump.
    let before = [(10, 100_000), (80, 800_000)];
    let expected = [(added.clone(), 20, 200_000), (loaded.clone(), 10, 100_000)];
    assert_eq!(told(1, before, &[0, 1, 1]), expected);
    // All samples were taken before the first dump, so the site has allocated nothing since.
    let before = [(10, 100_000), (90, 900_000)];
    assert_eq!(told(1, before, &[0, 1, 1]), [(added.clone(), 20, 200_000)]);
    // In the first case, the second site has an unknown class id (7). In the second case, the first site has no class
    // (0).
    let before = [(0, 0), (0, 0)];
    assert_eq!(told(1, before, &[0, 1, 7]), [(added, 30, 300_000)]);
    assert_eq!(told(1, before, &[0, 0, 1]), [(loaded, 90, 900_000)]);
    // The result is empty if the two dumps are of different JVMs, or if the agent tracks all samples.
    assert_eq!(told(2, before, &[0, 1, 1]), []);
    assert_eq!(told(1, before, &[]), []);
}
