//! Implements petgraph's visit traits for the heap graph, so that petgraph's algorithms run on it.
//!
//! The graph has one node more than there are objects: a super-root that refers to the objects that GC roots hold.

use petgraph::Directed;
use petgraph::visit::{
    Data, EdgeCount, EdgeRef, GraphBase, GraphProp, IntoEdgeReferences, IntoEdges, IntoNeighbors,
    IntoNodeIdentifiers, IntoNodeReferences, NodeCompactIndexable, NodeCount, NodeIndexable,
    VisitMap, Visitable,
};

use crate::graph::heap_graph::HeapGraph;
use crate::ids::{NONE, ObjectIndex};

/// A node: the number of an object, or the number of all objects for the super-root.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct GraphNode(pub u32);

impl From<ObjectIndex> for GraphNode {
    fn from(object: ObjectIndex) -> Self {
        Self(object.0)
    }
}

/// A reference, as an edge of the graph.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct GraphEdge {
    source: GraphNode,
    target: GraphNode,
    /// Index of the reference among all references of the source. References to objects that are not in the dump count,
    /// too.
    place: u32,
}

impl EdgeRef for GraphEdge {
    type NodeId = GraphNode;
    type EdgeId = (GraphNode, u32);
    type Weight = ();

    fn source(&self) -> GraphNode {
        self.source
    }
    fn target(&self) -> GraphNode {
        self.target
    }
    fn weight(&self) -> &() {
        &()
    }
    fn id(&self) -> (GraphNode, u32) {
        (self.source, self.place)
    }
}

impl HeapGraph {
    /// Returns the super-root: the artificial node that refers to the objects that GC roots hold.
    #[must_use]
    pub const fn root_node(&self) -> GraphNode {
        GraphNode(self.objects)
    }

    /// Returns the object at a node; `None` at the super-root.
    #[must_use]
    pub fn node_object(&self, node: GraphNode) -> Option<ObjectIndex> {
        (node.0 < self.objects).then_some(ObjectIndex(node.0))
    }

    fn row_of(&self, node: GraphNode) -> &[u32] {
        if node.0 < self.objects {
            self.row(node.0)
        } else {
            &[]
        }
    }
}

/// The nodes that a node refers to.
#[derive(Clone, Debug)]
pub struct Neighbors<'a>(Edges<'a>);

impl Iterator for Neighbors<'_> {
    type Item = GraphNode;
    fn next(&mut self) -> Option<GraphNode> {
        self.0.next().map(|e| e.target)
    }
}

/// The references of one node.
#[derive(Clone, Debug)]
pub struct Edges<'a> {
    source: GraphNode,
    row: std::slice::Iter<'a, u32>,
    roots: std::slice::Iter<'a, (u32, crate::records::walk::RootKind)>,
    place: u32,
}

impl Iterator for Edges<'_> {
    type Item = GraphEdge;
    fn next(&mut self) -> Option<GraphEdge> {
        loop {
            let target = match self.row.next() {
                Some(&target) => target,
                None => self.roots.next()?.0,
            };
            let place = self.place;
            self.place += 1;
            if target != NONE {
                return Some(GraphEdge {
                    source: self.source,
                    target: GraphNode(target),
                    place,
                });
            }
        }
    }
}

impl GraphBase for HeapGraph {
    type NodeId = GraphNode;
    type EdgeId = (GraphNode, u32);
}

impl GraphProp for HeapGraph {
    type EdgeType = Directed;
}

impl Data for HeapGraph {
    type NodeWeight = ();
    type EdgeWeight = ();
}

impl NodeCount for HeapGraph {
    fn node_count(&self) -> usize {
        self.objects as usize + 1
    }
}

impl EdgeCount for HeapGraph {
    /// Returns the number of references and roots. Cost: one visit of each reference.
    fn edge_count(&self) -> usize {
        let rows = self.targets.iter().filter(|&&t| t != NONE).count();
        rows + self.leaf_classes.len() + self.roots.len()
    }
}

impl NodeIndexable for HeapGraph {
    fn node_bound(&self) -> usize {
        self.node_count()
    }
    fn to_index(&self, node: GraphNode) -> usize {
        node.0 as usize
    }
    fn from_index(&self, index: usize) -> GraphNode {
        GraphNode(u32::try_from(index).unwrap_or(self.objects))
    }
}

impl NodeCompactIndexable for HeapGraph {}

impl Visitable for HeapGraph {
    type Map = Visited;
    fn visit_map(&self) -> Visited {
        Visited(vec![0; self.node_count().div_ceil(64)])
    }
    fn reset_map(&self, map: &mut Visited) {
        *map = self.visit_map();
    }
}

/// The nodes that an algorithm has visited, one bit for each.
#[derive(Clone, Debug, Default)]
pub struct Visited(Vec<u64>);

impl VisitMap<GraphNode> for Visited {
    fn visit(&mut self, node: GraphNode) -> bool {
        let new = !self.is_visited(&node);
        self.0[node.0 as usize / 64] |= 1 << (node.0 % 64);
        new
    }
    fn is_visited(&self, node: &GraphNode) -> bool {
        self.0[node.0 as usize / 64] & 1 << (node.0 % 64) != 0
    }
    fn unvisit(&mut self, node: GraphNode) -> bool {
        let was = self.is_visited(&node);
        self.0[node.0 as usize / 64] &= !(1 << (node.0 % 64));
        was
    }
}

impl<'a> IntoNeighbors for &'a HeapGraph {
    type Neighbors = Neighbors<'a>;
    fn neighbors(self, node: GraphNode) -> Neighbors<'a> {
        Neighbors(self.edges(node))
    }
}

impl<'a> IntoEdges for &'a HeapGraph {
    type Edges = Edges<'a>;
    fn edges(self, node: GraphNode) -> Edges<'a> {
        let of_roots = node.0 == self.objects;
        Edges {
            source: node,
            row: self.row_of(node).iter(),
            roots: if of_roots { &self.roots[..] } else { &[] }.iter(),
            place: 0,
        }
    }
}

/// The references of all nodes.
#[derive(Clone, Debug)]
pub struct AllEdges<'a> {
    graph: &'a HeapGraph,
    next: u32,
    edges: Edges<'a>,
}

impl Iterator for AllEdges<'_> {
    type Item = GraphEdge;
    fn next(&mut self) -> Option<GraphEdge> {
        loop {
            if let Some(edge) = self.edges.next() {
                return Some(edge);
            }
            if self.next > self.graph.objects {
                return None;
            }
            self.edges = self.graph.edges(GraphNode(self.next));
            // The objects from here to the last one have no references. Skip them, and continue with the super-root
            // (an artificial node that refers to the objects that GC roots hold).
            let (inner, leaves) = (self.graph.split.inner, self.graph.leaf_classes.rows());
            self.next = match self.next + 1 {
                next if next == inner + leaves => self.graph.objects,
                next => next,
            };
        }
    }
}

impl<'a> IntoEdgeReferences for &'a HeapGraph {
    type EdgeRef = GraphEdge;
    type EdgeReferences = AllEdges<'a>;
    fn edge_references(self) -> AllEdges<'a> {
        let first = if self.split.inner + self.leaf_classes.rows() == 0 {
            self.objects
        } else {
            0
        };
        AllEdges {
            graph: self,
            next: first + 1,
            edges: self.edges(GraphNode(first)),
        }
    }
}

/// All nodes. The super-root is the last one.
#[derive(Clone, Debug)]
pub struct Nodes(std::ops::RangeInclusive<u32>);

impl Iterator for Nodes {
    type Item = GraphNode;
    fn next(&mut self) -> Option<GraphNode> {
        self.0.next().map(GraphNode)
    }
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl IntoNodeIdentifiers for &HeapGraph {
    type NodeIdentifiers = Nodes;
    fn node_identifiers(self) -> Nodes {
        Nodes(0..=self.objects)
    }
}

/// All nodes. The weight of each node is the empty `()`.
#[derive(Clone, Debug)]
pub struct NodeReferences(Nodes);

impl Iterator for NodeReferences {
    type Item = (GraphNode, &'static ());
    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|n| (n, &()))
    }
}

impl IntoNodeReferences for &HeapGraph {
    type NodeRef = (GraphNode, &'static ());
    type NodeReferences = NodeReferences;
    fn node_references(self) -> NodeReferences {
        NodeReferences(self.node_identifiers())
    }
}
