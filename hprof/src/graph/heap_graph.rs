//! The heap graph in compressed sparse row format.

use rayon::prelude::*;

use crate::bytes::array::{Array, Store};
use crate::bytes::mem::{self, BitCounting};
use crate::error::{Error, Result};
use crate::graph::address::{AddressMap, MapView, Split};
use crate::graph::bare::LeafClasses;
use crate::ids::{NONE, ObjectIndex};
use crate::records::walk::RootKind;

/// Objects by number, the references between them, and the GC roots.
///
/// [`Snapshot::graph`](crate::Snapshot::graph) returns the graph of a dump together with the names and contents of its
/// objects. [`HeapGraph::build`] builds only the graph of a dump. [`HeapGraph::from_edges`] builds a graph from any
/// list of edges.
///
/// ```
/// use hprof::graph::HeapGraph;
/// use hprof::{Options, Silent, Source};
///
/// # fn main() -> hprof::Result<()> {
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/small.hprof");
/// let source = Source::open(path.as_ref())?;
/// let graph = HeapGraph::build(&source, &Options::default(), &Silent)?;
/// let held: usize = graph.root_objects().map(|root| graph.references(root).count()).sum();
/// assert!(held > 0);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct HeapGraph {
    /// For each class object and each object with references, the start of its adjacency list in `targets`. The last
    /// element is the end of the last list.
    pub(crate) offsets: Array<u32>,
    /// Target object numbers; [`NONE`] for dangling references.
    pub(crate) targets: Array<u32>,
    pub(crate) split: Split,
    /// Number of objects of all kinds.
    pub(crate) objects: u32,
    /// Objects that GC roots hold: sorted, each once, with the first kind of root that holds it.
    pub(crate) roots: Vec<(u32, RootKind)>,
    /// References to referents: first those of soft references, then those of final references. Each pair is the
    /// reference object and its referent.
    pub(crate) weaker: [Vec<(u32, u32)>; 2],
    /// References from leaves (objects without other references) to their classes, if the graph contains references to
    /// classes.
    pub(crate) leaf_classes: LeafClasses,
    /// References that were inserted in place of paths "object -> leaf -> class of the leaf". Each pair is the object
    /// and the class.
    pub(crate) by_leaves: Vec<(u32, u32)>,
    /// Class objects to which bare leaves (objects that refer only to their class) refer, for the case that
    /// `leaf_classes` does not contain these references.
    pub(crate) of_leaves: Vec<u32>,
}

impl HeapGraph {
    /// Creates a graph of `objects` objects from references, given as (source, target), and the objects that GC roots
    /// hold.
    ///
    /// Memory: four bytes for each object and each reference, and temporarily a sorted copy of the references.
    ///
    /// # Errors
    /// Returns an error if there is not enough memory, or if there are more objects or references than 32 bits can
    /// number. Also returns an error if a reference or a root has an object number that is not below `objects`.
    pub fn from_edges(objects: u32, edges: &[(u32, u32)], roots: &[u32]) -> Result<Self> {
        let limit = |what, count: u64| Error::Limit {
            what,
            count,
            limit: u64::from(NONE) - 1,
        };
        if objects == NONE {
            return Err(limit("objects", u64::from(objects)));
        }
        if edges.len() >= NONE as usize {
            return Err(limit("references", edges.len() as u64));
        }
        let named = edges.iter().flat_map(|&(from, to)| [from, to]);
        if let Some(unknown) = named.chain(roots.iter().copied()).find(|&n| n >= objects) {
            return Err(Error::NoSuchNumber(ObjectIndex(unknown)));
        }
        let (mut rows, mut roots) = (edges.to_vec(), roots.to_vec());
        // The sort is stable: the references of an object keep their order.
        rows.par_sort_by_key(|row| row.0);
        roots.sort_unstable();
        roots.dedup();
        Self::from_rows(objects, &rows, &roots, &Store::new(None))
    }

    /// Creates a graph from edges that are sorted by source. All of the `nodes` objects count as objects with
    /// references, and none as a class object.
    pub(crate) fn from_rows(
        nodes: u32,
        rows: &[impl Copy + Into<(u32, u32)>],
        roots: &[u32],
        store: &Store,
    ) -> Result<Self> {
        let mut offsets: Array<u32> = store.zeroed(nodes as usize + 1)?;
        for &row in rows {
            let (from, _) = row.into();
            offsets[from as usize + 1] += 1;
        }
        let mut sum = 0;
        for offset in offsets.iter_mut() {
            sum += *offset;
            *offset = sum;
        }
        let mut targets: Array<u32> = store.zeroed(rows.len())?;
        for (slot, &row) in targets.iter_mut().zip(rows) {
            (_, *slot) = row.into();
        }
        let split = Split {
            classes: 0,
            inner: nodes,
        };
        let roots = roots.iter().map(|&r| (r, RootKind::Unknown)).collect();
        Ok(Self {
            offsets,
            targets,
            split,
            objects: nodes,
            roots,
            weaker: [Vec::new(), Vec::new()],
            leaf_classes: LeafClasses::none(store)?,
            by_leaves: Vec::new(),
            of_leaves: Vec::new(),
        })
    }

    /// Moves the references from leaves (objects without other references) to their classes to `targets`, where all
    /// other adjacency lists are. Adjacency lists are contiguous. So all leaves up to the last one with such a
    /// reference get an adjacency list, and do not count as leaves any more.
    pub(crate) fn with_rows_of_leaves(mut self, store: &Store) -> Result<Self> {
        if self.leaf_classes.len() == 0 {
            return Ok(self);
        }
        check_references(self.reference_count())?;
        let leaves = self.leaf_classes.rows();
        for leaf in 0..leaves {
            self.targets.extend(self.leaf_classes.row(leaf))?;
            self.offsets.extend(&[self.targets.len() as u32])?;
        }
        self.split.inner += leaves;
        self.leaf_classes = LeafClasses::none(store)?;
        Ok(self)
    }

    /// Returns the number of objects.
    #[must_use]
    pub fn object_count(&self) -> usize {
        self.objects as usize
    }

    /// Returns the number of references, including dangling ones. References of soft, weak and other reference objects
    /// to their referents are included only if they count as strong.
    #[must_use]
    pub fn reference_count(&self) -> usize {
        self.targets.len() + self.leaf_classes.len()
    }

    /// Returns the objects that an object refers to by strong references. A target appears once for each reference.
    pub fn references(&self, object: ObjectIndex) -> impl Iterator<Item = ObjectIndex> + '_ {
        let row = self.row(object.0);
        row.iter().copied().filter(|&t| t != NONE).map(ObjectIndex)
    }

    /// Returns the objects that GC roots hold.
    pub fn root_objects(&self) -> impl ExactSizeIterator<Item = ObjectIndex> + '_ {
        self.roots.iter().map(|r| ObjectIndex(r.0))
    }

    #[inline]
    pub(crate) fn row(&self, object: u32) -> &[u32] {
        if let Some(leaf) = object.checked_sub(self.split.inner) {
            return self.leaf_classes.row(leaf);
        }
        let at = object as usize;
        &self.targets[self.offsets[at] as usize..self.offsets[at + 1] as usize]
    }
}

/// Returns an error if there are too many references to number them with 32 bits.
fn check_references(count: usize) -> Result<()> {
    if count < NONE as usize {
        return Ok(());
    }
    Err(Error::Limit {
        what: "references",
        count: count as u64,
        limit: u64::from(NONE) - 1,
    })
}

/// Converts slots (positions in the address map) to object numbers, in place.
pub(crate) fn translate(
    targets: &mut [u32],
    map: &AddressMap,
    split: Split,
    class_at: impl Fn(u32) -> u32 + Sync,
) {
    let Some(map) = map.view() else {
        // Ids that are not addresses have no slots (positions in the address map).
        targets.fill(NONE);
        return;
    };
    targets.par_chunks_mut(1 << 15).for_each(|slots| {
        mem::with_popcnt(Translation {
            slots,
            map,
            split,
            class_at: &class_at,
        });
    });
}

/// A part of the slots (positions in the address map) that [`translate`] converts.
struct Translation<'a, F> {
    slots: &'a mut [u32],
    map: MapView<'a>,
    split: Split,
    class_at: &'a F,
}

impl<F: Fn(u32) -> u32> BitCounting for Translation<'_, F> {
    #[inline(always)]
    fn run(self) {
        /// Number of references between the prefetch of a map entry and its use.
        const AHEAD: usize = 16;
        for at in 0..self.slots.len() {
            if let Some(&later) = self.slots.get(at + AHEAD) {
                self.map.fetch(u64::from(later));
            }
            let slot = self.slots[at];
            if slot != NONE {
                self.slots[at] = match self.map.by_slot(u64::from(slot), self.split) {
                    NONE => (self.class_at)(slot),
                    number => number,
                };
            }
        }
    }
}

/// Inserts the references in `extra`, which no record contains, at the ends of the adjacency lists. `extra` is sorted
/// by source, and each source must have a list.
///
/// Cost: every list after that of the first source is moved once.
pub(crate) fn insert(
    offsets: &mut Array<u32>,
    targets: &mut Array<u32>,
    extra: &[(u32, u32)],
) -> Result<()> {
    let Some(&(first, _)) = extra.first() else {
        return Ok(());
    };
    let old = targets.len();
    check_references(old + extra.len())?;
    targets.resize(old + extra.len())?;
    let (mut end, mut left) = (old, extra.len());
    let groups = extra.chunk_by(|a, b| a.0 == b.0).rev();
    for group in groups {
        let row_end = offsets[group[0].0 as usize + 1] as usize;
        targets.copy_within(row_end..end, row_end + left);
        left -= group.len();
        for (slot, &(_, target)) in targets[row_end + left..].iter_mut().zip(group) {
            *slot = target;
        }
        end = row_end;
    }
    let mut at = first as usize + 1;
    let mut shift = 0;
    for group in extra.chunk_by(|a, b| a.0 == b.0) {
        let source = group[0].0 as usize + 1;
        offsets[at..source].par_iter_mut().for_each(|o| *o += shift);
        shift += group.len() as u32;
        at = source;
    }
    offsets[at..].par_iter_mut().for_each(|o| *o += shift);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_references_fits_in_32_bits() {
        assert!(check_references(NONE as usize - 1).is_ok());
        let error = check_references(NONE as usize).unwrap_err();
        assert!(matches!(
            error,
            Error::Limit {
                what: "references",
                ..
            }
        ));
    }

    #[test]
    fn inserted_references_end_their_lists() {
        let store = Store::new(None);
        let (mut offsets, mut targets) = (store.zeroed(0).unwrap(), store.zeroed(0).unwrap());
        offsets.extend(&[0, 2, 2, 5, 6]).unwrap();
        targets.extend(&[10, 11, 30, 31, 32, 40]).unwrap();
        insert(&mut offsets, &mut targets, &[(1, 1), (1, 2), (2, 3)]).unwrap();
        assert_eq!(&offsets[..], &[0, 2, 4, 8, 9]);
        assert_eq!(&targets[..], &[10, 11, 1, 2, 30, 31, 32, 3, 40]);
    }
}
