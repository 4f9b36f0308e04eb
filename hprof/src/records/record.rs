//! Record tags, and parsers for rare records: the header, names, classes, frames.
//!
//! Object records make up nearly all of a dump. [`crate::records::walk`] reads them with a plain cursor.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use nom::bytes::complete::{tag, take, take_until};
use nom::number::complete::{be_u16, be_u32, be_u64, u8 as byte};
use nom::{IResult, Parser};

use crate::bytes::gzip;
use crate::error::{Error, Result};

/// Top-level record tags.
pub(crate) mod tag {
    pub(crate) const UTF8: u8 = 0x01;
    pub(crate) const LOAD_CLASS: u8 = 0x02;
    pub(crate) const UNLOAD_CLASS: u8 = 0x03;
    pub(crate) const STACK_FRAME: u8 = 0x04;
    pub(crate) const STACK_TRACE: u8 = 0x05;
    pub(crate) const ALLOC_SITES: u8 = 0x06;
    pub(crate) const HEAP_SUMMARY: u8 = 0x07;
    pub(crate) const START_THREAD: u8 = 0x0a;
    pub(crate) const END_THREAD: u8 = 0x0b;
    pub(crate) const CPU_SAMPLES: u8 = 0x0d;
    pub(crate) const CONTROL_SETTINGS: u8 = 0x0e;
    pub(crate) const HEAP_DUMP: u8 = 0x0c;
    pub(crate) const HEAP_DUMP_SEGMENT: u8 = 0x1c;
    pub(crate) const HEAP_DUMP_END: u8 = 0x2c;
}

/// Sub-record tags inside a heap dump segment.
pub(crate) mod sub {
    pub(crate) const ROOT_UNKNOWN: u8 = 0xff;
    pub(crate) const ROOT_JNI_GLOBAL: u8 = 0x01;
    pub(crate) const ROOT_JNI_LOCAL: u8 = 0x02;
    pub(crate) const ROOT_JAVA_FRAME: u8 = 0x03;
    pub(crate) const ROOT_NATIVE_STACK: u8 = 0x04;
    pub(crate) const ROOT_STICKY_CLASS: u8 = 0x05;
    pub(crate) const ROOT_THREAD_BLOCK: u8 = 0x06;
    pub(crate) const ROOT_MONITOR_USED: u8 = 0x07;
    pub(crate) const ROOT_THREAD_OBJECT: u8 = 0x08;
    pub(crate) const CLASS_DUMP: u8 = 0x20;
    pub(crate) const INSTANCE: u8 = 0x21;
    pub(crate) const OBJECT_ARRAY: u8 = 0x22;
    pub(crate) const PRIMITIVE_ARRAY: u8 = 0x23;
    // Android's additions (format 1.0.3).
    pub(crate) const ROOT_INTERNED_STRING: u8 = 0x89;
    pub(crate) const ROOT_FINALIZING: u8 = 0x8a;
    pub(crate) const ROOT_DEBUGGER: u8 = 0x8b;
    pub(crate) const ROOT_REFERENCE_CLEANUP: u8 = 0x8c;
    pub(crate) const ROOT_VM_INTERNAL: u8 = 0x8d;
    pub(crate) const ROOT_JNI_MONITOR: u8 = 0x8e;
    pub(crate) const UNREACHABLE: u8 = 0x90;
    pub(crate) const PRIMITIVE_ARRAY_NODATA: u8 = 0xc3;
    pub(crate) const HEAP_DUMP_INFO: u8 = 0xfe;
}

/// The type of a value, with its code in the dump.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Kind {
    /// A reference.
    Object = 2,
    /// `boolean`
    Boolean = 4,
    /// `char`
    Char = 5,
    /// `float`
    Float = 6,
    /// `double`
    Double = 7,
    /// `byte`
    Byte = 8,
    /// `short`
    Short = 9,
    /// `int`
    Int = 10,
    /// `long`
    Long = 11,
}

impl Kind {
    pub(crate) const PRIMITIVES: [Self; 8] = [
        Self::Boolean,
        Self::Char,
        Self::Float,
        Self::Double,
        Self::Byte,
        Self::Short,
        Self::Int,
        Self::Long,
    ];

    /// Returns the type with this code in the dump.
    #[must_use]
    #[inline]
    pub const fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            2 => Self::Object,
            4 => Self::Boolean,
            5 => Self::Char,
            6 => Self::Float,
            7 => Self::Double,
            8 => Self::Byte,
            9 => Self::Short,
            10 => Self::Int,
            11 => Self::Long,
            _ => return None,
        })
    }

    /// Returns the size of a value in the dump, in bytes. References have the dump's id size.
    #[must_use]
    #[inline]
    pub const fn size(self, id_size: usize) -> usize {
        match self {
            Self::Object => id_size,
            Self::Boolean | Self::Byte => 1,
            Self::Char | Self::Short => 2,
            Self::Float | Self::Int => 4,
            Self::Double | Self::Long => 8,
        }
    }

    /// Returns the type's name in Java; `Object` for references.
    #[must_use]
    pub const fn java_name(self) -> &'static str {
        match self {
            Self::Object => "Object",
            Self::Boolean => "boolean",
            Self::Char => "char",
            Self::Float => "float",
            Self::Double => "double",
            Self::Byte => "byte",
            Self::Short => "short",
            Self::Int => "int",
            Self::Long => "long",
        }
    }

    /// Returns the type for the first letter of a field descriptor.
    pub(crate) const fn from_descriptor(letter: u8) -> Option<Self> {
        Some(match letter {
            b'Z' => Self::Boolean,
            b'C' => Self::Char,
            b'F' => Self::Float,
            b'D' => Self::Double,
            b'B' => Self::Byte,
            b'S' => Self::Short,
            b'I' => Self::Int,
            b'J' => Self::Long,
            b'L' | b'[' => Self::Object,
            _ => return None,
        })
    }
}

/// Maximum size of a header in bytes.
const HEADER: usize = 128;

/// The dump's header.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Header {
    /// The name and version of the format, for example `JAVA PROFILE 1.0.2`.
    pub version: String,
    /// Size of an id in bytes: 4 or 8.
    pub id_size: usize,
    /// Time of the dump, in milliseconds since 1970.
    pub taken_ms: u64,
    /// Offset of the first record.
    pub(crate) end: usize,
}

impl Header {
    /// Returns the header of a file, plain or gzip. Reads only the beginning of the file. Returns `None` if the header
    /// cannot be read, and for pipes, because reading would consume their bytes.
    #[must_use]
    pub fn of_file(path: &Path) -> Option<Self> {
        let file = File::open(path).ok()?;
        if !file.metadata().ok()?.is_file() {
            return None;
        }
        let (reader, _) = gzip::unpacked(BufReader::new(file)).ok()?;
        let mut first = Vec::new();
        reader.take(HEADER as u64).read_to_end(&mut first).ok()?;
        header(&first).ok()
    }
}

/// Parses the header.
///
/// # Errors
/// Returns an error if the bytes do not begin with `JAVA PROFILE`, or if the id size is not 4 or 8.
pub(crate) fn header(input: &[u8]) -> Result<Header> {
    type RawHeader<'a> = (&'a [u8], &'a [u8], u32, u64);
    let result: IResult<&[u8], RawHeader<'_>> =
        (take_until("\0"), tag("\0"), be_u32, be_u64).parse(&input[..input.len().min(HEADER)]);
    let magic = b"JAVA PROFILE 1.0";
    let Ok((rest, (version, _, id_size, taken_ms))) = result else {
        if input.len() < 64 && input.starts_with(&magic[..magic.len().min(input.len())]) {
            return Err(Error::Header {
                offset: input.len() as u64,
                what: "the file ends inside the header of the dump".into(),
            });
        }
        return Err(not_a_dump(input));
    };
    if !version.starts_with(magic) {
        return Err(not_a_dump(input));
    }
    let end = input.len().min(128) - rest.len();
    if id_size != 4 && id_size != 8 {
        let what = format!(
            "the dump is damaged: its object ids have {id_size} bytes, but only 4 or 8 are possible"
        );
        return Err(Error::Header {
            offset: version.len() as u64 + 1,
            what,
        });
    }
    let version = String::from_utf8_lossy(version).into_owned();
    Ok(Header {
        version,
        id_size: id_size as usize,
        taken_ms,
        end,
    })
}

fn not_a_dump(input: &[u8]) -> Error {
    let shown: String = input
        .iter()
        .take(16)
        .map(|b| b.escape_ascii().to_string())
        .collect();
    let hint = match input {
        [b'P', b'K', ..] => " (a zip archive: unpack it first)",
        [0x28, 0xb5, 0x2f, 0xfd, ..] => " (zstd: decompress it first)",
        [0xfd, b'7', b'z', b'X', b'Z', ..] => " (xz: decompress it first)",
        [b'B', b'Z', b'h', b'1'..=b'9', ..] => " (bzip2: decompress it first)",
        [0x04, 0x22, 0x4d, 0x18, ..] => " (lz4: decompress it first)",
        [b'7', b'z', 0xbc, 0xaf, ..] => " (a 7-Zip archive: unpack it first)",
        [b'F', b'L', b'R', 0, ..] => " (a JFR recording)",
        [0x7f, b'E', b'L', b'F', ..] => {
            " (an executable or a core dump: `jhsdb jmap --binaryheap` converts the core dump of a JVM)"
        }
        _ if input.starts_with(b"heapdiff summary\r\n") => {
            let what = "it is a summary, which has no objects; if it is compressed, decompress it, and compare it with a dump: `heapdiff SUMMARY.heap AFTER.hprof`";
            return Error::NotADump(what.into());
        }
        _ if input.starts_with(b"JAVA PROFILE ") => {
            let what =
                "it is a text HPROF file; run the hprof agent with format=b for a binary dump";
            return Error::NotADump(what.into());
        }
        _ if input
            .get(2..)
            .is_some_and(|s| s.starts_with(b"portable heap dump")) =>
        {
            return Error::NotADump(
                "it is a PHD dump of an OpenJ9 or IBM JVM, which has no field data, so heapdiff cannot use it; write a system dump (`jcmd PID Dump.system`), and export it as HPROF with Eclipse MAT and its DTFJ plug-in"
                    .into(),
            );
        }
        _ if input.starts_with(b"// Version: ") => {
            return Error::NotADump(
                "it is a classic (text) heap dump of an OpenJ9 or IBM JVM, which has no field data, so heapdiff cannot use it; write a system dump (`jcmd PID Dump.system`), and export it as HPROF with Eclipse MAT and its DTFJ plug-in"
                    .into(),
            );
        }
        _ => "",
    };
    Error::NotADump(format!(
        "it begins with \"{shown}\"{hint}, but a dump begins with \"JAVA PROFILE\""
    ))
}

/// Returns a parser for an id.
pub(crate) fn id<'a>(id_size: usize) -> impl Fn(&'a [u8]) -> IResult<&'a [u8], u64> {
    move |input| {
        if id_size == 8 {
            be_u64(input)
        } else {
            be_u32(input).map(|(rest, v)| (rest, u64::from(v)))
        }
    }
}

/// A LOAD_CLASS record: class serial, class object, name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoadClass {
    pub(crate) serial: u32,
    pub(crate) class: u64,
    pub(crate) name: u64,
}

pub(crate) fn load_class(input: &[u8], id_size: usize) -> Option<LoadClass> {
    let (_, (serial, class, _, name)) = (
        be_u32::<_, nom::error::Error<_>>,
        id(id_size),
        be_u32,
        id(id_size),
    )
        .parse(input)
        .ok()?;
    Some(LoadClass {
        serial,
        class,
        name,
    })
}

/// An entry of an ALLOC_SITES record: the live objects of a class that one stack allocated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AllocSite {
    pub(crate) is_array: bool,
    pub(crate) class_serial: u32,
    pub(crate) live_bytes: u32,
    pub(crate) live_objects: u32,
}

/// Size of an ALLOC_SITES record before its entries (totals and the number of entries), and size of an entry, in bytes.
pub(crate) const SITES_HEAD: usize = 34;
pub(crate) const SITES_ROW: usize = 25;

/// Returns the entries of an ALLOC_SITES record. The result does not contain a truncated entry.
pub(crate) fn alloc_sites(body: &[u8]) -> impl Iterator<Item = AllocSite> {
    let word = |row: &[u8], at: usize| {
        u32::from_be_bytes([row[at], row[at + 1], row[at + 2], row[at + 3]])
    };
    let rows = body
        .get(SITES_HEAD..)
        .unwrap_or_default()
        .chunks_exact(SITES_ROW);
    rows.map(move |row| AllocSite {
        is_array: row[0] != 0,
        class_serial: word(row, 1),
        live_bytes: word(row, 9),
        live_objects: word(row, 13),
    })
}

/// A STACK_FRAME record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameRecord {
    pub(crate) id: u64,
    pub(crate) method: u64,
    pub(crate) source: u64,
    pub(crate) class_serial: u32,
    pub(crate) line: i32,
}

pub(crate) fn frame(input: &[u8], id_size: usize) -> Option<FrameRecord> {
    let word = || id(id_size);
    let (_, (id, method, _signature, source, class_serial, line)) = (
        word(),
        word(),
        word(),
        word(),
        be_u32::<_, nom::error::Error<_>>,
        be_u32,
    )
        .parse(input)
        .ok()?;
    Some(FrameRecord {
        id,
        method,
        source,
        class_serial,
        line: line.cast_signed(),
    })
}

/// A STACK_TRACE record. Contains the number of its frame ids, but not the ids themselves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trace {
    pub(crate) serial: u32,
    pub(crate) thread_serial: u32,
    pub(crate) frames: u32,
}

/// Size of a STACK_TRACE record before its frame ids, in bytes.
pub(crate) const TRACE_HEAD: usize = 12;

pub(crate) fn trace(input: &[u8]) -> Option<Trace> {
    let (_, (serial, thread_serial, frames)) = (be_u32::<_, nom::error::Error<_>>, be_u32, be_u32)
        .parse(input)
        .ok()?;
    Some(Trace {
        serial,
        thread_serial,
        frames,
    })
}

/// A CLASS_DUMP sub-record, without the tag byte.
#[derive(Debug, Default)]
pub(crate) struct ClassDump {
    pub(crate) id: u64,
    pub(crate) superclass: u64,
    pub(crate) loader: u64,
    /// Signers and the protection domain.
    pub(crate) others: [u64; 2],
    pub(crate) constants: Vec<(Kind, u64)>,
    /// Name, type and value of each static field.
    pub(crate) statics: Vec<(u64, Kind, u64)>,
    /// Name and type of each field that the class itself declares.
    pub(crate) fields: Vec<(u64, Kind)>,
}

/// Parses a CLASS_DUMP sub-record. Returns the sub-record and its length.
pub(crate) fn class_dump(input: &[u8], id_size: usize) -> Option<(ClassDump, usize)> {
    let word = || id(id_size);
    let mut class = ClassDump::default();
    let (mut rest, (id, _, superclass, loader, signers, domain, _, _, _)) = (
        word(),
        be_u32::<_, nom::error::Error<_>>,
        word(),
        word(),
        word(),
        word(),
        word(),
        word(),
        be_u32,
    )
        .parse(input)
        .ok()?;
    (class.id, class.superclass, class.loader) = (id, superclass, loader);
    class.others = [signers, domain];
    let mut count;
    (rest, count) = short(rest)?;
    for _ in 0..count {
        let (r, (_, kind)) = (be_u16::<_, nom::error::Error<_>>, byte).parse(rest).ok()?;
        let (r, value) = value(r, kind, id_size)?;
        class.constants.push((Kind::from_code(kind)?, value));
        rest = r;
    }
    (rest, count) = short(rest)?;
    for _ in 0..count {
        let (r, (name, kind)) = (word(), byte::<_, nom::error::Error<_>>).parse(rest).ok()?;
        let (r, value) = value(r, kind, id_size)?;
        class.statics.push((name, Kind::from_code(kind)?, value));
        rest = r;
    }
    (rest, count) = short(rest)?;
    for _ in 0..count {
        let (r, (name, kind)) = (word(), byte::<_, nom::error::Error<_>>).parse(rest).ok()?;
        class.fields.push((name, Kind::from_code(kind)?));
        rest = r;
    }
    Some((class, input.len() - rest.len()))
}

fn short(input: &[u8]) -> Option<(&[u8], u16)> {
    be_u16::<_, nom::error::Error<_>>(input).ok()
}

fn value(input: &[u8], kind: u8, id_size: usize) -> Option<(&[u8], u64)> {
    let size = Kind::from_code(kind)?.size(id_size);
    let (rest, bytes) = take::<_, _, nom::error::Error<_>>(size)(input).ok()?;
    Some((rest, bytes.iter().fold(0, |v, &b| v << 8 | u64::from(b))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_is_read() {
        let mut bytes = b"JAVA PROFILE 1.0.2\0\0\0\0\x08".to_vec();
        bytes.extend(1_700_000_000_000_u64.to_be_bytes());
        bytes.push(1);
        let h = header(&bytes).unwrap();
        assert_eq!(
            (h.id_size, h.taken_ms, h.end),
            (8, 1_700_000_000_000, bytes.len() - 1)
        );
    }

    #[test]
    fn a_wrong_file_is_named() {
        assert!(
            header(b"PK\x03\x04")
                .unwrap_err()
                .to_string()
                .contains("zip archive")
        );
        assert!(
            header(b"JAVA PROF")
                .unwrap_err()
                .to_string()
                .contains("ends inside the header")
        );
        assert!(
            header(b"JAVA PROFILE 1.0.2\0\0\0\0\x07aaaaaaaa")
                .unwrap_err()
                .to_string()
                .contains("7 bytes")
        );
    }

    #[test]
    fn a_truncated_class_dump_is_not_read() {
        assert!(class_dump(&[0; 40], 8).is_none());
    }
}
