//! Reads the JVM's version from the heap before the dominator tree exists.
//!
//! [`Snapshot::jvm`](crate::Snapshot::jvm) reads the same property from a loaded snapshot.

use crate::graph::missing_roots::Parts;
use crate::ids::ObjectId;
use crate::records::record::Kind;
use crate::records::walk::{self, Object, Visitor};

const KEY: &str = "java.vm.version";
/// Maximum number of buckets and entries that are read. A JVM has some hundred system properties.
const ENTRIES: usize = 1 << 12;
/// Maximum length of a key or value in bytes.
const TEXT: usize = 256;

/// Returns the system property `java.vm.version`.
///
/// Cost: to read one object, the code walks over a few hundred records. The search for the property reads many objects.
pub(crate) fn read(parts: &Parts<'_>) -> Option<String> {
    let system = *parts.classes.by_name("java.lang.System").first()?;
    let mut statics = parts.classes[system].statics.iter();
    let properties = statics.find(|s| &*s.name == "props" && s.kind == Kind::Object)?;
    let properties = parts.instance(properties.value)?;
    // Since JDK 9, the properties are in a separate map.
    let map = match parts.reference(properties, "map") {
        Some(map) => parts.instance(map)?,
        None => properties,
    };
    let Record::Objects(buckets) = parts.record(parts.reference(map, "table")?)? else {
        return None;
    };
    let ids = buckets.chunks_exact(parts.id_size).map(number);
    let mut seen = 0;
    for mut entry in ids.filter(|&id| id != 0) {
        while entry != 0 && seen < ENTRIES {
            seen += 1;
            let Some(node) = parts.instance(entry) else {
                break;
            };
            let key = parts.reference(node, "key");
            if key.and_then(|key| parts.text(key)).as_deref() == Some(KEY) {
                let value = parts.reference(node, "val");
                return parts.text(value.or_else(|| parts.reference(node, "value"))?);
            }
            // A bucket of the hash table is a list, or a tree that has its first entry in the field `first`.
            let next = parts.reference(node, "next");
            entry = next.or_else(|| parts.reference(node, "first")).unwrap_or(0);
        }
    }
    None
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |n, &b| n << 8 | u64::from(b))
}

/// An instance: its class, and the bytes of its fields.
type Instance<'a> = (u64, &'a [u8]);

/// The content of a record.
#[derive(Clone, Copy)]
enum Record<'a> {
    Instance(Instance<'a>),
    Objects(&'a [u8]),
    Primitives(Kind, &'a [u8]),
}

impl<'a> Parts<'a> {
    /// Returns the record of an object. Walks over the records from the last waypoint (a known record offset) before
    /// the object.
    fn record(&self, id: u64) -> Option<Record<'a>> {
        let object = self.map.by_id(id, self.split);
        let leaf = object.checked_sub(self.split.inner);
        let nth = match leaf {
            Some(leaf) => leaf,
            None => object.checked_sub(self.split.classes)?,
        };
        let pieces = &self.scanned.pieces;
        let after = match leaf {
            Some(_) => pieces.partition_point(|p| p.first_leaf <= nth),
            None => pieces.partition_point(|p| p.first_inner <= nth),
        };
        let piece = pieces.get(after.checked_sub(1)?)?.segment;
        let waypoint = self.scanned.waypoints.before(leaf.is_some(), nth);
        let start = waypoint.unwrap_or(0).clamp(piece.start, piece.end);
        let mut visitor = RecordVisitor { id, at: None };
        // Errors of the walk are ignored, because the pass over all objects already reported any damage.
        let _ = walk::walk(self.source, start, piece.end, self.id_size, &mut visitor);
        let (at, found) = visitor.at?;
        let body = |head: usize, len: usize| self.source.get(at + 1 + head..)?.get(..len);
        Some(match found {
            Found::Instance(class, len) => {
                Record::Instance((class, body(2 * self.id_size + 8, len)?))
            }
            Found::Objects(len) => Record::Objects(body(2 * self.id_size + 8, len)?),
            Found::Primitives(kind, len) => Record::Primitives(kind, body(self.id_size + 9, len)?),
        })
    }

    fn instance(&self, id: u64) -> Option<Instance<'a>> {
        match self.record(id)? {
            Record::Instance(instance) => Some(instance),
            _ => None,
        }
    }

    /// Returns the bytes of a field. Fields of a class come before those of its superclass.
    fn field(&self, (class, body): Instance<'a>, name: &str, kind: Kind) -> Option<&'a [u8]> {
        let class = self.classes.by_id(ObjectId(class))?;
        let mut at = 0;
        let chain = self.classes.chain(class);
        for field in chain.flat_map(|c| self.classes[c].fields.iter()) {
            let size = field.kind.size(self.id_size);
            if &*field.name == name && field.kind == kind {
                return body.get(at..at + size);
            }
            at += size;
        }
        None
    }

    /// Returns the reference in a field; `None` if there is no field with this name, or if its value is null.
    fn reference(&self, instance: Instance<'a>, name: &str) -> Option<u64> {
        let id = self.field(instance, name, Kind::Object).map(number);
        id.filter(|&id| id != 0)
    }

    /// Returns the content of a string.
    fn text(&self, id: u64) -> Option<String> {
        let string = self.instance(id)?;
        let Record::Primitives(kind, bytes) = self.record(self.reference(string, "value")?)? else {
            return None;
        };
        let bytes = bytes.get(..TEXT).unwrap_or(bytes);
        let is_latin = kind == Kind::Byte
            && self
                .field(string, "coder", Kind::Byte)
                .is_none_or(|coder| coder == [0]);
        // The name of the property and its value have only ASCII characters.
        is_latin.then(|| bytes.iter().map(|&b| char::from(b)).collect())
    }
}

#[derive(Clone, Copy)]
enum Found {
    Instance(u64, usize),
    Objects(usize),
    Primitives(Kind, usize),
}

/// A visitor that finds the record of an object.
struct RecordVisitor {
    id: u64,
    at: Option<(usize, Found)>,
}

impl RecordVisitor {
    #[inline(always)]
    fn see(&mut self, object: Object, found: Found) {
        if object.id == self.id && self.at.is_none() {
            self.at = Some((object.at, found));
        }
    }
}

impl Visitor for RecordVisitor {
    fn instance(&mut self, object: Object, class: u64, body: &[u8]) {
        self.see(object, Found::Instance(class, body.len()));
    }
    fn object_array(&mut self, object: Object, _: u64, elements: &[u8]) {
        self.see(object, Found::Objects(elements.len()));
    }
    fn primitive_array(&mut self, object: Object, kind: Kind, _: u32, elements: &[u8]) {
        self.see(object, Found::Primitives(kind, elements.len()));
    }
    fn stop(&mut self, _: u8) -> bool {
        self.at.is_some()
    }
}
