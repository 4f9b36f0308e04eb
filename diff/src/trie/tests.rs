//! Tests those parts of the trie that do not need a dump.

use super::*;

const FIELD: LabelKind = LabelKind::ApplicationField;

/// Returns a trie that is a chain of nodes below the root, with these labels and classes.
fn chain(steps: &[(&'static str, &'static str)]) -> Trie {
    let drawn: Vec<_> = (0..)
        .zip(steps)
        .map(|(above, &(via, class))| (above, (via, FIELD), class, [1, 8, 8]))
        .collect();
    Trie::drawn(&drawn)
}

fn names(trie: &Trie, via: &str, class: &str) -> (Option<Name>, Name) {
    (
        trie.names.find(via, FIELD),
        trie.names.find_class(class).unwrap(),
    )
}

#[test]
fn the_largest_objects_are_kept_and_ties_keep_the_first() {
    let mut largest = Largest::default();
    for (retained, object) in [(5, 1), (9, 7), (5, 0), (9, 3), (1, 2), (7, 4), (5, 5)] {
        largest.add(retained, ObjectIndex(object));
    }
    let kept: Vec<(u64, u32)> = largest.0.iter().map(|&(r, o)| (r, o.0)).collect();
    assert_eq!(kept, [(9, 3), (9, 7), (7, 4), (5, 0)]);
    // If objects retain the same, the ones with the lowest numbers are kept, whatever the order of adding.
    let mut equal = Largest::default();
    for object in [6, 2, 9, 4, 1, 8, 3] {
        equal.add(1, ObjectIndex(object));
    }
    let kept: Vec<u32> = equal.0.iter().map(|l| l.1.0).collect();
    assert_eq!(kept, [1, 2, 3, 4]);
}

#[test]
fn groups_add_up() {
    let group = |objects: u64, node: u32| {
        let mut samples = Largest::default();
        samples.add(objects, ObjectIndex(node));
        Group {
            objects,
            shallow: 10 * objects,
            retained: 100 * objects,
            nodes: Nodes(vec![vec![Node(node)]]),
            samples,
            sizes: SizeClasses::default(),
        }
    };
    let mut sum = group(3, 1);
    sum.merge(group(4, 2));
    assert_eq!((sum.objects, sum.shallow, sum.retained), (7, 70, 700));
    assert_eq!(sum.nodes.0, [[Node(1), Node(2)]]);
    assert_eq!(sum.samples.0, [(4, ObjectIndex(2)), (3, ObjectIndex(1))]);
}

#[test]
fn chains_fold_into_the_step_that_they_repeat() {
    let trie = chain(&[
        ("A.b", "com.acme.B"),
        ("B.a", "com.acme.A"),
        ("A.c", "com.acme.C"),
    ]);
    let (via, class) = names(&trie, "A.b", "com.acme.B");
    assert_eq!(trie.folds_into(StepId(3), via, class), Some(StepId(1)));
    // An object that continues a chain belongs to an ancestor with the same class. If this ancestor is not the trie
    // node directly above, the same field must also hold the objects of both.
    let (other, _) = names(&trie, "A.c", "com.acme.C");
    assert_eq!(trie.folds_into(StepId(3), other, class), None);
    assert_eq!(trie.folds_into(StepId(3), None, class), None);
    assert_eq!(trie.folds_into(StepId(1), None, class), Some(StepId(1)));
    assert_eq!(trie.folds_into(StepId::ROOT, via, class), None);
    let root = trie[StepId::ROOT].class;
    assert_eq!(trie.folds_into(StepId(3), Some(root), root), None);
}

#[test]
fn jdk_classes_fold_only_into_the_step_above() {
    let trie = chain(&[("Node.next", "java.util.Node"), ("Node.item", "com.acme.A")]);
    let (via, class) = names(&trie, "Node.next", "java.util.Node");
    assert_eq!(trie.folds_into(StepId(1), via, class), Some(StepId(1)));
    assert_eq!(trie.folds_into(StepId(2), via, class), None);
}

#[test]
fn completions_fold_into_a_chain_and_collections_do_not() {
    const INNER: LabelKind = LabelKind::RuntimeField;
    let folds = |links: [(&'static str, &'static str); 2]| {
        let steps = [links[0], links[1], links[0]];
        let mut drawn = vec![(0, ("com.acme.Saga.first", FIELD), links[1].1, [1, 8, 8])];
        for (above, &(via, class)) in (1..).zip(&steps[..2]) {
            drawn.push((above, (via, INNER), class, [1, 8, 8]));
        }
        let trie = Trie::drawn(&drawn);
        let via = trie.names.find(steps[2].0, INNER);
        let class = trie.names.find_class(steps[2].1).unwrap();
        trie.folds_into(StepId(3), via, class)
    };
    let completions = [
        (
            "java.util.concurrent.CompletableFuture.stack",
            "java.util.concurrent.CompletableFuture$UniApply",
        ),
        (
            "java.util.concurrent.CompletableFuture$UniCompletion.dep",
            "java.util.concurrent.CompletableFuture",
        ),
    ];
    assert_eq!(folds(completions), Some(StepId(2)));
    let maps = [
        ("java.util.TreeMap.root", "java.util.TreeMap$Entry"),
        ("java.util.TreeMap$Entry.value", "java.util.TreeMap"),
    ];
    assert_eq!(folds(maps), None);
}

#[test]
fn long_periods_do_not_fold() {
    let steps = ["B", "C", "D", "E", "F", "G"].map(|class| ("Z.z", class));
    let mut all = vec![("A.a", "A")];
    all.extend(steps);
    let trie = chain(&all);
    let (via, class) = names(&trie, "A.a", "A");
    // The search finds a chain in which six classes alternate, but not one with seven classes.
    assert_eq!(trie.folds_into(StepId(6), via, class), Some(StepId(1)));
    assert_eq!(trie.folds_into(StepId(7), via, class), None);
}

#[test]
fn paths_through_the_trie() {
    let trie = chain(&[("r", "A"), ("A.b", "B"), ("B.c", "C")]);
    let above: Vec<u32> = trie.above(StepId(3)).map(|s| s.0).collect();
    assert_eq!(above, [3, 2, 1, 0]);
    let above: Vec<u32> = trie.above(StepId::ROOT).map(|s| s.0).collect();
    assert_eq!(above, [0]);
    assert_eq!(trie.path(StepId(3)), [StepId(1), StepId(2), StepId(3)]);
    assert_eq!(trie.path(StepId::ROOT), []);
    assert_eq!(trie.len(), 4);
    let below = trie.classes_below(StepId(1));
    let below: Vec<&str> = below.iter().map(|&c| trie.names.text(c)).collect();
    assert_eq!(below, ["B", "C"]);
    assert!(trie.classes_below(StepId(3)).is_empty());
}
