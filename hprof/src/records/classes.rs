//! The class table: names, hierarchy, fields, and the offsets of references in an instance.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::NameMapping;
use crate::ids::{ClassIndex, IdMap, ObjectId};
use crate::records::forked::Forked;
use crate::records::id_table::IdTable;
use crate::records::outline::Outline;
use crate::records::record::{ClassDump, Kind};

/// Maximum length of a chain of superclasses. Real chains have a tenth of this length.
const MAX_DEPTH: u16 = 255;

/// Limit for the number of fields in the layouts of all classes together: this number, plus one for each byte of the
/// file. Inherited fields count once for each class.
const SPARE_FIELDS: u64 = 4 << 20;

/// A field that a class declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// The name of the field.
    pub name: Arc<str>,
    /// The type of the field.
    pub kind: Kind,
}

/// A static field and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Static {
    /// The name of the static field.
    pub name: Arc<str>,
    /// The type of the static field.
    pub kind: Kind,
    /// The value of the static field, as the bits in the dump.
    pub value: u64,
}

/// The role of a class in `java.lang.ref`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Reference {
    /// An ordinary class.
    #[default]
    No,
    /// `java.lang.ref.SoftReference` or a subclass.
    Soft,
    /// `java.lang.ref.FinalReference` or a subclass.
    Final,
    /// `java.lang.ref.WeakReference` or a subclass.
    Weak,
    /// `java.lang.ref.PhantomReference` or a subclass.
    Phantom,
}

impl Reference {
    /// Returns the strength of the reference from an instance of a class with this role to its referent: `strong`,
    /// `soft`, `final`, `weak` or `phantom`.
    pub const fn strength(self) -> &'static str {
        match self {
            Self::No => "strong",
            Self::Soft => "soft",
            Self::Final => "final",
            Self::Weak => "weak",
            Self::Phantom => "phantom",
        }
    }
}

/// A class of the dump.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Class {
    /// The class object's id; null if the dump has no record of the class.
    pub id: ObjectId,
    /// The name as in Java source: `com.acme.Foo$Bar`, `byte[]`.
    pub name: Arc<str>,
    /// The superclass.
    pub superclass: Option<ClassIndex>,
    /// The defining loader's id; null for the boot loader.
    pub loader: ObjectId,
    /// The fields that the class itself declares, in the order of the dump.
    pub fields: Vec<Field>,
    /// The static fields of the class.
    pub statics: Vec<Static>,
    /// For an array class, the type of its elements.
    pub element: Option<Kind>,
    /// The role of the class in `java.lang.ref`.
    pub reference: Reference,
    /// Other objects that the class object refers to: signers, protection domain, constant pool.
    pub(crate) others: Vec<u64>,
    /// True if the dump has a CLASS_DUMP record for this class.
    pub(crate) dumped: bool,
    /// True if this is a hidden class.
    pub(crate) hidden: bool,
    /// True if the loader of this class keeps the class alive. A loader does not keep hidden classes alive, unless they
    /// were defined with the option STRONG.
    pub(crate) held_by_loader: bool,
}

/// The properties of a class that the passes over objects need. The struct is small, so that the table stays in the
/// cache.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordLayout {
    /// Index in [`Classes::ref_offsets`] at which the offsets of this class's reference fields begin.
    first_ref: u32,
    refs: u32,
    /// Offset of `java.lang.ref.Reference.referent`, or [`RecordLayout::NO_REFERENT`].
    pub(crate) referent: u32,
    /// For an array class, its number among all array classes. The class of stack chunks has a number, too, because
    /// their size varies like an array's.
    pub(crate) array: u32,
    pub(crate) reference: Reference,
    /// True for threads and class loaders. The graph has references from these objects that no record contains, for
    /// example to local variables and classes. So these objects are never treated as objects without references.
    pub(crate) never_leaf: bool,
}

impl RecordLayout {
    pub(crate) const NO_REFERENT: u32 = u32::MAX;
    pub(crate) const NO_ARRAY: u32 = u32::MAX;
}

/// The ids of class loaders, with a fast test if an id is among them.
#[derive(Debug, Default)]
struct Loaders {
    sorted: Vec<u64>,
    /// A filter for look-ups in `sorted`. Each bit stands for one value of an id's low bits, and is set if an id in
    /// `sorted` has this value. If the bit of an id is not set, the id is not in `sorted`.
    low_bits: u64,
}

impl Loaders {
    fn from_classes(classes: &[Class]) -> Self {
        let mut sorted: Vec<u64> = classes.iter().map(|c| c.loader.0).collect();
        sorted.sort_unstable();
        sorted.dedup();
        sorted.retain(|&id| id != 0);
        let low_bits = sorted.iter().fold(0, |bits, &id| bits | Self::bit(id));
        Self { sorted, low_bits }
    }

    #[inline]
    const fn bit(id: u64) -> u64 {
        1 << ((id >> 3) & 63)
    }

    #[inline]
    fn has(&self, id: u64) -> bool {
        self.low_bits & Self::bit(id) != 0 && self.sorted.binary_search(&id).is_ok()
    }
}

/// All classes, with look-up by id and by name.
#[derive(Debug, Default)]
pub struct Classes {
    list: Vec<Class>,
    by_id: IdTable,
    /// Classes by name. Several class loaders can define classes with the same name.
    by_name: HashMap<Arc<str>, Vec<ClassIndex>>,
    /// For classes that were renamed: the names that they have in the dump.
    dumped_names: HashMap<ClassIndex, Arc<str>>,
    layouts: Vec<RecordLayout>,
    /// Offsets of reference fields in the body of an instance, class after class.
    ref_offsets: Vec<u32>,
    /// The array classes, in the order of their array numbers (see [`RecordLayout::array`]).
    arrays: Vec<ClassIndex>,
    /// Number of classes that have a record. Only these have class objects.
    dumped: usize,
    /// Class of each primitive array type, by [`Kind`] code.
    primitive_arrays: [u32; 12],
    /// The class `jdk.internal.vm.StackChunk`, and the offset of one of its fields in an instance. The field has the
    /// number of stack words of the instance.
    stack_chunk: Option<(ClassIndex, usize)>,
    /// The class `jdk.internal.vm.FillerElement[]`.
    filler: Option<ClassIndex>,
    /// Data about the dump if a forked child of the agent wrote it; otherwise `None`.
    pub(crate) forked: Option<Forked>,
    pub(crate) duplicates: u64,
    /// Number of fields that the layouts of further classes may still contain. The number is limited because many
    /// classes of a damaged dump can inherit many fields.
    spare_fields: u64,
    /// Number of classes whose fields exceeded the limit in `spare_fields`.
    pub(crate) oversized: u64,
    loaders: Loaders,
    /// The class `java.lang.Class`.
    class_class: Option<ClassIndex>,
}

/// A class's name, created once for all classes with this name.
#[derive(Clone)]
struct ClassName {
    text: Arc<str>,
    element: Option<Kind>,
    hidden: bool,
}

impl ClassName {
    fn new(raw: &str) -> Self {
        let (text, element) = java_name(raw);
        Self {
            hidden: is_hidden(&text),
            text: text.into(),
            element,
        }
    }
}

impl Classes {
    /// Builds the table. If a class has several records, all but the first are ignored and counted.
    pub(crate) fn new(
        bytes: &[u8],
        id_size: usize,
        outline: &Outline,
        dumps: &[ClassDump],
    ) -> Self {
        let mut names: IdMap<u64> = IdMap::default();
        for load in &outline.loads {
            names.insert(load.class, load.name);
        }
        let text = |id: u64| outline.name(bytes, id);
        let mut field_names: IdMap<Arc<str>> = IdMap::default();
        let mut named = |id: u64| -> Arc<str> {
            let make = || match text(id) {
                Some(text) => text.into(),
                None => format!("(unnamed {id:#x})").into(),
            };
            field_names.entry(id).or_insert_with(make).clone()
        };
        let mut class_names: IdMap<(ClassName, Vec<ClassIndex>)> = IdMap::default();
        let mut this = Self {
            spare_fields: SPARE_FIELDS + bytes.len() as u64,
            ..Self::default()
        };
        let mut seen: IdMap<u32> = IdMap::default();
        let mut supers = Vec::with_capacity(dumps.len());
        for dump in dumps {
            if seen.contains_key(&dump.id) {
                this.duplicates += 1;
                continue;
            }
            let index = ClassIndex(this.list.len() as u32);
            seen.insert(dump.id, index.0);
            supers.push(dump.superclass);
            let name_id = names.get(&dump.id).copied();
            let known = name_id.and_then(|id| class_names.get_mut(&id));
            let name = if let Some((name, same)) = known {
                same.push(index);
                name.clone()
            } else if let Some((id, raw)) = name_id.and_then(|id| Some((id, text(id)?))) {
                let name = ClassName::new(&raw);
                class_names.insert(id, (name.clone(), vec![index]));
                name
            } else {
                let name = ClassName::new(&format!("(unnamed class {:#x})", dump.id));
                this.by_name.insert(name.text.clone(), vec![index]);
                name
            };
            let constants = dump.constants.iter().filter(|c| c.0 == Kind::Object);
            let others = dump.others.iter().copied().chain(constants.map(|c| c.1));
            this.list.push(Class {
                id: ObjectId(dump.id),
                held_by_loader: !name.hidden || is_strong(&name.text),
                name: name.text,
                element: name.element,
                hidden: name.hidden,
                loader: ObjectId(dump.loader),
                fields: dump
                    .fields
                    .iter()
                    .map(|&(n, kind)| Field {
                        name: named(n),
                        kind,
                    })
                    .collect(),
                statics: dump
                    .statics
                    .iter()
                    .map(|&(n, kind, value)| Static {
                        name: named(n),
                        kind,
                        value,
                    })
                    .collect(),
                others: others.filter(|&id| id != 0).collect(),
                dumped: true,
                ..Class::default()
            });
        }
        this.dumped = this.list.len();
        for (class, superclass) in this.list.iter_mut().zip(supers) {
            class.superclass = seen.get(&superclass).map(|&i| ClassIndex(i));
        }
        this.cut_bad_hierarchies();
        this.add_primitive_arrays();
        this.by_id = IdTable::new(this.list[..this.dumped].iter().map(|c| c.id.0));
        for (_, (name, mut same)) in class_names {
            this.by_name.entry(name.text).or_default().append(&mut same);
        }
        // `by_name` also contains the array classes without a record.
        for (class, i) in this.list.iter().zip(0..).skip(this.dumped) {
            let same = this.by_name.entry(class.name.clone()).or_default();
            same.push(ClassIndex(i));
        }
        this.by_name
            .values_mut()
            .for_each(|same| same.sort_unstable());
        this.find_reference_classes();
        for i in 0..this.list.len() {
            this.add_layout(i, id_size);
        }
        this.loaders = Loaders::from_classes(&this.list);
        this.class_class = this.by_name("java.lang.Class").first().copied();
        this.forked = Forked::new(outline.recorded, &outline.loads, &this.list);
        this
    }

    /// Removes superclasses that no JVM writes: in a damaged dump, a class can be its own ancestor, or a chain of
    /// superclasses can be too long.
    fn cut_bad_hierarchies(&mut self) {
        const ON_CHAIN: u16 = u16::MAX;
        let mut depth = vec![0_u16; self.list.len()];
        for start in 0..self.list.len() {
            let (mut at, mut chain) = (start, Vec::new());
            while depth[at] == 0 {
                depth[at] = ON_CHAIN;
                chain.push(at);
                match self.list[at].superclass {
                    Some(next) if depth[next.index()] == ON_CHAIN => {
                        self.list[at].superclass = None
                    }
                    Some(next) => at = next.index(),
                    None => {}
                }
            }
            for c in chain.into_iter().rev() {
                depth[c] = self.list[c].superclass.map_or(0, |s| depth[s.index()]) + 1;
                if depth[c] > MAX_DEPTH {
                    self.list[c].superclass = None;
                    depth[c] = 1;
                }
            }
        }
    }

    fn add_primitive_arrays(&mut self) {
        for kind in Kind::PRIMITIVES {
            let name = format!("{}[]", kind.java_name());
            // A class counts as `int[]` only if it has the name and the element type of an `int[]`. The name is not
            // enough, because a damaged dump may give it to any class.
            let found = self
                .list
                .iter()
                .position(|c| c.element == Some(kind) && *c.name == *name);
            self.primitive_arrays[kind as usize] = found.unwrap_or(self.list.len()) as u32;
            if found.is_none() {
                self.list.push(Class {
                    name: name.into(),
                    element: Some(kind),
                    ..Class::default()
                });
            }
        }
    }

    fn find_reference_classes(&mut self) {
        let roots = [
            ("java.lang.ref.SoftReference", Reference::Soft),
            ("java.lang.ref.FinalReference", Reference::Final),
            ("java.lang.ref.WeakReference", Reference::Weak),
            ("java.lang.ref.PhantomReference", Reference::Phantom),
        ];
        for i in 0..self.list.len() {
            let found = self.chain(ClassIndex(i as u32)).find_map(|c| {
                let class = &self.list[c.index()];
                roots
                    .iter()
                    .find(|r| class.loader.is_null() && *class.name == *r.0)
            });
            if let Some(&(_, kind)) = found {
                self.list[i].reference = kind;
            }
        }
    }

    fn add_layout(&mut self, index: usize, id_size: usize) {
        let mut refs = std::mem::take(&mut self.ref_offsets);
        let mut layout = RecordLayout {
            first_ref: refs.len() as u32,
            refs: 0,
            referent: RecordLayout::NO_REFERENT,
            array: RecordLayout::NO_ARRAY,
            reference: self.list[index].reference,
            never_leaf: false,
        };
        let chain = || self.chain(ClassIndex(index as u32));
        let fields: u64 = chain().map(|c| self[c].fields.len() as u64).sum();
        let spare = self.spare_fields.checked_sub(fields);
        let (spare_fields, oversized) = match spare {
            Some(left) => (left, self.oversized),
            None => (self.spare_fields, self.oversized + 1),
        };
        let mut at = 0_usize;
        for c in chain() {
            let class = &self.list[c.index()];
            let boot = class.loader.is_null();
            layout.never_leaf |=
                boot && matches!(&*class.name, "java.lang.Thread" | "java.lang.ClassLoader");
            let holds_referent = boot && &*class.name == "java.lang.ref.Reference";
            let listed = if spare.is_some() {
                &class.fields[..]
            } else {
                &[]
            };
            for field in listed {
                if field.kind == Kind::Object {
                    if holds_referent && &*field.name == "referent" {
                        layout.referent = at as u32;
                    } else {
                        refs.push(at as u32);
                    }
                }
                at += field.kind.size(id_size);
            }
        }
        layout.refs = refs.len() as u32 - layout.first_ref;
        let class = &self.list[index];
        let boot = class.loader.is_null();
        if boot && &*class.name == "jdk.internal.vm.StackChunk" && self.stack_chunk.is_none() {
            let mut at = 0;
            let size = class.fields.iter().find_map(|field| {
                let here = at;
                at += field.kind.size(id_size);
                (&*field.name == "size" && field.kind == Kind::Int).then_some(here)
            });
            self.stack_chunk = size.map(|at| (ClassIndex(index as u32), at));
        }
        if boot && &*class.name == "jdk.internal.vm.FillerElement[]" {
            self.filler = Some(ClassIndex(index as u32));
        }
        if class.element.is_some() || self.is_stack_chunk(ClassIndex(index as u32)) {
            layout.array = self.arrays.len() as u32;
            self.arrays.push(ClassIndex(index as u32));
        }
        (self.spare_fields, self.oversized) = (spare_fields, oversized);
        self.ref_offsets = refs;
        self.layouts.push(layout);
    }

    #[inline]
    pub(crate) fn layout(&self, class: u32) -> &RecordLayout {
        &self.layouts[class as usize]
    }

    /// Returns the offsets of an instance's references in its body. The referent of `java.lang.ref` classes is not
    /// included.
    #[inline]
    pub(crate) fn ref_offsets(&self, layout: &RecordLayout) -> &[u32] {
        &self.ref_offsets[layout.first_ref as usize..][..layout.refs as usize]
    }

    /// Returns true if this is the JVM's class for parts of a virtual thread's stack.
    pub(crate) fn is_stack_chunk(&self, class: ClassIndex) -> bool {
        self.stack_chunk.is_some_and(|(chunk, _)| chunk == class)
    }

    /// Returns true if arrays of this class fill gaps in the heap of JDK 28. HotSpot lays them out like `int[]`.
    #[inline]
    pub(crate) fn is_filler(&self, class: ClassIndex) -> bool {
        self.filler == Some(class)
    }

    /// Returns the number of stack words in a stack chunk. `body` has the values of its fields. Returns `None` for
    /// other classes.
    pub(crate) fn stack_words(&self, class: ClassIndex, body: &[u8]) -> Option<u32> {
        let (_, at) = self.stack_chunk.filter(|&(chunk, _)| chunk == class)?;
        let size = body.get(at..)?.first_chunk::<4>()?;
        u32::try_from(i32::from_be_bytes(*size)).ok()
    }

    /// Returns the array classes, in the order of their array numbers.
    pub(crate) fn arrays(&self) -> &[ClassIndex] {
        &self.arrays
    }

    /// Returns true if an object counts as an object with references even if its record contains no reference. Such an
    /// object is a class loader, which leads to its classes, or an instance of `java.lang.Class` with the id of a class
    /// object.
    #[inline]
    pub(crate) fn holds_class(&self, class: u32, id: u64) -> bool {
        let is_class_object =
            || self.class_class == Some(ClassIndex(class)) && self.by_id(ObjectId(id)).is_some();
        self.loaders.has(id) || is_class_object()
    }

    /// Returns the class and its superclasses, the class itself first.
    pub fn chain(&self, class: ClassIndex) -> impl Iterator<Item = ClassIndex> + '_ {
        std::iter::successors(Some(class), |c| self.list[c.index()].superclass)
    }

    /// Returns the number of classes, including those without a record.
    #[must_use]
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns true if the dump has no classes at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns the number of classes that have a class object.
    #[must_use]
    pub fn dumped(&self) -> usize {
        self.dumped
    }

    /// Returns all classes with their indices.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (ClassIndex, &Class)> {
        self.list
            .iter()
            .enumerate()
            .map(|(i, c)| (ClassIndex(i as u32), c))
    }

    /// Returns the class whose class object has this id.
    #[inline]
    #[must_use]
    pub fn by_id(&self, id: ObjectId) -> Option<ClassIndex> {
        self.by_id.get(id.0).map(ClassIndex)
    }

    /// Returns the classes with this name, as in Java source. The result has several classes if several class loaders
    /// defined a class with this name.
    #[must_use]
    pub fn by_name(&self, name: &str) -> &[ClassIndex] {
        self.by_name.get(name).map_or(&[], Vec::as_slice)
    }

    #[inline]
    pub(crate) fn primitive_array(&self, kind: Kind) -> u32 {
        self.primitive_arrays[kind as usize]
    }

    /// Records that these classes are kept alive by their loaders.
    pub(crate) fn set_held_by_loaders(&mut self, classes: &[u32]) {
        for &class in classes {
            if let Some(class) = self.list.get_mut(class as usize) {
                class.held_by_loader = true;
            }
        }
    }

    pub(crate) fn with_unknown(
        &mut self,
        ids: impl IntoIterator<Item = u64>,
        arrays: &HashSet<u64>,
    ) {
        for id in ids {
            let element = arrays.contains(&id).then_some(Kind::Object);
            let suffix = if element.is_some() { "[]" } else { "" };
            let name: Arc<str> = format!("(unknown class {id:#x}){suffix}").into();
            self.by_id.insert(id, self.list.len() as u32);
            self.by_name
                .entry(name.clone())
                .or_default()
                .push(ClassIndex(self.list.len() as u32));
            self.list.push(Class {
                name,
                element,
                ..Class::default()
            });
            self.add_layout(self.list.len() - 1, 8);
        }
    }

    /// Gives classes and fields the names that they had before a shrinker shortened them. A class can still be found by
    /// its name in the dump, unless another class has it as its original name. Special classes such as
    /// `java.lang.Class` were found before and stay the same.
    pub(crate) fn rename(&mut self, mapping: &dyn NameMapping) {
        for (i, class) in (0..).zip(&mut self.list) {
            // Rename fields before classes: the mapping finds a field by its class's name in the dump.
            let fields = class.fields.iter_mut().map(|f| (&mut f.name, f.kind));
            let statics = class.statics.iter_mut().map(|f| (&mut f.name, f.kind));
            for (field, kind) in fields.chain(statics) {
                let kind = match kind {
                    Kind::Object => "Object",
                    kind => kind.java_name(),
                };
                if let Some(original) = mapping.field(&class.name, field, kind) {
                    *field = original.into();
                }
            }
            if let Some(original) = mapping.class(&class.name) {
                let dumped = std::mem::replace(&mut class.name, original.into());
                self.dumped_names.insert(ClassIndex(i), dumped);
            }
        }
        let dumped = std::mem::take(&mut self.by_name);
        for (i, class) in (0..).zip(&self.list) {
            let same = self.by_name.entry(class.name.clone()).or_default();
            same.push(ClassIndex(i));
        }
        for (name, classes) in dumped {
            self.by_name.entry(name).or_insert(classes);
        }
    }

    /// Returns the class's name in the dump.
    pub(crate) fn dumped_name(&self, class: ClassIndex) -> &str {
        let name = self.dumped_names.get(&class);
        name.unwrap_or(&self.list[class.index()].name)
    }

    /// Returns true if `ancestor` is the class or one of its superclasses.
    #[must_use]
    pub fn is_subclass(&self, class: ClassIndex, ancestor: ClassIndex) -> bool {
        self.chain(class).any(|c| c == ancestor)
    }
}

impl std::ops::Index<ClassIndex> for Classes {
    type Output = Class;
    fn index(&self, index: ClassIndex) -> &Class {
        &self.list[index.index()]
    }
}

/// Returns true if the JDK uses the option STRONG for hidden classes with this name. With this option, a hidden class
/// lives as long as its class loader. A dump does not show the option.
///
/// The JDK defines several kinds of hidden classes in application class loaders. The classes of lambdas have the
/// option.
fn is_strong(name: &str) -> bool {
    name.contains("$$Lambda")
}

/// Returns true for hidden and anonymous classes. Their own loader data (a structure of the JVM) keeps them alive.
/// Their class loader does not keep them alive, unless [`is_strong`] returns true for their name.
fn is_hidden(name: &str) -> bool {
    name.contains("/0x")
        || name.contains("+0x")
        || name.bytes().enumerate().any(|(i, b)| b == b'/' && i > 0)
}

/// Converts `[Ljava/lang/String;` to `java.lang.String[]`. For arrays, also returns the type of the elements. Android
/// writes array names as in Java source.
pub(crate) fn java_name(raw: &str) -> (String, Option<Kind>) {
    let depth = raw.bytes().take_while(|&b| b == b'[').count();
    if depth == 0 {
        return (dotted(raw), source_element(raw));
    }
    let inner = &raw[depth..];
    let kind = inner.bytes().next().and_then(Kind::from_descriptor);
    let (base, kind) = match kind {
        Some(Kind::Object) => (
            dotted(
                inner
                    .strip_prefix('L')
                    .unwrap_or(inner)
                    .trim_end_matches(';'),
            ),
            Kind::Object,
        ),
        Some(kind) if inner.len() == 1 => (kind.java_name().to_owned(), kind),
        _ => (dotted(inner), Kind::Object),
    };
    let element = if depth > 1 { Kind::Object } else { kind };
    (base + &"[]".repeat(depth), Some(element))
}

/// Returns the element type of an array class that is named as in Java source: `int[]`, `java.lang.String[]`.
fn source_element(name: &str) -> Option<Kind> {
    let element = name.strip_suffix("[]")?;
    let primitive = Kind::PRIMITIVES
        .into_iter()
        .find(|kind| kind.java_name() == element);
    Some(primitive.unwrap_or(Kind::Object))
}

/// Replaces slashes by dots, except the slash that HotSpot puts before a hidden class's address.
fn dotted(name: &str) -> String {
    match name.rfind("/0x").or_else(|| name.rfind("+0x")) {
        Some(at) => name[..at].replace('/', ".") + &name[at..].replace('+', "/"),
        None => name.replace('/', "."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_as_in_java_source() {
        assert_eq!(
            java_name("java/lang/String"),
            ("java.lang.String".into(), None)
        );
        assert_eq!(java_name("[B"), ("byte[]".into(), Some(Kind::Byte)));
        assert_eq!(java_name("[[B"), ("byte[][]".into(), Some(Kind::Object)));
        assert_eq!(
            java_name("[Ljava/util/Map$Entry;"),
            ("java.util.Map$Entry[]".into(), Some(Kind::Object))
        );
        assert_eq!(java_name("a/B$$Lambda+0x0000ab").0, "a.B$$Lambda/0x0000ab");
        assert_eq!(
            java_name("a/B$$Lambda$14/0x0000ab").0,
            "a.B$$Lambda$14/0x0000ab"
        );
        // Android writes names of array classes like this.
        assert_eq!(java_name("int[]"), ("int[]".into(), Some(Kind::Int)));
        assert_eq!(java_name("int[][]"), ("int[][]".into(), Some(Kind::Object)));
        assert_eq!(
            java_name("java.lang.String[]"),
            ("java.lang.String[]".into(), Some(Kind::Object))
        );
        // No JVM writes names like these.
        assert_eq!(java_name("[Lint;").1, Some(Kind::Object));
        assert_eq!(java_name("[Iota").1, Some(Kind::Object));
    }
}
