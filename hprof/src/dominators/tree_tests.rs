//! Compares the dominators of random graphs with those that petgraph computes. In these graphs, objects refer to their
//! classes.

use std::time::Duration;

use petgraph::algo::dominators::simple_fast;
use petgraph::graph::{DiGraph, NodeIndex};
use testdata::deadline::Deadline;

use super::*;
use crate::progress::Silent;

/// Time limit for one small graph. If a computed dominator is wrong, a search may never end.
const LIMIT: Duration = Duration::from_secs(60);

/// Thresholds that choose too few witnesses (objects whose references to class objects are followed) in some cases.
const FEW: Thresholds = Thresholds {
    rare: 0,
    every: 1 << 20,
    near: 0,
    ..Thresholds::USUAL
};

/// The random number generator xorshift64*. It gives the same graphs on every run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u32) -> u32 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let high = (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) as u32;
        ((u64::from(high) * u64::from(bound)) >> 32) as u32
    }
}

struct Case {
    classes: u32,
    inner: u32,
    objects: u32,
    /// The class of each object, [`NONE`] for class objects.
    class_of: Vec<u32>,
    rows: Vec<(u32, u32)>,
    roots: Vec<u32>,
    /// References to referents: first those of soft references, then those of final references. Each pair is the source
    /// and the target.
    weaker: [Vec<(u32, u32)>; 2],
}

impl Case {
    /// Creates class objects first, then objects that refer to their class and to a few other objects, mostly ones with
    /// close numbers. Leaves (objects without references) come last.
    fn random(random: &mut Random) -> Self {
        Self::of_size(random, 120)
    }

    /// Creates a case like [`Case::random`], but with at most `size` objects that may have references.
    fn of_size(random: &mut Random, size: u32) -> Self {
        let classes = random.below(6);
        let inner = classes + 1 + random.below(size);
        let objects = inner + random.below(30);
        let mut rows = Vec::new();
        let mut class_of = vec![NONE; inner as usize];
        // In half of the cases, many references are back edges.
        let back = if random.below(2) == 0 { 2 } else { 0 };
        for from in 0..inner {
            if from >= classes && classes > 0 {
                class_of[from as usize] = random.below(classes);
            }
            for _ in 0..random.below(3) {
                let near = from.saturating_add(random.below(5)).min(objects - 1);
                let target = if random.below(3) == 0 {
                    random.below(objects)
                } else {
                    near
                };
                rows.push((from, target));
                if target < inner && random.below(3) < back {
                    rows.push((target, from));
                }
            }
        }
        rows.sort_unstable();
        let mut roots: Vec<u32> = (0..=random.below(3))
            .map(|_| random.below(objects))
            .collect();
        roots.sort_unstable();
        roots.dedup();
        Self {
            classes,
            inner,
            objects,
            class_of,
            rows,
            roots,
            weaker: Default::default(),
        }
    }

    /// Adds soft and final references between random objects.
    fn weaken(&mut self, random: &mut Random) {
        for level in &mut self.weaker {
            *level = (0..random.below(12))
                .map(|_| (random.below(self.inner), random.below(self.objects)))
                .collect();
            level.sort_unstable();
        }
    }

    /// Returns all references: source, target and strength (0 is strong, 1 soft, 2 final).
    fn references(&self) -> Vec<(u32, u32, usize)> {
        let of_classes = (0..).zip(self.class_of.iter().copied());
        let strong = of_classes.filter(|&(_, class)| class != NONE);
        let strong = strong.chain(self.rows.iter().copied());
        let levels = [
            strong.collect(),
            self.weaker[0].clone(),
            self.weaker[1].clone(),
        ];
        let of_level = |(level, all): (usize, Vec<(u32, u32)>)| {
            all.into_iter().map(move |(from, to)| (from, to, level))
        };
        levels.into_iter().enumerate().flat_map(of_level).collect()
    }

    /// Returns the reachability level of each object; [`usize::MAX`] if it is unreachable. The level of an object is
    /// that of the strongest path to it, and the level of a path is that of its weakest reference.
    fn levels(&self) -> Vec<usize> {
        let references = self.references();
        let mut levels = vec![usize::MAX; self.objects as usize];
        self.roots.iter().for_each(|&r| levels[r as usize] = 0);
        let mut changed = true;
        while changed {
            changed = false;
            for &(from, to, level) in &references {
                let level = level.max(levels[from as usize]);
                if level < levels[to as usize] {
                    levels[to as usize] = level;
                    changed = true;
                }
            }
        }
        levels
    }

    fn graph(&self, store: &Store) -> HeapGraph {
        let roots: Vec<u32> = self.roots.clone();
        let mut graph = HeapGraph::from_rows(self.inner, &self.rows, &roots, store).unwrap();
        graph.split.classes = self.classes;
        graph.objects = self.objects;
        graph.weaker = self.weaker.clone();
        graph
    }

    /// Returns the dominator of each object, computed by petgraph: `None` if the object is unreachable, and the number
    /// of all objects if only the super-root dominates it.
    fn expected(&self) -> Vec<Option<u32>> {
        let root = NodeIndex::new(self.objects as usize);
        let mut graph: DiGraph<(), ()> = DiGraph::new();
        (0..=self.objects).for_each(|_| {
            graph.add_node(());
        });
        let node = |n: u32| NodeIndex::new(n as usize);
        // Only the strongest paths to an object count: paths of strong references, then soft ones, then final ones.
        let levels = self.levels();
        for (from, to, level) in self.references() {
            let of_path = level.max(levels[from as usize]);
            if of_path != usize::MAX && of_path == levels[to as usize] {
                graph.add_edge(node(from), node(to), ());
            }
        }
        graph.extend_with_edges(self.roots.iter().map(|&r| (root, node(r))));
        let dominators = simple_fast(&graph, root);
        (0..self.objects)
            .map(|o| {
                dominators
                    .immediate_dominator(node(o))
                    .map(|d| d.index() as u32)
            })
            .collect()
    }

    fn found(&self, thresholds: Thresholds) -> Vec<Option<u32>> {
        self.found_with(thresholds, &[]).unwrap()
    }

    /// Returns the computed dominators. `of_leaves` contains the class to which each leaf (object without other
    /// references) refers. Returns `None` if no tree is built, because a reference from a leaf to its class may change
    /// a dominator.
    fn found_with(&self, thresholds: Thresholds, of_leaves: &[u32]) -> Option<Vec<Option<u32>>> {
        let _deadline = Deadline::after(LIMIT);
        let store = Store::new(None);
        let class_of = |object: u32| match object.checked_sub(self.inner) {
            Some(leaf) => of_leaves.get(leaf as usize).copied().unwrap_or(NONE),
            None => self.class_of[object as usize],
        };
        let mut graph = self.graph(&store);
        graph.of_leaves = (0..self.classes).collect();
        let tree = DominatorTree::new(
            graph,
            class_of,
            (|_| 8, |_| ()),
            thresholds,
            None,
            &store,
            &Silent,
        );
        let tree = tree.unwrap()?;
        let all: u64 = tree
            .children(Node::ROOT)
            .map(|n| tree.retained_bytes(n))
            .sum();
        let leaves = tree.leaves(Node::ROOT).len() as u64 * 8;
        assert_eq!(all + leaves, tree.retained_bytes(Node::ROOT));
        for node in tree.nodes() {
            assert_eq!(tree.object(node).and_then(|o| tree.node(o)), Some(node));
        }
        for object in (0..self.objects).map(ObjectIndex) {
            let kind = Some(RootKind::Unknown).filter(|_| self.roots.contains(&object.0));
            assert_eq!(tree.root_kind(object), kind);
        }
        let dominators = (0..self.objects).map(|o| {
            let dominator = tree.dominator(ObjectIndex(o))?;
            Some(tree.object(dominator).map_or(self.objects, |d| d.0))
        });
        Some(dominators.collect())
    }

    /// Returns the number of terminal merge nodes: objects with several referrers that lead to no such object.
    fn sinks(&self) -> usize {
        let store = Store::new(None);
        let mut graph = AnnotatedGraph::new(self.graph(&store)).unwrap();
        let class_of = |object: u32| self.class_of[object as usize];
        let core = Core::find(&mut graph, &class_of, &[], FEW, &store).unwrap();
        core.sinks.len()
    }

    /// Returns true if the first attempt finds wrong dominators, because it follows too few references to class
    /// objects.
    fn needs_more(&self, thresholds: Thresholds) -> bool {
        let _deadline = Deadline::after(LIMIT);
        let store = Store::new(None);
        let mut graph = AnnotatedGraph::new(self.graph(&store)).unwrap();
        let class_of = |object: u32| self.class_of[object as usize];
        let core = Core::find(&mut graph, &class_of, &[], thresholds, &store).unwrap();
        let found =
            lengauer_tarjan::dominators(&mut graph, &class_of, core, &store, &Silent).unwrap();
        matches!(
            preorder::lay_out(&mut graph, &class_of, found, thresholds, &store).unwrap(),
            Outcome::Missing(_)
        )
    }
}

#[test]
fn witnesses_give_the_dominators_of_the_whole_graph() {
    let mut random = Random(7);
    let (mut wanting, mut sinks) = (0, 0);
    for round in 0..1000 {
        let case = Case::random(&mut random);
        let expected = case.expected();
        assert_eq!(case.found(FEW), expected, "round {round}, few witnesses");
        let other = [Thresholds::USUAL, Thresholds::LOW][round % 2];
        assert_eq!(case.found(other), expected, "round {round}");
        wanting += usize::from(case.needs_more(FEW));
        sinks += case.sinks();
    }
    assert!(sinks > 1_250, "{sinks} sinks in all");
    // Check that in many cases the first attempt finds wrong dominators. So the test covers the code that then follows
    // more references to class objects.
    assert!(wanting > 25, "{wanting} of 1000 cases needed more");
}

#[test]
fn weaker_references_count_without_a_stronger_path() {
    let mut random = Random(11);
    let mut reached = [0; 3];
    for round in 0..500 {
        let mut case = Case::random(&mut random);
        case.weaken(&mut random);
        let expected = case.expected();
        assert_eq!(case.found(FEW), expected, "round {round}, few witnesses");
        let other = [Thresholds::USUAL, Thresholds::LOW][round % 2];
        assert_eq!(case.found(other), expected, "round {round}");
        for level in case.levels().into_iter().filter(|&l| l < 3) {
            reached[level] += 1;
        }
    }
    assert!(
        reached.iter().all(|&of_level| of_level > 500),
        "{reached:?}"
    );
}

#[test]
fn terminal_merge_nodes_are_inserted_into_large_trees() {
    // The first 30,000 objects form a tree, in which some objects have a second referrer. Each of the 30,000 objects
    // also refers to two of the other 60,000 objects. Many of the 60,000 objects have several referrers.
    const OBJECTS: u32 = 30_000;
    let mut random = Random(13);
    for classes in [0, 3] {
        let n = |object: u32| classes + object;
        let inner = n(3 * OBJECTS);
        let mut rows = Vec::new();
        let mut class_of = vec![NONE; inner as usize];
        for object in 1..OBJECTS {
            // The parent is one of the last 50 objects, so the tree becomes deep.
            let above = random.below(object).max(object.saturating_sub(50));
            rows.push((n(above), n(object)));
            if random.below(20) == 0 {
                rows.push((n(random.below(OBJECTS)), n(object)));
            }
            let far = random.below(2 * OBJECTS);
            let near = (object + random.below(9)) % OBJECTS;
            rows.extend([n(OBJECTS + far), n(OBJECTS + near)].map(|shared| (n(object), shared)));
        }
        for shared in OBJECTS..3 * OBJECTS {
            // Every fourth of the other 60,000 objects refers to the next one, so that some of the 60,000 objects have
            // a subtree.
            if shared % 4 == 0 && shared + 1 < 3 * OBJECTS {
                rows.push((n(shared), n(shared + 1)));
            }
            if classes > 0 {
                class_of[n(shared) as usize] = random.below(classes);
            }
        }
        rows.sort_unstable();
        let case = Case {
            classes,
            inner,
            objects: inner,
            class_of,
            rows,
            roots: vec![n(0)],
            weaker: Default::default(),
        };
        assert!(case.sinks() > 10_000, "{} sinks", case.sinks());
        let (found, expected) = (case.found(FEW), case.expected());
        let wrong = (0..inner).find(|&o| found[o as usize] != expected[o as usize]);
        assert_eq!(wrong, None, "{classes} classes");
    }
}

#[test]
fn dominators_changed_by_leaves_are_detected() {
    let mut random = Random(17);
    // Numbers of cases with three outcomes. First: a tree is built. Second: no tree is built, because a reference from
    // a leaf (object without other references) changes a dominator. Third: no tree is built, although no dominator
    // changes.
    let (mut let_through, mut right, mut cautious) = (0, 0, 0);
    for round in 0..500 {
        let mut case = Case::random(&mut random);
        if case.classes == 0 {
            continue;
        }
        if round % 2 == 0 {
            case.weaken(&mut random);
        }
        let leaves = case.inner..case.objects;
        let of_leaves: Vec<u32> = leaves
            .clone()
            .map(|_| match random.below(3) {
                0 => random.below(case.classes),
                _ => NONE,
            })
            .collect();
        // Both arrays contain dominators. In the graph of `expected`, the references from leaves to classes count like
        // all other references. In the graph of `without`, the references from leaves are missing.
        let without = case.expected();
        let found = case.found_with(FEW, &of_leaves);
        let of_leaves = leaves.zip(of_leaves).filter(|&(_, class)| class != NONE);
        case.rows.extend(of_leaves);
        let expected = case.expected();
        match found {
            Some(found) => {
                assert_eq!(found, expected, "round {round}");
                let_through += 1;
            }
            None if without != expected => right += 1,
            None => cautious += 1,
        }
    }
    assert!(let_through > 75, "{let_through} let through");
    assert!(right > 25, "{right} are wrong without these references");
    assert_eq!(cautious, 0, "as the check is exact");
}

#[test]
fn a_leaf_dominates_the_class_that_only_it_keeps() {
    // Objects: a class, its loader, two objects that GC roots hold, and a leaf (object that refers only to its class).
    // The first root object refers to the leaf, and only the leaf leads to the class.
    let case = |also: &[(u32, u32)]| {
        let mut rows = vec![(0, 1), (1, 0), (2, 4)];
        rows.extend(also);
        rows.sort_unstable();
        Case {
            classes: 1,
            inner: 4,
            objects: 5,
            class_of: vec![NONE; 4],
            rows,
            roots: vec![2, 3],
            weaker: Default::default(),
        }
    };
    let usual = Thresholds::USUAL;
    assert_eq!(case(&[]).found_with(usual, &[0]), None);
    // Both root objects refer to the leaf, so neither root object dominates the class, but the leaf still dominates it.
    assert_eq!(case(&[(3, 4)]).found_with(usual, &[0]), None);
    // The second root object refers to the class loader. So a path without the leaf leads to the class, and the
    // reference from the leaf to the class changes the class's dominator.
    assert_eq!(case(&[(3, 1)]).found_with(usual, &[0]), None);
    // If the first root object refers to the leaf and to the loader, the reference from the leaf to the class changes
    // the class's dominator from the loader to the root object. If the root object also refers to the class, the
    // reference from the leaf changes nothing: the root object dominates the class anyway.
    assert_eq!(case(&[(2, 1)]).found_with(usual, &[0]), None);
    let found = case(&[(2, 0), (2, 1)]).found_with(usual, &[0]);
    assert_eq!(found.unwrap()[..2], [Some(2), Some(2)]);
    // An unreachable leaf keeps nothing alive.
    let mut unreachable = case(&[(3, 1)]);
    unreachable.roots = vec![3];
    let found = unreachable.found_with(usual, &[0]);
    assert_eq!(found.unwrap()[..2], [Some(1), Some(3)]);
}

#[test]
fn joins_below_a_soft_reference_are_no_ones_own() {
    // Test once without a class object and once with one.
    for classes in [0, 1] {
        let n = |object: u32| classes + object;
        let mut case = Case {
            classes,
            inner: n(5),
            objects: n(6),
            class_of: vec![NONE; n(5) as usize],
            rows: [(2, 3), (2, 4), (3, 0), (3, 5), (4, 0), (4, 5)]
                .map(|(from, to)| (n(from), n(to)))
                .to_vec(),
            roots: vec![n(1)],
            weaker: Default::default(),
        };
        case.weaker[0].push((n(1), n(2)));
        for thresholds in [FEW, Thresholds::default()] {
            let found = case.found(thresholds);
            assert_eq!(found, case.expected());
            assert_eq!(found[n(0) as usize], Some(n(2)));
            assert_eq!(found[n(2) as usize], Some(n(1)));
        }
    }
}

#[test]
fn classes_are_checked_in_every_part_of_the_heap() {
    // Two roots, each with an object of the same class. The objects are in the same part of the heap or in different
    // ones.
    const INNER: u32 = 40_000;
    for (first, second) in [(10, 39_000), (17_000, 20_000), (10, 20)] {
        let mut class_of = vec![NONE; INNER as usize];
        (class_of[first as usize], class_of[second as usize]) = (0, 0);
        let case = Case {
            classes: 1,
            inner: INNER,
            objects: INNER,
            class_of,
            rows: vec![(1, first), (2, second)],
            roots: vec![1, 2],
            weaker: Default::default(),
        };
        assert!(case.needs_more(FEW));
        let found = case.found(FEW);
        assert_eq!(found[0], Some(INNER), "{first}, {second}");
        assert_eq!(found[first as usize], Some(1));
        assert_eq!(found[second as usize], Some(2));
    }
}

#[test]
fn witnesses_may_be_missing_repeatedly() {
    // The objects of this graph form a chain that begins at the GC root. Each object of the chain also holds one
    // instance of the class. The instances that are held near the end of the chain have the smallest numbers.
    const LINKS: u32 = 8;
    let link = |n: u32| 1 + LINKS + n;
    let mut rows = Vec::new();
    let mut class_of = vec![NONE; 1 + 2 * LINKS as usize];
    for n in 0..LINKS {
        if n > 0 {
            rows.push((link(n), link(n - 1)));
        }
        rows.push((link(n), 1 + n));
        class_of[1 + n as usize] = 0;
    }
    let case = Case {
        classes: 1,
        inner: 1 + 2 * LINKS,
        objects: 1 + 2 * LINKS,
        class_of,
        rows,
        roots: vec![link(LINKS - 1)],
        weaker: Default::default(),
    };
    let found = case.found(FEW);
    assert_eq!(found, case.expected());
    assert_eq!(found[0], Some(link(LINKS - 1)));
}

#[test]
fn long_lists_are_split_among_tasks() {
    // Two tables: the first is long enough for several tasks, the second is just long enough to be split. Half of the
    // entries hold a separate object, and some entries occur twice in their table.
    let (first, second) = (10_000, Thresholds::USUAL.long as u32);
    let entry = |n: u32| 3 + n;
    let below = |n: u32| entry(first + second) + n / 2;
    let table = |from: u32, entries: std::ops::Range<u32>| {
        let twice = entries.clone().step_by(600);
        let all = entries.chain(twice);
        all.map(move |n| (from, entry(n))).collect::<Vec<_>>()
    };
    let mut rows = table(1, 0..first);
    rows.push((1, 2));
    rows.extend(table(2, first..first + second));
    rows.extend((0..first + second).step_by(2).map(|n| (entry(n), below(n))));
    // An entry of the second table to which an entry of the first table also refers.
    rows.push((entry(1), entry(first + 7)));
    rows.sort_by_key(|row| row.0);
    let inner = below(first + second);
    let mut class_of = vec![NONE; inner as usize];
    class_of[entry(first + 100) as usize] = 0;
    class_of[below(first + 900) as usize] = 0;
    let case = Case {
        classes: 1,
        inner,
        objects: inner,
        class_of,
        rows,
        roots: vec![1],
        weaker: Default::default(),
    };
    let expected = case.expected();
    for thresholds in [FEW, Thresholds::default()] {
        let found = case.found(thresholds);
        let wrong = (0..inner).find(|&o| found[o as usize] != expected[o as usize]);
        assert_eq!(wrong, None);
    }
    assert_eq!(expected[entry(first + 7) as usize], Some(1));
    assert_eq!(expected[0], Some(2));
}

#[test]
fn an_object_that_is_twice_in_one_list_counts_once() {
    let case = Case {
        classes: 1,
        inner: 6,
        objects: 8,
        class_of: vec![NONE, 0, 0, 0, NONE, NONE],
        rows: vec![
            (1, 2),
            (1, 2),
            (1, 6),
            (1, 6),
            (2, 3),
            (3, 4),
            (4, 3),
            (5, 2),
        ],
        roots: vec![1],
        weaker: Default::default(),
    };
    let found = case.found(Thresholds::default());
    assert_eq!(found, case.expected());
    assert_eq!(found[2], Some(1));
    assert_eq!(found[6], Some(1));
    assert_eq!(found[5], None);
}

/// Leaves (objects without references) are sorted by the nodes that dominate them, then by their numbers, for any
/// number of tasks.
#[test]
fn leaves_are_sorted_by_node_and_number() {
    const NODES: usize = 3000;
    const INNER: u32 = 7;
    let scattered = |leaf: u32| match leaf.wrapping_mul(0x9e37_79b1) >> 16 {
        node if node % 10 == 0 => NONE,
        // Two nodes are the parents of half of the reachable leaves.
        node if node % 4 < 2 => 1500 + node % 2,
        node => node % NODES as u32,
    };
    let all_on_the_last = |_| NODES as u32 - 1;
    let unreachable = |_| NONE;
    let rules: [(u32, &dyn Fn(u32) -> u32); 4] = [
        (100_000, &scattered),
        (0, &scattered),
        (40_000, &all_on_the_last),
        (1000, &unreachable),
    ];
    let store = Store::new(None);
    for (leaves, rule) in rules {
        let parents: Vec<u32> = (0..leaves).map(rule).collect();
        let mut expected: Vec<(u32, u32)> = parents
            .iter()
            .zip(INNER..)
            .filter(|&(&node, _)| node != NONE)
            .map(|(&node, leaf)| (node, leaf))
            .collect();
        expected.sort_unstable();
        for threads in [1, 3, 40] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
            let hang = || sort_leaves(&parents, NODES, INNER, &store).unwrap();
            let (starts, hung) = pool.build().unwrap().install(hang);
            assert_eq!(starts.len(), NODES + 1);
            let mut found = Vec::new();
            for node in 0..NODES as u32 {
                let own = starts.before(node) as usize..starts.before(node + 1) as usize;
                found.extend(hung[own].iter().map(|&leaf| (node, leaf)));
            }
            assert_eq!(found, expected, "{leaves} leaves, {threads} threads");
            assert_eq!(hung.len(), expected.len());
        }
    }
}
