//! The functions that the fuzz targets and their smoke test call, one for each entry point. The functions accept any
//! bytes. They must not panic, hang, or take memory out of proportion to the bytes.

use std::io::Write;

use crate::answers::{
    DeclaredField, DeepOptions, FinalFields, Histogram, Merge, PathOptions, Selector, WasteOptions,
};
use crate::bytes::gzip::{self, GzipBlocks};
use crate::bytes::segments::has_end;
use crate::dominators::{Node, Thresholds};
use crate::records::outline::{Next, Outline, RECORD_HEAD, TopLevel};
use crate::records::record;
use crate::redaction::{Redaction, Rules};
use crate::repair::Repair;
use crate::{ObjectIndex, Options, Refs, Silent, Snapshot, Source};

/// Runs all parallel passes on this thread from now on. For small inputs, waking other threads takes several times as
/// long as the work. The smoke test covers the interaction of threads.
pub fn run_single_threaded() {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .use_current_thread();
    // Ignore the error: if the thread pool exists already, it continues to be used.
    let _ = pool.build_global();
}

/// Reads the header, and the outline (the offsets of all records outside the heap).
pub fn outline(bytes: &[u8]) {
    if let Ok(header) = record::header(bytes) {
        let outline = Outline::read(bytes, &header, 0);
        let held: usize = outline.segments.iter().map(|s| s.len()).sum();
        assert!(held <= bytes.len(), "segments overlap");
    }
}

/// Decompresses the bytes.
pub fn gzip(bytes: &[u8]) {
    let mut sink = std::io::sink();
    if gzip::is_gzip(bytes) {
        // Writing to a sink cannot fail.
        let _ = gzip::decompress(bytes, &mut sink);
    }
}

/// Reads a dump in three parts. The second and the third part are segments, and the first bytes of the second part may
/// also be at the end of the first.
pub fn segments(bytes: &[u8]) {
    let odd = bytes
        .iter()
        .fold(7_u32, |sum, &b| sum.wrapping_mul(31).wrapping_add(b.into()));
    // The JVM writes the end record when it merges the segments, so no segment has an end record.
    let end = if has_end(bytes) { RECORD_HEAD } else { 0 };
    let bytes = &bytes[..bytes.len() - end];
    let places = match record::header(bytes) {
        // Cut the dump where heap records begin. If a cut is inside a record, the parts often cannot be joined.
        Ok(header) if odd & 1 == 0 => heap_records(bytes, &header),
        _ => (0..=bytes.len()).collect(),
    };
    let place = |n: u32| {
        let at = odd.rotate_left(n) as usize % places.len().max(1);
        places.get(at).copied().unwrap_or(bytes.len())
    };
    let mut cuts = [place(5), place(16)];
    cuts.sort_unstable();
    let [from, to] = cuts;
    let last = &bytes[to..];
    let is_packed = odd & 6 == 0;
    let parts = [&bytes[..from], &bytes[from..to], last];
    let parts = parts.map(|part| {
        if is_packed {
            packed(part)
        } else {
            part.to_vec()
        }
    });
    let merged = odd.rotate_left(24) as usize % (parts[1].len() + 1);
    let base = [&parts[0], &parts[1][..merged]].concat();
    let Ok(source) = Source::with_segments(base, &[&parts[1], &parts[2]]) else {
        return;
    };
    let is_joined = |w: &crate::Warning| w.message.starts_with("read ");
    if source.warnings().iter().any(is_joined) && source.damage().is_none() && !gzip::is_gzip(last)
    {
        let len = source.len().saturating_sub(RECORD_HEAD);
        assert!(source.ends_with(last) || source[..len].ends_with(last));
    }
    let _ = Histogram::from_source(source, &Options::default(), &Silent);
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut blocks = GzipBlocks::new(Vec::new());
    // Writing to a vector cannot fail.
    let _ = blocks.write_all(bytes);
    blocks.finish().unwrap_or_default()
}

fn heap_records(bytes: &[u8], header: &record::Header) -> Vec<usize> {
    let heap = |next| match next {
        Next::Record(record) if record.is_heap() => Some(record.at),
        _ => None,
    };
    TopLevel::after(bytes, header).filter_map(heap).collect()
}

/// Computes a histogram, in one pass.
pub fn histogram(bytes: &[u8]) {
    let source = Source::from_bytes(bytes.to_vec());
    if let Ok(histogram) = Histogram::from_source(source, &Options::default(), &Silent) {
        assert_eq!(histogram.totals().len(), histogram.classes().len());
    }
}

/// Redacts a dump. The result must be readable, and must not contain anything that redaction removes.
pub fn redaction(bytes: &[u8]) {
    let odd = bytes.iter().fold(0_u8, |sum, b| sum.wrapping_mul(31) ^ b);
    let rules = || Rules {
        numbers: odd & 1 != 0,
        ..Rules::default()
    };
    let source = Source::from_bytes(bytes.to_vec());
    let Ok(redaction) = Redaction::new(&source, rules()) else {
        return;
    };
    let mut out = Vec::new();
    let Ok(written) = redaction.write(&mut out, &Silent) else {
        panic!("writing to a buffer cannot fail");
    };
    assert_eq!(out.len(), source.len());
    let redacted = Source::from_bytes(out);
    let checked = Redaction::new(&redacted, rules()).map(|r| r.check(&Silent));
    let Ok(Ok(checked)) = checked else {
        panic!("the redacted dump cannot be read");
    };
    assert!(checked.left.is_clean(), "{:?}", checked.left);
    // Data after the first damage is not copied.
    let source = match written.damaged_at {
        Some(at) => Source::from_bytes(source[..at as usize].to_vec()),
        None => source,
    };
    let Ok(whole) = Histogram::from_source(source, &Options::default(), &Silent) else {
        return;
    };
    let again = Histogram::from_source(redacted, &Options::default(), &Silent);
    assert!(again.is_ok_and(|again| again.totals() == whole.totals()));
}

/// Repairs a dump. The repaired dump must be whole, and must have the same objects as the damaged one.
pub fn repair(bytes: &[u8]) {
    let source = Source::from_bytes(bytes.to_vec());
    let Ok(repair) = Repair::new(&source, &Silent) else {
        return;
    };
    let mut out = Vec::new();
    let written = repair.write(&mut out, &Silent);
    assert_eq!(written.ok(), Some(out.len() as u64));
    if !repair.is_needed() {
        assert!(
            out == *source,
            "`repair` changed a dump that needs no repair"
        );
        return;
    }
    let repaired = Source::from_bytes(out);
    let Ok(again) = Repair::new(&repaired, &Silent) else {
        panic!("the repaired dump cannot be read");
    };
    assert!(!again.is_needed(), "{:?}", again.warnings());
    let damaged = Histogram::from_source(source, &Options::default(), &Silent);
    let whole = Histogram::from_source(repaired, &Options::default(), &Silent);
    let (Ok(damaged), Ok(whole)) = (damaged, whole) else {
        panic!("a dump cannot be read");
    };
    // A file can have several heaps. A repair leaves out a heap without any complete record, so the numbers of the
    // following heaps change.
    let mut texts = damaged.warnings().iter().map(ToString::to_string);
    let is_one = !texts.any(|text| text.contains("the file contains another"));
    assert!(
        !is_one || whole.totals() == damaged.totals(),
        "other objects"
    );
    // If only a later dump of the file is damaged, the first one has no warning.
    let is_partial = |read: &Histogram| read.warnings().iter().any(|w| w.partial);
    assert!(is_partial(&whole) || !is_partial(&damaged), "no warning");
}

/// Runs the whole analysis, and then one query of each kind about the first objects. The fuzz input also determines
/// which references are followed ([`Refs`]) and the memory limit.
pub fn snapshot(bytes: &[u8]) {
    let odd = bytes.iter().fold(0_u8, |sum, b| sum.wrapping_mul(31) ^ b);
    let options = Options {
        refs: [Refs::Soft, Refs::Strong, Refs::All][usize::from(odd) % 3],
        mapping: None,
        holders: odd & 0x20 != 0,
        dump: 0,
        max_memory: (odd & 0x40 != 0).then_some(1),
        thresholds: if odd & 0x10 != 0 {
            Thresholds::LOW
        } else {
            Thresholds::USUAL
        },
    };
    let source = Source::from_bytes(bytes.to_vec());
    let Ok(snapshot) = Snapshot::of(source, &options, &Silent) else {
        return;
    };
    totals_add_up(&snapshot);
    let count = u32::try_from(snapshot.object_count()).unwrap_or(u32::MAX);
    let first: Vec<ObjectIndex> = (0..count.min(64)).map(ObjectIndex).collect();
    for (_, trace) in snapshot.allocation_traces().take(64) {
        let _ = snapshot.traces().frames(trace);
    }
    for &object in &first {
        let own = snapshot.shallow_bytes(object);
        if let Some(retained) = snapshot.retained_bytes(object) {
            assert!(retained >= own, "{object:?} retains less than its own size");
        }
        let _ = (snapshot.name(object), snapshot.array_length(object));
    }
    let _ = (snapshot.read_all(&first), snapshot.strings(&first, 100));
    let _ = (snapshot.threads(), snapshot.jvm());
    let referrers = snapshot.referrers(&first, 10, &first[..first.len().min(1)]);
    for (referrers, &target) in referrers.iter().zip(&first) {
        assert_eq!(referrers.list.len() as u64, referrers.total.min(10));
        for referrer in &referrers.list {
            assert_eq!(referrer.target, target);
            let _ = snapshot.via_name(referrer.via);
        }
    }
    if let Ok(holders) = snapshot.holders() {
        for &object in &first {
            let _ = snapshot.hold_of(&holders, object);
        }
    }
    let every: Result<Selector, _> = "/./".parse();
    let _ = every.map(|every| snapshot.resolve(&every));
    shortest_paths(&snapshot, &first);
    waste(&snapshot, odd);
    deep(&snapshot, &first, odd);
}

/// Checks that no byte is counted as wasted twice, and that the savings are at most the total size of the objects.
fn waste(snapshot: &Snapshot, odd: u8) {
    let options = WasteOptions {
        groups: usize::from(odd) % 4,
        except: &[],
        passes: &|class| class.0 % 2 == u32::from(odd) % 2,
    };
    let Ok(waste) = snapshot.waste(&options, &Silent) else {
        return;
    };
    let mut sum = 0;
    for (kind, of) in waste.iter() {
        let total = of.total;
        assert!(total.bytes_to_win <= total.shallow_bytes, "{}", kind.name());
        let held: u64 = of.holders.iter().map(|h| h.bytes_to_win).sum();
        assert_eq!(held, total.bytes_to_win, "{}", kind.name());
        sum += total.shallow_bytes;
    }
    let reachable = (0..snapshot.object_count()).filter_map(|n| u32::try_from(n).ok());
    let reachable = reachable
        .map(ObjectIndex)
        .filter(|&o| snapshot.tree().is_reachable(o));
    let all: u64 = reachable.map(|o| snapshot.shallow_bytes(o)).sum();
    assert!(sum <= all, "{sum} bytes wasted of {all}");
}

/// Checks that a walk over all fields reaches at least as many objects as a walk that skips final fields. This must be
/// true whichever fields are final.
fn deep(snapshot: &Snapshot, first: &[ObjectIndex], odd: u8) {
    let declared = |class: &str| {
        let classes = snapshot.classes();
        let class = &classes[*classes.by_name(class).first()?];
        let field = |name: &str, kind, is_static| DeclaredField {
            name: name.to_owned(),
            kind,
            is_static,
            is_final: (name.len() as u8 ^ odd) & 1 == 0,
            is_transient: odd & 1 == 0,
        };
        let fields = class.fields.iter().map(|f| field(&f.name, f.kind, false));
        let statics = class.statics.iter().map(|f| field(&f.name, f.kind, true));
        Some(fields.chain(statics).collect())
    };
    let finals = FinalFields::new(snapshot.classes(), declared);
    let mut sizes = [None, Some(finals)].into_iter().filter_map(|skip_final| {
        let options = DeepOptions {
            skip_final,
            ..DeepOptions::default()
        };
        let mut deep = snapshot.deep(&options, &Silent).ok()?;
        let size = deep.of_set(first);
        let _ = deep.unknown_finals(first, &size);
        Some(size.total.objects)
    });
    if let (Some(all), Some(without)) = (sizes.next(), sizes.next()) {
        assert!(
            without <= all,
            "{without} objects without final fields, {all} with them"
        );
    }
}

/// Checks that the totals of the histogram equal the totals of the dominator tree.
fn totals_add_up(snapshot: &Snapshot) {
    let totals = snapshot.histogram();
    assert_eq!(totals.len(), snapshot.classes().len());
    let tree = snapshot.tree();
    let objects: u64 = totals.iter().map(|t| t.all.objects).sum();
    if snapshot.class_class().is_some() {
        assert_eq!(objects, snapshot.object_count());
        let reachable: u64 = totals.iter().map(|t| t.reachable.bytes).sum();
        assert_eq!(reachable, tree.retained_bytes(Node::ROOT));
    }
}

/// Finds the shortest paths to the objects, over references of all strengths.
fn shortest_paths(snapshot: &Snapshot, targets: &[ObjectIndex]) {
    let options = PathOptions {
        follow: Refs::All,
        ..PathOptions::default()
    };
    let Ok(paths) = snapshot.paths(targets, &options, &Silent) else {
        return;
    };
    for &target in targets {
        let Some(path) = paths.path(snapshot, target) else {
            continue;
        };
        let last = path.steps.last().map(|s| s.object);
        assert_eq!(
            last,
            Some(target),
            "the path must end at the requested object"
        );
        assert!(path.begin < path.steps.len());
    }
    for merge in [Merge::Class, Merge::Object] {
        let lines = paths.merged(snapshot, merge, 20).nodes.len();
        assert!(lines <= 20, "{lines} lines");
    }
}

/// Corrects the checksums of an index whose content was changed.
pub fn seal_index(bytes: &mut [u8]) {
    crate::index::format::fix_checksums(bytes);
}
