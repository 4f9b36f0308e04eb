//! The objects of one class that a suspect holds, and the comparison of a sampled object with them.

use std::ops::RangeInclusive;

use crate::evidence::Seen;

/// Minimum and maximum number of bytes of an array besides its elements: the header and the padding at the end.
const HEADER: RangeInclusive<u64> = 12..=31;

/// The objects of one class that the suspect holds.
pub(super) struct Wanted {
    pub(super) weight: f64,
    /// Bytes by which the objects of the class grew.
    pub(super) bytes: f64,
    /// For arrays, the lengths of the suspect's arrays. Empty if no length is known.
    pub(super) lengths: Vec<RangeInclusive<u32>>,
}

impl Wanted {
    pub(super) const fn new(weight: f64) -> Self {
        Self {
            weight,
            bytes: 0.0,
            lengths: Vec::new(),
        }
    }

    /// True if a sampled array has the length of an array that the suspect holds. Returns `None` if the object is no
    /// array, or if its length or the lengths of the suspect's arrays are unknown. `class` is the name of the sample's
    /// class.
    pub(super) fn fits(&self, seen: &Seen, class: &str) -> Option<bool> {
        if self.lengths.is_empty() {
            return None;
        }
        if let Some(length) = seen.length {
            return Some(self.lengths.iter().any(|range| range.contains(&length)));
        }
        let size = seen.size?;
        let widths = widths(class.strip_suffix("[]")?);
        let has_size = |range: &RangeInclusive<u32>| {
            let bytes = |length: u32, width| u64::from(length) * width;
            widths.iter().any(|width| {
                let least = bytes(*range.start(), width) + HEADER.start();
                let most = bytes(*range.end(), width) + HEADER.end();
                (least..=most).contains(&size)
            })
        };
        Some(self.lengths.iter().any(has_size))
    }
}

/// Returns the possible sizes of an array element in bytes. References have 4 or 8 bytes.
fn widths(class: &str) -> &'static [u64] {
    match class {
        "boolean" | "byte" => &[1],
        "char" | "short" => &[2],
        "int" | "float" => &[4],
        "long" | "double" => &[8],
        _ => &[4, 8],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_an_array_stands_for_its_length() {
        let mut wanted = Wanted::new(1.0);
        let fits = |wanted: &Wanted, size, class| {
            let seen = Seen {
                at_ns: None,
                survived: true,
                class: 0,
                length: None,
                size,
                weight: 1,
                count: 1,
                stack: 1,
                chain: 0,
            };
            wanted.fits(&seen, class)
        };
        assert_eq!(fits(&wanted, Some(56), "byte[]"), None);
        wanted.lengths = vec![40..=40, 1024..=2047];
        let of = |size, class| fits(&wanted, size, class);
        assert_eq!(of(None, "byte[]"), None);
        assert_eq!(of(Some(56), "a.Entry"), None);
        assert_eq!(of(Some(56), "byte[]"), Some(true));
        assert_eq!(of(Some(72), "byte[]"), Some(false));
        assert_eq!(of(Some(1500), "byte[]"), Some(true));
        assert_eq!(of(Some(176), "a.Entry[]"), Some(true));
        assert_eq!(of(Some(336), "a.Entry[]"), Some(true));
        assert_eq!(of(Some(256), "a.Entry[]"), Some(false));
        assert_eq!(of(Some(336), "long[][]"), Some(true));
    }
}
