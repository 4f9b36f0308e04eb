//! Random heaps with every kind of object, reference, class, loader, root and file that dumps have.

use std::collections::HashMap;

use testdata::writer::{
    ClassId, Elements, FieldType, FileOrder, Framing, HeapBuilder, Obj, Options, Place, Ref, Rng,
    Root, Value,
};

/// The parameters of a random heap.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    /// Maximum number of objects that are added to the objects that every heap has.
    pub(crate) nodes: usize,
    /// True if the heap has soft, weak, phantom and final references.
    pub(crate) references: bool,
    /// True if some objects have the same ID as another object.
    pub(crate) duplicates: bool,
    /// True if IDs are not addresses.
    pub(crate) odd_ids: bool,
    /// True to add many back edges (see [`World::lead_back`]), and many shared objects (see [`share`]). A shared object
    /// has several referrers, and all objects that it reaches are leaves (objects without references).
    pub(crate) shared: bool,
}

/// Returns the number of random heaps to test. `HEAPDIFF_ROUNDS=all` tests all of them. The default is a quarter, or a
/// twentieth in a build without optimisation.
pub(crate) fn rounds(all: u64) -> u64 {
    match std::env::var("HEAPDIFF_ROUNDS") {
        Ok(rounds) if rounds == "all" => all,
        _ if cfg!(debug_assertions) => all / 20,
        _ => all / 4,
    }
}

/// Returns a dump of a random heap.
pub(crate) fn dump(plan: &Plan) -> Vec<u8> {
    let mut rng = Rng::new(plan.seed);
    let mut options = if rng.below(3) == 0 {
        Options::bits_32()
    } else {
        Options::default()
    };
    options.order = match rng.below(6) {
        0 | 1 => FileOrder::Shuffled(plan.seed),
        2 => FileOrder::Runs(2 + rng.below(3)),
        _ => FileOrder::ByAddress,
    };
    options.framing = Framing::Segments {
        bytes: [200, 1000, 1 << 20][rng.below(3)],
    };
    let place = |n| if n == 0 { Place::Start } else { Place::End };
    // Most heaps have HotSpot's order of records.
    options.classes = place(1 - usize::from(rng.below(5) > 0));
    options.roots = place(rng.below(5));
    options.sticky_classes = rng.below(6) > 0;
    let mut heap = HeapBuilder::new(options);
    let world = World::new(&mut heap, &mut rng, plan);
    world.link(&mut heap, &mut rng);
    world.root(&mut heap, &mut rng);
    if plan.shared {
        world.lead_back(&mut heap, &mut rng);
        share(&mut heap, &mut rng);
    }
    if plan.duplicates {
        for &object in &world.objects {
            if rng.below(10) == 0 {
                heap.set_copies(object, rng.below(4) as u32);
            }
        }
    }
    if plan.odd_ids {
        let step = 1 + rng.below(1000) as u64;
        let mut at = 1 + rng.below(1000) as u64;
        for &object in &world.objects {
            at += 1 + rng.below(step as usize) as u64;
            heap.set_address(object, at);
        }
    }
    heap.build()
}

/// Adds arrays that share the same smaller arrays. A table holds all of the arrays. A GC root, a soft reference or a
/// final reference holds the table.
fn share(heap: &mut HeapBuilder, rng: &mut Rng) {
    let boot = heap.boot();
    for i in 0..1 + rng.below(3) {
        let bytes = heap.add_primitive_array(Elements::Zeros(FieldType::Byte, 8));
        let shared: Vec<Obj> = (0..1 + rng.below(4))
            .map(|_| heap.add_object_array(boot.object, [bytes]))
            .collect();
        let sharing: Vec<Obj> = (0..2 + rng.below(5))
            .map(|_| heap.add_object_array(boot.object, shared.iter().copied()))
            .collect();
        let table = heap.add_object_array(boot.object, sharing);
        let held = match rng.below(3) {
            0 => table,
            1 => heap.add_reference_of(boot.soft_reference, table),
            _ => heap.add_reference_of(boot.final_reference, table),
        };
        let global_ref = 0x2000 + 8 * i as u64;
        heap.add_root(Root::JniGlobal { global_ref }, held);
    }
}

struct World {
    objects: Vec<Obj>,
    /// Maximum number of references from each object.
    slots: Vec<usize>,
    classes: Vec<ClassId>,
    /// For each application class, the number of fields, including those of its superclasses, and the number of static
    /// fields.
    sizes: HashMap<ClassId, (usize, usize)>,
    /// Reference objects, which have a referent.
    referring: Vec<Obj>,
}

impl World {
    fn new(heap: &mut HeapBuilder, rng: &mut Rng, plan: &Plan) -> Self {
        let boot = heap.boot();
        let mut objects = Vec::new();
        let mut slots = Vec::new();
        let loader_class = heap.add_class("app.Loader", Some(boot.class_loader), &[], &[]);
        let loaders: Vec<Obj> = (0..rng.below(4))
            .map(|i| heap.add_class_loader(loader_class, &format!("loader {i}")))
            .collect();
        if let Some(&first) = loaders.first()
            && rng.below(3) == 0
        {
            heap.set_loader(loader_class, first);
        }
        let mut classes = vec![loader_class];
        let mut sizes: HashMap<ClassId, (usize, usize)> = HashMap::new();
        for i in 0..1 + rng.below(6) {
            let names: Vec<String> = (0..rng.below(5)).map(|f| format!("f{f}")).collect();
            let kind = |f: usize| match f % 3 {
                2 => FieldType::Int,
                _ => FieldType::Object,
            };
            let fields = names.iter().zip(0..).map(|(n, f)| (n.as_str(), kind(f)));
            let fields: Vec<_> = fields.collect();
            let parent = match rng.below(3) {
                0 => classes[rng.below(classes.len())],
                _ => boot.object,
            };
            let statics: Vec<String> = (0..rng.below(3)).map(|s| format!("s{s}")).collect();
            let values: Vec<_> = statics.iter().map(|s| (s.as_str(), Value::NULL)).collect();
            let class = heap.add_class(&format!("app.C{i}"), Some(parent), &fields, &values);
            if let Some(&loader) = loaders.get(rng.below(loaders.len() + 1)) {
                heap.set_loader(class, loader);
            }
            let inherited = sizes.get(&parent).map_or(0, |s| s.0);
            sizes.insert(class, (names.len().max(inherited), statics.len()));
            classes.push(class);
        }
        let references = [
            boot.soft_reference,
            boot.weak_reference,
            boot.phantom_reference,
            boot.final_reference,
        ];
        let mut own_references = Vec::new();
        for (i, parent) in references.into_iter().enumerate() {
            let fields = [("extra", FieldType::Object)];
            let class = heap.add_class(&format!("app.Ref{i}"), Some(parent), &fields, &[]);
            if let Some(&loader) = loaders.get(rng.below(loaders.len() + 2)) {
                heap.set_loader(class, loader);
            }
            own_references.push(class);
        }
        let mut referring = Vec::new();
        for &loader in &loaders {
            objects.push(loader);
            slots.push(0);
        }
        for _ in 0..1 + rng.below(plan.nodes) {
            let choice = rng.below(if plan.references { 10 } else { 7 });
            let (object, room) = match choice {
                0 => (
                    heap.add_primitive_array(Elements::Zeros(FieldType::Byte, rng.below(40))),
                    0,
                ),
                1 => (heap.add_instance(boot.object, &[]), 0),
                2 | 3 => {
                    let length = rng.below(6);
                    let element = match rng.below(3) {
                        0 => classes[rng.below(classes.len())],
                        _ => boot.object,
                    };
                    (
                        heap.add_object_array(element, vec![Ref::Null; length]),
                        length,
                    )
                }
                4..7 => {
                    let class = classes[1 + rng.below(classes.len() - 1)];
                    (heap.add_instance(class, &[]), 100)
                }
                _ => {
                    let class = match rng.below(3) {
                        0 => own_references[rng.below(4)],
                        _ => references[rng.below(4)],
                    };
                    let object = heap.add_reference_of(class, Ref::Null);
                    referring.push(object);
                    (object, 0)
                }
            };
            objects.push(object);
            slots.push(room);
        }
        classes.extend(own_references);
        Self {
            objects,
            slots,
            classes,
            sizes,
            referring,
        }
    }

    fn any(&self, rng: &mut Rng) -> Ref {
        match rng.below(12) {
            0 => Ref::Class(self.classes[rng.below(self.classes.len())]),
            // An address without an object.
            1 if rng.below(5) == 0 => Ref::Address(0x1234_5678),
            _ => Ref::Object(self.objects[rng.below(self.objects.len())]),
        }
    }

    /// Makes an object refer to another, if it has a field or an element for the reference.
    fn refer(&self, heap: &mut HeapBuilder, rng: &mut Rng, from: usize, to: usize) {
        let (object, target) = (self.objects[from], Ref::Object(self.objects[to]));
        match self.slots[from] {
            0 => {}
            100 => {
                if self.sizes[&heap.class_of(object)].0 > 0 {
                    let field = ["f0", "f1"][rng.below(2)];
                    if self.sizes[&heap.class_of(object)].0 > 1 || field == "f0" {
                        heap.set_field(object, field, target);
                    }
                }
            }
            room => heap.set_element(object, rng.below(room), target),
        }
    }

    /// Turns parts of the heap into trees whose nodes refer to their parents.
    fn lead_back(&self, heap: &mut HeapBuilder, rng: &mut Rng) {
        for child in 1..self.objects.len() {
            if rng.below(4) > 0 {
                let parent = rng.below(child);
                self.refer(heap, rng, parent, child);
                self.refer(heap, rng, child, parent);
            }
        }
    }

    fn link(&self, heap: &mut HeapBuilder, rng: &mut Rng) {
        // The random heaps range from trees to dense graphs.
        let density = 1 + rng.below(6);
        for (&object, &room) in self.objects.iter().zip(&self.slots) {
            if room == 100 {
                for f in 0..self.sizes[&heap.class_of(object)].0 {
                    if f % 3 != 2 && rng.below(6) < density {
                        let target = self.any(rng);
                        heap.set_field(object, &format!("f{f}"), target);
                    }
                }
            } else {
                for i in 0..room {
                    if rng.below(6) < density {
                        let target = self.any(rng);
                        heap.set_element(object, i, target);
                    }
                }
            }
        }
        for &object in &self.referring {
            if rng.below(8) > 0 {
                let target = self.any(rng);
                heap.set_field(object, "referent", target);
            }
            let own = self.classes.contains(&heap.class_of(object));
            for name in ["queue", "next", "discovered", "extra"] {
                if (own || name != "extra") && rng.below(6) == 0 {
                    let target = self.any(rng);
                    heap.set_field(object, name, target);
                }
            }
        }
        for &class in &self.classes {
            for s in 0..self.sizes.get(&class).map_or(0, |s| s.1) {
                if rng.below(2) == 0 {
                    let target = self.any(rng);
                    heap.set_static(class, &format!("s{s}"), target);
                }
            }
            if rng.below(10) == 0 {
                let target = self.any(rng);
                heap.set_protection_domain(class, target);
            }
        }
    }

    fn root(&self, heap: &mut HeapBuilder, rng: &mut Rng) {
        for i in 0..rng.below(4) {
            let target = self.any(rng);
            let global_ref = 0x1000 + 8 * i as u64;
            let root = match rng.below(4) {
                0 => Root::MonitorUsed,
                1 => Root::Unknown,
                // The root belongs to a frame of thread 77, but the heap has no thread with this number.
                2 => Root::JavaFrame {
                    thread: 77,
                    frame: 0,
                },
                _ => Root::JniGlobal { global_ref },
            };
            heap.add_root(root, target);
        }
        if !heap.options().sticky_classes {
            if rng.below(3) == 0 {
                return;
            }
            // If a dump has threads, but neither this root nor system classes, it is treated as a dump in which roots
            // are missing.
            let global_ref = 0x900;
            let target = self.any(rng);
            heap.add_root(Root::JniGlobal { global_ref }, target);
        }
        for i in 0..rng.below(3) {
            let thread = heap.add_thread(&format!("thread {i}"), &[]);
            for _ in 0..rng.below(4) {
                let target = self.any(rng);
                let serial = thread.serial;
                let root = match rng.below(4) {
                    0 => Root::JniLocal {
                        thread: serial,
                        frame: -1,
                    },
                    1 => Root::NativeStack { thread: serial },
                    2 => Root::ThreadBlock { thread: serial },
                    _ => Root::JavaFrame {
                        thread: serial,
                        frame: 0,
                    },
                };
                heap.add_root(root, target);
            }
        }
    }
}
