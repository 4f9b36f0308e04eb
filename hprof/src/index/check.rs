//! Checks that the arrays of an index fit together: no number leads outside its array, and no walk along them is
//! endless. Checksums detect damage. These checks limit the effect of an index that has correct checksums and wrong
//! content.

use std::ops::Range;

use rayon::prelude::*;

use crate::ids::NONE;

// Each check compares all numbers of its part of an array, even after a wrong number. The compiler can vectorize such
// loops, and wrong numbers are very rare.

/// Returns a function that checks a part of an array. It returns true if all numbers in the part are below `limit`.
pub(super) fn below(limit: usize) -> impl Fn(&[u32], Range<usize>) -> bool + Sync {
    move |all, part| {
        let largest = all[part.clone()].iter().fold(0, |max, &v| v.max(max));
        part.is_empty() || (largest as usize) < limit
    }
}

/// Returns a function that checks a part of an array. It returns true if all numbers in the part are in `range`.
pub(super) fn within(range: Range<u32>) -> impl Fn(&[u32], Range<usize>) -> bool + Sync {
    move |all, part| {
        let ends = all[part.clone()].iter();
        let (least, largest) = ends.fold((NONE, 0), |(min, max), &v| (v.min(min), v.max(max)));
        part.is_empty() || (range.start <= least && largest < range.end)
    }
}

/// Returns a function that checks a part of an array. It returns true if all numbers in the part are below `limit`, or
/// are [`NONE`].
pub(super) fn below_or_none(limit: usize) -> impl Fn(&[u32], Range<usize>) -> bool + Sync {
    move |all, part| {
        // Adding one turns [`NONE`] into zero, the smallest number.
        let numbers = all[part].iter().map(|v| v.wrapping_add(1));
        numbers.fold(0, u32::max) as usize <= limit
    }
}

/// Checks that each number is at least as large as the one before.
pub(super) fn ascend<T: Ord>(all: &[T], part: Range<usize>) -> bool {
    let numbers = &all[part.start.saturating_sub(1)..part.end];
    let Some((_, later)) = numbers.split_first() else {
        return true;
    };
    let pairs = numbers[..later.len()].iter().zip(later);
    pairs.fold(true, |fits, (a, b)| fits & (a <= b))
}

/// Returns a function that checks a part of an array of object numbers. It returns true if all numbers in the part
/// belong to class objects or objects with references. The first number of the array must be [`NONE`] instead.
pub(super) fn objects(inner: u32) -> impl Fn(&[u32], Range<usize>) -> bool + Sync {
    move |all, part| {
        let first = part.start.max(1);
        (part.start > 0 || all.first() == Some(&NONE))
            && below(inner as usize)(all, first..part.end.max(first))
    }
}

/// Checks that the parent of each node of the dominator tree comes before the node. The parent of the first node is the
/// node itself.
pub(super) fn parents(all: &[u32], part: Range<usize>) -> bool {
    let first = part.start.max(1);
    let later = (first as u32..).zip(&all[first..part.end.max(first)]);
    (part.start > 0 || all.first() == Some(&0))
        && later.fold(true, |fits, (node, &parent)| fits & (parent < node))
}

/// Checks that the subtree of each node of the dominator tree ends after the node and within the tree.
pub(super) fn ends(all: &[u32], part: Range<usize>) -> bool {
    let nodes = (part.start as u32..).zip(&all[part.clone()]);
    let limit = all.len() as u64;
    let (after, largest) = nodes.fold((true, 0), |(fits, max), (node, &end)| {
        (fits & (node < end), end.max(max))
    });
    after && u64::from(largest) <= limit
}

/// Checks the counts of an address map against its bits. The map consists of lines of `line` bitmap words each. A set
/// bit shows that an object starts at an address. The words with even index are for objects with references, the other
/// words for objects without references. For each line, `counts` has two numbers: the set bits of both kinds in all
/// earlier lines. Counts of lines without set bits are not checked. Returns the number of set bits of each kind; `None`
/// if a count is wrong.
///
/// Cost: one parallel pass, and a short one after it.
pub(super) fn ranks(bits: &[u64], counts: &[u32], line: usize) -> Option<[u64; 2]> {
    const CHUNK: usize = 1 << 10;
    if !bits.len().is_multiple_of(line) || counts.len() != bits.len() / line * 2 {
        return None;
    }
    // Checks a group of lines of the address map. Returns two numbers for each kind of object: the count that is stored
    // for the first line with set bits, and the number of set bits in the group.
    let chunk = |(bits, counts): (&[u64], &[u32])| -> Option<([u32; 2], [u32; 2])> {
        let mut first = None;
        let mut sum = [0_u32; 2];
        for (bits, counts) in bits.chunks_exact(line).zip(counts.chunks_exact(2)) {
            let mut own = [0; 2];
            for pair in bits.chunks_exact(2) {
                own[0] += pair[0].count_ones();
                own[1] += pair[1].count_ones();
            }
            if own == [0, 0] {
                continue;
            }
            let before = *first.get_or_insert([counts[0], counts[1]]);
            let of_chunk = [0, 1].map(|kind| counts[kind].wrapping_sub(before[kind]));
            if of_chunk != sum {
                return None;
            }
            sum = [sum[0] + own[0], sum[1] + own[1]];
        }
        Some((first.unwrap_or_default(), sum))
    };
    let chunks: Option<Vec<_>> = bits
        .par_chunks(CHUNK * line)
        .zip(counts.par_chunks(CHUNK * 2))
        .map(chunk)
        .collect();
    let mut total = [0_u64; 2];
    for (first, sum) in chunks? {
        if sum != [0, 0] && first.map(u64::from) != total {
            return None;
        }
        total = [0, 1].map(|kind| total[kind] + u64::from(sum[kind]));
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inconsistent_arrays_are_detected() {
        assert!(parents(&[0, 0, 1, 1], 0..4) && parents(&[0, 0, 1, 1], 2..4));
        assert!(!parents(&[0, 1], 0..2) && !parents(&[1, 0], 0..2));
        assert!(ends(&[3, 2, 3], 0..3) && !ends(&[3, 1, 3], 0..3) && !ends(&[4, 2, 3], 0..3));
        assert!(ascend(&[1, 1, 2], 1..3) && !ascend(&[3, 1, 2], 1..3));
        assert!(objects(2)(&[NONE, 1, 0], 0..3) && !objects(2)(&[NONE, 2], 1..2));
        assert!(!objects(2)(&[0, 1], 0..2));
        assert!(below_or_none(2)(&[NONE, 1], 0..2) && !below(2)(&[2], 0..1));
        assert!(within(2..4)(&[2, 3], 0..2) && !within(2..4)(&[1], 0..1));
    }

    #[test]
    fn ranks_are_counted_again() {
        let bits: Vec<u64> = (0..4096_u64 * 16)
            .map(|i| if i % 40 < 20 { i } else { 0 })
            .collect();
        let (mut counts, mut before) = (Vec::new(), [0_u32; 2]);
        for line in bits.chunks(8) {
            counts.extend(before);
            for pair in line.chunks(2) {
                before[0] += pair[0].count_ones();
                before[1] += pair[1].count_ones();
            }
        }
        let total = before.map(u64::from);
        assert_eq!(ranks(&bits, &counts, 8), Some(total));
        assert_eq!(ranks(&bits[8..], &counts, 8), None);
        let mut wrong = counts.clone();
        wrong[16000] += 1;
        let marked = bits[16000 / 2 * 8..][..8].iter().any(|&w| w != 0);
        assert_eq!(ranks(&bits, &wrong, 8).is_none(), marked);
    }
}
