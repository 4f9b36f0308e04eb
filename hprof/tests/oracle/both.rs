//! A dump as read by the crate and by the naive reader.

use std::collections::HashMap;
use std::time::Duration;

use hprof::dominators::Thresholds;
use hprof::{ObjectIndex, Options, Refs, Silent, Snapshot, Source};
use testdata::deadline::Deadline;

use crate::naive::{self, Heap};

pub(crate) struct Both {
    pub(crate) heap: Heap,
    pub(crate) snapshot: Snapshot,
    /// For each object in `heap`, its number in the snapshot.
    pub(crate) numbers: Vec<ObjectIndex>,
    pub(crate) places: HashMap<ObjectIndex, usize>,
    /// Ends the test if a query on this heap never ends.
    _deadline: Deadline,
}

/// Returns the time limit of a test: 60 seconds, plus one second for each 20,000 bytes of the dump.
fn limit(bytes: usize) -> Duration {
    Duration::from_secs(60 + bytes as u64 / 20_000)
}

/// Compares the holders that are read from the adjacency lists with the holders that are read from the records. The
/// records determine the holders only if each ID belongs to one object.
fn check_holders(snapshot: &Snapshot, all: &[ObjectIndex]) {
    let (noted, read) = (snapshot.holders().unwrap(), snapshot.holders().unwrap());
    for &object in all {
        assert_eq!(
            snapshot.hold_of(&noted, object),
            snapshot.hold_of(&read, object),
            "how {} is held",
            snapshot.name(object)
        );
        assert_eq!(noted.key(object), read.key(object));
    }
}

pub(crate) fn both(bytes: Vec<u8>, refs: Refs) -> Both {
    both_by(bytes, refs, Thresholds::USUAL)
}

/// Reads the dump with both readers: heapdiff's, and a naive one. One bit of the seed selects usual or low thresholds,
/// and is used for nothing else. With low thresholds, objects that refer only to their class are treated as objects
/// without references.
pub(crate) fn both_of(bytes: Vec<u8>, refs: Refs, seed: u64) -> Both {
    let thresholds = [Thresholds::USUAL, Thresholds::LOW][(seed / 4 % 2) as usize];
    both_by(bytes, refs, thresholds)
}

pub(crate) fn both_by(bytes: Vec<u8>, refs: Refs, thresholds: Thresholds) -> Both {
    let deadline = Deadline::after(limit(bytes.len()));
    let heap = naive::read(&bytes);
    let mut options = Options::default();
    options.refs = refs;
    options.holders = true;
    options.set_thresholds(thresholds);
    let snapshot = Snapshot::of(Source::from_bytes(bytes), &options, &Silent).unwrap();
    let all: Vec<ObjectIndex> = (0..snapshot.object_count() as u32)
        .map(ObjectIndex)
        .collect();
    assert_eq!(all.len(), heap.nodes.len(), "objects");
    // `heap.nodes` are in file order. So if several objects have the same ID, the order in the file shows which object
    // belongs to which node.
    let located = snapshot.locate(&all);
    let ids = snapshot.ids(&all);
    let mut order: Vec<(u64, Option<u64>, ObjectIndex)> = ids
        .iter()
        .zip(&located)
        .zip(&all)
        .map(|((id, at), &object)| (id.expect("every object has an id").0, *at, object))
        .collect();
    order.sort_unstable();
    if order.is_sorted_by(|one, next| one.0 < next.0) {
        check_holders(&snapshot, &all);
    }
    let mut nodes: Vec<usize> = (0..heap.nodes.len()).collect();
    nodes.sort_by_key(|&n| heap.nodes[n].id);
    let mut numbers = vec![ObjectIndex(0); all.len()];
    for (node, (id, _, object)) in nodes.into_iter().zip(order) {
        assert_eq!(heap.nodes[node].id, id, "ids");
        numbers[node] = object;
    }
    let places = numbers.iter().zip(0..).map(|(&o, n)| (o, n)).collect();
    Both {
        heap,
        snapshot,
        numbers,
        places,
        _deadline: deadline,
    }
}
