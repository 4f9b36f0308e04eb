//! `heapdiff top`: the objects that retain most.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::Path;

use hprof::{Node, ObjectIndex, Progress, Snapshot};
use rayon::prelude::*;

use super::open;
use crate::args::Setup;
use crate::failure::Result;
use crate::report::{SnapshotInfo, TopObject, TopReport};

const ROWS: usize = 20;

pub(crate) fn run(setup: &Setup, dump: &Path) -> Result<TopReport> {
    let (snapshot, meter) = open(setup, dump)?;
    meter.phase("finding the biggest", 0);
    let biggest = biggest(&snapshot, setup.top.unwrap_or(ROWS));
    let objects = biggest
        .into_iter()
        .map(|object| TopObject {
            id: String::new(),
            class: snapshot.name(object),
            shallow_bytes: snapshot.shallow_bytes(object),
            retained_bytes: snapshot.retained_bytes(object).unwrap_or(0),
            retained_objects: snapshot.retained_objects(object).unwrap_or(0),
        })
        .collect();
    Ok(TopReport {
        schema: TopReport::SCHEMA,
        snapshot: SnapshotInfo::of(&snapshot),
        objects,
    })
}

/// The objects that retain most, the largest first; of equals the first in the dump.
///
/// Cost: one parallel pass over the nodes and one over the objects' sizes, with a heap of `limit`
/// for each thread's share; nothing is sorted but the result.
fn biggest(snapshot: &Snapshot, limit: usize) -> Vec<ObjectIndex> {
    let tree = snapshot.tree();
    let nodes = (1..tree.node_count() as u32).into_par_iter().fold(
        || Best::new(limit),
        |mut best, node| {
            let node = Node(node);
            let bytes = tree.retained_bytes(node);
            if best.takes(bytes)
                && let Some(object) = tree.object(node)
            {
                best.push(bytes, object);
            }
            best
        },
    );
    // Objects without references are no nodes.
    let objects = snapshot.object_count() as u32;
    let leaves = (0..objects).into_par_iter().fold(
        || Best::new(limit),
        |mut best, object| {
            let object = ObjectIndex(object);
            let bytes = snapshot.shallow_bytes(object);
            if best.takes(bytes) && tree.node(object).is_none() && tree.is_reachable(object) {
                best.push(bytes, object);
            }
            best
        },
    );
    nodes
        .chain(leaves)
        .reduce(|| Best::new(limit), Best::merge)
        .into_sorted()
}

/// The `limit` largest of what is pushed.
pub(crate) struct Best {
    limit: usize,
    /// The smallest on top; of equals the last in the dump.
    heap: BinaryHeap<Reverse<(u64, Reverse<u32>)>>,
}

impl Best {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            heap: BinaryHeap::new(),
        }
    }

    /// Whether something of this size can be among the largest.
    #[inline]
    pub(crate) fn takes(&self, bytes: u64) -> bool {
        self.heap.len() < self.limit || self.heap.peek().is_some_and(|least| bytes >= least.0.0)
    }

    pub(crate) fn push(&mut self, bytes: u64, object: ObjectIndex) {
        self.heap.push(Reverse((bytes, Reverse(object.0))));
        if self.heap.len() > self.limit {
            self.heap.pop();
        }
    }

    pub(crate) fn merge(mut self, mut other: Self) -> Self {
        self.heap.append(&mut other.heap);
        while self.heap.len() > self.limit {
            self.heap.pop();
        }
        self
    }

    pub(crate) fn into_sorted(self) -> Vec<ObjectIndex> {
        let sorted = self.heap.into_sorted_vec();
        sorted
            .into_iter()
            .map(|Reverse((_, Reverse(object)))| ObjectIndex(object))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn best(limit: usize, sizes: &[u64]) -> Vec<u32> {
        let mut best = Best::new(limit);
        for (i, &bytes) in sizes.iter().enumerate() {
            if best.takes(bytes) {
                best.push(bytes, ObjectIndex(i as u32));
            }
        }
        best.into_sorted().into_iter().map(|o| o.0).collect()
    }

    #[test]
    fn keeps_the_largest_and_the_first_of_equals() {
        assert_eq!(best(3, &[5, 9, 5, 1, 5, 9]), [1, 5, 0]);
        assert_eq!(best(9, &[1, 2]), [1, 0]);
        assert_eq!(best(0, &[1, 2]), [] as [u32; 0]);
    }
}
