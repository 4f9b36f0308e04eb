//! Computes reachability, dominators and retained sizes by their definitions, without regard to speed.

use hprof::Refs;
use petgraph::algo::dominators;
use petgraph::graph::{DiGraph, NodeIndex};

use crate::naive::{Heap, Strength};

/// A heap as the slow algorithms need it: how strongly each object is reached, and the references that count.
pub(crate) struct BruteForce {
    /// For each object, 0 if it is reached strongly, 1 if softly, and 2 if by finalizers. `None` if it is unreachable.
    pub(crate) level: Vec<Option<u8>>,
    /// For each object, the targets of its references that count. A reference counts if no other path reaches its
    /// target more strongly. With [`Refs::Soft`], for example, a soft reference to a strongly reached object does not
    /// count.
    pub(crate) edges: Vec<Vec<usize>>,
    pub(crate) roots: Vec<usize>,
}

fn weight(strength: Strength, refs: Refs) -> Option<u8> {
    match (refs, strength) {
        (Refs::All, _) | (_, Strength::Strong) => Some(0),
        (Refs::Soft, Strength::Soft) => Some(1),
        (Refs::Soft, Strength::Final) => Some(2),
        _ => None,
    }
}

impl BruteForce {
    pub(crate) fn new(heap: &Heap, refs: Refs) -> Self {
        let mut level: Vec<Option<u8>> = vec![None; heap.nodes.len()];
        for reached in 0..=2_u8 {
            let mut todo: Vec<usize> = Vec::new();
            if reached == 0 {
                for &root in &heap.roots {
                    level[root] = Some(0);
                    todo.push(root);
                }
            } else {
                todo.extend((0..level.len()).filter(|&n| level[n].is_some()));
            }
            while let Some(from) = todo.pop() {
                for &(to, strength) in &heap.nodes[from].edges {
                    let counts = weight(strength, refs).is_some_and(|w| w <= reached);
                    if counts && level[to].is_none() {
                        level[to] = Some(reached);
                        todo.push(to);
                    }
                }
            }
        }
        let mut edges = vec![Vec::new(); level.len()];
        for (from, node) in heap.nodes.iter().enumerate() {
            let Some(own) = level[from] else { continue };
            for &(to, strength) in &node.edges {
                if let Some(weight) = weight(strength, refs)
                    && Some(own.max(weight)) == level[to]
                {
                    edges[from].push(to);
                }
            }
        }
        Self {
            level,
            edges,
            roots: heap.roots.iter().copied().collect(),
        }
    }

    /// Returns which objects are still reached if the objects for which `without` returns true are removed.
    pub(crate) fn reached_without(&self, without: impl Fn(usize) -> bool) -> Vec<bool> {
        let mut reached = vec![false; self.edges.len()];
        let mut todo: Vec<usize> = Vec::new();
        for &root in &self.roots {
            if !without(root) {
                reached[root] = true;
                todo.push(root);
            }
        }
        while let Some(from) = todo.pop() {
            for &to in &self.edges[from] {
                if !reached[to] && !without(to) {
                    reached[to] = true;
                    todo.push(to);
                }
            }
        }
        reached
    }

    /// Returns immediate dominators by petgraph: `None` for unreachable objects, `Some(None)` for objects that only the
    /// super-root dominates.
    pub(crate) fn dominators(&self) -> Vec<Option<Option<usize>>> {
        let mut graph: DiGraph<(), ()> = DiGraph::new();
        for _ in 0..=self.edges.len() {
            graph.add_node(());
        }
        let node = NodeIndex::new;
        let top = node(self.edges.len());
        for &root in &self.roots {
            graph.add_edge(top, node(root), ());
        }
        for (from, targets) in self.edges.iter().enumerate() {
            for &to in targets {
                graph.add_edge(node(from), node(to), ());
            }
        }
        let found = dominators::simple_fast(&graph, top);
        (0..self.edges.len())
            .map(|n| {
                let up = found.immediate_dominator(node(n))?;
                Some(Some(up.index()).filter(|&u| u != top.index()))
            })
            .collect()
    }
}
