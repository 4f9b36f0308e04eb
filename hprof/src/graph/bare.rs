//! Bare objects: objects whose only reference is the one to their class.
//!
//! Most bare objects are treated as leaves, that is, as objects without references. So the graph lacks their references
//! to their classes. Such a reference matters if the class is not a GC root and only the object keeps the class alive.
//! Nearly all of these references change no dominator, and leaving them out saves memory. Two measures keep the result
//! correct:
//!
//! - Some bare objects of each class are treated as objects with references. So they can be witnesses: objects whose
//!   references to classes the dominator computation uses (see `dominators/core.rs`).
//! - If an object close to a GC root refers to a bare leaf (a bare object that is treated as a leaf), the graph gets a
//!   reference from the object to the leaf's class.
//!
//! `dominators/bare.rs` then checks that the references left out change no dominator. If a reference could change one,
//! the dump is read again. This time, a bare object is a leaf only if its class is certainly a GC root.

use std::collections::BTreeMap;

use rustc_hash::FxHashSet;

use crate::bytes::array::{Array, Store};
use crate::dominators::thresholds::Thresholds;
use crate::error::Result;
use crate::graph::address::Split;
use crate::ids::NONE;
use crate::records::classes::Classes;
use crate::records::record::Kind;
use crate::records::walk::RootKind;
use crate::sizes::shape::{ShapeClasses, Shapes};

/// The rule that selects which bare objects (objects that refer only to their class) are treated as objects with
/// references. The other bare objects are treated as leaves, except threads, class loaders and `java.lang.ref` objects.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kept {
    /// In each piece of the file (usually about a megabyte), the first `first` bare objects of each class are treated
    /// as objects with references.
    first: u32,
    /// After them, the bare objects of the class at positions `every`, 2 * `every`, and so on are treated as objects
    /// with references, too. The positions count all bare objects of the class in the piece, from 1.
    every: u32,
}

impl Kept {
    pub(crate) fn new(thresholds: Thresholds) -> Self {
        let [first, every] = thresholds.bare;
        Self { first, every }
    }
}

/// Decides which bare objects (objects that refer only to their class) are treated as objects without references. The
/// decision depends only on the order of objects in the file. So every pass over the file makes the same decision for
/// an object.
#[derive(Debug)]
pub(crate) struct Sifter {
    kept: Kept,
    piece: u32,
    /// For each class: the last piece of the file in which a bare object of the class was found, the number of bare
    /// objects of the class found in that piece, and true if any bare object of the class is treated as an object
    /// without references.
    seen: Vec<(u32, u32, bool)>,
}

impl Sifter {
    pub(crate) fn new(kept: Kept, classes: usize) -> Self {
        Self {
            kept,
            piece: 0,
            seen: vec![(0, 0, false); classes],
        }
    }

    /// Call this when the next piece of the file begins.
    pub(crate) fn next_piece(&mut self) {
        self.piece = self.piece.wrapping_add(1);
    }

    /// Counts one more bare object of this class. Returns true if the object is treated as an object without
    /// references. The caller reads the objects of a piece in the order of the file.
    #[inline(always)]
    pub(crate) fn is_leaf(&mut self, class: u32) -> bool {
        let Some((piece, seen, leaves)) = self.seen.get_mut(class as usize) else {
            return false;
        };
        if *piece != self.piece {
            (*piece, *seen) = (self.piece, 0);
        }
        *seen = seen.saturating_add(1);
        let is_leaf = *seen > self.kept.first && !seen.is_multiple_of(self.kept.every);
        *leaves |= is_leaf;
        is_leaf
    }

    /// Returns the classes of the objects that were treated as objects without references so far, although they refer
    /// to their class.
    pub(crate) fn classes(&self) -> impl Iterator<Item = u32> {
        let classes = (0..).zip(&self.seen);
        classes.filter(|(_, seen)| seen.2).map(|(class, _)| class)
    }
}

/// Returns a table from shapes (class, and length of an array) to class objects. It contains only classes that an
/// object might keep alive by its reference to the class.
pub(crate) fn shape_classes(
    shapes: &Shapes,
    classes: &Classes,
    pinned: &[bool],
    split: Split,
) -> ShapeClasses {
    ShapeClasses::new(shapes, |class| {
        let element = classes[class].element;
        // Arrays of primitives are treated as objects without references, whether or not their class is a GC root.
        class.0 < split.classes
            && !pinned[class.index()]
            && element.is_none_or(|kind| kind == Kind::Object)
    })
}

/// The references from leaves (objects without other references) to their classes.
#[derive(Debug)]
pub(crate) struct LeafClasses {
    /// A bitmap in which the bit of a leaf is set if the leaf refers to its class. Each word is stored with the number
    /// of set bits in the words before it.
    words: Vec<(u64, u32)>,
    /// For each set bit of the bitmap `words`, the class object to which the leaf refers.
    classes: Array<u32>,
}

impl LeafClasses {
    pub(crate) fn none(store: &Store) -> Result<Self> {
        Ok(Self {
            words: Vec::new(),
            classes: store.zeroed(0)?,
        })
    }

    /// Creates the table. `leaves` yields the class object of each leaf, or [`NONE`] if the leaf does not refer to its
    /// class.
    pub(crate) fn new(leaves: impl Iterator<Item = u32>, store: &Store) -> Result<Self> {
        const BATCH: usize = 1 << 12;
        let mut all = Self::none(store)?;
        let mut batch: Vec<u32> = Vec::with_capacity(BATCH);
        for (leaf, class) in leaves.enumerate() {
            if leaf % 64 == 0 {
                let before = all.classes.len() + batch.len();
                all.words.push((0, before as u32));
            }
            if class == NONE {
                continue;
            }
            if let Some((word, _)) = all.words.last_mut() {
                *word |= 1 << (leaf % 64);
            }
            batch.push(class);
            if batch.len() == BATCH {
                all.classes.extend(&batch)?;
                batch.clear();
            }
        }
        all.classes.extend(&batch)?;
        Ok(all)
    }

    /// Returns the number of leaves that have a reference to their class.
    pub(crate) fn len(&self) -> usize {
        self.classes.len()
    }

    /// Returns the number of the last leaf that refers to its class (counted from the first leaf), plus one. Returns 0
    /// if no leaf refers to its class.
    pub(crate) fn rows(&self) -> u32 {
        let mut words = self.words.iter().enumerate().rev();
        let last = words.find(|(_, (word, _))| *word != 0);
        last.map_or(0, |(at, (word, _))| {
            at as u32 * 64 + 64 - word.leading_zeros()
        })
    }

    /// Returns the adjacency list of a leaf: its class, or nothing.
    #[inline]
    pub(crate) fn row(&self, leaf: u32) -> &[u32] {
        let bit = 1 << (leaf % 64);
        match self.words.get(leaf as usize / 64) {
            Some(&(word, before)) if word & bit != 0 => {
                let at = before + (word & (bit - 1)).count_ones();
                &self.classes[at as usize..=at as usize]
            }
            _ => &[],
        }
    }
}

/// The adjacency lists of a heap. They contain only references from records. All other references are in `extra`.
pub(crate) struct Linked<'a> {
    /// The ranges of object numbers. Class objects and objects with references have an adjacency list. Objects without
    /// references have none.
    pub(crate) split: Split,
    pub(crate) offsets: &'a [u32],
    pub(crate) targets: &'a [u32],
    /// References that no record contains, sorted by source.
    pub(crate) extra: &'a [(u32, u32)],
    /// Objects that GC roots hold.
    pub(crate) held: &'a BTreeMap<u32, RootKind>,
}

/// Maximum number of objects close to GC roots whose references are examined. References to classes of leaves are
/// inserted only for the examined objects (see [`Linked::shortcuts_around_leaves`]).
const NEAR: usize = 1 << 14;
const LONG: usize = 1 << 10;
/// Maximum number of references that are inserted in place of paths "object -> leaf -> class of the leaf". Further
/// references are left out. If this changes a dominator, the check in `dominators/bare.rs` detects it, and the dump is
/// read again.
const PAIRS: usize = 1 << 16;

impl Linked<'_> {
    fn row(&self, object: u32) -> &[u32] {
        let at = object as usize;
        &self.targets[self.offsets[at] as usize..self.offsets[at + 1] as usize]
    }

    fn extra_references(&self, object: u32) -> impl Iterator<Item = u32> {
        let first = self.extra.partition_point(|e| e.0 < object);
        let own = self.extra[first..]
            .iter()
            .take_while(move |e| e.0 == object);
        own.map(|e| e.1)
    }

    /// Returns the references to insert in place of paths "object -> leaf -> class of the leaf" close to GC roots. Such
    /// a leaf is an object that refers only to its class, and the graph lacks this reference:
    ///
    /// ```text
    /// root -> A -> leaf -> class     becomes     root -> A -> class
    /// ```
    ///
    /// Each pair is an object that refers to a leaf, and the class object of the leaf. The pairs are sorted. There is
    /// no pair for a class that is reached only through its instances, because then a leaf may dominate the class.
    pub(crate) fn shortcuts_around_leaves(&self, class_of: impl Fn(u32) -> u32) -> Vec<(u32, u32)> {
        let Split { classes, inner } = self.split;
        let mut seen: FxHashSet<u32> = FxHashSet::default();
        let mut found: Vec<u32> = Vec::new();
        let mut visit = |object: u32, found: &mut Vec<u32>| {
            if (classes..inner).contains(&object) && found.len() < NEAR && seen.insert(object) {
                found.push(object);
            }
        };
        for &object in self.held.keys() {
            visit(object, &mut found);
        }
        let mut pairs: FxHashSet<(u32, u32)> = FxHashSet::default();
        let mut at = 0;
        while let Some(&from) = found.get(at) {
            let row = self.row(from);
            let extra = self.extra_references(from).take(LONG);
            let all: Vec<u32> = row.iter().copied().take(LONG).chain(extra).collect();
            // If an object refers to a class directly, the path through a leaf to this class needs no reference in its
            // place.
            let known: FxHashSet<u32> = all.iter().copied().filter(|&t| t < classes).collect();
            for &target in &all {
                visit(target, &mut found);
                let has_room = pairs.len() < PAIRS && row.len() <= LONG;
                let is_leaf = has_room && target != NONE && target >= inner;
                let class = if is_leaf { class_of(target) } else { NONE };
                if class != NONE && !known.contains(&class) {
                    pairs.insert((from, class));
                }
            }
            at += 1;
        }
        if pairs.is_empty() {
            return Vec::new();
        }
        let reached = self.reached_classes(&found);
        let mut pairs: Vec<(u32, u32)> = pairs.into_iter().collect();
        pairs.retain(|&(_, class)| reached[class as usize]);
        pairs.sort_unstable();
        pairs
    }

    /// Returns for each class true if it is reachable from GC roots without passing through its instances. The search
    /// follows all references of class objects. It also reads the objects in `near` and the objects to which class
    /// objects refer. Of their references, it follows only those that lead to classes and are in no record, such as
    /// those from a class loader to its classes.
    fn reached_classes(&self, near: &[u32]) -> Vec<bool> {
        let count = self.split.classes;
        let mut reached = vec![false; count as usize];
        let held = self.held.keys().copied();
        let mut stack: Vec<u32> = held.filter(|&object| object < count).collect();
        let mut seen: FxHashSet<u32> = FxHashSet::default();
        // This object is not a class. It is usually a class loader, whose references to its classes are in no record.
        let mut pass = |object: u32, stack: &mut Vec<u32>| {
            if seen.insert(object) {
                stack.extend(
                    self.extra_references(object)
                        .filter(|&target| target < count),
                );
            }
        };
        for &object in near {
            pass(object, &mut stack);
        }
        while let Some(class) = stack.pop() {
            if std::mem::replace(&mut reached[class as usize], true) {
                continue;
            }
            for &target in self.row(class) {
                if target < count {
                    stack.push(target);
                } else if target < self.split.inner {
                    pass(target, &mut stack);
                }
            }
        }
        reached
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_objects_of_each_class_stay_in_each_piece() {
        let mut sifter = Sifter::new(Kept::new(Thresholds::USUAL), 2);
        for _ in 0..3 {
            sifter.next_piece();
            let leaves: Vec<bool> = (0..600).map(|_| sifter.is_leaf(1)).collect();
            let kept: Vec<usize> = (0..600).filter(|&n| !leaves[n]).collect();
            assert_eq!(kept[..64], (0..64).collect::<Vec<_>>());
            assert_eq!(kept[64..], [255, 511]);
        }
        assert!(!sifter.is_leaf(0), "the first of another class");
        assert!(!sifter.is_leaf(2), "no class");
        assert_eq!(sifter.classes().collect::<Vec<_>>(), [1]);
        let mut none = Sifter::new(Kept::new(Thresholds::LOW), 1);
        assert!((0..1000).all(|_| none.is_leaf(0)));
    }

    /// A test heap. Class objects have the lowest numbers, then come the other objects with an adjacency list in
    /// `rows`, then the objects without an adjacency list.
    struct Drawn {
        classes: u32,
        rows: Vec<Vec<u32>>,
        extra: Vec<(u32, u32)>,
    }

    impl Drawn {
        /// Creates a heap. `of_classes` has the references of class objects as pairs (class object, target). `rows` has
        /// the adjacency lists of the other objects with references.
        fn new(classes: u32, of_classes: &[(u32, u32)], rows: Vec<Vec<u32>>) -> Self {
            let mut all = vec![Vec::new(); classes as usize];
            for &(class, to) in of_classes {
                all[class as usize].push(to);
            }
            all.extend(rows);
            Self {
                classes,
                rows: all,
                extra: Vec::new(),
            }
        }

        fn inner(&self) -> u32 {
            self.rows.len() as u32
        }

        /// Returns the references to insert in place of paths "object -> leaf -> class of the leaf". `held` has the
        /// objects that GC roots hold. The first leaf is an instance of class 1, the next one of class 2, and so on.
        /// After the last class, class 1 follows again.
        fn shortcuts_around_leaves(&self, held: impl IntoIterator<Item = u32>) -> Vec<(u32, u32)> {
            let lens = self.rows.iter().map(|row| row.len() as u32);
            let ends = lens.scan(0, |sum, len| {
                *sum += len;
                Some(*sum)
            });
            let linked = Linked {
                split: Split {
                    classes: self.classes,
                    inner: self.inner(),
                },
                offsets: &[0].into_iter().chain(ends).collect::<Vec<_>>(),
                targets: &self.rows.concat(),
                extra: &self.extra,
                held: &held.into_iter().map(|o| (o, RootKind::Unknown)).collect(),
            };
            linked.shortcuts_around_leaves(|leaf| 1 + (leaf - self.inner()) % (self.classes - 1))
        }
    }

    #[test]
    fn references_to_classes_through_leaves_are_found() {
        // Object 5 is the only leaf. It is an instance of class 1.
        let rows = || vec![vec![5], vec![5, 5], vec![]];
        let drawn = Drawn::new(2, &[], rows());
        assert_eq!(drawn.shortcuts_around_leaves([1, 2]), [(2, 1)]);
        assert_eq!(drawn.shortcuts_around_leaves([1, 2, 3]), [(2, 1), (3, 1)]);
        // In two cases, no reference to the class is inserted: only the leaf leads to the class, or no object close to
        // a GC root refers to the leaf.
        assert_eq!(drawn.shortcuts_around_leaves([2]), []);
        assert_eq!(drawn.shortcuts_around_leaves([1, 4]), []);
        // The class is also reached through another class or through its loader. So a reference from object 2, which
        // refers to the leaf, to class 1 is inserted.
        assert_eq!(
            Drawn::new(2, &[(0, 1)], rows()).shortcuts_around_leaves([0, 2]),
            [(2, 1)]
        );
        let mut of_loader = Drawn::new(2, &[(0, 4)], rows());
        of_loader.extra = vec![(4, 1)];
        assert_eq!(of_loader.shortcuts_around_leaves([0, 2]), [(2, 1)]);
        assert_eq!(of_loader.shortcuts_around_leaves([2, 4]), [(2, 1)]);
        assert_eq!(of_loader.shortcuts_around_leaves([2]), []);
        // Class objects are 0 and 1. Object 2 is the first object that is not a class object, so references to object 2
        // are not references to a class.
        let mut first = Drawn::new(2, &[(0, 2)], rows());
        first.extra = vec![(2, 2), (2, 3), (4, 1)];
        assert_eq!(first.shortcuts_around_leaves([0, 2, 4]), [(2, 1), (3, 1)]);
        // If the object already refers to the class, no reference is inserted. The object may refer to the class in its
        // record, or by a reference that no record contains (`extra`).
        let itself = Drawn::new(2, &[], vec![vec![4, 1], vec![4]]);
        assert_eq!(itself.shortcuts_around_leaves([1, 2, 3]), [(3, 1)]);
        let mut unwritten = Drawn::new(2, &[], vec![vec![4], vec![4]]);
        unwritten.extra = vec![(2, 1)];
        assert_eq!(unwritten.shortcuts_around_leaves([2, 3]), [(3, 1)]);
    }

    #[test]
    fn the_search_near_to_roots_is_limited() {
        // The number of examined objects is limited.
        let near = NEAR as u32;
        for objects in [near - 1, near, near + 1] {
            let leaf = 2 + objects;
            let drawn = Drawn::new(2, &[], vec![vec![leaf]; objects as usize]);
            let found = drawn.shortcuts_around_leaves(1..2 + objects);
            assert_eq!(found.len() as u32, objects.min(near));
        }
        // At most [`LONG`] references of one object are read. If its adjacency list is longer, no references are
        // inserted for the object.
        for more in [0, 1] {
            let mut long = vec![4; LONG - 1 + more];
            long.push(3);
            let drawn = Drawn::new(2, &[], vec![long, vec![4]]);
            let expected: &[(u32, u32)] = if more == 0 { &[(2, 1), (3, 1)] } else { &[] };
            assert_eq!(drawn.shortcuts_around_leaves([1, 2]), expected);
        }
        // The number of references that no record contains is limited, too.
        let objects = LONG as u32 + 10;
        let leaf = 3 + objects;
        let mut rows = vec![vec![leaf]; objects as usize + 1];
        rows[0].clear();
        let mut unwritten = Drawn::new(2, &[], rows);
        unwritten.extra = (0..objects).map(|n| (2, 3 + n)).collect();
        assert_eq!(unwritten.shortcuts_around_leaves([1, 2]).len(), LONG);
    }

    #[test]
    fn the_number_of_references_through_leaves_is_limited() {
        const CLASSES: u32 = 1 + LONG as u32;
        for (objects, expected) in [(64, PAIRS), (65, PAIRS), (63, PAIRS - LONG)] {
            let inner = CLASSES + objects;
            let row: Vec<u32> = (inner..inner + LONG as u32).collect();
            let drawn = Drawn::new(CLASSES, &[], vec![row; objects as usize]);
            assert_eq!(
                drawn.shortcuts_around_leaves(0..inner).len(),
                expected,
                "{objects}"
            );
        }
    }

    #[test]
    fn leaves_have_their_classes() {
        let store = Store::new(None);
        let class = |leaf: u32| match leaf % 3 {
            0 => leaf % 7,
            _ => NONE,
        };
        let all = LeafClasses::new((0..10_000).map(class), &store).unwrap();
        for leaf in 0..10_000 {
            let expected: Vec<u32> = Some(class(leaf))
                .filter(|&c| c != NONE)
                .into_iter()
                .collect();
            assert_eq!(all.row(leaf), expected);
        }
        assert_eq!((all.len(), all.rows()), (3334, 10_000));
        assert!(all.row(10_000).is_empty());
        assert!(LeafClasses::none(&store).unwrap().row(3).is_empty());
    }
}
