//! Number and bytes of each class's objects: the lines of a histogram.

use crate::ids::ClassIndex;
use crate::records::classes::Classes;
use crate::sizes::layout::Sizes;
use crate::sizes::stats::Stats;

/// A number of objects and their shallow bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Total {
    /// Number of objects.
    pub objects: u64,
    /// Sum of the objects' shallow sizes in bytes.
    pub bytes: u64,
}

impl std::ops::AddAssign for Total {
    /// Adds without overflow. A damaged index can have sizes of any value, so the sum stops at the maximum.
    #[inline]
    fn add_assign(&mut self, other: Self) {
        self.objects = self.objects.saturating_add(other.objects);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// A class's line in a histogram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassTotal {
    /// All instances in the dump.
    pub all: Total,
    /// The reachable instances. Only [`Snapshot::histogram`](crate::Snapshot::histogram) computes this.
    pub reachable: Total,
    /// The bytes that the instances retain, counting nothing twice (the minimum retained size). Only
    /// [`Snapshot::histogram`](crate::Snapshot::histogram) computes this; its documentation describes how.
    pub retained_bytes: u64,
    /// The number of flattened values among all instances. Their bytes are part of the objects that contain them.
    pub flattened: u64,
}

/// Returns the totals of all objects of the dump by class. Class objects count as instances of `java.lang.Class`.
pub(crate) fn totals(classes: &Classes, sizes: &Sizes, stats: &Stats) -> Vec<ClassTotal> {
    let mut totals: Vec<ClassTotal> = stats
        .classes
        .iter()
        .enumerate()
        .map(|(i, s)| {
            let bytes = s.instances * sizes.instance(ClassIndex(i as u32));
            ClassTotal {
                all: Total {
                    objects: s.instances + s.flattened,
                    bytes,
                },
                flattened: s.flattened,
                ..ClassTotal::default()
            }
        })
        .collect();
    for (number, &class) in classes.arrays().iter().enumerate() {
        let (objects, bytes) = sizes.arrays(class, number, stats);
        totals[class.index()].all += Total { objects, bytes };
    }
    if let Some(&class) = classes.by_name("java.lang.Class").first() {
        for (i, _) in classes.iter().take(classes.dumped()) {
            totals[class.index()].all += Total {
                objects: 1,
                bytes: sizes.class_object(i),
            };
        }
    }
    totals
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_of_senseless_sizes_saturates() {
        let of = |objects, bytes| Total { objects, bytes };
        let mut sum = of(1, u64::MAX - 1);
        sum += of(2, 7);
        assert_eq!(sum, of(3, u64::MAX));
    }
}
