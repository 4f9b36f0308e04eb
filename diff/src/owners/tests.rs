//! Tests owners on heaps that the tests build, and on the dumps in the repository.

use std::path::Path;

use hprof::dominators::Node;
use hprof::{Options, Silent, Source};
use testdata::writer::{
    ClassId, Elements, FieldType, HeapBuilder, Obj, Options as Written, Ref, Root, Value,
};

use super::*;

const PLUGINS: usize = 20;

/// A heap with 20 plugins. Each plugin has a named class loader, a package with one class, and an instance of this
/// class.
struct Heap {
    heap: HeapBuilder,
    plugins: Vec<Obj>,
    classes: Vec<ClassId>,
}

impl Heap {
    fn new() -> Self {
        let mut heap = HeapBuilder::new(Written::default());
        let boot = heap.boot();
        let fields = [("parts", FieldType::Object), ("tenant", FieldType::Object)];
        let of_loader = heap.add_class("com.acme.Loader", Some(boot.class_loader), &[], &[]);
        let (mut plugins, mut classes) = (Vec::new(), Vec::new());
        for number in 0..PLUGINS {
            let name = format!("com.acme.p{number:02}.Plugin");
            let class = heap.add_class(&name, Some(boot.object), &fields, &[]);
            let loader = heap.add_class_loader(of_loader, &format!("plugin-{number:02}"));
            heap.set_loader(class, loader);
            plugins.push(heap.add_instance(class, &[]));
            classes.push(class);
        }
        let all: Vec<Ref> = plugins.iter().copied().map(Ref::Object).collect();
        let all = heap.add_object_array(boot.object_array, all);
        heap.add_root(Root::JniGlobal { global_ref: 8 }, all);
        Self {
            heap,
            plugins,
            classes,
        }
    }

    fn numbers(&mut self, count: usize) -> Ref {
        let numbers = Elements::Long(vec![0; count]);
        Ref::Object(self.heap.add_primitive_array(numbers))
    }

    fn keep(&mut self, plugin: usize, parts: Vec<Ref>) {
        let array = self.heap.boot().object_array;
        let array = self.heap.add_object_array(array, parts);
        self.heap
            .set_field(self.plugins[plugin], "parts", Value::from(array));
    }

    fn snapshot(&self) -> Snapshot {
        let bytes = self.heap.try_build().unwrap().bytes;
        Snapshot::of(Source::from_bytes(bytes), &Options::default(), &Silent).unwrap()
    }
}

fn summary(snapshot: &Snapshot, kind: &OwnerKind) -> OwnerSummary {
    let own = AgentObjects::find(snapshot);
    OwnerSummary::new(snapshot, &own, kind, false, &Silent).unwrap()
}

/// Returns the bytes of the `long[]` objects that belong to an owner or a group of owners.
fn numbers(part: &Part) -> u64 {
    let of = part.classes.iter().filter(|c| c.class == "long[]");
    of.map(|c| c.bytes).sum()
}

#[test]
fn private_and_shared_bytes_of_plugins_are_exact() {
    let mut heap = Heap::new();
    let everywhere = heap.numbers(500);
    let pairs: Vec<Ref> = (0..PLUGINS).map(|i| heap.numbers(10 * (i + 1))).collect();
    for plugin in 0..PLUGINS {
        let own = heap.numbers(100 * (plugin + 1));
        let mut parts = vec![own, everywhere, pairs[plugin]];
        if plugin > 0 {
            parts.push(pairs[plugin - 1]);
        }
        heap.keep(plugin, parts);
    }
    let snapshot = heap.snapshot();
    let bytes = |count: usize| snapshot.layout().array_header as u64 + 8 * count as u64;
    for (kind, name) in [
        (OwnerKind::Package(None), "com.acme.p"),
        (OwnerKind::Loader, "plugin-"),
        (OwnerKind::Auto, "plugin-"),
    ] {
        let summary = summary(&snapshot, &kind);
        let owner = |number: usize| {
            let mut names = summary.owners.keys();
            let start = format!("{name}{number:02}");
            names.find(|name| name.starts_with(&start)).unwrap().clone()
        };
        for plugin in 0..PLUGINS {
            // Two consecutive plugins share each array in `pairs`, except the last array. Only the last plugin refers
            // to the last array, so this plugin owns it alone.
            let own = bytes(100 * (plugin + 1));
            let alone = if plugin + 1 == PLUGINS {
                bytes(10 * PLUGINS)
            } else {
                0
            };
            assert_eq!(numbers(&summary.owners[&owner(plugin)]), own + alone);
            if plugin > 0 {
                let pair = vec![owner(plugin - 1), owner(plugin)];
                assert_eq!(numbers(&summary.shared[&pair]), bytes(10 * plugin));
            }
        }
        assert_eq!(numbers(&summary.shared[&Vec::new()]), bytes(500));
    }
    let coarse = summary(&snapshot, &OwnerKind::Package(Some(2)));
    assert_eq!(
        coarse.owners.keys().collect::<Vec<_>>(),
        ["JVM", "com.acme"]
    );
}

#[test]
fn the_values_of_a_field_are_owners() {
    let mut heap = Heap::new();
    for plugin in 0..PLUGINS {
        let own = heap.numbers(100);
        heap.keep(plugin, vec![own]);
    }
    let class = heap.classes[0];
    let tenant = heap.heap.add_string("north");
    for name in ["north", "south", "north"] {
        let text = if name == "north" {
            tenant
        } else {
            heap.heap.add_string(name)
        };
        let own = heap.numbers(100);
        let session = heap.heap.add_instance(class, &[Value::NULL, text.into()]);
        let array = heap.heap.boot().object_array;
        let array = heap.heap.add_object_array(array, vec![own]);
        heap.heap.set_field(session, "parts", Value::from(array));
        heap.heap
            .add_root(Root::JniGlobal { global_ref: 9 }, session);
    }
    let snapshot = heap.snapshot();
    let field = |class: &str, field: &str| OwnerKind::Field(class.to_owned(), field.to_owned());
    let found = summary(&snapshot, &field("com.acme.p00.Plugin", "tenant"));
    let one = snapshot.layout().array_header as u64 + 800;
    let bytes = |owner: &str| numbers(&found.owners[owner]);
    assert_eq!(
        [bytes("north"), bytes("south"), bytes("null")],
        [2 * one, one, one]
    );
    assert_eq!(bytes(JVM), (PLUGINS as u64 - 1) * one);
    let own = AgentObjects::find(&snapshot);
    for (class, name) in [("com.acme.None", "x"), ("com.acme.p00.Plugin", "none")] {
        let error = OwnerSummary::new(&snapshot, &own, &field(class, name), false, &Silent);
        assert!(matches!(error, Err(OwnerError::Unknown(_))), "{error:?}");
    }
    let none = OwnerSummary::new(&snapshot, &own, &OwnerKind::Bean, false, &Silent);
    assert_eq!(
        none.unwrap_err().to_string(),
        "the dump has no beans of Spring or CDI"
    );
}

/// Builds a dump in which a field has these values. Returns the names of the owners by this field, without `JVM`.
fn values(kind: FieldType, values: &[Value]) -> Vec<String> {
    let mut heap = HeapBuilder::new(Written::default());
    let object = heap.boot().object;
    let class = heap.add_class("a.Session", Some(object), &[("tenant", kind)], &[]);
    for value in values {
        let session = heap.add_instance(class, &[*value]);
        heap.add_root(Root::JniGlobal { global_ref: 9 }, session);
    }
    let source = Source::from_bytes(heap.build());
    let snapshot = Snapshot::of(source, &Options::default(), &Silent).unwrap();
    let kind = OwnerKind::Field("a.Session".to_owned(), "tenant".to_owned());
    let owners = summary(&snapshot, &kind).owners;
    owners.into_keys().filter(|name| name != JVM).collect()
}

/// A GC can move an object between two dumps. So in a comparison, a field value without a name must not be identified
/// by its address.
#[test]
fn values_without_a_name_have_no_address_in_a_comparison() {
    let mut heap = HeapBuilder::new(Written::default());
    let object = heap.boot().object;
    let halves = [
        ("mostSigBits", FieldType::Long),
        ("leastSigBits", FieldType::Long),
    ];
    let uuid = heap.add_class("java.util.UUID", Some(object), &halves, &[]);
    let plain = heap.add_class("a.Tenant", Some(object), &[], &[]);
    let fields = [("tenant", FieldType::Object)];
    let class = heap.add_class("a.Session", Some(object), &fields, &[]);
    let id = [
        Value::Long(0x1234_5678_9abc_4def),
        Value::Long(-0x7edc_ba98_7654_3211),
    ];
    let tenants = [
        heap.add_instance(uuid, &id),
        heap.add_instance(plain, &[]),
        heap.add_instance(plain, &[]),
    ];
    for tenant in tenants {
        let session = heap.add_instance(class, &[tenant.into()]);
        heap.add_root(Root::JniGlobal { global_ref: 9 }, session);
    }
    let source = Source::from_bytes(heap.build());
    let snapshot = Snapshot::of(source, &Options::default(), &Silent).unwrap();
    let kind = OwnerKind::Field("a.Session".to_owned(), "tenant".to_owned());
    let own = AgentObjects::find(&snapshot);
    let names = |is_compared| -> Vec<String> {
        let owners = OwnerSummary::new(&snapshot, &own, &kind, is_compared, &Silent);
        let names = owners.unwrap().owners.into_keys();
        names.filter(|name| name != JVM).collect()
    };
    let uuid = "12345678-9abc-4def-8123-456789abcdef";
    assert_eq!(names(true), [uuid, "a.Tenant (values without a name)"]);
    let [first, one, two] = &names(false)[..] else {
        unreachable!("three owners")
    };
    assert_eq!(first, uuid);
    assert!(one.starts_with("a.Tenant@0x") && two.starts_with("a.Tenant@0x"));
}

#[test]
fn primitive_values_are_owners() {
    let floats = [Value::Float(1.5), Value::Float(2.0)];
    assert_eq!(values(FieldType::Float, &floats), ["1.5", "2"]);
    assert_eq!(values(FieldType::Double, &[Value::Double(0.1)]), ["0.1"]);
    assert_eq!(values(FieldType::Char, &[Value::Char(97)]), ["a"]);
    assert_eq!(
        values(FieldType::Boolean, &[Value::Boolean(true)]),
        ["true"]
    );
}

/// If a string value is empty or equals the name of another owner, its owner gets a different name.
#[test]
fn texts_are_not_mistaken() {
    let mut heap = HeapBuilder::new(Written::default());
    let object = heap.boot().object;
    let fields = [("tenant", FieldType::Object)];
    let class = heap.add_class("a.Session", Some(object), &fields, &[]);
    let long = "x".repeat(300);
    let texts = ["JVM", "null", "", &format!("{long}a"), &format!("{long}b")];
    for text in texts {
        let text = heap.add_string(text);
        let session = heap.add_instance(class, &[text.into()]);
        heap.add_root(Root::JniGlobal { global_ref: 9 }, session);
    }
    let source = Source::from_bytes(heap.build());
    let snapshot = Snapshot::of(source, &Options::default(), &Silent).unwrap();
    let kind = OwnerKind::Field("a.Session".to_owned(), "tenant".to_owned());
    let owners = summary(&snapshot, &kind).owners;
    let mut names: Vec<String> = owners.into_keys().collect();
    names.retain(|name| !name.starts_with('x'));
    assert_eq!(names, ["\"\"", "\"null\"", "JVM", "JVM (field)"]);
    assert_eq!(values(FieldType::Object, &[Value::NULL]), ["null"]);
}

/// Returns the owners of a dump in which each jar has 10 bytes.
fn jars(paths: &[&str]) -> OwnerSummary {
    let part = Part {
        objects: 1,
        bytes: 10,
        classes: Vec::new(),
    };
    let owner = |path: &&str| ((*path).to_owned(), part.clone());
    OwnerSummary {
        by: "jar",
        kind: OwnerKind::Jar,
        owners: paths.iter().map(owner).collect(),
        shared: BTreeMap::new(),
    }
}

#[test]
fn a_jar_has_the_same_name_in_all_dumps() {
    let names = |dumps: &[OwnerSummary]| -> Vec<(String, Vec<u64>)> {
        let owners = OwnerSummary::compared(dumps).owners;
        owners.into_iter().map(|o| (o.owner, o.bytes)).collect()
    };
    let [one, both, moved] =
        [&["/a/k.jar"][..], &["/a/k.jar", "/b/k.jar"], &["/b/k.jar"]].map(jars);
    assert_eq!(
        names(&[one.clone(), both]),
        [
            ("/b/k.jar".to_owned(), vec![0, 10]),
            ("/a/k.jar".to_owned(), vec![10, 10])
        ]
    );
    assert_eq!(names(&[one, moved]), [("k.jar".to_owned(), vec![10, 10])]);
}

/// A GC moves class loaders, so names that contain addresses would differ between dumps.
#[test]
fn loaders_without_names_are_one_owner() {
    let mut heap = HeapBuilder::new(Written::default());
    let boot = heap.boot();
    let of_loader = heap.add_class("com.acme.Loader", Some(boot.class_loader), &[], &[]);
    for name in ["", "", "named"] {
        let class = heap.add_class("com.acme.Plugin", Some(boot.object), &[], &[]);
        let loader = heap.add_class_loader(of_loader, name);
        heap.set_loader(class, loader);
        let plugin = heap.add_instance(class, &[]);
        heap.add_root(Root::JniGlobal { global_ref: 9 }, plugin);
    }
    let source = Source::from_bytes(heap.build());
    let snapshot = Snapshot::of(source, &Options::default(), &Silent).unwrap();
    let owners = summary(&snapshot, &OwnerKind::Loader).owners;
    let names: Vec<String> = owners.into_keys().collect();
    assert_eq!(names, [JVM, "com.acme.Loader", "named (Loader)"]);
}

#[test]
fn all_owners_and_shared_bytes_are_the_reachable_heap() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata");
    let kinds = [
        OwnerKind::Auto,
        OwnerKind::Package(None),
        OwnerKind::Jar,
        OwnerKind::Loader,
        OwnerKind::Thread,
    ];
    let mut dumps = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if !path.to_string_lossy().ends_with(".hprof.gz") {
            continue;
        }
        let snapshot = Snapshot::open(&path, &Options::default(), &Silent).unwrap();
        dumps += 1;
        let own = AgentObjects::find(&snapshot);
        let reachable = snapshot.tree().retained_bytes(Node::ROOT) - own.reachable(&snapshot).bytes;
        for kind in &kinds {
            let Ok(summary) = OwnerSummary::new(&snapshot, &own, kind, false, &Silent) else {
                continue;
            };
            let parts = summary.owners.values().chain(summary.shared.values());
            let sum: u64 = parts.map(|part| part.bytes).sum();
            assert_eq!(sum, reachable, "{} {kind:?}", path.display());
        }
    }
    assert!(dumps > 3, "{dumps} dumps");
}

#[test]
fn names_are_cut_and_grouped() {
    assert_eq!(find::cut("com.acme.shop.cart", 3), "com.acme.shop");
    assert_eq!(find::cut("com", 3), "com");
    assert_eq!(find::pool("http-nio-8080-exec-12"), "http-nio-8080-exec-*");
    assert_eq!(find::pool("main"), "main");
    assert_eq!(find::pool("7"), "7");
    for (path, part) in [
        ("/app/shop-1.2.jar", "shop-1.2.jar"),
        ("/app/classes/", "classes/"),
        ("/app.jar!/BOOT-INF/lib/cart.jar!/", "cart.jar"),
        ("nested:/app.jar/!BOOT-INF/classes/!/", "classes"),
    ] {
        assert_eq!(source::last_part(path), part, "{path}");
    }
}
