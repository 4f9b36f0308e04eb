//! Tests which objects each object retains, on random heaps.

use std::path::Path;
use std::sync::atomic::Ordering;

use hprof::dominators::{Node, Tally, Thresholds};
use hprof::{ObjectId, Refs, Silent};
use testdata::dumps::unpacked;
use testdata::writer::{Rng, graph};

use crate::both::{Both, both, both_by};
use crate::brute::BruteForce;
use crate::naive::Kind;
use crate::world::{self, Plan, rounds};

impl Both {
    /// Returns the dominator of a node, according to the snapshot. Both `node` and the result are numbers in the naive
    /// reader's heap.
    fn dominator(&self, node: usize) -> Option<Option<usize>> {
        let tree = self.snapshot.tree();
        let up = tree.dominator(self.numbers[node])?;
        Some(tree.object(up).map(|o| self.places[&o]))
    }

    pub(crate) fn check_dominators(&self, brute: &BruteForce, what: &dyn std::fmt::Debug) {
        let expected = brute.dominators();
        for (node, expected) in expected.iter().enumerate() {
            let found = self.dominator(node);
            assert_eq!(
                found,
                *expected,
                "{what:?}: the dominator of {} ({:#x}), level {:?}",
                self.snapshot.name(self.numbers[node]),
                self.heap.nodes[node].id,
                brute.level[node]
            );
        }
    }

    pub(crate) fn check_sizes(&self, brute: &BruteForce, what: &dyn std::fmt::Debug) {
        let size = |n: usize| self.snapshot.shallow_bytes(self.numbers[n]);
        let reached = brute.reached_without(|_| false);
        let sum = |lost: &dyn Fn(usize) -> bool| {
            let left = brute.reached_without(lost);
            let gone = (0..left.len()).filter(|&n| reached[n] && !left[n]);
            gone.fold((0, 0), |s, n| (s.0 + size(n), s.1 + 1_u64))
        };
        for (n, &reached) in reached.iter().enumerate() {
            let object = self.numbers[n];
            let expected = reached.then(|| sum(&|other| other == n));
            let found = self
                .snapshot
                .retained_bytes(object)
                .zip(self.snapshot.retained_objects(object));
            assert_eq!(found, expected, "{what:?}: {}", self.snapshot.name(object));
        }
        // The root of the dominator tree retains all reachable objects. Each of them is in the subtree of one of the
        // root's child nodes, or is an object without references that the root dominates immediately.
        let tree = self.snapshot.tree();
        let total: u64 = (0..reached.len()).filter(|&n| reached[n]).map(size).sum();
        let nodes: u64 = tree
            .children(Node::ROOT)
            .map(|c| tree.retained_bytes(c))
            .sum();
        let leaves = tree.leaves(Node::ROOT);
        let leaves: u64 = leaves.map(|l| self.snapshot.shallow_bytes(l)).sum();
        assert_eq!(nodes + leaves, total, "{what:?}");
        assert_eq!(tree.retained_bytes(Node::ROOT), total, "{what:?}");
        let histogram = self.snapshot.histogram();
        let mut of_sets = histogram.clone();
        let bounds = self.snapshot.retained_by_classes(&mut of_sets, &Silent);
        assert_eq!(bounds.unwrap(), [], "{what:?}");
        for (class, line) in self.snapshot.classes().iter().map(|c| c.0).zip(&histogram) {
            let of_class = |n: usize| self.snapshot.class_of(self.numbers[n]) == Some(class);
            let is_class = self.snapshot.class_class() == Some(class);
            let member = |n: usize| {
                of_class(n) || is_class && matches!(self.heap.nodes[n].kind, Kind::Class)
            };
            let own = (0..reached.len()).filter(|&n| reached[n] && member(n));
            let (objects, bytes) = own.fold((0, 0), |s, n| (s.0 + 1, s.1 + size(n)));
            assert_eq!(
                (line.reachable.objects, line.reachable.bytes),
                (objects, bytes),
                "{what:?}"
            );
            // An object that a single instance of the class retains is counted once. An object that no single instance
            // retains, but several instances together, is not counted.
            let name = &self.snapshot.classes()[class].name;
            let single = (0..reached.len()).filter(|&n| reached[n] && member(n));
            let mut alone = vec![false; reached.len()];
            for n in single {
                let left = brute.reached_without(|other| other == n);
                (0..left.len()).for_each(|o| alone[o] |= reached[o] && !left[o]);
            }
            let alone: u64 = (0..alone.len()).filter(|&n| alone[n]).map(size).sum();
            assert_eq!(line.retained_bytes, alone, "{what:?}: {name}");
            let freed = of_sets[class.index()].retained_bytes;
            assert_eq!(freed, sum(&member).0, "{what:?}: {name}");
            assert!(alone <= freed && bytes <= freed, "{what:?}: {name}");
        }
    }
}

/// Returns thresholds that depend on the seed. With two of three seeds, the analysis treats the small heap like a large
/// one.
fn thresholds(seed: u64, tally: Option<&'static Tally>) -> Thresholds {
    match (seed / 2) % 3 {
        0 => Thresholds::USUAL,
        1 => Thresholds {
            tally,
            ..Thresholds::LOW
        },
        // These thresholds choose as few witnesses as possible. Witnesses are objects whose references to their classes
        // the dominator computation follows (see `dominators/core.rs`). The other thresholds have their usual values.
        _ => Thresholds {
            rare: 0,
            every: 1 << 20,
            near: 0,
            bare: [0, u32::MAX],
            tally,
            ..Thresholds::USUAL
        },
    }
}

/// Returns how often each special code path of the dominator computation was used.
fn came_by(tally: &Tally) -> [usize; 9] {
    [
        &tally.sinks,
        &tally.weak_sinks,
        &tally.settled,
        &tally.popular,
        &tally.again,
        &tally.leaves_again,
        &tally.long,
        &tally.wanting,
        &tally.bare,
    ]
    .map(|counter| counter.load(Ordering::Relaxed))
}

fn plan(seed: u64, nodes: usize) -> Plan {
    Plan {
        seed,
        nodes,
        references: false,
        duplicates: false,
        odd_ids: false,
        shared: false,
    }
}

#[test]
fn dominators_equal_petgraphs_on_plain_graphs() {
    for seed in 0..rounds(5_000) {
        let mut rng = Rng::new(seed);
        let nodes = 1 + rng.below(60);
        let density = 1 + rng.below(5);
        let edges = rng.below(nodes * density + 1);
        let any = |rng: &mut Rng| rng.below(nodes);
        let mut edges: Vec<(usize, usize)> =
            (0..edges).map(|_| (any(&mut rng), any(&mut rng))).collect();
        let doubled = edges.first().copied();
        edges.extend(doubled);
        let roots: Vec<usize> = (0..rng.below(4)).map(|_| any(&mut rng)).collect();
        let kind = [
            graph::NodeKind::Mixed,
            graph::NodeKind::Arrays,
            graph::NodeKind::Instances,
        ][rng.below(3)];
        let options = testdata::writer::Options::default();
        let dump = graph::dump(nodes, &edges, &roots, kind, options);
        let both = both_by(dump.bytes, Refs::Soft, thresholds(seed, None));
        // Compare the naive reader with the graph from which the heap was written.
        for (node, &address) in dump.addresses.iter().enumerate() {
            let place = both.heap.by_id[&address];
            let targets = both.heap.nodes[place].edges.iter();
            let found: Vec<u64> = targets
                .map(|&(to, _)| both.heap.nodes[to].id)
                .filter(|id| dump.addresses.contains(id))
                .collect();
            let expected = edges.iter().filter(|e| e.0 == node);
            let expected: Vec<u64> = expected.map(|e| dump.addresses[e.1]).collect();
            assert_eq!(found, expected, "graph {seed}");
            assert_eq!(both.heap.roots.contains(&place), roots.contains(&node));
            let object = both.snapshot.find(ObjectId(address)).unwrap();
            assert_eq!(object, both.numbers[place]);
        }
        both.check_dominators(&BruteForce::new(&both.heap, Refs::Soft), &seed);
    }
}

#[test]
fn dominators_equal_petgraphs_on_heaps_with_loaders() {
    for seed in 0..rounds(5_000) {
        let plan = plan(1_000_000 + seed, 60);
        let both = both_by(world::dump(&plan), Refs::Soft, thresholds(seed, None));
        both.check_dominators(&BruteForce::new(&both.heap, Refs::Soft), &plan);
    }
}

#[test]
fn dominators_equal_petgraphs_with_sharing_and_back_edges() {
    let tally: &'static Tally = Box::leak(Box::default());
    let heaps = rounds(3_000);
    for seed in 0..heaps {
        let refs = [Refs::Soft, Refs::Soft, Refs::Strong, Refs::All][seed as usize % 4];
        let plan = Plan {
            references: seed % 2 == 0,
            shared: true,
            ..plan(5_000_000 + seed, 50)
        };
        let both = both_by(world::dump(&plan), refs, thresholds(seed, Some(tally)));
        both.check_dominators(&BruteForce::new(&both.heap, refs), &(plan, refs));
    }
    // Check that this test covers the code paths that the algorithm takes for large heaps. A dump must be read again
    // more than `heaps / 30` times. Each of the other code paths must be taken more than `heaps / 10` times.
    let read_again = tally.read_again.load(Ordering::Relaxed) as u64;
    assert!(read_again > heaps / 30, "{read_again}");
    let came_by = came_by(tally);
    assert!(
        came_by.iter().all(|&times| times as u64 > heaps / 10),
        "{came_by:?}"
    );
}

#[test]
fn dominators_follow_the_strength_of_references() {
    for refs in [Refs::Strong, Refs::Soft, Refs::All] {
        for seed in 0..rounds(2_000) {
            let plan = Plan {
                references: true,
                ..plan(2_000_000 + seed, 40)
            };
            let both = both_by(world::dump(&plan), refs, thresholds(seed, None));
            both.check_dominators(&BruteForce::new(&both.heap, refs), &(plan, refs));
        }
    }
}

#[test]
fn retained_sizes_equal_the_bytes_that_removal_frees() {
    for refs in [Refs::Strong, Refs::Soft, Refs::All] {
        for seed in 0..rounds(150) {
            let plan = Plan {
                references: seed % 3 > 0,
                ..plan(3_000_000 + seed, 25)
            };
            let both = both_by(world::dump(&plan), refs, thresholds(seed, None));
            let brute = BruteForce::new(&both.heap, refs);
            both.check_dominators(&brute, &(plan, refs));
            both.check_sizes(&brute, &(plan, refs));
        }
    }
}

#[test]
fn odd_and_duplicate_ids_change_nothing() {
    for seed in 0..rounds(1_500) {
        let plan = Plan {
            references: seed % 2 == 0,
            duplicates: seed % 3 != 0,
            odd_ids: seed % 3 != 1,
            ..plan(4_000_000 + seed, 40)
        };
        let both = both_by(world::dump(&plan), Refs::Soft, thresholds(seed, None));
        both.check_dominators(&BruteForce::new(&both.heap, Refs::Soft), &plan);
    }
}

#[test]
fn dominators_equal_petgraphs_on_real_dumps() {
    for name in ["before", "after"] {
        let path = format!("{}/../testdata/{name}.hprof.gz", env!("CARGO_MANIFEST_DIR"));
        let bytes = unpacked(Path::new(&path));
        for refs in [Refs::Strong, Refs::Soft, Refs::All] {
            let both = both(bytes.clone(), refs);
            both.check_dominators(&BruteForce::new(&both.heap, refs), &(name, refs));
        }
    }
}
