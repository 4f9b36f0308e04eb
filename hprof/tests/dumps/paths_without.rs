//! Tests paths that ignore some fields.

use hprof::answers::{PathOptions, Via};
use hprof::{ClassIndex, ObjectId, ObjectIndex, Options, Silent, Snapshot, Source};
use testdata::writer::{FieldType, HeapBuilder, Obj, Options as Written, Root, Value};

/// Two holders refer to one target: the first by two fields, the second by an inherited field. A static field refers to
/// the second holder, and a GC root to the first.
struct Heap {
    snapshot: Snapshot,
    target: ObjectIndex,
}

impl Heap {
    fn new() -> Self {
        let mut heap = HeapBuilder::new(Written::default());
        let boot = heap.boot();
        let fields = [("one", FieldType::Object), ("two", FieldType::Object)];
        let holder = heap.add_class("app.Holder", Some(boot.object), &fields, &[]);
        let child = heap.add_class("app.Child", Some(holder), &[], &[]);
        let of_loader = heap.add_class("app.Loader", Some(boot.class_loader), &[], &[]);
        let loader = heap.add_class_loader(of_loader, "app");
        let target = heap.add_instance(boot.object, &[]);
        let first = heap.add_instance(holder, &[target.into(), target.into()]);
        let second = heap.add_instance(child, &[target.into(), Value::NULL]);
        let statics = [("all", Value::from(second))];
        let registry = heap.add_class("app.Registry", Some(boot.object), &[], &statics);
        for class in [holder, child, registry] {
            heap.set_loader(class, loader);
        }
        heap.add_root(Root::JniGlobal { global_ref: 8 }, first);
        heap.add_root(Root::JniGlobal { global_ref: 9 }, loader);
        Self::read(&heap, target)
    }

    fn read(heap: &HeapBuilder, target: Obj) -> Self {
        let source = Source::from_bytes(heap.try_build().unwrap().bytes);
        let snapshot = Snapshot::of(source, &Options::default(), &Silent).unwrap();
        let target = snapshot.find(ObjectId(heap.address(target))).unwrap();
        Self { snapshot, target }
    }

    fn class(&self, name: &str) -> ClassIndex {
        self.snapshot.classes().by_name(name)[0]
    }

    /// Returns the references of the path to the target, or `None` if there is no path.
    fn path(&self, without: &[Via]) -> Option<Vec<String>> {
        let mut options = PathOptions::default();
        options.without = without;
        let paths = self
            .snapshot
            .paths(&[self.target], &options, &Silent)
            .unwrap();
        let path = paths.path(&self.snapshot, self.target)?;
        let vias = path.steps[path.begin + 1..]
            .iter()
            .filter_map(|step| step.via);
        Some(vias.map(|via| self.snapshot.via_name(via)).collect())
    }
}

#[test]
fn a_path_avoids_the_ignored_fields() {
    let heap = Heap::new();
    let holder = heap.class("app.Holder");
    let [one, two] = [0, 1].map(|field| Via::Field(holder, field));
    let all = Via::Static(heap.class("app.Registry"), 0);
    let by_static = Some(vec![
        "app.Registry.all".to_owned(),
        "app.Holder.one".to_owned(),
    ]);
    let by_root = |field: &str| Some(vec![format!("app.Holder.{field}")]);
    assert_eq!(heap.path(&[]), by_root("one"));
    // Without the field `one`, another field of the same object leads to the target.
    assert_eq!(heap.path(&[one]), by_root("two"));
    assert_eq!(heap.path(&[all]), by_root("one"));
    assert_eq!(heap.path(&[all, two]), by_root("one"));
    assert_eq!(heap.path(&[all, one]), by_root("two"));
    assert_eq!(heap.path(&[one, two]), None);
    let mut options = PathOptions::default();
    // The object that the GC root holds is ignored, so that only the static field is left.
    let first = heap.snapshot.instances(&[holder]);
    options.except = &first;
    let paths = heap
        .snapshot
        .paths(&[heap.target], &options, &Silent)
        .unwrap();
    let path = paths.path(&heap.snapshot, heap.target).unwrap();
    let vias = path.steps[path.begin + 1..]
        .iter()
        .filter_map(|step| step.via);
    let vias: Vec<String> = vias.map(|via| heap.snapshot.via_name(via)).collect();
    assert_eq!(Some(vias), by_static);
    let without = [all];
    options.without = &without;
    let paths = heap
        .snapshot
        .paths(&[heap.target], &options, &Silent)
        .unwrap();
    assert_eq!(paths.missing(), [heap.target]);
}

#[test]
fn the_last_field_of_a_preferred_class_is_reported() {
    let heap = Heap::new();
    let [holder, registry] = ["app.Holder", "app.Registry"].map(|name| heap.class(name));
    let first = heap.snapshot.instances(&[holder]);
    let mut options = PathOptions::default();
    options.except = &first;
    let paths = heap
        .snapshot
        .paths(&[heap.target], &options, &Silent)
        .unwrap();
    // The path is: class app.Registry, its field `all`, the field `one` of app.Holder.
    let last = |preferred: Option<ClassIndex>| {
        paths.last_fields(&[heap.target, first[0]], |class| Some(class) == preferred)
    };
    let one = Some(Via::Field(holder, 0));
    assert_eq!(last(None), [one, None]);
    assert_eq!(last(Some(holder)), [one, None]);
    assert_eq!(last(Some(registry)), [Some(Via::Static(registry, 0)), None]);
}
