//! Arrays that HotSpot cut because a record takes at most 4 GiB.
//!
//! HotSpot writes as many elements as fit into a record and prints a warning on the JVM's output. The dump does not
//! contain the true length. The distance to the next object is an upper bound of the true size.

use crate::error::Warning;
use crate::flaw::Flaw;
use crate::graph::address::{AddressMap, Split};
use crate::ids::{ClassIndex, ObjectId};
use crate::records::classes::Classes;
use crate::records::record::Kind;
use crate::sizes::layout::Sizes;

/// A truncated array. Only the elements that fit into one record are in the dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CutArray {
    pub(crate) id: u64,
    pub(crate) class: u32,
    /// Number of elements in the dump.
    pub(crate) len: u32,
}

impl CutArray {
    /// HotSpot truncates only arrays with at least this number of elements, whatever the type of the elements.
    pub(crate) const FEWEST: u32 = 500_000_000;

    /// Returns the number of elements to which HotSpot cuts an array that is too long for one record. The length of a
    /// record is a 32-bit number.
    pub(crate) const fn most_elements(kind: Kind, id_size: usize) -> u32 {
        let (header, element) = match kind {
            Kind::Object => (1 + 8 + 2 * id_size, id_size),
            _ => (2 + 8 + id_size, kind.size(id_size)),
        };
        ((u32::MAX as usize - header) / element) as u32
    }
}

/// Returns a warning about each truncated array in `arrays`. `next` has, for each array, the address of the next object
/// in the heap if it is known.
pub(crate) fn warnings(
    arrays: &[CutArray],
    classes: &Classes,
    sizes: &Sizes,
    next: &[Option<u64>],
) -> Vec<Warning> {
    let next = next.iter().copied().chain(std::iter::repeat(None));
    let warning = |(array, next): (&CutArray, Option<u64>)| {
        let class = ClassIndex(array.class);
        let least = sizes.array(class, array.len);
        let most = next.and_then(|next| next.checked_sub(array.id));
        Warning::new(&Flaw::CutArray {
            class: classes[class].name.to_string(),
            id: ObjectId(array.id),
            elements: array.len,
            least,
            most: most.filter(|&most| most > least),
            of_objects: classes[class].element == Some(Kind::Object),
        })
    };
    arrays.iter().zip(next).map(warning).collect()
}

/// Returns the address of the first object or class object after each array.
///
/// Cost: one pass over all addresses. If `arrays` is empty, nothing is done.
pub(crate) fn next_objects(
    arrays: &[CutArray],
    classes: &Classes,
    map: &AddressMap,
    split: Split,
) -> Vec<Option<u64>> {
    let mut next = vec![None; arrays.len()];
    if arrays.is_empty() {
        return next;
    }
    let mut look = |id: u64| {
        for (array, next) in arrays.iter().zip(&mut next) {
            if id > array.id && next.is_none_or(|n| id < n) {
                *next = Some(id);
            }
        }
    };
    classes.iter().for_each(|(_, class)| look(class.id.0));
    map.for_each_in_order(0, 1, split, |id, _| look(id));
    next
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_have_room_for_as_many_elements_as_hotspot_writes() {
        // A JVM of JDK 17 truncated a `long[]` to this number of elements.
        assert_eq!(CutArray::most_elements(Kind::Long, 8), 536_870_909);
        for kind in [Kind::Object, Kind::Int, Kind::Short, Kind::Byte] {
            for id_size in [4, 8] {
                let most = CutArray::most_elements(kind, id_size);
                assert!(most >= CutArray::FEWEST, "{kind:?}");
                let element = match kind {
                    Kind::Object => id_size,
                    _ => kind.size(id_size),
                };
                let room = u64::from(u32::MAX) - u64::from(most) * element as u64;
                assert!((14..33).contains(&room), "{kind:?}: {room}");
            }
        }
    }
}
