//! Reads the references from and to single objects, without building the heap graph. The references come from records,
//! which an index locates, and from the index's lists of referrers.

use rustc_hash::FxHashMap;

use crate::answers::objects::object::Raw;
use crate::answers::objects::reference::RawVia;
use crate::graph::implicit_refs;
use crate::ids::{ClassIndex, NONE, ObjectIndex};
use crate::index::inbound::{Damaged, Inbound};
use crate::options::Refs;
use crate::records::classes::Reference;
use crate::records::record::Kind;
use crate::snapshot::Snapshot;

/// Looks up the references from and to single objects. It reads them from records, from the lists of referrers in an
/// index, and from `extra` (references that are not in any record).
pub(crate) struct Rows<'a> {
    snapshot: &'a Snapshot,
    inbound: &'a Inbound,
    /// For each class, true if it is certainly a GC root. References from instances to such a class are left out.
    pinned: Vec<bool>,
    /// References that are not in any record, sorted. Each pair is the source and the target.
    extra: Vec<(u32, u32)>,
    /// The references in `extra` and the references of class objects, sorted by target. Each pair is the target and the
    /// source.
    back: Vec<(u32, u32)>,
}

impl<'a> Rows<'a> {
    /// Prepares the look-ups. Returns `None` unless the snapshot comes from an index that locates records and has lists
    /// of referrers.
    ///
    /// Cost: one visit of each class and each root.
    pub(crate) fn new(snapshot: &'a Snapshot) -> Option<Self> {
        let inbound = snapshot.inbound.as_ref()?;
        snapshot.positions.as_ref()?;
        let (classes, split) = (snapshot.classes(), snapshot.split);
        let number = |id| snapshot.number_of(id);
        let (extra, _) =
            implicit_refs::implicit_references(classes, split, &snapshot.roots, number);
        let mut rows = Self {
            snapshot,
            inbound,
            pinned: implicit_refs::pinned_classes(classes, &snapshot.roots),
            back: extra
                .iter()
                .map(|&(source, target)| (target, source))
                .collect(),
            extra,
        };
        for class in 0..split.classes {
            let row = rows.of_class(class);
            rows.back
                .extend(row.into_iter().map(|target| (target, class)));
        }
        rows.back.sort_unstable();
        rows.back.dedup();
        Some(rows)
    }

    /// Returns the adjacency lists of objects: the targets in the same order and with the same duplicates as in the
    /// heap graph, but without dangling references.
    ///
    /// Cost: reads about twenty records for each object.
    pub(crate) fn of(&self, objects: &[u32]) -> Vec<Vec<u32>> {
        let split = self.snapshot.split;
        let wanted: Vec<ObjectIndex> = objects
            .iter()
            .map(|&o| ObjectIndex(if o < split.inner { o } else { NONE }))
            .collect();
        let raws = self.snapshot.records_of(&wanted);
        let row = |(&object, raw): (&u32, &Option<Raw<'_>>)| {
            let mut row = match raw {
                Some(raw) => self.targets_of_record(raw),
                None if object < split.classes => self.of_class(object),
                None => class_of_leaf(self.snapshot, &self.pinned, object)
                    .into_iter()
                    .collect(),
            };
            if object < split.inner {
                let first = self.extra.partition_point(|e| e.0 < object);
                let own = self.extra[first..].iter().take_while(|e| e.0 == object);
                row.extend(own.map(|e| e.1));
            }
            row
        };
        objects.iter().zip(&raws).map(row).collect()
    }

    fn targets_of_record(&self, raw: &Raw<'_>) -> Vec<u32> {
        let (snapshot, classes) = (self.snapshot, self.snapshot.classes());
        let mut row = Vec::new();
        snapshot.each_in_record(raw.body, |id, way| {
            if id == 0 {
                return;
            }
            let follows = match way {
                RawVia::Class => {
                    let class = classes.by_id(crate::ids::ObjectId(id));
                    class.is_some_and(|c| !self.pinned[c.index()])
                }
                RawVia::Referent => {
                    let class = raw.class().and_then(|id| classes.by_id(id));
                    class.is_some_and(|c| self.follows_referents(c))
                }
                _ => true,
            };
            if follows {
                row.push(snapshot.number_of(id));
            }
        });
        row.retain(|&target| target != NONE);
        row
    }

    fn of_class(&self, class: u32) -> Vec<u32> {
        let classes = self.snapshot.classes();
        let ids = implicit_refs::class_references(classes, &classes[ClassIndex(class)]);
        let row = ids.map(|id| self.snapshot.number_of(id));
        row.filter(|&target| target != NONE).collect()
    }

    fn follows_referents(&self, class: ClassIndex) -> bool {
        let strong = self.snapshot.classes()[class].reference == Reference::No;
        strong || self.snapshot.options.refs == Refs::All
    }

    /// True if one of the object's referrers is a soft or final reference that might retain the object.
    pub(crate) fn is_weakly_held(&self, object: u32) -> Result<bool, Damaged> {
        let sources = self
            .inbound
            .sources(&self.snapshot.likely_referrers(), object)?;
        Ok(sources
            .into_iter()
            .any(|source| self.may_weakly_hold(source)))
    }

    /// True if the object is a soft or final reference that might retain its referent.
    pub(crate) fn may_weakly_hold(&self, object: u32) -> bool {
        let class = self.snapshot.class_of(ObjectIndex(object));
        let kind = class.map_or(Reference::No, |c| self.snapshot.classes()[c].reference);
        self.snapshot.options.refs == Refs::Soft
            && matches!(kind, Reference::Soft | Reference::Final)
    }

    /// Returns the approximate number of objects that [`Rows::referrers_of`] reads.
    pub(crate) fn referrers_cost(&self, object: u32) -> Result<u64, Damaged> {
        let listed = self.inbound.count(object)? as u64;
        Ok(match self.pinned.get(object as usize) {
            Some(false) if object < self.snapshot.split.classes => {
                // To find the instances of a class, the class of every object of the dump is looked up. A look-up
                // counts as an eighth of a read.
                listed + self.snapshot.object_count() / 8
            }
            _ => listed,
        })
    }

    /// Returns the objects that refer to an object, ascending and without duplicates.
    ///
    /// Cost: reads about twenty records for each `java.lang.ref` object among the referrers. If `object` is the class
    /// object of a class that is not certainly a GC root, also looks up the class of every object in the dump.
    pub(crate) fn referrers_of(&self, object: u32) -> Result<Vec<u32>, Damaged> {
        let (snapshot, split) = (self.snapshot, self.snapshot.split);
        let mut sources = self.inbound.sources(&snapshot.likely_referrers(), object)?;
        sources.dedup();
        let weak = |&source: &u32| {
            let class = snapshot.class_of(ObjectIndex(source));
            class.is_some_and(|c| !self.follows_referents(c))
        };
        let doubtful: Vec<u32> = sources.iter().copied().filter(weak).collect();
        if !doubtful.is_empty() {
            let rows = self.of(&doubtful);
            let both = doubtful.into_iter().zip(rows);
            let kept: FxHashMap<u32, bool> =
                both.map(|(s, row)| (s, row.contains(&object))).collect();
            sources.retain(|source| kept.get(source) != Some(&false));
        }
        sources.retain(|&source| source < split.inner);
        if object < split.classes && !self.pinned[object as usize] {
            let instances = snapshot.instances(&[ClassIndex(object)]).into_iter();
            sources.extend(instances.map(|o| o.0).filter(|&o| {
                (split.classes..split.inner).contains(&o)
                    || class_of_leaf(self.snapshot, &self.pinned, o).is_some()
            }));
        }
        let first = self.back.partition_point(|e| e.0 < object);
        let more = self.back[first..].iter().take_while(|e| e.0 == object);
        sources.extend(more.map(|e| e.1));
        sources.sort_unstable();
        sources.dedup();
        Ok(sources)
    }
}

/// Returns the class of an object without references if the implicit reference to its class object might keep the class
/// alive. Returns `None` if the class is certainly a GC root, if it is a class of primitive arrays, or if `object` is
/// not an object without references.
pub(crate) fn class_of_leaf(snapshot: &Snapshot, pinned: &[bool], object: u32) -> Option<u32> {
    let there = u64::from(object) < snapshot.object_count();
    let leaf = Some(ObjectIndex(object)).filter(|_| object >= snapshot.split.inner && there)?;
    let class = snapshot.class_of(leaf)?;
    let element = snapshot.classes()[class].element;
    let follows = !pinned[class.index()] && element.is_none_or(|kind| kind == Kind::Object);
    follows.then_some(class.0)
}
