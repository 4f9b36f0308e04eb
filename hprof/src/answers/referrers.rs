//! Finds the references to an object.

use memchr::memmem;
use rayon::prelude::*;

use crate::answers::objects::object::{Bodies, Body, Numbering};
use crate::answers::objects::reference::{RawVia, Via};
use crate::graph::bits::Bits;
use crate::graph::scan::Piece;
use crate::ids::{ClassIndex, NONE, ObjectIndex};
use crate::records::classes::Reference;
use crate::records::outline::Segment;
use crate::records::walk::{self, Object};
use crate::snapshot::Snapshot;

/// A reference to a target.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Referrer {
    /// The object referred to.
    pub target: ObjectIndex,
    /// The object that refers to the target.
    pub from: ObjectIndex,
    /// The field, array element or other reference through which `from` refers to the target.
    pub via: Via,
    /// The kind of the `java.lang.ref` object, if `via` leads from such an object to its referent. [`Reference::No`]
    /// for all other references, which are strong.
    pub strength: Reference,
}

/// The references to one object. See [`Snapshot::referrers`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Referrers {
    /// The first references to the object, sorted by the number of the referring object.
    pub list: Vec<Referrer>,
    /// Total number of references.
    pub total: u64,
}

impl Snapshot {
    /// Finds the references to each of `targets`: from fields, elements, static fields, and references that are not in
    /// any record (a thread's stack, a loader's classes, an object's class). References from unreachable objects are
    /// included. At most `limit` references are listed for each target. References from objects in `except` are neither
    /// listed nor counted.
    ///
    /// Cost: one pass over the file, whatever the number of objects. The cost is lower in two cases:
    ///
    /// - If there are at most 8 targets and none is a class object, only the pieces of the file (about a megabyte each)
    ///   that contain the bytes of the targets' ids are walked.
    /// - If the snapshot comes from an index and there are at most 1000 targets, only the records of objects that the
    ///   index lists as referrers are read. If a target is a class object, the class of every object in the dump is
    ///   also looked up.
    #[must_use]
    pub fn referrers(
        &self,
        targets: &[ObjectIndex],
        limit: usize,
        except: &[ObjectIndex],
    ) -> Vec<Referrers> {
        let objects = self.object_count();
        let mut wanted = Bits::new(objects as usize);
        let known = |t: &&ObjectIndex| u64::from(t.0) < objects;
        let mut passed = Bits::new(if except.is_empty() {
            0
        } else {
            objects as usize
        });
        except.iter().filter(known).for_each(|o| passed.set(o.0));
        let mut sorted: Vec<u32> = targets.iter().filter(known).map(|t| t.0).collect();
        sorted.sort_unstable();
        sorted.dedup();
        sorted.iter().for_each(|&target| wanted.set(target));
        let nothing = || FoundReferrers::new(&sorted, limit, &passed);
        let mut all = match self.listed(&sorted, nothing()) {
            Some(found) => found,
            None => self.search_file(&sorted, &wanted, nothing),
        };
        let mut rest = nothing();
        for class in (0..self.split.classes).map(ClassIndex) {
            self.each_of_class(class, |id, way| {
                let target = if id == 0 { NONE } else { self.number_of(id) };
                if wanted.has(target) {
                    rest.add(target, class.0, way);
                }
            });
        }
        for (source, target, way) in self.implicit_references().iter() {
            if wanted.has(target) {
                rest.add(target, source, way);
            }
        }
        all = all.merged(rest);
        let of = |target: &ObjectIndex| {
            let Ok(place) = sorted.binary_search(&target.0) else {
                return Referrers::default();
            };
            let from = all.list.partition_point(|r| r.0 < target.0);
            let own = all.list[from..].iter().take_while(|r| r.0 == target.0);
            let referrer = |&(_, source, way): &(u32, u32, RawVia)| {
                let (via, strength) = self.via(ObjectIndex(source), way);
                Referrer {
                    target: *target,
                    from: ObjectIndex(source),
                    via,
                    strength,
                }
            };
            Referrers {
                list: own.map(referrer).collect(),
                total: all.counts[place],
            }
        };
        targets.iter().map(of).collect()
    }

    /// Finds the references to `targets` that are in records. The index's lists of referrers show which records to
    /// read. Returns `None` if there is no index, if there are more than [`LISTED`] targets, or if a list is damaged.
    fn listed<'a>(
        &self,
        targets: &[u32],
        mut found: FoundReferrers<'a>,
    ) -> Option<FoundReferrers<'a>> {
        let inbound = self.inbound.as_ref()?;
        if targets.len() > LISTED {
            return None;
        }
        for (place, &target) in targets.iter().enumerate() {
            let mut sources = inbound.sources(&self.likely_referrers(), target).ok()?;
            if target < self.split.classes {
                // The lists of the index leave out the references from objects to their class.
                let instances = self.instances(&[ClassIndex(target)]).into_iter();
                sources.extend(instances.map(|o| o.0).filter(|&o| o >= self.split.classes));
                sources.sort_unstable();
            }
            sources.retain(|&source| !found.passed.has(source));
            found.counts[place] += sources.len() as u64;
            sources.dedup();
            sources.truncate(found.limit);
            let sources: Vec<ObjectIndex> = sources.into_iter().map(ObjectIndex).collect();
            for (source, raw) in sources.iter().zip(self.records_of(&sources)) {
                if let Some(raw) = raw {
                    self.each_in_record(raw.body, |id, way| {
                        if id != 0 && self.number_of(id) == target {
                            found.list.push((target, source.0, way));
                        }
                    });
                }
            }
        }
        found.cut();
        Some(found)
    }

    /// Finds the references to `targets` that are in records, by a search of the whole file.
    fn search_file<'a>(
        &'a self,
        targets: &[u32],
        wanted: &'a Bits,
        nothing: impl Fn() -> FoundReferrers<'a> + Sync + Send,
    ) -> FoundReferrers<'a> {
        let ids = self.plain_ids(targets);
        let needles: Vec<memmem::Finder<'_>> = ids.iter().flatten().map(Needle::finder).collect();
        let found = self.pieces.par_iter().map(|piece| {
            let Segment { start, end } = piece.segment;
            self.dump.source.advise_sequential(start, end - start);
            let bytes = &self.dump.source[start..end];
            if ids.is_some() && needles.iter().all(|needle| needle.find(bytes).is_none()) {
                return nothing();
            }
            let mut finder = ReferrerFinder::new(self, wanted, piece, nothing());
            // Errors of the walk are ignored, because this damage was already reported when the dump was opened.
            let id_size = self.dump.header.id_size;
            let _ = walk::walk(&self.dump.source, start, end, id_size, &mut finder);
            finder.found
        });
        found.reduce(&nothing, FoundReferrers::merged)
    }

    /// Returns the ids to search for in the bytes of the file. Returns `None` if there are more than [`NEEDLES`]
    /// objects, or if one of them is a class object. Not every record contains the id of its object's class, so the
    /// search would miss references to class objects.
    fn plain_ids(&self, objects: &[u32]) -> Option<Vec<Needle>> {
        if objects.len() > NEEDLES || objects.iter().any(|&o| o < self.split.classes) {
            return None;
        }
        let objects: Vec<ObjectIndex> = objects.iter().map(|&o| ObjectIndex(o)).collect();
        let ids = self.ids(&objects).into_iter();
        ids.map(|id| id.map(|id| Needle((id.0 as u32).to_be_bytes())))
            .collect()
    }
}

/// Maximum number of targets whose lists of referrers in an index are read. For more targets, walking the file costs
/// less.
const LISTED: usize = 1000;
/// Maximum number of targets whose ids are searched for in the bytes of the file. For more targets, walking the file
/// costs less.
const NEEDLES: usize = 8;

/// The low four bytes of an id. The higher bytes are the same in most ids of a dump, so the search leaves them out.
struct Needle([u8; 4]);

impl Needle {
    fn finder(&self) -> memmem::Finder<'_> {
        memmem::Finder::new(&self.0)
    }
}

struct FoundReferrers<'a> {
    /// The targets, sorted.
    targets: &'a [u32],
    /// Maximum number of references to list for each target.
    limit: usize,
    /// The references found so far. Each element has the target, the source, and the field, array element or other way
    /// by which the source refers to the target.
    list: Vec<(u32, u32, RawVia)>,
    /// For each target, the number of references to it.
    counts: Vec<u64>,
    /// Objects whose references are ignored.
    passed: &'a Bits,
}

impl<'a> FoundReferrers<'a> {
    fn new(targets: &'a [u32], limit: usize, passed: &'a Bits) -> Self {
        Self {
            targets,
            passed,
            limit,
            list: Vec::new(),
            counts: vec![0; targets.len()],
        }
    }

    fn add(&mut self, target: u32, source: u32, way: RawVia) {
        if let Ok(place) = self.targets.binary_search(&target)
            && !self.passed.has(source)
        {
            self.counts[place] += 1;
            self.list.push((target, source, way));
        }
    }

    /// Keeps the first `limit` references to each target, sorted by source. References from one source stay in the
    /// order of its record.
    fn cut(&mut self) {
        self.list.sort_by_key(|r| (r.0, r.1));
        let (mut last, mut kept) = (NONE, 0);
        self.list.retain(|r| {
            if r.0 != last {
                (last, kept) = (r.0, 0);
            }
            kept += 1;
            kept <= self.limit
        });
    }

    fn merged(mut self, mut other: Self) -> Self {
        self.list.append(&mut other.list);
        for (count, more) in self.counts.iter_mut().zip(other.counts) {
            *count += more;
        }
        self.cut();
        self
    }

    /// Drops the references beyond the limit to save memory, but only if the list is long. A list is long if it has
    /// more than 4,096 references, and more than twice as many references as the result may have.
    fn prune(&mut self) {
        let most = self.limit.saturating_mul(self.targets.len());
        if self.list.len() > most.saturating_mul(2).max(1 << 12) {
            self.cut();
        }
    }
}

struct ReferrerFinder<'a> {
    snapshot: &'a Snapshot,
    wanted: &'a Bits,
    numbering: Numbering<'a>,
    found: FoundReferrers<'a>,
}

impl<'a> ReferrerFinder<'a> {
    fn new(
        snapshot: &'a Snapshot,
        wanted: &'a Bits,
        piece: &Piece,
        found: FoundReferrers<'a>,
    ) -> Self {
        Self {
            snapshot,
            wanted,
            numbering: Numbering::new(snapshot, piece),
            found,
        }
    }
}

impl Bodies for ReferrerFinder<'_> {
    #[inline(always)]
    fn object(&mut self, object: Object, body: Body<'_>) {
        // The number of the referring object is needed only if this object refers to a target. But if `numbering` finds
        // numbers by counting records, it must count every record.
        let mut source = self.numbering.counted(object.id, body);
        self.snapshot.each_in_record(body, |id, way| {
            if id == 0 {
                return;
            }
            let target = self.snapshot.number_of(id);
            if self.wanted.has(target) {
                let number = *source.get_or_insert_with(|| self.snapshot.number_of(object.id));
                // A modified index file might not contain the record's id, or might have too few objects.
                if u64::from(number) < self.snapshot.object_count() {
                    self.found.add(target, number, way);
                }
            }
        });
        self.found.prune();
    }
}
