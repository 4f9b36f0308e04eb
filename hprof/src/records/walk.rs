//! Walks the sub-records of a heap segment and calls a visitor with each.
//!
//! This loop reads nearly all of a dump, so the loop is written for speed: no allocation, no copying, one bounds check
//! for each record. The loop never trusts a length in the file.

use crate::flaw::Flaw;
use crate::records::record::{self, ClassDump, Kind, sub};

/// The kind of a GC root. A GC root keeps an object alive from outside the heap.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum RootKind {
    /// A class that the boot loader defined. Such classes are never unloaded.
    StickyClass,
    /// A live thread.
    Thread,
    /// A local variable of a Java frame.
    JavaFrame,
    /// A JNI local reference.
    JniLocal,
    /// A JNI global reference.
    JniGlobal,
    /// A reference from a native stack.
    NativeStack,
    /// A reference from a thread block (tag `ROOT_THREAD_BLOCK` of the dump format).
    ThreadBlock,
    /// An object whose monitor is held.
    Monitor,
    /// An interned string (Android).
    InternedString,
    /// An object awaiting finalization (Android).
    Finalizing,
    /// An object held by a debugger (Android).
    Debugger,
    /// An object awaiting reference clean-up (Android).
    ReferenceCleanup,
    /// An object held by the VM (Android).
    VmInternal,
    /// A JNI monitor (Android).
    JniMonitor,
    /// A root whose kind the dump does not contain.
    Unknown,
    /// A class of an incomplete dump. All classes count as roots then, because GC roots may be missing.
    LoadedClass,
    /// An object without referrers in a dump that lacks the frames of parked virtual threads. It counts as a root
    /// because such a frame may hold it.
    ParkedThreads,
    /// An object without referrers in a dump without Java frames.
    NoReferrer,
}

/// A GC root in the dump.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Root {
    /// The kind of root.
    pub kind: RootKind,
    /// The object.
    pub id: crate::ids::ObjectId,
    /// The serial of the thread to which the root belongs, if any.
    pub thread: u32,
    /// For local variables, the number of the frame in the thread's trace, or -1 if there is no frame. For thread
    /// objects, the serial of the trace.
    pub frame: i32,
}

impl RootKind {
    /// All kinds of GC roots. An index stores a kind as its position in this array.
    pub(crate) const ALL: [Self; 18] = [
        Self::StickyClass,
        Self::Thread,
        Self::JavaFrame,
        Self::JniLocal,
        Self::JniGlobal,
        Self::NativeStack,
        Self::ThreadBlock,
        Self::Monitor,
        Self::InternedString,
        Self::Finalizing,
        Self::Debugger,
        Self::ReferenceCleanup,
        Self::VmInternal,
        Self::JniMonitor,
        Self::Unknown,
        Self::LoadedClass,
        Self::ParkedThreads,
        Self::NoReferrer,
    ];

    /// Returns the kind's name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::StickyClass => "system class",
            Self::Thread => "thread",
            Self::JavaFrame => "Java frame",
            Self::JniLocal => "JNI local",
            Self::JniGlobal => "JNI global",
            Self::NativeStack => "native stack",
            Self::ThreadBlock => "thread block",
            Self::Monitor => "busy monitor",
            Self::InternedString => "interned string",
            Self::Finalizing => "finalizing",
            Self::Debugger => "debugger",
            Self::ReferenceCleanup => "reference cleanup",
            Self::VmInternal => "VM internal",
            Self::JniMonitor => "JNI monitor",
            Self::Unknown => "unknown root",
            Self::LoadedClass => "loaded class",
            Self::ParkedThreads => "parked virtual threads, frames not in this dump",
            Self::NoReferrer => "unknown (no referrer)",
        }
    }

    /// Returns true if roots of this kind belong to a thread and are children of it in the dominator tree.
    #[must_use]
    pub const fn belongs_to_thread(self) -> bool {
        matches!(
            self,
            Self::JavaFrame | Self::JniLocal | Self::NativeStack | Self::ThreadBlock
        )
    }
}

/// The header of an object record: id, stack trace serial and offset.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Object {
    pub(crate) id: u64,
    /// Stack trace serial; 1 or 0 if the dump has no allocation sites.
    pub(crate) serial: u32,
    /// Offset of the record in the file.
    pub(crate) at: usize,
}

/// A visitor of records. Every method does nothing by default, and the compiler removes methods that do nothing.
pub(crate) trait Visitor {
    fn instance(&mut self, _object: Object, _class: u64, _body: &[u8]) {}
    fn object_array(&mut self, _object: Object, _class: u64, _elements: &[u8]) {}
    fn primitive_array(&mut self, _object: Object, _kind: Kind, _len: u32, _elements: &[u8]) {}
    fn class_dump(&mut self, _at: usize, _class: ClassDump) {}
    fn root(&mut self, _root: Root) {}
    /// Called before each record. If it returns true, the walk ends there.
    #[inline]
    fn stop(&mut self, _tag: u8) -> bool {
        false
    }
}

/// Damage at which a walk over records ended early: the offset and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Damage {
    pub(crate) offset: usize,
    pub(crate) flaw: Flaw,
}

/// Walks `bytes[start..end]`. The first byte has to be the tag of a sub-record. Returns the offset at which the walk
/// ended.
pub(crate) fn walk<V: Visitor>(
    bytes: &[u8],
    start: usize,
    end: usize,
    id_size: usize,
    visitor: &mut V,
) -> Result<usize, Damage> {
    match id_size {
        8 => walk_with_id_size::<V, 8>(bytes, start, end, visitor),
        _ => walk_with_id_size::<V, 4>(bytes, start, end, visitor),
    }
}

#[inline(always)]
pub(crate) fn read_id<const ID: usize>(bytes: &[u8], at: usize) -> u64 {
    if ID == 8 {
        be64(bytes, at)
    } else {
        u64::from(be32(bytes, at))
    }
}

#[inline(always)]
fn be64(bytes: &[u8], at: usize) -> u64 {
    bytes[at..]
        .first_chunk()
        .map_or(0, |b| u64::from_be_bytes(*b))
}

#[inline(always)]
fn be32(bytes: &[u8], at: usize) -> u32 {
    bytes[at..]
        .first_chunk()
        .map_or(0, |b| u32::from_be_bytes(*b))
}

fn walk_with_id_size<V: Visitor, const ID: usize>(
    bytes: &[u8],
    start: usize,
    end: usize,
    visitor: &mut V,
) -> Result<usize, Damage> {
    let segment = &bytes[start..end];
    let mut at = 0;
    while at < segment.len() {
        let tag = segment[at];
        if visitor.stop(tag) {
            return Ok(start + at);
        }
        let rest = &segment[at + 1..];
        let fixed = match tag {
            sub::INSTANCE => 2 * ID + 8,
            sub::OBJECT_ARRAY => 2 * ID + 8,
            sub::PRIMITIVE_ARRAY | sub::PRIMITIVE_ARRAY_NODATA => ID + 9,
            _ => {
                let used = walk_rare_record::<V, ID>(tag, rest, start + at, visitor)?;
                at += 1 + used;
                continue;
            }
        };
        if rest.len() < fixed {
            return Err(truncated_record(start + at, tag, fixed, rest.len()));
        }
        let (head, rest) = rest.split_at(fixed);
        let object = Object {
            id: read_id::<ID>(head, 0),
            serial: be32(head, ID),
            at: start + at,
        };
        let content = match tag {
            sub::INSTANCE => be32(head, 2 * ID + 4) as usize,
            sub::OBJECT_ARRAY => (be32(head, ID + 4) as usize).saturating_mul(ID),
            _ => {
                let Some(kind) = Kind::from_code(head[ID + 8]).filter(|&k| k != Kind::Object)
                else {
                    return Err(Damage {
                        offset: start + at,
                        flaw: Flaw::UnknownElement {
                            element: head[ID + 8],
                        },
                    });
                };
                let len = be32(head, ID + 4);
                let size = (len as usize).saturating_mul(kind.size(ID));
                let held = if tag == sub::PRIMITIVE_ARRAY { size } else { 0 };
                if held > rest.len() {
                    return Err(truncated_record(start + at, tag, held, rest.len()));
                }
                visitor.primitive_array(object, kind, len, &rest[..held]);
                at += 1 + fixed + held;
                continue;
            }
        };
        if content > rest.len() {
            return Err(truncated_record(start + at, tag, content, rest.len()));
        }
        if tag == sub::INSTANCE {
            visitor.instance(object, read_id::<ID>(head, ID + 4), &rest[..content]);
        } else {
            visitor.object_array(object, read_id::<ID>(head, ID + 8), &rest[..content]);
        }
        at += 1 + fixed + content;
    }
    Ok(end)
}

#[cold]
fn truncated_record(offset: usize, tag: u8, needs: usize, left: usize) -> Damage {
    let kind = tag;
    let flaw = Flaw::CutSubRecord { kind, needs, left };
    Damage { offset, flaw }
}

/// Handles roots, classes and the additional records of Android. Returns the number of bytes after the tag.
fn walk_rare_record<V: Visitor, const ID: usize>(
    tag: u8,
    rest: &[u8],
    at: usize,
    visitor: &mut V,
) -> Result<usize, Damage> {
    use RootKind as R;
    if tag == sub::CLASS_DUMP {
        let Some((class, used)) = record::class_dump(rest, ID) else {
            return Err(truncated_record(at, tag, 7 * ID + 14, rest.len()));
        };
        visitor.class_dump(at, class);
        return Ok(used);
    }
    let (kind, size) = match tag {
        sub::ROOT_UNKNOWN => (R::Unknown, ID),
        sub::ROOT_JNI_GLOBAL => (R::JniGlobal, 2 * ID),
        sub::ROOT_JNI_LOCAL => (R::JniLocal, ID + 8),
        sub::ROOT_JAVA_FRAME => (R::JavaFrame, ID + 8),
        sub::ROOT_NATIVE_STACK => (R::NativeStack, ID + 4),
        sub::ROOT_STICKY_CLASS => (R::StickyClass, ID),
        sub::ROOT_THREAD_BLOCK => (R::ThreadBlock, ID + 4),
        sub::ROOT_MONITOR_USED => (R::Monitor, ID),
        sub::ROOT_THREAD_OBJECT => (R::Thread, ID + 8),
        sub::ROOT_INTERNED_STRING => (R::InternedString, ID),
        sub::ROOT_FINALIZING => (R::Finalizing, ID),
        sub::ROOT_DEBUGGER => (R::Debugger, ID),
        sub::ROOT_REFERENCE_CLEANUP => (R::ReferenceCleanup, ID),
        sub::ROOT_VM_INTERNAL => (R::VmInternal, ID),
        sub::ROOT_JNI_MONITOR => (R::JniMonitor, ID + 8),
        // Two records of Android dumps that contain no GC root. `UNREACHABLE` has the id of an object that is known to
        // be unreachable. `HEAP_DUMP_INFO` has the name of the heap to which the next objects belong.
        sub::UNREACHABLE => (R::Unknown, ID),
        sub::HEAP_DUMP_INFO => (R::Unknown, ID + 4),
        _ => {
            return Err(Damage {
                offset: at,
                flaw: Flaw::UnknownSubRecord { kind: tag },
            });
        }
    };
    if rest.len() < size {
        return Err(truncated_record(at, tag, size, rest.len()));
    }
    if matches!(tag, sub::UNREACHABLE | sub::HEAP_DUMP_INFO) {
        return Ok(size);
    }
    let (thread, frame) = match kind {
        R::JniLocal | R::JavaFrame | R::Thread => {
            (be32(rest, ID), be32(rest, ID + 4).cast_signed())
        }
        R::NativeStack | R::ThreadBlock => (be32(rest, ID), -1),
        _ => (0, -1),
    };
    visitor.root(Root {
        kind,
        id: crate::ids::ObjectId(read_id::<ID>(rest, 0)),
        thread,
        frame,
    });
    Ok(size)
}

/// Returns the offsets of object records that split `bytes[start..end]` into parts of about `piece` bytes each, so that
/// several threads can read one large HEAP_DUMP record.
pub(crate) fn split_points(
    bytes: &[u8],
    start: usize,
    end: usize,
    id_size: usize,
    piece: usize,
) -> Vec<usize> {
    struct Splitter {
        points: Vec<usize>,
        next: usize,
        piece: usize,
    }
    impl Splitter {
        #[inline(always)]
        fn at(&mut self, at: usize) {
            if at >= self.next {
                self.points.push(at);
                self.next = at + self.piece;
            }
        }
    }
    impl Visitor for Splitter {
        fn instance(&mut self, o: Object, _: u64, _: &[u8]) {
            self.at(o.at);
        }
        fn object_array(&mut self, o: Object, _: u64, _: &[u8]) {
            self.at(o.at);
        }
        fn primitive_array(&mut self, o: Object, _: Kind, _: u32, _: &[u8]) {
            self.at(o.at);
        }
    }
    let mut splitter = Splitter {
        points: Vec::new(),
        next: start + piece,
        piece,
    };
    // Damage is ignored here. The later pass over the parts of the record reports it.
    let _ = walk(bytes, start, end, id_size, &mut splitter);
    splitter.points
}
