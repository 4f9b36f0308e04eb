//! References that lead back, from an object to the only one that refers to it: a tree's nodes to their parents, a list's
//! to those before.
//!
//! Whoever comes by such a reference was there before, so it changes no dominator, and does not count. A node of which
//! only its parent and its children know so has one referrer; then its own reference to its parent leads back, too. From the
//! last nodes on, all of a tree is settled without a search.

use std::sync::atomic::Ordering;

use rayon::prelude::*;

use super::annotated::{CHUNK, Cells, MappedBits, each_bit};
use super::core::SEVERAL;
use crate::bytes::array::{Array, Store};
use crate::bytes::mem;
use crate::error::Result;
use crate::ids::NONE;

/// Added to the number of referrers of what something else holds: it has never one.
const HELD: u32 = 1 << 30;
/// Of so many pieces of the graph one is looked at to tell whether it pays.
const SAMPLED: usize = 8;

/// Gives objects that have one referrer but for references that lead back that referrer's note, where there are many of
/// these. `held` are objects that more than references hold.
///
/// Cost: one pass over the references, and one look at the row of each object that is settled. Memory: eight bytes for
/// each object.
pub(super) fn settle(
    cells: Cells<'_>,
    targets: &[u32],
    held: impl Iterator<Item = u32>,
    store: &Store,
) -> Result<()> {
    if !pays(cells, targets) {
        return Ok(());
    }
    let inner = cells.rows();
    // The number of references to each object, and all referrers by exclusive or.
    let mut referrers: Array<u32> = store.zeroed(inner * 2)?;
    count(cells, targets, &mut referrers);
    held.for_each(|object| referrers[object as usize * 2] |= HELD);
    let mut starts = MappedBits::new(inner, store)?;
    let words = starts.words_mut().par_iter_mut().enumerate();
    words.for_each(|(at, word)| {
        for object in (at * 64) as u32..((at + 1) * 64).min(inner) as u32 {
            *word |= u64::from(leads_back(cells, targets, object)) << (object % 64);
        }
    });
    let referrers = &mut referrers[..];
    for (at, &word) in starts.words().iter().enumerate() {
        each_bit(at, word, |start| {
            let mut object = start;
            while leads_back(cells, targets, object) {
                let above = cells.number(object);
                let of_above = &mut referrers[above as usize * 2..][..2];
                for _ in row(cells, targets, object)
                    .iter()
                    .filter(|&&to| to == above)
                {
                    of_above[0] -= 1;
                    of_above[1] ^= object;
                }
                if of_above[0] != 1 {
                    break;
                }
                cells.note(above).store(of_above[1], Ordering::Relaxed);
                object = above;
            }
        });
    }
    Ok(())
}

#[inline(always)]
fn row<'a>(cells: Cells<'_>, targets: &'a [u32], object: u32) -> &'a [u32] {
    &targets[cells.begin(object) as usize..cells.begin(object + 1) as usize]
}

/// Whether an object has one referrer, and refers to it.
#[inline(always)]
fn leads_back(cells: Cells<'_>, targets: &[u32], object: u32) -> bool {
    let referrer = cells.number(object);
    referrer < SEVERAL && row(cells, targets, object).contains(&referrer)
}

/// Whether, in a part of the graph, so many references lead back that it could matter.
fn pays(cells: Cells<'_>, targets: &[u32]) -> bool {
    let pieces = (0..cells.rows().div_ceil(CHUNK))
        .into_par_iter()
        .step_by(SAMPLED);
    let counts = pieces.map(|piece| {
        let objects = (piece * CHUNK) as u32..((piece + 1) * CHUNK).min(cells.rows()) as u32;
        let back = objects
            .clone()
            .filter(|&object| leads_back(cells, targets, object));
        let joins = objects
            .clone()
            .filter(|&object| cells.number(object) == SEVERAL);
        (back.count(), joins.count())
    });
    let (back, joins) = counts.reduce(|| (0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
    back > 0 && back * 8 >= joins
}

fn count(cells: Cells<'_>, targets: &[u32], referrers: &mut [u32]) {
    const AHEAD: usize = 32;
    let inner = cells.rows();
    let shared = mem::as_atomic_u32(referrers);
    let add = |(from, to): (u32, u32)| {
        if to != NONE {
            shared[to as usize * 2].fetch_add(1, Ordering::Relaxed);
            shared[to as usize * 2 + 1].fetch_xor(from, Ordering::Relaxed);
        }
    };
    (0..inner.div_ceil(CHUNK))
        .into_par_iter()
        .for_each(|chunk| {
            let mut ring = [(0, NONE); AHEAD];
            let mut at = 0;
            for from in (chunk * CHUNK) as u32..((chunk + 1) * CHUNK).min(inner) as u32 {
                for &to in row(cells, targets, from) {
                    if (to as usize) < inner && to != from {
                        mem::prefetch(shared, to as usize * 2);
                        add(std::mem::replace(&mut ring[at], (from, to)));
                        at = (at + 1) % AHEAD;
                    }
                }
            }
            ring.into_iter().for_each(add);
        });
}
