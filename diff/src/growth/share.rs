//! Splits the growth of bytes into growth in the number of objects and growth in their size.
//!
//! A population of n objects of mean size s has n s bytes. Its growth is the sum of two parts, one from the number and
//! one from the size:
//!
//! ```text
//! number:  (n1 - n0) (s0 + s1) / 2
//! size:    (s1 - s0) (n0 + n1) / 2
//! ```
//!
//! The objects that accumulate belong to a descendant of the holder's trie node. It is the descendant nearest to the
//! holder that grew more from the number than from the size. Example: there are more sessions, each about as large as
//! before. If a descendant grew more from the size, its objects are holders themselves. The growing content is then
//! among its own descendants.

/// True if a population grew more in number than in size, given its numbers and bytes in the first dump and the last. A
/// single object is not a population. If there were no objects before, all growth is in number.
pub(super) fn grew_more_by_count([n0, n1]: [u64; 2], [b0, b1]: [u64; 2]) -> bool {
    if n1 <= 1 || n1 <= n0 {
        return false;
    }
    if n0 == 0 || b0 == 0 {
        return true;
    }
    // The growth from the number is larger if the number grew by a larger factor than the mean size. With numbers n and
    // mean sizes s, the difference of the two parts of the growth is n1 s0 - n0 s1. The products fit into 128 bits,
    // because a dump has fewer than 2^32 objects.
    let square = |n: u64| u128::from(n).saturating_mul(u128::from(n));
    let number = square(n1).saturating_mul(u128::from(b0));
    number >= square(n0).saturating_mul(u128::from(b1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_larger_of_both_shares_decides() {
        for (objects, bytes, expected) in [
            // In the first case there is only one object. In the next two, the number of objects did not grow.
            ([0, 1], [0, 100], false),
            ([5, 5], [1000, 2000], false),
            ([5, 4], [1000, 2000], false),
            // There were no objects, or no bytes, in the first dump.
            ([0, 2], [0, 100], true),
            ([1, 2], [0, 50], true),
            ([0, 2], [50, 100], true),
            // The number of objects doubles. In the four cases, the objects keep their size, become smaller, become
            // twice as large, or become larger than that.
            ([10, 20], [1000, 2000], true),
            ([10, 20], [1000, 900], true),
            ([10, 20], [1000, 4000], true),
            ([10, 20], [1000, 4001], false),
            // A few objects are added, and each object becomes much larger.
            ([10, 11], [1000, 2000], false),
            ([10, 15], [1000, 2000], true),
            ([10, 14], [1000, 2000], false),
            // A server has eleven times as many sessions as before, each four times as large.
            ([2053, 22_722], [2053 * 900, 22_722 * 3600], true),
            ([u64::MAX - 1, u64::MAX], [u64::MAX, u64::MAX], true),
        ] {
            let prevails = grew_more_by_count(objects, bytes);
            assert_eq!(prevails, expected, "{objects:?} {bytes:?}");
        }
    }

    #[test]
    fn shares_add_up_to_the_growth_and_the_larger_decides() {
        for (n0, n1, s0, s1) in [(3, 9, 10, 14), (100, 110, 10, 90), (7, 8, 5, 5)] {
            let number = (n1 - n0) * (s0 + s1);
            let size = (s1 - s0) * (n0 + n1);
            assert_eq!(number + size, 2 * (n1 * s1 - n0 * s0));
            let bytes = [n0 * s0, n1 * s1];
            assert_eq!(grew_more_by_count([n0, n1], bytes), number >= size);
        }
    }
}
