//! Tests the reference through which a dominator holds an object, and the objects that a visit of the dominator tree
//! returns. The heaps are built by hand.

use hprof::answers::{Hold, Holders};
use hprof::dominators::Node;
use hprof::records::RootKind;
use hprof::{ClassIndex, ObjectId, ObjectIndex, Options, Refs, Silent, Snapshot, Source};
use testdata::writer::{self, Boot, ClassId, FieldType, HeapBuilder, Obj, Ref, Root, Value};

const OBJECT: FieldType = FieldType::Object;

struct Drawn {
    heap: HeapBuilder,
    boot: Boot,
}

impl Drawn {
    fn new(options: writer::Options) -> Self {
        let mut heap = HeapBuilder::new(options);
        let boot = heap.boot();
        Self { heap, boot }
    }

    fn class(&mut self, name: &str, above: ClassId, fields: &[&str]) -> ClassId {
        let fields: Vec<(&str, FieldType)> = fields.iter().map(|&f| (f, OBJECT)).collect();
        self.heap.add_class(name, Some(above), &fields, &[])
    }

    /// Adds an object without references.
    fn leaf(&mut self) -> Obj {
        self.heap.add_instance(self.boot.object, &[])
    }

    fn root(&mut self, object: Obj) {
        self.heap
            .add_root(Root::JniGlobal { global_ref: 1 }, object);
    }

    fn loader(&mut self, name: &str) -> Obj {
        self.heap.add_class_loader(self.boot.class_loader, name)
    }

    fn open(&self, refs: Refs) -> Opened<'_> {
        let mut options = Options::default();
        options.refs = refs;
        options.holders = true;
        let source = Source::from_bytes(self.heap.try_build().unwrap().bytes);
        let snapshot = Snapshot::of(source, &options, &Silent).unwrap();
        // The first call computes the holders from the adjacency lists. The second call reads them from the records.
        let holders = [(); 2].map(|()| snapshot.holders().unwrap());
        Opened {
            heap: &self.heap,
            snapshot,
            holders,
        }
    }
}

struct Opened<'a> {
    heap: &'a HeapBuilder,
    snapshot: Snapshot,
    holders: [Holders; 2],
}

impl Opened<'_> {
    fn number(&self, of: impl Into<Ref>) -> ObjectIndex {
        let id = ObjectId(self.heap.address(of));
        self.snapshot.find(id).unwrap()
    }

    fn class(&self, class: ClassId) -> ClassIndex {
        self.snapshot.represents(self.number(class)).unwrap()
    }

    /// Checks that `above` dominates `below`, and that `above` holds `below` by the reference `hold`.
    fn assert_held(&self, above: impl Into<Ref>, below: impl Into<Ref>, hold: Hold) {
        let (above, below) = (self.number(above), self.number(below));
        let tree = self.snapshot.tree();
        let found = tree.dominator(below).and_then(|node| tree.object(node));
        let what = self.snapshot.name(below);
        assert_eq!(found, Some(above), "the dominator of {what}");
        for holders in &self.holders {
            assert_eq!(self.snapshot.hold_of(holders, below), hold, "{what}");
        }
    }
}

#[test]
fn fields_and_elements_hold_objects() {
    for options in [writer::Options::default(), writer::Options::bits_32()] {
        let mut drawn = Drawn::new(options);
        let fields = [("a", OBJECT), ("n", FieldType::Int), ("b", OBJECT)];
        let object = drawn.boot.object;
        let base = drawn
            .heap
            .add_class("com.acme.Base", Some(object), &fields, &[]);
        let derived = drawn.class("com.acme.Derived", base, &["c", "d"]);
        let [a, b, c, twice] = [(); 4].map(|()| drawn.leaf());
        let holder = |drawn: &mut Drawn, values: [Obj; 4]| {
            let [c, d, a, b] = values.map(Value::from);
            let holder = drawn
                .heap
                .add_instance(derived, &[c, d, a, Value::Int(7), b]);
            drawn.root(holder);
            holder
        };
        let one = holder(&mut drawn, [c, c, a, b]);
        let other = holder(&mut drawn, [twice; 4]);
        // Two paths lead from `both` to `shared`, through different arrays.
        let shared = drawn.leaf();
        let ways = [(); 2].map(|()| drawn.heap.add_object_array(object, [shared]));
        let both = drawn.heap.add_object_array(object, ways);
        drawn.root(both);
        let elements: Vec<Obj> = (0..700).map(|_| drawn.leaf()).collect();
        let array = drawn.heap.add_object_array(object, elements.clone());
        drawn.root(array);
        let statics = [
            ("n", Value::Int(1)),
            ("first", Value::NULL),
            ("second", Value::NULL),
        ];
        let statics = drawn
            .heap
            .add_class("com.acme.Statics", Some(object), &[], &statics);
        let [first, second] = ["first", "second"].map(|name| {
            let held = drawn.leaf();
            drawn.heap.set_static(statics, name, held);
            held
        });

        let opened = drawn.open(Refs::Soft);
        let (base, derived) = (opened.class(base), opened.class(derived));
        opened.assert_held(one, a, Hold::Field(base, 0));
        opened.assert_held(one, b, Hold::Field(base, 2));
        opened.assert_held(one, c, Hold::Field(derived, 0));
        opened.assert_held(other, twice, Hold::Field(derived, 0));
        opened.assert_held(both, shared, Hold::Shared);
        opened.assert_held(both, ways[1], Hold::Element);
        for element in [0, 255, 256, 511, 512, 699] {
            opened.assert_held(array, elements[element], Hold::Element);
        }
        let of_class = opened.class(statics);
        opened.assert_held(statics, first, Hold::Static(of_class, 1));
        opened.assert_held(statics, second, Hold::Static(of_class, 2));
        // No object holds a root.
        let holders = opened.snapshot.holders().unwrap();
        let of_root = opened.snapshot.hold_of(&holders, opened.number(one));
        assert_eq!(of_root, Hold::Shared);
    }
}

#[test]
fn classes_loaders_and_threads_hold_objects() {
    let mut drawn = Drawn::new(writer::Options::default());
    let object = drawn.boot.object;
    // A loader that is a root holds its classes.
    let loader = drawn.loader("app");
    drawn.root(loader);
    let plain = drawn.class("com.acme.Plain", object, &[]);
    drawn.heap.set_loader(plain, loader);
    // An instance or an array holds its class, and a class holds its loader.
    let [hidden, of_array] = ["hidden", "of array"].map(|name| drawn.loader(name));
    let kept = drawn.class("com.acme.Kept", object, &["to"]);
    drawn.heap.set_loader(kept, hidden);
    let instance = drawn.heap.add_instance(kept, &[Value::NULL]);
    let element = drawn.class("com.acme.Element", object, &[]);
    drawn.heap.set_loader(element, of_array);
    let array_class = drawn.heap.array_class(element);
    let array = drawn.heap.add_object_array::<Obj>(element, []);
    let array_of_boot = drawn.heap.add_object_array::<Obj>(object, []);
    for rooted in [instance, array, array_of_boot] {
        drawn.root(rooted);
    }
    // A class holds its superclass, its signers and its protection domain.
    let above = drawn.class("com.acme.Above", object, &[]);
    let of_above = drawn.loader("of above");
    drawn.heap.set_loader(above, of_above);
    let below = drawn.class("com.acme.Below", above, &[]);
    drawn.heap.set_loader(below, loader);
    let (signers, domain) = (drawn.leaf(), drawn.leaf());
    drawn.heap.set_signers(below, signers);
    drawn.heap.set_protection_domain(below, domain);
    // A thread holds the objects in its local variables. If a field of the thread refers to the same object, the field
    // is reported as the holder.
    let thread = drawn.heap.add_thread("main", &[]);
    let (local, field) = (drawn.leaf(), drawn.leaf());
    drawn.heap.add_local(thread, -1, local);
    drawn.heap.add_local(thread, -1, field);
    drawn.heap.set_field(thread.object, "threadLocals", field);
    let of_thread = drawn.boot.thread;

    let opened = drawn.open(Refs::Soft);
    opened.assert_held(loader, plain, Hold::Loader);
    opened.assert_held(instance, kept, Hold::Class);
    opened.assert_held(kept, hidden, Hold::ClassPart);
    opened.assert_held(array, array_class, Hold::Class);
    opened.assert_held(array_class, of_array, Hold::ClassPart);
    opened.assert_held(of_array, element, Hold::Loader);
    opened.assert_held(loader, below, Hold::Loader);
    opened.assert_held(below, above, Hold::ClassPart);
    opened.assert_held(above, of_above, Hold::ClassPart);
    opened.assert_held(below, signers, Hold::ClassPart);
    opened.assert_held(below, domain, Hold::ClassPart);
    opened.assert_held(thread.object, local, Hold::Local);
    let thread_locals = Hold::Field(opened.class(of_thread), 6);
    opened.assert_held(thread.object, field, thread_locals);
}

#[test]
fn referents_are_held_if_the_reference_retains_them() {
    let mut drawn = Drawn::new(writer::Options::default());
    let Boot {
        object,
        reference,
        soft_reference,
        weak_reference,
        phantom_reference,
        ..
    } = drawn.boot;
    let classes = [
        ("com.acme.Soft", soft_reference),
        ("com.acme.Weak", weak_reference),
        ("com.acme.Phantom", phantom_reference),
    ];
    // Each reference object also leads to its referent by two other paths.
    let cases = classes.map(|(name, above)| {
        let class = drawn.class(name, above, &["one", "two"]);
        let (referent, queue) = (drawn.leaf(), drawn.leaf());
        let from = drawn.heap.add_reference_of(class, referent);
        for way in ["one", "two"] {
            let way_to = drawn.heap.add_object_array(object, [referent]);
            drawn.heap.set_field(from, way, way_to);
        }
        drawn.heap.set_field(from, "queue", queue);
        drawn.root(from);
        (from, referent, queue)
    });
    for (refs, retain) in [
        (Refs::Strong, [false; 3]),
        (Refs::Soft, [true, false, false]),
        (Refs::All, [true; 3]),
    ] {
        let opened = drawn.open(refs);
        let class = opened.class(reference);
        for ((from, referent, queue), retains) in cases.into_iter().zip(retain) {
            let hold = if retains {
                Hold::Field(class, 0)
            } else {
                Hold::Shared
            };
            opened.assert_held(from, referent, hold);
            opened.assert_held(from, queue, Hold::Field(class, 1));
        }
    }
}

#[test]
fn fields_of_very_large_classes_hold_objects() {
    let mut drawn = Drawn::new(writer::Options::default());
    let object = drawn.boot.object;
    let names: Vec<String> = (0..34_000).map(|n| format!("f{n}")).collect();
    let fields: Vec<&str> = names.iter().map(|name| &**name).collect();
    let class = drawn.class("com.acme.Wide", object, &fields);
    let places = [0, 10_922, 13_106, 16_382, 21_844, 32_766, 33_999];
    let held = places.map(|_| drawn.leaf());
    let mut values = vec![Value::NULL; fields.len()];
    for (place, held) in places.into_iter().zip(held) {
        values[place] = held.into();
    }
    let holder = drawn.heap.add_instance(class, &values);
    drawn.root(holder);
    let opened = drawn.open(Refs::Soft);
    let class = opened.class(class);
    for (place, held) in places.into_iter().zip(held) {
        opened.assert_held(holder, held, Hold::Field(class, place as u16));
    }
}

#[test]
fn a_class_that_the_dump_does_not_have_is_not_held() {
    let mut drawn = Drawn::new(writer::Options::default());
    let object = drawn.boot.object;
    let leaf = drawn.leaf();
    let first = drawn.heap.add_object_array(object, [leaf]);
    drawn.heap.set_address(first, 0x1000);
    let gone = drawn.class("com.acme.Gone", object, &[]);
    let of_gone = drawn.heap.array_class(gone);
    drawn.heap.unload_class(of_gone);
    let array = drawn.heap.add_object_array(gone, [first]);
    drawn.root(array);
    let opened = drawn.open(Refs::Soft);
    opened.assert_held(array, first, Hold::Element);
    opened.assert_held(first, leaf, Hold::Element);
}

#[test]
fn a_truncated_instance_holds_its_remaining_fields() {
    const ID: u64 = 0x10;
    let mut drawn = Drawn::new(writer::Options::default());
    let above = drawn.boot.soft_reference;
    let class = drawn.class("com.acme.Soft", above, &["own"]);
    // The records of two instances are too short. One record ends after the instance's own field, the other in the
    // middle of the next field.
    let cases = [8_u32, 12].map(|bytes| {
        let (id, held) = (ID * u64::from(bytes), drawn.leaf());
        let mut short = vec![0x21];
        short.extend(id.to_be_bytes());
        short.extend(1_u32.to_be_bytes());
        short.extend(drawn.heap.address(class).to_be_bytes());
        short.extend(bytes.to_be_bytes());
        short.extend(drawn.heap.address(held).to_be_bytes());
        short.resize(short.len() + bytes as usize - 8, 0);
        drawn.heap.add_sub_record(writer::Place::End, &short);
        // A root with an unknown tag.
        let mut root = vec![0xff];
        root.extend(id.to_be_bytes());
        drawn.heap.add_sub_record(writer::Place::End, &root);
        (id, held)
    });
    let opened = drawn.open(Refs::Soft);
    let (snapshot, tree) = (&opened.snapshot, opened.snapshot.tree());
    let class = opened.class(class);
    let holders = snapshot.holders().unwrap();
    for (id, held) in cases {
        let held = opened.number(held);
        let above = tree.dominator(held).and_then(|node| tree.object(node));
        assert_eq!(above, snapshot.find(ObjectId(id)));
        assert_eq!(snapshot.hold_of(&holders, held), Hold::Field(class, 0));
    }
}

#[test]
fn dominated_objects_are_visited_once() {
    let mut drawn = Drawn::new(writer::Options::default());
    let object = drawn.boot.object;
    // The tree has more objects than one batch, on several levels.
    let pair = drawn.class("com.acme.Pair", object, &["left", "right"]);
    let mut level: Vec<Obj> = (0..2048).map(|_| drawn.leaf()).collect();
    let leaf = level[0];
    let mut two = Vec::new();
    while level.len() > 1 {
        two.clone_from(&level);
        level = level
            .chunks(2)
            .map(|held| {
                drawn
                    .heap
                    .add_instance(pair, &[held[0].into(), held[1].into()])
            })
            .collect();
    }
    let (left, right) = (two[0], two[1]);
    drawn.root(level[0]);
    let opened = drawn.open(Refs::Soft);
    let (snapshot, tree) = (&opened.snapshot, opened.snapshot.tree());
    let holders = snapshot.holders().unwrap();
    let visited = |nodes: &[Node], below: bool| {
        let mut visited = Vec::new();
        snapshot.dominated(&holders, nodes, |child| {
            let object = child.object;
            assert_eq!(tree.dominator(object), Some(child.above));
            assert_eq!(tree.node(object), child.node);
            assert_eq!(snapshot.class_of(object), child.class);
            assert_eq!(snapshot.shallow_bytes(object), child.shallow_bytes);
            assert_eq!(snapshot.retained_bytes(object), Some(child.retained_bytes));
            assert_eq!(holders.key(object), child.key);
            visited.push(object);
            below
        });
        visited.sort_unstable();
        visited
    };
    let all = (0..snapshot.object_count() as u32).map(ObjectIndex);
    let reachable: Vec<ObjectIndex> = all.filter(|&o| tree.is_reachable(o)).collect();
    assert!(reachable.len() > 4000);
    assert_eq!(visited(&[Node::ROOT], true), reachable);
    let top = reachable
        .iter()
        .filter(|&&o| tree.dominator(o) == Some(Node::ROOT));
    assert_eq!(
        visited(&[Node::ROOT], false),
        top.copied().collect::<Vec<_>>()
    );
    // `nodes` has all nodes except the root of the tree. So their children are all reachable objects except the
    // children of the root.
    let nodes: Vec<Node> = tree.nodes().collect();
    let deeper = reachable
        .iter()
        .filter(|&&o| tree.dominator(o) != Some(Node::ROOT));
    assert_eq!(visited(&nodes, false), deeper.copied().collect::<Vec<_>>());
    assert_eq!(visited(&[], true), []);
    // The key of an object shows how it is held. Objects that are held by the same field have the same key.
    let key = |object: Obj| holders.key(opened.number(object));
    assert_eq!(key(left), key(leaf));
    assert_ne!(key(left), key(right));
}

#[test]
fn a_class_holds_its_class_values() {
    let mut drawn = Drawn::new(writer::Options::default());
    let object = drawn.boot.object;
    let fields = ["table", "queue"];
    let map = drawn.class("java.lang.ClassValue$ClassValueMap", object, &fields);
    let other = drawn.class("java.lang.ClassValue$Entry", object, &fields);
    let loader = drawn.loader("app");
    drawn.root(loader);
    // An application class may have the same name as the JDK's class.
    let same_name = drawn.class("java.lang.ClassValue$ClassValueMap", object, &fields);
    drawn.heap.set_loader(same_name, loader);
    let of = |drawn: &mut Drawn, class| {
        let value = drawn.leaf();
        let table = drawn.heap.add_instance(class, &[value.into(), Value::NULL]);
        (table, value)
    };
    let held = [map, map].map(|class| of(&mut drawn, class));
    let lost = [other, same_name].map(|class| of(&mut drawn, class));
    let opened = drawn.open(Refs::Soft);
    let tree = opened.snapshot.tree();
    for (table, value) in held {
        let (table, value) = (opened.number(table), opened.number(value));
        assert!(tree.is_reachable(table) && tree.is_reachable(value));
        let kind = tree.roots().find(|r| r.0 == table).map(|r| r.1);
        assert_eq!(kind, Some(RootKind::VmInternal));
        let above = tree.dominator(value).and_then(|node| tree.object(node));
        assert_eq!(above, Some(table));
    }
    for (table, value) in lost {
        assert!(!tree.is_reachable(opened.number(table)));
        assert!(!tree.is_reachable(opened.number(value)));
    }
}
