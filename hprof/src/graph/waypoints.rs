//! Places of records that the pass over all objects came by: from the last one before it, an object is found by
//! walking a few hundred records instead of a piece of the file.

/// Objects from one waypoint to the next.
pub(crate) const EVERY: usize = 512;

/// The place of an object's record, and how many objects come before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Waypoint {
    /// Offset of the record in the file.
    pub(crate) at: usize,
    /// How many objects with references, and how many leaves, come before it.
    pub(crate) before: [u32; 2],
}

/// Waypoints in the order of the file.
#[derive(Debug, Default)]
pub(crate) struct Waypoints(Vec<Waypoint>);

impl Waypoints {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds those of a piece, where so many objects come before the piece.
    pub(crate) fn append(&mut self, piece: &mut Vec<Waypoint>, objects: [usize; 2]) {
        self.0.extend(piece.drain(..).map(|w| Waypoint {
            before: [0, 1].map(|kind| w.before[kind] + objects[kind] as u32),
            ..w
        }));
    }

    /// Where to begin looking for the `nth` object with references, or leaf; `None` where no waypoint comes
    /// before it.
    pub(crate) fn before(&self, leaf: bool, nth: u32) -> Option<usize> {
        let kind = usize::from(leaf);
        let after = self.0.partition_point(|w| w.before[kind] <= nth);
        Some(self.0.get(after.checked_sub(1)?)?.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_place_before_an_object_is_where_to_begin() {
        let mut all = Waypoints::default();
        let place = |at, before| Waypoint { at, before };
        all.append(&mut vec![place(100, [2, 5]), place(200, [9, 5])], [0, 0]);
        all.append(&mut vec![place(300, [4, 0])], [10, 6]);
        assert_eq!(all.before(false, 1), None);
        assert_eq!(all.before(false, 2), Some(100));
        assert_eq!(all.before(false, 8), Some(100));
        assert_eq!(all.before(false, 9), Some(200));
        // Of leaves the last of those places that come before it.
        assert_eq!(all.before(true, 5), Some(200));
        assert_eq!(all.before(true, 6), Some(300));
        assert_eq!(all.before(false, 14), Some(300));
    }
}
