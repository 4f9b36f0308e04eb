//! The first pass of a repair over one dump: finds the damage, and the changes that remove it.
//!
//! The pass treats damage as a reader of the dump does (see [`Outline`]). So reports on the repaired dump show the same
//! classes and objects as reports on the damaged one.

use rayon::prelude::*;

use crate::error::{Result, Warning};
use crate::flaw::Flaw;
use crate::graph::plan::leading_classes;
use crate::progress::Progress;
use crate::records::classes::Classes;
use crate::records::forked::Recorded;
use crate::records::outline::{Next, Outline, RECORD_HEAD, TopLevel, TopRecord};
use crate::records::record::{self, Header, tag};
use crate::records::repaired::Repaired;
use crate::records::walk::Damage;
use crate::repair::changes::Changes;
use crate::repair::check_cancelled;
use crate::repair::heap::{self, Content, segment_head};
use crate::repair::threads::ThreadClasses;

/// Maximum number of records that are read together.
const BATCH: usize = 1 << 10;
/// Size in bytes of the segments into which a heap record is split.
const PIECE: usize = 1 << 30;
/// The record that ends a heap.
const END: [u8; RECORD_HEAD] = [tag::HEAP_DUMP_END, 0, 0, 0, 0, 0, 0, 0, 0];
/// The first bytes of a dump of version 1.0.1, which has no heap segments. The last digit is the byte before the zero
/// byte.
const OLD_VERSION: &[u8] = b"JAVA PROFILE 1.0.1\0";

/// The damage of one dump.
#[derive(Debug)]
pub(super) struct DumpSurvey {
    pub(super) changes: Changes,
    /// The numbers in the name record that marks the output as repaired. `None` if the dump is whole, so that it needs
    /// no changes.
    pub(super) repaired: Option<Repaired>,
    pub(super) warnings: Vec<Warning>,
    /// Offset of the next dump in the same file.
    pub(super) next_dump: Option<usize>,
}

impl DumpSurvey {
    /// Reads a dump. `parts` is the number of damaged parts that were found when the file was opened.
    pub(super) fn new(
        dump: &[u8],
        header: &Header,
        parts: u64,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let id_size = header.id_size;
        let outline = Outline::read(dump, header, 0);
        let (dumps, _) = leading_classes(dump, id_size, &outline.segments);
        let classes = Classes::new(dump, id_size, &outline, &dumps);
        drop(dumps);
        let mut reader = DumpReader {
            bytes: dump,
            header,
            threads: ThreadClasses::new(&classes, id_size),
            largest_serial: largest_thread_serial(&outline),
            changes: Changes::default(),
            repaired: Repaired {
                parts,
                ..Repaired::default()
            },
            is_damaged: parts > 0,
            heap: Heap::default(),
            names: 0,
            mark_at: header.end,
            is_forked: false,
            earlier: None,
            next_dump: None,
            warnings: outline.warnings.clone(),
        };
        drop(classes);
        reader.read(progress)?;
        Ok(reader.finish(&outline))
    }
}

/// Returns the largest serial number of a thread with a stack trace.
fn largest_thread_serial(outline: &Outline) -> u32 {
    let serials = outline.traces.values().map(|trace| trace.thread_serial);
    serials.max().unwrap_or_default()
}

/// The state of the current heap. A dump of the hprof agent can have several heaps.
#[derive(Debug, Default)]
struct Heap {
    content: Content,
    /// True if there is a heap record, even an empty one.
    has_record: bool,
    /// True if a heap record has content.
    begun: bool,
    /// True if the heap is complete. The next heap record then starts another heap.
    closed: bool,
    /// True if records of the heap are damaged, or if the end of the heap is missing.
    damaged: bool,
    /// True if the output has a heap record.
    is_written: bool,
    /// True if the output needs an end record after the heap.
    needs_end: bool,
    /// True if the output has all records of the heap.
    finished: bool,
}

struct DumpReader<'a> {
    bytes: &'a [u8],
    header: &'a Header,
    threads: ThreadClasses,
    largest_serial: u32,
    changes: Changes,
    repaired: Repaired,
    is_damaged: bool,
    heap: Heap,
    /// Number of names that were read so far.
    names: usize,
    /// The offset in the input at which the repair inserts the name record that marks the dump as repaired.
    mark_at: usize,
    /// True if a forked child of the agent wrote the dump.
    is_forked: bool,
    /// The content of the name record with which an earlier repair marked the dump.
    earlier: Option<Repaired>,
    next_dump: Option<usize>,
    warnings: Vec<Warning>,
}

impl DumpReader<'_> {
    fn read(&mut self, progress: &dyn Progress) -> Result<()> {
        let mut all = TopLevel::after(self.bytes, self.header);
        loop {
            let batch: Vec<Next> = all.by_ref().take(BATCH).collect();
            if batch.is_empty() {
                return Ok(());
            }
            let read = |next: &Next| match next {
                Next::Record(record) if record.is_heap() => {
                    let id_size = self.header.id_size;
                    let read = Content::read(self.bytes, record, id_size, &self.threads);
                    progress.advance((record.end - record.start) as u64);
                    Some(read)
                }
                _ => None,
            };
            let contents: Vec<Option<(Content, Option<Damage>)>> =
                batch.par_iter().map(read).collect();
            for (next, content) in batch.iter().zip(contents) {
                match (next, content) {
                    (Next::Record(record), Some((content, damage))) => {
                        self.heap_record(record, content, damage);
                    }
                    (Next::Record(record), None) => self.record(record),
                    (Next::Dump(at), _) => self.next_dump = Some(*at),
                    (Next::Rest(at), _) => {
                        self.is_damaged = true;
                        self.leave_out(*at..self.bytes.len());
                    }
                }
            }
            check_cancelled(progress)?;
        }
    }

    /// Removes a damaged record that is outside of the heap from the output.
    fn leave_out(&mut self, range: std::ops::Range<usize>) {
        self.repaired.records += 1;
        self.repaired.left_out += range.len() as u64;
        self.changes.remove(range);
    }

    fn heap_record(&mut self, record: &TopRecord, content: Content, damage: Option<Damage>) {
        if self.heap.closed && self.heap.begun {
            self.finish_heap(record.at);
            self.heap = Heap::default();
        }
        let is_cut = record.lacks_length || record.length > (record.end - record.start) as u64;
        let is_whole_heap = record.tag == tag::HEAP_DUMP;
        let heap = &mut self.heap;
        heap.content.append(content);
        heap.has_record = true;
        heap.begun |= record.end > record.start;
        heap.closed |= is_whole_heap;
        heap.damaged |= is_cut || damage.is_some();
        self.repaired.lacks_end |= is_cut;
        let end = damage.as_ref().map_or(record.end, |damage| damage.offset);
        if let Some(Damage { offset, flaw }) = damage {
            let bytes = record.end - offset;
            self.repaired.places += 1;
            self.repaired.left_out += bytes as u64;
            let flaw = Flaw::SkippedRest {
                flaw: Box::new(flaw),
                bytes,
            };
            self.warnings.push(Warning::at(offset as u64, &flaw));
        }
        // A HEAP_DUMP record contains the whole heap, so no roots can be added after it.
        let becomes_segments = is_whole_heap && self.lacks_roots();
        let is_too_long = record.length > u64::from(u32::MAX);
        if becomes_segments || is_cut || is_too_long || end < record.end {
            self.rewrite_heap(record, end);
            self.heap.needs_end = true;
        } else {
            self.heap.is_written = true;
            self.heap.needs_end = !is_whole_heap;
        }
    }

    /// True if GC roots may be missing in the current heap.
    const fn lacks_roots(&self) -> bool {
        self.heap.damaged || self.heap.content.roots == 0
    }

    /// Replaces a heap record by segments with its readable part, which ends at `end`.
    fn rewrite_heap(&mut self, record: &TopRecord, end: usize) {
        let bytes = self.bytes;
        let time = bytes.get(record.at + 1..record.at + 5);
        let time = time.and_then(|time| time.first_chunk().copied());
        let time = time.unwrap_or_default();
        self.changes.remove(record.at..record.start);
        let id_size = self.header.id_size;
        let limits = (PIECE, u32::MAX as usize);
        for (part, is_written) in heap::parts(bytes, (record.start, end), id_size, limits) {
            if is_written {
                self.heap.is_written = true;
                let head = segment_head(time, part.len());
                self.changes.insert(part.start, &head);
            } else {
                self.heap.damaged = true;
                self.repaired.places += 1;
                self.repaired.left_out += part.len() as u64;
                self.changes.remove(part);
            }
        }
        self.changes.remove(end..record.end);
    }

    /// Handles a record outside of the heap.
    fn record(&mut self, record: &TopRecord) {
        let whole = record.at..record.end;
        let body = &self.bytes[record.start..record.end];
        let id_size = self.header.id_size;
        if record.length > body.len() as u64 {
            self.is_damaged = true;
            return self.leave_out(whole);
        }
        // The lengths of these records follow from their content. Other programs do not check the lengths.
        let length = match record.tag {
            tag::UTF8 => return self.name(record, body),
            tag::LOAD_CLASS => 8 + 2 * id_size,
            tag::STACK_FRAME => 8 + 4 * id_size,
            tag::STACK_TRACE => match record::trace(body) {
                Some(trace) => {
                    let room = (body.len() - record::TRACE_HEAD) / id_size;
                    record::TRACE_HEAD + id_size * room.min(trace.frames as usize)
                }
                None => return self.leave_out(whole),
            },
            tag::HEAP_DUMP_END => {
                if !self.heap.finished {
                    self.heap.closed = true;
                    self.heap.needs_end = false;
                    self.finish_heap(record.at);
                }
                0
            }
            // These kinds of records are optional. They stay unchanged.
            tag::UNLOAD_CLASS..=tag::CONTROL_SETTINGS => return,
            _ => return self.leave_out(whole),
        };
        if body.len() < length {
            return self.leave_out(whole);
        }
        self.shorten(record, length);
    }

    fn name(&mut self, record: &TopRecord, body: &[u8]) {
        let Ok((text, id)) = record::id(self.header.id_size)(body) else {
            return self.leave_out(record.at..record.end);
        };
        // heapdiff adds a name to repaired dumps and to dumps that a forked process writes. These names come before all
        // other names.
        if self.names == usize::from(self.is_forked) + usize::from(self.earlier.is_some()) {
            if !self.is_forked && Recorded::parse(id, text).is_some() {
                self.is_forked = true;
                self.mark_at = record.end;
            } else if let Some(repaired) = Repaired::parse(text).filter(|_| self.earlier.is_none())
            {
                self.earlier = Some(repaired);
                self.changes.remove(record.at..record.end);
            }
        }
        self.names += 1;
    }

    /// Corrects the length of a record that is longer than its content.
    fn shorten(&mut self, record: &TopRecord, length: usize) {
        if record.length == length as u64 && record.tag != tag::STACK_TRACE {
            return;
        }
        let mut head = self.bytes[record.at..record.start].to_vec();
        let size = u32::try_from(length).unwrap_or_default();
        head.truncate(RECORD_HEAD - 4);
        head.extend(size.to_be_bytes());
        let mut start = record.start;
        if record.tag == tag::STACK_TRACE {
            // The number of frames is the last number before the frames.
            start += record::TRACE_HEAD;
            head.extend_from_slice(&self.bytes[record.start..start - 4]);
            let frames = (length - record::TRACE_HEAD) / self.header.id_size;
            head.extend(u32::try_from(frames).unwrap_or_default().to_be_bytes());
        }
        if self.bytes[record.at..start] == head[..] && record.length == length as u64 {
            return;
        }
        let end = record.start + length;
        self.repaired.records += 1;
        self.repaired.left_out += (record.end - end) as u64;
        self.changes.replace(record.at..start, &head);
        self.changes.remove(end..record.end);
    }

    /// Adds the records that are missing at the end of the current heap, before the record at `at`.
    fn finish_heap(&mut self, at: usize) {
        if std::mem::replace(&mut self.heap.finished, true) || !self.heap.has_record {
            return;
        }
        if !self.heap.closed {
            self.heap.damaged = true;
            self.repaired.lacks_end = true;
        }
        self.repaired.roots += self.heap.content.roots;
        if self.lacks_roots() {
            self.is_damaged |= self.heap.damaged;
            let id_size = self.header.id_size;
            let content = &mut self.heap.content;
            let added = content.added_roots(self.largest_serial, id_size);
            self.is_damaged |= !added.records.is_empty();
            self.repaired.class_roots += added.classes;
            self.repaired.thread_roots += added.threads;
            self.changes.insert(at, &added.records);
            self.heap.is_written |= !added.records.is_empty();
        }
        if !self.heap.is_written {
            // Add an empty heap segment, because a dump without a heap record cannot be read.
            self.changes.insert(at, &segment_head([0; 4], 0));
        }
        if self.heap.needs_end {
            self.changes.insert(at, &END);
        }
    }

    fn finish(mut self, outline: &Outline) -> DumpSurvey {
        self.finish_heap(self.next_dump.unwrap_or(self.bytes.len()));
        if self.is_damaged {
            if let Some(earlier) = self.earlier {
                // The counted roots include the roots that the earlier repair added. Subtract the added roots.
                let added = earlier.class_roots.saturating_add(earlier.thread_roots);
                self.repaired.roots = self.repaired.roots.saturating_sub(added);
                let earlier = Repaired {
                    roots: 0,
                    ..earlier
                };
                self.repaired = self.repaired.with(earlier);
            }
            self.mark(outline);
        }
        DumpSurvey {
            repaired: self.is_damaged.then_some(self.repaired),
            changes: self.changes,
            warnings: self.warnings,
            next_dump: self.next_dump,
        }
    }

    /// Adds the name record that marks the dump as repaired. Changes the format version 1.0.1 to 1.0.2, because the
    /// output may contain heap segments.
    fn mark(&mut self, outline: &Outline) {
        let id_size = self.header.id_size;
        let largest = i64::MAX.cast_unsigned() >> (64 - 8 * id_size);
        let mut ids = (0..=largest).rev();
        let Some(id) = ids.find(|&id| outline.name_at(id).is_none()) else {
            return;
        };
        let text = self.repaired.to_string();
        let mut record = vec![tag::UTF8, 0, 0, 0, 0];
        record.extend(((id_size + text.len()) as u32).to_be_bytes());
        record.extend_from_slice(&id.to_be_bytes()[8 - id_size..]);
        record.extend_from_slice(text.as_bytes());
        self.changes
            .replace_before(self.mark_at..self.mark_at, &record);
        if self.bytes.starts_with(OLD_VERSION) {
            let digit = OLD_VERSION.len() - 2;
            self.changes.replace_before(digit..digit + 1, b"2");
        }
    }
}
