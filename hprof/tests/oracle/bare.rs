//! Tests objects that refer only to their class. Such an object may be the only one that keeps its class alive.

use std::sync::Mutex;

use hprof::dominators::DominatorTree;
use hprof::dominators::{Node, Thresholds};
use hprof::{ObjectIndex, Options as Reading, Progress, Refs, Silent, Snapshot, Source};
use testdata::writer::{ClassId, FieldType, HeapBuilder, Obj, Options, Ref, Root, Value};

use crate::both::{Both, both_by};
use crate::brute::BruteForce;

/// A heap with a loader, and a class of that loader whose instances have two references, initially null.
struct Heap {
    heap: HeapBuilder,
    loader: Obj,
    class: ClassId,
}

impl Heap {
    fn new() -> Self {
        let mut heap = HeapBuilder::new(Options::default());
        let boot = heap.boot();
        let of_loader = heap.add_class("app.Loader", Some(boot.class_loader), &[], &[]);
        let loader = heap.add_class_loader(of_loader, "app");
        let fields = [("one", FieldType::Object), ("two", FieldType::Object)];
        let class = heap.add_class("app.Key", Some(boot.object), &fields, &[]);
        heap.set_loader(class, loader);
        Self {
            heap,
            loader,
            class,
        }
    }

    fn instances(&mut self, count: usize) -> Vec<Ref> {
        let instance = |_| Ref::Object(self.heap.add_instance(self.class, &[]));
        (0..count).map(instance).collect()
    }

    /// Adds an array that a root holds.
    fn holder(&mut self, elements: Vec<Ref>) -> Obj {
        let array = self.heap.boot().object_array;
        let holder = self.heap.add_object_array(array, elements);
        self.heap
            .add_root(Root::JniGlobal { global_ref: 8 }, holder);
        holder
    }

    /// Analyzes the heap three times, and checks the results. In each piece of the file, some objects that refer only
    /// to their class are treated as objects with references: the usual number for each class, then one, then none. The
    /// others are treated as objects without references, unless the dump is read again because a dominator could be
    /// wrong. Returns how many instances of `app.Key` are treated as objects without references in the last analysis.
    fn check(&self) -> usize {
        let mut leaves = 0;
        for first in [Thresholds::USUAL.bare[0], 1, 0] {
            let both = both_by(
                self.heap.try_build().unwrap().bytes,
                Refs::Soft,
                kept(first),
            );
            let brute = BruteForce::new(&both.heap, Refs::Soft);
            both.check_dominators(&brute, &first);
            both.check_sizes(&brute, &first);
            check_graph(&both);
            leaves = self.leaves(&both);
        }
        leaves
    }

    fn leaves(&self, both: &Both) -> usize {
        let snapshot = &both.snapshot;
        let class = snapshot.classes().by_name("app.Key")[0];
        let tree = snapshot.tree();
        let own = both
            .numbers
            .iter()
            .filter(|&&o| snapshot.class_of(o) == Some(class));
        own.filter(|&&o| tree.is_reachable(o) && tree.node(o).is_none())
            .count()
    }
}

/// Returns the usual thresholds, but with this rule for objects that refer only to their class: in each piece of the
/// file, the first `first` such objects of each class are treated as objects with references. All others are treated as
/// objects without references.
fn kept(first: u32) -> Thresholds {
    Thresholds {
        bare: [first, u32::MAX],
        ..Thresholds::USUAL
    }
}

/// Checks that the graph has all references, and that dominators computed from this graph are the same as in the
/// snapshot.
fn check_graph(both: &Both) {
    let graph = both.snapshot.graph(&Silent).unwrap();
    let key = both.snapshot.classes().by_name("app.Key")[0];
    for &object in &both.numbers {
        if both.snapshot.class_of(object) == Some(key) {
            let last = graph.references(object).last();
            assert_eq!(last, Some(ObjectIndex(key.0)), "the class");
        }
    }
    let size = |object| both.snapshot.shallow_bytes(object);
    let tree = DominatorTree::build(graph, size, &Silent).unwrap();
    for &object in &both.numbers {
        let dominator = |tree: &DominatorTree| {
            let up = tree.dominator(object)?;
            Some(tree.object(up))
        };
        assert_eq!(dominator(&tree), dominator(both.snapshot.tree()));
    }
    let total = both.snapshot.tree().retained_bytes(Node::ROOT);
    assert_eq!(tree.retained_bytes(Node::ROOT), total);
}

#[test]
fn one_instance_keeps_its_class_and_all_of_its_loaders() {
    let mut heap = Heap::new();
    let one = heap.instances(1);
    heap.holder(one);
    assert_eq!(heap.check(), 0);
}

#[test]
fn instances_under_two_holders_keep_their_class_together() {
    let mut heap = Heap::new();
    for _ in 0..2 {
        let some = heap.instances(20);
        heap.holder(some);
    }
    assert_eq!(heap.check(), 0);
}

#[test]
fn instances_of_one_holder_are_leaves_if_the_class_has_another() {
    for elsewhere in [false, true] {
        let mut heap = Heap::new();
        let mut all = heap.instances(40);
        all.push(Ref::Object(heap.loader));
        all.push(Ref::Class(heap.class));
        heap.holder(all);
        // If `elsewhere` is true, a second holder holds a further instance. Then none of the holders dominates the
        // class.
        if elsewhere {
            let one = heap.instances(1);
            heap.holder(one);
        }
        assert_eq!(heap.check(), 40 + usize::from(elsewhere));
    }
}

#[test]
fn a_holder_of_loader_and_instances_dominates_the_class() {
    let mut heap = Heap::new();
    let mut all = heap.instances(30);
    all.push(Ref::Object(heap.loader));
    let holder = heap.holder(all);
    assert_eq!(heap.check(), 30);
    let both = both_by(heap.heap.try_build().unwrap().bytes, Refs::Soft, kept(0));
    let class = both.snapshot.classes().by_name("app.Key")[0];
    let tree = both.snapshot.tree();
    let above = tree
        .dominator(ObjectIndex(class.0))
        .and_then(|node| tree.object(node));
    let id = hprof::ObjectId(heap.heap.address(holder));
    assert_eq!(above, both.snapshot.find(id));
}

#[test]
fn an_instance_in_another_part_of_the_heap_is_seen() {
    // The instance is far from the roots: behind a long list.
    let mut heap = Heap::new();
    let mut all = heap.instances(20);
    all.push(Ref::Object(heap.loader));
    heap.holder(all);
    let one = heap.instances(1)[0];
    let array = heap.heap.boot().object_array;
    let mut last = heap.heap.add_object_array(array, vec![one]);
    for _ in 0..20_000 {
        last = heap.heap.add_object_array(array, vec![Ref::Object(last)]);
    }
    heap.holder(vec![Ref::Object(last)]);
    let both = both_by(heap.heap.try_build().unwrap().bytes, Refs::Soft, kept(0));
    let tree = both.snapshot.tree();
    let class = both.snapshot.classes().by_name("app.Key")[0];
    let object = ObjectIndex(class.0);
    assert_eq!(tree.dominator(object), Some(Node::ROOT));
    assert_eq!(heap.leaves(&both), 0, "read again without such leaves");
}

/// True if a progress message says that the dump is read again.
fn is_read_again(heap: &Heap) -> bool {
    #[derive(Default)]
    struct Phases(Mutex<Vec<&'static str>>);
    impl Progress for Phases {
        fn phase(&self, name: &'static str, _: u64) {
            self.0.lock().unwrap().push(name);
        }
        fn advance(&self, _: u64) {}
    }
    let phases = Phases::default();
    let mut options = Reading::default();
    options.set_thresholds(kept(0));
    let source = Source::from_bytes(heap.heap.try_build().unwrap().bytes);
    Snapshot::of(source, &options, &phases).unwrap();
    let all = phases.0.into_inner().unwrap();
    all.iter()
        .any(|name| name.starts_with("reading the dump again"))
}

#[test]
fn a_second_read_is_reported() {
    let mut heap = Heap::new();
    let mut all = heap.instances(20);
    heap.holder(all.clone());
    assert!(is_read_again(&heap), "they keep their class");
    all.push(Ref::Object(heap.loader));
    heap.holder(all);
    assert!(!is_read_again(&heap), "the loader keeps it");
}

#[test]
fn a_loader_without_other_references_keeps_its_classes() {
    let mut heap = Heap::new();
    let boot = heap.heap.boot();
    let bare = heap
        .heap
        .add_class("app.Bare", Some(boot.class_loader), &[], &[]);
    heap.heap.set_loader(bare, heap.loader);
    let loader = heap.heap.add_instance(bare, &[]);
    heap.heap.set_loader(heap.class, loader);
    // The array holds both loaders. The class of `loader` was defined by `heap.loader`, so `heap.loader` keeps this
    // class alive.
    heap.holder(vec![Ref::Object(loader), Ref::Object(heap.loader)]);
    assert_eq!(heap.check(), 0);
    let both = both_by(heap.heap.try_build().unwrap().bytes, Refs::Soft, kept(0));
    let class = both.snapshot.classes().by_name("app.Key")[0];
    assert!(both.snapshot.tree().is_reachable(ObjectIndex(class.0)));
}

#[test]
fn one_instance_keeps_a_chain_of_loaders() {
    // The loader `outer` defined the class of the loader `inner`. Nothing else refers to `outer`.
    let mut heap = Heap::new();
    let boot = heap.heap.boot();
    let above = heap
        .heap
        .add_class("app.Above", Some(boot.class_loader), &[], &[]);
    let outer = heap.heap.add_class_loader(above, "outer");
    let inner = heap
        .heap
        .add_class("app.Inner", Some(boot.class_loader), &[], &[]);
    heap.heap.set_loader(inner, outer);
    let loader = heap.heap.add_class_loader(inner, "inner");
    heap.heap.set_loader(heap.class, loader);
    let big = heap
        .heap
        .add_object_array(boot.object_array, vec![Ref::Null; 100]);
    heap.heap.set_protection_domain(inner, big);
    let one = heap.instances(1);
    heap.holder(one);
    assert_eq!(heap.check(), 0);
}

#[test]
fn statics_of_a_class_may_hold_its_own_instances() {
    let mut heap = Heap::new();
    let boot = heap.heap.boot();
    let holder = heap.heap.add_class(
        "app.Statics",
        Some(boot.object),
        &[],
        &[("all", Value::Ref(Ref::Null))],
    );
    heap.heap.set_loader(holder, heap.loader);
    let some = heap.instances(30);
    let table = heap.heap.add_object_array(boot.object_array, some);
    heap.heap.set_static(holder, "all", table);
    // A single instance that another object holds keeps the class, its loader and everything they hold alive. So does a
    // reference to the loader.
    for leaves in [0, 30] {
        match leaves {
            0 => {
                let one = heap.instances(1);
                heap.holder(one);
            }
            _ => {
                let loader = Ref::Object(heap.loader);
                heap.holder(vec![loader]);
            }
        }
        assert!(heap.check() >= leaves);
    }
}

#[test]
fn an_instance_with_one_field_set_is_not_a_leaf() {
    let mut heap = Heap::new();
    let some = heap.instances(20);
    let Ref::Object(first) = some[0] else {
        panic!("an object")
    };
    heap.heap.set_field(first, "two", some[1]);
    let mut all = vec![Ref::Object(heap.loader), Ref::Class(heap.class)];
    all.extend(&some);
    heap.holder(all);
    assert_eq!(heap.check(), 19);
}
