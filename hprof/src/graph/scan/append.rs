//! Appends the results of a batch of pieces of the file to those of all earlier pieces.

use rayon::prelude::*;

use super::{Job, Piece, Referent, Scanned, ScannedPiece};
use crate::bytes::array::Array;
use crate::error::{Error, Result, Warning};
use crate::flaw::Flaw;
use crate::graph::targets::Targets;
use crate::ids::NONE;
use crate::records::outline::Segment;
use crate::sizes::shape;

impl Scanned {
    /// Appends the results of a batch of pieces of the file, in file order.
    pub(super) fn append<T: Targets>(
        &mut self,
        job: &Job<'_, T>,
        batch: &[Segment],
        parts: &mut [ScannedPiece],
    ) -> Result<()> {
        let parts = &mut parts[..batch.len()];
        let (mut target_base, mut long_base) = (self.targets.len(), self.shapes.longs.len());
        let (mut inner_base, mut leaf_base) = (self.inner_shapes.len(), self.leaf_shapes.len());
        let first_long = self.shapes.first_long();
        // In the results of each piece of the file, object numbers and offsets start at 0. To get the final values, add
        // the totals of all earlier pieces.
        let mut bases = Vec::with_capacity(parts.len());
        for (part, &segment) in parts.iter_mut().zip(batch) {
            bases.push((target_base as u32, long_base as u32));
            target_base += part.targets.len();
            long_base += part.longs.len();
            self.pieces.push(Piece {
                segment,
                first_inner: inner_base as u32,
                first_leaf: leaf_base as u32,
            });
            self.shapes.longs.append(&mut part.longs);
            for referent in &part.referents {
                self.referents.push(Referent {
                    from: referent.from + inner_base as u32,
                    ..*referent
                });
            }
            for &(number, leaf, serial) in &part.sites {
                let base = if leaf { leaf_base } else { inner_base };
                self.sites.push((number + base as u32, leaf, serial));
            }
            self.roots.append(&mut part.roots);
            self.cut_arrays.append(&mut part.cut_arrays);
            self.late_classes.append(&mut part.late_classes);
            if let Some(damage) = part.damage.take() {
                let flaw = Flaw::SkippedRest {
                    flaw: Box::new(damage.flaw),
                    bytes: segment.end - damage.offset,
                };
                self.warnings.push(Warning::at(damage.offset as u64, &flaw));
            }
            self.runs.append(&mut part.runs, [inner_base, leaf_base]);
            self.waypoints
                .append(&mut part.waypoints, [inner_base, leaf_base]);
            inner_base += part.inner_shapes.len();
            leaf_base += part.leaf_shapes.len();
        }
        let has_room = self.shapes.has_room(self.shapes.longs.len());
        check_numbers(
            job.classes.len(),
            inner_base + leaf_base,
            target_base,
            has_room,
        )?;
        parts
            .par_iter_mut()
            .zip(bases)
            .for_each(|(part, (targets, longs))| {
                part.ends.iter_mut().for_each(|e| *e += targets);
                for shape in part.inner_shapes.iter_mut().chain(&mut part.leaf_shapes) {
                    let is_long = *shape >= first_long && *shape == shape::plain(*shape);
                    *shape += if is_long { longs } else { 0 };
                }
            });
        append_all(&mut self.ends, parts, |p| &p.ends)?;
        append_all(&mut self.targets, parts, |p| &p.targets)?;
        append_all(&mut self.inner_shapes, parts, |p| &p.inner_shapes)?;
        append_all(&mut self.leaf_shapes, parts, |p| &p.leaf_shapes)?;
        append_all(&mut self.inner_ids, parts, |p| &p.inner_ids)?;
        append_all(&mut self.leaf_ids, parts, |p| &p.leaf_ids)
    }
}

/// Returns an error if there are more objects, references or shapes than 32 bits can number. (A shape encodes the class
/// and the array length of an object.) `shapes_fit` is false if there are too many shapes.
pub(super) fn check_numbers(
    classes: usize,
    objects: usize,
    references: usize,
    shapes_fit: bool,
) -> Result<()> {
    let limit = |what, count: usize| Error::Limit {
        what,
        count: count as u64,
        limit: u64::from(NONE) - 1,
    };
    // Each class object counts as two objects: one number is that of the class object, the other is reserved.
    let objects = classes * 2 + objects;
    if objects >= NONE as usize || !shapes_fit {
        return Err(limit("objects", objects));
    }
    if references < NONE as usize {
        Ok(())
    } else {
        Err(limit("references", references))
    }
}

fn append_all<V: bytemuck::Pod + Send + Sync>(
    array: &mut Array<V>,
    parts: &[ScannedPiece],
    field: impl Fn(&ScannedPiece) -> &[V] + Sync,
) -> Result<()> {
    let at = array.len();
    array.resize(at + parts.iter().map(|p| field(p).len()).sum::<usize>())?;
    let mut rest = &mut array[at..];
    let mut jobs = Vec::with_capacity(parts.len());
    for part in parts {
        let from = field(part);
        let to;
        (to, rest) = rest.split_at_mut(from.len());
        jobs.push((to, from));
    }
    jobs.into_par_iter()
        .for_each(|(to, from)| to.copy_from_slice(from));
    Ok(())
}
