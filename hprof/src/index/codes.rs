//! Definitions that the writer and the reader of an index both use: the codes for kinds of address maps and missing
//! roots, and the hash of class tables.

use crate::bytes::stamp::hash;
use crate::graph::missing_roots::MissingRoots;
use crate::records::classes::Classes;

/// The codes of the kinds of address maps, which an index stores.
pub(super) const ORDERED: u32 = 0;
pub(super) const PERMUTED: u32 = 1;
pub(super) const SORTED: u32 = 2;
pub(super) const RUNS: u32 = 3;

/// Kinds of missing roots. An index stores the position of a kind in this array.
pub(super) const MISSING_ROOTS: [MissingRoots; 2] =
    [MissingRoots::ParkedThreads, MissingRoots::Frames];

/// Returns a hash of the class table. The hash shows whether an index was written for the same classes.
pub(super) fn class_hash(classes: &Classes) -> u64 {
    let each = classes
        .iter()
        .map(|(i, c)| c.id.0 ^ hash(classes.dumped_name(i).as_bytes()));
    let mut words: Vec<u64> = each.collect();
    words.push(classes.dumped() as u64);
    words.push(classes.arrays().len() as u64);
    hash(bytemuck::cast_slice(&words))
}
