//! Writes a dump that is many times as large as a real one. It consists of the real dump and copies of its objects at
//! higher addresses, so its objects have the sizes and references of real objects.
//!
//! Class objects are not copied. If a static field or a GC root refers to an object, each copy of the object is a GC
//! root.

use std::collections::HashMap;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use hprof::records::{HeapRecord, Kind, Records};
use hprof::{ObjectId, Source};
use testdata::writer::{
    Body, FieldType, Framing, Header, IdSize, RecordWriter, Root, Version, tag,
};

/// Size of the heap dump segments to which the copies of the objects are written, in bytes.
const SEGMENT: usize = 64 << 20;

/// Size in bytes of the tag, time and length at the start of a record.
const HEAD: usize = 9;

type Out = RecordWriter<BufWriter<File>>;

/// Writes `dump` and `copies` copies of its objects to `file`.
pub(super) fn write(dump: &Path, copies: u64, file: &Path) -> Result<()> {
    let source = Source::open(dump).with_context(|| dump.display().to_string())?;
    let records = Records::read(&source)?;
    ensure!(
        records.header().id_size == 8 && records.warnings().is_empty(),
        "this task works only with a complete dump of a 64-bit JVM"
    );
    let out = File::create(file).with_context(|| format!("cannot write {}", file.display()))?;
    let header = Header {
        version: Version::V102,
        id_size: IdSize::Eight,
        timestamp_ms: records.header().taken_ms,
    };
    let framing = Framing::Segments { bytes: SEGMENT };
    let mut out = RecordWriter::new(BufWriter::with_capacity(1 << 20, out), &header, framing)?;
    original(&source, &mut out)?;
    let model = Model::read(&records);
    for copy in 1..=copies {
        model.copy(&records, copy, &mut out)?;
    }
    out.end_heap()?;
    out.finish()?;
    Ok(())
}

/// Writes the records of the dump except the end record.
fn original(source: &[u8], out: &mut Out) -> Result<()> {
    let end_of_text = source.iter().position(|&b| b == 0).context("no header")?;
    let mut at = end_of_text + 1 + 4 + 8;
    while let Some(head) = source.get(at..at + HEAD) {
        let length = u32::from_be_bytes([head[5], head[6], head[7], head[8]]) as usize;
        let body = source.get(at + HEAD..at + HEAD + length);
        if head[0] != tag::HEAP_DUMP_END {
            out.record(head[0], body.context("the dump ends too early")?)?;
        }
        at += HEAD + length;
    }
    Ok(())
}

/// The information about a dump that is needed to copy its objects.
struct Model {
    /// Distance, in bytes, between the addresses of one copy of the dump's objects and the addresses of the next copy.
    span: u64,
    lowest: u64,
    /// A bitmap with one bit for each 8 bytes from the lowest address. A bit is set if a class object is at its
    /// address.
    class_objects: Vec<u64>,
    /// For each class, by the ID of its class object: offsets of the references within an instance.
    references: HashMap<ObjectId, Vec<usize>>,
    /// Objects that static fields and GC roots refer to.
    held: Vec<u64>,
}

impl Model {
    fn read(records: &Records<'_>) -> Self {
        let classes = records.classes();
        let mut held = Vec::new();
        let mut references = HashMap::new();
        for (index, class) in classes.iter() {
            let statics = class.statics.iter().filter(|s| s.kind == Kind::Object);
            held.extend(statics.map(|s| s.value));
            let mut at = 0;
            let mut found = Vec::new();
            for field in classes.chain(index).flat_map(|c| &classes[c].fields) {
                if field.kind == Kind::Object {
                    found.push(at);
                }
                at += field.kind.size(8);
            }
            references.insert(class.id, found);
        }
        let (mut lowest, mut highest) = (u64::MAX, 0);
        records.for_each(|record| match record {
            HeapRecord::Root(root) => held.push(root.id.0),
            HeapRecord::Class { id, .. }
            | HeapRecord::Instance { id, .. }
            | HeapRecord::ObjectArray { id, .. }
            | HeapRecord::PrimitiveArray { id, .. } => {
                lowest = lowest.min(id.0);
                highest = highest.max(id.0);
            }
            _ => {}
        });
        let mut class_objects = vec![0; ((highest - lowest) / 512 + 1) as usize];
        for (_, class) in classes.iter() {
            if (lowest..=highest).contains(&class.id.0) {
                let bit = (class.id.0 - lowest) / 8;
                class_objects[(bit / 64) as usize] |= 1 << (bit % 64);
            }
        }
        let mut model = Self {
            // Leave 256 MiB for the object with the highest address, because its size is unknown. Round up to a page.
            span: (highest - lowest + (256 << 20)).next_multiple_of(4096),
            lowest,
            class_objects,
            references,
            held,
        };
        model.held.sort_unstable();
        model.held.dedup();
        let held = std::mem::take(&mut model.held);
        model.held = held.into_iter().filter(|&id| model.is_copied(id)).collect();
        model
    }

    /// True if the object with this ID is copied. All objects of the dump are copied, except class objects.
    fn is_copied(&self, id: u64) -> bool {
        let Some(bit) = id.checked_sub(self.lowest).map(|distance| distance / 8) else {
            return false;
        };
        let word = self.class_objects.get((bit / 64) as usize);
        word.is_some_and(|word| word >> (bit % 64) & 1 == 0)
    }

    fn moved(&self, id: u64, copy: u64) -> u64 {
        if self.is_copied(id) {
            id + copy * self.span
        } else {
            id
        }
    }

    fn copy(&self, records: &Records<'_>, copy: u64, out: &mut Out) -> Result<()> {
        let mut body = Body::new(IdSize::Eight);
        for &id in &self.held {
            let root = Root::JniGlobal { global_ref: id };
            out.sub_record(body.clear().root(root, self.moved(id, copy)).bytes())?;
        }
        let mut failed = None;
        let mut patched = Vec::new();
        records.for_each(|record| {
            body.clear();
            let done = match record {
                HeapRecord::Instance { id, class, fields } => {
                    let references = self.references.get(&class).into_iter().flatten().copied();
                    self.patch(&mut patched, fields, references, copy);
                    body.instance(self.moved(id.0, copy), 0, class.0, fields.len() as u32);
                    body.raw(&patched);
                    out.sub_record(body.bytes())
                }
                HeapRecord::ObjectArray {
                    id,
                    class,
                    elements,
                } => {
                    let references = (0..elements.len()).step_by(8);
                    self.patch(&mut patched, elements, references, copy);
                    let length = (elements.len() / 8) as u32;
                    body.object_array(self.moved(id.0, copy), 0, class.0, length);
                    body.raw(&patched);
                    out.sub_record(body.bytes())
                }
                HeapRecord::PrimitiveArray {
                    id,
                    kind,
                    len,
                    elements,
                } => {
                    body.primitive_array(self.moved(id.0, copy), 0, field_type(kind), len);
                    body.raw(elements);
                    out.sub_record(body.bytes())
                }
                _ => Ok(()),
            };
            failed = failed.take().or(done.err());
        });
        failed.map_or(Ok(()), |error| Err(error.into()))
    }

    /// Writes a copy of `bytes`. References at the given offsets refer to the copies of their targets, if the targets
    /// are copied.
    fn patch(
        &self,
        patched: &mut Vec<u8>,
        bytes: &[u8],
        references: impl Iterator<Item = usize>,
        copy: u64,
    ) {
        patched.clear();
        patched.extend_from_slice(bytes);
        for at in references {
            if let Some(found) = patched.get_mut(at..at + 8)
                && let Ok(id) = <[u8; 8]>::try_from(&*found)
            {
                found.copy_from_slice(&self.moved(u64::from_be_bytes(id), copy).to_be_bytes());
            }
        }
    }
}

const fn field_type(kind: Kind) -> FieldType {
    match kind {
        Kind::Object => FieldType::Object,
        Kind::Boolean => FieldType::Boolean,
        Kind::Char => FieldType::Char,
        Kind::Float => FieldType::Float,
        Kind::Double => FieldType::Double,
        Kind::Byte => FieldType::Byte,
        Kind::Short => FieldType::Short,
        Kind::Int => FieldType::Int,
        Kind::Long => FieldType::Long,
    }
}
