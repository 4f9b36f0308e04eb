//! The second pass of a redaction. It rewrites every record without changing its length, and copies only the parts that
//! are kept.

use std::borrow::Cow;
use std::ops::Range;

use crate::records::outline::{RECORD_HEAD, TopRecord};
use crate::records::record::{self, ClassDump, Kind, sub, tag};
use crate::records::walk::{self, Object, Visitor};
use crate::redaction::boxes::HashBoxes;
use crate::redaction::kept::Kept;
use crate::redaction::rules::{Number, Rules};
use crate::redaction::survey::{Block, Survey};
use crate::redaction::tally::{Amount, Left};
use crate::redaction::tokens::{LONGEST, Tokens, is_number_token, is_token};

/// Minimum length of a range of the input that is passed to the writer as a slice, without a copy.
const LARGE: usize = 1 << 20;
/// Maximum length of a name in a class file.
const LONGEST_NAME: usize = u16::MAX as usize;

/// A part of the output.
#[derive(Debug)]
pub(super) enum Piece<'a> {
    Bytes(Cow<'a, [u8]>),
    Zeros(usize),
}

/// Rewrites parts of one dump.
#[derive(Clone, Copy)]
pub(super) struct Rewriter<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) survey: &'a Survey,
    pub(super) tokens: &'a Tokens,
    pub(super) rules: &'a Rules<'a>,
    pub(super) kept: &'a Kept,
    pub(super) boxes: &'a HashBoxes,
    /// True if the content is only counted. Then the output is not written.
    pub(super) counts: bool,
}

/// The output for a part of the dump.
#[derive(Debug, Default)]
pub(super) struct Rewritten<'a> {
    pub(super) pieces: Vec<Piece<'a>>,
    pub(super) left: Left,
}

/// Output under construction. Each byte has the same offset in the output as in the input.
struct Output<'a> {
    bytes: &'a [u8],
    pieces: Vec<Piece<'a>>,
    buffer: Vec<u8>,
    /// All input before this offset is either written to the output or left out.
    at: usize,
}

impl<'a> Output<'a> {
    fn new(bytes: &'a [u8], range: &Range<usize>) -> Self {
        Self {
            bytes,
            pieces: Vec::new(),
            buffer: Vec::with_capacity(range.len().min(LARGE)),
            at: range.start,
        }
    }

    /// Writes `bytes` instead of the next part of the input, up to the offset `end`.
    fn bytes_to(&mut self, end: usize, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
        self.at = self.at.max(end);
    }

    /// Copies the input up to an offset.
    #[inline]
    fn copy_to(&mut self, end: usize) {
        let Some(part) = self.bytes.get(self.at..end) else {
            return;
        };
        if part.len() < LARGE {
            self.buffer.extend_from_slice(part);
        } else {
            self.flush();
            self.pieces.push(Piece::Bytes(Cow::Borrowed(part)));
        }
        self.at = end;
    }

    /// Writes zeros instead of the next part of the input, up to the offset `end`.
    #[inline]
    fn write_zeros_to(&mut self, end: usize) {
        let len = end.saturating_sub(self.at);
        if len < LARGE {
            self.buffer.resize(self.buffer.len() + len, 0);
        } else {
            self.flush();
            self.pieces.push(Piece::Zeros(len));
        }
        self.at = self.at.max(end);
    }

    fn flush(&mut self) {
        if !self.buffer.is_empty() {
            let buffer = std::mem::take(&mut self.buffer);
            self.pieces.push(Piece::Bytes(Cow::Owned(buffer)));
        }
    }

    fn finish(mut self) -> Vec<Piece<'a>> {
        self.flush();
        self.pieces
    }
}

impl<'a> Rewriter<'a> {
    /// Rewrites a record outside of the heap completely. Of a heap record, rewrites only the header.
    pub(super) fn record(&self, record: &TopRecord) -> Rewritten<'a> {
        let whole = record.at..record.end;
        let mut out = Output::new(self.bytes, &whole);
        // Keep the kind and the length of the record. Zero the time, which is between the two and which no reader
        // needs.
        out.copy_to(record.at + 1);
        out.write_zeros_to(record.at + 5);
        out.copy_to(record.at + RECORD_HEAD);
        let mut left = Left::default();
        if !record.is_heap() {
            let body = &self.bytes[record.start..record.end];
            let known = self.known_prefix_len(record, body).min(body.len());
            out.copy_to(record.start + known);
            out.write_zeros_to(record.end);
            if self.counts {
                self.count_record(record, body, known, &mut left);
            }
        }
        Rewritten {
            pieces: out.finish(),
            left,
        }
    }

    /// Replaces the bytes from the first damage on by zeros.
    pub(super) fn zero_damage(&self, lost: Range<usize>) -> Rewritten<'a> {
        let mut out = Output::new(self.bytes, &lost);
        let mut left = Left::default();
        if self.counts {
            // In a dump that a redaction wrote, these bytes are zero. Only the first byte may be the tag of an array,
            // which this function writes below.
            let content = match &self.bytes[lost.clone()] {
                [sub::PRIMITIVE_ARRAY, rest @ ..] => rest,
                all => all,
            };
            if !is_zero(content) {
                left.unknown.add(lost.len());
            }
        }
        let damage = self.survey.damage.as_ref();
        if damage.is_some_and(|d| d.lacks_length) {
            // The heap record has no length, so readers infer from its content where it ends. Readers must see that the
            // record continues here. So write the tag of an array. Zeros follow, so the array has no valid element
            // type, and readers report damage, as in the original dump.
            out.bytes_to(lost.start + 1, &[sub::PRIMITIVE_ARRAY]);
        }
        out.write_zeros_to(lost.end);
        Rewritten {
            pieces: out.finish(),
            left,
        }
    }

    /// Returns the number of bytes at the start of a record's body that have a known meaning: numbers, ids and names.
    fn known_prefix_len(&self, record: &TopRecord, body: &[u8]) -> usize {
        let id_size = self.survey.id_size;
        let word = |at: usize| {
            let word = body.get(at..)?.first_chunk::<4>()?;
            usize::try_from(u32::from_be_bytes(*word)).ok()
        };
        let rows = |at: usize, size: usize| word(at).unwrap_or(0).saturating_mul(size);
        match record.tag {
            tag::UTF8 => id_size + self.kept_name_len(record, body),
            tag::LOAD_CLASS => 8 + 2 * id_size,
            tag::UNLOAD_CLASS | tag::END_THREAD => 4,
            tag::STACK_FRAME | tag::START_THREAD => 8 + 4 * id_size,
            tag::STACK_TRACE => record::TRACE_HEAD.saturating_add(rows(8, id_size)),
            tag::ALLOC_SITES => {
                record::SITES_HEAD.saturating_add(rows(record::SITES_HEAD - 4, record::SITES_ROW))
            }
            tag::HEAP_SUMMARY => 24,
            tag::CPU_SAMPLES => 8_usize.saturating_add(rows(4, 8)),
            tag::CONTROL_SETTINGS => 6,
            _ => 0,
        }
    }

    /// Returns how many bytes of a name the redacted dump keeps. If reports need the name, all bytes up to the maximum
    /// length of a name are kept. Otherwise no bytes are kept.
    fn kept_name_len(&self, record: &TopRecord, body: &[u8]) -> usize {
        let Ok((text, id)) = record::id(self.survey.id_size)(body) else {
            return 0;
        };
        let at = record.end - text.len();
        let survey = self.survey;
        let is_needed = survey.names.contains(&id) && survey.outline.name_at(id) == Some(at);
        if is_needed {
            text.len().min(LONGEST_NAME)
        } else {
            0
        }
    }

    fn count_record(&self, record: &TopRecord, body: &[u8], known: usize, left: &mut Left) {
        let (kept, rest) = body.split_at(known);
        let is_name = record.tag == tag::UTF8;
        if is_name && known > self.survey.id_size {
            left.kept_names.add(kept.len() - self.survey.id_size);
        }
        if !is_zero(rest) {
            let of = if is_name {
                &mut left.unused_names
            } else {
                &mut left.unknown
            };
            of.add(rest.len());
        }
    }

    /// Rewrites records of the heap.
    pub(super) fn block(&self, block: &Block) -> Rewritten<'a> {
        let range = block.start..block.end;
        let mut visitor = BlockVisitor {
            rewriter: self,
            id_size: self.survey.id_size,
            out: Output::new(self.bytes, &range),
            left: Left::default(),
        };
        let id_size = visitor.id_size;
        let walked = walk::walk(self.bytes, block.start, block.end, id_size, &mut visitor);
        let (mut out, left) = (visitor.out, visitor.left);
        // Blocks end before the first damage, so the walk normally reaches the end of the block.
        out.copy_to(walked.unwrap_or_else(|damage| damage.offset));
        out.write_zeros_to(block.end);
        Rewritten {
            pieces: out.finish(),
            left,
        }
    }
}

pub(super) fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|&b| b == 0)
}

struct BlockVisitor<'a, 'r> {
    rewriter: &'r Rewriter<'a>,
    id_size: usize,
    out: Output<'a>,
    left: Left,
}

impl<'a> BlockVisitor<'a, '_> {
    fn input(&self, range: Range<usize>) -> &'a [u8] {
        self.rewriter.bytes.get(range).unwrap_or_default()
    }

    /// Writes zeros instead of a range of the input. If the input is only counted and the range has other bytes than
    /// zeros, adds the range to the amount that `of` returns.
    fn zero(&mut self, range: Range<usize>, of: fn(&mut Left) -> &mut Amount) {
        if self.rewriter.counts && !is_zero(self.input(range.clone())) {
            of(&mut self.left).add(range.len());
        }
        self.out.copy_to(range.start);
        self.out.write_zeros_to(range.end);
    }

    /// Writes a token instead of the number in a field.
    fn number(&mut self, range: Range<usize>) {
        let number = self.input(range.clone());
        if self.rewriter.counts && !is_number_token(number) {
            self.left.numbers.add(range.len());
        }
        self.out.copy_to(range.start);
        self.rewriter.tokens.number(number, &mut self.out.buffer);
        self.out.at = range.end;
    }

    /// Adds one to the count of numbers that the copy keeps.
    fn count_kept_number(&mut self, range: Range<usize>, kind: Kind, requested: bool) {
        if kind != Kind::Boolean && !is_number_token(self.input(range.clone())) {
            let of = if requested {
                &mut self.left.requested_numbers
            } else {
                &mut self.left.kept_numbers
            };
            of.add(range.len());
        }
    }

    /// Counts an array, whether a redaction keeps it or not.
    fn count_array(&mut self, id: u64, kind: Kind, elements: &[u8], known: bool) {
        let kept = self.rewriter.kept;
        let is_text = matches!(kind, Kind::Byte | Kind::Char);
        let of = if kept.anew.contains_key(&id) || (!is_text && kept.whole.contains(&id)) {
            &mut self.left.kept_tables
        } else if known || kept.whole.contains(&id) {
            &mut self.left.kept_texts
        } else if is_text && !is_token(elements) {
            &mut self.left.texts
        } else if !is_text && !is_zero(elements) {
            &mut self.left.arrays
        } else {
            return;
        };
        of.add(elements.len());
    }

    /// Zeros the values of a class's constants. No reader needs these values.
    fn constants(&mut self, at: usize) -> usize {
        let mut fields = Fields::new(self.rewriter.bytes, at, 2, self.id_size);
        for (_, kind, value) in &mut fields {
            if kind != Kind::Object {
                self.zero(value, |left| &mut left.unknown);
            }
        }
        fields.at
    }

    /// Rewrites the numbers in static fields.
    fn statics(&mut self, class: u64, at: usize) {
        let survey = self.rewriter.survey;
        let Some(class) = survey.classes.by_id(crate::ids::ObjectId(class)) else {
            return;
        };
        let class = &survey.classes[class];
        for (name, kind, value) in Fields::new(self.rewriter.bytes, at, self.id_size, self.id_size)
        {
            if kind == Kind::Object {
                continue;
            }
            let name = survey
                .outline
                .name(self.rewriter.bytes, name)
                .unwrap_or_default();
            match self.rewriter.rules.number(class, &name, kind) {
                Number::Hash => self.zero(value, |left| &mut left.hashes),
                Number::Token => self.number(value),
                number if self.rewriter.counts => {
                    self.count_kept_number(value, kind, number == Number::Requested);
                }
                _ => {}
            }
        }
    }
}

impl Visitor for BlockVisitor<'_, '_> {
    #[inline]
    fn instance(&mut self, object: Object, class: u64, body: &[u8]) {
        let start = object.at + 1 + 2 * self.id_size + 8;
        let end = start + body.len();
        let rewriter = self.rewriter;
        let Some(plan) = rewriter.survey.plan_of(class) else {
            self.zero(start..end, |left| &mut left.unknown);
            return;
        };
        if rewriter.boxes.has(object.id) && plan.is_box() {
            self.zero(start..end, |left| &mut left.hashes);
            return;
        }
        for blank in &plan.blanks {
            let at = start + blank.at as usize;
            let range = at..at + blank.kind.size(self.id_size);
            if range.end > end {
                self.zero(at.min(end)..end, |left| &mut left.unknown);
            } else if blank.is_hash {
                self.zero(range, |left| &mut left.hashes);
            } else {
                self.number(range);
            }
        }
        if rewriter.counts {
            for &(at, kind, requested) in &plan.numbers {
                let at = start + at as usize;
                let to = at + kind.size(self.id_size);
                if to <= end {
                    self.count_kept_number(at..to, kind, requested);
                }
            }
        }
        if plan.len < body.len() {
            self.zero(start + plan.len..end, |left| &mut left.unknown);
        }
    }

    #[inline]
    fn primitive_array(&mut self, object: Object, kind: Kind, _: u32, elements: &[u8]) {
        let start = object.at + 1 + self.id_size + 9;
        let end = start + elements.len();
        let rewriter = self.rewriter;
        let wide = kind == Kind::Char;
        let is_text = wide || kind == Kind::Byte;
        let known = is_text && rewriter.rules.is_well_known_string(elements, wide);
        if rewriter.counts {
            self.count_array(object.id, kind, elements, known);
        }
        let kept = Some(rewriter.kept).filter(|kept| kept.has(object.id));
        if known || kept.is_some_and(|kept| kept.whole.contains(&object.id)) {
            return;
        }
        self.out.copy_to(start);
        match kept.and_then(|kept| kept.anew.get(&object.id)) {
            Some(anew) if anew.len() == elements.len() => self.out.bytes_to(end, anew),
            _ if is_text && elements.len() <= LONGEST && !is_zero(elements) => {
                rewriter.tokens.write(elements, wide, &mut self.out.buffer);
                self.out.at = end;
            }
            _ => self.out.write_zeros_to(end),
        }
    }

    fn class_dump(&mut self, at: usize, class: ClassDump) {
        // The superclass, loader, signers and protection domain come before the reserved ids.
        let reserved = at + 1 + 5 * self.id_size + 4;
        let end = reserved + 2 * self.id_size;
        self.zero(reserved..end, |left| &mut left.unknown);
        let statics = self.constants(end + 4);
        self.statics(class.id, statics);
    }
}

/// The constants or static fields in a class's record. A constant has a number, a type and a value. A static field has
/// a name, a type and a value.
struct Fields<'a> {
    bytes: &'a [u8],
    /// The offset of the next field, or the offset after the last field.
    at: usize,
    left: u16,
    key: usize,
    id_size: usize,
}

impl<'a> Fields<'a> {
    /// Creates an iterator over the fields or constants in a class's record. Their number is at the offset `at`.
    fn new(bytes: &'a [u8], at: usize, key: usize, id_size: usize) -> Self {
        let count = bytes.get(at..).and_then(<[u8]>::first_chunk::<2>);
        Self {
            bytes,
            at: at + 2,
            left: count.map_or(0, |c| u16::from_be_bytes(*c)),
            key,
            id_size,
        }
    }
}

impl Iterator for Fields<'_> {
    type Item = (u64, Kind, Range<usize>);

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let key = self.bytes.get(self.at..self.at + self.key)?;
        let key = key.iter().fold(0, |v, &b| v << 8 | u64::from(b));
        let kind = Kind::from_code(*self.bytes.get(self.at + self.key)?)?;
        let value = self.at + self.key + 1;
        self.at = value + kind.size(self.id_size);
        Some((key, kind, value..self.at))
    }
}
