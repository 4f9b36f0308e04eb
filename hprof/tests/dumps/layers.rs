//! Uses each layer of the library (records, graph, dominator tree) without the layers that are built on it. Compares
//! the result with the result of the whole analysis.

use hprof::Source;
use hprof::dominators::{DominatorTree, Node};
use hprof::graph::HeapGraph;
use hprof::records::{HeapRecord, Records};
use hprof::{Error, ObjectIndex, Options, Silent, Snapshot};

fn committed(name: &str) -> Source {
    let path = format!("{}/../testdata/{name}.hprof.gz", env!("CARGO_MANIFEST_DIR"));
    Source::open(path.as_ref()).unwrap()
}

fn drawn(edges: &[(u32, u32)], roots: &[u32], objects: u32) -> hprof::Result<HeapGraph> {
    HeapGraph::from_edges(objects, edges, roots)
}

#[test]
fn records_match_the_counts_of_the_analysis() {
    let source = committed("before");
    let records = Records::read(&source).unwrap();
    let snapshot = Snapshot::of(committed("before"), &Options::default(), &Silent).unwrap();
    assert_eq!(records.header(), snapshot.header());
    let (mut objects, mut classes, mut roots, mut references) = (0, 0, 0, 0);
    let warnings = records.for_each(|record| match record {
        HeapRecord::Root(_) => roots += 1,
        HeapRecord::Class { .. } => classes += 1,
        HeapRecord::ObjectArray { elements, .. } => {
            objects += 1;
            references += records.ids(elements).filter(|id| !id.is_null()).count();
        }
        _ => objects += 1,
    });
    assert!(warnings.is_empty());
    assert_eq!(objects + classes, snapshot.object_count());
    assert_eq!(classes, records.classes().dumped() as u64);
    assert!(references > 0 && roots > 0);
}

#[test]
fn a_damaged_heap_is_read_up_to_the_damage() {
    let mut bytes = committed("before").to_vec();
    bytes.truncate(bytes.len() / 2);
    let source = Source::from_bytes(bytes);
    let records = Records::read(&source).unwrap();
    assert!(!records.warnings().is_empty());
    let mut objects = 0;
    let warnings = records.for_each(|_| objects += 1);
    assert!(!warnings.is_empty() && objects > 0);
    let nothing = Source::from_bytes(b"nothing".to_vec());
    assert!(matches!(Records::read(&nothing), Err(Error::NotADump(_))));
}

#[test]
fn a_dumps_graph_has_the_dominators_of_the_analysis() {
    let options = Options::default();
    for name in ["before", "after"] {
        let snapshot = Snapshot::of(committed(name), &options, &Silent).unwrap();
        let graph = HeapGraph::build(&committed(name), &options, &Silent).unwrap();
        assert_eq!(graph.object_count() as u64, snapshot.object_count());
        let size = |object| snapshot.shallow_bytes(object);
        let tree = DominatorTree::build(graph, size, &Silent).unwrap();
        let whole = snapshot.tree();
        for number in 0..snapshot.object_count() as u32 {
            let dominator = |tree: &DominatorTree| {
                let node = tree.dominator(ObjectIndex(number))?;
                Some((tree.object(node), tree.retained_bytes(node)))
            };
            assert_eq!(dominator(&tree), dominator(whole), "{name}: {number}");
        }
    }
}

#[test]
fn graphs_are_drawn_from_references_in_any_order() {
    let edges = [(3, 4), (0, 2), (2, 3), (0, 1), (1, 3), (1, 1), (5, 4)];
    let graph = drawn(&edges, &[0, 0], 6).unwrap();
    let of_zero: Vec<u32> = graph.references(ObjectIndex(0)).map(|o| o.0).collect();
    assert_eq!(of_zero, [2, 1]);
    assert!(graph.root_objects().eq([ObjectIndex(0)]));
    let tree = DominatorTree::build(graph, |object| u64::from(object.0) + 1, &Silent).unwrap();
    let retained = |n| {
        tree.node(ObjectIndex(n))
            .map(|node| tree.retained_bytes(node))
    };
    let expected = [Some(15), Some(2), Some(3), Some(9), Some(5), None];
    assert_eq!([0, 1, 2, 3, 4, 5].map(retained), expected);
    let empty = DominatorTree::build(drawn(&[], &[], 0).unwrap(), |_| 1, &Silent).unwrap();
    assert_eq!(empty.retained_bytes(Node::ROOT), 0);
}

#[test]
fn references_to_missing_objects_are_refused() {
    let unknown = |edges: &[(u32, u32)], roots: &[u32]| match drawn(edges, roots, 3) {
        Err(Error::NoSuchNumber(object)) => Some(object.0),
        _ => None,
    };
    assert_eq!(unknown(&[(0, 1), (3, 1)], &[]), Some(3));
    assert_eq!(unknown(&[(0, 7)], &[]), Some(7));
    assert_eq!(unknown(&[(0, 1)], &[u32::MAX]), Some(u32::MAX));
    assert_eq!(unknown(&[(0, 1)], &[2]), None);
    assert!(matches!(
        drawn(&[], &[], u32::MAX),
        Err(Error::Limit { .. })
    ));
}
