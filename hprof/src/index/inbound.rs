//! The referrers of each object by fields and elements: compressed lists of object numbers.
//!
//! The lists are in the order of the objects referred to. 64 lists are a group, and the start of each group is stored.
//! A list consists of its length times two, then its numbers in ascending order. The first number is stored as its
//! difference from the likely number of a referrer (see [`LikelyReferrers`]), and each other number as its difference
//! from the previous number. Most objects have one referrer that is close in the file, so most lists take two or three
//! bytes.
//!
//! ```text
//! referrers 1003, 1003, 1010, likely number 1000:     length 3 * 2 | +3 * 2 | 0 | 7
//! ```
//!
//! Lists of more than [`NEAR`] numbers are stored separately, so that readers can skip them quickly. For such a list,
//! the doubled length plus one is stored, followed by the location of the list. All numbers are variable-length: seven
//! bits per byte, the lowest first. An object that refers to another object twice is in its list twice.

use std::ops::Range;

use crate::bytes::array::Column;
use crate::graph::scan::Piece;
use crate::index::format::Lazy;

/// Number of objects in a group.
pub(crate) const GROUP: usize = 64;
/// Number of objects whose lists of referrers are created together. Their numbers differ only in the low 16 bits.
pub(crate) const BUCKET: usize = 1 << 16;
/// Maximum length of a list in the section `near`.
const NEAR: usize = 16;
/// Maximum size of an encoded number of 35 bits, in bytes.
const LONGEST: usize = 5;

/// The lists of referrers in an index.
#[derive(Debug)]
pub(crate) struct Inbound {
    /// The start of each group of 64 lists in `near`. The last element is the end of the last group.
    groups: Column<u64>,
    near: Lazy,
    /// For each bucket (see [`BUCKET`]), the offset in `far` of the first list of the bucket. `far` contains the lists
    /// of more than [`NEAR`] numbers.
    bases: Column<u64>,
    far: Lazy,
}

/// The error that the content of an index contradicts itself.
#[derive(Debug)]
pub(crate) struct Damaged;

impl Inbound {
    /// Creates the lists of referrers from the sections of an index file. Returns `None` if the sections do not fit
    /// together.
    pub(crate) fn new(
        objects: usize,
        groups: Column<u64>,
        bases: Column<u64>,
        near: Lazy,
        far: Lazy,
    ) -> Option<Self> {
        let fits = groups.len() == objects.div_ceil(GROUP) + 1
            && groups.last().map(|&end| end as usize) == Some(near.len())
            && bases.len() == objects.div_ceil(BUCKET);
        fits.then_some(Self {
            groups,
            near,
            bases,
            far,
        })
    }

    /// Returns true if a block of the lists of referrers was found to be damaged.
    pub(crate) fn is_damaged(&self) -> bool {
        self.near.is_damaged() || self.far.is_damaged()
    }

    /// Returns the number of references to an object, and the encoded list of its referrers.
    fn list(&self, target: u32) -> Option<(usize, &[u8])> {
        let group = target as usize / GROUP;
        let begin = usize::try_from(*self.groups.get(group)?).ok()?;
        let end = usize::try_from(*self.groups.get(group + 1)?).ok()?;
        let mut bytes = self.near.get(begin..end)?;
        for _ in 0..target as usize % GROUP {
            let head = take(&mut bytes)?;
            let skip = if head & 1 == 1 { 1 } else { head >> 1 };
            for _ in 0..skip {
                take(&mut bytes)?;
            }
        }
        let head = take(&mut bytes)?;
        let count = usize::try_from(head >> 1).ok()?;
        if head & 1 == 0 {
            return Some((count, bytes));
        }
        let base = *self.bases.get(target as usize / BUCKET)?;
        let begin = usize::try_from(base.checked_add(take(&mut bytes)?)?).ok()?;
        // Each number of the list takes at least one byte, so a list with more numbers than remaining bytes is damaged.
        let rest = self.far.len().checked_sub(begin).filter(|&r| r >= count)?;
        let most = count.saturating_mul(LONGEST).min(rest);
        Some((count, self.far.get(begin..begin + most)?))
    }

    /// Returns the number of references to an object.
    pub(crate) fn count(&self, target: u32) -> Result<usize, Damaged> {
        self.list(target).map(|l| l.0).ok_or_else(|| self.damaged())
    }

    /// Returns the objects that refer to an object, ascending. An object is returned once for each of its references.
    pub(crate) fn sources(
        &self,
        likely: &LikelyReferrers<'_>,
        target: u32,
    ) -> Result<Vec<u32>, Damaged> {
        let limits = likely.classes..likely.objects();
        let list = self.list(target);
        let list = list.and_then(|(count, bytes)| read(count, bytes, likely.of(target), &limits));
        list.ok_or_else(|| self.damaged())
    }

    #[cold]
    fn damaged(&self) -> Damaged {
        self.near.refuse();
        Damaged
    }
}

fn read(count: usize, mut bytes: &[u8], guess: u32, limits: &Range<u32>) -> Option<Vec<u32>> {
    let mut list = Vec::with_capacity(count.min(bytes.len()));
    let mut last = u64::from(guess);
    for at in 0..count {
        let number = take(&mut bytes)?;
        last = match at {
            // The first number of a list is stored as its difference from the guess (the likely referrer). The lowest
            // bit of the difference is 1 if the number is below the guess, and 0 otherwise.
            0 if number & 1 == 1 => last.checked_sub((number >> 1) + 1)?,
            0 => last.checked_add(number >> 1)?,
            _ => last.checked_add(number)?,
        };
        list.push(u32::try_from(last).ok().filter(|n| limits.contains(n))?);
    }
    Some(list)
}

#[inline(always)]
fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for at in 0..10 {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << (at * 7).min(63);
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[inline(always)]
fn put(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Encodes a difference, positive or negative, as a number that is small if the difference is small.
const fn zigzag_difference(from: u32, to: u32) -> u64 {
    match to.checked_sub(from) {
        Some(up) => (up as u64) << 1,
        None => ((from - to - 1) as u64) << 1 | 1,
    }
}

/// The data needed to guess an object's referrer: the ranges of object numbers, and the pieces of the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LikelyReferrers<'a> {
    pub(crate) classes: u32,
    /// The number of the first object without references.
    pub(crate) inner: u32,
    pub(crate) leaves: u32,
    pub(crate) pieces: &'a [Piece],
}

impl LikelyReferrers<'_> {
    /// Returns the number of objects.
    const fn objects(&self) -> u32 {
        self.inner + self.leaves
    }

    /// Returns the likely number of an object that refers to `target`. For an object with references, this is its own
    /// number. For an object without references, it is the number of an object with references at about the same offset
    /// in the file.
    fn of(&self, target: u32) -> u32 {
        let Some(leaf) = target.checked_sub(self.inner) else {
            return target;
        };
        let piece = self.pieces.partition_point(|p| p.first_leaf <= leaf).max(1) - 1;
        let linked = self.inner - self.classes;
        let starts =
            |p: Option<&Piece>| p.map_or((linked, self.leaves), |p| (p.first_inner, p.first_leaf));
        let (from, to) = (
            starts(self.pieces.get(piece)),
            starts(self.pieces.get(piece + 1)),
        );
        let passed = u64::from(leaf.saturating_sub(from.1));
        let both = u64::from(to.0.saturating_sub(from.0)) * passed;
        let part = both / u64::from(to.1.saturating_sub(from.1)).max(1);
        (u64::from(self.classes + from.0) + part).min(u64::from(self.inner)) as u32
    }
}

/// References that were collected before the lists are created. They are grouped by buckets of objects, and are in file
/// order within each bucket.
#[derive(Debug)]
pub(crate) struct Buckets {
    /// For each reference to an object of a bucket: its source minus the source of the previous reference, and then the
    /// low 16 bits of its target.
    parts: Vec<Vec<u8>>,
    last: Vec<u32>,
}

/// The content of the index sections that contain the lists of referrers.
#[derive(Debug, Default)]
pub(crate) struct InboundSections {
    pub(crate) groups: Vec<u64>,
    pub(crate) bases: Vec<u64>,
    pub(crate) near: Vec<u8>,
    pub(crate) far: Vec<u8>,
}

/// The lists of referrers for the objects of one bucket (see [`BUCKET`]).
struct BucketLists {
    groups: Vec<usize>,
    near: Vec<u8>,
    far: Vec<u8>,
}

impl Buckets {
    pub(crate) fn new(objects: usize) -> Self {
        let count = objects.div_ceil(BUCKET);
        Self {
            parts: vec![Vec::new(); count],
            last: vec![0; count],
        }
    }

    /// Adds references, as pairs of object numbers (target, source).
    pub(crate) fn add(&mut self, references: &[(u32, u32)]) {
        for &(target, source) in references {
            let bucket = target as usize / BUCKET;
            let Some(part) = self.parts.get_mut(bucket) else {
                continue;
            };
            put(part, zigzag_difference(self.last[bucket], source));
            part.extend_from_slice(&(target as u16).to_le_bytes());
            self.last[bucket] = source;
        }
    }

    /// Creates the lists of referrers.
    ///
    /// Cost: linear, in parallel. The references of each bucket of objects are freed when its lists are complete.
    pub(crate) fn into_lists(self, likely: &LikelyReferrers<'_>) -> InboundSections {
        use rayon::prelude::*;
        let objects = likely.objects() as usize;
        let mut lists = InboundSections::default();
        let mut parts = self.parts.into_iter().enumerate();
        loop {
            let batch: Vec<_> = parts
                .by_ref()
                .take(rayon::current_num_threads() * 4)
                .collect();
            if batch.is_empty() {
                break;
            }
            let made: Vec<BucketLists> = batch
                .into_par_iter()
                .map(|(bucket, part)| {
                    let first = bucket * BUCKET;
                    BucketLists::new(likely, first..objects.min(first + BUCKET), &part)
                })
                .collect();
            for part in made {
                let base = lists.near.len() as u64;
                lists
                    .groups
                    .extend(part.groups.iter().map(|&at| base + at as u64));
                lists.bases.push(lists.far.len() as u64);
                lists.near.extend_from_slice(&part.near);
                lists.far.extend_from_slice(&part.far);
            }
        }
        lists.groups.push(lists.near.len() as u64);
        lists
    }
}

impl BucketLists {
    fn new(likely: &LikelyReferrers<'_>, objects: Range<usize>, references: &[u8]) -> Self {
        let mut starts = vec![0_u32; objects.len() + 1];
        each(references, |low, _| {
            if let Some(count) = starts.get_mut(low + 1) {
                *count += 1;
            }
        });
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut next = starts.clone();
        let mut sources = vec![0_u32; starts.last().map_or(0, |&all| all as usize)];
        each(references, |low, source| {
            if low + 1 < next.len() {
                sources[next[low] as usize] = source;
                next[low] += 1;
            }
        });
        let mut part = Self {
            groups: Vec::with_capacity(objects.len() / GROUP + 1),
            near: Vec::with_capacity(sources.len() * 2 + objects.len()),
            far: Vec::new(),
        };
        for (at, target) in objects.enumerate() {
            if at % GROUP == 0 {
                part.groups.push(part.near.len());
            }
            let list = &mut sources[starts[at] as usize..starts[at + 1] as usize];
            list.sort_unstable();
            let long = list.len() > NEAR;
            put(&mut part.near, (list.len() as u64) << 1 | u64::from(long));
            if long {
                put(&mut part.near, part.far.len() as u64);
            }
            let out = if long { &mut part.far } else { &mut part.near };
            if let Some(&first) = list.first() {
                put(out, zigzag_difference(likely.of(target as u32), first));
            }
            for pair in list.windows(2) {
                put(out, u64::from(pair[1] - pair[0]));
            }
        }
        part
    }
}

/// Calls `f(low, source)` for each reference to an object of a bucket. `low` is the low 16 bits of the object's number,
/// and `source` is the number of the referring object.
fn each(mut references: &[u8], mut f: impl FnMut(usize, u32)) {
    let mut last = 0_u32;
    while let Some(number) = take(&mut references) {
        last = match number & 1 {
            1 => last.wrapping_sub((number >> 1) as u32 + 1),
            _ => last.wrapping_add((number >> 1) as u32),
        };
        let Some((&low, rest)) = references.split_first_chunk() else {
            return;
        };
        references = rest;
        f(usize::from(u16::from_le_bytes(low)), last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_numbers_are_read_back() {
        let numbers = [
            0,
            1,
            127,
            128,
            300,
            u64::from(u32::MAX) * 2 + 1,
            u64::MAX >> 1,
        ];
        let mut bytes = Vec::new();
        numbers.iter().for_each(|&n| put(&mut bytes, n));
        let mut rest = &bytes[..];
        for n in numbers {
            assert_eq!(take(&mut rest), Some(n));
        }
        assert_eq!(take(&mut rest), None);
        assert_eq!(take(&mut &[0xff_u8; 20][..]), None, "too long");
    }

    #[test]
    fn lists_are_read_back_on_either_side_of_the_guess() {
        for guess in [0, 5, 900, u32::MAX - 1] {
            let list = [5, 5, 70, 1000, 1_000_000];
            let mut bytes = Vec::new();
            put(&mut bytes, zigzag_difference(guess, list[0]));
            for pair in list.windows(2) {
                put(&mut bytes, u64::from(pair[1] - pair[0]));
            }
            let limits = 5..1_000_001;
            assert_eq!(read(5, &bytes, guess, &limits).as_deref(), Some(&list[..]));
            assert_eq!(read(6, &bytes, guess, &limits), None, "cut off");
            assert_eq!(
                read(5, &bytes, guess, &(6..2_000_000)),
                None,
                "a class object"
            );
            assert_eq!(read(5, &bytes, guess, &(5..1_000_000)), None, "no object");
        }
    }

    #[test]
    fn references_are_returned_by_bucket() {
        let mut buckets = Buckets::new(200_000);
        let some = [(3, 70_000), (65_536, 4), (3, 9), (199_999, 12), (65_540, 4)];
        buckets.add(&some);
        for (at, part) in buckets.parts.iter().enumerate() {
            let mut found = Vec::new();
            each(part, |low, source| {
                found.push(((at * BUCKET + low) as u32, source))
            });
            let own = some.iter().filter(|r| r.0 as usize / BUCKET == at);
            assert_eq!(found, own.copied().collect::<Vec<_>>());
        }
    }
}
