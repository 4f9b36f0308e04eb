//! Reduces a dump to the objects of one class, so that it is small enough for the repository.
//!
//! The reduced dump keeps the header and the size of the file: an unreachable array of zeros fills the rest. So it can
//! still be matched with the recording of its JVM, which has the dump's time and size.

use std::collections::{BTreeMap, BTreeSet};

/// A class of a dump.
#[derive(Clone, Default)]
struct Class {
    superclass: u64,
    /// The class's sub-record with its tag, unchanged from the dump.
    record: Vec<u8>,
    /// Static fields with a reference. Each has the ID of its name, and the offset of the reference from the start of
    /// `record`.
    statics: Vec<(u64, usize)>,
    /// IDs of the names of the class's fields.
    names: Vec<u64>,
    /// Types of the instance fields.
    fields: Vec<u8>,
}

#[derive(Default)]
struct Dump<'a> {
    strings: BTreeMap<u64, &'a [u8]>,
    /// The record and the name of each loaded class.
    loaded: BTreeMap<u64, (&'a [u8], u64)>,
    trace: Vec<&'a [u8]>,
    classes: BTreeMap<u64, Class>,
    /// The record of each object, with its tag.
    objects: BTreeMap<u64, &'a [u8]>,
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> &'a [u8] {
        let taken = &self.bytes[self.at..self.at + count];
        self.at += count;
        taken
    }

    fn number(&mut self, width: usize) -> u64 {
        self.take(width)
            .iter()
            .fold(0, |n, &b| n << 8 | u64::from(b))
    }
}

/// Size of the dump's header in bytes: the format name with its final zero, the width of IDs, and the time.
const HEADER: usize = 31;
/// Width of ids. Only dumps of 64-bit JVMs are trimmed.
const ID: usize = 8;

fn width(of: u8) -> usize {
    match of {
        4 | 8 => 1,
        5 | 9 => 2,
        6 | 10 => 4,
        _ => 8,
    }
}

/// Returns a dump with only those objects that the given static fields reach. Each entry of `keep` is the class and the
/// name of a field.
///
/// # Panics
/// Panics if the dump is damaged.
#[must_use]
pub(crate) fn trimmed(bytes: &[u8], keep: &[(&str, &str)]) -> Vec<u8> {
    let dump = read(bytes);
    let class_of = |name: &str| {
        let is_named = |id: &u64| dump.strings.get(id).is_some_and(|s| *s == name.as_bytes());
        let mut loaded = dump.loaded.iter();
        let found = loaded.find(|(_, (_, id))| is_named(id));
        *found.unwrap_or_else(|| panic!("no class {name}")).0
    };
    let kept: Vec<u64> = keep.iter().map(|(name, _)| class_of(name)).collect();
    let always = ["java/lang/Class", "java/lang/Object"].map(class_of);
    let mut classes: BTreeSet<u64> = always.into_iter().collect();
    let mut objects: BTreeSet<u64> = BTreeSet::new();
    let mut work: Vec<u64> = Vec::new();
    for (id, (_, field)) in kept.iter().zip(keep) {
        let class = &dump.classes[id];
        let is_named = |name: &u64| {
            dump.strings
                .get(name)
                .is_some_and(|s| *s == field.as_bytes())
        };
        let statics = class.statics.iter().filter(|(name, _)| is_named(name));
        work.extend(statics.map(|&(_, at)| id_at(&class.record, at)));
        add_class(&dump, *id, &mut classes);
    }
    while let Some(id) = work.pop() {
        let Some(record) = dump.objects.get(&id) else {
            continue;
        };
        if objects.insert(id) {
            references(&dump, record, &mut classes, &mut work);
        }
    }
    write(bytes, &dump, &kept, &classes, &objects)
}

fn add_class(dump: &Dump<'_>, mut id: u64, classes: &mut BTreeSet<u64>) {
    while let Some(class) = dump.classes.get(&id) {
        if !classes.insert(id) {
            return;
        }
        id = class.superclass;
    }
}

fn id_at(record: &[u8], at: usize) -> u64 {
    Reader { bytes: record, at }.number(ID)
}

/// Adds the class of an object to `classes`, and the targets of the object's references to `to`.
fn references(dump: &Dump<'_>, record: &[u8], classes: &mut BTreeSet<u64>, to: &mut Vec<u64>) {
    match record[0] {
        0x21 => {
            let class = id_at(record, 13);
            add_class(dump, class, classes);
            let (mut at, mut of) = (25, class);
            while let Some(class) = dump.classes.get(&of) {
                for &field in &class.fields {
                    if field == 2 {
                        to.push(id_at(record, at));
                    }
                    at += width(field);
                }
                of = class.superclass;
            }
        }
        0x22 => {
            add_class(dump, id_at(record, 17), classes);
            to.extend((25..record.len()).step_by(ID).map(|at| id_at(record, at)));
        }
        _ => {}
    }
}

fn read(bytes: &[u8]) -> Dump<'_> {
    let mut dump = Dump::default();
    let mut reader = Reader { bytes, at: HEADER };
    while reader.at < bytes.len() {
        let start = reader.at;
        let tag = reader.number(1);
        reader.take(4);
        let length = reader.number(4) as usize;
        let body = reader.take(length);
        let record = &bytes[start..reader.at];
        match tag {
            0x01 => {
                dump.strings.insert(id_at(body, 0), &body[ID..]);
            }
            0x02 => {
                let (class, name) = (id_at(body, 4), id_at(body, 16));
                dump.loaded.insert(class, (record, name));
            }
            0x05 if dump.trace.is_empty() => dump.trace.push(record),
            0x0c | 0x1c => heap(body, &mut dump),
            _ => {}
        }
    }
    dump
}

fn heap<'a>(body: &'a [u8], dump: &mut Dump<'a>) {
    let mut reader = Reader { bytes: body, at: 0 };
    while reader.at < body.len() {
        let start = reader.at;
        let tag = reader.number(1);
        let id = reader.number(ID);
        match tag {
            0x20 => {
                let class = class(&mut reader, start);
                dump.classes.insert(id, class);
                continue;
            }
            0x21 => {
                reader.take(4 + ID);
                let count = reader.number(4) as usize;
                reader.take(count);
            }
            0x22 => {
                reader.take(4);
                let count = reader.number(4) as usize;
                reader.take(ID + count * ID);
            }
            0x23 => {
                reader.take(4);
                let count = reader.number(4) as usize;
                let of = reader.number(1) as u8;
                reader.take(count * width(of));
            }
            // The sub-records of GC roots, which are skipped.
            0x01 | 0x02 | 0x03 | 0x08 => drop(reader.take(8)),
            0x04 | 0x06 => drop(reader.take(4)),
            0x05 | 0x07 | 0xff => {}
            other => panic!("unknown record {other:#x} at {start}"),
        }
        if (0x21..=0x23).contains(&tag) {
            dump.objects.insert(id, &body[start..reader.at]);
        }
    }
}

fn class(reader: &mut Reader<'_>, start: usize) -> Class {
    let mut class = Class::default();
    reader.take(4);
    class.superclass = reader.number(ID);
    reader.take(5 * ID + 4);
    for _ in 0..reader.number(2) {
        reader.take(2);
        let of = reader.number(1) as u8;
        reader.take(width(of));
    }
    for _ in 0..reader.number(2) {
        let name = reader.number(ID);
        class.names.push(name);
        let of = reader.number(1) as u8;
        if of == 2 {
            class.statics.push((name, reader.at - start));
        }
        reader.take(width(of));
    }
    for _ in 0..reader.number(2) {
        class.names.push(reader.number(ID));
        class.fields.push(reader.number(1) as u8);
    }
    class.record = reader.bytes[start..reader.at].to_vec();
    class
}

fn write(
    bytes: &[u8],
    dump: &Dump<'_>,
    kept: &[u64],
    classes: &BTreeSet<u64>,
    objects: &BTreeSet<u64>,
) -> Vec<u8> {
    let mut names: BTreeSet<u64> = BTreeSet::new();
    for id in classes {
        names.extend(dump.loaded.get(id).map(|loaded| loaded.1));
        names.extend(&dump.classes[id].names);
    }
    let mut out = bytes[..HEADER].to_vec();
    let record = |out: &mut Vec<u8>, tag: u8, body: &[u8]| {
        out.extend([tag, 0, 0, 0, 0]);
        out.extend((body.len() as u32).to_be_bytes());
        out.extend(body);
    };
    for id in names {
        let text = dump.strings.get(&id).copied().unwrap_or_default();
        record(&mut out, 0x01, &[&id.to_be_bytes()[..], text].concat());
    }
    for id in classes {
        out.extend(dump.loaded.get(id).map_or(&[][..], |loaded| loaded.0));
    }
    for trace in &dump.trace {
        out.extend(*trace);
    }
    let mut heap = Vec::new();
    for id in kept {
        heap.push(0x05);
        heap.extend(id.to_be_bytes());
    }
    for id in classes {
        let class = &dump.classes[id];
        let mut record = class.record.clone();
        // Set the IDs of the loader, the signers, the protection domain and the two reserved fields to zero.
        record[21..21 + 5 * ID].fill(0);
        for &(_, at) in &class.statics {
            if !objects.contains(&id_at(&record, at)) {
                record[at..at + ID].fill(0);
            }
        }
        heap.extend(record);
    }
    for id in objects {
        heap.extend(dump.objects[id]);
    }
    // The size of everything in the reduced dump except the elements of the array of zeros.
    let own = out.len() + 9 + heap.len() + 18 + 9;
    let rest = bytes.len().checked_sub(own).expect("a smaller dump");
    let id = objects.last().copied().unwrap_or(0) + (1 << 24);
    heap.push(0x23);
    heap.extend(id.to_be_bytes());
    heap.extend(1_u32.to_be_bytes());
    heap.extend((rest as u32).to_be_bytes());
    heap.push(8);
    heap.resize(heap.len() + rest, 0);
    record(&mut out, 0x1c, &heap);
    record(&mut out, 0x2c, &[]);
    assert_eq!(out.len(), bytes.len(), "the size of the file");
    out
}
