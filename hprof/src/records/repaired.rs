//! The name record that `heapdiff repair` adds to a repaired dump. Its text shows which parts the dump lacks, for later
//! readers.
//!
//! No other record refers to this name record, so other programs ignore it.

use std::fmt;

/// Prefix of the name that `heapdiff repair` adds to a repaired dump.
const MARK: &str = "heapdiff repaired dump: ";

/// The parts that a repaired dump lacks, and the parts that the repair added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Repaired {
    /// True if the end of the heap was missing. The missing part may have contained objects and GC roots.
    pub lacks_end: bool,
    /// Number of heap records in which the records of some objects are truncated or damaged.
    pub places: u64,
    /// Number of other records that are truncated or damaged, such as names.
    pub records: u64,
    /// Number of bytes that the repair left out, because they are no complete records.
    pub left_out: u64,
    /// Number of damaged parts outside of the dump: segments that are missing or damaged, and damaged gzip data.
    pub parts: u64,
    /// Number of GC roots that the damaged dump has.
    pub roots: u64,
    /// Number of classes that the repair made GC roots.
    pub class_roots: u64,
    /// Number of live threads that the repair made GC roots.
    pub thread_roots: u64,
}

impl Repaired {
    /// True if GC roots may be missing, so that the repair made all classes GC roots.
    #[must_use]
    pub const fn lacks_roots(&self) -> bool {
        self.lacks_end || self.places > 0 || self.class_roots > 0 || self.thread_roots > 0
    }

    /// Parses the text of the name that marks a repaired dump. Returns `None` if the text does not have exactly this
    /// format.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        let mut numbers = text.strip_prefix(MARK)?.split(", ").map(|part| {
            let digits = part.rsplit_once(' ')?.1;
            digits.parse::<u64>().ok().filter(|&n| n <= LARGEST)
        });
        let mut next = || numbers.next().flatten();
        let repaired = Self {
            lacks_end: next()? != 0,
            places: next()?,
            records: next()?,
            left_out: next()?,
            parts: next()?,
            roots: next()?,
            class_roots: next()?,
            thread_roots: next()?,
        };
        (repaired.to_string() == text).then_some(repaired)
    }

    /// Combines these numbers with `earlier`: the numbers of another dump in the same file, or of an earlier repair of
    /// the same dump.
    #[must_use]
    pub(crate) const fn with(self, earlier: Self) -> Self {
        Self {
            lacks_end: self.lacks_end | earlier.lacks_end,
            places: self.places.saturating_add(earlier.places),
            records: self.records.saturating_add(earlier.records),
            left_out: self.left_out.saturating_add(earlier.left_out),
            parts: self.parts.saturating_add(earlier.parts),
            roots: self.roots.saturating_add(earlier.roots),
            class_roots: self.class_roots.saturating_add(earlier.class_roots),
            thread_roots: self.thread_roots.saturating_add(earlier.thread_roots),
        }
    }
}

/// Maximum value of a number in the name that marks a repaired dump.
const LARGEST: u64 = 1 << 60;

/// Writes the text of the name that marks a repaired dump.
impl fmt::Display for Repaired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            lacks_end,
            places,
            records,
            left_out,
            parts,
            roots,
            class_roots,
            thread_roots,
        } = *self;
        let lacks_end = u8::from(lacks_end);
        write!(
            f,
            "{MARK}missing end {lacks_end}, damaged heap records {places}, other damaged records {records}, left out bytes {left_out}, damaged parts {parts}, GC roots {roots}, added class roots {class_roots}, added thread roots {thread_roots}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: Repaired = Repaired {
        lacks_end: true,
        places: 2,
        records: 1,
        left_out: 12_345,
        parts: 0,
        roots: 7,
        class_roots: 800,
        thread_roots: 12,
    };

    #[test]
    fn a_mark_is_read_as_it_was_written() {
        for repaired in [EXAMPLE, Repaired::default()] {
            let text = repaired.to_string();
            assert_eq!(Repaired::parse(text.as_bytes()), Some(repaired), "{text}");
        }
    }

    #[test]
    fn other_names_are_no_mark() {
        let text = EXAMPLE.to_string();
        let larger = text.replace("12345", "9999999999999999999");
        for other in [
            "",
            "value",
            MARK,
            &text[1..],
            &text[..text.len() - 3],
            &format!("{text} "),
            &format!("{text}, more 1"),
            &text.replace("records 2", "records 02"),
            &text.replace("end 1", "end 2"),
            &text.replace("GC roots", "secrets"),
            &larger,
        ] {
            assert_eq!(Repaired::parse(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn a_second_repair_adds_to_the_first() {
        let second = Repaired {
            places: 1,
            left_out: 5,
            roots: 3,
            thread_roots: 1,
            ..Repaired::default()
        };
        let both = Repaired {
            places: 3,
            left_out: 12_350,
            roots: 10,
            thread_roots: 13,
            ..EXAMPLE
        };
        assert_eq!(second.with(EXAMPLE), both);
    }
}
