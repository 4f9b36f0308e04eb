//! What an index's writer and reader agree on: the numbers that stand for kinds, and the hash that tells
//! class tables apart.

use crate::bytes::stamp::hash;
use crate::graph::missing_roots::MissingRoots;
use crate::records::classes::Classes;

/// Numbers that stand for the kinds of address maps.
pub(super) const ORDERED: u32 = 0;
pub(super) const PERMUTED: u32 = 1;
pub(super) const SORTED: u32 = 2;
pub(super) const RUNS: u32 = 3;

/// Kinds of missing roots by the numbers that stand for them.
pub(super) const MISSING_ROOTS: [MissingRoots; 2] =
    [MissingRoots::ParkedThreads, MissingRoots::Frames];

/// A hash that tells one class table from another.
pub(super) fn class_hash(classes: &Classes) -> u64 {
    let each = classes
        .iter()
        .map(|(i, c)| c.id.0 ^ hash(classes.dumped_name(i).as_bytes()));
    let mut words: Vec<u64> = each.collect();
    words.push(classes.dumped() as u64);
    words.push(classes.arrays().len() as u64);
    hash(bytemuck::cast_slice(&words))
}
