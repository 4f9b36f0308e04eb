//! Tests a heap whose objects lie in two small parts of a much larger range of addresses, as with ZGC. The dump is read
//! in one pass, and the empty space between the two parts takes no memory.
#![allow(clippy::unwrap_used)]

#[allow(dead_code, reason = "processor time is not measured here")]
mod limits;

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use hprof::sizes::ClassTotal;
use hprof::{ObjectId, Options, Progress, Snapshot};
use limits::Peak;
use testdata::writer::graph::{self, NodeKind};
use testdata::writer::{self, FileOrder, Rng};

/// Counts the bytes of heap records that were read.
#[derive(Default)]
struct Read(AtomicU64);

impl Progress for Read {
    fn phase(&self, name: &'static str, _: u64) {
        if name != "reading objects" && name != "linking objects" {
            self.0.fetch_or(1 << 63, Ordering::Relaxed);
        }
    }
    fn advance(&self, amount: u64) {
        // Do not count the bytes that later phases read. The highest bit is set when such a phase begins.
        let _ = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |read| {
                (read >> 63 == 0).then_some(read + amount)
            });
    }
}

/// Retained bytes of each object, and the histogram.
type Figures = (Vec<Option<u64>>, Vec<ClassTotal>);

/// Analyzes a heap in which the addresses of the second half of the objects are increased by `gap`. Returns the
/// retained bytes and the histogram, the number of passes over the file, and the peak of memory.
fn analysed(
    path: &Path,
    gap: u64,
    order: FileOrder,
    max_memory: Option<u64>,
) -> (Figures, f64, u64) {
    let mut rng = Rng::new(5);
    let nodes = 60_000;
    let mut edges: Vec<(usize, usize)> = (1..nodes).map(|n| (rng.below(n), n)).collect();
    edges.extend((0..10_000).map(|_| (rng.below(nodes), rng.below(nodes))));
    let usual = writer::Options {
        order,
        ..writer::Options::default()
    };
    let (mut heap, objects) = graph::heap(nodes, &edges, &[0, 7], NodeKind::Mixed, usual);
    for &object in &objects[nodes / 2..] {
        let address = heap.address(object);
        heap.set_address(object, address + gap);
    }
    let ids: Vec<ObjectId> = objects.iter().map(|&o| ObjectId(heap.address(o))).collect();
    let bytes = heap.build();
    std::fs::write(path, &bytes).unwrap();
    let mut options = Options::default();
    options.max_memory = max_memory;
    let read = Read::default();
    let peak = Peak::start();
    let snapshot = Snapshot::open(path, &options, &read).unwrap();
    let peak = peak.bytes();
    assert!(snapshot.warnings().is_empty(), "{:?}", snapshot.warnings());
    for &id in ids.iter().step_by(900) {
        let object = snapshot.find(id).unwrap();
        assert_eq!(snapshot.ids(&[object]), [Some(id)]);
    }
    let retained = ids.iter().map(|&id| {
        let object = snapshot.find(id).unwrap();
        snapshot.retained_bytes(object)
    });
    let figures = (retained.collect(), snapshot.histogram());
    let passes = (read.0.load(Ordering::Relaxed) << 1 >> 1) as f64 / bytes.len() as f64;
    (figures, passes, peak)
}

#[test]
fn a_span_of_many_times_the_heap_is_read_in_one_pass() {
    let _alone = limits::alone();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dump.hprof");
    let orders = [
        FileOrder::ByAddress,
        FileOrder::Runs(2),
        FileOrder::Shuffled(3),
    ];
    for order in orders {
        let (near, passes, usual) = analysed(&path, 0, order, None);
        assert!(passes < 1.1, "{passes} passes");
        assert!(near.0.iter().any(|&bytes| bytes > Some(100_000)));
        for gap in [6 << 30, 64 << 30, 4 << 40] {
            for limit in [None, Some(1 << 20)] {
                let what = format!("{order:?}, {} GB, {limit:?}", gap >> 30);
                let (far, passes, peak) = analysed(&path, gap, order, limit);
                assert!(far == near, "{what}");
                assert!(passes < 1.1, "{what}: {passes} passes");
                // The table of blocks has at most four million entries of four bytes.
                assert!(peak < usual + (16 << 20), "{what}: {peak}, else {usual}");
            }
        }
    }
}
