//! Builds the heap of an application.

use testdata::writer::{self, Boot, ClassId, Elements, FieldType, HeapBuilder, Obj, Root, Value};

/// Returns a heap with the JDK's classes, and a loader for application classes.
pub(crate) fn loaded() -> (HeapBuilder, Boot, Obj) {
    loaded_with(writer::Options::default())
}

fn loaded_with(options: writer::Options) -> (HeapBuilder, Boot, Obj) {
    let mut heap = HeapBuilder::new(options);
    let boot = heap.boot();
    let class = heap.add_class("com.acme.Loader", Some(boot.class_loader), &[], &[]);
    let loader = heap.add_class_loader(class, "app");
    heap.add_root(Root::JniGlobal { global_ref: 1 }, loader);
    (heap, boot, loader)
}

/// Builds a heap whose classes have only fields that refer to objects.
pub(crate) struct App {
    pub(crate) heap: HeapBuilder,
    pub(crate) boot: Boot,
    pub(crate) loader: Obj,
}

impl App {
    pub(crate) fn new() -> Self {
        Self::at(writer::Options::default().timestamp_ms)
    }

    /// Creates a heap. Its dump is taken at this time, in milliseconds since 1970.
    pub(crate) fn at(timestamp_ms: u64) -> Self {
        let (heap, boot, loader) = loaded_with(writer::Options {
            timestamp_ms,
            ..writer::Options::default()
        });
        Self { heap, boot, loader }
    }

    /// Adds a class with these fields and static fields, which refer to objects. If the class is a JDK class, it
    /// belongs to the boot loader.
    pub(crate) fn class(&mut self, name: &str, fields: &[&str], statics: &[&str]) -> ClassId {
        let object = FieldType::Object;
        let fields: Vec<(&str, FieldType)> = fields.iter().map(|&f| (f, object)).collect();
        let statics: Vec<(&str, Value)> = statics.iter().map(|&f| (f, Value::NULL)).collect();
        let class = self
            .heap
            .add_class(name, Some(self.boot.object), &fields, &statics);
        if !name.starts_with("java.") {
            self.heap.set_loader(class, self.loader);
        }
        class
    }

    pub(crate) fn array(&mut self, of: Vec<Obj>) -> Obj {
        self.heap.add_object_array(self.boot.object, of)
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Obj {
        self.heap
            .add_primitive_array(Elements::Byte(vec![1; count]))
    }

    /// Adds `count` objects of a class with one field. The field of each object refers to a body of `body` bytes.
    pub(crate) fn rows(&mut self, class: ClassId, count: usize, body: usize) -> Vec<Obj> {
        let row = |app: &mut Self| {
            let body = app.bytes(body);
            app.heap.add_instance(class, &[body.into()])
        };
        (0..count).map(|_| row(self)).collect()
    }
}
