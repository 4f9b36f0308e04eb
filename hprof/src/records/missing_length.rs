//! Heap records without a length.
//!
//! JDK 5 to 8 write the length of a heap record when the record is complete. So in a truncated dump, the last heap
//! record has the length 0, and its objects follow.

use memchr::memmem;

use crate::records::outline::{MAGIC, RECORD_HEAD, head};
use crate::records::record::{self, sub, tag};
use crate::records::walk::{self, Damage, Visitor};

/// Maximum number of records that are read to find out if content follows a heap record of length 0.
const LOOK_AHEAD: usize = 8;

/// True if a heap record of length 0 is followed by objects, classes or GC roots. False if another record outside the
/// heap follows.
///
/// The first byte does not distinguish the two cases, because both kinds of records begin with small numbers. So up to
/// [`LOOK_AHEAD`] records are examined, and all of them have to be plausible.
pub(crate) fn is_missing(bytes: &[u8], start: usize, id_size: usize) -> bool {
    start < bytes.len()
        && !are_top_level_records(bytes, start, id_size)
        && are_heap_records(bytes, start, id_size)
}

/// Returns the end of the content of a heap record without a length: the start of the next record or dump, or the end
/// of the file. `next_dump` is the offset of the next dump in the file.
///
/// Cost: a walk over the record's content.
pub(crate) fn end_of_content(
    bytes: &[u8],
    start: usize,
    next_dump: Option<usize>,
    id_size: usize,
) -> usize {
    struct TopLevelRecord;
    impl Visitor for TopLevelRecord {
        fn stop(&mut self, tag: u8) -> bool {
            matches!(
                tag,
                tag::HEAP_DUMP | tag::HEAP_DUMP_SEGMENT | tag::HEAP_DUMP_END
            )
        }
    }
    let limit = next_dump.filter(|&at| at > start).unwrap_or(bytes.len());
    match walk::walk(bytes, start, limit, id_size, &mut TopLevelRecord) {
        Ok(end) if end == limit || are_top_level_records(bytes, end, id_size) => end,
        // An error of the walk over the records is ignored here. The later pass over the objects reports the unreadable
        // part.
        _ => limit,
    }
}

/// Returns the offset of the next dump at or after `from`: a header that is followed by records.
///
/// Cost: a search from `from` to the end of the file.
pub(crate) fn next_dump(bytes: &[u8], from: usize) -> Option<usize> {
    let rest = bytes.get(from..)?;
    memmem::find_iter(rest, MAGIC)
        .map(|at| from + at)
        .find(|&at| {
            let header = record::header(&bytes[at..]);
            header.is_ok_and(|h| are_top_level_records(bytes, at + h.end, h.id_size))
        })
}

/// True if the next [`LOOK_AHEAD`] records are plausible records outside the heap. The check stops early, with the
/// result true, at a heap record, at another dump, or at the end of the file.
fn are_top_level_records(bytes: &[u8], mut at: usize, id_size: usize) -> bool {
    for _ in 0..LOOK_AHEAD {
        if at == bytes.len() || bytes[at..].starts_with(MAGIC) {
            return true;
        }
        let Some((kind, length)) = head(bytes, at) else {
            return false;
        };
        let left = bytes.len() - at - RECORD_HEAD;
        if !has_plausible_length(kind, length, id_size) {
            return false;
        }
        match usize::try_from(length) {
            Ok(length) if length <= left => at += RECORD_HEAD + length,
            // The dump is truncated inside this record. Only a heap record is accepted here.
            _ => return matches!(kind, tag::HEAP_DUMP | tag::HEAP_DUMP_SEGMENT),
        }
        if matches!(kind, tag::HEAP_DUMP | tag::HEAP_DUMP_SEGMENT) {
            return true;
        }
    }
    true
}

/// True if records of this kind can have this length. False for unknown kinds.
pub(crate) fn has_plausible_length(kind: u8, length: u64, id_size: usize) -> bool {
    let ids = |n: usize, rest: usize| (n * id_size + rest) as u64;
    match kind {
        tag::UTF8 => length >= ids(1, 0) && length <= ids(1, usize::from(u16::MAX)),
        tag::LOAD_CLASS => length == ids(2, 8),
        tag::UNLOAD_CLASS | tag::END_THREAD => length == 4,
        tag::STACK_FRAME => length == ids(4, 8),
        tag::STACK_TRACE => length >= record::TRACE_HEAD as u64,
        tag::HEAP_DUMP | tag::HEAP_DUMP_SEGMENT => true,
        tag::HEAP_DUMP_END => length == 0,
        tag::ALLOC_SITES => length >= record::SITES_HEAD as u64,
        tag::HEAP_SUMMARY => length == 24,
        tag::START_THREAD => length == ids(4, 8),
        tag::CPU_SAMPLES => length >= 8,
        tag::CONTROL_SETTINGS => length == 6,
        _ => false,
    }
}

/// True if the next [`LOOK_AHEAD`] records are records of a heap. If the file has fewer, all of them have to be records
/// of a heap, and the last of them may be truncated.
fn are_heap_records(bytes: &[u8], start: usize, id_size: usize) -> bool {
    struct FirstFew(usize);
    impl Visitor for FirstFew {
        fn stop(&mut self, _: u8) -> bool {
            self.0 += 1;
            self.0 > LOOK_AHEAD
        }
    }
    const KINDS: [u8; 12] = [
        sub::ROOT_UNKNOWN,
        sub::ROOT_JNI_GLOBAL,
        sub::ROOT_JNI_LOCAL,
        sub::ROOT_JAVA_FRAME,
        sub::ROOT_NATIVE_STACK,
        sub::ROOT_STICKY_CLASS,
        sub::ROOT_MONITOR_USED,
        sub::ROOT_THREAD_OBJECT,
        sub::CLASS_DUMP,
        sub::INSTANCE,
        sub::OBJECT_ARRAY,
        sub::PRIMITIVE_ARRAY,
    ];
    let walked = walk::walk(bytes, start, bytes.len(), id_size, &mut FirstFew(0));
    let is_cut_off = |Damage { offset, .. }: Damage| {
        let kind = bytes.get(offset);
        kind.is_some_and(|kind| KINDS.contains(kind))
    };
    walked.map_or_else(is_cut_off, |end| end > start)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLOSING: [u8; 9] = [tag::HEAP_DUMP_END, 0, 0, 0, 0, 0, 0, 0, 0];

    #[test]
    fn an_empty_heap_record_has_no_content() {
        assert!(!is_missing(&[], 0, 8));
        assert!(!is_missing(&CLOSING, 0, 8));
        let name = [&[tag::UTF8, 0, 0, 0, 0, 0, 0, 0, 9][..], &[7; 9], &CLOSING].concat();
        assert!(!is_missing(&name, 0, 8));
        assert!(!is_missing(b"JAVA PROFILE 1.0.2\0", 0, 8));
        assert!(!is_missing(&[0x77; 40], 0, 8));
    }

    #[test]
    fn roots_that_look_like_other_records_are_content() {
        let id = 0x7_c000_1230_u64.to_be_bytes();
        for (kind, rest) in [
            (sub::ROOT_JNI_LOCAL, 8),
            (sub::ROOT_STICKY_CLASS, 0),
            (sub::ROOT_MONITOR_USED, 0),
        ] {
            let root = [&[kind][..], &id, &vec![0; rest]].concat();
            assert!(is_missing(&root, 0, 8), "{kind:#x}");
        }
    }
}
