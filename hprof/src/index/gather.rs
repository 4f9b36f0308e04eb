//! Collects the data that an index has in addition to the analysis: the offsets of records, and the referrers of each
//! object.

use rayon::prelude::*;

use crate::answers::objects::object::{Bodies, Body};
use crate::answers::objects::reference::RawVia;
use crate::graph::address::AddressMap;
use crate::graph::scan::Piece;
use crate::ids::NONE;
use crate::index::inbound::{Buckets, InboundSections, LikelyReferrers};
use crate::index::positions::{self, EVERY};
use crate::records::outline::Segment;
use crate::records::walk::{self, Object};
use crate::snapshot::Snapshot;

/// Number of pieces of the dump (about a megabyte each) whose records are read before their references are sorted.
const BATCH: usize = 32;
/// Number of ids that are looked up together.
const AHEAD: usize = 256;

/// The content of the sections that [`Snapshot::gather`] collects.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    pub(super) positions: [Vec<u32>; 2],
    pub(super) lists: InboundSections,
}

impl Snapshot {
    /// Collects the sections of the index file. The sections are empty if [`Snapshot::has_lists`] returns false.
    ///
    /// Cost: one pass over the file. Memory: three to five bytes for each reference until the lists of referrers are
    /// complete.
    pub(super) fn gather(&self) -> Gathered {
        if !self.has_lists() {
            return Gathered::default();
        }
        let mut buckets = Buckets::new(self.object_count() as usize);
        let mut positions = [Vec::new(), Vec::new()];
        let counts = self.counts();
        let sizes: Vec<[usize; 2]> = positions::sizes(&self.pieces, counts).collect();
        let pieces: Vec<(&Piece, [usize; 2])> = self.pieces.iter().zip(sizes).collect();
        let mut walked: Vec<WalkedPiece<'_>> = Vec::new();
        for batch in pieces.chunks(BATCH).map(Some).chain([None]) {
            // The records of one batch of pieces of the dump are read while the references of the previous batch are
            // sorted.
            let (next, ()) = rayon::join(
                || {
                    let batch = batch.unwrap_or_default().par_iter();
                    batch
                        .map(|&(piece, sizes)| WalkedPiece::new(self, piece, sizes))
                        .collect()
                },
                || walked.iter().for_each(|w| buckets.add(&w.found)),
            );
            walked = next;
            for one in &mut walked {
                for (all, own) in positions.iter_mut().zip(&mut one.positions) {
                    all.append(own);
                }
            }
        }
        Gathered {
            positions,
            lists: buckets.into_lists(&self.likely_referrers()),
        }
    }

    /// Returns the number of objects with references and the number of objects without references. Class objects are
    /// not counted.
    pub(super) fn counts(&self) -> [u32; 2] {
        [
            self.split.inner - self.split.classes,
            self.leaf_shapes.len() as u32,
        ]
    }

    /// Returns true if the index has lists of referrers. It has no lists in two cases: the map is
    /// [`AddressMap::Sorted`], or an object has the id of a class object. In all other cases, each id identifies only
    /// one object, and the lists need to record only references from fields and elements.
    fn has_lists(&self) -> bool {
        let taken = |id: u64| self.map.by_id(id, self.split) != NONE;
        !matches!(self.map, AddressMap::Sorted { .. })
            && !self.classes().iter().any(|(_, class)| taken(class.id.0))
    }
}

/// The references and the record offsets in one piece of the file.
struct WalkedPiece<'a> {
    snapshot: &'a Snapshot,
    start: usize,
    /// The object number of the piece's first object with references, and that of its first object without references.
    first: [u32; 2],
    positions: [Vec<u32>; 2],
    /// References as pairs (id of the target, number of the source), for targets whose number is not known yet.
    pending: Vec<(u64, u32)>,
    /// References as pairs of object numbers (target, source).
    found: Vec<(u32, u32)>,
}

impl<'a> WalkedPiece<'a> {
    fn new(snapshot: &'a Snapshot, piece: &Piece, sizes: [usize; 2]) -> Self {
        let Segment { start, end } = piece.segment;
        let mut walked = Self {
            snapshot,
            start,
            first: [
                snapshot.split.classes + piece.first_inner,
                snapshot.split.inner + piece.first_leaf,
            ],
            positions: sizes.map(|len| vec![0; len]),
            pending: Vec::with_capacity(AHEAD),
            found: Vec::new(),
        };
        snapshot.source().advise_sequential(start, end - start);
        // Errors of the walk are ignored, because this damage was already reported when the dump was loaded.
        let id_size = snapshot.header().id_size;
        let _ = walk::walk(snapshot.source(), start, end, id_size, &mut walked);
        walked.look_up();
        walked
    }

    fn look_up(&mut self) {
        look_up(self.snapshot, &mut self.pending, &mut self.found);
    }
}

fn look_up(snapshot: &Snapshot, pending: &mut Vec<(u64, u32)>, found: &mut Vec<(u32, u32)>) {
    for (id, source) in pending.drain(..) {
        let target = snapshot.number_of(id);
        if target != NONE {
            found.push((target, source));
        }
    }
}

impl Bodies for WalkedPiece<'_> {
    #[inline(always)]
    fn object(&mut self, object: Object, body: Body<'_>) {
        let number = self.snapshot.map.by_id(object.id, self.snapshot.split);
        let kind = usize::from(number >= self.snapshot.split.inner);
        let nth = number.wrapping_sub(self.first[kind]);
        if nth.is_multiple_of(EVERY)
            && let Some(at) = self.positions[kind].get_mut((nth / EVERY) as usize)
        {
            // Store the offset of the object's record from the start of the piece of the file. If the offset does not
            // fit in 32 bits, store 0, so that a later search for the object begins at the start of the piece.
            *at = u32::try_from(object.at - self.start).unwrap_or(0);
        }
        if let Body::Primitives(..) = body {
            return;
        }
        self.snapshot.each_in_record(body, |id, way| {
            if id == 0 || matches!(way, RawVia::Class) {
                return;
            }
            self.snapshot.map.fetch(id);
            self.pending.push((id, number));
            if self.pending.len() == AHEAD {
                look_up(self.snapshot, &mut self.pending, &mut self.found);
            }
        });
    }
}

impl Snapshot {
    /// Returns the data from which a likely referrer of an object is computed. An index stores referrers as differences
    /// from likely referrers.
    pub(crate) fn likely_referrers(&self) -> LikelyReferrers<'_> {
        LikelyReferrers {
            classes: self.split.classes,
            inner: self.split.inner,
            leaves: self.leaf_shapes.len() as u32,
            pieces: &self.pieces,
        }
    }
}
