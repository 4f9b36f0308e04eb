//! Tests that hidden classes are kept alive by their instances and class objects. A loader keeps a hidden class alive
//! only if nothing else does.

use std::path::Path;

use hprof::{ObjectId, ObjectIndex, Options, Refs, Silent, Snapshot, Source};
use testdata::writer::{self, Elements, FieldType, HeapBuilder, Obj, Ref, Root, Value};

/// Size in bytes of the array to which the static field of each hidden class refers.
const ARRAY: usize = 100_000;

/// A heap with an application's class loader, three classes of this loader, and a holder. The holder holds an instance
/// of the first class. A static field of the third class holds an instance of the second. The third class has no
/// instance.
struct Drawn {
    heap: HeapBuilder,
    loader: Obj,
    holder: Obj,
    classes: [writer::ClassId; 3],
    arrays: [Obj; 3],
}

fn drawn(suffix: &str) -> Drawn {
    let mut heap = HeapBuilder::new(writer::Options::default());
    let boot = heap.boot();
    let loader = heap.add_class_loader(boot.class_loader, "app");
    heap.add_root(Root::JniGlobal { global_ref: 1 }, loader);
    let array = [("table", Value::NULL)];
    let classes = ["Rule", "Nested", "Strong"].map(|name| {
        let name = format!("com.acme.{name}{suffix}");
        let class = heap.add_class(&name, Some(boot.object), &[], &array);
        heap.set_loader(class, loader);
        class
    });
    let arrays = classes.map(|class| {
        let array = heap.add_primitive_array(Elements::Byte(vec![1; ARRAY]));
        heap.set_static(class, "table", array);
        array
    });
    let field = [("rule", FieldType::Object)];
    let of_holder = heap.add_class("com.acme.Holder", Some(boot.object), &field, &[]);
    let rule = heap.add_instance(classes[0], &[]);
    let holder = heap.add_instance(of_holder, &[Value::Ref(rule.into())]);
    heap.add_root(Root::JniGlobal { global_ref: 2 }, holder);
    let nested = heap.add_instance(classes[1], &[]);
    let statics = [("nested", Value::Ref(nested.into()))];
    let above = heap.add_class(
        &format!("com.acme.Above{suffix}"),
        Some(boot.object),
        &[],
        &statics,
    );
    heap.set_loader(above, loader);
    Drawn {
        heap,
        loader,
        holder,
        classes,
        arrays,
    }
}

impl Drawn {
    fn open(&self) -> Snapshot {
        let source = Source::from_bytes(self.heap.try_build().unwrap().bytes);
        Snapshot::of(source, &Options::default(), &Silent).unwrap()
    }

    fn object(&self, snapshot: &Snapshot, of: impl Into<Ref>) -> ObjectIndex {
        snapshot.find(ObjectId(self.heap.address(of))).unwrap()
    }
}

#[test]
fn an_instance_retains_its_hidden_class() {
    let hidden = drawn("+0x00007f0012345678");
    let snapshot = hidden.open();
    let tree = snapshot.tree();
    let dominator = |of: ObjectIndex| tree.dominator(of).and_then(|node| tree.object(node));
    let [rule, nested, strong] = hidden.classes.map(|class| hidden.object(&snapshot, class));
    let holder = hidden.object(&snapshot, hidden.holder);
    let loader = hidden.object(&snapshot, hidden.loader);
    let retained = snapshot.retained_bytes(holder).unwrap();
    assert!(retained > ARRAY as u64, "{retained}");
    assert_eq!(
        dominator(hidden.object(&snapshot, hidden.arrays[0])),
        Some(rule)
    );
    assert_ne!(dominator(rule), Some(loader));
    // Only the loader leads to the third class. So the loader also keeps alive the object in the class's static field.
    assert_eq!(dominator(strong), Some(loader));
    assert!(tree.node(nested).is_some());

    // In a heap with ordinary instead of hidden classes, the same objects are reachable. But both the instances and the
    // loader keep an ordinary class alive, so neither of them retains it.
    let plain = drawn("");
    let of_plain = plain.open();
    assert_eq!(dominator_of(&of_plain, &plain, plain.classes[0]), None);
    assert_eq!(snapshot.unreachable_bytes(), of_plain.unreachable_bytes());
    for (a, b) in hidden.arrays.into_iter().zip(plain.arrays) {
        let is_reached = |drawn: &Drawn, snapshot: &Snapshot, array| {
            let object = drawn.object(snapshot, array);
            snapshot.retained_bytes(object).is_some()
        };
        assert!(is_reached(&hidden, &snapshot, a) && is_reached(&plain, &of_plain, b));
    }
}

fn dominator_of(snapshot: &Snapshot, drawn: &Drawn, class: writer::ClassId) -> Option<ObjectIndex> {
    let tree = snapshot.tree();
    let node = tree.dominator(drawn.object(snapshot, class))?;
    tree.object(node)
}

#[test]
fn lambdas_stay_with_their_loader() {
    let lambda = drawn("$$Lambda+0x00007f0012345678");
    let snapshot = lambda.open();
    let [with_instance, _, without] = lambda.classes;
    assert_eq!(dominator_of(&snapshot, &lambda, with_instance), None);
    let loader = lambda.object(&snapshot, lambda.loader);
    assert_eq!(dominator_of(&snapshot, &lambda, without), Some(loader));
}

#[test]
fn an_index_has_the_same_dominators() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hidden.hprof");
    let hidden = drawn("+0x00007f0012345678");
    std::fs::write(&path, hidden.heap.try_build().unwrap().bytes).unwrap();
    let mut options = Options::default();
    options.holders = true;
    let fresh = Snapshot::open(&path, &options, &Silent).unwrap();
    let index = folder.path().join("hidden.index");
    hprof::index::write(&fresh, &mut std::fs::File::create(&index).unwrap()).unwrap();
    let kept = Snapshot::from_index(&path, &index, &options).unwrap();
    for number in 0..fresh.object_count() as u32 {
        let object = ObjectIndex(number);
        assert_eq!(
            fresh.tree().dominator(object),
            kept.tree().dominator(object)
        );
        let held = |snapshot: &Snapshot| snapshot.hold_of(&snapshot.holders().unwrap(), object);
        assert_eq!(held(&fresh), held(&kept), "{number}");
    }
}

/// Checks that the reachable objects are the same as if loaders kept all of their classes alive.
#[test]
fn reachable_objects_of_committed_dumps_stay_reachable() {
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata");
    let mut options = Options::default();
    options.refs = Refs::Strong;
    let mut dumps = 0;
    for entry in std::fs::read_dir(testdata).unwrap() {
        let path = entry.unwrap().path();
        if !path.to_string_lossy().ends_with(".hprof.gz") {
            continue;
        }
        dumps += 1;
        let snapshot = Snapshot::open(&path, &options, &Silent).unwrap();
        let graph = snapshot.graph(&Silent).unwrap();
        let classes = snapshot.classes();
        let mut kept: Vec<Vec<ObjectIndex>> = vec![Vec::new(); graph.object_count()];
        for (class, of) in classes.iter().take(classes.dumped()) {
            if let Some(loader) = snapshot.find(of.loader) {
                kept[loader.0 as usize].push(ObjectIndex(class.0));
            }
        }
        let mut reached = vec![false; graph.object_count()];
        let mut stack: Vec<ObjectIndex> = graph.root_objects().collect();
        while let Some(object) = stack.pop() {
            if !std::mem::replace(&mut reached[object.0 as usize], true) {
                stack.extend(graph.references(object));
                stack.extend(&kept[object.0 as usize]);
            }
        }
        for (object, &is_reached) in (0..).map(ObjectIndex).zip(&reached) {
            let is_kept = snapshot.retained_bytes(object).is_some();
            assert_eq!(is_kept, is_reached, "{}: {object:?}", path.display());
        }
    }
    assert!(dumps >= 4);
}
