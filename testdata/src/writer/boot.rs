//! Adds classes of the JDK, such as `Object` and `Thread`. Also adds strings, reference objects and class loaders.

use super::format::FieldType::{Boolean, Byte, Int, Long, Object};
use super::heap::{ClassId, HeapBuilder, Obj, StringForm};
use super::value::{Elements, Ref, Value};

/// The classes that most heaps contain.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs, reason = "the names are the names of the JDK classes")]
pub struct Boot {
    pub object: ClassId,
    pub class: ClassId,
    pub string: ClassId,
    pub thread: ClassId,
    pub thread_group: ClassId,
    pub class_loader: ClassId,
    pub reference: ClassId,
    pub soft_reference: ClassId,
    pub weak_reference: ClassId,
    pub phantom_reference: ClassId,
    pub final_reference: ClassId,
    pub finalizer: ClassId,
    pub byte_array: ClassId,
    pub char_array: ClassId,
    pub int_array: ClassId,
    pub long_array: ClassId,
    pub object_array: ClassId,
    pub string_array: ClassId,
}

/// The kinds of reference objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReferenceKind {
    /// `java.lang.ref.SoftReference`
    Soft,
    /// `java.lang.ref.WeakReference`
    Weak,
    /// `java.lang.ref.PhantomReference`
    Phantom,
    /// `java.lang.ref.Finalizer`, a `FinalReference`
    Finalizer,
}

impl HeapBuilder {
    /// Returns the well-known classes. The first call adds them.
    pub fn boot(&mut self) -> Boot {
        if let Some(boot) = self.boot {
            return boot;
        }
        let object = self.add_class("java.lang.Object", None, &[], &[]);
        let class = self.add_class(
            "java.lang.Class",
            Some(object),
            &[
                ("cachedConstructor", Object),
                ("name", Object),
                ("module", Object),
                ("classLoader", Object),
                ("packageName", Object),
                ("componentType", Object),
                ("reflectionData", Object),
                ("classRedefinedCount", Int),
                ("genericInfo", Object),
                ("enumConstants", Object),
                ("enumConstantDirectory", Object),
                ("annotationData", Object),
                ("annotationType", Object),
                ("classValueMap", Object),
            ],
            &[],
        );
        let string = match self.options.strings {
            StringForm::Bytes => self.add_class(
                "java.lang.String",
                Some(object),
                &[
                    ("value", Object),
                    ("coder", Byte),
                    ("hash", Int),
                    ("hashIsZero", Boolean),
                ],
                &[("COMPACT_STRINGS", Value::Boolean(true))],
            ),
            StringForm::Chars => self.add_class(
                "java.lang.String",
                Some(object),
                &[("value", Object), ("hash", Int)],
                &[],
            ),
        };
        let thread_group = self.add_class(
            "java.lang.ThreadGroup",
            Some(object),
            &[("parent", Object), ("name", Object), ("maxPriority", Int)],
            &[],
        );
        let thread = self.add_class(
            "java.lang.Thread",
            Some(object),
            &[
                ("name", Object),
                ("priority", Int),
                ("daemon", Boolean),
                ("eetop", Long),
                ("group", Object),
                ("contextClassLoader", Object),
                ("threadLocals", Object),
                ("inheritableThreadLocals", Object),
                ("tid", Long),
            ],
            &[],
        );
        let class_loader = self.add_class(
            "java.lang.ClassLoader",
            Some(object),
            &[("parent", Object), ("name", Object), ("classes", Object)],
            &[("scl", Value::NULL)],
        );
        let reference = self.add_class(
            "java.lang.ref.Reference",
            Some(object),
            &[
                ("referent", Object),
                ("queue", Object),
                ("next", Object),
                ("discovered", Object),
            ],
            &[],
        );
        let soft_reference = self.add_class(
            "java.lang.ref.SoftReference",
            Some(reference),
            &[("timestamp", Long)],
            &[("clock", Value::Long(1))],
        );
        let mut subclass = |name, parent| self.add_class(name, Some(parent), &[], &[]);
        let weak_reference = subclass("java.lang.ref.WeakReference", reference);
        let phantom_reference = subclass("java.lang.ref.PhantomReference", reference);
        let final_reference = subclass("java.lang.ref.FinalReference", reference);
        let finalizer = self.add_class(
            "java.lang.ref.Finalizer",
            Some(final_reference),
            &[("next", Object), ("prev", Object)],
            &[("queue", Value::NULL), ("unfinalized", Value::NULL)],
        );
        let boot = Boot {
            object,
            class,
            string,
            thread,
            thread_group,
            class_loader,
            reference,
            soft_reference,
            weak_reference,
            phantom_reference,
            final_reference,
            finalizer,
            byte_array: self.primitive_array_class(Byte),
            char_array: self.primitive_array_class(super::FieldType::Char),
            int_array: self.primitive_array_class(Int),
            long_array: self.primitive_array_class(Long),
            object_array: self.array_class(object),
            string_array: self.array_class(string),
        };
        self.boot = Some(boot);
        boot
    }

    /// Adds `java.lang.System` with these properties, in a `ConcurrentHashMap` as since JDK 9. The map has four hash
    /// buckets, so some buckets can have a single entry and others a list of entries.
    pub fn set_system_properties(&mut self, properties: &[(&str, &str)]) {
        const BUCKETS: usize = 4;
        let object = self.boot().object;
        let node = self.add_class(
            "java.util.concurrent.ConcurrentHashMap$Node",
            Some(object),
            &[
                ("hash", Int),
                ("key", Object),
                ("val", Object),
                ("next", Object),
            ],
            &[],
        );
        let map = self.add_class(
            "java.util.concurrent.ConcurrentHashMap",
            Some(object),
            &[("table", Object)],
            &[],
        );
        let table = self.add_class(
            "java.util.Properties",
            Some(object),
            &[("map", Object)],
            &[],
        );
        let mut heads = [Value::NULL; BUCKETS];
        for (i, (key, value)) in properties.iter().enumerate() {
            let (key, value) = (self.add_string(key), self.add_string(value));
            let head = &mut heads[i % BUCKETS];
            let values = [Value::Int(i as i32), key.into(), value.into(), *head];
            *head = self.add_instance(node, &values).into();
        }
        let heads = heads.map(|head| match head {
            Value::Ref(head) => head,
            _ => Ref::Null,
        });
        let heads = self.add_object_array(node, heads);
        let map = self.add_instance(map, &[heads.into()]);
        let properties = self.add_instance(table, &[map.into()]);
        let statics = [("props", properties.into())];
        self.add_class("java.lang.System", Some(object), &[], &statics);
    }

    /// Adds a `java.lang.String` and the array of its characters, in the form that the options select.
    pub fn add_string(&mut self, text: &str) -> Obj {
        let string = self.boot().string;
        let units: Vec<u16> = text.encode_utf16().collect();
        if self.options.strings == StringForm::Chars {
            let value = self.add_primitive_array(Elements::Char(units));
            return self.add_instance(string, &[value.into()]);
        }
        let latin: Option<Vec<u8>> = units.iter().map(|&unit| u8::try_from(unit).ok()).collect();
        let (bytes, coder) = match latin {
            Some(bytes) => (bytes, 0),
            // Two bytes for each character, low byte first as on x86.
            None => (
                units.iter().flat_map(|unit| unit.to_le_bytes()).collect(),
                1,
            ),
        };
        let value = self.add_primitive_array(Elements::Byte(bytes));
        self.add_instance(string, &[value.into(), Value::Byte(coder)])
    }

    /// Adds a reference object. Finalizers form a linked list that starts at `Finalizer.unfinalized`, as in the JVM.
    pub fn add_reference(&mut self, kind: ReferenceKind, referent: impl Into<Ref>) -> Obj {
        let boot = self.boot();
        let referent = Value::Ref(referent.into());
        let class = match kind {
            ReferenceKind::Soft => boot.soft_reference,
            ReferenceKind::Weak => boot.weak_reference,
            ReferenceKind::Phantom => boot.phantom_reference,
            ReferenceKind::Finalizer => boot.finalizer,
        };
        let reference = self.add_instance(class, &[]);
        self.set_field(reference, "referent", referent);
        if kind == ReferenceKind::Finalizer {
            let first = self.classes[boot.finalizer.0].statics[1].1;
            // Set the field `next` that `Finalizer` itself declares. It hides the field `next` of `Reference`.
            self.set_field(reference, "next", first);
            if let Value::Ref(Ref::Object(next)) = first {
                self.set_field(next, "prev", reference);
            }
            self.set_static(boot.finalizer, "unfinalized", reference);
        }
        reference
    }

    /// Adds a reference object of the given class, which must be a subclass of one of the reference classes.
    pub fn add_reference_of(&mut self, class: ClassId, referent: impl Into<Ref>) -> Obj {
        let reference = self.add_instance(class, &[]);
        self.set_field(reference, "referent", referent.into());
        reference
    }

    /// Adds a class loader: an instance of `class`, which must be a subclass of `ClassLoader`.
    pub fn add_class_loader(&mut self, class: ClassId, name: &str) -> Obj {
        let name = self.add_string(name);
        let loader = self.add_instance(class, &[]);
        self.set_field(loader, "name", name);
        loader
    }
}
