//! The first pass: skips from one top-level record to the next by their lengths, and stores their offsets.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

use crate::bytes::source::Source;
use crate::error::{Error, Result, Warning};
use crate::flaw::Flaw;
use crate::ids::IdMap;
use crate::records::forked::Recorded;
use crate::records::missing_length;
use crate::records::modified_utf8;
use crate::records::record::{self, FrameRecord, Header, LoadClass, tag};
use crate::records::repaired::Repaired;

/// 2³². A length in a record's header has 32 bits. In dumps of very old JVMs, the length of a heap dump record may have
/// overflowed, so that it is too small by a multiple of this number. If any other length is wrong, the dump is damaged.
const WRAP: u64 = 1 << 32;

/// A range of the file that consists of sub-records (objects, classes, GC roots).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Segment {
    pub(crate) fn len(self) -> usize {
        self.end - self.start
    }
}

/// A stack trace, with the offset of its frame ids in the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TraceAt {
    pub(crate) thread_serial: u32,
    pub(crate) frames: u32,
    pub(crate) offset: usize,
}

/// For each class id (except array classes): the number of live instances plus one for the class object itself, and the
/// total of their bytes.
pub(crate) type LiveObjects = HashMap<u64, (u64, u64)>;

/// The offsets of all records outside the heap.
#[derive(Debug, Default)]
pub(crate) struct Outline {
    pub(crate) segments: Vec<Segment>,
    /// Offset and length of each name, by id.
    names: IdMap<(usize, u32)>,
    pub(crate) loads: Vec<LoadClass>,
    pub(crate) frames: IdMap<FrameRecord>,
    pub(crate) traces: HashMap<u32, TraceAt>,
    pub(crate) warnings: Vec<Warning>,
    /// True if the heap is complete: it ends with a HEAP_DUMP_END record, or it is one HEAP_DUMP record, as old JVMs
    /// write it.
    pub(crate) complete: bool,
    /// Offset of the next dump in the same file.
    pub(crate) next_dump: Option<usize>,
    /// `cut_off` is true if the file ends inside a record. `is_heap_cut_off` is true if that record is a heap record.
    cut_off: bool,
    is_heap_cut_off: bool,
    /// Offset of the next heap under the same file header. The hprof agent of JDK 5 to 8 writes a heap for each
    /// SIGQUIT.
    pub(crate) next_heap: Option<usize>,
    /// True if there is a heap record, even an empty one.
    pub(crate) has_heap: bool,
    /// `heap` is the number of the heap to which the current records belong. The heaps under one file header are
    /// numbered from 0. `begun` is true if the heap has a record with content so far.
    heap: usize,
    begun: bool,
    /// True if the current heap is complete. Then the next heap record starts another heap, which has the objects of
    /// the same JVM at a later time.
    closed: bool,
    /// For each class serial: the number of live objects and their bytes, which the hprof agent reports after a heap.
    live: HashMap<u32, (u64, u64)>,
    /// The object layout that a forked child of the agent recorded in the dump.
    pub(crate) recorded: Option<Recorded>,
    /// The id and the content of the name record with which `heapdiff repair` marked the dump as repaired.
    pub(crate) repaired: Option<(u64, Repaired)>,
}

/// The first bytes of every dump.
pub(crate) const MAGIC: &[u8] = b"JAVA PROFILE 1.0";

/// Size of a record's header in bytes: tag, time, length.
pub(crate) const RECORD_HEAD: usize = 9;

/// A top-level record of a dump. Its body is a part of the heap, or is outside of the heap (for example a name).
#[derive(Clone, Copy, Debug)]
pub(crate) struct TopRecord {
    /// Offset of the record's header.
    pub(crate) at: usize,
    pub(crate) tag: u8,
    /// Start of the record's body, and the end of the part of the body that the file contains.
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// Length of the body according to the header. The file may contain fewer bytes of the body.
    pub(crate) length: u64,
    /// True if the header has the length 0, and the body was found by its content.
    pub(crate) lacks_length: bool,
}

impl TopRecord {
    /// Returns true if the record contains objects and GC roots.
    pub(crate) const fn is_heap(&self) -> bool {
        matches!(self.tag, tag::HEAP_DUMP | tag::HEAP_DUMP_SEGMENT)
    }
}

/// The next item in the sequence of a dump's top-level records.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Next {
    Record(TopRecord),
    /// The header of another dump. The iterator ends here.
    Dump(usize),
    /// The end of the file, inside a record's header.
    Rest(usize),
}

impl Next {
    /// Returns the offset of the item.
    pub(crate) const fn at(&self) -> usize {
        match self {
            Self::Record(record) => record.at,
            Self::Dump(at) | Self::Rest(at) => *at,
        }
    }
}

/// An iterator over the top-level records of a dump. The iterator uses the length of each record to find the next
/// record.
pub(crate) struct TopLevel<'a> {
    bytes: &'a [u8],
    at: usize,
    id_size: usize,
    /// The offset of the next dump; the outer `None` means that it was not searched yet.
    next_dump: Option<Option<usize>>,
}

impl<'a> TopLevel<'a> {
    /// Returns the records after a dump's header.
    pub(crate) const fn after(bytes: &'a [u8], header: &Header) -> Self {
        Self {
            bytes,
            at: header.end,
            id_size: header.id_size,
            next_dump: None,
        }
    }
}

impl Iterator for TopLevel<'_> {
    type Item = Next;

    fn next(&mut self) -> Option<Next> {
        let (bytes, at) = (self.bytes, self.at);
        if at >= bytes.len() {
            return None;
        }
        let ends = |this: &mut Self, next| {
            this.at = bytes.len();
            Some(next)
        };
        if bytes[at..].starts_with(MAGIC) {
            return ends(self, Next::Dump(at));
        }
        let Some((tag, length)) = head(bytes, at) else {
            return ends(self, Next::Rest(at));
        };
        let start = at + RECORD_HEAD;
        let is_heap = matches!(tag, tag::HEAP_DUMP | tag::HEAP_DUMP_SEGMENT);
        let length = if is_heap {
            let next = |at| is_record_boundary(bytes, at);
            unwrapped(bytes.len() as u64, start as u64, length, next)
        } else {
            length
        };
        let left = (bytes.len() - start) as u64;
        let lacks_length =
            is_heap && length == 0 && missing_length::is_missing(bytes, start, self.id_size);
        let end = if lacks_length {
            let find = || missing_length::next_dump(bytes, start);
            let next_dump = *self.next_dump.get_or_insert_with(find);
            missing_length::end_of_content(bytes, start, next_dump, self.id_size)
        } else {
            start + length.min(left) as usize
        };
        let length = if lacks_length {
            (end - start) as u64
        } else {
            length
        };
        self.at = end;
        Some(Next::Record(TopRecord {
            at,
            tag,
            start,
            end,
            length,
            lacks_length,
        }))
    }
}

impl Outline {
    /// Returns the outline (records outside the heap, offsets of segments) of the source's current dump and heap.
    pub(crate) fn from_source(source: &Source, header: &Header) -> Self {
        Self::read(source, header, source.heap())
    }

    /// Returns the outline of the source's current dump and heap, like [`Outline::from_source`].
    ///
    /// # Errors
    /// Returns [`Error::NoHeap`] if the dump has no heap record.
    pub(crate) fn with_heap(source: &Source, header: &Header) -> Result<Self> {
        let outline = Self::from_source(source, header);
        let next = outline.next_dump.map(|_| source.number() + 2);
        if outline.has_heap {
            Ok(outline)
        } else {
            Err(Error::NoHeap {
                next,
                reason: source.damage(),
            })
        }
    }

    /// Returns the outline of one of the heaps that follow the file header. `heap` is the number of the heap, counted
    /// from 0.
    ///
    /// Cost: one visit of each top-level record. The content of heap segments is not read.
    pub(crate) fn read(bytes: &[u8], header: &Header, heap: usize) -> Self {
        Self::read_to(bytes, header, heap, bytes.len())
    }

    /// Reads the part of the dump before `limit`, as [`Outline::read`] does for the whole dump. The outline ends at the
    /// first record that starts at or after `limit`. If `limit` is before the end of the file, the dump counts as
    /// truncated there.
    pub(crate) fn read_to(bytes: &[u8], header: &Header, heap: usize, limit: usize) -> Self {
        let mut out = Self::default();
        let mut unknown = 0_u64;
        for next in TopLevel::after(bytes, header).take_while(|next| next.at() < limit) {
            match next {
                Next::Record(r) => {
                    if r.lacks_length {
                        out.without_length(r.at, r.length);
                    }
                    if r.length > (r.end - r.start) as u64 {
                        out.cut(r.at, r.tag, r.length, (bytes.len() - r.start) as u64);
                    }
                    let (tag, span) = (r.tag, r.start..r.end.min(limit));
                    out.record(bytes, header.id_size, (tag, heap), span, &mut unknown);
                }
                Next::Dump(at) => out.next_dump = Some(at),
                Next::Rest(at) => {
                    let left = bytes.len() - at;
                    let flaw = Flaw::CutHeader { left };
                    out.warnings.push(Warning::at(at as u64, &flaw));
                }
            }
        }
        if unknown > 0 {
            let flaw = Flaw::UnknownRecords { records: unknown };
            out.warnings.push(Warning::new(&flaw));
        }
        out.cut_off |= limit < bytes.len();
        let flaw = match (out.segments.is_empty(), out.complete || out.cut_off) {
            (true, _) => Some(Flaw::NoHeapRecord),
            (false, false) => Some(Flaw::NoEnd),
            (false, true) => None,
        };
        let end = bytes.len() as u64;
        out.warnings
            .extend(flaw.map(|flaw| Warning::at(end, &flaw)));
        let repaired = out.repaired.map(|(_, repaired)| Flaw::Repaired(repaired));
        out.warnings.extend(repaired.as_ref().map(Warning::new));
        out
    }

    fn without_length(&mut self, at: usize, length: u64) {
        (self.cut_off, self.is_heap_cut_off) = (true, true);
        let flaw = Flaw::NoLength { bytes: length };
        self.warnings.push(Warning::at(at as u64, &flaw));
    }

    fn cut(&mut self, at: usize, tag: u8, length: u64, left: u64) {
        self.cut_off = true;
        self.is_heap_cut_off |= matches!(tag, tag::HEAP_DUMP | tag::HEAP_DUMP_SEGMENT);
        let (kind, needs) = (tag, length);
        let flaw = Flaw::CutRecord { kind, needs, left };
        self.warnings.push(Warning::at(at as u64, &flaw));
    }

    fn record(
        &mut self,
        bytes: &[u8],
        id_size: usize,
        (tag, wanted): (u8, usize),
        Range { start, end }: Range<usize>,
        unknown: &mut u64,
    ) {
        let body = &bytes[start..end];
        match tag {
            tag::UTF8 => {
                if let Ok((text, id)) = record::id(id_size)(body) {
                    // heapdiff adds a name to repaired dumps and to dumps that a forked process writes. These names
                    // come before all other names.
                    let marks = [self.recorded.is_some(), self.repaired.is_some()];
                    if self.names.len() == marks.iter().filter(|&&is_marked| is_marked).count() {
                        self.recorded = self.recorded.or_else(|| Recorded::parse(id, text));
                        let repaired = || Some((id, Repaired::parse(text)?));
                        self.repaired = self.repaired.or_else(repaired);
                    }
                    self.names.insert(id, (end - text.len(), text.len() as u32));
                }
            }
            tag::LOAD_CLASS => self.loads.extend(record::load_class(body, id_size)),
            tag::STACK_FRAME => {
                if let Some(frame) = record::frame(body, id_size) {
                    self.frames.insert(frame.id, frame);
                }
            }
            tag::STACK_TRACE => {
                if let Some(t) = record::trace(body) {
                    let room = (body.len() - record::TRACE_HEAD) / id_size;
                    let frames = t.frames.min(u32::try_from(room).unwrap_or(u32::MAX));
                    let offset = start + record::TRACE_HEAD;
                    self.traces.insert(
                        t.serial,
                        TraceAt {
                            thread_serial: t.thread_serial,
                            frames,
                            offset,
                        },
                    );
                }
            }
            tag::HEAP_DUMP | tag::HEAP_DUMP_SEGMENT => {
                if self.closed && self.begun {
                    self.heap += 1;
                    (self.begun, self.closed) = (false, false);
                }
                self.begun |= end > start;
                // A HEAP_DUMP record contains the whole heap, so no end record follows it.
                self.closed |= tag == tag::HEAP_DUMP;
                if self.heap == wanted {
                    self.has_heap = true;
                    self.complete |= self.closed;
                    if end > start {
                        self.segments.push(Segment { start, end });
                    }
                } else if self.heap > wanted {
                    self.next_heap.get_or_insert(start);
                }
            }
            tag::HEAP_DUMP_END => {
                self.closed = true;
                self.complete |= self.heap == wanted;
            }
            tag::ALLOC_SITES if self.heap == wanted && self.live.is_empty() => {
                for site in record::alloc_sites(body).filter(|s| !s.is_array) {
                    let (objects, bytes) = self.live.entry(site.class_serial).or_default();
                    *objects += u64::from(site.live_objects);
                    *bytes += u64::from(site.live_bytes);
                }
            }
            tag::UNLOAD_CLASS..=tag::CONTROL_SETTINGS => {}
            _ => *unknown += 1,
        }
    }

    /// True if the end of the heap is missing. The missing part may have contained GC roots.
    pub(crate) const fn is_cut_off(&self) -> bool {
        self.is_heap_cut_off || !self.complete || self.has_repaired_roots()
    }

    /// True if a repair made all classes GC roots, because GC roots may be missing.
    pub(crate) const fn has_repaired_roots(&self) -> bool {
        matches!(&self.repaired, Some((_, repaired)) if repaired.lacks_roots())
    }

    /// Returns the number and the bytes of each class's live objects, which only the hprof agent reports. Empty for
    /// other dumps.
    pub(crate) fn live_objects(&self) -> LiveObjects {
        let of = |l: &LoadClass| Some((l.class, *self.live.get(&l.serial)?));
        self.loads.iter().filter_map(of).collect()
    }

    /// Returns the offset of a name. If several names have the id, returns that of the last.
    pub(crate) fn name_at(&self, id: u64) -> Option<usize> {
        self.names.get(&id).map(|&(at, _)| at)
    }

    /// Returns a name; `None` if it is not in the dump.
    pub(crate) fn name<'a>(&self, bytes: &'a [u8], id: u64) -> Option<std::borrow::Cow<'a, str>> {
        /// Maximum length of a name in a class file.
        const LONGEST: usize = u16::MAX as usize;
        let &(at, len) = self.names.get(&id)?;
        let len = (len as usize).min(LONGEST);
        Some(modified_utf8::text(bytes.get(at..at + len)?))
    }
}

impl Source {
    /// Opens one of several dumps in a file, or one of several heaps under one header. `number` starts with 0. The
    /// bytes of the source start with the header of the dump, and include everything after it. See [`Source::open`].
    ///
    /// # Errors
    /// Returns the errors of [`Source::open`], and an error if the file has fewer dumps.
    pub fn open_nth(path: &Path, number: usize) -> Result<Self> {
        let mut source = Self::open(path)?;
        while source.number() < number {
            let header = record::header(&source)?;
            let outline = Outline::from_source(&source, &header);
            match (outline.next_heap, outline.next_dump) {
                (Some(_), _) => source.advance_under_header(),
                (None, Some(next)) => source.advance_to_next_dump(next),
                (None, None) => {
                    return Err(Error::NoSuchDump {
                        asked: number + 1,
                        held: source.number() + 1,
                    });
                }
            }
        }
        Ok(source)
    }
}

pub(crate) fn head(bytes: &[u8], at: usize) -> Option<(u8, u64)> {
    let head = bytes.get(at..at + RECORD_HEAD)?;
    Some((
        head[0],
        u64::from(u32::from_be_bytes([head[5], head[6], head[7], head[8]])),
    ))
}

/// Returns the real length of a heap dump record, which may not fit in the 32 bits of its header. `length` is the
/// length in the header, `start` is the offset of the body, and `file` is the size of the file. `leads_on` returns true
/// if a record can start at an offset. If no record can start after `length` bytes, adds the first multiple of 2³²
/// after which one can start.
fn unwrapped(file: u64, start: u64, length: u64, leads_on: impl Fn(u64) -> bool) -> u64 {
    let left = file.saturating_sub(start);
    if left < WRAP || leads_on(start + length) {
        return length;
    }
    (0..=left / WRAP)
        .map(|k| length + k * WRAP)
        .skip(1)
        .take_while(|&l| l <= left)
        .find(|&l| leads_on(start + l))
        .unwrap_or(length)
}

/// Returns true if a record, another dump, or the end of the file is at this offset.
fn is_record_boundary(bytes: &[u8], at: u64) -> bool {
    let at = usize::try_from(at).unwrap_or(usize::MAX);
    at == bytes.len()
        || bytes.get(at..).is_some_and(|b| b.starts_with(MAGIC))
        || head(bytes, at.min(bytes.len())).is_some_and(|(tag, length)| {
            let known = matches!(tag, 1..=0x0e | tag::HEAP_DUMP_SEGMENT | tag::HEAP_DUMP_END);
            known && (tag == tag::HEAP_DUMP || length <= (bytes.len() - at - 9) as u64)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overflowed_length_is_recovered() {
        const GB: u64 = 1 << 30;
        // A heap of 9 GiB in one record with the length 1 GiB, followed by ten bytes of other records.
        let (start, heap, after) = (5000, 9 * GB, 10);
        let file = start + heap + after;
        let next = |at| at == start + heap;
        assert_eq!(unwrapped(file, start, heap % WRAP, next), heap);
        // The heap record is the last in the file.
        let next = |at| at == start + heap;
        assert_eq!(unwrapped(start + heap, start, heap % WRAP, next), heap);
        // A correct length is not changed. A wrong length is not changed either if adding multiples of 2³² does not
        // lead to the start of a record.
        assert_eq!(
            unwrapped(file, start, 3 * GB, |at| at == start + 3 * GB),
            3 * GB
        );
        assert_eq!(unwrapped(file, start, GB, |_| false), GB);
        // Small files are not searched.
        assert_eq!(unwrapped(GB, start, 77, |_| false), 77);
        // A record whose header has the length 0 because the record contains exactly 4 GiB.
        assert_eq!(
            unwrapped(start + WRAP, start, 0, |at| at == start + WRAP),
            WRAP
        );
    }
}
