//! The references of a record, each with the field or element that holds it.

use crate::answers::objects::object::Body;
use crate::ids::{ClassIndex, ObjectId, ObjectIndex};
use crate::records::classes::{RecordLayout, Reference};
use crate::records::record::Kind;
use crate::records::walk::{RootKind, read_id};
use crate::snapshot::Snapshot;

/// The field, element or other way by which an object refers to another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Via {
    /// An instance field: the class that declares it, and its index among that class's fields.
    Field(ClassIndex, u16),
    /// A static field: the class that declares it, and its index among that class's static fields.
    Static(ClassIndex, u16),
    /// An element of an array, by its index.
    Element(u32),
    /// An element of an array, without its index. Several references from elements can then be shown as one.
    Elements,
    /// The reference from an object to its class.
    Class,
    /// The reference from a class to its superclass.
    Superclass,
    /// The reference from a class to its loader.
    Loader,
    /// A reference from a class to its signers, its protection domain or an entry of its constant pool.
    ClassPart,
    /// The reference from a class loader to a class that it defined.
    Loads,
    /// The reference from a thread to an object on its stack. The number is the index of the frame: 0 is the innermost
    /// frame. `None` if the frame is unknown.
    Local(Option<u32>),
}

impl Via {
    /// Returns the same reference, with the index of an array element and the frame number removed.
    #[must_use]
    pub const fn merged(self) -> Self {
        match self {
            Self::Element(_) => Self::Elements,
            Self::Local(_) => Self::Local(None),
            other => other,
        }
    }
}

/// A reference within a record. It is cheap to create, and [`Snapshot::via`] converts it to a [`Via`] when needed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RawVia {
    /// The n-th reference field of the object. The field with the referent of a `java.lang.ref` object is not counted.
    /// The fields of the object's own class come first, then those of its superclasses.
    Field(u32),
    Referent,
    Element(u32),
    Static(u16),
    Class,
    Superclass,
    Loader,
    ClassPart,
    Loads,
    Local(i32),
}

/// References that are not in any record, sorted. Each element has the source, the target and the kind of reference.
#[derive(Debug, Default)]
pub(crate) struct ImplicitRefs {
    list: Vec<(u32, u32, RawVia)>,
}

impl ImplicitRefs {
    pub(crate) fn of(&self, source: u32) -> impl Iterator<Item = (u32, RawVia)> + '_ {
        let first = self.list.partition_point(|e| e.0 < source);
        let own = self.list[first..].iter().take_while(move |e| e.0 == source);
        own.map(|&(_, target, way)| (target, way))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, u32, RawVia)> + '_ {
        self.list.iter().copied()
    }
}

impl Snapshot {
    /// Returns the references that are not in any record: from threads to objects on their stacks, from loaders to
    /// their classes, and from an instance that has the same id as a class object to this class object.
    pub(crate) fn implicit_references(&self) -> ImplicitRefs {
        let threads: std::collections::BTreeMap<u32, u32> = self
            .roots
            .iter()
            .filter(|r| r.kind == RootKind::Thread)
            .filter_map(|r| Some((r.thread, self.find(r.id)?.0)))
            .collect();
        let locals = self.roots.iter().filter(|r| r.kind.belongs_to_thread());
        let locals = locals.filter_map(|r| {
            let thread = *threads.get(&r.thread)?;
            Some((thread, self.find(r.id)?.0, RawVia::Local(r.frame)))
        });
        let classes = self.classes().iter().take(self.split.classes as usize);
        let loads = classes.filter_map(|(i, class)| {
            let loader = Some(class.loader).filter(|l| !l.is_null() && class.held_by_loader)?;
            Some((self.find(loader)?.0, i.0, RawVia::Loads))
        });
        let classes = self.classes().iter().take(self.split.classes as usize);
        let twice = classes.filter_map(|(i, class)| {
            let object = self.find(class.id)?.0;
            (object >= self.split.classes && object < self.split.inner).then_some((
                object,
                i.0,
                RawVia::Class,
            ))
        });
        let mut list: Vec<(u32, u32, RawVia)> = locals.chain(loads).chain(twice).collect();
        list.sort_by_key(|e| (e.0, e.1));
        ImplicitRefs { list }
    }

    /// Calls `f` for each reference of an instance or an array, including null references. Fields come first, then the
    /// referent of a `java.lang.ref` object, then the class.
    #[inline(always)]
    pub(crate) fn each_in_record(&self, body: Body<'_>, f: impl FnMut(u64, RawVia)) {
        match self.header().id_size {
            8 => self.for_each_sized::<8>(body, f),
            _ => self.for_each_sized::<4>(body, f),
        }
    }

    #[inline(always)]
    fn for_each_sized<const ID: usize>(&self, body: Body<'_>, mut f: impl FnMut(u64, RawVia)) {
        match body {
            Body::Instance(class, bytes) => {
                let Some(index) = self.classes().by_id(ObjectId(class)) else {
                    return;
                };
                let layout = self.classes().layout(index.0);
                let offsets = self.classes().ref_offsets(layout).iter();
                for (&at, field) in offsets.zip(0..) {
                    if at as usize + ID <= bytes.len() {
                        f(read_id::<ID>(bytes, at as usize), RawVia::Field(field));
                    }
                }
                let at = layout.referent as usize;
                if layout.referent != RecordLayout::NO_REFERENT && at + ID <= bytes.len() {
                    f(read_id::<ID>(bytes, at), RawVia::Referent);
                }
                f(class, RawVia::Class);
            }
            Body::Objects(class, bytes) => {
                for (element, i) in bytes.chunks_exact(ID).zip(0..) {
                    f(read_id::<ID>(element, 0), RawVia::Element(i));
                }
                f(class, RawVia::Class);
            }
            Body::Primitives(kind, ..) => {
                let class = self.classes().primitive_array(kind);
                f(self.classes()[ClassIndex(class)].id.0, RawVia::Class);
            }
        }
    }

    /// Calls `f` for each reference of a class object, static fields first.
    pub(crate) fn each_of_class(&self, class: ClassIndex, mut f: impl FnMut(u64, RawVia)) {
        let class = &self.classes()[class];
        for (field, i) in class.statics.iter().zip(0..) {
            if field.kind == Kind::Object {
                f(field.value, RawVia::Static(i));
            }
        }
        if let Some(superclass) = class.superclass {
            f(self.classes()[superclass].id.0, RawVia::Superclass);
        }
        f(class.loader.0, RawVia::Loader);
        for &part in &class.others {
            f(part, RawVia::ClassPart);
        }
    }

    /// Converts a raw reference to a [`Via`]. Also returns its strength: the kind of reference object for a referent,
    /// and [`Reference::No`] for all other references.
    pub(crate) fn via(&self, source: ObjectIndex, way: RawVia) -> (Via, Reference) {
        let via = match way {
            RawVia::Field(n) => self.field_at(source, Some(n)),
            RawVia::Referent => self.field_at(source, None),
            RawVia::Element(i) => Via::Element(i),
            RawVia::Static(i) => {
                let class = self.represents(source);
                class.map_or(Via::ClassPart, |c| Via::Static(c, i))
            }
            RawVia::Class => Via::Class,
            RawVia::Superclass => Via::Superclass,
            RawVia::Loader => Via::Loader,
            RawVia::ClassPart => Via::ClassPart,
            RawVia::Loads => Via::Loads,
            RawVia::Local(frame) => Via::Local(u32::try_from(frame).ok()),
        };
        let strength = match way {
            RawVia::Referent => self
                .class_of(source)
                .map_or(Reference::No, |c| self.classes()[c].reference),
            _ => Reference::No,
        };
        (via, strength)
    }

    /// Returns the n-th reference field, or the referent if `n` is `None`.
    fn field_at(&self, source: ObjectIndex, n: Option<u32>) -> Via {
        let classes = self.classes();
        let chain = self
            .class_of(source)
            .into_iter()
            .flat_map(|c| classes.chain(c));
        let mut left = n.unwrap_or(0);
        for index in chain {
            let class = &classes[index];
            let reference = class.loader.is_null() && &*class.name == "java.lang.ref.Reference";
            for (field, place) in class.fields.iter().zip(0..) {
                if field.kind != Kind::Object {
                    continue;
                }
                let referent = reference && &*field.name == "referent";
                if referent == n.is_none() && (referent || left == 0) {
                    return Via::Field(index, place);
                }
                left -= u32::from(!referent && n.is_some());
            }
        }
        // This line is never reached, because a record contains only fields of its class.
        Via::ClassPart
    }

    /// Returns a readable name of a reference, such as `com.acme.Foo.entries`, `[12]` or `<class>`.
    #[must_use]
    pub fn via_name(&self, via: Via) -> String {
        let named = |class: ClassIndex, field: Option<&str>| {
            let class = &self.classes()[class].name;
            format!("{class}.{}", field.unwrap_or("?"))
        };
        match via {
            Via::Field(class, place) => {
                let field = self.classes()[class].fields.get(usize::from(place));
                named(class, field.map(|f| &*f.name))
            }
            Via::Static(class, place) => {
                let field = self.classes()[class].statics.get(usize::from(place));
                named(class, field.map(|f| &*f.name))
            }
            Via::Element(index) => format!("[{index}]"),
            Via::Elements => "[]".to_owned(),
            Via::Class => "<class>".to_owned(),
            Via::Superclass => "<superclass>".to_owned(),
            Via::Loader => "<class loader>".to_owned(),
            Via::ClassPart => "<class part>".to_owned(),
            Via::Loads => "<loaded class>".to_owned(),
            Via::Local(_) => "<local variable>".to_owned(),
        }
    }
}
