//! Writes a whole dump from a truncated or damaged one, or from a dump and the segment files that a JVM did not merge
//! into it.
//!
//! The first pass reads all records, and lists the byte ranges in which the output differs from the input. The second
//! pass copies the input and applies these changes. So the memory depends on the number of changes and classes, not on
//! the number of objects.

mod changes;
mod damage;
mod heap;
mod threads;

use std::io::{self, Write};

use crate::bytes::source::Source;
use crate::error::{Error, Result, Warning};
use crate::progress::Progress;
use crate::records::outline::Outline;
use crate::records::record;
pub use crate::records::repaired::Repaired;
use changes::Changes;
use damage::DumpSurvey;

/// Maximum number of warnings.
const WARNINGS: usize = 1000;
/// Number of bytes that are written between two checks for cancellation.
const BATCH: usize = 16 << 20;

/// A repair of the dumps in one file.
#[derive(Debug)]
pub struct Repair<'a> {
    source: &'a Source,
    changes: Changes,
    repaired: Repaired,
    is_damaged: bool,
    warnings: Vec<Warning>,
}

impl<'a> Repair<'a> {
    /// Reads all records of a file, and finds the byte ranges that have to be repaired.
    ///
    /// Cost: one pass over the file, on all threads of the current rayon pool.
    ///
    /// # Errors
    /// Returns an error if the bytes do not begin like a heap dump, or if the first dump contains no heap record. Also
    /// returns an error if the work was cancelled.
    pub fn new(source: &'a Source, progress: &dyn Progress) -> Result<Self> {
        let bytes: &[u8] = source;
        let mut header = record::header(source)?;
        // Without a heap record, nothing can be repaired.
        Outline::with_heap(source, &header)?;
        let mut this = Self {
            source,
            changes: Changes::default(),
            repaired: Repaired::default(),
            is_damaged: false,
            warnings: source.warnings().to_vec(),
        };
        let mut parts = source.warnings().iter().filter(|w| w.partial).count() as u64;
        progress.phase("looking for damage", bytes.len() as u64);
        let mut start = 0;
        loop {
            let dump = &bytes[start..];
            let survey = DumpSurvey::new(dump, &header, parts, progress)?;
            this.add(start, &survey);
            parts = 0;
            let Some(next) = survey.next_dump else {
                break;
            };
            start += next;
            match record::header(&bytes[start..]) {
                Ok(next) => header = next,
                Err(_) => {
                    // The first bytes of a dump follow, but no header.
                    this.is_damaged = true;
                    this.repaired.records += 1;
                    this.repaired.left_out += (bytes.len() - start) as u64;
                    this.changes.remove(start..bytes.len());
                    break;
                }
            }
        }
        Ok(this)
    }

    fn add(&mut self, start: usize, survey: &DumpSurvey) {
        let room = WARNINGS.saturating_sub(self.warnings.len());
        let warnings = survey.warnings.iter().take(room).cloned();
        self.warnings.extend(warnings.map(|mut warning| {
            warning.offset = warning.offset.map(|at| at + start as u64);
            warning
        }));
        if let Some(repaired) = survey.repaired {
            self.is_damaged = true;
            self.repaired = self.repaired.with(repaired);
            self.changes.extend(start, &survey.changes);
        }
    }

    /// True if the dump lacks a part, or if it is joined from segments or from the parts of a transfer through a pipe.
    /// If false, the output is the same as the input.
    #[must_use]
    pub fn is_needed(&self) -> bool {
        self.is_damaged || self.source.is_joined()
    }

    /// True if the dump lacks a part.
    #[must_use]
    pub const fn is_damaged(&self) -> bool {
        self.is_damaged
    }

    /// Returns the parts that the dump lacks, and the parts that the repair added to the output.
    #[must_use]
    pub const fn repaired(&self) -> &Repaired {
        &self.repaired
    }

    /// Returns the warnings that a reader of the input gets.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Writes the whole dump. Returns its size in bytes.
    ///
    /// Cost: one pass over the file, on this thread.
    ///
    /// # Errors
    /// Returns the errors of writing to `out`, and [`io::ErrorKind::Interrupted`] if the work was cancelled.
    pub fn write(&self, out: &mut (dyn Write + Send), progress: &dyn Progress) -> io::Result<u64> {
        let bytes: &[u8] = self.source;
        progress.phase("writing", bytes.len() as u64);
        let mut written = 0;
        for piece in self.changes.pieces(bytes) {
            for batch in piece.chunks(BATCH) {
                if progress.cancelled() {
                    return Err(io::ErrorKind::Interrupted.into());
                }
                out.write_all(batch)?;
                written += batch.len() as u64;
                progress.advance(batch.len() as u64);
            }
        }
        Ok(written)
    }
}

/// Returns an error if the work is cancelled.
fn check_cancelled(progress: &dyn Progress) -> Result<()> {
    if progress.cancelled() {
        Err(Error::Cancelled)
    } else {
        Ok(())
    }
}
