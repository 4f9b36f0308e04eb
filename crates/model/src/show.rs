//! `heapdiff.show/1`: objects with their fields, content and referrers.

use schemars::JsonSchema;
use serde::Serialize;

use crate::sizeof::SizeofClass;
use crate::snapshot::SnapshotInfo;
use crate::words::ID;

/// The report of `heapdiff show --format json`: objects with their fields, content and referrers. Later versions may
/// add keys.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct ShowReport {
    /// Name of the schema.
    pub schema: &'static str,
    /// The dump.
    pub snapshot: SnapshotInfo,
    /// The selector that the user gave.
    pub selector: String,
    /// Totals of all objects that the selector selects.
    pub selected: SelectedTotals,
    /// The objects with the largest retained size, the largest first. At most 3 unless --top sets another
    /// limit.
    pub objects: Vec<ShownObject>,
}

/// Totals of all objects that a selector selects.
#[derive(Clone, Copy, Debug, Default, Serialize, JsonSchema)]
pub struct SelectedTotals {
    /// Number of objects.
    pub objects: u64,
    /// Sum of the shallow sizes of these objects, in bytes.
    pub shallow_bytes: u64,
}

/// An object with its fields, its content and its referrers.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct ShownObject {
    /// The id, `0x7f0012345678`.
    #[schemars(extend("pattern" = ID))]
    pub id: String,
    /// Name of the class, in the form `com.acme.Foo$Bar` or `byte[]`.
    pub class: String,
    /// Shallow size of the object, in bytes.
    pub shallow_bytes: u64,
    /// Bytes that would be freed if the object were removed; null for an unreachable object.
    pub retained_bytes: Option<u64>,
    /// Number of objects that would be freed with it, itself included; null for an unreachable object.
    pub retained_objects: Option<u64>,
    /// Kind of the GC root that refers to the object directly; null if there is none.
    pub root: Option<&'static str>,
    /// The object that alone keeps this object alive; null if a GC root, several objects, or nothing keeps it alive.
    pub dominator: Option<ObjectRef>,
    /// For a class object, its superclass.
    pub superclass: Option<ObjectRef>,
    /// For a class object, its defining loader; null for the boot loader.
    pub loader: Option<ObjectRef>,
    /// For a string, its text, cut after 2000 characters with …; for a boxed value, its value; otherwise null.
    pub text: Option<String>,
    /// Fields of an instance: the fields of its own class first, then of the superclass, and so on; static
    /// fields of a class object.
    pub fields: Vec<ShownField>,
    /// Elements of an array; null for other objects.
    pub array: Option<ShownArray>,
    /// Number of references to the object in the whole dump, including references from unreachable objects. References
    /// of instances to their class are not counted.
    pub referrer_count: u64,
    /// The first references to the object; at most 20 unless --top sets another limit.
    pub referrers: Vec<ShownReferrer>,
    /// Content of the object if its class is a collection class of the JDK or extends one; null for other objects.
    pub contents: Option<ShownContents>,
    /// Values of a ThreadLocal, which are stored in the maps of the threads; null for other objects.
    pub thread_local: Option<ThreadLocalValues>,
}

/// The values of thread locals. They are stored in the maps of the threads.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct ThreadLocalValues {
    /// Number of threads that have a value.
    pub threads: u64,
    /// Number of values, each counted once.
    pub objects: u64,
    /// Bytes that would be freed if all values were removed.
    pub retained_bytes: u64,
    /// The 3 classes with the most values.
    pub classes: Vec<SizeofClass>,
    /// The value that retains the most; null if there is no value.
    pub largest: Option<ObjectRef>,
    /// Bytes that this value retains.
    pub largest_retained_bytes: Option<u64>,
    /// Name of a thread that has the object `largest` as its value.
    pub largest_thread: Option<String>,
    /// The command that shows the values; null if no thread has a value.
    pub next: Option<String>,
}

/// A reference to an object.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct ShownReferrer {
    /// The field, or `[index]`.
    pub via: String,
    /// The kind of the reference: `strong`, unless a java.lang.ref object refers to its referent. Then the class of the
    /// java.lang.ref object determines the kind.
    #[schemars(extend("enum" = ["strong", "soft", "weak", "phantom", "final"]))]
    pub strength: &'static str,
    /// The object.
    #[serde(flatten)]
    pub object: ObjectRef,
}

/// A field with its value.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct ShownField {
    /// The field's name.
    pub name: String,
    /// The class that declares it.
    pub class: String,
    /// The value.
    #[serde(flatten)]
    pub value: ShownValue,
}

/// Elements of an array.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct ShownArray {
    /// Number of elements.
    pub length: u32,
    /// Elements from `offset` on; at most 20 unless --top sets another limit.
    pub elements: Vec<ShownValue>,
    /// Index of the first listed element: 0, or the value of --offset.
    pub offset: u64,
    /// Content of a char[], or of a byte[] in UTF-8, cut after 2000 characters with …, without zeros at the end. Null for
    /// other arrays, and if the content is not text.
    pub decoded: Option<String>,
    /// The listed elements of a byte[] that is not text, in hexadecimal; null for other arrays. --top sets the number of
    /// bytes, otherwise it is 128.
    pub hex: Option<String>,
}

/// Content of a JDK collection, as its users see it.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct ShownContents {
    /// Kind of content. value is for Optional and atomic values, buffer for java.nio buffers, text for
    /// StringBuilder and StringBuffer.
    #[schemars(extend("enum" = ["list", "set", "map", "value", "buffer", "text"]))]
    pub kind: &'static str,
    /// Number of elements, entries or characters, as a field of the object records it. Null if no field records it and
    /// the elements were not counted.
    pub size: Option<u64>,
    /// Capacity of the collection: the number of elements for which it has room; for hash tables, the number of
    /// buckets. Null for other objects.
    pub capacity: Option<u64>,
    /// Position of a buffer; null for other objects.
    pub position: Option<u64>,
    /// Limit of a buffer; null for other objects.
    pub limit: Option<u64>,
    /// Characters of text, cut after 2000 with …; null for other kinds.
    pub text: Option<String>,
    /// Index of the first listed entry: 0, or the value of --offset.
    pub offset: u64,
    /// Entries in the order in which the collection is usually iterated, at most 20 unless --top sets another limit;
    /// for a buffer, the elements between position and limit.
    pub entries: Vec<ShownEntry>,
    /// True if the content is consistent. False if the dump is damaged, or if a thread was changing the collection when
    /// the dump was taken.
    pub whole: bool,
}

/// An element, or a key with its value.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct ShownEntry {
    /// Key of an entry of a map; null for other collections.
    pub key: Option<ShownValue>,
    /// The element or the value.
    pub value: ShownValue,
}

/// A value: a primitive value as text, or an object.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct ShownValue {
    /// Type of the value; Object for references of any class.
    #[serde(rename = "type")]
    #[schemars(extend("enum" = ["Object", "boolean", "char", "float", "double", "byte", "short", "int", "long"]))]
    pub kind: &'static str,
    /// Value as in Java source, without a suffix, so that no digit is lost; null for references, and if the object's
    /// record is too short to contain the value.
    pub value: Option<String>,
    /// Target of a reference; null for the null reference and for other values.
    pub object: Option<ObjectRef>,
}

/// An object in short form: its id and class, and its length, text or value.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct ObjectRef {
    /// Id of the object in this dump.
    #[schemars(extend("pattern" = ID))]
    pub id: String,
    /// Class of the object, `class com.acme.Foo` for the class object of com.acme.Foo; null if the dump has no
    /// object with this id.
    pub class: Option<String>,
    /// Length of an array; null for other objects.
    pub length: Option<u32>,
    /// For a string, its text, cut after 80 characters with …; for a boxed value, its value; otherwise null.
    pub text: Option<String>,
}

impl ShowReport {
    /// The schema's name.
    pub const SCHEMA: &'static str = "heapdiff.show/1";
}
