//! Finds object numbers by address, for a file that is not in address order.

use std::sync::atomic::{AtomicU32, Ordering};

use rayon::prelude::*;

use crate::bytes::array::Array;
use crate::bytes::mem;
use crate::error::Result;
use crate::graph::address::{AddressMap, Ranks, Split};
use crate::graph::plan::Context;
use crate::graph::scan::Scanned;
use crate::records::outline::Segment;
use crate::records::record::Kind;
use crate::records::walk::{self, Object, Visitor};

/// Finds the object number for each rank, for a file that is not in address order. (The rank is the number of objects
/// of the same kind at lower addresses.) Cost: one more pass over the ids.
pub(crate) fn permute(
    context: &Context<'_>,
    scanned: &Scanned,
    ranks: Ranks,
    split: Split,
) -> Result<AddressMap> {
    struct RankVisitor<'a> {
        ranks: &'a Ranks,
        /// Object numbers, indexed by rank. The first array is for objects with references, the second for objects
        /// without references.
        numbers: [&'a [AtomicU32]; 2],
        next: [u32; 2],
    }
    impl RankVisitor<'_> {
        #[inline(always)]
        fn object(&mut self, id: u64) {
            let rank = self
                .ranks
                .space
                .slot(id)
                .and_then(|slot| self.ranks.rank(slot));
            if let Some((rank, leaf)) = rank {
                let leaf = usize::from(leaf);
                self.numbers[leaf][rank as usize].store(self.next[leaf], Ordering::Relaxed);
                self.next[leaf] += 1;
            }
        }
    }
    impl Visitor for RankVisitor<'_> {
        fn instance(&mut self, object: Object, _: u64, _: &[u8]) {
            self.object(object.id);
        }
        fn object_array(&mut self, object: Object, _: u64, _: &[u8]) {
            self.object(object.id);
        }
        fn primitive_array(&mut self, object: Object, _: Kind, _: u32, _: &[u8]) {
            self.object(object.id);
        }
    }
    let id_size = context.header.id_size;
    let mut with_refs: Array<u32> = context.store.zeroed(ranks.marked[0] as usize)?;
    let mut leaves: Array<u32> = context.store.zeroed(ranks.marked[1] as usize)?;
    let numbers = [
        mem::as_atomic_u32(&mut with_refs),
        mem::as_atomic_u32(&mut leaves),
    ];
    scanned.pieces.par_iter().for_each(|piece| {
        let next = [
            split.classes + piece.first_inner,
            split.inner + piece.first_leaf,
        ];
        let mut place = RankVisitor {
            ranks: &ranks,
            numbers,
            next,
        };
        let Segment { start, end } = piece.segment;
        // Errors of the walk are ignored, because the previous pass already reported them. The previous pass stopped at
        // the same offset.
        let _ = walk::walk(context.source, start, end, id_size, &mut place);
    });
    Ok(AddressMap::Permuted {
        ranks,
        with_refs: with_refs.into(),
        leaves: leaves.into(),
    })
}
