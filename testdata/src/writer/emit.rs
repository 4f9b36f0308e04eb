//! Turns a described heap into the bytes of a dump.

use std::collections::HashMap;

use super::Rng;
use super::error::BuildError;
use super::format::{Body, ClassDump, Datum, FieldType, Root, Version, tag};
use super::gzip::{Gzip, compress};
use super::heap::{ClassEntry, Content, FileOrder, HeapBuilder, ObjectEntry, Place, zero};
use super::record::{Header, RecordWriter};
use super::value::{Elements, Ref, Value};

/// A dump and the offsets of its parts.
#[derive(Debug, Clone)]
pub struct Dump {
    /// The bytes of the dump file.
    pub bytes: Vec<u8>,
    /// Offsets in the uncompressed file: every record, every sub-record, and the end.
    pub boundaries: Vec<usize>,
}

/// Assigns an ID to each distinct name, in the order in which the names are first used.
#[derive(Default)]
struct Names {
    ids: HashMap<String, u64>,
    texts: Vec<String>,
}

impl Names {
    /// IDs of names have a separate range, below every default heap address.
    const FIRST: u64 = 0x10_0000;

    fn id(&mut self, text: &str) -> u64 {
        if let Some(&id) = self.ids.get(text) {
            return id;
        }
        let id = Self::FIRST + 16 * self.texts.len() as u64;
        self.texts.push(text.to_owned());
        self.ids.insert(text.to_owned(), id);
        id
    }
}

impl HeapBuilder {
    /// Returns the dump's bytes.
    ///
    /// # Panics
    /// Panics if the description has a mistake; [`HeapBuilder::try_build`] returns it instead.
    pub fn build(self) -> Vec<u8> {
        self.build_with_offsets().0
    }

    /// Returns the dump's bytes and, in ascending order, the offsets of every record, every sub-record, and the end.
    /// The offsets are positions in the uncompressed file.
    ///
    /// # Panics
    /// Panics as [`HeapBuilder::build`] does.
    pub fn build_with_offsets(self) -> (Vec<u8>, Vec<usize>) {
        match self.try_build() {
            Ok(dump) => (dump.bytes, dump.boundaries),
            Err(error) => panic!("the description of the heap is wrong: {error}"),
        }
    }

    /// Returns the dump. If the description has a mistake, returns the mistake as an error. The builder does not
    /// change, so that callers can still query addresses and sizes, and add objects for a second dump.
    pub fn try_build(&self) -> Result<Dump, BuildError> {
        let mut names = Names::default();
        let heap = self.sub_records(&mut names)?;
        let loads = self.load_records(&mut names)?;

        let options = &self.options;
        let header = Header {
            version: options.version,
            id_size: options.id_size,
            timestamp_ms: options.timestamp_ms,
        };
        let mut out = RecordWriter::new(Vec::new(), &header, options.framing)?;
        out.track_boundaries();
        let mut body = Body::new(options.id_size);
        for (i, text) in names.texts.iter().enumerate() {
            body.clear().utf8(Names::FIRST + 16 * i as u64, text);
            out.record(tag::UTF8, body.bytes())?;
        }
        self.extra_records(&mut out, Place::Start)?;
        for (tag, bytes) in loads {
            out.record(tag, &bytes)?;
        }
        for bytes in heap {
            out.sub_record(&bytes)?;
        }
        out.end_heap()?;
        self.extra_records(&mut out, Place::End)?;
        let (bytes, boundaries) = out.finish()?;
        Ok(Dump {
            bytes: match options.gzip {
                Gzip::None => bytes,
                gzip => compress(&bytes, gzip)?,
            },
            boundaries: boundaries
                .into_iter()
                .map(|offset| offset as usize)
                .collect(),
        })
    }

    fn extra_records(
        &self,
        out: &mut RecordWriter<Vec<u8>>,
        place: Place,
    ) -> Result<(), BuildError> {
        for (at, tag, bytes) in &self.records {
            if *at == place {
                out.record(*tag, bytes)?;
            }
        }
        Ok(())
    }

    /// Returns the bodies of the records LOAD_CLASS, UNLOAD_CLASS, STACK_FRAME and STACK_TRACE, with their tags.
    fn load_records(&self, names: &mut Names) -> Result<Vec<(u8, Vec<u8>)>, BuildError> {
        let mut records = Vec::new();
        let mut push = |tag, write: &dyn Fn(&mut Body)| {
            let mut body = Body::new(self.options.id_size);
            write(&mut body);
            records.push((tag, body.into_bytes()));
        };
        for (i, class) in self.classes.iter().enumerate() {
            let (serial, name) = (i as u32 + 1, names.id(&self.file_name(&class.name)));
            push(tag::LOAD_CLASS, &|body| {
                body.load_class(serial, class.address, 1, name);
            });
            if class.unloaded {
                push(tag::UNLOAD_CLASS, &|body| {
                    body.unload_class(serial);
                });
            }
        }
        // Serial 1 is the empty trace that every object of a HotSpot dump refers to.
        push(tag::STACK_TRACE, &|body| {
            body.stack_trace(1, 0, &[]);
        });
        let mut next_frame = 1;
        for (i, trace) in self.traces.iter().enumerate() {
            let first = next_frame;
            for frame in &trace.frames {
                let method = names.id(&frame.method);
                let signature = names.id(&frame.signature);
                let source = frame.source.as_deref().map_or(0, |text| names.id(text));
                push(tag::STACK_FRAME, &|body| {
                    body.stack_frame(
                        next_frame,
                        method,
                        signature,
                        source,
                        frame.class.0 as u32 + 1,
                        frame.line,
                    );
                });
                next_frame += 1;
            }
            let ids: Vec<u64> = (first..next_frame).collect();
            push(tag::STACK_TRACE, &|body| {
                body.stack_trace(i as u32 + 2, trace.thread, &ids);
            });
        }
        Ok(records)
    }

    /// Returns all sub-records in file order.
    fn sub_records(&self, names: &mut Names) -> Result<Vec<Vec<u8>>, BuildError> {
        if let Some(error) = self.errors.first() {
            return Err(error.clone());
        }
        let options = &self.options;
        let mut classes = Vec::new();
        for class in &self.classes {
            classes.push(self.class_record(class, names)?);
        }
        let mut order: Vec<usize> = (0..self.objects.len()).collect();
        match options.order {
            FileOrder::ByAddress => order.sort_by_key(|&i| self.objects[i].address),
            FileOrder::Runs(runs) => {
                order.sort_by_key(|&i| self.objects[i].address);
                let runs = order.chunks(order.len().div_ceil(runs.max(1)).max(1));
                order = runs.rev().flatten().copied().collect();
            }
            FileOrder::Shuffled(seed) => Rng::new(seed).shuffle(&mut order),
        }
        let mut objects = Vec::new();
        for i in order {
            let object = &self.objects[i];
            let bytes = self.object_record(object)?;
            objects.extend((0..object.copies).map(|_| bytes.clone()));
        }
        let mut roots = Vec::new();
        if options.sticky_classes {
            for class in self.classes.iter().filter(|c| c.loader == Ref::Null) {
                roots.push(self.root_record(Root::StickyClass, class.address)?);
            }
        }
        for &(root, target) in &self.roots {
            roots.push(self.root_record(root, self.address(target))?);
        }

        let extra = |place| {
            self.sub_records
                .iter()
                .filter(move |(at, _)| *at == place)
                .map(|(_, bytes)| bytes.clone())
        };
        let mut all: Vec<Vec<u8>> = extra(Place::Start).collect();
        for (place, part) in [(options.roots, &mut roots), (options.classes, &mut classes)] {
            if place == Place::Start {
                all.append(part);
            }
        }
        all.append(&mut objects);
        all.append(&mut classes);
        all.append(&mut roots);
        all.extend(extra(Place::End));
        Ok(all)
    }

    fn checked(&self, address: u64) -> Result<u64, BuildError> {
        if self.options.id_size.bytes() < 8 && u32::try_from(address).is_err() {
            Err(BuildError::AddressTooWide(address))
        } else {
            Ok(address)
        }
    }

    fn datum(&self, value: Value) -> Result<Datum, BuildError> {
        Ok(match value {
            Value::Ref(target) => Datum::Id(self.checked(self.address(target))?),
            Value::Boolean(v) => Datum::Boolean(v),
            Value::Char(v) => Datum::Char(v),
            Value::Float(v) => Datum::Float(v),
            Value::Double(v) => Datum::Double(v),
            Value::Byte(v) => Datum::Byte(v),
            Value::Short(v) => Datum::Short(v),
            Value::Int(v) => Datum::Int(v),
            Value::Long(v) => Datum::Long(v),
        })
    }

    fn root_record(&self, root: Root, address: u64) -> Result<Vec<u8>, BuildError> {
        let mut body = Body::new(self.options.id_size);
        body.root(root, self.checked(address)?);
        Ok(body.into_bytes())
    }

    fn class_record(&self, class: &ClassEntry, names: &mut Names) -> Result<Vec<u8>, BuildError> {
        let most = u16::MAX as usize;
        if class.fields.len() > most || class.statics.len() > most || class.constants.len() > most {
            return Err(BuildError::TooMany("members of a class"));
        }
        let mut dump = ClassDump {
            id: self.checked(class.address)?,
            trace: 1,
            super_id: class.super_class.map_or(0, |parent| self.address(parent)),
            loader: self.checked(self.address(class.loader))?,
            signers: self.checked(self.address(class.signers))?,
            protection_domain: self.checked(self.address(class.protection_domain))?,
            instance_size: self.declared_size(class),
            ..ClassDump::default()
        };
        for &(index, value) in &class.constants {
            dump.constants.push((index, self.datum(value)?));
        }
        for (name, value) in &class.statics {
            dump.statics.push((names.id(name), self.datum(*value)?));
        }
        for (name, kind) in &class.fields {
            dump.fields.push((names.id(name), *kind));
        }
        let mut body = Body::new(self.options.id_size);
        body.class_dump(&dump);
        Ok(body.into_bytes())
    }

    /// Returns the instance size that a CLASS_DUMP contains. HotSpot writes the sum of the widths of all fields in the
    /// file. Android writes the size of an object in memory.
    fn declared_size(&self, class: &ClassEntry) -> u32 {
        if class.name.starts_with('[') {
            return 0;
        }
        if self.options.version == Version::V103 {
            return self.options.layout.instance_size(&class.shape) as u32;
        }
        let mut size = 0;
        let mut next = Some(class);
        while let Some(class) = next {
            let widths = class
                .fields
                .iter()
                .map(|(_, kind)| kind.width(self.options.id_size.bytes()));
            size += widths.sum::<usize>();
            next = class.super_class.map(|parent| &self.classes[parent.0]);
        }
        size as u32
    }

    fn object_record(&self, object: &ObjectEntry) -> Result<Vec<u8>, BuildError> {
        let id_size = self.options.id_size;
        let id = self.checked(object.address)?;
        let mut body = Body::new(id_size);
        match &object.content {
            Content::Instance { class, values } => {
                let fields = self.fields_of(*class).count();
                if values.len() > fields {
                    return Err(BuildError::TooManyValues {
                        class: self.class_name(*class).to_owned(),
                        given: values.len(),
                        fields,
                    });
                }
                let mut data = Body::new(id_size);
                for (i, (declared_by, name, kind)) in self.fields_of(*class).enumerate() {
                    let value = values.get(i).copied().unwrap_or_else(|| zero(kind));
                    if value.field_type() != kind {
                        return Err(BuildError::WrongType {
                            class: self.class_name(declared_by).to_owned(),
                            field: name.to_owned(),
                        });
                    }
                    data.datum(self.datum(value)?);
                }
                let data = data.into_bytes();
                let class = self.checked(self.address(*class))?;
                body.instance(id, object.trace, class, data.len() as u32)
                    .raw(&data);
            }
            Content::ObjectArray { class, elements } => {
                let length = array_length(elements.len())?;
                let class = self.checked(self.address(*class))?;
                body.object_array(id, object.trace, class, length);
                for &element in elements {
                    body.id(self.checked(self.address(element))?);
                }
            }
            Content::Primitives(elements) => {
                let length = array_length(elements.len())?;
                let kind = elements.field_type();
                if kind == FieldType::Object {
                    return Err(BuildError::WrongKind { address: id });
                }
                match elements {
                    Elements::NoData(..) => {
                        body.primitive_array_nodata(id, object.trace, kind, length)
                    }
                    _ => body.primitive_array(id, object.trace, kind, length),
                };
                elements.write(&mut body);
            }
        }
        Ok(body.into_bytes())
    }

    /// Returns a class name in the form that the file contains: with slashes for HotSpot, with dots and `int[]` for
    /// Android.
    fn file_name(&self, name: &str) -> String {
        if self.options.version != Version::V103 {
            return name.replace('.', "/");
        }
        let dimensions = name.bytes().take_while(|&b| b == b'[').count();
        if dimensions == 0 {
            return name.to_owned();
        }
        let element = &name[dimensions..];
        let element = match element.strip_prefix('L') {
            Some(class) => class.trim_end_matches(';'),
            None => match element {
                "Z" => "boolean",
                "C" => "char",
                "F" => "float",
                "D" => "double",
                "B" => "byte",
                "S" => "short",
                "I" => "int",
                _ => "long",
            },
        };
        format!("{element}{}", "[]".repeat(dimensions))
    }
}

fn array_length(length: usize) -> Result<u32, BuildError> {
    u32::try_from(length).map_err(|_| BuildError::TooMany("elements of an array"))
}

#[cfg(test)]
#[path = "emit_tests.rs"]
mod tests;
