//! The bytes of the HPROF format: tags, types, and the body of every record.
//!
//! The source is the comment at the top of HotSpot's `heapDumper.cpp`, and Android's `hprof.cc`.

/// Tags of top-level records.
#[allow(missing_docs, reason = "the names come from the HPROF format")]
pub mod tag {
    pub const UTF8: u8 = 0x01;
    pub const LOAD_CLASS: u8 = 0x02;
    pub const UNLOAD_CLASS: u8 = 0x03;
    pub const STACK_FRAME: u8 = 0x04;
    pub const STACK_TRACE: u8 = 0x05;
    pub const ALLOC_SITES: u8 = 0x06;
    pub const HEAP_SUMMARY: u8 = 0x07;
    pub const START_THREAD: u8 = 0x0a;
    pub const END_THREAD: u8 = 0x0b;
    pub const HEAP_DUMP: u8 = 0x0c;
    pub const CPU_SAMPLES: u8 = 0x0d;
    pub const CONTROL_SETTINGS: u8 = 0x0e;
    pub const HEAP_DUMP_SEGMENT: u8 = 0x1c;
    pub const HEAP_DUMP_END: u8 = 0x2c;
}

/// Tags of sub-records inside a heap dump or segment.
#[allow(missing_docs, reason = "the names come from the HPROF format")]
pub mod sub {
    pub const ROOT_UNKNOWN: u8 = 0xff;
    pub const ROOT_JNI_GLOBAL: u8 = 0x01;
    pub const ROOT_JNI_LOCAL: u8 = 0x02;
    pub const ROOT_JAVA_FRAME: u8 = 0x03;
    pub const ROOT_NATIVE_STACK: u8 = 0x04;
    pub const ROOT_STICKY_CLASS: u8 = 0x05;
    pub const ROOT_THREAD_BLOCK: u8 = 0x06;
    pub const ROOT_MONITOR_USED: u8 = 0x07;
    pub const ROOT_THREAD_OBJECT: u8 = 0x08;
    pub const CLASS_DUMP: u8 = 0x20;
    pub const INSTANCE_DUMP: u8 = 0x21;
    pub const OBJECT_ARRAY_DUMP: u8 = 0x22;
    pub const PRIMITIVE_ARRAY_DUMP: u8 = 0x23;
    pub const ANDROID_INTERNED_STRING: u8 = 0x89;
    pub const ANDROID_FINALIZING: u8 = 0x8a;
    pub const ANDROID_DEBUGGER: u8 = 0x8b;
    pub const ANDROID_REFERENCE_CLEANUP: u8 = 0x8c;
    pub const ANDROID_VM_INTERNAL: u8 = 0x8d;
    pub const ANDROID_JNI_MONITOR: u8 = 0x8e;
    pub const ANDROID_UNREACHABLE: u8 = 0x90;
    pub const ANDROID_PRIMITIVE_ARRAY_NODATA: u8 = 0xc3;
    pub const ANDROID_HEAP_DUMP_INFO: u8 = 0xfe;
}

/// The version in a dump's first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// `JAVA PROFILE 1.0.1`: a dump with one HEAP_DUMP record, from JDK 5, or a small dump from JDK 8.
    V101,
    /// `JAVA PROFILE 1.0.2`: a dump that consists of segments, from HotSpot since JDK 6.
    V102,
    /// `JAVA PROFILE 1.0.3`: Android.
    V103,
}

impl Version {
    /// Returns the text in the header.
    pub fn text(self) -> &'static str {
        match self {
            Self::V101 => "JAVA PROFILE 1.0.1",
            Self::V102 => "JAVA PROFILE 1.0.2",
            Self::V103 => "JAVA PROFILE 1.0.3",
        }
    }
}

/// The width of every ID in the dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdSize {
    /// 32-bit JVMs and Android.
    Four,
    /// 64-bit JVMs.
    Eight,
}

impl IdSize {
    /// Returns the width in bytes.
    pub fn bytes(self) -> usize {
        match self {
            Self::Four => 4,
            Self::Eight => 8,
        }
    }
}

/// The type of a field, static or array element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FieldType {
    /// A reference.
    Object,
    /// `boolean`
    Boolean,
    /// `char`
    Char,
    /// `float`
    Float,
    /// `double`
    Double,
    /// `byte`
    Byte,
    /// `short`
    Short,
    /// `int`
    Int,
    /// `long`
    Long,
}

impl FieldType {
    /// Every primitive type.
    pub const PRIMITIVES: [Self; 8] = [
        Self::Boolean,
        Self::Char,
        Self::Float,
        Self::Double,
        Self::Byte,
        Self::Short,
        Self::Int,
        Self::Long,
    ];

    /// Returns the type's code in the file.
    pub fn code(self) -> u8 {
        match self {
            Self::Object => 2,
            Self::Boolean => 4,
            Self::Char => 5,
            Self::Float => 6,
            Self::Double => 7,
            Self::Byte => 8,
            Self::Short => 9,
            Self::Int => 10,
            Self::Long => 11,
        }
    }

    /// Returns the width of a value in bytes. References have `reference` bytes.
    pub fn width(self, reference: usize) -> usize {
        match self {
            Self::Object => reference,
            Self::Boolean | Self::Byte => 1,
            Self::Char | Self::Short => 2,
            Self::Float | Self::Int => 4,
            Self::Double | Self::Long => 8,
        }
    }

    /// Returns the letter in a descriptor such as `[I`.
    pub fn descriptor(self) -> char {
        match self {
            Self::Object => 'L',
            Self::Boolean => 'Z',
            Self::Char => 'C',
            Self::Float => 'F',
            Self::Double => 'D',
            Self::Byte => 'B',
            Self::Short => 'S',
            Self::Int => 'I',
            Self::Long => 'J',
        }
    }
}

/// A value as in the file; references are IDs.
#[derive(Debug, Clone, Copy, PartialEq)]
#[allow(missing_docs, reason = "the names come from the HPROF format")]
pub enum Datum {
    Id(u64),
    Boolean(bool),
    Char(u16),
    Float(f32),
    Double(f64),
    Byte(i8),
    Short(i16),
    Int(i32),
    Long(i64),
}

impl Datum {
    /// Returns the type of the value.
    pub fn field_type(self) -> FieldType {
        match self {
            Self::Id(_) => FieldType::Object,
            Self::Boolean(_) => FieldType::Boolean,
            Self::Char(_) => FieldType::Char,
            Self::Float(_) => FieldType::Float,
            Self::Double(_) => FieldType::Double,
            Self::Byte(_) => FieldType::Byte,
            Self::Short(_) => FieldType::Short,
            Self::Int(_) => FieldType::Int,
            Self::Long(_) => FieldType::Long,
        }
    }

    /// Returns the default value of a type: zero, false or null.
    pub fn zero(kind: FieldType) -> Self {
        match kind {
            FieldType::Object => Self::Id(0),
            FieldType::Boolean => Self::Boolean(false),
            FieldType::Char => Self::Char(0),
            FieldType::Float => Self::Float(0.0),
            FieldType::Double => Self::Double(0.0),
            FieldType::Byte => Self::Byte(0),
            FieldType::Short => Self::Short(0),
            FieldType::Int => Self::Int(0),
            FieldType::Long => Self::Long(0),
        }
    }
}

/// The reason why an object is a GC root. Threads are given by their serial number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Root {
    /// ROOT_UNKNOWN
    Unknown,
    /// ROOT_JNI_GLOBAL
    JniGlobal {
        /// The ID of the global reference itself.
        global_ref: u64,
    },
    /// ROOT_JNI_LOCAL
    JniLocal {
        /// Serial number of the thread.
        thread: u32,
        /// Frame number in the thread's stack trace; -1 if there is no frame.
        frame: i32,
    },
    /// ROOT_JAVA_FRAME
    JavaFrame {
        /// Serial number of the thread.
        thread: u32,
        /// Frame number in the thread's stack trace; -1 if there is no frame.
        frame: i32,
    },
    /// ROOT_NATIVE_STACK
    NativeStack {
        /// Serial number of the thread.
        thread: u32,
    },
    /// ROOT_STICKY_CLASS
    StickyClass,
    /// ROOT_THREAD_BLOCK
    ThreadBlock {
        /// Serial number of the thread.
        thread: u32,
    },
    /// ROOT_MONITOR_USED
    MonitorUsed,
    /// ROOT_THREAD_OBJECT
    ThreadObject {
        /// Serial number of the thread.
        thread: u32,
        /// Serial number of the stack trace.
        trace: u32,
    },
    /// Android's HPROF_ROOT_INTERNED_STRING (0x89)
    InternedString,
    /// Android's HPROF_ROOT_FINALIZING (0x8a)
    Finalizing,
    /// Android's HPROF_ROOT_DEBUGGER (0x8b)
    Debugger,
    /// Android's HPROF_ROOT_REFERENCE_CLEANUP (0x8c)
    ReferenceCleanup,
    /// Android's HPROF_ROOT_VM_INTERNAL (0x8d)
    VmInternal,
    /// Android's HPROF_ROOT_JNI_MONITOR (0x8e)
    JniMonitor {
        /// Serial number of the thread.
        thread: u32,
        /// Depth in the stack.
        depth: u32,
    },
    /// Android's HPROF_UNREACHABLE (0x90)
    Unreachable,
}

/// The content of a CLASS_DUMP.
#[derive(Debug, Clone, Default)]
#[allow(missing_docs, reason = "the names come from the HPROF format")]
pub struct ClassDump {
    pub id: u64,
    pub trace: u32,
    pub super_id: u64,
    pub loader: u64,
    pub signers: u64,
    pub protection_domain: u64,
    pub instance_size: u32,
    /// Constants of the constant pool: index and value.
    pub constants: Vec<(u16, Datum)>,
    /// Static fields: name ID and value.
    pub statics: Vec<(u64, Datum)>,
    /// Instance fields: name ID and type.
    pub fields: Vec<(u64, FieldType)>,
}

/// Collects the bytes of a record, of a sub-record, or of a part of one. Numbers are big-endian.
#[derive(Debug, Clone)]
pub struct Body {
    id_size: IdSize,
    bytes: Vec<u8>,
}

impl Body {
    /// Creates an empty body with IDs of this width.
    pub fn new(id_size: IdSize) -> Self {
        Self {
            id_size,
            bytes: Vec::new(),
        }
    }

    /// Returns the bytes so far.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the bytes and consumes the body.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Clears the buffer but keeps its allocated memory.
    pub fn clear(&mut self) -> &mut Self {
        self.bytes.clear();
        self
    }

    /// Appends one byte.
    pub fn u1(&mut self, value: u8) -> &mut Self {
        self.bytes.push(value);
        self
    }

    /// Appends two bytes.
    pub fn u2(&mut self, value: u16) -> &mut Self {
        self.raw(&value.to_be_bytes())
    }

    /// Appends four bytes.
    pub fn u4(&mut self, value: u32) -> &mut Self {
        self.raw(&value.to_be_bytes())
    }

    /// Appends a signed integer of four bytes.
    pub fn i4(&mut self, value: i32) -> &mut Self {
        self.raw(&value.to_be_bytes())
    }

    /// Appends eight bytes.
    pub fn u8(&mut self, value: u64) -> &mut Self {
        self.raw(&value.to_be_bytes())
    }

    /// Appends an ID. If IDs have four bytes, only its low four bytes are written.
    pub fn id(&mut self, value: u64) -> &mut Self {
        let width = self.id_size.bytes();
        self.raw(&value.to_be_bytes()[8 - width..])
    }

    /// Appends bytes unchanged.
    pub fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// Appends a value without its type.
    pub fn datum(&mut self, value: Datum) -> &mut Self {
        match value {
            Datum::Id(id) => self.id(id),
            Datum::Boolean(v) => self.u1(u8::from(v)),
            Datum::Char(v) => self.u2(v),
            Datum::Float(v) => self.raw(&v.to_be_bytes()),
            Datum::Double(v) => self.raw(&v.to_be_bytes()),
            Datum::Byte(v) => self.raw(&v.to_be_bytes()),
            Datum::Short(v) => self.raw(&v.to_be_bytes()),
            Datum::Int(v) => self.raw(&v.to_be_bytes()),
            Datum::Long(v) => self.raw(&v.to_be_bytes()),
        }
    }

    /// Appends the body of a UTF8 record.
    pub fn utf8(&mut self, id: u64, text: &str) -> &mut Self {
        self.id(id).raw(text.as_bytes())
    }

    /// Appends the body of a LOAD_CLASS record.
    pub fn load_class(&mut self, serial: u32, class: u64, trace: u32, name: u64) -> &mut Self {
        self.u4(serial).id(class).u4(trace).id(name)
    }

    /// Appends the body of an UNLOAD_CLASS record.
    pub fn unload_class(&mut self, serial: u32) -> &mut Self {
        self.u4(serial)
    }

    /// Appends the body of a STACK_FRAME record. `class` is the serial number of the class. `line` is a line number if
    /// it is positive; 0 means none, -1 unknown, -2 compiled, and -3 native.
    pub fn stack_frame(
        &mut self,
        frame: u64,
        method: u64,
        signature: u64,
        source: u64,
        class: u32,
        line: i32,
    ) -> &mut Self {
        self.id(frame).id(method).id(signature).id(source);
        self.u4(class).i4(line)
    }

    /// Appends the body of a STACK_TRACE record. `frames` are the IDs of the frames, innermost first.
    pub fn stack_trace(&mut self, serial: u32, thread: u32, frames: &[u64]) -> &mut Self {
        self.u4(serial).u4(thread).u4(frames.len() as u32);
        for &frame in frames {
            self.id(frame);
        }
        self
    }

    /// Appends the body of a START_THREAD record. Names are IDs of UTF8 records.
    pub fn start_thread(
        &mut self,
        serial: u32,
        object: u64,
        trace: u32,
        name: u64,
        group: u64,
        parent_group: u64,
    ) -> &mut Self {
        self.u4(serial).id(object).u4(trace);
        self.id(name).id(group).id(parent_group)
    }

    /// Appends the body of an END_THREAD record.
    pub fn end_thread(&mut self, serial: u32) -> &mut Self {
        self.u4(serial)
    }

    /// Appends the body of a HEAP_SUMMARY record.
    pub fn heap_summary(
        &mut self,
        live_bytes: u32,
        live_instances: u32,
        allocated_bytes: u64,
        allocated_instances: u64,
    ) -> &mut Self {
        self.u4(live_bytes).u4(live_instances);
        self.u8(allocated_bytes).u8(allocated_instances)
    }

    /// Appends a root sub-record.
    pub fn root(&mut self, root: Root, object: u64) -> &mut Self {
        let (tag, words): (u8, &[u32]) = match root {
            Root::Unknown => (sub::ROOT_UNKNOWN, &[]),
            Root::JniGlobal { global_ref } => {
                self.u1(sub::ROOT_JNI_GLOBAL).id(object);
                return self.id(global_ref);
            }
            Root::JniLocal { thread, frame } => (sub::ROOT_JNI_LOCAL, &[thread, frame as u32]),
            Root::JavaFrame { thread, frame } => (sub::ROOT_JAVA_FRAME, &[thread, frame as u32]),
            Root::NativeStack { thread } => (sub::ROOT_NATIVE_STACK, &[thread]),
            Root::StickyClass => (sub::ROOT_STICKY_CLASS, &[]),
            Root::ThreadBlock { thread } => (sub::ROOT_THREAD_BLOCK, &[thread]),
            Root::MonitorUsed => (sub::ROOT_MONITOR_USED, &[]),
            Root::ThreadObject { thread, trace } => (sub::ROOT_THREAD_OBJECT, &[thread, trace]),
            Root::InternedString => (sub::ANDROID_INTERNED_STRING, &[]),
            Root::Finalizing => (sub::ANDROID_FINALIZING, &[]),
            Root::Debugger => (sub::ANDROID_DEBUGGER, &[]),
            Root::ReferenceCleanup => (sub::ANDROID_REFERENCE_CLEANUP, &[]),
            Root::VmInternal => (sub::ANDROID_VM_INTERNAL, &[]),
            Root::JniMonitor { thread, depth } => (sub::ANDROID_JNI_MONITOR, &[thread, depth]),
            Root::Unreachable => (sub::ANDROID_UNREACHABLE, &[]),
        };
        self.u1(tag).id(object);
        for &word in words {
            self.u4(word);
        }
        self
    }

    /// Appends a CLASS_DUMP sub-record. A count above 65,535 is truncated to its low 16 bits, because the format has no
    /// larger counts.
    pub fn class_dump(&mut self, class: &ClassDump) -> &mut Self {
        self.u1(sub::CLASS_DUMP).id(class.id).u4(class.trace);
        self.id(class.super_id).id(class.loader).id(class.signers);
        self.id(class.protection_domain).id(0).id(0);
        self.u4(class.instance_size);
        self.u2(class.constants.len() as u16);
        for &(index, value) in &class.constants {
            self.u2(index).u1(value.field_type().code()).datum(value);
        }
        self.u2(class.statics.len() as u16);
        for &(name, value) in &class.statics {
            self.id(name).u1(value.field_type().code()).datum(value);
        }
        self.u2(class.fields.len() as u16);
        for &(name, kind) in &class.fields {
            self.id(name).u1(kind.code());
        }
        self
    }

    /// Appends the head of an INSTANCE_DUMP sub-record. The caller must append `bytes` bytes of values: first the
    /// fields of the class, then the fields of its superclass, and so on.
    pub fn instance(&mut self, id: u64, trace: u32, class: u64, bytes: u32) -> &mut Self {
        self.u1(sub::INSTANCE_DUMP).id(id).u4(trace);
        self.id(class).u4(bytes)
    }

    /// Appends the head of an OBJECT_ARRAY_DUMP sub-record. The caller must append `length` IDs.
    pub fn object_array(&mut self, id: u64, trace: u32, class: u64, length: u32) -> &mut Self {
        self.u1(sub::OBJECT_ARRAY_DUMP).id(id).u4(trace);
        self.u4(length).id(class)
    }

    /// Appends the head of a PRIMITIVE_ARRAY_DUMP sub-record. The caller must append the elements.
    pub fn primitive_array(
        &mut self,
        id: u64,
        trace: u32,
        kind: FieldType,
        length: u32,
    ) -> &mut Self {
        self.u1(sub::PRIMITIVE_ARRAY_DUMP).id(id).u4(trace);
        self.u4(length).u1(kind.code())
    }

    /// Appends Android's PRIMITIVE_ARRAY_NODATA sub-record: a length without elements.
    pub fn primitive_array_nodata(
        &mut self,
        id: u64,
        trace: u32,
        kind: FieldType,
        length: u32,
    ) -> &mut Self {
        self.u1(sub::ANDROID_PRIMITIVE_ARRAY_NODATA);
        self.id(id).u4(trace).u4(length).u1(kind.code())
    }

    /// Appends Android's HEAP_DUMP_INFO sub-record, which names the Android heap (such as `zygote`) that the next
    /// objects belong to.
    pub fn heap_dump_info(&mut self, heap: u32, name: u64) -> &mut Self {
        self.u1(sub::ANDROID_HEAP_DUMP_INFO).u4(heap).id(name)
    }
}

#[cfg(test)]
#[path = "format_tests.rs"]
mod tests;
