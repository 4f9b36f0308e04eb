//! The format of an index: header, table of sections, and checksums.

use std::fs::File;
use std::iter;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytemuck::Pod;
use rayon::prelude::*;

use super::fault::IndexFault;
use crate::bytes::array::{Column, Store};
use crate::bytes::mapped::MappedFile;
use crate::bytes::mem;
use crate::bytes::stamp::{Stamp, hash};
use crate::options::Refs;

pub(super) const MAGIC: &[u8] = b"heapdiff index\r\n";
/// The version of an index file's format. It must be incremented if one of these changes: the sections; the field
/// `bare` in [`Thresholds::USUAL`]; the way in which the dump is split into pieces (of about a megabyte). `bare` and
/// the pieces matter because the object numbers of objects that refer only to their class depend on them.
///
/// [`Thresholds::USUAL`]: crate::dominators::thresholds::Thresholds::USUAL
const VERSION: u32 = 11;
/// Size of the header in bytes. Its last word is a checksum of the header and the table of sections.
const HEADER: usize = 128;
const ENTRY: usize = 24;
/// Sections begin at multiples of this number of bytes.
pub(super) const ALIGN: usize = 64;
/// Size of a block of a section in bytes. Each block has a hash and is checked separately.
const BLOCK: usize = 1 << 18;

/// The sections of an index file, in the order of its table of sections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Section {
    Small,
    InnerShapes,
    LeafShapes,
    /// Class and length of each long array. Shorter arrays are not listed, because the 32-bit code that an index stores
    /// for each object contains their class and length.
    LongArrays,
    /// Objects with an allocation site: object number and stack trace serial.
    Sites,
    /// The address map is divided into ranges of equal size, called stretches. The index stores only stretches in which
    /// objects start. This section contains the numbers of the stored stretches. The next two sections contain their
    /// bitmap words and their counts.
    MapStretches,
    MapBits,
    MapCounts,
    /// Object numbers, indexed by rank. If ids are addresses, the section contains the numbers of objects with
    /// references, and a rank is the number of these objects at lower addresses. Otherwise it contains the numbers of
    /// all objects, and a rank is the number of objects with lower ids.
    MapNumbers,
    MapLeaves,
    MapIds,
    NodeObject,
    NodeParent,
    NodeEnd,
    NodeBases,
    NodeBytes,
    NodeFarBytes,
    LeafBases,
    NodeLeaves,
    LeafFar,
    Leaves,
    NodeOf,
    LeafParent,
    /// Offsets of object records in the dump: see [`crate::index::positions`].
    LinkedPositions,
    LeafPositions,
    /// The sections from here to the last contain the referrers of each object: see [`crate::index::inbound`]. The
    /// blocks of `Inbound` and `InboundFar` are verified when they are first used. `InboundSums` and `InboundFarSums`
    /// contain the hashes of these blocks.
    InboundGroups,
    InboundFarBases,
    InboundSums,
    InboundFarSums,
    Inbound,
    InboundFar,
}

pub(super) const SECTIONS: usize = Section::InboundFar as usize + 1;

/// Pairs of sections. The blocks of the first section are verified when they are first used. The second section
/// contains the hashes of these blocks.
const LAZY: [(Section, Section); 2] = [
    (Section::Inbound, Section::InboundSums),
    (Section::InboundFar, Section::InboundFarSums),
];

/// Returns the checksum of a section: a hash of its block hashes.
///
/// Cost: one parallel pass.
pub(super) fn checksum(bytes: &[u8]) -> u64 {
    hash(bytemuck::cast_slice(&block_hashes(bytes)))
}

/// Returns the hashes of the blocks of a section.
pub(super) fn block_hashes(bytes: &[u8]) -> Vec<u64> {
    bytes.par_chunks(BLOCK).map(hash).collect()
}

/// The location of a section in the file, and its checksum.
#[derive(Clone, Copy, Debug, Default)]
struct SectionEntry {
    offset: u64,
    bytes: u64,
    sum: u64,
}

/// Returns the header and the table of an index with these sections, and the offset of each section.
pub(super) fn head(stamp: &Stamp, refs: Refs, sections: &[&[u8]; SECTIONS]) -> (Vec<u8>, Vec<u64>) {
    let mut at = (HEADER + SECTIONS * ENTRY).next_multiple_of(ALIGN) as u64;
    let mut offsets = Vec::with_capacity(SECTIONS);
    let mut table = Vec::with_capacity(SECTIONS * ENTRY);
    for section in sections {
        offsets.push(at);
        for word in [at, section.len() as u64, checksum(section)] {
            table.extend_from_slice(&word.to_le_bytes());
        }
        at = (at + section.len() as u64).next_multiple_of(ALIGN as u64);
    }
    let mut head = header(stamp, refs, at);
    head.extend_from_slice(&[0; 8]);
    head.extend_from_slice(&table);
    let sum = header_hash(&head);
    head[HEADER - 8..HEADER].copy_from_slice(&sum.to_le_bytes());
    (head, offsets)
}

/// Returns the header without its checksum.
fn header(stamp: &Stamp, refs: Refs, len: u64) -> Vec<u8> {
    let mut header = MAGIC.to_vec();
    header.extend_from_slice(&VERSION.to_le_bytes());
    header.extend_from_slice(&(refs as u32).to_le_bytes());
    let words = iter::once(program()).chain(stamp.words()).chain([len]);
    header.extend(words.flat_map(u64::to_le_bytes));
    header.resize(HEADER - 8, 0);
    header
}

pub(super) fn program() -> u64 {
    hash(env!("CARGO_PKG_VERSION").as_bytes())
}

fn header_hash(head: &[u8]) -> u64 {
    hash(bytemuck::cast_slice(&[
        hash(&head[..HEADER - 8]),
        hash(&head[HEADER..]),
    ]))
}

/// Corrects the checksums of an index, for tests that change its content.
#[cfg(feature = "fuzzing")]
pub(crate) fn fix_checksums(bytes: &mut [u8]) {
    let part = |bytes: &[u8], section: Section| {
        let at = HEADER + section as usize * ENTRY;
        let word = |at: usize| {
            let word = bytes.get(at..).and_then(<[u8]>::first_chunk);
            word.map_or(0, |w| usize::try_from(u64::from_le_bytes(*w)).unwrap_or(0))
        };
        let range = word(at)..word(at).saturating_add(word(at + 8));
        bytes.get(range.clone()).map(|_| range)
    };
    for (section, sums) in LAZY {
        if let (Some(of), Some(to)) = (part(bytes, section), part(bytes, sums)) {
            let sums = block_hashes(&bytes[of]);
            let sums: &[u8] = bytemuck::cast_slice(&sums);
            if sums.len() == to.len() {
                bytes[to].copy_from_slice(sums);
            }
        }
    }
    for at in (0..SECTIONS).map(|i| HEADER + i * ENTRY) {
        let word = |at: usize| {
            let word = bytes.get(at..).and_then(<[u8]>::first_chunk);
            word.map_or(0, |w| u64::from_le_bytes(*w) as usize)
        };
        let (offset, len) = (word(at), word(at + 8));
        let section = bytes.get(offset..).and_then(|b| b.get(..len));
        let sum = section.map_or(0, checksum);
        if let Some(to) = bytes.get_mut(at + 16..at + 24) {
            to.copy_from_slice(&sum.to_le_bytes());
        }
    }
    if let Some(head) = bytes.get_mut(..HEADER + SECTIONS * ENTRY) {
        let sum = header_hash(head);
        head[HEADER - 8..HEADER].copy_from_slice(&sum.to_le_bytes());
    }
}

/// An index with a valid header and table.
pub(super) struct Sections {
    map: Arc<MappedFile>,
    table: [SectionEntry; SECTIONS],
    store: Store,
}

impl Sections {
    /// Maps an index and checks that it belongs to this dump and these options.
    pub(super) fn open(
        path: &Path,
        stamp: &Stamp,
        refs: Refs,
        store: &Store,
    ) -> Result<Self, IndexFault> {
        if cfg!(target_endian = "big") {
            return Err(IndexFault::Other(
                "the file was written on a machine with another byte order",
            ));
        }
        let file = File::open(path)?;
        if !file.metadata()?.is_file() || file.metadata()?.len() < MAGIC.len() as u64 {
            return Err(IndexFault::Foreign);
        }
        let map = MappedFile::new(file, path)?;
        if !map.starts_with(MAGIC) {
            return Err(IndexFault::Foreign);
        }
        let head = map
            .get(..HEADER + SECTIONS * ENTRY)
            .ok_or(IndexFault::Damaged("the file is truncated"))?;
        let word = |at: usize| {
            let bytes = head.get(at..).and_then(<[u8]>::first_chunk);
            bytes.map_or(0, |b| u64::from_le_bytes(*b))
        };
        let expected = header(stamp, refs, map.len() as u64);
        let own = word(MAGIC.len());
        let wanted = u64::from(VERSION) | (refs as u64) << 32;
        if own as u32 != VERSION || head[24..32] != expected[24..32] {
            return Err(IndexFault::Other(
                "the file was written by another version of heapdiff",
            ));
        }
        if word(HEADER - 8) != header_hash(head) {
            return Err(IndexFault::Damaged("the checksum of its header is wrong"));
        }
        if own != wanted {
            return Err(IndexFault::Other(
                "the file was written with another --refs option",
            ));
        }
        if head[64..72] != expected[64..72] {
            return Err(IndexFault::Damaged("the file is truncated"));
        }
        if head[..HEADER - 8] != expected[..] {
            return Err(IndexFault::Stale);
        }
        let mut table = [SectionEntry::default(); SECTIONS];
        for (i, entry) in table.iter_mut().enumerate() {
            let at = HEADER + i * ENTRY;
            *entry = SectionEntry {
                offset: word(at),
                bytes: word(at + 8),
                sum: word(at + 16),
            };
        }
        Ok(Self {
            map: Arc::new(map),
            table,
            store: store.clone(),
        })
    }

    pub(super) const fn store(&self) -> &Store {
        &self.store
    }

    fn range(&self, section: Section) -> Option<Range<usize>> {
        let entry = self.table[section as usize];
        let end = entry.offset.checked_add(entry.bytes)?;
        let range = usize::try_from(entry.offset).ok()?..usize::try_from(end).ok()?;
        (range.end <= self.map.len()).then_some(range)
    }

    /// Returns a section as an array. Returns an error if the checksum of the section is wrong, or if `fits` returns
    /// false for a block. The arguments of `fits` are the whole array, and the range of its elements that are in the
    /// block. `fits` is called before the checksum is compared, so the elements may be damaged.
    pub(super) fn column<T: Pod + Sync>(
        &self,
        section: Section,
        fits: impl Fn(&[T], Range<usize>) -> bool + Sync,
    ) -> Result<Column<T>, IndexFault> {
        let damaged = || IndexFault::Damaged("the checksum of a section is wrong");
        let range = self.range(section).ok_or_else(damaged)?;
        let (first, bytes) = (range.start, range.len());
        let column: Column<T> = Column::part(&self.map, range, &self.store).ok_or_else(damaged)?;
        let all: &[T] = &column;
        let size = size_of::<T>();
        let sums: Option<Vec<u64>> = (0..bytes.div_ceil(BLOCK))
            .into_par_iter()
            .map(|block| {
                let part = block * BLOCK..bytes.min((block + 1) * BLOCK);
                mem::populate(self.map.map(), first + part.start, part.len());
                let elements = part.start / size..part.end / size;
                let sum = hash(bytemuck::cast_slice(&all[elements.clone()]));
                fits(all, elements).then_some(sum)
            })
            .collect();
        match sums {
            Some(sums) if hash(bytemuck::cast_slice(&sums)) == self.table[section as usize].sum => {
                Ok(column)
            }
            _ => Err(damaged()),
        }
    }

    /// Returns a section whose blocks are verified separately, when they are first used.
    pub(super) fn lazy(&self, section: Section) -> Result<Lazy, IndexFault> {
        let damaged = || IndexFault::Damaged("the checksum of a section is wrong");
        let sums = LAZY.iter().find(|l| l.0 == section).ok_or_else(damaged)?.1;
        let sums: Column<u64> = self.column(sums, |_, _| true)?;
        let range = self.range(section).ok_or_else(damaged)?;
        let sum = self.table[section as usize].sum;
        if sums.len() != range.len().div_ceil(BLOCK) || hash(bytemuck::cast_slice(&sums)) != sum {
            return Err(damaged());
        }
        let words = sums.len().div_ceil(64);
        Ok(Lazy {
            map: self.map.clone(),
            range,
            sums,
            verified: std::iter::repeat_with(|| AtomicU64::new(0))
                .take(words)
                .collect(),
            damaged: AtomicBool::new(false),
        })
    }
}

/// A section of an index whose blocks are verified separately, each right before its first use.
#[derive(Debug)]
pub(crate) struct Lazy {
    map: Arc<MappedFile>,
    range: Range<usize>,
    /// The hashes of the section's blocks.
    sums: Column<u64>,
    /// One bit for each block, which is set if the block was verified.
    verified: Box<[AtomicU64]>,
    damaged: AtomicBool,
}

impl Lazy {
    pub(crate) fn len(&self) -> usize {
        self.range.len()
    }

    /// Returns bytes of the section after verifying them; `None` if they are damaged, or if the range is not within the
    /// section.
    ///
    /// Cost: hashes the blocks that were not used before.
    pub(crate) fn get(&self, part: Range<usize>) -> Option<&[u8]> {
        let all = self.map.get(self.range.clone())?;
        let bytes = all.get(part.clone())?;
        for block in part.start / BLOCK..part.end.div_ceil(BLOCK) {
            let (word, bit) = (self.verified.get(block / 64)?, 1 << (block % 64));
            if word.load(Ordering::Relaxed) & bit != 0 {
                continue;
            }
            let own = block * BLOCK..all.len().min((block + 1) * BLOCK);
            mem::populate(self.map.map(), self.range.start + own.start, own.len());
            if self.sums.get(block) != Some(&hash(&all[own])) {
                self.damaged.store(true, Ordering::Relaxed);
                return None;
            }
            word.fetch_or(bit, Ordering::Relaxed);
        }
        Some(bytes)
    }

    /// Returns true if a block of the section was found to be damaged.
    pub(crate) fn is_damaged(&self) -> bool {
        self.damaged.load(Ordering::Relaxed)
    }

    /// Records that the content of a block is wrong although its hash may be correct.
    pub(crate) fn refuse(&self) {
        self.damaged.store(true, Ordering::Relaxed);
    }
}
