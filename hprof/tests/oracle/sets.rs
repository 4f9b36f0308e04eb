//! Tests deep and retained sizes of sets of objects, on random heaps.

use std::collections::BTreeSet;

use hprof::answers::DeepOptions;
use hprof::sizes::Total;
use hprof::{ObjectIndex, Refs, Silent};
use testdata::writer::Rng;

use crate::both::{Both, both_of};
use crate::brute::BruteForce;
use crate::naive::{Kind, Strength};
use crate::world::{self, Plan, rounds};

const ALL_REFS: [Refs; 3] = [Refs::Strong, Refs::Soft, Refs::All];

impl Both {
    fn total(&self, nodes: impl IntoIterator<Item = usize>) -> Total {
        let mut total = Total::default();
        for node in nodes {
            total += Total {
                objects: 1,
                bytes: self.snapshot.shallow_bytes(self.numbers[node]),
            };
        }
        total
    }

    /// True if the node represents a class.
    fn is_mirror(&self, node: usize) -> bool {
        match self.heap.nodes[node].kind {
            Kind::Class => true,
            Kind::Instance(class) => self
                .heap
                .names
                .get(&class)
                .is_some_and(|n| n == "java.lang.Class"),
            _ => false,
        }
    }

    /// Returns the nodes that a set reaches by fields and elements.
    fn reached_by(
        &self,
        set: &BTreeSet<usize>,
        refs: Refs,
        enters: &dyn Fn(usize) -> bool,
        leaves: &dyn Fn(usize) -> bool,
    ) -> BTreeSet<usize> {
        let mut reached: BTreeSet<usize> = set.iter().copied().filter(|&n| enters(n)).collect();
        let mut todo: Vec<usize> = reached.iter().copied().collect();
        while let Some(from) = todo.pop() {
            if !leaves(from) {
                continue;
            }
            for &(to, strength) in &self.heap.nodes[from].fields {
                let counts = match refs {
                    Refs::All => true,
                    Refs::Soft => strength <= Strength::Final,
                    Refs::Strong => strength == Strength::Strong,
                };
                if counts && !self.is_mirror(to) && enters(to) && reached.insert(to) {
                    todo.push(to);
                }
            }
        }
        reached
    }

    fn numbers_of(&self, nodes: &BTreeSet<usize>) -> Vec<ObjectIndex> {
        nodes.iter().map(|&n| self.numbers[n]).collect()
    }
}

fn plan(seed: u64, nodes: usize) -> Plan {
    Plan {
        seed,
        nodes,
        references: !seed.is_multiple_of(3),
        duplicates: seed.is_multiple_of(4),
        odd_ids: seed.is_multiple_of(5),
        shared: false,
    }
}

fn some(rng: &mut Rng, of: usize, most: usize) -> BTreeSet<usize> {
    (0..1 + rng.below(most)).map(|_| rng.below(of)).collect()
}

#[test]
fn a_set_retains_the_bytes_that_its_removal_frees() {
    let (mut more, mut fewer) = (0, 0);
    for refs in ALL_REFS {
        for seed in 0..rounds(300) {
            let plan = plan(5_000_000 + seed, 40);
            let both = both_of(world::dump(&plan), refs, seed);
            let brute = BruteForce::new(&both.heap, refs);
            let count = both.heap.nodes.len();
            let reached = brute.reached_without(|_| false);
            let mut rng = Rng::new(seed);
            for _ in 0..8 {
                let set = some(&mut rng, count, 12);
                let left = brute.reached_without(|n| set.contains(&n));
                let freed = (0..count).filter(|&n| reached[n] && !left[n]);
                let expected = set.iter().any(|&n| reached[n]).then(|| both.total(freed));
                let numbers = both.numbers_of(&set);
                let found = both.snapshot.retained_by_all(&numbers, &Silent).unwrap();
                assert_eq!(found, expected, "{plan:?} {refs:?} {set:?}");
                let alone = numbers
                    .iter()
                    .filter_map(|&o| both.snapshot.retained_bytes(o));
                let (sum, found) = (alone.sum::<u64>(), found.map_or(0, |t| t.bytes));
                more += u64::from(sum > found);
                fewer += u64::from(sum < found);
            }
        }
    }
    // The sum of the sizes of the single objects may be larger or smaller than the size of the set.
    assert!(more > 10 && fewer > 10, "{more} {fewer}");
}

#[test]
fn a_set_of_one_object_retains_as_much_as_in_the_tree() {
    for refs in ALL_REFS {
        for seed in 0..rounds(300) {
            let plan = plan(6_000_000 + seed, 40);
            let both = both_of(world::dump(&plan), refs, seed);
            let snapshot = &both.snapshot;
            for &object in &both.numbers {
                let of_tree = snapshot.retained_bytes(object);
                // For an object that is given twice, the algorithm for several objects is used. The result must be the
                // same as for the single object.
                let found = snapshot.retained_by_all(&[object; 2], &Silent).unwrap();
                assert_eq!(found.map(|t| t.bytes), of_tree, "{plan:?} {refs:?}");
            }
        }
    }
}

#[test]
fn a_deep_size_equals_that_of_a_walk() {
    for refs in ALL_REFS {
        for seed in 0..rounds(400) {
            let plan = plan(7_000_000 + seed, 60);
            let both = both_of(world::dump(&plan), refs, seed);
            let mut rng = Rng::new(seed);
            let snapshot = &both.snapshot;
            let mut deep = snapshot.deep(&DeepOptions::default(), &Silent).unwrap();
            for _ in 0..8 {
                let set = some(&mut rng, both.heap.nodes.len(), 10);
                let reached = both.reached_by(&set, refs, &|_| true, &|_| true);
                let expected = both.total(reached);
                let found = deep.of_set(&both.numbers_of(&set));
                assert_eq!(found.total, expected, "{plan:?} {refs:?} {set:?}");
                let mut by_class = Total::default();
                found.by_class.iter().for_each(|&t| by_class += t);
                // If the dump has no java.lang.Class, class objects have no class.
                if snapshot.class_class().is_some() {
                    assert_eq!(by_class, expected, "{plan:?}");
                }
            }
            // After a walk from a single object, no object may still count as visited.
            for _ in 0..4 {
                let node = rng.below(both.heap.nodes.len());
                let reached = both.reached_by(&[node].into(), refs, &|_| true, &|_| true);
                let expected = both.total(reached);
                let object = both.numbers[node];
                assert_eq!(deep.of_one(object, u64::MAX), Some(expected), "{plan:?}");
                assert_eq!(deep.of_one(object, expected.objects), Some(expected));
                assert_eq!(deep.of_one(object, expected.objects - 1), None);
            }
        }
    }
}

#[test]
fn classes_are_skipped_or_end_the_walk_on_request() {
    let mut mattered = [0_u32; 2];
    // Use at least 40 heaps. With fewer heaps, some options would change no result.
    for seed in 0..rounds(400).max(40) {
        let plan = plan(8_000_000 + seed, 60);
        let both = both_of(world::dump(&plan), Refs::Soft, seed);
        let mut rng = Rng::new(seed);
        let snapshot = &both.snapshot;
        let class = |node: usize| {
            let class = snapshot.class(both.numbers[node]);
            class.map_or(String::new(), |c| c.name.to_string())
        };
        let count = both.heap.nodes.len();
        let exact = |name: &str| regex::Regex::new(&format!("^{}$", regex::escape(name))).unwrap();
        let (gone, end) = (class(rng.below(count)), class(rng.below(count)));
        let mut options = DeepOptions::default();
        options.exclude = vec![exact(&gone)];
        options.stop_at = vec![exact(&end)];
        let mut deep = snapshot.deep(&options, &Silent).unwrap();
        let set = some(&mut rng, count, 10);
        let found = deep.of_set(&both.numbers_of(&set)).total;
        let enters = |n: usize| class(n) != gone;
        let leaves = |n: usize| class(n) != end;
        let reached = both.reached_by(&set, Refs::Soft, &enters, &leaves);
        let expected = both.total(reached);
        assert_eq!(found, expected, "{plan:?} {gone} {end} {set:?}");
        let freely = |enters: &dyn Fn(usize) -> bool, leaves: &dyn Fn(usize) -> bool| {
            both.reached_by(&set, Refs::Soft, enters, leaves).len() as u64
        };
        mattered[0] += u32::from(freely(&|_| true, &leaves) > expected.objects);
        mattered[1] += u32::from(freely(&enters, &|_| true) > expected.objects);
    }
    assert!(mattered.iter().all(|&m| m > 5), "{mattered:?}");
}

/// Checks a tree: each level contains the objects that a breadth-first walk reaches at this depth. Each object occurs
/// once, below the path that reaches it.
#[test]
fn a_tree_has_each_object_at_its_smallest_depth() {
    for refs in ALL_REFS {
        for seed in 0..rounds(200) {
            let plan = plan(9_000_000 + seed, 60);
            let both = both_of(world::dump(&plan), refs, seed);
            let mut rng = Rng::new(seed);
            let snapshot = &both.snapshot;
            let mut deep = snapshot.deep(&DeepOptions::default(), &Silent).unwrap();
            let set = some(&mut rng, both.heap.nodes.len(), 6);
            let numbers = both.numbers_of(&set);
            let total = deep.of_set(&numbers).total;
            let mut levels: Vec<BTreeSet<usize>> = vec![set.clone()];
            let mut seen = set.clone();
            while levels.last().is_some_and(|l| !l.is_empty()) {
                let level = levels.last().cloned().unwrap_or_default();
                let next = both.reached_by(
                    &level,
                    refs,
                    &|n| !seen.contains(&n) || level.contains(&n),
                    &|n| level.contains(&n),
                );
                let next: BTreeSet<usize> = next.difference(&level).copied().collect();
                seen.extend(&next);
                levels.push(next);
            }
            for depth in 0..5 {
                let lines = deep.tree(&numbers, depth);
                assert_eq!(lines[0].all, total, "{plan:?}");
                for (at, level) in levels.iter().enumerate().take(depth as usize + 1) {
                    let mut found = Total::default();
                    let here = lines.iter().filter(|l| l.depth as usize == at);
                    here.for_each(|l| found += l.own);
                    let expected = both.total(level.iter().copied());
                    assert_eq!(found, expected, "{plan:?} {refs:?} level {at} of {depth}");
                }
                for (at, line) in lines.iter().enumerate() {
                    let below = lines.iter().filter(|l| l.above == Some(at as u32));
                    let mut sum = line.own;
                    below.for_each(|l| sum += l.all);
                    // A line at the maximum depth includes everything below it, so its total is not the sum of listed
                    // lines.
                    let whole = line.depth == depth || sum == line.all;
                    assert!(whole && sum.bytes <= line.all.bytes, "{plan:?} {line:?}");
                    assert!(line.above.is_none_or(|a| (a as usize) < at));
                }
            }
            assert_eq!(deep.of_set(&numbers).total, total);
        }
    }
}
