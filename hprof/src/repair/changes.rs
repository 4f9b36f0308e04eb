//! The byte ranges in which the output of a repair differs from its input.

use std::ops::Range;

/// The bytes `at..until` of the input are replaced by other bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Change {
    at: usize,
    until: usize,
    bytes: Vec<u8>,
}

/// Changes in the order of the input, without overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Changes(Vec<Change>);

impl Changes {
    /// Replaces a range of the input, which must not begin before the end of the last change.
    pub(super) fn replace(&mut self, range: Range<usize>, bytes: &[u8]) {
        match self.0.last_mut() {
            // Adjacent changes become one, so that many damaged records in a row take little memory.
            Some(last) if last.until == range.start => {
                last.until = range.end;
                last.bytes.extend_from_slice(bytes);
            }
            _ if range.is_empty() && bytes.is_empty() => {}
            _ => self.0.push(Change {
                at: range.start,
                until: range.end,
                bytes: bytes.to_vec(),
            }),
        }
    }

    pub(super) fn remove(&mut self, range: Range<usize>) {
        self.replace(range, &[]);
    }

    pub(super) fn insert(&mut self, at: usize, bytes: &[u8]) {
        self.replace(at..at, bytes);
    }

    /// Adds a change before the changes that begin at or after `range.start`. No other change may overlap the range.
    pub(super) fn replace_before(&mut self, range: Range<usize>, bytes: &[u8]) {
        let index = self.0.partition_point(|change| change.at < range.start);
        let change = Change {
            at: range.start,
            until: range.end,
            bytes: bytes.to_vec(),
        };
        self.0.insert(index, change);
    }

    /// Appends the changes of one dump of the input, which begins at the offset `start`. The offsets in `changes` count
    /// from there.
    pub(super) fn extend(&mut self, start: usize, changes: &Self) {
        for change in &changes.0 {
            self.replace(start + change.at..start + change.until, &change.bytes);
        }
    }

    /// Returns the output as slices to concatenate: unchanged parts of the input, and new bytes.
    pub(super) fn pieces<'a>(&'a self, input: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        let ends = self.0.iter().map(|change| change.at);
        let starts = std::iter::once(0).chain(self.0.iter().map(|change| change.until));
        let copied = starts.zip(ends.chain([input.len()]));
        let copied = copied.map(|(start, end)| input.get(start..end).unwrap_or_default());
        let added = self.0.iter().map(|change| &*change.bytes).chain([&[][..]]);
        copied
            .zip(added)
            .flat_map(|(copied, added)| [copied, added])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(changes: &Changes) -> String {
        let pieces: Vec<&[u8]> = changes.pieces(b"0123456789").collect();
        String::from_utf8(pieces.concat()).unwrap()
    }

    #[test]
    fn changes_are_applied_in_order() {
        let mut changes = Changes::default();
        assert_eq!(applied(&changes), "0123456789");
        changes.replace(1..3, b"ab");
        changes.remove(3..4);
        changes.insert(4, b"c");
        changes.remove(8..10);
        changes.insert(10, b"end");
        assert_eq!(applied(&changes), "0abc4567end");
        assert_eq!(changes.0.len(), 2);
        changes.replace_before(0..1, b"first");
        changes.replace_before(6..6, b"-");
        assert_eq!(applied(&changes), "firstabc45-67end");
        let mut two = Changes::default();
        two.extend(0, &changes);
        assert_eq!(applied(&two), applied(&changes));
    }

    #[test]
    fn changes_of_a_later_dump_are_moved() {
        let mut later = Changes::default();
        later.replace(0..2, b"x");
        let mut changes = Changes::default();
        changes.remove(2..4);
        changes.extend(5, &later);
        assert_eq!(applied(&changes), "014x789");
    }
}
