//! Describes a heap object by object.

use std::collections::HashMap;

use super::boot::Boot;
use super::error::BuildError;
use super::format::{FieldType, IdSize, Root, Version};
use super::gzip::Gzip;
use super::layout::{JvmLayout, Shape};
use super::record::Framing;
use super::thread::TraceEntry;
use super::value::{Elements, Ref, Value};

/// Identifies a class of a [`HeapBuilder`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClassId(pub(super) usize);

/// Identifies an instance or array of a [`HeapBuilder`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Obj(pub(super) usize);

/// The order of objects in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileOrder {
    /// Ordered by ascending address, as in dumps of G1.
    ByAddress,
    /// The objects are divided into this number of sections. Addresses ascend within each section, and the section with
    /// the highest addresses is first. Parallel GC writes its young generation like this.
    Runs(usize),
    /// Shuffled, with this seed.
    Shuffled(u64),
}

/// The position of certain records: before or after the other records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Before the other records.
    Start,
    /// After the other records.
    End,
}

/// The fields of `java.lang.String`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StringForm {
    /// JDK 9 and later: `byte[] value` and `byte coder`.
    Bytes,
    /// JDK 8: `char[] value`.
    Chars,
}

/// The form of the dump, and the layout of its JVM.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// The version in the header.
    pub version: Version,
    /// The width of IDs.
    pub id_size: IdSize,
    /// Time of the dump, in milliseconds since 1970.
    pub timestamp_ms: u64,
    /// The grouping of sub-records: one heap record, or several segments.
    pub framing: Framing,
    /// The compression of the dump.
    pub gzip: Gzip,
    /// Sizes and alignment of objects.
    pub layout: JvmLayout,
    /// Address of the first object. If `None`, it is the default for the ID size.
    pub base_address: Option<u64>,
    /// The order of objects in the file.
    pub order: FileOrder,
    /// Position of the CLASS_DUMP sub-records: before or after the objects.
    pub classes: Place,
    /// Position of the sub-records of GC roots: before or after the objects.
    pub roots: Place,
    /// The form of strings.
    pub strings: StringForm,
    /// True if every class without a loader gets a ROOT_STICKY_CLASS, as in HotSpot.
    pub sticky_classes: bool,
}

impl Default for Options {
    /// Returns the options of a dump as `jcmd GC.heap_dump` of JDK 17 writes it.
    fn default() -> Self {
        Self {
            version: Version::V102,
            id_size: IdSize::Eight,
            timestamp_ms: 1_700_000_000_000,
            framing: Framing::Segments { bytes: 1 << 20 },
            gzip: Gzip::None,
            layout: JvmLayout::COMPRESSED,
            base_address: None,
            order: FileOrder::ByAddress,
            classes: Place::Start,
            roots: Place::End,
            strings: StringForm::Bytes,
            sticky_classes: true,
        }
    }
}

impl Options {
    /// Returns the options of a 32-bit JVM.
    pub fn bits_32() -> Self {
        Self {
            id_size: IdSize::Four,
            layout: JvmLayout::BITS_32,
            ..Self::default()
        }
    }

    /// Returns the options of an Android dump: format 1.0.3, 32-bit IDs, names with dots.
    pub fn android() -> Self {
        Self {
            version: Version::V103,
            ..Self::bits_32()
        }
    }
}

#[derive(Debug)]
pub(super) struct ClassEntry {
    pub(super) name: String,
    pub(super) super_class: Option<ClassId>,
    pub(super) loader: Ref,
    pub(super) signers: Ref,
    pub(super) protection_domain: Ref,
    pub(super) constants: Vec<(u16, Value)>,
    pub(super) statics: Vec<(String, Value)>,
    pub(super) fields: Vec<(String, FieldType)>,
    pub(super) shape: Shape,
    pub(super) address: u64,
    pub(super) size: u64,
    pub(super) unloaded: bool,
}

#[derive(Debug)]
pub(super) enum Content {
    Instance { class: ClassId, values: Vec<Value> },
    ObjectArray { class: ClassId, elements: Vec<Ref> },
    Primitives(Elements),
}

#[derive(Debug)]
pub(super) struct ObjectEntry {
    pub(super) address: u64,
    pub(super) size: u64,
    pub(super) trace: u32,
    pub(super) copies: u32,
    pub(super) content: Content,
}

/// Describes a heap and writes it as a dump.
///
/// Classes and objects get addresses in the order in which they are added, without gaps. Mistakes (an unknown field, a
/// value of the wrong type) are kept and returned by [`HeapBuilder::try_build`].
///
/// ```
/// use testdata::writer::{FieldType, HeapBuilder, Options, Root, Value};
///
/// let mut heap = HeapBuilder::new(Options::default());
/// let boot = heap.boot();
/// let node = heap.add_class(
///     "com.acme.Node",
///     Some(boot.object),
///     &[("next", FieldType::Object), ("size", FieldType::Int)],
///     &[("head", Value::NULL)],
/// );
/// let last = heap.add_instance(node, &[Value::NULL, Value::Int(1)]);
/// let first = heap.add_instance(node, &[last.into(), Value::Int(2)]);
/// heap.set_field(last, "next", first);
/// heap.set_static(node, "head", first);
/// heap.add_root(Root::JniGlobal { global_ref: 1 }, last);
/// assert_eq!(heap.address(first), heap.address(last) + heap.shallow_size(last));
/// let bytes = heap.build();
/// assert!(bytes.starts_with(b"JAVA PROFILE 1.0.2\0"));
/// ```
#[derive(Debug)]
pub struct HeapBuilder {
    pub(super) options: Options,
    pub(super) classes: Vec<ClassEntry>,
    pub(super) objects: Vec<ObjectEntry>,
    pub(super) roots: Vec<(Root, Ref)>,
    pub(super) traces: Vec<TraceEntry>,
    pub(super) threads: u32,
    pub(super) records: Vec<(Place, u8, Vec<u8>)>,
    pub(super) sub_records: Vec<(Place, Vec<u8>)>,
    pub(super) errors: Vec<BuildError>,
    pub(super) boot: Option<Boot>,
    pub(super) group: Option<Obj>,
    arrays: HashMap<String, ClassId>,
    next_address: u64,
}

impl HeapBuilder {
    /// Creates an empty heap.
    pub fn new(options: Options) -> Self {
        let default_base = match options.id_size {
            IdSize::Four => 0x1000_0000,
            IdSize::Eight => 0x7_0000_0000,
        };
        Self {
            options,
            classes: Vec::new(),
            objects: Vec::new(),
            roots: Vec::new(),
            traces: Vec::new(),
            threads: 0,
            records: Vec::new(),
            sub_records: Vec::new(),
            errors: Vec::new(),
            boot: None,
            group: None,
            arrays: HashMap::new(),
            next_address: options.base_address.unwrap_or(default_base),
        }
    }

    /// Returns the options of the heap.
    pub fn options(&self) -> &Options {
        &self.options
    }

    fn allocate(&mut self, size: u64) -> u64 {
        let address = self.next_address;
        self.next_address = address.saturating_add(size);
        address
    }

    /// Leaves at least `bytes` bytes free before the next object, rounded up to the alignment.
    pub fn add_gap(&mut self, bytes: u64) {
        self.allocate(bytes.next_multiple_of(self.options.layout.alignment));
    }

    /// Adds a class. Names may contain dots or slashes. `fields` are the fields that the class itself declares. The
    /// type of each static field in `statics` is the type of its value. Static fields whose names begin with `<`, such
    /// as `<resolved_references>`, are pseudo fields that take no room in the class object.
    pub fn add_class(
        &mut self,
        name: &str,
        super_class: Option<ClassId>,
        fields: &[(&str, FieldType)],
        statics: &[(&str, Value)],
    ) -> ClassId {
        let layout = self.options.layout;
        let shape = match super_class {
            Some(parent) => self.classes[parent.0].shape.clone(),
            None => Shape::new(&layout),
        }
        .with_fields(&layout, fields.iter().map(|(_, kind)| *kind));
        let size = layout.class_object_size(
            statics
                .iter()
                .filter(|(name, _)| !name.starts_with('<'))
                .map(|(_, value)| value.field_type()),
        );
        let address = self.allocate(size);
        self.classes.push(ClassEntry {
            name: name.replace('/', "."),
            super_class,
            loader: Ref::Null,
            signers: Ref::Null,
            protection_domain: Ref::Null,
            constants: Vec::new(),
            statics: statics
                .iter()
                .map(|&(name, value)| (name.to_owned(), value))
                .collect(),
            fields: fields
                .iter()
                .map(|&(name, kind)| (name.to_owned(), kind))
                .collect(),
            shape,
            address,
            size,
            unloaded: false,
        });
        ClassId(self.classes.len() - 1)
    }

    /// Returns the class of arrays with elements of this class, which may itself be an array class.
    pub fn array_class(&mut self, element: ClassId) -> ClassId {
        let name = &self.classes[element.0].name;
        let (name, loader) = if name.starts_with('[') {
            (format!("[{name}"), self.classes[element.0].loader)
        } else {
            (format!("[L{name};"), self.classes[element.0].loader)
        };
        let class = self.class_of_arrays(name);
        self.classes[class.0].loader = loader;
        class
    }

    /// Returns the class of arrays of a primitive type.
    pub fn primitive_array_class(&mut self, element: FieldType) -> ClassId {
        self.class_of_arrays(format!("[{}", element.descriptor()))
    }

    fn class_of_arrays(&mut self, name: String) -> ClassId {
        if let Some(&class) = self.arrays.get(&name) {
            return class;
        }
        let object = self
            .classes
            .iter()
            .position(|class| class.name == "java.lang.Object")
            .map(ClassId);
        let class = self.add_class(&name, object, &[], &[]);
        self.arrays.insert(name, class);
        class
    }

    /// Sets the loader of a class; the initial one is the boot loader (`null`). Must be called before array classes of
    /// the class are created.
    pub fn set_loader(&mut self, class: ClassId, loader: impl Into<Ref>) {
        self.classes[class.0].loader = loader.into();
    }

    /// Sets a class's signers.
    pub fn set_signers(&mut self, class: ClassId, signers: impl Into<Ref>) {
        self.classes[class.0].signers = signers.into();
    }

    /// Sets a class's protection domain.
    pub fn set_protection_domain(&mut self, class: ClassId, domain: impl Into<Ref>) {
        self.classes[class.0].protection_domain = domain.into();
    }

    /// Adds an entry to a class's constant pool, which is empty in HotSpot's dumps.
    pub fn add_constant(&mut self, class: ClassId, index: u16, value: impl Into<Value>) {
        let constants = &mut self.classes[class.0].constants;
        constants.push((index, value.into()));
    }

    /// Writes an UNLOAD_CLASS record for the class.
    pub fn unload_class(&mut self, class: ClassId) {
        self.classes[class.0].unloaded = true;
    }

    fn add_object(&mut self, size: u64, content: Content) -> Obj {
        let address = self.allocate(size);
        self.objects.push(ObjectEntry {
            address,
            size,
            trace: 1,
            copies: 1,
            content,
        });
        Obj(self.objects.len() - 1)
    }

    /// Adds an instance. Values are in file order: the fields of the class itself, then those of its superclass, and so
    /// on. Missing values are zero.
    pub fn add_instance(&mut self, class: ClassId, values: &[Value]) -> Obj {
        let size = self.instance_size(class);
        let values = values.to_vec();
        self.add_object(size, Content::Instance { class, values })
    }

    /// Adds an object array to the heap. `element` is the class of its elements. Also adds the array class if it does
    /// not exist.
    pub fn add_object_array<T: Into<Ref>>(
        &mut self,
        element: ClassId,
        elements: impl IntoIterator<Item = T>,
    ) -> Obj {
        let class = self.array_class(element);
        let elements: Vec<Ref> = elements.into_iter().map(Into::into).collect();
        let size = self
            .options
            .layout
            .array_size(FieldType::Object, elements.len() as u64);
        self.add_object(size, Content::ObjectArray { class, elements })
    }

    /// Adds an array of a primitive type.
    pub fn add_primitive_array(&mut self, elements: Elements) -> Obj {
        let kind = elements.field_type();
        self.primitive_array_class(kind);
        let size = self.options.layout.array_size(kind, elements.len() as u64);
        self.add_object(size, Content::Primitives(elements))
    }

    /// Makes the target a GC root.
    pub fn add_root(&mut self, root: Root, target: impl Into<Ref>) {
        self.roots.push((root, target.into()));
    }

    /// Sets a field of an instance by name. If several classes in the hierarchy declare a field of this name, sets the
    /// field of the most derived class.
    pub fn set_field(&mut self, object: Obj, field: &str, value: impl Into<Value>) {
        let entry = &self.objects[object.0];
        let Content::Instance { class, .. } = &entry.content else {
            let address = entry.address;
            return self.errors.push(BuildError::WrongKind { address });
        };
        let class = *class;
        let mut kinds = Vec::new();
        let found = self.fields_of(class).any(|(_, name, kind)| {
            kinds.push(kind);
            name == field
        });
        if !found {
            return self.errors.push(BuildError::UnknownField {
                class: self.classes[class.0].name.clone(),
                field: field.to_owned(),
            });
        }
        let slot = kinds.len() - 1;
        if let Content::Instance { values, .. } = &mut self.objects[object.0].content {
            while values.len() <= slot {
                values.push(zero(kinds[values.len()]));
            }
            values[slot] = value.into();
        }
    }

    /// Sets an element of an object array, or a field of an instance. `slot` is the index of the element, or the
    /// position of the field in the instance's record. If fields before this field have no value yet, they are set to
    /// null, so they must be references.
    pub(super) fn set_reference(&mut self, object: Obj, slot: usize, target: Obj) {
        match &mut self.objects[object.0].content {
            Content::Instance { values, .. } => {
                if values.len() <= slot {
                    values.resize(slot + 1, Value::NULL);
                }
                values[slot] = target.into();
            }
            _ => self.set_element(object, slot, target),
        }
    }

    /// Sets an element of an object array.
    pub fn set_element(&mut self, array: Obj, index: usize, target: impl Into<Ref>) {
        let entry = &mut self.objects[array.0];
        let address = entry.address;
        match &mut entry.content {
            Content::ObjectArray { elements, .. } => match elements.get_mut(index) {
                Some(element) => *element = target.into(),
                None => self.errors.push(BuildError::OutOfBounds { address, index }),
            },
            _ => self.errors.push(BuildError::WrongKind { address }),
        }
    }

    /// Sets a static field that [`HeapBuilder::add_class`] created.
    pub fn set_static(&mut self, class: ClassId, name: &str, value: impl Into<Value>) {
        let entry = &mut self.classes[class.0];
        match entry.statics.iter_mut().find(|(known, _)| known == name) {
            Some((_, slot)) => *slot = value.into(),
            None => self.errors.push(BuildError::UnknownField {
                class: entry.name.clone(),
                field: name.to_owned(),
            }),
        }
    }

    /// Sets the stack trace serial of an object's record (default: 1, as in HotSpot).
    pub fn set_trace(&mut self, object: Obj, trace: u32) {
        self.objects[object.0].trace = trace;
    }

    /// Sets the number of times that the object's record is written. With 0 there is no record, so that references to
    /// the object dangle. With 2 the ID occurs twice.
    pub fn set_copies(&mut self, object: Obj, copies: u32) {
        self.objects[object.0].copies = copies;
    }

    /// Gives an object this ID. References to the object then contain this ID.
    pub fn set_address(&mut self, object: Obj, address: u64) {
        self.objects[object.0].address = address;
    }

    /// Gives a class object this ID. References to the class object then contain this ID.
    pub fn set_class_address(&mut self, class: ClassId, address: u64) {
        self.classes[class.0].address = address;
    }

    /// Adds a top-level record with any tag, before the LOAD_CLASS records or after the heap.
    pub fn add_record(&mut self, place: Place, tag: u8, body: &[u8]) {
        self.records.push((place, tag, body.to_vec()));
    }

    /// Adds a sub-record unchanged (tag included), before or after all other sub-records of the heap.
    pub fn add_sub_record(&mut self, place: Place, bytes: &[u8]) {
        self.sub_records.push((place, bytes.to_vec()));
    }

    /// Returns the ID that the target has in the dump, or 0 for null.
    pub fn address(&self, target: impl Into<Ref>) -> u64 {
        match target.into() {
            Ref::Null => 0,
            Ref::Object(object) => self.objects[object.0].address,
            Ref::Class(class) => self.classes[class.0].address,
            Ref::Address(address) => address,
        }
    }

    /// Returns the size of an object or class object, as a JVM with this layout would allocate it. Returns 0 if the
    /// target does not exist.
    pub fn shallow_size(&self, target: impl Into<Ref>) -> u64 {
        match target.into() {
            Ref::Null | Ref::Address(_) => 0,
            Ref::Object(object) => self.objects[object.0].size,
            Ref::Class(class) => self.classes[class.0].size,
        }
    }

    /// Returns the size of every instance of a class, as a JVM with this layout would allocate it.
    pub fn instance_size(&self, class: ClassId) -> u64 {
        let shape = &self.classes[class.0].shape;
        self.options.layout.instance_size(shape)
    }

    /// Returns the name of a class with dots. Names of array classes have the form `[I` or `[Lcom.acme.Foo;`.
    pub fn class_name(&self, class: ClassId) -> &str {
        &self.classes[class.0].name
    }

    /// Returns the class of an object.
    pub fn class_of(&self, object: Obj) -> ClassId {
        match &self.objects[object.0].content {
            Content::Instance { class, .. } | Content::ObjectArray { class, .. } => *class,
            Content::Primitives(elements) => {
                self.arrays[&format!("[{}", elements.field_type().descriptor())]
            }
        }
    }

    /// Returns every class, in the order of addition.
    pub fn classes(&self) -> impl Iterator<Item = ClassId> + use<> {
        (0..self.classes.len()).map(ClassId)
    }

    /// Returns every object, in the order of addition.
    pub fn objects(&self) -> impl Iterator<Item = Obj> + use<> {
        (0..self.objects.len()).map(Obj)
    }

    /// Returns the fields of a class and its superclasses in file order. Each has its declaring class, its name and its
    /// type.
    pub(super) fn fields_of(
        &self,
        class: ClassId,
    ) -> impl Iterator<Item = (ClassId, &str, FieldType)> {
        let parent = |class: &ClassId| self.classes[class.0].super_class;
        std::iter::successors(Some(class), parent).flat_map(|class| {
            let fields = self.classes[class.0].fields.iter();
            fields.map(move |(name, kind)| (class, name.as_str(), *kind))
        })
    }
}

pub(super) fn zero(kind: FieldType) -> Value {
    match kind {
        FieldType::Object => Value::NULL,
        FieldType::Boolean => Value::Boolean(false),
        FieldType::Char => Value::Char(0),
        FieldType::Float => Value::Float(0.0),
        FieldType::Double => Value::Double(0.0),
        FieldType::Byte => Value::Byte(0),
        FieldType::Short => Value::Short(0),
        FieldType::Int => Value::Int(0),
        FieldType::Long => Value::Long(0),
    }
}
