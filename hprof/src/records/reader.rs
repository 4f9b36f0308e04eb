//! Reads the records of a dump one after the other, without building a graph.

use crate::bytes::source::Source;
use crate::error::{Result, Warning};
use crate::ids::ObjectId;
use crate::records::classes::Classes;
use crate::records::outline::Outline;
use crate::records::record::{self, ClassDump, Header, Kind};
use crate::records::walk::{self, Object, Root, Visitor};

/// The records of a dump: its header, classes, and heap records in the order of the file.
///
/// ```
/// use hprof::Source;
/// use hprof::records::{HeapRecord, Records};
///
/// # fn main() -> hprof::Result<()> {
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/small.hprof");
/// let source = Source::open(path.as_ref())?;
/// let records = Records::read(&source)?;
/// let classes = records.classes();
/// let order = classes.by_name("com.acme.Order")[0];
/// let mut orders = 0;
/// records.for_each(|record| {
///     if let HeapRecord::Instance { class, .. } = record {
///         orders += usize::from(classes.by_id(class) == Some(order));
///     }
/// });
/// assert_eq!(orders, 40);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Records<'a> {
    source: &'a Source,
    header: Header,
    outline: Outline,
}

/// A record of the heap. Contents are the bytes of the dump, in big-endian order.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum HeapRecord<'a> {
    /// A GC root.
    Root(Root),
    /// A class; [`Records::classes`] has its name and fields.
    Class {
        /// The class object.
        id: ObjectId,
        /// The class object of the superclass; null if the class has no superclass.
        superclass: ObjectId,
        /// The class loader; null for the boot loader.
        loader: ObjectId,
    },
    /// An object that is not an array.
    Instance {
        /// The object.
        id: ObjectId,
        /// The class object of the instance's class.
        class: ObjectId,
        /// The values of the fields, each in [`Kind::size`] bytes: the fields of the class itself in the order of
        /// [`Class::fields`](crate::records::Class::fields), then those of its superclass, and so on.
        fields: &'a [u8],
    },
    /// An array of references.
    ObjectArray {
        /// The array.
        id: ObjectId,
        /// The class object of the array's class.
        class: ObjectId,
        /// The elements' ids; see [`Records::ids`].
        elements: &'a [u8],
    },
    /// An array of primitive values.
    PrimitiveArray {
        /// The array.
        id: ObjectId,
        /// The type of the elements.
        kind: Kind,
        /// Number of elements.
        len: u32,
        /// The elements, each in [`Kind::size`] bytes; empty if the dump does not contain them.
        elements: &'a [u8],
    },
}

impl<'a> Records<'a> {
    /// Reads the header, and finds the other records.
    ///
    /// Cost: one visit of each top-level record. The content of the heap is not read.
    ///
    /// # Errors
    /// Returns an error if the bytes do not begin like a heap dump.
    pub fn read(source: &'a Source) -> Result<Self> {
        let header = record::header(source)?;
        let outline = Outline::from_source(source, &header);
        Ok(Self {
            source,
            header,
            outline,
        })
    }

    /// Returns the header of the file.
    #[must_use]
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// Returns warnings about damaged or missing top-level records.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        &self.outline.warnings
    }

    /// Returns the classes that have a record, with names and fields.
    ///
    /// Cost: one pass over the heap's records.
    #[must_use]
    pub fn classes(&self) -> Classes {
        struct ClassVisitor(Vec<ClassDump>);
        impl Visitor for ClassVisitor {
            fn class_dump(&mut self, _: usize, class: ClassDump) {
                self.0.push(class);
            }
        }
        let mut visitor = ClassVisitor(Vec::new());
        self.walk(&mut visitor);
        Classes::new(self.source, self.header.id_size, &self.outline, &visitor.0)
    }

    /// Calls `visit` with each record of the heap, in the order of the file. If a record of a heap segment is damaged,
    /// skips this record and the rest of the segment, and returns a warning.
    ///
    /// Cost: one pass over the records of the heap, on this thread. Nothing is copied.
    pub fn for_each(&self, visit: impl FnMut(HeapRecord<'_>)) -> Vec<Warning> {
        struct EachVisitor<F>(F);
        impl<F: FnMut(HeapRecord<'_>)> Visitor for EachVisitor<F> {
            fn root(&mut self, root: Root) {
                self.0(HeapRecord::Root(root));
            }
            fn class_dump(&mut self, _: usize, class: ClassDump) {
                self.0(HeapRecord::Class {
                    id: ObjectId(class.id),
                    superclass: ObjectId(class.superclass),
                    loader: ObjectId(class.loader),
                });
            }
            fn instance(&mut self, object: Object, class: u64, fields: &[u8]) {
                self.0(HeapRecord::Instance {
                    id: ObjectId(object.id),
                    class: ObjectId(class),
                    fields,
                });
            }
            fn object_array(&mut self, object: Object, class: u64, elements: &[u8]) {
                self.0(HeapRecord::ObjectArray {
                    id: ObjectId(object.id),
                    class: ObjectId(class),
                    elements,
                });
            }
            fn primitive_array(&mut self, object: Object, kind: Kind, len: u32, elements: &[u8]) {
                self.0(HeapRecord::PrimitiveArray {
                    id: ObjectId(object.id),
                    kind,
                    len,
                    elements,
                });
            }
        }
        self.walk(&mut EachVisitor(visit))
    }

    /// Returns the ids in the bytes of a record, for example the elements of an array of references.
    pub fn ids<'b>(&self, bytes: &'b [u8]) -> impl ExactSizeIterator<Item = ObjectId> + use<'b> {
        let each = bytes.chunks_exact(self.header.id_size);
        each.map(|id| {
            ObjectId(
                id.iter()
                    .fold(0, |value, &byte| value << 8 | u64::from(byte)),
            )
        })
    }

    fn walk(&self, visitor: &mut impl Visitor) -> Vec<Warning> {
        let mut warnings = Vec::new();
        for segment in &self.outline.segments {
            let (start, end) = (segment.start, segment.end);
            let walked = walk::walk(self.source, start, end, self.header.id_size, visitor);
            warnings.extend(walked.err().map(|d| Warning::at(d.offset as u64, &d.flaw)));
        }
        warnings
    }
}
