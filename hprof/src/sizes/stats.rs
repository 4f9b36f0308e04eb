//! Measurements of a scan for each class: the number of objects, and the distances between neighbouring objects.

use std::collections::BTreeMap;

use crate::records::classes::Classes;
use crate::records::record::Kind;

/// Measurements of a class's instances.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClassStats {
    /// Number of instances (not arrays).
    pub(crate) instances: u64,
    /// The smallest distance from an instance to the next object.
    pub(crate) gap: u64,
    /// The address of an instance with that distance.
    pub(crate) gap_at: u64,
    /// Number of instances with that distance.
    pub(crate) gap_seen: u64,
}

impl Default for ClassStats {
    fn default() -> Self {
        Self {
            instances: 0,
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

/// The measurements of a scan.
#[derive(Clone, Debug)]
pub(crate) struct Stats {
    pub(crate) classes: Vec<ClassStats>,
    /// The lengths of arrays are divided by this number: a power of two, and a multiple of the JVM's object alignment.
    pub(crate) modulus: usize,
    /// For each array class (by array number), the number of arrays for each value of their length modulo `modulus`.
    residues: Vec<u64>,
    /// For each array class, the sum of all lengths, each divided by `modulus` and rounded down.
    quotients: Vec<u64>,
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
    /// Number of reference fields that are missing because a body is too short.
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

    /// Records the distance from an object of this kind to the next object.
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

    /// True if an object's id is not a multiple of eight.
    pub(crate) const fn has_unaligned_ids(&self) -> bool {
        self.address_bits.trailing_zeros() < 3
    }

    /// Discards all distances.
    pub(crate) fn discard_gaps(&mut self) {
        for class in &mut self.classes {
            *class = ClassStats {
                instances: class.instances,
                ..ClassStats::default()
            };
        }
        (self.array_slack, self.array_slack_wide) = ([i64::MAX; 12], i64::MAX);
    }

    /// Merges distances only.
    pub(crate) fn merge_gaps(&mut self, other: &Self) {
        for (a, b) in self.classes.iter_mut().zip(&other.classes) {
            a.merge_gap(b);
        }
        for (a, b) in self.array_slack.iter_mut().zip(&other.array_slack) {
            *a = (*a).min(*b);
        }
        self.array_slack_wide = self.array_slack_wide.min(other.array_slack_wide);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.merge_gaps(other);
        for (a, b) in self.classes.iter_mut().zip(&other.classes) {
            a.instances += b.instances;
        }
        let sums = [
            (&mut self.residues, &other.residues),
            (&mut self.quotients, &other.quotients),
        ];
        for (to, from) in sums {
            for (a, b) in to.iter_mut().zip(from) {
                *a += b;
            }
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

/// The previous object. The distance from it to the current object is an upper bound of its size.
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
}
