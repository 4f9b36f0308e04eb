//! Whether the arrays of an index fit together, so that no number leads outside its array and no walk
//! along them is without end. Checksums tell of damage; this bounds what an index can do whose checksums
//! are right and whose content is not.

use std::ops::Range;

use rayon::prelude::*;

use crate::ids::NONE;

/// Every number is below a limit.
pub(super) fn below(limit: usize) -> impl Fn(&[u32], Range<usize>) -> bool + Sync {
    move |all, part| all[part].iter().all(|&v| (v as usize) < limit)
}

/// Every number is in a range.
pub(super) fn within(range: Range<u32>) -> impl Fn(&[u32], Range<usize>) -> bool + Sync {
    move |all, part| all[part].iter().all(|v| range.contains(v))
}

/// Every number is below a limit, or none.
pub(super) fn below_or_none(limit: usize) -> impl Fn(&[u32], Range<usize>) -> bool + Sync {
    move |all, part| all[part].iter().all(|&v| (v as usize) < limit || v == NONE)
}

/// Numbers ascend, each at least as large as the one before.
pub(super) fn ascend<T: Ord>(all: &[T], part: Range<usize>) -> bool {
    all[part.start.saturating_sub(1)..part.end].is_sorted()
}

/// The first is no object, each other one is.
pub(super) fn objects(inner: u32) -> impl Fn(&[u32], Range<usize>) -> bool + Sync {
    move |all, part| {
        let first = part.start.max(1);
        (part.start > 0 || all.first() == Some(&NONE))
            && all[first..part.end].iter().all(|&v| v < inner)
    }
}

/// Each node's parent comes before it; the first's is itself.
pub(super) fn parents(all: &[u32], part: Range<usize>) -> bool {
    let nodes = part.clone().zip(&all[part]);
    nodes.fold(true, |fits, (node, &parent)| {
        fits & ((parent as usize) < node.max(1))
    })
}

/// Each node's subtree ends after the node and within the tree.
pub(super) fn ends(all: &[u32], part: Range<usize>) -> bool {
    let nodes = part.clone().zip(&all[part]);
    nodes.fold(true, |fits, (node, &end)| {
        fits & (node < end as usize) & (end as usize <= all.len())
    })
}

/// Sums in two parts never fall.
pub(super) fn sums(bases: &[u64], rest: &[u32], block: usize) -> bool {
    let fits = |(at, part): (usize, &[u32])| {
        let last = part.last().copied().unwrap_or(0);
        let next = bases.get(at + 1).copied().unwrap_or(u64::MAX);
        let end = bases[at].checked_add(u64::from(last));
        part.is_sorted() && end.is_some_and(|end| end <= next)
    };
    bases.len() == rest.len().div_ceil(block) && rest.par_chunks(block).enumerate().all(fits)
}

/// The counts of an address map are those of its bits, which come in lines of pairs; how many there are of
/// each kind.
pub(super) fn ranks(bits: &[u64], counts: &[u32], line: usize) -> Option<[u64; 2]> {
    const CHUNK: usize = 1 << 12;
    if bits.len() % line != 0 || counts.len() != bits.len() / line * 2 {
        return None;
    }
    let marked = |line: &[u64]| {
        line.chunks_exact(2).fold([0_u64; 2], |sum, pair| {
            let ones = |word: u64| u64::from(word.count_ones());
            [sum[0] + ones(pair[0]), sum[1] + ones(pair[1])]
        })
    };
    let add = |a: [u64; 2], b: [u64; 2]| [a[0] + b[0], a[1] + b[1]];
    let sums: Vec<[u64; 2]> = bits
        .par_chunks(CHUNK * line)
        .map(|chunk| chunk.chunks_exact(line).map(marked).fold([0; 2], add))
        .collect();
    let mut total = [0; 2];
    let bases: Vec<[u64; 2]> = sums
        .into_iter()
        .map(|sum| {
            let before = total;
            total = add(total, sum);
            before
        })
        .collect();
    let fits = bits
        .par_chunks(CHUNK * line)
        .zip(counts.par_chunks(CHUNK * 2))
        .zip(bases)
        .all(|((bits, counts), mut before)| {
            let lines = bits.chunks_exact(line).zip(counts.chunks_exact(2));
            for (bits, counts) in lines {
                let own = marked(bits);
                // Where nothing is marked nothing is counted.
                if own != [0, 0] && before != [u64::from(counts[0]), u64::from(counts[1])] {
                    return false;
                }
                before = add(before, own);
            }
            true
        });
    fits.then_some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_told() {
        assert!(parents(&[0, 0, 1, 1], 0..4) && parents(&[0, 0, 1, 1], 2..4));
        assert!(!parents(&[0, 1], 0..2) && !parents(&[1, 0], 0..2));
        assert!(ends(&[3, 2, 3], 0..3) && !ends(&[3, 1, 3], 0..3) && !ends(&[4, 2, 3], 0..3));
        assert!(ascend(&[1, 1, 2], 1..3) && !ascend(&[3, 1, 2], 1..3));
        assert!(objects(2)(&[NONE, 1, 0], 0..3) && !objects(2)(&[NONE, 2], 1..2));
        assert!(!objects(2)(&[0, 1], 0..2));
        assert!(below_or_none(2)(&[NONE, 1], 0..2) && !below(2)(&[2], 0..1));
        assert!(within(2..4)(&[2, 3], 0..2) && !within(2..4)(&[1], 0..1));
        assert!(sums(&[0, 5], &[0, 5, 0, 9], 2) && !sums(&[0, 4], &[0, 5, 0, 9], 2));
        assert!(!sums(&[0, u64::MAX], &[0, 5, 0, 9], 2) && !sums(&[0], &[0, 5, 0], 2));
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
