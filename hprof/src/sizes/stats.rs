//! Measurements that a scan of the dump makes for each class: the number of objects, and the distances between
//! neighbouring objects.

use std::collections::BTreeMap;

use crate::records::classes::Classes;
use crate::records::record::Kind;

/// Measurements of a class's instances.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClassStats {
    /// Number of instances (not arrays), without flattened values.
    pub(crate) instances: u64,
    /// Number of flattened values.
    pub(crate) flattened: u64,
    /// True if some instance has a flattened value in a field.
    pub(crate) holds_flattened: bool,
    /// The smallest distance from an instance to the next object in the heap, in bytes.
    pub(crate) gap: u64,
    /// The address of an instance whose distance to the next object is `gap`.
    pub(crate) gap_at: u64,
    /// Number of instances whose distance to the next object is `gap`.
    pub(crate) gap_seen: u64,
}

impl Default for ClassStats {
    fn default() -> Self {
        Self {
            instances: 0,
            flattened: 0,
            holds_flattened: false,
            gap: u64::MAX,
            gap_at: 0,
            gap_seen: 0,
        }
    }
}

impl ClassStats {
    fn merge_gap(&mut self, other: &Self) {
        match other.gap.cmp(&self.gap) {
            std::cmp::Ordering::Less => {
                (self.gap, self.gap_at, self.gap_seen) = (other.gap, other.gap_at, other.gap_seen);
            }
            std::cmp::Ordering::Equal => {
                self.gap_seen += other.gap_seen;
                self.gap_at = self.gap_at.min(other.gap_at);
            }
            std::cmp::Ordering::Greater => {}
        }
    }
}

/// What the arrays of one class contain, in a dump with flattened values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Elements {
    /// True if some element is a flattened value.
    pub(crate) are_flattened: bool,
    /// Upper bound of the bytes of an element, from the distance between an array and the next object. 0 if nothing was
    /// measured.
    pub(crate) width: u32,
}

impl Elements {
    fn merge(&mut self, other: Self) {
        self.are_flattened |= other.are_flattened;
        self.bound(other.width);
    }

    fn bound(&mut self, width: u32) {
        if width != 0 && (self.width == 0 || width < self.width) {
            self.width = width;
        }
    }
}

/// Ids below the lowest possible address, so that they might be made up. HotSpot makes up the ids 1, 2, 3, ... for
/// flattened values. Flattened values are instances, not arrays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LowIds {
    /// The lowest id of an instance among the ids below the lowest possible address; 0 if no instance has such an id.
    lowest: u64,
    /// True if an id of an instance is not a multiple of eight.
    are_unaligned: bool,
    /// True if one of these ids belongs to an array. (Flattened values are never arrays.)
    has_array: bool,
}

impl LowIds {
    pub(crate) fn add_instance(&mut self, id: u64) {
        self.merge(Self {
            lowest: id,
            are_unaligned: !id.is_multiple_of(8),
            has_array: false,
        });
    }

    pub(crate) fn add_array(&mut self) {
        self.has_array = true;
    }

    fn merge(&mut self, other: Self) {
        if other.lowest != 0 && (self.lowest == 0 || other.lowest < self.lowest) {
            self.lowest = other.lowest;
        }
        self.are_unaligned |= other.are_unaligned;
        self.has_array |= other.has_array;
    }

    pub(crate) const fn are_any(self) -> bool {
        self.lowest != 0 || self.has_array
    }

    /// True if the ids are made up for flattened values. HotSpot skips some ids, so the first id need not be 1.
    pub(crate) const fn are_made_up(self) -> bool {
        const FIRST: u64 = 1 << 12;
        self.are_unaligned && self.lowest < FIRST && !self.has_array
    }
}

/// Returns the offset of the first element of an array of flattened values.
pub(crate) const fn value_array_base(array_header: u32) -> u32 {
    array_header.next_multiple_of(8)
}

/// The measurements of a scan.
#[derive(Clone, Debug)]
pub(crate) struct Stats {
    pub(crate) classes: Vec<ClassStats>,
    /// The lengths of arrays are divided by this number: a power of two, and a multiple of the JVM's object alignment.
    pub(crate) modulus: usize,
    /// For each array class (by array number), the number of arrays for each value of their length modulo `modulus`.
    residues: Vec<u64>,
    /// For each array class, the sum of `length / modulus` (rounded down) over all arrays of the class. Together,
    /// `quotients` and `residues` contain what is needed to compute the total size of these arrays.
    quotients: Vec<u64>,
    /// For each array class, what its arrays contain. Filled only for dumps with flattened values.
    pub(crate) elements: Vec<Elements>,
    /// For each array class (by array number) and length, the number of arrays whose elements are flattened values or
    /// null.
    pub(crate) value_arrays: BTreeMap<(u32, u32), u64>,
    /// The ids below the lowest possible address.
    pub(crate) low_ids: LowIds,
    /// For each size of a stack chunk in words, the number of chunks.
    pub(crate) stack_chunks: BTreeMap<u32, u64>,
    /// For each element type, an upper bound of the size of the array header. Each array gives an upper bound: the
    /// distance to the next object minus the bytes of the elements. The smallest of these bounds is stored. In arrays
    /// of references, an element counts as 4 bytes here, and as 8 bytes in `array_slack_wide`.
    pub(crate) array_slack: [i64; 12],
    pub(crate) array_slack_wide: i64,
    /// The bitwise OR of all addresses. The number of its trailing zeros shows the alignment.
    pub(crate) address_bits: u64,
    pub(crate) lowest: u64,
    pub(crate) highest: u64,
    /// Number of objects with an allocation site in the dump.
    pub(crate) real_serials: u64,
    /// Number of reference fields that are missing because an instance's record is too short.
    pub(crate) short_bodies: u64,
}

impl Stats {
    pub(crate) fn new(classes: &Classes, modulus: usize) -> Self {
        let arrays = classes.arrays().len();
        Self {
            classes: vec![ClassStats::default(); classes.len()],
            modulus,
            residues: vec![0; arrays * modulus],
            quotients: vec![0; arrays],
            elements: vec![Elements::default(); arrays],
            value_arrays: BTreeMap::new(),
            low_ids: LowIds::default(),
            stack_chunks: BTreeMap::new(),
            array_slack: [i64::MAX; 12],
            array_slack_wide: i64::MAX,
            address_bits: 0,
            lowest: u64::MAX,
            highest: 0,
            real_serials: 0,
            short_bodies: 0,
        }
    }

    #[inline(always)]
    pub(crate) fn array(&mut self, number: u32, len: u32) {
        let modulus = self.modulus;
        self.residues[number as usize * modulus + (len as usize & (modulus - 1))] += 1;
        self.quotients[number as usize] += (len as usize / modulus) as u64;
    }

    pub(crate) fn residues(&self, array: usize) -> &[u64] {
        &self.residues[array * self.modulus..][..self.modulus]
    }

    pub(crate) fn quotient(&self, array: usize) -> u64 {
        self.quotients[array]
    }

    /// Records the distance from an object of the kind `of` to the next object.
    #[inline(always)]
    pub(crate) fn gap(&mut self, of: Last, gap: u64) {
        match of {
            Last::Nothing => {}
            Last::Instance { class, id } => {
                let s = &mut self.classes[class as usize];
                if gap < s.gap {
                    (s.gap, s.gap_at, s.gap_seen) = (gap, id, 1);
                } else if gap == s.gap {
                    s.gap_seen += 1;
                }
            }
            Last::ValueArray { array, len } => self.value_gap(array, len, gap),
            Last::Array { kind, len } => {
                let slack = |size: i64| gap.cast_signed().wrapping_sub(i64::from(len) * size);
                let narrow = if kind == Kind::Object {
                    4
                } else {
                    kind.size(0) as i64
                };
                let best = &mut self.array_slack[kind as usize];
                *best = slack(narrow).min(*best);
                if kind == Kind::Object {
                    self.array_slack_wide = slack(8).min(self.array_slack_wide);
                }
            }
        }
    }

    /// Records an upper bound of the size of a flattened value in an array. The bound is the largest power of two for
    /// which all `len` elements fit in the distance `gap` from the array to the next object. HotSpot rounds the size of
    /// each element up to a power of two.
    #[cold]
    fn value_gap(&mut self, array: u32, len: u32, gap: u64) {
        const SMALLEST_HEADER: u32 = 12;
        let content = gap.saturating_sub(value_array_base(SMALLEST_HEADER).into());
        let each = content.checked_div(len.into()).unwrap_or(0);
        let most = each.checked_ilog2().map_or(0, |log| 1 << log.min(16));
        self.elements[array as usize].bound(most);
    }

    /// Returns the number of flattened values.
    pub(crate) fn flattened(&self) -> u64 {
        self.classes.iter().map(|class| class.flattened).sum()
    }

    /// True if the id of at least one object is not a multiple of eight.
    pub(crate) const fn has_unaligned_ids(&self) -> bool {
        self.address_bits.trailing_zeros() < 3
    }

    /// Discards all measured distances between objects.
    pub(crate) fn discard_gaps(&mut self) {
        for class in &mut self.classes {
            *class = ClassStats {
                gap: u64::MAX,
                gap_at: 0,
                gap_seen: 0,
                ..*class
            };
        }
        self.elements.iter_mut().for_each(|e| e.width = 0);
        (self.array_slack, self.array_slack_wide) = ([i64::MAX; 12], i64::MAX);
    }

    /// Merges the measured distances of another scan, but not its numbers of objects.
    pub(crate) fn merge_gaps(&mut self, other: &Self) {
        for (a, b) in self.classes.iter_mut().zip(&other.classes) {
            a.merge_gap(b);
        }
        for (a, b) in self.array_slack.iter_mut().zip(&other.array_slack) {
            *a = (*a).min(*b);
        }
        for (a, &b) in self.elements.iter_mut().zip(&other.elements) {
            a.merge(b);
        }
        self.array_slack_wide = self.array_slack_wide.min(other.array_slack_wide);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.merge_gaps(other);
        for (a, b) in self.classes.iter_mut().zip(&other.classes) {
            a.instances += b.instances;
            a.flattened += b.flattened;
            a.holds_flattened |= b.holds_flattened;
        }
        self.low_ids.merge(other.low_ids);
        let sums = [
            (&mut self.residues, &other.residues),
            (&mut self.quotients, &other.quotients),
        ];
        for (to, from) in sums {
            for (a, b) in to.iter_mut().zip(from) {
                *a += b;
            }
        }
        for (&array, &count) in &other.value_arrays {
            *self.value_arrays.entry(array).or_default() += count;
        }
        for (&words, &count) in &other.stack_chunks {
            *self.stack_chunks.entry(words).or_default() += count;
        }
        self.address_bits |= other.address_bits;
        self.lowest = self.lowest.min(other.lowest);
        self.highest = self.highest.max(other.highest);
        self.real_serials += other.real_serials;
        self.short_bodies += other.short_bodies;
    }
}

/// The kind of the previous object, in the order of the file or of addresses. The size of the previous object is at
/// most the distance from it to the current object.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Last {
    #[default]
    Nothing,
    Instance {
        class: u32,
        id: u64,
    },
    Array {
        kind: Kind,
        len: u32,
    },
    /// An array whose elements are flattened values or null, identified by the number of the array's class among array
    /// classes.
    ValueArray {
        array: u32,
        len: u32,
    },
}
