//! Objects and bytes of each class: the lines of a histogram.

use crate::ids::ClassIndex;
use crate::records::classes::Classes;
use crate::sizes::layout::Sizes;
use crate::sizes::stats::Stats;

/// Objects and their shallow bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Total {
    /// How many.
    pub objects: u64,
    /// Their shallow sizes together.
    pub bytes: u64,
}

impl std::ops::AddAssign for Total {
    /// Sizes from a damaged index may be of any kind: their sum stays at what fits.
    #[inline]
    fn add_assign(&mut self, other: Self) {
        self.objects = self.objects.saturating_add(other.objects);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// A class's line in a histogram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassTotal {
    /// All its instances in the dump.
    pub all: Total,
    /// Those that are reachable; only from [`Snapshot::histogram`](crate::Snapshot::histogram).
    pub reachable: Total,
    /// What its instances retain, counting nothing twice (the minimum retained size); only from
    /// [`Snapshot::histogram`](crate::Snapshot::histogram), which says how it is computed.
    pub retained_bytes: u64,
}

/// All objects of the dump by class; class objects count as instances of `java.lang.Class`.
pub(crate) fn totals(classes: &Classes, sizes: &Sizes, stats: &Stats) -> Vec<ClassTotal> {
    let mut totals: Vec<ClassTotal> = stats
        .classes
        .iter()
        .enumerate()
        .map(|(i, s)| {
            let bytes = s.instances * sizes.instance(ClassIndex(i as u32));
            ClassTotal {
                all: Total {
                    objects: s.instances,
                    bytes,
                },
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
    fn a_sum_of_senseless_sizes_stays_at_what_fits() {
        let of = |objects, bytes| Total { objects, bytes };
        let mut sum = of(1, u64::MAX - 1);
        sum += of(2, 7);
        assert_eq!(sum, of(3, u64::MAX));
    }
}
