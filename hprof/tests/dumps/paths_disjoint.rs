//! Tests paths that share no reference, and the smallest set of references that holds an object.

use std::collections::BTreeSet;

use hprof::answers::{CutReference, MAX_CUT, PathOptions, Via};
use hprof::{ObjectId, ObjectIndex, Options, Refs, Silent, Snapshot, Source};
use testdata::writer::{
    FieldType, HeapBuilder, Obj, Options as Written, ReferenceKind, Rng, Root, Value,
};

const FIELDS: usize = 3;

/// Objects with three fields each. GC roots hold some of the objects, and static fields hold some.
struct Heap {
    snapshot: Snapshot,
    objects: Vec<ObjectIndex>,
    /// The references between objects, as indices of `objects`, once for each field.
    edges: Vec<(usize, usize)>,
    /// The objects that static fields hold. Each of these static fields counts as one more reference.
    statics: Vec<usize>,
    roots: BTreeSet<usize>,
}

impl Heap {
    fn random(rng: &mut Rng) -> Self {
        let count = 3 + rng.below(7);
        let edges: Vec<(usize, usize)> = (0..count)
            .flat_map(|from| [from; FIELDS])
            .filter_map(|from| {
                let to = rng.below(count);
                (rng.below(3) > 0).then_some((from, to))
            })
            .collect();
        let mut some = || {
            let all = (0..count).filter(|_| rng.below(4) == 0);
            all.collect::<Vec<usize>>()
        };
        let (statics, roots) = (some(), some());
        Self::build(count, edges, statics, roots)
    }

    fn build(
        count: usize,
        edges: Vec<(usize, usize)>,
        statics: Vec<usize>,
        roots: Vec<usize>,
    ) -> Self {
        let mut heap = HeapBuilder::new(Written::default());
        let boot = heap.boot();
        let names = ["a", "b", "c"].map(|name| (name, FieldType::Object));
        // Half of the objects have fields of an application class.
        let own = heap.add_class("app.Node", Some(boot.object), &names, &[]);
        let other = heap.add_class("java.Node", Some(boot.object), &names, &[]);
        let of_loader = heap.add_class("app.Loader", Some(boot.class_loader), &[], &[]);
        let loader = heap.add_class_loader(of_loader, "app");
        let nulls = [const { Value::NULL }; FIELDS];
        let objects: Vec<Obj> = (0..count)
            .map(|at| heap.add_instance(if at % 2 == 0 { own } else { other }, &nulls))
            .collect();
        let mut used = vec![0; count];
        for &(from, to) in &edges {
            heap.set_field(objects[from], names[used[from]].0, objects[to]);
            used[from] += 1;
        }
        let named: Vec<String> = (0..statics.len()).map(|at| format!("s{at}")).collect();
        let fields = named.iter().zip(&statics);
        let fields: Vec<(&str, Value)> = fields
            .map(|(name, &at)| (name.as_str(), objects[at].into()))
            .collect();
        let registry = heap.add_class("app.Registry", Some(boot.object), &[], &fields);
        for class in [own, registry] {
            heap.set_loader(class, loader);
        }
        for (at, &root) in roots.iter().enumerate() {
            let global_ref = 8 + at as u64;
            heap.add_root(Root::JniGlobal { global_ref }, objects[root]);
        }
        heap.add_root(Root::JniGlobal { global_ref: 7 }, loader);
        let source = Source::from_bytes(heap.try_build().unwrap().bytes);
        let snapshot = Snapshot::of(source, &Options::default(), &Silent).unwrap();
        let number = |o: &Obj| snapshot.find(ObjectId(heap.address(*o))).unwrap();
        Self {
            objects: objects.iter().map(number).collect(),
            snapshot,
            edges,
            statics,
            roots: roots.into_iter().collect(),
        }
    }

    /// Returns the number of all references: those in `edges`, and those of the static fields.
    fn references(&self) -> usize {
        self.edges.len() + self.statics.len()
    }

    /// True if an object is reachable when the references in `removed` are removed.
    fn reaches(&self, target: usize, removed: &[usize]) -> bool {
        let statics = self.statics.iter().zip(self.edges.len()..);
        let statics = statics.filter(|(_, number)| !removed.contains(number));
        let mut stack: Vec<usize> = self.roots.iter().copied().collect();
        stack.extend(statics.map(|(&object, _)| object));
        let mut seen: BTreeSet<usize> = BTreeSet::new();
        while let Some(at) = stack.pop() {
            if !seen.insert(at) {
                continue;
            }
            let edges = self.edges.iter().zip(0..);
            let out = edges.filter(|((from, _), number)| *from == at && !removed.contains(number));
            stack.extend(out.map(|((_, to), _)| *to));
        }
        seen.contains(&target)
    }

    /// Returns the minimum number of references that must be removed to make all targets unreachable. Returns `None` if
    /// more than [`MAX_CUT`] references must be removed.
    fn smallest(&self, targets: &[usize]) -> Option<usize> {
        let frees = |removed: &[usize]| !targets.iter().any(|&t| self.reaches(t, removed));
        let all = 0..self.references();
        if frees(&[]) {
            return Some(0);
        }
        for a in all.clone() {
            if frees(&[a]) {
                return Some(1);
            }
        }
        let pairs = all.clone().flat_map(|a| (0..a).map(move |b| [a, b]));
        if pairs.clone().any(|pair| frees(&pair)) {
            return Some(2);
        }
        let mut triples = pairs.flat_map(|[a, b]| (0..b).map(move |c| [a, b, c]));
        triples.any(|triple| frees(&triple)).then_some(3)
    }

    /// Returns the index of a reference. The references in `edges` have the first indices, then come the static fields.
    fn number(&self, from: ObjectIndex, via: Via) -> usize {
        match via {
            Via::Static(_, field) => self.edges.len() + usize::from(field),
            Via::Field(_, field) => {
                let at = self.objects.iter().position(|o| *o == from).unwrap();
                let own = self.edges.iter().enumerate().filter(|(_, e)| e.0 == at);
                own.map(|(number, _)| number)
                    .nth(usize::from(field))
                    .unwrap()
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_cut_is_smallest_and_paths_share_no_reference() {
    let mut rng = Rng::new(20);
    let mut sizes = [0; MAX_CUT + 2];
    for round in 0..600 {
        let heap = Heap::random(&mut rng);
        let count = heap.objects.len();
        let wanted = 1 + rng.below(2);
        let targets: BTreeSet<usize> = (0..wanted).map(|_| rng.below(count)).collect();
        let free: Vec<usize> = targets.difference(&heap.roots).copied().collect();
        let objects: Vec<ObjectIndex> = targets.iter().map(|&t| heap.objects[t]).collect();
        let options = PathOptions::default();
        let snapshot = &heap.snapshot;
        let limit = 1 + rng.below(5);
        let found = snapshot
            .disjoint_paths(&objects, &options, limit, &Silent)
            .unwrap();
        assert_eq!(found.held_by_roots as usize, targets.len() - free.len());

        let smallest = heap.smallest(&free);
        sizes[smallest.unwrap_or(MAX_CUT + 1)] += 1;
        assert_eq!(found.cut.as_ref().map(Vec::len), smallest, "round {round}");
        let number = |r: &CutReference| heap.number(r.source, r.via);
        if let Some(cut) = &found.cut {
            let numbers: BTreeSet<usize> = cut.iter().map(number).collect();
            assert_eq!(numbers.len(), cut.len(), "round {round}");
            let removed: Vec<usize> = numbers.into_iter().collect();
            assert!(!free.iter().any(|&t| heap.reaches(t, &removed)));
        }

        let most = smallest.unwrap_or(MAX_CUT + 1).min(limit);
        assert!(found.paths.len() >= most && found.paths.len() <= limit);
        assert!(smallest.is_none() || found.paths.len() == most);
        let mut used = BTreeSet::new();
        for path in &found.paths {
            let last = path.steps.last().unwrap().object;
            assert!(free.iter().any(|&t| heap.objects[t] == last));
            for pair in path.steps.windows(2) {
                let via = pair[1].via.unwrap();
                assert!(
                    used.insert(heap.number(pair[0].object, via)),
                    "round {round}"
                );
            }
        }
        let lines = found.tree(snapshot, limit, 1000).nodes.len();
        assert_eq!(
            lines,
            found.paths.iter().map(|p| p.steps.len()).sum::<usize>()
        );
    }
    assert!(sizes.iter().all(|&count| count > 10), "{sizes:?}");
}

#[test]
fn a_cut_prefers_fields_of_the_application_near_the_targets() {
    // 0 -> 2 -> 4 -> 5 -> 6: objects with even numbers belong to the application.
    let edges = vec![(0, 2), (2, 4), (4, 5), (5, 6)];
    let heap = Heap::build(7, edges, Vec::new(), vec![0]);
    let cut = |targets: &[usize]| {
        let objects: Vec<ObjectIndex> = targets.iter().map(|&t| heap.objects[t]).collect();
        let found = heap
            .snapshot
            .disjoint_paths(&objects, &PathOptions::default(), 3, &Silent)
            .unwrap();
        let cut = found.cut.unwrap();
        let place = |o: ObjectIndex| heap.objects.iter().position(|other| *other == o).unwrap();
        let pairs = cut.iter().map(|r| (place(r.source), place(r.target)));
        pairs.collect::<Vec<_>>()
    };
    assert_eq!(cut(&[6]), [(4, 5)]);
    assert_eq!(cut(&[5, 6]), [(4, 5)]);
    assert_eq!(cut(&[2, 6]), [(0, 2)]);
    assert_eq!(cut(&[0]), []);
}

#[test]
fn ignored_fields_are_not_on_a_path() {
    // Two fields of object 0 refer to object 1.
    let heap = Heap::build(2, vec![(0, 1), (0, 1)], Vec::new(), vec![0]);
    let node = heap.snapshot.classes().by_name("app.Node")[0];
    let without = [Via::Field(node, 1)];
    let mut options = PathOptions::default();
    let find = |options: &PathOptions<'_>| {
        heap.snapshot
            .disjoint_paths(&heap.objects[1..], options, 3, &Silent)
            .unwrap()
    };
    assert_eq!(find(&options).cut.unwrap().len(), 2);
    options.without = &without;
    let cut = find(&options).cut.unwrap();
    assert_eq!(
        cut.iter().map(|r| r.via).collect::<Vec<_>>(),
        [Via::Field(node, 0)]
    );
}

#[test]
fn a_soft_reference_holds_unless_only_strong_ones_count() {
    let mut heap = HeapBuilder::new(Written::default());
    let boot = heap.boot();
    let names = [("a", FieldType::Object)];
    let node = heap.add_class("app.Node", Some(boot.object), &names, &[]);
    let target = heap.add_instance(boot.object, &[]);
    let strong = heap.add_instance(node, &[target.into()]);
    let soft = heap.add_reference(ReferenceKind::Soft, target);
    for (global_ref, object) in [(8, strong), (9, soft)] {
        heap.add_root(Root::JniGlobal { global_ref }, object);
    }
    let source = Source::from_bytes(heap.try_build().unwrap().bytes);
    let snapshot = Snapshot::of(source, &Options::default(), &Silent).unwrap();
    let target = snapshot.find(ObjectId(heap.address(target))).unwrap();
    for (refs, expected) in [(Refs::Strong, 1), (Refs::Soft, 2), (Refs::All, 2)] {
        let mut options = PathOptions::default();
        options.follow = refs;
        let found = snapshot.disjoint_paths(&[target], &options, 3, &Silent);
        let found = found.unwrap();
        assert_eq!(found.cut.unwrap().len(), expected, "{refs:?}");
        assert_eq!(found.paths.len(), expected);
    }
}
