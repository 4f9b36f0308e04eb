//! Tests lists and trees of millions of nodes: nothing recurses, and time grows linearly with the size.

use std::time::{Duration, Instant};

use hprof::answers::PathOptions;
use hprof::{ObjectId, ObjectIndex, Options, Silent, Snapshot, Source};
use testdata::writer::linked::{self, Linked};

/// Number of nodes in the list or tree. A build without optimisation uses fewer nodes. With either number, recursive
/// code would overflow the stack.
const NODES: u64 = if cfg!(debug_assertions) {
    300_000
} else {
    5_000_000
};

type Write = fn(u64, &mut Vec<u8>) -> std::io::Result<Linked>;

fn open(write: Write, nodes: u64) -> (Linked, Snapshot, Duration) {
    let mut bytes = Vec::new();
    let linked = write(nodes, &mut bytes).unwrap();
    let source = Source::from_bytes(bytes);
    let start = Instant::now();
    let snapshot = Snapshot::of(source, &Options::default(), &Silent).unwrap();
    (linked, snapshot, start.elapsed())
}

fn node(linked: &Linked, snapshot: &Snapshot, i: u64) -> ObjectIndex {
    let id = ObjectId(linked.first + i * linked.node_size);
    snapshot.find(id).unwrap()
}

/// Returns the object that dominates node `i`.
fn dominator(linked: &Linked, snapshot: &Snapshot, i: u64) -> Option<ObjectIndex> {
    let tree = snapshot.tree();
    tree.object(tree.dominator(node(linked, snapshot, i)).unwrap())
}

fn holder(linked: &Linked, snapshot: &Snapshot) -> ObjectIndex {
    snapshot.find(ObjectId(linked.holder)).unwrap()
}

/// Returns the retained bytes of the nodes' class. Each node is counted once, no matter how many nodes dominate it and
/// how the tree was divided among threads.
fn retained_as_a_class(linked: &Linked, snapshot: &Snapshot) -> u64 {
    let class = snapshot.class_of(node(linked, snapshot, 0)).unwrap();
    snapshot.histogram()[class.index()].retained_bytes
}

#[test]
fn each_node_of_a_list_dominates_the_next() {
    let (linked, snapshot, _) = open(linked::list, NODES);
    for i in 0..NODES {
        let expected = match i {
            0 => holder(&linked, &snapshot),
            _ => node(&linked, &snapshot, i - 1),
        };
        assert_eq!(dominator(&linked, &snapshot, i), Some(expected));
        let bytes = snapshot.retained_bytes(node(&linked, &snapshot, i));
        assert_eq!(bytes, Some((NODES - i) * linked.node_size));
    }
    let all = NODES * linked.node_size;
    assert_eq!(retained_as_a_class(&linked, &snapshot), all);
    // The longest possible path.
    let last = node(&linked, &snapshot, NODES - 1);
    let options = PathOptions::default();
    let paths = snapshot.paths(&[last], &options, &Silent).unwrap();
    let path = paths.path(&snapshot, last).unwrap();
    assert_eq!(path.steps.len() as u64, NODES + 1);
    let tree = paths.merged(&snapshot, hprof::answers::Merge::Class, 100);
    assert_eq!(tree.nodes.len(), 2);
    assert_eq!(tree.nodes[1].objects, NODES);
    assert!(tree.nodes[1].folded);
}

#[test]
fn each_node_of_a_tree_dominates_its_children() {
    let (linked, snapshot, _) = open(linked::tree, NODES);
    for i in 0..NODES {
        let expected = match i {
            0 => holder(&linked, &snapshot),
            _ => node(&linked, &snapshot, (i - 1) / 2),
        };
        assert_eq!(dominator(&linked, &snapshot, i), Some(expected));
    }
    let all = NODES * linked.node_size;
    assert_eq!(retained_as_a_class(&linked, &snapshot), all);
}

#[test]
fn the_holder_dominates_nodes_that_a_table_also_holds() {
    let (linked, snapshot, _) = open(linked::list_with_table, NODES);
    let holder = holder(&linked, &snapshot);
    for i in 0..NODES {
        assert_eq!(dominator(&linked, &snapshot, i), Some(holder));
        let bytes = snapshot.retained_bytes(node(&linked, &snapshot, i));
        assert_eq!(bytes, Some(linked.node_size));
    }
    let (table, bytes) = linked.table.unwrap();
    let table = snapshot.find(ObjectId(table)).unwrap();
    assert_eq!(snapshot.retained_bytes(table), Some(bytes));
}

#[test]
fn time_grows_with_size() {
    let shapes: [Write; 3] = [linked::list, linked::tree, linked::list_with_table];
    for write in shapes {
        let time = |nodes| (0..2).map(|_| open(write, nodes).2).min().unwrap();
        let (small, large) = (time(NODES / 5), time(NODES / 5 * 4));
        // The large list has four times the nodes; a quadratic algorithm takes sixteen times as long. The limit is
        // higher than four, because small heaps fit into the caches, and other tests run in parallel.
        assert!(
            large < small * 10 + Duration::from_millis(200),
            "{small:?}, {large:?}"
        );
    }
}
