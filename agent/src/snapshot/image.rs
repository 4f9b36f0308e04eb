//! The part of a dump that is known before the fork: names, classes, threads, and the position of each value in the
//! file.
//!
//! The parent prepares this part before the fork. In the class section, it leaves room for values that only the heap
//! walk reports: static fields, loaders and signers of classes. It also computes the positions of these values. At the
//! end of the dump, the child fills in these values. So all class records can precede all object records.

use std::collections::HashMap;

use heapdiff_sites::types::without_number;

use super::threads::{KnownMethod, KnownStacks, Place, VirtualState, line_at};

/// Tags of HPROF records.
pub(super) mod tag {
    pub(crate) const UTF8: u8 = 0x01;
    pub(crate) const LOAD_CLASS: u8 = 0x02;
    pub(crate) const FRAME: u8 = 0x04;
    pub(crate) const TRACE: u8 = 0x05;
    pub(crate) const SEGMENT: u8 = 0x1c;
    pub(crate) const END: u8 = 0x2c;
    pub(crate) const CLASS: u8 = 0x20;
    pub(crate) const INSTANCE: u8 = 0x21;
    pub(crate) const OBJECT_ARRAY: u8 = 0x22;
    pub(crate) const PRIMITIVE_ARRAY: u8 = 0x23;
}

/// HPROF's type number of references.
pub(super) const REFERENCE: u8 = 2;
/// Serial number of the empty stack trace, which every object record refers to.
pub(super) const NO_TRACE: u32 = 1;
/// Name of the pseudo static field in HotSpot's dumps that holds the string constants of a class.
const RESOLVED: &str = "<resolved_references>";

/// A field as JVMTI reports it.
#[derive(Debug, Clone)]
pub(crate) struct FieldInfo {
    pub(crate) name: String,
    pub(crate) kind: u8,
    pub(crate) is_static: bool,
}

/// A loaded class.
#[derive(Debug, Clone, Default)]
pub(crate) struct ClassInfo {
    /// The id of the class's `Class` object in the dump.
    pub(crate) address: u64,
    pub(crate) signature: String,
    /// True if the heap walk reports references of the class object. This is so for linked classes and interfaces, but
    /// not for array classes and primitive types.
    pub(crate) linked: bool,
    pub(crate) superclass: Option<usize>,
    pub(crate) interfaces: Vec<usize>,
    /// Id of the class loader; 0 for the boot loader.
    pub(crate) loader: u64,
    pub(crate) fields: Vec<FieldInfo>,
}

/// A frame of a thread's stack.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct FrameInfo {
    pub(crate) class: usize,
    pub(crate) method: String,
    pub(crate) signature: String,
    pub(crate) file: Option<String>,
    pub(crate) line: i32,
}

/// A method that occurs in a stack.
#[derive(Debug, Clone)]
pub(crate) struct MethodInfo {
    /// A frame of this method, without a line number.
    pub(crate) frame: FrameInfo,
    pub(crate) is_native: bool,
    /// Line table: pairs of the bytecode index where a line begins and the line number.
    pub(crate) lines: Box<[(i64, i32)]>,
}

impl MethodInfo {
    /// Returns this method's frame at a bytecode index.
    pub(crate) fn frame_at(&self, location: i64) -> FrameInfo {
        FrameInfo {
            line: line_at(&self.lines, location),
            ..self.frame.clone()
        }
    }
}

/// A platform thread.
#[derive(Debug, Clone, Default)]
pub(crate) struct ThreadInfo {
    pub(crate) address: u64,
    pub(crate) frames: Vec<FrameInfo>,
    /// True for the thread that takes the snapshot. Its stack holds objects of the agent, which are no GC roots of the
    /// program.
    pub(crate) own: bool,
}

/// The object layout of a JVM.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ObjectLayout {
    /// Size of a reference in the heap, in bytes.
    pub(crate) reference: u32,
    /// Alignment of objects, in bytes.
    pub(crate) align: u32,
}

impl ObjectLayout {
    /// Returns the string that records the object layout. The dump contains this string as a name to which no record
    /// refers. Other programs ignore such names.
    fn text(self) -> String {
        let Self { reference, align } = self;
        format!(
            "heapdiff forked dump: ids are sums of object sizes, references {reference} bytes, alignment {align} bytes"
        )
    }
}

/// All data collected from the JVM before the fork.
#[derive(Debug, Clone, Default)]
pub(crate) struct Gathered {
    pub(crate) classes: Vec<ClassInfo>,
    pub(crate) threads: Vec<ThreadInfo>,
    /// Ids of objects that are neither classes nor platform threads: class loaders and virtual threads.
    pub(crate) others: Vec<u64>,
    /// The first id that was assigned to an object.
    pub(crate) base: u64,
    /// The next id that can be assigned to an object.
    pub(crate) next: u64,
    pub(crate) taken_ms: u64,
    /// The object layout, or `None` if the heap was too full to measure it.
    pub(crate) layout: Option<ObjectLayout>,
    /// True if the heap walk reports the stacks of unmounted virtual threads.
    pub(crate) reports_virtual_threads: bool,
    /// For each virtual thread whose stack was read: its id, and the index of its stack in `stacks`.
    pub(crate) virtual_threads: Vec<(u64, usize)>,
    pub(crate) stacks: Vec<Vec<Place>>,
    /// Number of virtual threads whose stacks were not read.
    pub(crate) stacks_left: usize,
    /// Each method that occurs in a stack, with JVMTI's id of the method.
    pub(crate) methods: Vec<(usize, MethodInfo)>,
}

impl Gathered {
    /// Removes line numbers from the frames and methods of the classes for which `is_stale` returns true.
    pub(crate) fn remove_lines(&mut self, is_stale: impl Fn(usize) -> bool) {
        let frames = self.threads.iter_mut().flat_map(|t| &mut t.frames);
        for frame in frames.filter(|frame| frame.line > 0 && is_stale(frame.class)) {
            frame.line = line_at(&[], 0);
        }
        for (_, method) in &mut self.methods {
            if is_stale(method.frame.class) {
                method.lines = Box::default();
            }
        }
    }
}

/// The kind of the objects of a class: instances, arrays of references, or arrays of primitive values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Form {
    Instance,
    ObjectArray,
    PrimitiveArray,
}

/// The positions of a class's values. Static fields have positions in the class section of the dump. Other fields have
/// positions among the values of an instance.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) form: Form,
    pub(super) linked: bool,
    /// Size of an instance's field values, in bytes.
    pub(super) bytes: u32,
    /// Offset of each field in an instance's values, by JVMTI's field index; [`NOWHERE`] for static fields.
    pub(super) places: Box<[u32]>,
    /// JVMTI's index of each static field, and the offset of its value in the class section.
    pub(super) statics: Box<[(u32, u32)]>,
    /// Offset of the class's record in the class section.
    pub(super) record: usize,
    /// Offset in the class section of the reference to the class's string constants.
    pub(super) resolved: Option<usize>,
    /// HPROF's type number of an array's elements.
    pub(super) elements: u8,
}

/// Offset of a field that has no value in instances, because it is static.
pub(super) const NOWHERE: u32 = u32::MAX;

/// The kind of object to which an id refers. The id was assigned before the fork.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slot {
    Free,
    Class(u32),
    Object,
}

/// All data known before the fork, in the form that the child needs.
#[derive(Debug)]
pub(crate) struct Image {
    /// The file's content up to the end of the class section.
    pub(crate) start: Vec<u8>,
    /// The position at which the class section begins in `start`, in bytes.
    pub(super) section: usize,
    pub(super) layouts: Vec<Layout>,
    pub(super) slots: Vec<Slot>,
    /// Serial numbers of platform threads, by the thread's id. The thread that takes the snapshot has the number 0.
    pub(super) threads: HashMap<u64, u32>,
    pub(super) stacks: KnownStacks,
    /// The position of the thread's state in a virtual thread object. It is `None` if the heap walk does not report
    /// stacks of virtual threads.
    pub(super) virtual_state: Option<VirtualState>,
    pub(super) base: u64,
    pub(super) next: u64,
    /// Ids of the class objects of `Class` (this field), `Object[]` and `Object` (the next two fields).
    pub(super) class_class: u64,
    pub(super) object_array: u64,
    pub(super) object: u64,
}

/// Returns HPROF's number of the type with this JVM signature.
pub(crate) fn kind_of(signature: &str) -> u8 {
    match signature.as_bytes().first() {
        Some(b'Z') => 4,
        Some(b'C') => 5,
        Some(b'F') => 6,
        Some(b'D') => 7,
        Some(b'B') => 8,
        Some(b'S') => 9,
        Some(b'I') => 10,
        Some(b'J') => 11,
        _ => REFERENCE,
    }
}

/// Returns the size in bytes of a value of an HPROF type.
pub(super) fn width(kind: u8) -> u32 {
    match kind {
        4 | 8 => 1,
        5 | 9 => 2,
        6 | 10 => 4,
        _ => 8,
    }
}

/// Returns a class name as the JVM's own dumps write it: `java/lang/String`, `[Ljava/lang/String;`, and
/// `a/B$$Lambda+0x12` for a hidden class. Before JDK 15 the name of a VM anonymous class ends in a number, which the
/// JVM's dumps leave out.
fn name_of(signature: &str) -> String {
    let inner = signature
        .strip_prefix('L')
        .and_then(|rest| rest.strip_suffix(';'));
    without_number(inner.unwrap_or(signature)).replace('.', "+")
}

/// UTF8 records with their ids; each string is stored once.
#[derive(Default)]
struct Texts {
    known: HashMap<String, u64>,
    records: Vec<u8>,
}

impl Texts {
    fn id(&mut self, text: &str) -> u64 {
        if let Some(&id) = self.known.get(text) {
            return id;
        }
        let id = self.known.len() as u64 + 1;
        self.known.insert(text.to_owned(), id);
        record(
            &mut self.records,
            tag::UTF8,
            &[&id.to_be_bytes(), text.as_bytes()],
        );
        id
    }
}

/// Appends a top-level record.
fn record(to: &mut Vec<u8>, tag: u8, parts: &[&[u8]]) {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    to.push(tag);
    to.extend_from_slice(&[0; 4]);
    to.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
    for part in parts {
        to.extend_from_slice(part);
    }
}

/// Appends the record of a frame.
pub(super) fn frame(records: &mut Vec<u8>, id: u64, names: [u64; 3], class: u32, line: i32) {
    let [method, signature, file] = names.map(u64::to_be_bytes);
    let parts: [&[u8]; 6] = [
        &id.to_be_bytes(),
        &method,
        &signature,
        &file,
        &class.to_be_bytes(),
        &line.to_be_bytes(),
    ];
    record(records, tag::FRAME, &parts);
}

/// Appends the record of a stack trace.
pub(super) fn trace(records: &mut Vec<u8>, serial: u32, thread: u32, frames: &[u64]) {
    let mut body = Vec::with_capacity(12 + 8 * frames.len());
    for number in [serial, thread, number(frames.len())] {
        body.extend_from_slice(&number.to_be_bytes());
    }
    for id in frames {
        body.extend_from_slice(&id.to_be_bytes());
    }
    record(records, tag::TRACE, &[&body]);
}

fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

impl Image {
    pub(crate) fn new(gathered: &Gathered) -> Self {
        let mut texts = Texts::default();
        let mut records = Vec::new();
        if let Some(layout) = gathered.layout {
            texts.id(&layout.text());
        }
        let classes = &gathered.classes;
        for (index, class) in classes.iter().enumerate() {
            let name = texts.id(&name_of(&class.signature));
            let serial = number(index + 1).to_be_bytes();
            let parts: [&[u8]; 4] = [
                &serial,
                &class.address.to_be_bytes(),
                &NO_TRACE.to_be_bytes(),
                &name.to_be_bytes(),
            ];
            record(&mut records, tag::LOAD_CLASS, &parts);
        }
        let (threads, stacks) = stacks(gathered, &mut texts, &mut records);
        let mut section = Vec::new();
        let layouts: Vec<Layout> = layouts(classes, &mut texts, &mut section);
        let mut start = b"JAVA PROFILE 1.0.2\0\0\0\0\x08".to_vec();
        start.extend_from_slice(&gathered.taken_ms.to_be_bytes());
        start.append(&mut texts.records);
        start.append(&mut records);
        record(&mut start, tag::SEGMENT, &[]);
        let length = number(section.len()).to_be_bytes();
        let end = start.len();
        start[end - 4..].copy_from_slice(&length);
        start.append(&mut section);
        let slot_count = usize::try_from((gathered.next - gathered.base) >> 3).unwrap_or(0);
        let mut slots = vec![Slot::Free; slot_count];
        let mut fill = |address: u64, with: Slot| {
            let at = usize::try_from(address.wrapping_sub(gathered.base) >> 3);
            if let Some(slot) = at.ok().and_then(|at| slots.get_mut(at)) {
                *slot = with;
            }
        };
        for thread in &gathered.threads {
            fill(thread.address, Slot::Object);
        }
        for &other in &gathered.others {
            fill(other, Slot::Object);
        }
        for (index, class) in classes.iter().enumerate() {
            fill(class.address, Slot::Class(number(index)));
        }
        let named = |signature: &str| {
            let found = classes.iter().find(|class| class.signature == signature);
            found.map_or(0, |class| class.address)
        };
        Self {
            start,
            section: end,
            layouts,
            slots,
            threads,
            stacks,
            virtual_state: VirtualState::from_gathered(gathered),
            base: gathered.base,
            next: gathered.next,
            class_class: named("Ljava/lang/Class;"),
            object_array: named("[Ljava/lang/Object;"),
            object: named("Ljava/lang/Object;"),
        }
    }
}

/// Appends the frame and stack trace records. Returns the threads' serial numbers and the stacks of virtual threads.
fn stacks(
    gathered: &Gathered,
    texts: &mut Texts,
    records: &mut Vec<u8>,
) -> (HashMap<u64, u32>, KnownStacks) {
    let mut frames: HashMap<&FrameInfo, u64> = HashMap::new();
    for info in gathered.threads.iter().flat_map(|thread| &thread.frames) {
        let id = frames.len() as u64 + 1;
        if frames.contains_key(info) {
            continue;
        }
        frames.insert(info, id);
        let class = number(info.class + 1);
        frame(records, id, names_of(info, texts), class, info.line);
    }
    trace(records, NO_TRACE, 0, &[]);
    let mut serials = HashMap::new();
    for (index, thread) in gathered.threads.iter().enumerate() {
        let serial = number(index + 1);
        let ids: Vec<u64> = thread
            .frames
            .iter()
            .filter_map(|frame| frames.get(frame).copied())
            .collect();
        trace(records, serial + NO_TRACE, serial, &ids);
        serials.insert(thread.address, if thread.own { 0 } else { serial });
    }
    let method = |(id, info): &(usize, MethodInfo)| {
        let known = KnownMethod {
            names: names_of(&info.frame, texts),
            class: number(info.frame.class + 1),
            is_native: info.is_native,
            lines: info.lines.clone(),
        };
        (*id, known)
    };
    let methods = gathered.methods.iter().map(method).collect();
    let next_frame = frames.len() as u64 + 1;
    (serials, KnownStacks::new(gathered, methods, next_frame))
}

/// Returns the ids of a method's name, its signature and its source file.
fn names_of(frame: &FrameInfo, texts: &mut Texts) -> [u64; 3] {
    let file = frame.file.as_deref().map_or(0, |file| texts.id(file));
    [texts.id(&frame.method), texts.id(&frame.signature), file]
}

/// Appends the class records. Returns the positions of each class's values in the dump.
fn layouts(classes: &[ClassInfo], texts: &mut Texts, section: &mut Vec<u8>) -> Vec<Layout> {
    classes
        .iter()
        .map(|class| {
            let chain = superclasses(classes, class);
            let (places, bytes) = places(classes, class, &chain);
            let record = section.len();
            let address = |of: Option<usize>| {
                of.and_then(|of| classes.get(of))
                    .map_or(0, |class| class.address)
            };
            section.push(tag::CLASS);
            section.extend_from_slice(&class.address.to_be_bytes());
            section.extend_from_slice(&NO_TRACE.to_be_bytes());
            section.extend_from_slice(&address(class.superclass).to_be_bytes());
            section.extend_from_slice(&class.loader.to_be_bytes());
            section.extend_from_slice(&[0; 32]);
            section.extend_from_slice(&bytes.to_be_bytes());
            section.extend_from_slice(&[0; 2]);
            // Classes of the boot loader need no field `<resolved_references>`: the JVM keeps their string constants in
            // arrays that are GC roots.
            let has_resolved = class.linked && class.loader != 0;
            let statics = class.fields.iter().filter(|field| field.is_static).count();
            let count = u16::try_from(statics + usize::from(has_resolved)).unwrap_or(u16::MAX);
            section.extend_from_slice(&count.to_be_bytes());
            let resolved = has_resolved.then(|| {
                section.extend_from_slice(&texts.id(RESOLVED).to_be_bytes());
                section.push(REFERENCE);
                section.extend_from_slice(&[0; 8]);
                section.len() - 8
            });
            let first = places.len() - class.fields.len();
            let mut own = Vec::with_capacity(statics);
            for (index, field) in class.fields.iter().enumerate() {
                if field.is_static {
                    section.extend_from_slice(&texts.id(&field.name).to_be_bytes());
                    section.push(field.kind);
                    own.push((number(first + index), number(section.len())));
                    section.resize(section.len() + width(field.kind) as usize, 0);
                }
            }
            let instance: Vec<&FieldInfo> = class
                .fields
                .iter()
                .filter(|field| !field.is_static)
                .collect();
            let count = u16::try_from(instance.len()).unwrap_or(u16::MAX);
            section.extend_from_slice(&count.to_be_bytes());
            for field in instance {
                section.extend_from_slice(&texts.id(&field.name).to_be_bytes());
                section.push(field.kind);
            }
            Layout {
                form: match class.signature.as_bytes() {
                    [b'[', b'L' | b'[', ..] => Form::ObjectArray,
                    [b'[', ..] => Form::PrimitiveArray,
                    _ => Form::Instance,
                },
                linked: class.linked,
                bytes,
                places: places.into(),
                statics: own.into(),
                record,
                resolved,
                elements: kind_of(class.signature.get(1..).unwrap_or_default()),
            }
        })
        .collect()
}

/// Returns the superclasses of a class, the direct one first.
fn superclasses(classes: &[ClassInfo], class: &ClassInfo) -> Vec<usize> {
    let mut chain = Vec::new();
    let mut at = class.superclass;
    while let Some((index, above)) = at.and_then(|index| Some((index, classes.get(index)?))) {
        // A correct chain of superclasses ends by itself. This check ends the loop if the JVM reports a cycle.
        if chain.len() > classes.len() {
            break;
        }
        chain.push(index);
        at = above.superclass;
    }
    chain
}

/// Returns, for each field by JVMTI's field index, its offset in the values of an instance. Also returns the size of
/// these values.
///
/// JVMTI and HPROF order the fields of a class `C` that extends `B` and implements `I` as follows:
///
/// ```text
/// JVMTI's indexes: fields of I, B, C (static fields included)
/// HPROF's values:  instance fields of C, B
/// ```
fn places(classes: &[ClassInfo], class: &ClassInfo, chain: &[usize]) -> (Vec<u32>, u32) {
    let above = || chain.iter().filter_map(|&index| classes.get(index));
    let mut interfaces: Vec<usize> = Vec::new();
    let mut open: Vec<usize> = class.interfaces.clone();
    open.extend(above().flat_map(|class| &class.interfaces));
    while let Some(next) = open.pop() {
        if !interfaces.contains(&next) {
            interfaces.push(next);
            open.extend(classes.get(next).map_or(&[][..], |class| &class.interfaces));
        }
    }
    let of_interfaces: usize = interfaces
        .iter()
        .filter_map(|&index| classes.get(index))
        .map(|class| class.fields.len())
        .sum();
    let mut end = 0;
    let by_class: Vec<Vec<u32>> = std::iter::once(class)
        .chain(above())
        .map(|class| {
            let place = |field: &FieldInfo| {
                if field.is_static {
                    NOWHERE
                } else {
                    end += width(field.kind);
                    end - width(field.kind)
                }
            };
            class.fields.iter().map(place).collect()
        })
        .collect();
    let mut places = vec![NOWHERE; of_interfaces];
    places.extend(by_class.into_iter().rev().flatten());
    (places, end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redefined_class_loses_its_lines() {
        let frame = |class, line| FrameInfo {
            class,
            method: "run".to_owned(),
            signature: "()V".to_owned(),
            file: None,
            line,
        };
        let method = |class| MethodInfo {
            frame: frame(class, 0),
            is_native: false,
            lines: [(0, 10)].into(),
        };
        let mut gathered = Gathered {
            threads: vec![ThreadInfo {
                frames: vec![frame(0, 10), frame(1, 10), frame(1, -3)],
                ..ThreadInfo::default()
            }],
            methods: vec![(8, method(0)), (16, method(1))],
            ..Gathered::default()
        };
        gathered.remove_lines(|class| class == 1);
        let lines = gathered.threads[0].frames.iter().map(|frame| frame.line);
        assert_eq!(lines.collect::<Vec<_>>(), [10, -1, -3]);
        let places = gathered.methods.iter().map(|(_, m)| m.frame_at(5).line);
        assert_eq!(places.collect::<Vec<_>>(), [10, -1]);
    }

    #[test]
    fn names_equal_those_in_dumps_of_the_jvm() {
        for (signature, name) in [
            ("Ljava/lang/String;", "java/lang/String"),
            ("[Ljava/lang/String;", "[Ljava/lang/String;"),
            ("La/B$$Lambda.0x12;", "a/B$$Lambda+0x12"),
            ("La/B$$Lambda$1/1191747167;", "a/B$$Lambda$1"),
            (
                "Ljava/lang/invoke/LambdaForm$MH/1191747167;",
                "java/lang/invoke/LambdaForm$MH",
            ),
            ("La/B7;", "a/B7"),
            ("La/1;", "a/1"),
            ("La$b/;", "a$b/"),
        ] {
            assert_eq!(name_of(signature), name);
        }
    }
}
