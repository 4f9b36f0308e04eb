//! Writes a dump of a plain directed graph, so that results can be compared with graph algorithms.

use super::format::{FieldType, Root};
use super::heap::{ClassId, HeapBuilder, Obj, Options};
use super::value::{Elements, Ref};

/// The kind of object for each node of a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeKind {
    /// Nodes become instances and object arrays alternately. Nodes without outgoing edges become byte arrays and
    /// instances without fields.
    Mixed,
    /// Object arrays only.
    Arrays,
    /// Instances only. Nodes with the same number of edges are instances of one class, which has that number of fields.
    Instances,
}

/// A dump of a graph, and the addresses of the graph's nodes in the dump.
#[derive(Debug, Clone)]
pub struct GraphDump {
    /// The bytes of the dump file.
    pub bytes: Vec<u8>,
    /// Offsets of records and sub-records, in the form that `HeapBuilder::build_with_offsets` returns.
    pub boundaries: Vec<usize>,
    /// The ID of each node.
    pub addresses: Vec<u64>,
    /// The shallow size of each node.
    pub sizes: Vec<u64>,
}

/// Writes a dump in which each node is an object. The object refers to the targets of the node's edges, in the order of
/// the edges. Duplicate edges and loops are kept. Each root is a JNI global.
///
/// Besides the nodes, the dump contains only classes, which refer to no node. The classes are sticky roots unless the
/// options switch that off.
///
/// # Panics
/// Panics if an edge or a root names a node that is not below `nodes`.
pub fn dump(
    nodes: usize,
    edges: &[(usize, usize)],
    roots: &[usize],
    kind: NodeKind,
    options: Options,
) -> GraphDump {
    let (heap, objects) = heap(nodes, edges, roots, kind, options);
    let addresses = objects.iter().map(|&object| heap.address(object)).collect();
    let sizes = objects
        .iter()
        .map(|&node| heap.shallow_size(node))
        .collect();
    let (bytes, boundaries) = heap.build_with_offsets();
    GraphDump {
        bytes,
        boundaries,
        addresses,
        sizes,
    }
}

/// Returns the builder of the dump that [`dump`] writes, and the object of each node. A test can add more objects
/// before it builds the dump.
///
/// # Panics
/// Panics as [`dump`] does.
pub fn heap(
    nodes: usize,
    edges: &[(usize, usize)],
    roots: &[usize],
    kind: NodeKind,
    options: Options,
) -> (HeapBuilder, Vec<Obj>) {
    let mut targets = vec![Vec::new(); nodes];
    for &(from, to) in edges {
        assert!(
            to < nodes,
            "an edge leads to node {to}, but there are only {nodes} nodes"
        );
        targets[from].push(to);
    }
    let mut heap = HeapBuilder::new(options);
    let boot = heap.boot();
    let mut classes: Vec<Option<ClassId>> = Vec::new();
    let mut objects = Vec::with_capacity(nodes);
    for (i, targets) in targets.iter().enumerate() {
        let array = match kind {
            NodeKind::Mixed => i % 2 == 1,
            NodeKind::Arrays => true,
            NodeKind::Instances => false,
        };
        objects.push(if array && targets.is_empty() && kind == NodeKind::Mixed {
            heap.add_primitive_array(Elements::Zeros(FieldType::Byte, i % 40))
        } else if array {
            heap.add_object_array(boot.object, vec![Ref::Null; targets.len()])
        } else {
            let class = node_class(&mut heap, &mut classes, targets.len());
            heap.add_instance(class, &[])
        });
    }
    for (&object, targets) in objects.iter().zip(&targets) {
        for (slot, &to) in targets.iter().enumerate() {
            heap.set_reference(object, slot, objects[to]);
        }
    }
    for (i, &root) in roots.iter().enumerate() {
        let global_ref = 0x1000 + 8 * i as u64;
        heap.add_root(Root::JniGlobal { global_ref }, objects[root]);
    }
    (heap, objects)
}

/// Returns the class of instances with this number of references.
fn node_class(
    heap: &mut HeapBuilder,
    classes: &mut Vec<Option<ClassId>>,
    fields: usize,
) -> ClassId {
    if classes.len() <= fields {
        classes.resize(fields + 1, None);
    }
    if let Some(class) = classes[fields] {
        return class;
    }
    let object = heap.boot().object;
    let names: Vec<String> = (0..fields).map(|i| format!("r{i}")).collect();
    let declared: Vec<(&str, FieldType)> = names
        .iter()
        .map(|name| (name.as_str(), FieldType::Object))
        .collect();
    let class = heap.add_class(&format!("graph.Node{fields}"), Some(object), &declared, &[]);
    classes[fields] = Some(class);
    class
}
