//! Converts the callbacks of the heap walk to HPROF records, in the child.
//!
//! The heap walk reports one object after another: first the reference to its class, then its other references and its
//! primitive values. So an object is complete when the next object begins.
//!
//! An object gets its id when the heap walk first sees the object. The id is the first id plus the sum of the sizes of
//! all objects that got an id before. The JVM reports these sizes. So the distance to the next id is exactly the
//! object's size. If object A has 16 bytes and object B has 24 bytes, the ids are:
//!
//! ```text
//! object A: id 0x700000000
//! object B: id 0x700000010
//! next id:     0x700000028
//! ```
//!
//! The id of an object is stored as its JVMTI tag, except for value objects (`values`). [`Tally`] shows whether all
//! objects that were seen have been visited. This is one of the conditions for the end of the heap walk (see `walk`).

use std::collections::HashMap;
use std::io;

use super::image::{Form, Image, NO_TRACE, NOWHERE, REFERENCE, Slot, tag, width};
use super::target::Output;
use super::threads::LateThreads;
use super::values::ValueObject;

/// Target size of a heap dump segment, in bytes.
const SEGMENT: u64 = 1 << 20;
/// The largest object alignment that a JVM supports, in bytes. For the string constants of classes, the writer adds
/// arrays that the heap walk does not report. The size of the id range of such an array is a multiple of this
/// alignment, so that the next ids are aligned in every object layout.
const LARGEST_ALIGNMENT: u64 = 256;
/// Size of a segment's header in bytes: tag, time, length.
const HEADER: usize = 9;
/// Name in the dump for all classes that were loaded after the list of classes was made.
const LATE: &str = "loaded/while/the/snapshot/began";

/// The kind of a reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Class,
    Field,
    Element,
    Loader,
    Signers,
    ProtectionDomain,
    Static,
    Constant,
    /// A reference from a class to its superclass or to an interface. Superclasses and interfaces are known before the
    /// heap walk.
    Known,
    JniGlobal,
    SystemClass,
    Monitor,
    StackLocal,
    JniLocal,
    Thread,
    /// A reference from a GC root of another kind.
    Other,
}

/// A reference as the heap walk reports it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reference {
    pub(crate) kind: Kind,
    /// Index of the field or of the array element.
    pub(crate) index: u32,
    /// The values `thread`, `depth`, `method` and `location` are set only for references from a stack. They are the
    /// thread's id (0 if it has no id yet), and the frame's depth, method and bytecode index.
    pub(crate) thread: u64,
    pub(crate) depth: u32,
    pub(crate) method: usize,
    pub(crate) location: i64,
    /// Id of the class of the referenced object; 0 if not known.
    pub(crate) class: u64,
    pub(crate) size: u64,
    /// The length of the referenced object, if this object is an array.
    pub(crate) length: Option<u32>,
    /// Id of the object from which the reference comes; 0 if the reference comes from a GC root.
    pub(crate) from: u64,
    /// The referenced object, if it is a value object. Value objects have no tags. `of_value` is the object from which
    /// the reference comes, if that object is a value object; in this case `from` is 0.
    pub(crate) value: Option<ValueObject>,
    pub(crate) of_value: Option<ValueObject>,
}

/// Numbers of objects handled so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Number of objects that the heap walk has found so far. It has called a callback for each of them, or will do so.
    pub(crate) seen: u64,
    pub(crate) visited: u64,
    /// Number of objects whose field values are not in the dump, because their classes were loaded after the list of
    /// classes was made.
    pub(crate) late: u64,
    /// Number of arrays that were truncated because an HPROF record is at most 4 GiB long.
    pub(crate) cut: u64,
}

/// The object that the heap walk is reporting.
enum Current {
    Nothing,
    Instance {
        object: u64,
        class: u64,
        layout: Option<usize>,
    },
    Elements {
        next: u32,
        length: u32,
    },
    Primitive {
        object: u64,
        layout: usize,
    },
    Class {
        object: u64,
        layout: Option<usize>,
    },
}

struct Root {
    tag: u8,
    object: u64,
    numbers: [u32; 2],
    count: u8,
}

/// Writes the dump from the callbacks of the heap walk.
pub(crate) struct Writer<O> {
    image: Image,
    output: O,
    next: u64,
    /// `seen` and `visited` have one element for each element of [`Image::slots`]. `seen` is true if the heap walk has
    /// seen the object. `visited` is true if the object is a class that the heap walk has visited.
    seen: Vec<bool>,
    visited: Vec<bool>,
    /// Lengths of arrays of references that the heap walk has seen but not visited, by the array's id.
    lengths: HashMap<u64, u32>,
    /// Class objects that were not known before the fork, by id. The value is true if the heap walk has found an
    /// instance of the class or has visited the class object. If it is false, the dump gets an instance of
    /// `java.lang.Class` for this object, and no class record. Class objects of primitive types are written in the same
    /// way.
    strangers: HashMap<u64, bool>,
    /// Ids of value objects. Like in HotSpot's own dumps, flattened values have the ids 1, 2, 3, ...
    values_by_place: HashMap<ValueObject, u64>,
    flattened: u64,
    current: Current,
    /// Field values of the current instance.
    values: Vec<u8>,
    /// String constants of the current class.
    constants: Vec<u64>,
    roots: Vec<Root>,
    late: LateThreads,
    buffer: Vec<u8>,
    /// True while the writer writes a record that is larger than a segment. The segment of such a record contains no
    /// other record.
    streaming: bool,
    tally: Tally,
}

impl<O: Output> Writer<O> {
    /// Returns a writer for the part of a dump after its start. Either `output` already contains the start of the dump,
    /// or `output` writes the start itself.
    pub(crate) fn new(image: Image, output: O) -> Self {
        let slots = image.slots.len();
        let mut buffer = Vec::with_capacity(usize::try_from(SEGMENT).unwrap_or(0) + HEADER);
        buffer.resize(HEADER, 0);
        Self {
            next: image.next,
            late: LateThreads::new(image.threads.len()),
            image,
            output,
            seen: vec![false; slots],
            visited: vec![false; slots],
            lengths: HashMap::new(),
            strangers: HashMap::new(),
            values_by_place: HashMap::new(),
            flattened: 0,
            current: Current::Nothing,
            values: Vec::new(),
            constants: Vec::new(),
            roots: Vec::new(),
            buffer,
            streaming: false,
            tally: Tally::default(),
        }
    }

    pub(crate) fn tally(&self) -> Tally {
        self.tally
    }

    pub(crate) fn output(&self) -> &O {
        &self.output
    }

    /// Returns the [`Image`] (the part of the dump that is known before the fork) and the output. Discards the data
    /// that the heap walk has reported so far.
    pub(crate) fn into_parts(self) -> (Image, O) {
        (self.image, self.output)
    }

    /// Handles a reference. `id` is the tag of the referenced object. If `id` is 0 and the object is not a value
    /// object, this function sets `id` to a new tag.
    pub(crate) fn reference(&mut self, reference: &Reference, id: &mut u64) -> io::Result<()> {
        let id = match reference.value {
            Some(value) => self.value_id(value, reference.size),
            None => {
                self.register_object(reference, id);
                *id
            }
        };
        let from = match reference.of_value {
            Some(value) => self.values_by_place.get(&value).copied().unwrap_or(0),
            None => reference.from,
        };
        let index = reference.index;
        match reference.kind {
            Kind::Class => self.begin(from, id),
            Kind::Field => {
                self.field(index, REFERENCE, &id.to_be_bytes());
                Ok(())
            }
            Kind::Element => self.element(index, id),
            Kind::Loader => self.of_class(from, 21, id),
            Kind::Signers => self.of_class(from, 29, id),
            Kind::ProtectionDomain => self.of_class(from, 37, id),
            Kind::Static => self.static_field(from, index, &id.to_be_bytes()),
            Kind::Constant => {
                self.class(from)?;
                if self.slot(id).is_none_or(|slot| slot == Slot::Object)
                    && !self.strangers.contains_key(&id)
                {
                    self.constants.push(id);
                }
                Ok(())
            }
            Kind::Known => self.class(from).map(drop),
            _ => {
                self.root(reference, id);
                Ok(())
            }
        }
    }

    /// Handles a primitive field. `value` is big-endian.
    pub(crate) fn primitive(
        &mut self,
        is_static: bool,
        object: u64,
        index: u32,
        kind: u8,
        value: &[u8],
    ) -> io::Result<()> {
        if is_static {
            return self.static_field(object, index, value);
        }
        self.field(index, kind, value);
        Ok(())
    }

    /// Handles the contents of a primitive array.
    pub(crate) fn array(&mut self, object: u64, kind: u8, elements: &[u8]) -> io::Result<()> {
        if !matches!(self.current, Current::Primitive { object: now, .. } if now == object) {
            return Ok(());
        }
        self.current = Current::Nothing;
        let width = width(kind) as usize;
        let length = self.longest(elements.len() / width, width);
        let bytes = length as usize * width;
        self.start_record(18 + bytes as u64)?;
        self.array_start(tag::PRIMITIVE_ARRAY, object, length);
        self.buffer.push(kind);
        let elements = elements.get(..bytes).unwrap_or(elements);
        // Convert the array in pieces, so that a large array is not in memory twice.
        for piece in elements.chunks(1 << 16) {
            if width == 1 {
                self.buffer.extend_from_slice(piece);
            } else {
                let reversed = piece.chunks_exact(width).flat_map(|e| e.iter().rev());
                self.buffer.extend(reversed);
            }
            self.drain()?;
        }
        self.end_record()
    }

    /// Writes the remaining records. Called after the heap walk is over.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        self.close()?;
        let mut roots = std::mem::take(&mut self.roots);
        let traces = self.late.traces(&self.image.stacks);
        if !traces.records.is_empty() {
            self.end_segment()?;
            self.output.append(&traces.records)?;
        }
        for root in roots
            .iter_mut()
            .filter(|r| matches!(r.tag, JAVA_FRAME | JNI_LOCAL))
        {
            let [serial, depth] = root.numbers;
            root.numbers[1] = self.late.place(&traces, serial, depth);
        }
        roots.extend(traces.threads.iter().map(|&(object, serial)| Root {
            tag: THREAD,
            object,
            numbers: [serial, serial.saturating_add(NO_TRACE)],
            count: 2,
        }));
        for root in &roots {
            self.start_record(17)?;
            self.buffer.push(root.tag);
            self.buffer.extend_from_slice(&root.object.to_be_bytes());
            if root.tag == JNI_GLOBAL {
                self.buffer.extend_from_slice(&[0; 8]);
            }
            for number in &root.numbers[..usize::from(root.count)] {
                self.buffer.extend_from_slice(&number.to_be_bytes());
            }
            self.end_record()?;
        }
        self.write_late_classes()?;
        self.end_segment()?;
        self.output.append(&[tag::END, 0, 0, 0, 0, 0, 0, 0, 0])?;
        let section = self.image.start.get(self.image.section..).unwrap_or(&[]);
        self.output.overwrite(self.image.section as u64, section)
    }

    /// Writes records for the class objects that were not known before the fork.
    fn write_late_classes(&mut self) -> io::Result<()> {
        let mut strangers: Vec<(u64, bool)> = self.strangers.drain().collect();
        strangers.sort_unstable();
        let (class_class, object) = (self.image.class_class, self.image.object);
        let bytes = self
            .layout_of(class_class)
            .map_or(0, |layout| self.image.layouts[layout].bytes);
        for &(id, _) in strangers.iter().filter(|(_, is_class)| !is_class) {
            // HotSpot's own dumps also write class objects of primitive types as instances.
            self.start_record(25 + u64::from(bytes))?;
            self.buffer.push(tag::INSTANCE);
            self.buffer.extend_from_slice(&id.to_be_bytes());
            self.buffer.extend_from_slice(&NO_TRACE.to_be_bytes());
            self.buffer.extend_from_slice(&class_class.to_be_bytes());
            self.buffer.extend_from_slice(&bytes.to_be_bytes());
            let end = self.buffer.len() + bytes as usize;
            self.buffer.resize(end, 0);
            self.end_record()?;
        }
        strangers.retain(|&(_, is_class)| is_class);
        if strangers.is_empty() {
            return Ok(());
        }
        self.end_segment()?;
        let name = u64::MAX >> 1;
        let mut records = vec![tag::UTF8, 0, 0, 0, 0];
        records.extend_from_slice(&(8 + LATE.len() as u32).to_be_bytes());
        records.extend_from_slice(&name.to_be_bytes());
        records.extend_from_slice(LATE.as_bytes());
        let first = self.image.layouts.len() + 1;
        for (at, (id, _)) in strangers.iter().enumerate() {
            let serial = u32::try_from(first + at).unwrap_or(u32::MAX);
            records.extend_from_slice(&[tag::LOAD_CLASS, 0, 0, 0, 0, 0, 0, 0, 24]);
            records.extend_from_slice(&serial.to_be_bytes());
            records.extend_from_slice(&id.to_be_bytes());
            records.extend_from_slice(&NO_TRACE.to_be_bytes());
            records.extend_from_slice(&name.to_be_bytes());
        }
        self.output.append(&records)?;
        for (id, _) in strangers {
            self.start_record(71)?;
            self.buffer.push(tag::CLASS);
            self.buffer.extend_from_slice(&id.to_be_bytes());
            self.buffer.extend_from_slice(&NO_TRACE.to_be_bytes());
            self.buffer.extend_from_slice(&object.to_be_bytes());
            let end = self.buffer.len() + 40 + 4 + 6;
            self.buffer.resize(end, 0);
            self.end_record()?;
        }
        Ok(())
    }

    /// Assigns an id to the object if the object has none. Counts the object if it is seen for the first time.
    fn register_object(&mut self, reference: &Reference, id: &mut u64) {
        if *id == 0 {
            *id = self.next;
            self.next += reference.size.next_multiple_of(8).max(8);
            if reference.class == self.image.class_class {
                self.strangers.insert(*id, false);
                return;
            }
            self.tally.seen += 1;
            if let Some(length) = reference.length
                && self
                    .layout_of(reference.class)
                    .is_none_or(|layout| self.image.layouts[layout].form != Form::PrimitiveArray)
            {
                self.lengths.insert(*id, length);
            }
            return;
        }
        let Some(at) = self.place_of(*id) else {
            return;
        };
        if std::mem::replace(&mut self.seen[at], true) {
            return;
        }
        match self.image.slots[at] {
            Slot::Object => self.tally.seen += 1,
            Slot::Class(class) if self.image.layouts[class as usize].linked => self.tally.seen += 1,
            _ => {}
        }
    }

    /// Returns the id of a value object. Counts the object if it is seen for the first time.
    fn value_id(&mut self, value: ValueObject, size: u64) -> u64 {
        if let Some(&id) = self.values_by_place.get(&value) {
            return id;
        }
        let id = if value.is_flattened() {
            self.flattened += 1;
            self.flattened
        } else {
            let id = self.next;
            self.next += size.next_multiple_of(8).max(8);
            id
        };
        self.tally.seen += 1;
        self.values_by_place.insert(value, id);
        id
    }

    fn place_of(&self, id: u64) -> Option<usize> {
        let at = usize::try_from(id.checked_sub(self.image.base)? >> 3).ok()?;
        (at < self.image.slots.len()).then_some(at)
    }

    fn slot(&self, id: u64) -> Option<Slot> {
        self.place_of(id).map(|at| self.image.slots[at])
    }

    fn layout_of(&self, class: u64) -> Option<usize> {
        match self.slot(class) {
            Some(Slot::Class(layout)) => Some(layout as usize),
            _ => None,
        }
    }

    /// Begins a new object: writes the previous object, and makes the new object the current one.
    fn begin(&mut self, object: u64, class: u64) -> io::Result<()> {
        self.close()?;
        self.tally.visited += 1;
        let layout = self.layout_of(class);
        let length = self.lengths.remove(&object);
        let form = layout.map(|layout| self.image.layouts[layout].form.clone());
        self.current = match (form, layout, length) {
            (Some(Form::PrimitiveArray), Some(layout), _) => Current::Primitive { object, layout },
            (Some(Form::ObjectArray) | None, _, Some(length)) => {
                let length = self.longest(length as usize, 8);
                self.start_record(25 + 8 * u64::from(length))?;
                self.array_start(tag::OBJECT_ARRAY, object, length);
                self.buffer.extend_from_slice(&class.to_be_bytes());
                Current::Elements { next: 0, length }
            }
            _ => {
                let bytes = layout.map_or(0, |layout| self.image.layouts[layout].bytes);
                self.values.clear();
                self.values.resize(bytes as usize, 0);
                Current::Instance {
                    object,
                    class,
                    layout,
                }
            }
        };
        if layout.is_none() {
            self.tally.late += 1;
            self.strangers.insert(class, true);
        }
        Ok(())
    }

    fn field(&mut self, index: u32, kind: u8, value: &[u8]) {
        let Current::Instance {
            layout: Some(layout),
            ..
        } = self.current
        else {
            return;
        };
        let places = &self.image.layouts[layout].places;
        let place = places.get(index as usize).copied().unwrap_or(NOWHERE) as usize;
        let end = place.saturating_add(width(kind) as usize);
        if let Some(at) = self.values.get_mut(place..end)
            && at.len() == value.len()
        {
            at.copy_from_slice(value);
        }
    }

    fn element(&mut self, index: u32, id: u64) -> io::Result<()> {
        let Current::Elements { next, length } = self.current else {
            return Ok(());
        };
        if index < next || index >= length {
            return Ok(());
        }
        self.nulls(index - next)?;
        self.buffer.extend_from_slice(&id.to_be_bytes());
        self.current = Current::Elements {
            next: index + 1,
            length,
        };
        self.drain()
    }

    fn nulls(&mut self, count: u32) -> io::Result<()> {
        let mut left = 8 * count as usize;
        while left > 0 {
            let part = left.min(1 << 16);
            let end = self.buffer.len() + part;
            self.buffer.resize(end, 0);
            left -= part;
            self.drain()?;
        }
        Ok(())
    }

    /// Makes a class object the current object, unless it already is the current one. If the class is known, returns
    /// the index of its layout.
    fn class(&mut self, object: u64) -> io::Result<Option<usize>> {
        if let Current::Class {
            object: now,
            layout,
        } = self.current
            && now == object
        {
            return Ok(layout);
        }
        self.close()?;
        let layout = self.layout_of(object);
        match (layout, self.place_of(object)) {
            (Some(layout), Some(at)) => {
                if !std::mem::replace(&mut self.visited[at], true)
                    && self.image.layouts[layout].linked
                {
                    self.tally.visited += 1;
                }
            }
            _ => _ = self.strangers.insert(object, true),
        }
        self.current = Current::Class { object, layout };
        Ok(layout)
    }

    fn of_class(&mut self, class: u64, offset: usize, id: u64) -> io::Result<()> {
        if let Some(layout) = self.class(class)? {
            self.patch(
                self.image.layouts[layout].record + offset,
                &id.to_be_bytes(),
            );
        }
        Ok(())
    }

    fn static_field(&mut self, class: u64, index: u32, value: &[u8]) -> io::Result<()> {
        if let Some(layout) = self.class(class)? {
            let statics = &self.image.layouts[layout].statics;
            if let Ok(at) = statics.binary_search_by_key(&index, |&(index, _)| index) {
                self.patch(statics[at].1 as usize, value);
            }
        }
        Ok(())
    }

    /// Overwrites bytes in the class section of the dump.
    fn patch(&mut self, at: usize, bytes: &[u8]) {
        let at = self.image.section + at;
        if let Some(place) = self.image.start.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    }

    fn root(&mut self, reference: &Reference, object: u64) {
        let is_class = matches!(self.slot(object), Some(Slot::Class(_)));
        let depth = reference.depth;
        let virtual_class = self.image.virtual_state.map(|state| state.class);
        let thread = match reference.kind {
            Kind::StackLocal | Kind::JniLocal => {
                // The JVM reads the thread's tag before it reports the thread itself. So a thread that was not known
                // before the fork has no tag here.
                let thread = match reference.thread {
                    0 => self.late.current,
                    thread => thread,
                };
                (thread != 0).then(|| {
                    let serial = self.serial(thread);
                    let place = (reference.method, reference.location);
                    self.late.report(serial, depth, place);
                    serial
                })
            }
            Kind::Thread => {
                self.late.current = object;
                if !self.image.threads.contains_key(&object) {
                    self.late.serial(object);
                    return;
                }
                None
            }
            // The JVM reports a mounted virtual thread as a root of this kind.
            Kind::Other if Some(reference.class) == virtual_class => {
                self.late.current = object;
                self.late.serial(object);
                return;
            }
            _ => None,
        };
        let (tag, numbers, count) = match reference.kind {
            Kind::Monitor => (0x07, [0, 0], 0),
            // This thread takes the snapshot. The references that it holds are not GC roots of the program.
            Kind::JniLocal | Kind::StackLocal if thread == Some(0) => return,
            // The root is a constant in compiled code. The JVM's own dumps do not report it as a root.
            Kind::JniLocal if self.image.stacks.is_java(reference.method) => return,
            Kind::JniLocal => (JNI_LOCAL, [thread.unwrap_or(0), depth], 2),
            Kind::StackLocal => (JAVA_FRAME, [thread.unwrap_or(0), depth], 2),
            Kind::Thread => {
                let serial = self.serial(object);
                (THREAD, [serial, serial + NO_TRACE], 2)
            }
            Kind::SystemClass if is_class => (0x05, [0, 0], 0),
            _ => (JNI_GLOBAL, [0, 0], 0),
        };
        self.roots.push(Root {
            tag,
            object,
            numbers,
            count,
        });
    }

    /// Returns the thread's serial number. Assigns a number if the thread has none.
    fn serial(&mut self, thread: u64) -> u32 {
        match self.image.threads.get(&thread) {
            Some(&serial) => serial,
            None => self.late.serial(thread),
        }
    }

    /// Writes the current object, which is complete.
    fn close(&mut self) -> io::Result<()> {
        match std::mem::replace(&mut self.current, Current::Nothing) {
            Current::Nothing => Ok(()),
            Current::Instance { object, class, .. } => {
                let values = std::mem::take(&mut self.values);
                let state = self.image.virtual_state;
                if state.is_some_and(|state| state.class == class && state.is_alive(&values)) {
                    self.late.serial(object);
                }
                self.start_record(25 + values.len() as u64)?;
                self.buffer.push(tag::INSTANCE);
                self.buffer.extend_from_slice(&object.to_be_bytes());
                self.buffer.extend_from_slice(&NO_TRACE.to_be_bytes());
                self.buffer.extend_from_slice(&class.to_be_bytes());
                let length = u32::try_from(values.len()).unwrap_or(u32::MAX);
                self.buffer.extend_from_slice(&length.to_be_bytes());
                self.buffer.extend_from_slice(&values);
                self.values = values;
                self.end_record()
            }
            Current::Elements { next, length } => {
                self.nulls(length - next)?;
                self.end_record()
            }
            // The heap walk may report nothing for an empty array.
            Current::Primitive { object, layout } => {
                let kind = self.image.layouts[layout].elements;
                self.start_record(18)?;
                self.array_start(tag::PRIMITIVE_ARRAY, object, 0);
                self.buffer.push(kind);
                self.end_record()
            }
            Current::Class { layout, .. } => self.close_class(layout),
        }
    }

    /// Writes the string constants of the current class as an array. The JVM has an array with these constants in the
    /// heap, but the heap walk does not report that array. So the writer creates an array itself.
    fn close_class(&mut self, layout: Option<usize>) -> io::Result<()> {
        let constants = std::mem::take(&mut self.constants);
        let resolved = layout.and_then(|layout| self.image.layouts[layout].resolved);
        if let Some(resolved) = resolved
            && !constants.is_empty()
        {
            let length = self.longest(constants.len(), 8);
            let id = self.next;
            self.next += (24 + 8 * u64::from(length)).next_multiple_of(LARGEST_ALIGNMENT);
            self.start_record(25 + 8 * u64::from(length))?;
            self.array_start(tag::OBJECT_ARRAY, id, length);
            let class = self.image.object_array;
            self.buffer.extend_from_slice(&class.to_be_bytes());
            for constant in &constants[..length as usize] {
                self.buffer.extend_from_slice(&constant.to_be_bytes());
            }
            self.end_record()?;
            self.patch(resolved, &id.to_be_bytes());
        }
        self.constants = constants;
        self.constants.clear();
        Ok(())
    }

    fn array_start(&mut self, tag: u8, object: u64, length: u32) {
        self.buffer.push(tag);
        self.buffer.extend_from_slice(&object.to_be_bytes());
        self.buffer.extend_from_slice(&NO_TRACE.to_be_bytes());
        self.buffer.extend_from_slice(&length.to_be_bytes());
    }

    /// Returns `length`, but at most the number of elements that fit into one record. If `length` is larger than this
    /// number, adds one to the number of truncated arrays.
    fn longest(&mut self, length: usize, width: usize) -> u32 {
        let most = (u32::MAX as usize - 64) / width;
        self.tally.cut += u64::from(length > most);
        u32::try_from(length.min(most)).unwrap_or(0)
    }

    /// Prepares for a record of `length` bytes. Starts a new segment if the record does not fit into the current one.
    fn start_record(&mut self, length: u64) -> io::Result<()> {
        if self.buffer.len() as u64 + length > SEGMENT {
            self.end_segment()?;
        }
        if length > SEGMENT {
            self.streaming = true;
            self.header(length);
        }
        Ok(())
    }

    fn end_record(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.streaming, false) {
            self.output.append(&self.buffer)?;
            self.buffer.clear();
            self.buffer.resize(HEADER, 0);
        }
        Ok(())
    }

    /// If a record that is larger than a segment is being written and the buffer has at least [`SEGMENT`] bytes, writes
    /// the buffer to the output.
    fn drain(&mut self) -> io::Result<()> {
        if self.streaming && self.buffer.len() as u64 >= SEGMENT {
            self.output.append(&self.buffer)?;
            self.buffer.clear();
        }
        Ok(())
    }

    fn header(&mut self, length: u64) {
        let length = u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes();
        if let Some(header) = self.buffer.get_mut(..HEADER) {
            header.copy_from_slice(&[
                tag::SEGMENT,
                0,
                0,
                0,
                0,
                length[0],
                length[1],
                length[2],
                length[3],
            ]);
        }
    }

    fn end_segment(&mut self) -> io::Result<()> {
        let length = self.buffer.len() - HEADER;
        if length == 0 {
            return Ok(());
        }
        self.header(length as u64);
        self.output.append(&self.buffer)?;
        self.buffer.clear();
        self.buffer.resize(HEADER, 0);
        Ok(())
    }
}

const JNI_GLOBAL: u8 = 0x01;
const JNI_LOCAL: u8 = 0x02;
const JAVA_FRAME: u8 = 0x03;
const THREAD: u8 = 0x08;
