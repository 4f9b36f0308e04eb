//! Tests that the core (the objects for which dominators are computed) contains the necessary objects and no others, on
//! graphs drawn by hand. If the core is too large, the dominators are still correct, but finding them takes longer.

use super::*;
use crate::graph::heap_graph::HeapGraph;

const LONG: usize = Thresholds::USUAL.long;

/// Thresholds with which as few objects as possible are chosen as witnesses (objects whose references to class objects
/// are followed).
const NONE_CHOSEN: Thresholds = Thresholds {
    rare: 0,
    every: 1 << 20,
    near: 0,
    ..Thresholds::USUAL
};

fn graph(inner: u32, classes: u32, rows: &[(u32, u32)], roots: &[u32]) -> AnnotatedGraph {
    let mut rows = rows.to_vec();
    rows.sort_unstable();
    let mut graph = HeapGraph::from_rows(inner, &rows, roots, &Store::new(None)).unwrap();
    graph.split.classes = classes;
    AnnotatedGraph::new(graph).unwrap()
}

fn members_of(bits: &MappedBits) -> Vec<u32> {
    let mut members = Vec::new();
    for (at, &word) in bits.words().iter().enumerate() {
        each_bit(at, word, |object| members.push(object));
    }
    members
}

#[test]
fn merge_nodes_and_their_ancestors_are_the_core() {
    // The objects are spread over several words of the bitmaps.
    const STEP: u32 = 37;
    const INNER: u32 = 20 * STEP;
    let rows = [
        (0, 1),
        (0, 2),
        (1, 3),
        // The start of a long path to object 3, which is a merge node (it has several referrers).
        (2, 14),
        (14, 15),
        (15, 11),
        (11, 10),
        (10, 3),
        // Object 3 refers back to object 0. Object 0 counts as a merge node, because a GC root holds it. So object 3 is
        // in the core.
        (3, 0),
        (3, 4),
        (4, 5),
        // Object 6 refers to 7 twice, and 7 refers to itself.
        (0, 6),
        (6, 7),
        (6, 7),
        (7, 7),
        // Nothing refers to object 12.
        (12, 13),
        (0, 8),
    ]
    .map(|(from, to)| (from * STEP, to * STEP));
    // References to leaves (objects without references).
    let leaves = [(4 * STEP, INNER), (5 * STEP, INNER), (6 * STEP, INNER + 1)];
    let rows: Vec<(u32, u32)> = rows.into_iter().chain(leaves).collect();
    let mut graph = graph(INNER, 0, &rows, &[0, INNER]);
    graph.weaker[0].push((8 * STEP, 9 * STEP));
    let store = Store::new(None);
    let core = Core::find(&mut graph, &|_| NONE, &[], NONE_CHOSEN, &store).unwrap();
    let stepped = |objects: &[u32]| objects.iter().map(|o| o * STEP).collect::<Vec<_>>();
    let members = [0, 1, 2, 3, 8, 9, 10, 11, 14, 15];
    assert_eq!(members_of(&core.members), stepped(&members));
    assert_eq!(members_of(&core.joins), stepped(&[0, 3, 9]));
    assert_eq!(members_of(&core.witnesses), [0_u32; 0]);
    assert_eq!(core.count, members.len() as u32);
    assert_eq!(core.long, [0_u32; 0]);
    for member in members {
        assert_eq!(graph.note(member * STEP), 0);
    }
    for (object, referrer) in [(4, 3), (5, 4), (6, 0), (7, 6), (13, 12)] {
        assert_eq!(graph.note(object * STEP), referrer * STEP, "{object}");
    }
    assert_eq!(graph.note(12 * STEP), NONE);
}

/// Root 2 refers to objects 4 and 5. Objects 4 and 5 both refer to objects 3 and 8. So 3 and 8 are merge nodes (objects
/// with several referrers). Object 3 has a subtree.
const SHARED: [(u32, u32); 9] = [
    (2, 4),
    (2, 5),
    (4, 3),
    (5, 3),
    (3, 6),
    (6, 7),
    (6, 10),
    (4, 8),
    (5, 8),
];

fn sinks_with(more: &[(u32, u32)], also: &[u32], held_softly: Option<u32>) -> (Vec<u32>, Vec<u32>) {
    let rows: Vec<(u32, u32)> = SHARED.iter().chain(more).copied().collect();
    let mut graph = graph(10, 2, &rows, &[2]);
    graph.weaker[0].extend(held_softly.map(|object| (4, object)));
    let store = Store::new(None);
    let core = Core::find(&mut graph, &|_| NONE, also, NONE_CHOSEN, &store).unwrap();
    for (&sink, at) in core.sinks.iter().zip(0..) {
        assert!(!core.members.contains(sink) && !core.joins.contains(sink));
        assert_eq!(graph.note(sink), SEVERAL - at);
    }
    (core.sinks.to_vec(), members_of(&core.members))
}

#[test]
fn terminal_merge_nodes_are_not_members() {
    // Objects 4 and 5 are not in the core. They refer to the merge nodes 3 and 8, but nodes 3 and 8 lead to no other
    // merge node.
    assert_eq!(sinks_with(&[], &[], None), (vec![3, 8], vec![0, 1, 2]));
    // Object 3 is in the core (the objects for which dominators are computed) if objects that it dominates refer to
    // another merge node, to object 3 itself, or to a class object.
    let above = vec![0, 1, 2, 3, 4, 5];
    assert_eq!(sinks_with(&[(6, 8)], &[], None), (vec![8], above));
    let circle = vec![0, 1, 2, 3, 4, 5, 6];
    assert_eq!(sinks_with(&[(6, 3)], &[], None), (vec![8], circle));
    let to_class = sinks_with(&[(7, 1), (9, 1)], &[], None);
    assert_eq!(to_class, (vec![8], vec![0, 1, 2, 3, 4, 5, 6, 7]));
    // Object 3 is also in the core if its subtree contains a softly referenced object, or an object whose references to
    // class objects are followed.
    assert_eq!(sinks_with(&[], &[7], None).0, [8]);
    assert_eq!(sinks_with(&[], &[], Some(6)).0, [8]);
}

#[test]
fn back_edges_make_no_merge_nodes() {
    // Object 1 leads to a tree in which children refer back to their parents. The root of the tree is object 3, which
    // refers to 4 twice. Object 2 leads to a list in which each node refers back to the previous node. The last node is
    // object 8, to which object 9 refers, too.
    let tree = [
        (1, 3),
        (3, 4),
        (3, 4),
        (3, 5),
        (5, 6),
        (4, 3),
        (5, 3),
        (6, 5),
        (3, 1),
    ];
    let list = [(2, 7), (7, 8), (8, 7), (7, 2), (0, 9), (9, 8)];
    let found = |more: &[(u32, u32)], held_softly: Option<u32>| {
        let rows: Vec<(u32, u32)> = [(0, 1), (0, 2)]
            .iter()
            .chain(&tree)
            .chain(&list)
            .chain(more)
            .copied()
            .collect();
        let mut graph = graph(10, 0, &rows, &[0]);
        graph.weaker[0].extend(held_softly.map(|object| (0, object)));
        let store = Store::new(None);
        let core = Core::find(&mut graph, &|_| NONE, &[], NONE_CHOSEN, &store).unwrap();
        (
            members_of(&core.joins),
            (0..10).map(|object| graph.note(object)).collect::<Vec<_>>(),
        )
    };
    let (joins, notes) = found(&[], None);
    assert_eq!(joins, [0, 2, 7, 8]);
    assert_eq!(notes[1..7], [0, 0, 1, 3, 3, 5]);
    // If object 5 gets another referrer, or if a soft reference holds it, object 5 becomes a merge node. Then its
    // ancestors 1 and 3 become merge nodes, too.
    assert_eq!(found(&[(9, 5)], None).0, [0, 1, 2, 3, 5, 7, 8]);
    assert_eq!(found(&[], Some(5)).0, [0, 1, 2, 3, 5, 7, 8]);
}

#[test]
fn few_terminal_merge_nodes_stay_members() {
    // The two objects of a pair refer to each other, and object 2 refers to both objects. So both objects are merge
    // nodes.
    let first = |pair: u32| 10 + 2 * pair;
    let pairs = |count: u32| -> Vec<(u32, u32)> {
        let of_pair = |at: u32| [(2, at), (2, at + 1), (at, at + 1), (at + 1, at)];
        (0..count).map(first).flat_map(of_pair).collect()
    };
    for (count, sinks) in [(6, 2), (7, 0)] {
        let rows: Vec<(u32, u32)> = SHARED
            .into_iter()
            .filter(|row| row.1 != 10)
            .chain(pairs(count))
            .collect();
        let mut graph = graph(first(count), 2, &rows, &[2]);
        let store = Store::new(None);
        let core = Core::find(&mut graph, &|_| NONE, &[], NONE_CHOSEN, &store).unwrap();
        assert_eq!(core.sinks.len(), sinks, "{count} pairs");
        assert_eq!(core.members.contains(3), sinks == 0);
    }
}

#[test]
fn objects_with_long_lists_are_in_the_core() {
    let rows = |from, first, len: usize| (0..len as u32).map(move |i| (from, first + i));
    let rows: Vec<(u32, u32)> = [(0, 1), (0, 2)]
        .into_iter()
        .chain(rows(1, 3, LONG))
        .chain(rows(2, 3 + LONG as u32, LONG - 1))
        .collect();
    let mut graph = graph(3 + 2 * LONG as u32, 0, &rows, &[0]);
    let store = Store::new(None);
    let core = Core::find(&mut graph, &|_| NONE, &[], NONE_CHOSEN, &store).unwrap();
    assert_eq!(core.long, [1]);
    assert_eq!(members_of(&core.members), [0, 1]);
}

#[test]
fn witnesses_are_few() {
    let class_of = |object: u32| match object {
        10 | 20 | 70 | 80 | 140 => 0,
        30..=32 => 1,
        _ => NONE,
    };
    let rows = [(40, 2), (41, 2), (90, 2), (91, 2)];
    let witnesses = |every, also: &[u32]| {
        let mut graph = graph(200, 3, &rows, &[]);
        let thresholds = Thresholds {
            rare: 3,
            every,
            near: 0,
            ..Thresholds::USUAL
        };
        let store = Store::new(None);
        let core = Core::find(&mut graph, &class_of, also, thresholds, &store).unwrap();
        assert_eq!(members_of(&core.members), members_of(&core.witnesses));
        members_of(&core.witnesses)
    };
    // A witness is an object whose references to class objects are followed. All class objects are witnesses. Class 1
    // has few referrers, so all of them are witnesses. For each other class, the first referrer in each group of `every`
    // neighbouring objects is a witness.
    assert_eq!(
        witnesses(64, &[]),
        [0, 1, 2, 10, 30, 31, 32, 40, 70, 90, 140]
    );
    assert_eq!(witnesses(128, &[]), [0, 1, 2, 10, 30, 31, 32, 40, 140]);
    assert_eq!(
        witnesses(128, &[77]),
        [0, 1, 2, 10, 30, 31, 32, 40, 77, 140]
    );
}

#[test]
fn objects_near_to_roots_are_witnesses() {
    const INNER: u32 = 150;
    let rows = [
        (5, 7),
        (5, INNER + 1),
        (6, 7),
        (6, 8),
        (7, 9),
        (8, 10),
        (9, 11),
        (9, 1),
    ];
    let near = |limit| {
        let mut graph = graph(INNER, 2, &rows, &[0, 5, 6, INNER]);
        let thresholds = Thresholds {
            near: limit,
            ..NONE_CHOSEN
        };
        let store = Store::new(None);
        let core = Core::find(&mut graph, &|_| NONE, &[], thresholds, &store).unwrap();
        members_of(&core.witnesses)
    };
    // Witnesses are objects whose references to class objects are followed. Class objects 0 and 1 are always witnesses.
    // Object 9 is a witness because it is the first object that refers to class object 1.
    assert_eq!(near(0), [0, 1, 9]);
    assert_eq!(near(1), [0, 1, 5, 9]);
    assert_eq!(near(5), [0, 1, 5, 6, 7, 8, 9]);
    assert_eq!(near(20), [0, 1, 5, 6, 7, 8, 9, 10, 11]);
}
