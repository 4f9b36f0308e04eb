//! Deep sizes of sets that reach too many objects for one thread (see `NARROW`). Several threads follow the references.
//! After that, the sums over the reached objects are computed in the order of the dump.

use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;

use crate::answers::deep::{Deep, DeepSize, RowIndex};
use crate::bytes::mem;
use crate::graph::bits::Bits;
use crate::ids::ObjectIndex;
use crate::sizes::totals::Total;

/// Number of objects that a task visits before the remaining objects are distributed again.
const TURN: usize = 1 << 16;
/// Minimum number of objects that are distributed to several threads. If fewer objects are on the stack, one thread
/// visits the next [`TURN`] objects alone.
const FEW: usize = 1 << 8;
/// Number of words of the bitmap that one task handles when it sums up the objects.
const WORDS: usize = 1 << 10;

impl Deep<'_> {
    /// Computes the deep size of a set on several threads. Returns `None` if only the references of some objects are in
    /// memory.
    ///
    /// Cost: one visit of each reference of the objects reached, and one pass over the dump's objects, shared by all
    /// threads.
    pub(super) fn size_on_threads(&mut self, starts: &[ObjectIndex]) -> Option<DeepSize> {
        if !matches!(self.rows, RowIndex::All(_)) {
            return None;
        }
        let (snapshot, split) = (self.snapshot, self.snapshot.split);
        let mut stack: Vec<u32> = Vec::new();
        let mut found: Vec<u32> = Vec::new();
        for start in starts {
            self.reach(start.0, &mut found);
        }
        while let Some(object) = found.pop() {
            if object < split.classes {
                // References to class objects were left out, so the walk finds no class objects except those at which
                // it starts.
                self.step(object, &mut stack);
            } else {
                stack.push(object);
            }
        }
        // References to instances of `java.lang.Class` are not followed. Some of these instances are not class objects,
        // such as those for primitive types. These few are added to the set `seen` during the walk, so that the walk
        // skips them.
        let mirrors = snapshot.class_class().map(|c| snapshot.instances(&[c]));
        let mut mirrors: Vec<u32> = mirrors.into_iter().flatten().map(|o| o.0).collect();
        mirrors.retain(|&o| o >= split.classes && !self.seen.has(o));
        mirrors.iter().for_each(|&o| self.seen.set(o));
        let RowIndex::All(offsets) = &self.rows else {
            return None;
        };
        let rows = Rows {
            offsets,
            targets: &self.targets,
            classes: split.classes,
            inner: split.inner,
        };
        rows.follow(stack, self.seen.shared());
        mirrors.iter().for_each(|&o| {
            self.seen.take(o);
        });
        Some(self.sum_seen(&self.seen))
    }

    fn sum_seen(&self, seen: &Bits) -> DeepSize {
        let snapshot = self.snapshot;
        let mirrors = snapshot.class_class();
        let classes = snapshot.classes().len();
        // The last element is the sum for objects without a class.
        let none = || vec![Total::default(); classes + 1];
        let words = seen.words();
        let chunks = words.par_chunks(WORDS).enumerate();
        let mut by_class = chunks
            .fold(none, |mut sums, (chunk, words)| {
                for (at, &word) in (chunk * WORDS..).zip(words) {
                    let mut word = word;
                    while word != 0 {
                        let object = (at * 64) as u32 + word.trailing_zeros();
                        word &= word - 1;
                        let (class, bytes) = snapshot.class_and_size(ObjectIndex(object));
                        let class = class.or(mirrors).map_or(classes, |c| c.index());
                        sums[class] += Total { objects: 1, bytes };
                    }
                }
                sums
            })
            .reduce(none, |mut sums, more| {
                sums.iter_mut().zip(more).for_each(|(sum, m)| *sum += m);
                sums
            });
        let mut total = Total::default();
        by_class.iter().for_each(|&of_class| total += of_class);
        by_class.truncate(classes);
        DeepSize { total, by_class }
    }
}

struct Rows<'a> {
    offsets: &'a [u32],
    targets: &'a [u32],
    classes: u32,
    inner: u32,
}

impl Rows<'_> {
    /// Adds to `seen` all objects that the objects on `stack` reach.
    fn follow(&self, mut stack: Vec<u32>, seen: &[AtomicU64]) {
        while !stack.is_empty() {
            if stack.len() < FEW {
                self.visit_batch(&mut stack, seen);
                continue;
            }
            let share = stack.len().div_ceil(rayon::current_num_threads() * 4);
            let left: Vec<Vec<u32>> = stack
                .par_chunks(share.max(FEW / 4))
                .map(|part| {
                    let mut own = part.to_vec();
                    self.visit_batch(&mut own, seen);
                    own
                })
                .collect();
            stack = left.concat();
        }
    }

    /// Visits at most [`TURN`] objects.
    fn visit_batch(&self, stack: &mut Vec<u32>, seen: &[AtomicU64]) {
        const AHEAD: usize = 4;
        for _ in 0..TURN {
            let Some(object) = stack.pop() else { return };
            if let Some(&soon) = stack.len().checked_sub(AHEAD).and_then(|at| stack.get(at)) {
                mem::prefetch(self.offsets, soon.wrapping_sub(self.classes) as usize);
            }
            if object >= self.inner {
                continue;
            }
            let at = (object - self.classes) as usize;
            let row = self.offsets[at] as usize..self.offsets[at + 1] as usize;
            for &target in &self.targets[row] {
                let (word, bit) = (&seen[target as usize / 64], 1 << (target % 64));
                let is_new = target >= self.classes
                    && word.load(Ordering::Relaxed) & bit == 0
                    && word.fetch_or(bit, Ordering::Relaxed) & bit == 0;
                // Objects without references need no visit.
                if is_new && target < self.inner {
                    stack.push(target);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_threads_give_the_result_of_one() {
        // Test graph: a long list in which every thousandth node refers to 2,000 random objects, and objects without
        // references.
        let (classes, inner, all) = (3_u32, 200_000_u32, 260_000_u32);
        let mut state = 7_u64;
        let mut random = |below: u32| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            ((state >> 33) % u64::from(below)) as u32
        };
        let (mut offsets, mut targets) = (vec![0], Vec::new());
        for object in classes..inner {
            if object < 100_000 {
                targets.push(object + 1);
            }
            if object % 1000 == 0 {
                targets.extend((0..2000).map(|_| random(all)));
            }
            offsets.push(targets.len() as u32);
        }
        let rows = Rows {
            offsets: &offsets,
            targets: &targets,
            classes,
            inner,
        };
        for start in [classes, 99_000, 150_000, inner] {
            let mut seen = Bits::new(all as usize);
            seen.set(start);
            rows.follow(vec![start], seen.shared());
            let mut expected = Bits::new(all as usize);
            expected.set(start);
            let mut stack = vec![start];
            while let Some(object) = stack.pop() {
                if object >= inner {
                    continue;
                }
                let at = (object - classes) as usize;
                for &target in &targets[offsets[at] as usize..offsets[at + 1] as usize] {
                    if target >= classes && !expected.has(target) {
                        expected.set(target);
                        stack.push(target);
                    }
                }
            }
            assert!(seen.iter().eq(expected.iter()), "from {start}");
        }
    }
}
