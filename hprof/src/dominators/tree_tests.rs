//! Dominators of random graphs beside petgraph's, where objects refer to their classes.

use std::time::Duration;

use petgraph::algo::dominators::simple_fast;
use petgraph::graph::{DiGraph, NodeIndex};
use testdata::deadline::Deadline;

use super::*;
use crate::progress::Silent;

/// The time limit for one small graph: a wrong dominator can send a search round in circles.
const LIMIT: Duration = Duration::from_secs(60);

/// xorshift64*: the same graphs on every run.
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
}

impl Case {
    /// Class objects first, then objects that each refer to their class and a few others, mostly
    /// to objects nearby; leaves last.
    fn random(random: &mut Random) -> Self {
        let classes = random.below(6);
        let inner = classes + 1 + random.below(120);
        let objects = inner + random.below(30);
        let mut rows = Vec::new();
        let mut class_of = vec![NONE; inner as usize];
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
        }
    }

    fn graph(&self, store: &Store) -> HeapGraph {
        let roots: Vec<u32> = self.roots.clone();
        let mut graph = HeapGraph::from_rows(self.inner, &self.rows, &roots, store).unwrap();
        graph.split.classes = self.classes;
        graph.objects = self.objects;
        graph
    }

    /// The dominator of each object, by petgraph: `None` when unreachable, the number of objects
    /// for what nothing but the roots together dominates.
    fn expected(&self) -> Vec<Option<u32>> {
        let root = NodeIndex::new(self.objects as usize);
        let mut graph: DiGraph<(), ()> = DiGraph::new();
        (0..=self.objects).for_each(|_| {
            graph.add_node(());
        });
        let node = |n: u32| NodeIndex::new(n as usize);
        graph.extend_with_edges(self.rows.iter().map(|&(a, b)| (node(a), node(b))));
        let of_classes = (0..).zip(&self.class_of).filter(|(_, c)| **c != NONE);
        graph.extend_with_edges(of_classes.map(|(o, &c)| (node(o), node(c))));
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

    fn found(&self, sampling: Sampling) -> Vec<Option<u32>> {
        let _deadline = Deadline::after(LIMIT);
        let store = Store::new(None);
        let class_of = |object: u32| self.class_of[object as usize];
        let graph = self.graph(&store);
        let tree = DominatorTree::new(graph, class_of, |_| 8, sampling, &store, &Silent).unwrap();
        let all: u64 = tree
            .children(Node::ROOT)
            .map(|n| tree.retained_bytes(n))
            .sum();
        let leaves = tree.leaves(Node::ROOT).len() as u64 * 8;
        assert_eq!(all + leaves, tree.retained_bytes(Node::ROOT));
        (0..self.objects)
            .map(|o| {
                let dominator = tree.dominator(ObjectIndex(o))?;
                Some(tree.object(dominator).map_or(self.objects, |d| d.0))
            })
            .collect()
    }

    /// Whether the first witnesses are not enough.
    fn needs_more(&self, sampling: Sampling) -> bool {
        let _deadline = Deadline::after(LIMIT);
        let store = Store::new(None);
        let mut graph = AnnotatedGraph::new(self.graph(&store)).unwrap();
        let class_of = |object: u32| self.class_of[object as usize];
        let core = Core::find(&mut graph, &class_of, &[], sampling, &store).unwrap();
        let found =
            lengauer_tarjan::dominators(&mut graph, &class_of, core, &store, &Silent).unwrap();
        matches!(
            preorder::lay_out(&mut graph, &class_of, found, &store).unwrap(),
            Outcome::Missing(_)
        )
    }
}

#[test]
fn witnesses_give_the_dominators_of_the_whole_graph() {
    let few = Sampling {
        rare: 0,
        every: 1 << 20,
        near: 0,
    };
    let mut random = Random(7);
    let mut wanting = 0;
    for round in 0..4000 {
        let case = Case::random(&mut random);
        let expected = case.expected();
        assert_eq!(case.found(few), expected, "round {round}, few witnesses");
        assert_eq!(case.found(Sampling::default()), expected, "round {round}");
        wanting += usize::from(case.needs_more(few));
    }
    // This test is about the cases that need more.
    assert!(wanting > 100, "{wanting} of 4000 cases needed more");
}

#[test]
fn an_object_that_is_held_twice_by_one_row_is_one_object() {
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
    };
    let found = case.found(Sampling::default());
    assert_eq!(found, case.expected());
    assert_eq!(found[2], Some(1));
    assert_eq!(found[6], Some(1));
    assert_eq!(found[5], None);
}
