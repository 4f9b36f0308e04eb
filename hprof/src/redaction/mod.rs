//! Writes a copy of a dump without its content. The copy has the same objects, ids, classes, sizes and references, but
//! no strings.

mod boxes;
mod fields;
mod kept;
mod rewrite;
mod rules;
mod survey;
mod tally;
mod tokens;

pub use rules::{CleanTable, KeptTables, Rules};
pub use tally::{Amount, Left};

use std::cell::Cell;
use std::io::{self, Write};
use std::ops::Range;
use std::sync::mpsc::sync_channel;

use rayon::prelude::*;

use crate::bytes::source::Source;
use crate::error::{Result, Warning};
use crate::flaw::Flaw;
use crate::progress::Progress;
use crate::records::outline::{MAGIC, Next, TopLevel, TopRecord};
use crate::records::record::{self, Header};
use boxes::HashBoxes;
use kept::Kept;
use rewrite::{Piece, Rewriter, Rewritten, is_zero};
use survey::{Block, Survey};
use tokens::Tokens;

/// Number of bytes of the dump that are rewritten together.
const BATCH: usize = 32 << 20;
/// Maximum number of batches that wait for the disk.
const WAITING: usize = 2;
/// Maximum number of warnings.
const WARNINGS: usize = 1000;

/// The redaction of a file. The file can contain several dumps, and all of them are redacted.
#[derive(Debug)]
pub struct Redaction<'a> {
    source: &'a Source,
    header: Header,
    tokens: Tokens,
    rules: Rules<'a>,
}

/// The result of a redaction.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Redacted {
    /// Number of bytes written.
    pub bytes: u64,
    /// Warnings about damage. Parts of the file that could not be parsed were not copied.
    pub warnings: Vec<Warning>,
    /// Offset of the first damage in the dump. Nothing after it is copied.
    pub damaged_at: Option<u64>,
    /// Amount of each kind of content in the dump, if the content was counted (see [`Redaction::check`]).
    pub left: Left,
}

impl<'a> Redaction<'a> {
    /// Reads the header.
    ///
    /// # Errors
    /// Returns an error if the bytes do not begin like a heap dump.
    pub fn new(source: &'a Source, rules: Rules<'a>) -> Result<Self> {
        Ok(Self {
            source,
            header: record::header(source)?,
            tokens: Tokens::default(),
            rules,
        })
    }

    /// Writes the redacted dump, which has the size of the original dump.
    ///
    /// # Errors
    /// Returns the errors of writing to `out`, and [`io::ErrorKind::Interrupted`] if the work was cancelled.
    pub fn write(
        &self,
        out: &mut (dyn Write + Send),
        progress: &dyn Progress,
    ) -> io::Result<Redacted> {
        self.run(Some(out), progress)
    }

    /// Counts the content that a redaction removes, and the content that it keeps.
    ///
    /// # Errors
    /// Returns [`io::ErrorKind::Interrupted`] if the work was cancelled.
    pub fn check(&self, progress: &dyn Progress) -> io::Result<Redacted> {
        self.run(None, progress)
    }

    /// Processes all dumps of the file.
    fn run(
        &self,
        mut out: Option<&mut (dyn Write + Send)>,
        progress: &dyn Progress,
    ) -> io::Result<Redacted> {
        let mut done = Redacted::default();
        done.warnings.extend_from_slice(self.source.warnings());
        let bytes: &[u8] = self.source;
        let mut header = self.header.clone();
        let mut start = 0;
        loop {
            // Each dump in the file has its own names and classes.
            let dump = &bytes[start..];
            let to: Option<&mut (dyn Write + Send)> = match &mut out {
                Some(out) => Some(&mut **out),
                None => None,
            };
            let next = self.dump(dump, start, &header, to, progress, &mut done)?;
            let Some(next) = next else { break };
            start += next;
            match record::header(&bytes[start..]) {
                Ok(found) => header = found,
                Err(_) => {
                    let rest = &bytes[start..];
                    let flaw = Flaw::ZeroedEnd {
                        bytes: rest.len().saturating_sub(MAGIC.len()),
                    };
                    done.warn(Warning::at(start as u64, &flaw));
                    // Every dump begins with the same magic bytes, which mark the end of the previous dump. So keep the
                    // magic bytes.
                    let (magic, content) = rest.split_at(MAGIC.len().min(rest.len()));
                    if !is_zero(content) {
                        done.left.unknown.add(rest.len());
                    }
                    if let Some(out) = &mut out {
                        out.write_all(magic)?;
                        write_piece(&mut **out, &Piece::Zeros(content.len()))?;
                    }
                    break;
                }
            }
        }
        done.bytes = bytes.len() as u64;
        Ok(done)
    }

    /// Processes one dump, which begins at `offset` in the file. Returns the start of the next dump.
    fn dump(
        &self,
        dump: &[u8],
        offset: usize,
        header: &Header,
        out: Option<&mut (dyn Write + Send)>,
        progress: &dyn Progress,
        done: &mut Redacted,
    ) -> io::Result<Option<usize>> {
        let survey = Survey::new(dump, header, &self.rules, progress);
        for warning in &survey.outline.warnings {
            done.warn(with_file_offset(warning.clone(), offset));
        }
        if survey.unplanned > 0 {
            let classes = survey.unplanned;
            done.warn(Warning::new(&Flaw::ZeroedInstances { classes }));
        }
        if let Some(damage) = &survey.damage {
            let at = (offset + survey.end) as u64;
            done.damaged_at = Some(at);
            let flaw = Flaw::ZeroedRest {
                flaw: Box::new(damage.flaw.clone()),
                bytes: dump.len() - survey.end,
            };
            done.warn(Warning::at(at, &flaw));
        }
        let texts = Cell::new(Amount::default());
        let counts = out.is_none();
        let overwrite = |text: &mut [u8]| {
            if counts && !tokens::is_utf8_token(text) {
                let mut amount = texts.get();
                amount.add(text.len());
                texts.set(amount);
            }
            self.tokens.write_utf8(text);
        };
        let kept = Kept::find(dump, &survey, &self.rules, &overwrite);
        done.left.table_texts += texts.get();
        let boxes = HashBoxes::find(dump, &survey);
        let rewriter = Rewriter {
            bytes: dump,
            survey: &survey,
            tokens: &self.tokens,
            rules: &self.rules,
            kept: &kept,
            boxes: &boxes,
            counts,
        };
        progress.phase(
            if counts { "checking" } else { "redacting" },
            dump.len() as u64,
        );
        let mut next_dump = None;
        let mut rewrite = |batch: &[Part]| {
            let size: usize = batch.iter().map(Part::len).sum();
            if let Some(Part::Dump(at)) = batch.last() {
                next_dump = Some(*at);
            }
            let rewritten: Vec<Rewritten<'_>> =
                batch.par_iter().map(|part| rewriter.part(part)).collect();
            for part in &rewritten {
                done.left += part.left;
            }
            progress.advance(size as u64);
            rewritten
        };
        let batches = Batches::new(dump, header, &survey);
        match out {
            None => {
                for batch in batches {
                    rewrite(&batch);
                    if progress.cancelled() {
                        break;
                    }
                }
            }
            Some(out) => {
                out.write_all(&head(dump, header))?;
                write_all(batches, &mut rewrite, out, progress)?;
            }
        }
        if progress.cancelled() {
            Err(io::ErrorKind::Interrupted.into())
        } else {
            Ok(next_dump)
        }
    }
}

/// Writes batches while the next ones are being created.
fn write_all<'a>(
    batches: Batches<'_>,
    rewrite: &mut dyn FnMut(&[Part]) -> Vec<Rewritten<'a>>,
    out: &mut (dyn Write + Send),
    progress: &dyn Progress,
) -> io::Result<()> {
    let mut batches = batches.peekable();
    let first = batches.next().map(|batch| rewrite(&batch));
    if batches.peek().is_none() {
        // For a small dump, starting a thread takes longer than the thread would save.
        let mut pieces = first.into_iter().flatten().flat_map(|r| r.pieces);
        return pieces.try_for_each(|piece| write_piece(out, &piece));
    }
    std::thread::scope(|scope| {
        let (send, rewritten) = sync_channel::<Vec<Rewritten<'_>>>(WAITING);
        let writer = scope.spawn(move || {
            let mut pieces = rewritten.into_iter().flatten().flat_map(|r| r.pieces);
            pieces.try_for_each(|piece| write_piece(out, &piece))
        });
        // If `send` fails, the writer thread has ended because of an error. The thread returns this error when it is
        // joined.
        let mut sent = first.is_none_or(|first| send.send(first).is_ok());
        for batch in batches {
            if !sent || progress.cancelled() {
                break;
            }
            sent = send.send(rewrite(&batch)).is_ok();
        }
        drop(send);
        let written = writer.join();
        written.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Converts a warning's offset in its dump to an offset in the file. `offset` is the offset of the dump.
fn with_file_offset(mut warning: Warning, offset: usize) -> Warning {
    warning.offset = warning.offset.map(|at| at + offset as u64);
    warning
}

impl Redacted {
    fn warn(&mut self, warning: Warning) {
        if self.warnings.len() < WARNINGS {
            self.warnings.push(warning);
        }
    }
}

/// Returns the bytes of a header. In its version, all characters except digits and dots are replaced by dots.
fn head(dump: &[u8], header: &Header) -> Vec<u8> {
    let mut head = dump[..header.end].to_vec();
    // A version consists of digits and dots. After the version come a zero byte, the size of ids, and the time.
    let version = "JAVA PROFILE ".len()..header.end.saturating_sub(1 + 4 + 8);
    for byte in head.get_mut(version).unwrap_or_default() {
        if !byte.is_ascii_digit() && *byte != b'.' {
            *byte = b'.';
        }
    }
    head
}

fn write_piece(out: &mut (dyn Write + Send), piece: &Piece<'_>) -> io::Result<()> {
    match piece {
        Piece::Bytes(bytes) => out.write_all(bytes),
        Piece::Zeros(zeros) => {
            io::copy(&mut io::Read::take(io::repeat(0), *zeros as u64), out).map(drop)
        }
    }
}

/// A part of a dump that is rewritten independently.
#[derive(Clone, Copy, Debug)]
enum Part {
    Record(TopRecord),
    Block(Block),
    /// The bytes from the first damage on.
    Lost(usize, usize),
    /// The header of another dump.
    Dump(usize),
}

impl Part {
    const fn len(&self) -> usize {
        match self {
            Self::Record(r) if r.is_heap() => r.start - r.at,
            Self::Record(r) => r.end - r.at,
            Self::Block(b) => b.end - b.start,
            Self::Lost(from, to) => *to - *from,
            Self::Dump(_) => 0,
        }
    }
}

impl<'a> Rewriter<'a> {
    fn part(&self, part: &Part) -> Rewritten<'a> {
        match part {
            Part::Record(record) => self.record(record),
            Part::Block(block) => self.block(block),
            Part::Lost(from, to) => self.zero_damage(*from..*to),
            Part::Dump(_) => Rewritten::default(),
        }
    }
}

/// An iterator that divides a dump into batches of parts, in the order of the file. A batch has at least [`BATCH`]
/// bytes, and each part is counted as at least 64 bytes. The last batch can be smaller.
struct Batches<'a> {
    records: TopLevel<'a>,
    blocks: std::iter::Peekable<std::slice::Iter<'a, Block>>,
    /// The part of the dump from the first damage on. `None` if there is no such part, or if it was already returned.
    lost: Option<Range<usize>>,
    /// The end of the part of the dump that can be parsed.
    end: usize,
    /// The offset in the dump at which the current heap record ends. Blocks (groups of objects) that end at or before
    /// this offset belong to this record.
    heap: usize,
}

impl<'a> Batches<'a> {
    fn new(dump: &'a [u8], header: &Header, survey: &'a Survey) -> Self {
        Self {
            records: TopLevel::after(dump, header),
            blocks: survey.blocks.iter().peekable(),
            lost: survey.damage.as_ref().map(|_| survey.end..dump.len()),
            end: survey.end,
            heap: 0,
        }
    }

    fn part(&mut self) -> Option<Part> {
        if let Some(block) = self.blocks.next_if(|b| b.end <= self.heap) {
            return Some(Part::Block(*block));
        }
        match self.records.next().filter(|next| next.at() < self.end) {
            Some(Next::Record(record)) => {
                if record.is_heap() {
                    self.heap = record.end;
                }
                Some(Part::Record(record))
            }
            Some(Next::Dump(at)) => Some(Part::Dump(at)),
            Some(Next::Rest(_)) | None => {
                let lost = self.lost.take()?;
                Some(Part::Lost(lost.start, lost.end))
            }
        }
    }
}

impl Iterator for Batches<'_> {
    type Item = Vec<Part>;

    fn next(&mut self) -> Option<Vec<Part>> {
        let mut batch = Vec::new();
        let mut size = 0;
        while size < BATCH {
            let Some(part) = self.part() else { break };
            // A small record is counted as 64 bytes, because even a small record takes some time.
            size += part.len().max(64);
            batch.push(part);
        }
        (!batch.is_empty()).then_some(batch)
    }
}
