//! The messages of warnings about one file, in one enum. `Display` writes the message, without a full stop.

use std::fmt;

use heapdiff_units::{counted, grouped};

use crate::ids::ObjectId;
use crate::records::record::{sub, tag};
use crate::records::repaired::Repaired;

/// A part of a file that is damaged, missing or unusual.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Flaw {
    // Flaws of the file:
    /// The dump was compressed twice.
    CompressedTwice,
    /// The dump was sent through a pipe, and its end did not arrive.
    IncompleteTransfer,
    /// The file has bytes after the gzip data.
    AfterGzip { bytes: usize, at: usize },
    /// A block of the gzip data is damaged.
    DamagedGzip { reason: String },
    /// The file has a second heap.
    LaterHeap { at: usize, own: usize },
    /// The file has a second dump.
    LaterDump { at: usize, own: usize },

    // Flaws of segments beside the dump:
    /// The segments beside the dump were read. `count` describes their number, for example `2 unmerged segments`.
    ReadSegments {
        base: String,
        count: String,
        names: String,
    },
    /// Segments were not read. `reason` is the reason.
    UnreadSegments {
        count: String,
        names: String,
        reason: String,
    },
    /// Segments are missing.
    NoSegments { names: String },
    /// A segment ends in the header of a record.
    CutSegmentHeader {
        name: String,
        left: usize,
        needs: usize,
    },
    /// A segment has something other than a heap record where a heap record has to begin.
    NoSegmentRecord {
        name: String,
        at: usize,
        left: usize,
    },
    /// The last record of a segment is truncated.
    CutSegment {
        name: String,
        left: usize,
        needs: u64,
    },

    // Flaws of records:
    /// The file ends in the header of a record.
    CutHeader { left: usize },
    /// A record is truncated. `kind` is the tag of the record.
    CutRecord { kind: u8, needs: u64, left: u64 },
    /// The heap record has no length.
    NoLength { bytes: u64 },
    /// The closing record is missing.
    NoEnd,
    /// `heapdiff repair` wrote the dump, and the repaired dump lacks a part of the original one.
    Repaired(Repaired),
    /// The dump has no heap record.
    NoHeapRecord,
    /// The dump has records of unknown kinds.
    UnknownRecords { records: u64 },
    /// A record in a segment is truncated. `kind` is the tag of the record.
    CutSubRecord { kind: u8, needs: usize, left: usize },
    /// A record in a segment has an unknown kind.
    UnknownSubRecord { kind: u8 },
    /// A primitive array has an unknown element type.
    UnknownElement { element: u8 },
    /// The end of a segment, from a damaged record on, is not read. `flaw` is the reason.
    SkippedRest { flaw: Box<Flaw>, bytes: usize },

    // Flaws of objects:
    /// Some classes have the same id as another class.
    SameClasses { classes: u64 },
    /// Some objects have the same id as another object.
    SameObjects { objects: u64 },
    /// The dump has instance records for class objects, in addition to the records of the classes.
    WrittenTwice { classes: usize },
    /// Classes have too many fields.
    TooManyFields { classes: u64 },
    /// The records of objects are too short for their fields.
    ShortBodies { fields: u64 },
    /// The JVM truncated an array.
    CutArray {
        class: String,
        id: ObjectId,
        elements: u32,
        least: u64,
        most: Option<u64>,
        of_objects: bool,
    },

    // Flaws of GC roots:
    /// The dump has no GC roots.
    NoRoots,
    /// GC roots may be missing.
    MissingRoots,
    /// The dump has no system classes.
    NoSystemClasses,
    /// The GC roots in the dump include threads, but no Java frames, JNI globals or system classes. So heapdiff adds GC
    /// roots. `added` is the number of added roots, and `kind` is their kind.
    OnlyThreads { added: usize, kind: &'static str },
    /// The dump has no frames of parked virtual threads. `version` is that of the JVM.
    NoParkedFrames {
        threads: usize,
        version: String,
        added: usize,
        kind: &'static str,
    },
    /// A dump that a forked child of an older agent wrote has no stacks of virtual threads.
    NoVirtualStacks { threads: u64 },

    // Flaws of sizes:
    /// Ids are not addresses, so a layout is assumed. If the dump has the sizes of classes, `agree` has two numbers:
    /// the number of classes whose size agrees with the assumed layout, and the number of classes that were compared.
    AssumedSizes {
        agree: Option<(usize, usize)>,
        reference: u32,
        header: u32,
        align: u32,
    },
    /// The dump leaves out null elements at the end of object arrays.
    NoTrailingNulls,
    /// The dump has flattened values, which are part of other objects. `classes` is the number of their classes.
    FlattenedValues { values: u64, classes: usize },
    /// The JVM's properties contradict the layout. `mode` is `java.vm.compressedOopsMode`.
    OtherLayout {
        mode: Option<String>,
        is_measured: bool,
        reference: u32,
    },

    // Flaws found while a redacted copy is written:
    /// A record is truncated. `kind` is the tag of the record.
    TruncatedRecord { kind: u8 },
    /// The header of a record is truncated.
    TruncatedHeader,
    /// A name is so long that it includes the next record.
    NameWithHeader,
    /// A record has a kind that no dump has.
    NotARecord { kind: u8 },
    /// The bytes after the dump are not a dump.
    ZeroedEnd { bytes: usize },
    /// Some classes have more fields than can be redacted one by one. Their instances were replaced by zeros.
    ZeroedInstances { classes: u64 },
    /// The bytes from the damage to the end of a dump were replaced by zeros. `flaw` is the damage.
    ZeroedRest { flaw: Box<Flaw>, bytes: usize },
}

impl Flaw {
    /// True if some of the dump's content is missing from the figures.
    #[must_use]
    pub const fn is_partial(&self) -> bool {
        !matches!(
            self,
            Self::CompressedTwice
                | Self::AfterGzip { .. }
                | Self::LaterHeap { .. }
                | Self::LaterDump { .. }
                | Self::ReadSegments { .. }
                | Self::UnknownRecords { .. }
                | Self::SameClasses { .. }
                | Self::SameObjects { .. }
                | Self::WrittenTwice { .. }
                | Self::MissingRoots
                | Self::NoSystemClasses
                | Self::NoVirtualStacks { .. }
                | Self::AssumedSizes { .. }
                | Self::NoTrailingNulls
                | Self::FlattenedValues { .. }
                | Self::OtherLayout { .. }
                | Self::ZeroedInstances { .. }
        )
    }
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CompressedTwice => {
                f.write_str("the dump was compressed twice with gzip, and was decompressed twice")
            }
            Self::IncompleteTransfer => f.write_str(
                "the dump was sent through a pipe, and its end did not arrive; objects that only static fields hold count as unreachable",
            ),
            Self::AfterGzip { bytes, at } => write!(
                f,
                "{bytes} bytes after the gzip data, at byte {at}, are not gzip data and were ignored; the dump is complete"
            ),
            Self::DamagedGzip { reason } => write!(
                f,
                "the gzip data is truncated or damaged in the block that starts here ({reason}); everything after it is missing"
            ),
            Self::LaterHeap { at, own } => {
                write!(
                    f,
                    "the file contains another, later heap at byte {at}, written by the hprof agent. "
                )?;
                next_dump(*own, f)
            }
            Self::LaterDump { at, own } => {
                write!(
                    f,
                    "the file contains another dump, {at} bytes after the start of this one. "
                )?;
                next_dump(*own, f)
            }
            Self::ReadSegments { base, count, names } => {
                write!(f, "heapdiff read {base} together with {count} ({names})")
            }
            Self::UnreadSegments {
                count,
                names,
                reason,
            } => write!(
                f,
                "{count} not read ({names}): {reason}. Their objects and GC roots are missing from all figures"
            ),
            Self::NoSegments { names } => write!(
                f,
                "segments not found: {names}. Their objects and GC roots are missing from all figures"
            ),
            Self::CutSegmentHeader { name, left, needs } => write!(
                f,
                "{name} is truncated inside the header of a record ({left} of {needs} bytes are there): the rest of the segment is missing"
            ),
            Self::NoSegmentRecord { name, at, left } => write!(
                f,
                "{name} is damaged: it has no heap record at byte {at}, so heapdiff skips its last {left} bytes; the objects in them are missing from all figures"
            ),
            Self::CutSegment { name, left, needs } => write!(
                f,
                "{name} is truncated: it has {left} of the {needs} bytes of its last heap record; objects and GC roots in the rest of the record are missing from all figures"
            ),
            Self::CutHeader { left } => write!(
                f,
                "the file ends inside the header of a record ({left} of 9 bytes are there): the rest of the dump is missing"
            ),
            Self::CutRecord { kind, needs, left } => cut_record(*kind, *needs, *left, f),
            Self::NoLength { bytes } => write!(
                f,
                "the dump is truncated: the length of its heap record is missing (JDK 5 to 8 write it at the end). heapdiff reads the {bytes} bytes that follow, but objects and GC roots may be missing from all figures"
            ),
            Self::NoEnd => f.write_str(
                "the dump is truncated: its closing record is missing, so objects and GC roots may be missing from all figures",
            ),
            Self::Repaired(repaired) => repaired_dump(repaired, f),
            Self::NoHeapRecord => f.write_str(
                "the dump contains no objects (no heap record): all figures are zero",
            ),
            Self::UnknownRecords { records } => {
                write!(f, "{records} records of unknown kinds were skipped")
            }
            Self::CutSubRecord { kind, needs, left } => {
                let what = match *kind {
                    sub::INSTANCE => "an object",
                    sub::OBJECT_ARRAY => "an object array",
                    sub::PRIMITIVE_ARRAY | sub::PRIMITIVE_ARRAY_NODATA => "a primitive array",
                    sub::CLASS_DUMP => "a class",
                    _ => "a root",
                };
                write!(
                    f,
                    "{what} needs {needs} bytes, but the heap segment ends after {left} of them"
                )
            }
            Self::UnknownSubRecord { kind } => write!(
                f,
                "a record in a heap segment has the unknown kind {kind:#04x}"
            ),
            Self::UnknownElement { element } => write!(
                f,
                "a primitive array has the unknown element type {element}"
            ),
            Self::SkippedRest { flaw, bytes } => write!(
                f,
                "{flaw}. heapdiff skips the last {bytes} bytes of the segment, from the start of this record, so the objects in them are missing from all figures"
            ),
            Self::SameClasses { classes } => write!(
                f,
                "{classes} class records have the id of an earlier class and were ignored"
            ),
            Self::SameObjects { objects } => write!(
                f,
                "{objects} objects have the id of an earlier object; references to these ids are counted for the earlier object"
            ),
            Self::WrittenTwice { classes } => write!(
                f,
                "{classes} class objects are also recorded as instances of java.lang.Class, so each counts as two objects"
            ),
            Self::TooManyFields { classes } => write!(
                f,
                "{classes} classes inherit more fields than fit into the file; references from their objects were not followed"
            ),
            Self::ShortBodies { fields } => write!(
                f,
                "{fields} reference fields count as null, because the records of their objects end before these fields"
            ),
            Self::CutArray {
                class,
                id,
                elements,
                least,
                most,
                of_objects,
            } => {
                write!(
                    f,
                    "the JVM truncated {class} {id} after {} elements: its real size is at least {} bytes",
                    grouped(u64::from(*elements)),
                    grouped(*least)
                )?;
                if let Some(most) = most {
                    let most = grouped(*most);
                    write!(f, ", and at most {most} (where the next object begins)")?;
                }
                f.write_str(". All figures cover only the elements in the dump")?;
                if *of_objects {
                    f.write_str(
                        ". If only the missing elements refer to an object, it counts as unreachable",
                    )?;
                }
                Ok(())
            }
            Self::NoRoots => f.write_str(
                "the dump has no GC roots (the JVM writes them last, so a truncated dump has none). heapdiff treats all classes as GC roots; objects held only by threads or JNI count as unreachable",
            ),
            Self::MissingRoots => {
                f.write_str("GC roots may be missing, so heapdiff treats all classes as GC roots")
            }
            Self::NoSystemClasses => f.write_str(
                "the dump has no system classes among its GC roots, so heapdiff treats all classes of the boot loader as GC roots",
            ),
            Self::OnlyThreads { added, kind } => {
                f.write_str(
                    "the dump has no Java frames, no JNI globals and no system classes among its GC roots (typical of `jhsdb jmap --binaryheap`). ",
                )?;
                without_referrers(*added, kind, f)?;
                f.write_str(
                    ". If the process still runs, take a dump with all roots: `jcmd PID GC.heap_dump FILE`",
                )
            }
            Self::NoParkedFrames {
                threads,
                version,
                added,
                kind,
            } => {
                write!(
                    f,
                    "the dump has no frames of parked virtual threads ({threads} of them), because JDK 19 to 21 do not write these frames (this is {version}). "
                )?;
                without_referrers(*added, kind, f)?;
                f.write_str(". JDK 22 and later write these frames")
            }
            Self::NoVirtualStacks { threads } => write!(
                f,
                "the stacks of {threads} virtual threads are missing, because an older agent wrote this dump. Objects that these threads hold are counted for other threads, or for no thread. Take a new dump: `heapdiff dump PID --fork`"
            ),
            Self::AssumedSizes {
                agree,
                reference,
                header,
                align,
            } => {
                f.write_str(
                    "sizes are assumed, not measured: object ids in this dump are numbers, not addresses (hprof agent of JDK 5 to 8). ",
                )?;
                match agree {
                    Some((agree, of)) => write!(
                        f,
                        "heapdiff uses the layout that fits {agree} of {of} classes in the allocation sites of the dump"
                    ),
                    None => {
                        f.write_str("heapdiff assumes a 64-bit JVM with compressed references")
                    }
                }?;
                write!(
                    f,
                    " (references {reference}, headers {header}, alignment {align} bytes)"
                )
            }
            Self::NoTrailingNulls => f.write_str(
                "object arrays may be longer than in this dump: the hprof agent of JDK 8 leaves out null elements at the end",
            ),
            Self::FlattenedValues { values, classes } => write!(
                f,
                "{} of {}: their bytes count in the objects and arrays that contain them",
                counted(*values, "flattened value"),
                counted(*classes as u64, "class")
            ),
            Self::OtherLayout {
                mode,
                is_measured,
                reference,
            } => {
                f.write_str("sizes may be wrong: the JVM has ")?;
                match mode {
                    Some(mode) => write!(
                        f,
                        "java.vm.compressedOopsMode={mode}, which means references of 4 bytes"
                    ),
                    None => f.write_str(
                        "no java.vm.compressedOopsMode, which means references of 8 bytes",
                    ),
                }?;
                f.write_str(if *is_measured {
                    ", but the object addresses in the dump fit references of"
                } else {
                    ", but heapdiff assumes references of"
                })?;
                write!(f, " {reference} bytes")
            }
            Self::TruncatedRecord { kind } => {
                write!(f, "a record of kind {kind:#04x} is truncated")
            }
            Self::TruncatedHeader => f.write_str("the header of a record is truncated"),
            Self::NameWithHeader => f.write_str("a name contains the header of another record"),
            Self::NotARecord { kind } => write!(f, "these bytes are not a record of a dump (kind {kind:#04x})"),
            Self::ZeroedEnd { bytes } => write!(
                f,
                "the {bytes} bytes after the dump are not a dump; in the copy they are replaced by zeros"
            ),
            Self::ZeroedInstances { classes } => write!(
                f,
                "{classes} classes have too many fields; their instances were replaced by zeros"
            ),
            Self::ZeroedRest { flaw, bytes } => write!(
                f,
                "{flaw}; the last {bytes} bytes of the file were replaced by zeros"
            ),
        }
    }
}

fn next_dump(own: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let next = own + 1;
    write!(
        f,
        "heapdiff reads dump {own} of the file; add `--dump {next}` to read the next one"
    )
}

fn without_referrers(added: usize, kind: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(
        f,
        "heapdiff therefore treats {added} objects without referrers as GC roots of the kind \"{kind}\". So some unreachable objects count as reachable. Live objects count as unreachable if only objects of their own cycle refer to them"
    )
}

fn repaired_dump(repaired: &Repaired, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str("`heapdiff repair` wrote this dump from a damaged one")?;
    let missing = missing_parts(repaired);
    if !missing.is_empty() {
        write!(f, ", which lacks {}", joined(&missing))?;
    }
    f.write_str(". Objects and GC roots may be missing from all figures")?;
    if repaired.lacks_roots() {
        f.write_str(". heapdiff treats all classes")?;
        if repaired.thread_roots > 0 {
            let threads = counted(repaired.thread_roots, "live thread");
            write!(f, " and {threads}")?;
        }
        f.write_str(" as GC roots; objects held only by stack frames or JNI count as unreachable")?;
    }
    Ok(())
}

/// Returns descriptions of the parts that a repaired dump lacks.
pub(crate) fn missing_parts(repaired: &Repaired) -> Vec<String> {
    let mut missing = Vec::new();
    if repaired.lacks_end {
        missing.push("its end".to_owned());
    }
    if repaired.left_out > 0 {
        let bytes = grouped(repaired.left_out);
        let records = repaired.places.saturating_add(repaired.records);
        let records = counted(records, "damaged record");
        missing.push(format!("{bytes} bytes of {records}"));
    }
    if repaired.parts > 0 {
        let parts = counted(repaired.parts, "segment or compressed block");
        missing.push(parts);
    }
    missing
}

fn joined(parts: &[String]) -> String {
    match parts {
        [all @ .., last] if !all.is_empty() => format!("{} and {last}", all.join(", ")),
        _ => parts.concat(),
    }
}

fn cut_record(kind: u8, needs: u64, left: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    const REST: &str = "this record and the rest of the dump are missing";
    let (what, missing) = match kind {
        tag::HEAP_DUMP | tag::HEAP_DUMP_SEGMENT => (
            "a heap record",
            "objects and GC roots in the rest of the record are missing from all figures",
        ),
        tag::UTF8 => ("a name", REST),
        tag::LOAD_CLASS => ("a class name", REST),
        tag::STACK_FRAME | tag::STACK_TRACE => ("a stack trace", REST),
        _ => ("a record", "the rest of the dump is missing"),
    };
    write!(
        f,
        "{what} (kind {kind:#04x}) is truncated: it needs {needs} bytes, but the file has only {left} more; {missing}"
    )
}
