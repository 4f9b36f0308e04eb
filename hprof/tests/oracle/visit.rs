//! Runs petgraph's algorithms on the heap graph itself.

use std::collections::BTreeSet;

use hprof::graph::GraphNode;
use hprof::{ObjectIndex, Refs, Silent};
use petgraph::algo::{dominators, has_path_connecting, tarjan_scc, toposort};
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::{
    Bfs, Dfs, DfsPostOrder, EdgeCount, EdgeRef, IntoEdgeReferences, IntoNodeIdentifiers, NodeCount,
    NodeIndexable,
};

use crate::both::both_of;
use crate::world::{self, Plan, rounds};

#[test]
fn algorithms_run_on_the_heap_graph_as_on_a_copy() {
    for seed in 0..rounds(400) {
        let plan = Plan {
            seed: 5_000_000 + seed,
            nodes: 40,
            references: seed % 2 == 0,
            duplicates: false,
            odd_ids: false,
            shared: false,
        };
        let both = both_of(world::dump(&plan), Refs::Strong, seed);
        let graph = both.snapshot.graph(&Silent).unwrap();
        let root = graph.root_node();
        let mut copy: DiGraph<(), ()> = DiGraph::new();
        (0..graph.node_count()).for_each(|_| _ = copy.add_node(()));
        for edge in (&graph).edge_references() {
            let index = |n: GraphNode| NodeIndex::new(graph.to_index(n));
            copy.add_edge(index(edge.source()), index(edge.target()), ());
        }
        assert_eq!(copy.edge_count(), graph.edge_count());
        let top = NodeIndex::new(root.0 as usize);

        // Depth-first and breadth-first searches of the graph reach exactly the objects that are reachable according to
        // the dominator tree.
        let mut reached = BTreeSet::new();
        let mut dfs = Dfs::new(&graph, root);
        while let Some(node) = dfs.next(&graph) {
            reached.insert(node);
        }
        let mut wide = BTreeSet::new();
        let mut bfs = Bfs::new(&graph, root);
        while let Some(node) = bfs.next(&graph) {
            wide.insert(node);
        }
        let mut post = DfsPostOrder::new(&graph, root);
        let mut last = None;
        while let Some(node) = post.next(&graph) {
            last = Some(node);
        }
        assert_eq!(last, Some(root));
        assert_eq!(reached, wide);
        for node in (&graph).node_identifiers() {
            let reachable = match graph.node_object(node) {
                Some(object) => both.snapshot.tree().is_reachable(object),
                None => true,
            };
            assert_eq!(reached.contains(&node), reachable, "{plan:?} {node:?}");
        }

        let sets = |sets: Vec<Vec<usize>>| -> BTreeSet<BTreeSet<usize>> {
            sets.into_iter().map(|s| s.into_iter().collect()).collect()
        };
        let ours = tarjan_scc(&graph).into_iter();
        let ours = ours.map(|s| s.into_iter().map(|n| n.0 as usize).collect());
        let theirs = tarjan_scc(&copy).into_iter();
        let theirs = theirs.map(|s| s.into_iter().map(NodeIndex::index).collect());
        assert_eq!(sets(ours.collect()), sets(theirs.collect()));

        let found = dominators::simple_fast(&graph, root);
        for object in (0..root.0).map(ObjectIndex) {
            let ours = found.immediate_dominator(object.into());
            let tree = both.snapshot.tree();
            let expected = tree.dominator(object).map(|up| match tree.object(up) {
                Some(up) => GraphNode(up.0),
                None => root,
            });
            assert_eq!(ours, expected, "{plan:?} {object:?}");
        }
        let some = GraphNode(seed as u32 % root.0);
        assert_eq!(
            has_path_connecting(&graph, root, some, None),
            has_path_connecting(&copy, top, NodeIndex::new(some.0 as usize), None)
        );
        assert!(petgraph::algo::dijkstra(&graph, root, None, |_| 1_u32).len() == reached.len());
        // Heaps with class loaders have cycles, so `toposort` may return an error. Its result is ignored.
        let _ = toposort(&copy, None);
    }
}
