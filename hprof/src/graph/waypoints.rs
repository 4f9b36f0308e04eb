//! Waypoints: the file offsets of some object records, one for every [`EVERY`] objects. The pass over all objects
//! stores them.
//!
//! To find an object in the file, a walk starts at the last waypoint before it. It reads a few hundred records instead
//! of a whole piece of the file (about a megabyte).

/// Number of objects between two waypoints.
pub(crate) const EVERY: usize = 512;

/// A waypoint: the offset of an object's record, and the number of objects before the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Waypoint {
    /// Offset of the record in the file.
    pub(crate) at: usize,
    /// Number of objects with references, and number of objects without references, before the waypoint's record.
    pub(crate) before: [u32; 2],
}

/// All waypoints (see [`Waypoint`]) of a file, in file order.
#[derive(Debug, Default)]
pub(crate) struct Waypoints(Vec<Waypoint>);

impl Waypoints {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds the waypoints (offsets of some object records) of a piece of the file. `objects` is the number of objects
    /// with references, and the number of objects without references, in all earlier pieces.
    pub(crate) fn append(&mut self, piece: &mut Vec<Waypoint>, objects: [usize; 2]) {
        self.0.extend(piece.drain(..).map(|w| Waypoint {
            before: [0, 1].map(|kind| w.before[kind] + objects[kind] as u32),
            ..w
        }));
    }

    /// Returns the file offset of the last [`Waypoint`] at or before an object. Returns `None` if there is no such
    /// waypoint. If `leaf` is true, the object is the object without references with the number `nth`, otherwise the
    /// object with references with this number. Numbers start at 0, and the two kinds are counted separately.
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
    fn reading_begins_at_the_last_waypoint_before_an_object() {
        let mut all = Waypoints::default();
        let place = |at, before| Waypoint { at, before };
        all.append(&mut vec![place(100, [2, 5]), place(200, [9, 5])], [0, 0]);
        all.append(&mut vec![place(300, [4, 0])], [10, 6]);
        assert_eq!(all.before(false, 1), None);
        assert_eq!(all.before(false, 2), Some(100));
        assert_eq!(all.before(false, 8), Some(100));
        assert_eq!(all.before(false, 9), Some(200));
        // The waypoints at offsets 100 and 200 both have 5 objects without references before them, numbered 0 to 4. So
        // number 5 does not come before either of them, and the result is the second of these waypoints.
        assert_eq!(all.before(true, 5), Some(200));
        assert_eq!(all.before(true, 6), Some(300));
        assert_eq!(all.before(false, 14), Some(300));
    }
}
