//! Compares paths and referrers with the references of the naive reader.

use std::collections::{BTreeMap, VecDeque};

use hprof::answers::{Merge, PathOptions};
use hprof::records::Reference;
use hprof::{ObjectIndex, Refs, Silent};
use testdata::writer::Rng;

use crate::both::{Both, both_of};
use crate::naive::Strength;
use crate::world::{self, Plan, rounds};

fn plan(seed: u64) -> Plan {
    Plan {
        seed: 6_000_000 + seed,
        nodes: 40,
        references: !seed.is_multiple_of(3),
        duplicates: false,
        odd_ids: seed.is_multiple_of(4),
        shared: false,
    }
}

const fn strength(reference: Reference) -> Strength {
    match reference {
        Reference::No => Strength::Strong,
        Reference::Soft => Strength::Soft,
        Reference::Final => Strength::Final,
        Reference::Weak => Strength::Weak,
        Reference::Phantom => Strength::Phantom,
    }
}

/// Returns the distance of each object from the nearest root. Only references up to the given strength are followed,
/// and the objects in `except` are ignored.
fn distances(both: &Both, weakest: Strength, except: &[ObjectIndex]) -> Vec<Option<usize>> {
    let mut distance = vec![None; both.heap.nodes.len()];
    let is_there = |node: usize| !except.contains(&both.numbers[node]);
    let roots = both.heap.roots.iter().copied();
    let mut queue: VecDeque<usize> = roots.filter(|&r| is_there(r)).collect();
    queue.iter().for_each(|&r| distance[r] = Some(0));
    while let Some(from) = queue.pop_front() {
        for &(to, strength) in &both.heap.nodes[from].edges {
            if strength <= weakest && distance[to].is_none() && is_there(to) {
                distance[to] = distance[from].map(|d| d + 1);
                queue.push_back(to);
            }
        }
    }
    distance
}

#[test]
fn paths_are_shortest_and_use_references_of_the_dump() {
    for refs in [Refs::Strong, Refs::Soft, Refs::All] {
        for seed in 0..rounds(300) {
            let plan = plan(seed);
            let both = both_of(world::dump(&plan), refs, seed);
            let mut rng = Rng::new(seed);
            let some = rng.below(3) * 4;
            let except: Vec<ObjectIndex> = (0..some)
                .map(|_| both.numbers[rng.below(both.numbers.len())])
                .collect();
            let strong = distances(&both, Strength::Strong, &except);
            let follow = [
                (Refs::Strong, Strength::Strong),
                (Refs::Soft, Strength::Final),
                (Refs::All, Strength::Phantom),
            ];
            for (follow, weakest) in follow {
                let any = distances(&both, weakest, &except);
                for from_statics in [false, true] {
                    let mut options = PathOptions::default();
                    options.follow = follow;
                    options.from_statics = from_statics;
                    options.except = &except;
                    let snapshot = &both.snapshot;
                    let paths = snapshot.paths(&both.numbers, &options, &Silent).unwrap();
                    let what = (plan, refs, options);
                    for (node, &object) in both.numbers.iter().enumerate() {
                        let Some(path) = paths.path(snapshot, object) else {
                            assert_eq!(any[node], None, "{what:?} {node}");
                            assert!(paths.missing().contains(&object));
                            continue;
                        };
                        assert!(any[node].is_some(), "{what:?} {node}");
                        assert!(path.begin < path.steps.len());
                        let last = path.steps.last().unwrap();
                        assert_eq!(both.places[&last.object], node);
                        let first = both.places[&path.steps[0].object];
                        assert!(both.heap.roots.contains(&first), "{what:?} {node}");
                        assert!(path.root.is_some());
                        for pair in path.steps.windows(2) {
                            let [from, to] = [0, 1].map(|i| both.places[&pair[i].object]);
                            let edge = (to, strength(pair[1].strength));
                            let edges = &both.heap.nodes[from].edges;
                            assert!(edges.contains(&edge), "{what:?} {from} {edge:?}");
                        }
                        let weak = path.steps.iter().any(|s| s.strength != Reference::No);
                        // A path with weaker references is returned only if there is no strong path.
                        assert_eq!(weak, strong[node].is_none(), "{what:?} {node}");
                        if !from_statics && let Some(distance) = strong[node] {
                            assert_eq!(path.steps.len(), distance + 1, "{what:?} {node}");
                        }
                    }
                    check_merged(&both, &paths, &any);
                }
            }
        }
    }
}

fn check_merged(both: &Both, paths: &hprof::answers::Paths, distances: &[Option<usize>]) {
    let found = distances.iter().flatten().count() as u64;
    for merge in [Merge::Class, Merge::Object] {
        let all = paths.merged(&both.snapshot, merge, usize::MAX).nodes.len() as u64;
        for limit in [0, 1, 2, 3, 5, 8, 10_000] {
            let tree = paths.merged(&both.snapshot, merge, limit);
            assert!(tree.nodes.len() <= limit);
            let hidden: u64 = tree.nodes.iter().map(|n| n.hidden.0).sum();
            assert_eq!(tree.nodes.len() as u64 + hidden + tree.hidden.0, all);
            let tops = tree.nodes.iter().filter(|n| n.depth == 0);
            let targets: u64 = tops.map(|n| n.targets).sum();
            assert_eq!(targets + tree.hidden.1, found);
            assert!(tree.nodes.iter().all(|n| n.targets > 0));
            if limit > 8 {
                let own: u64 = tree.nodes.iter().map(|n| n.own_targets).sum();
                assert_eq!(own, found);
            }
        }
    }
}

#[test]
fn referrers_equal_those_of_the_dump() {
    for seed in 0..rounds(300) {
        let plan = plan(seed);
        let both = both_of(world::dump(&plan), Refs::Soft, seed);
        let mut rng = Rng::new(seed);
        let mut expected: BTreeMap<usize, Vec<(usize, Strength)>> = BTreeMap::new();
        for (from, node) in both.heap.nodes.iter().enumerate() {
            for &(to, strength) in &node.edges {
                expected.entry(to).or_default().push((from, strength));
            }
        }
        let all = both.snapshot.referrers(&both.numbers, usize::MAX, &[]);
        for (node, found) in all.iter().enumerate() {
            // The naive reader, whose results are compared with those of the snapshot, has no classes for primitive
            // arrays.
            let class = both.snapshot.represents(both.numbers[node]);
            if class.is_some_and(|c| both.snapshot.classes()[c].element.is_some()) {
                continue;
            }
            assert_eq!(found.total, found.list.len() as u64);
            let found: Vec<(usize, Strength)> = found
                .list
                .iter()
                .map(|r| (both.places[&r.from], strength(r.strength)))
                .collect();
            let sorted = |mut list: Vec<(usize, Strength)>| {
                list.sort_unstable();
                list
            };
            let expected = expected.get(&node).cloned().unwrap_or_default();
            assert_eq!(sorted(found), sorted(expected), "{plan:?} {node}");
        }
        // Query random objects, some of them twice. The result has a list for each queried object, with at most `limit`
        // elements.
        let limit = rng.below(5);
        let asked: Vec<usize> = (0..20).map(|_| rng.below(both.numbers.len())).collect();
        let objects: Vec<ObjectIndex> = asked.iter().map(|&n| both.numbers[n]).collect();
        let some = both.snapshot.referrers(&objects, limit, &[]);
        assert_eq!(some.len(), asked.len());
        for (some, &node) in some.iter().zip(&asked) {
            let all = &all[node];
            assert_eq!(some.total, all.total);
            assert_eq!(some.list[..], all.list[..limit.min(all.list.len())]);
        }
        let without = both.snapshot.referrers(&objects, usize::MAX, &objects[..7]);
        for (without, &node) in without.iter().zip(&asked) {
            let left = all[node].list.iter();
            let left: Vec<_> = left.filter(|r| !objects[..7].contains(&r.from)).collect();
            assert_eq!(without.list.iter().collect::<Vec<_>>(), left);
            assert_eq!(without.total, left.len() as u64);
        }
    }
}
