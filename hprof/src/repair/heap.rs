//! The content of one heap: the data about its objects and GC roots that a repair needs.

use crate::records::outline::{RECORD_HEAD, TopRecord};
use crate::records::record::{ClassDump, sub, tag};
use crate::records::walk::{self, Damage, Object, Root, RootKind, Visitor};
use crate::repair::threads::ThreadClasses;

/// Size in bytes of a segment of GC roots that a repair adds.
const SEGMENT: usize = 1 << 20;

/// The content of one heap record, or of all heap records of a heap.
#[derive(Debug, Default)]
pub(super) struct Content {
    /// Ids of classes, each with true if the boot loader defined the class.
    classes: Vec<(u64, bool)>,
    /// Objects that GC roots hold, without the roots that belong to a thread.
    rooted: Vec<u64>,
    /// `alive` has the threads that are alive according to their fields. `threads` has the thread objects that are GC
    /// roots.
    alive: Vec<u64>,
    threads: Vec<u64>,
    /// Number of GC roots.
    pub(super) roots: u64,
    /// The largest serial number of a thread.
    largest_serial: u32,
}

/// The GC roots that a repair adds to a heap, as records.
#[derive(Debug, Default)]
pub(super) struct AddedRoots {
    pub(super) classes: u64,
    pub(super) threads: u64,
    /// Heap records with the roots.
    pub(super) records: Vec<u8>,
}

impl Content {
    /// Reads a heap record. Also returns the damage at which the readable part of the record ends.
    pub(super) fn read(
        bytes: &[u8],
        record: &TopRecord,
        id_size: usize,
        threads: &ThreadClasses,
    ) -> (Self, Option<Damage>) {
        let mut visitor = ContentVisitor {
            content: Self::default(),
            threads,
        };
        let walked = walk::walk(bytes, record.start, record.end, id_size, &mut visitor);
        (visitor.content, walked.err())
    }

    pub(super) fn append(&mut self, mut more: Self) {
        self.classes.append(&mut more.classes);
        self.rooted.append(&mut more.rooted);
        self.alive.append(&mut more.alive);
        self.threads.append(&mut more.threads);
        self.roots += more.roots;
        self.largest_serial = self.largest_serial.max(more.largest_serial);
    }

    /// Returns GC roots for all classes and live threads that have none. Stack traces contain serial numbers of threads
    /// up to `largest_serial`, so an added thread root gets a larger serial number.
    pub(super) fn added_roots(&mut self, largest_serial: u32, id_size: usize) -> AddedRoots {
        for ids in [&mut self.rooted, &mut self.alive, &mut self.threads] {
            ids.sort_unstable();
            ids.dedup();
        }
        self.classes.sort_unstable();
        self.classes.dedup_by_key(|&mut (id, _)| id);
        let mut added = AddedRoots::default();
        let mut records = Segments::default();
        for &(id, boot) in &self.classes {
            if self.rooted.binary_search(&id).is_err() {
                // JVMs write roots of the kind sticky class only for classes of the boot loader, because a JVM never
                // unloads these classes.
                let kind = if boot {
                    sub::ROOT_STICKY_CLASS
                } else {
                    sub::ROOT_UNKNOWN
                };
                records.push(kind, id, id_size, &[]);
                added.classes += 1;
            }
        }
        let first = self.largest_serial.max(largest_serial);
        let alive = self.alive.iter();
        let rootless = alive.filter(|id| self.threads.binary_search(id).is_err());
        for (&id, serial) in rootless.zip(first.saturating_add(1)..) {
            // The stack of the thread is unknown: no trace has the serial number 0.
            records.push(sub::ROOT_THREAD_OBJECT, id, id_size, &[serial, 0]);
            added.threads += 1;
        }
        added.records = records.finish();
        added
    }
}

/// Heap segments under construction.
#[derive(Default)]
struct Segments {
    bytes: Vec<u8>,
    /// The offset of the current segment.
    start: usize,
}

impl Segments {
    fn push(&mut self, kind: u8, id: u64, id_size: usize, words: &[u32]) {
        if self.bytes.len() == self.start || self.bytes.len() - self.start > SEGMENT {
            self.end_segment();
            self.start = self.bytes.len();
            self.bytes.extend([0; RECORD_HEAD]);
        }
        self.bytes.push(kind);
        let id = id.to_be_bytes();
        self.bytes.extend_from_slice(&id[id.len() - id_size..]);
        self.bytes
            .extend(words.iter().flat_map(|word| word.to_be_bytes()));
    }

    fn end_segment(&mut self) {
        let length = (self.bytes.len() - self.start).saturating_sub(RECORD_HEAD);
        if let Some(head) = self.bytes.get_mut(self.start..self.start + RECORD_HEAD) {
            head.copy_from_slice(&segment_head([0; 4], length));
        }
    }

    fn finish(mut self) -> Vec<u8> {
        self.end_segment();
        self.bytes
    }
}

/// Returns the header of a heap segment. `time` is the record's time, and `length` fits in 32 bits.
pub(super) fn segment_head(time: [u8; 4], length: usize) -> [u8; RECORD_HEAD] {
    let [t0, t1, t2, t3] = time;
    let [l0, l1, l2, l3] = u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes();
    [tag::HEAP_DUMP_SEGMENT, t0, t1, t2, t3, l0, l1, l2, l3]
}

struct ContentVisitor<'a> {
    content: Content,
    threads: &'a ThreadClasses,
}

impl Visitor for ContentVisitor<'_> {
    #[inline(always)]
    fn instance(&mut self, object: Object, class: u64, fields: &[u8]) {
        if self.threads.is_alive(class, fields) {
            self.content.alive.push(object.id);
        }
    }

    fn class_dump(&mut self, _: usize, class: ClassDump) {
        self.content.classes.push((class.id, class.loader == 0));
    }

    fn root(&mut self, root: Root) {
        self.content.roots += 1;
        match root.kind {
            RootKind::Thread => self.content.threads.push(root.id.0),
            kind if kind.belongs_to_thread() => {}
            _ => self.content.rooted.push(root.id.0),
        }
        self.content.largest_serial = self.content.largest_serial.max(root.thread);
    }
}

/// A part of a heap record, and true if the output contains it.
pub(super) type Part = (std::ops::Range<usize>, bool);

/// Splits `bytes[start..end]` into parts of about `piece` bytes, each of whole records. A part has at most `largest`
/// bytes, because the length of a heap segment has 32 bits. A record of more than `largest` bytes becomes a part that
/// the output does not contain.
pub(super) fn parts(
    bytes: &[u8],
    (mut start, end): (usize, usize),
    id_size: usize,
    (piece, largest): (usize, usize),
) -> Vec<Part> {
    let mut parts = Vec::new();
    while start < end {
        let next = |most: usize| {
            let window = end.min(start.saturating_add(most));
            let walked = walk::walk(bytes, start, window, id_size, &mut AnyRecord);
            walked.unwrap_or_else(|damage| damage.offset)
        };
        let mut at = next(piece);
        if at == start {
            at = next(largest);
        }
        let is_written = at > start;
        if !is_written {
            let mut first = FirstRecord::default();
            let walked = walk::walk(bytes, start, end, id_size, &mut first);
            at = walked.unwrap_or(end).max(start + 1);
        }
        parts.push((start..at, is_written));
        start = at;
    }
    parts
}

struct AnyRecord;
impl Visitor for AnyRecord {}

/// Stops before the second record.
#[derive(Default)]
struct FirstRecord {
    seen: bool,
}

impl Visitor for FirstRecord {
    fn stop(&mut self, _: u8) -> bool {
        std::mem::replace(&mut self.seen, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(len: usize) -> Vec<u8> {
        let mut bytes = vec![sub::PRIMITIVE_ARRAY, 0, 0, 0, 9, 0, 0, 0, 0];
        bytes.extend((len as u32).to_be_bytes());
        bytes.push(8);
        bytes.resize(bytes.len() + len, 7);
        bytes
    }

    #[test]
    fn parts_end_at_records() {
        let sizes = [10, 20, 100, 30, 5];
        let bytes: Vec<u8> = sizes.iter().flat_map(|&size| array(size)).collect();
        let of = |limits| parts(&bytes, (0, bytes.len()), 4, limits);
        assert_eq!(of((1000, 1000)), [(0..bytes.len(), true)]);
        // Each record has 14 bytes before its elements. The second part begins with a record that is larger than a
        // part.
        assert_eq!(of((70, 1000)), [(0..58, true), (58..235, true)]);
        let without = [(0..58, true), (58..172, false), (172..235, true)];
        assert_eq!(of((70, 113)), without);
        assert_eq!(of((0, 0)).len(), 5);
    }

    #[test]
    fn roots_are_added_in_segments() {
        let mut content = Content {
            classes: vec![(7, true), (5, false), (9, false), (5, false)],
            rooted: vec![9],
            alive: vec![20, 21],
            threads: vec![21],
            roots: 2,
            largest_serial: 3,
        };
        let added = content.added_roots(8, 4);
        assert_eq!((added.classes, added.threads), (2, 1));
        let expected = [
            &[0x1c, 0, 0, 0, 0, 0, 0, 0, 23][..],
            &[0xff, 0, 0, 0, 5],
            &[0x05, 0, 0, 0, 7],
            &[0x08, 0, 0, 0, 20, 0, 0, 0, 9, 0, 0, 0, 0],
        ];
        assert_eq!(added.records, expected.concat());
        assert!(Content::default().added_roots(0, 8).records.is_empty());
    }
}
