//! Finds wasted memory: content that is stored more than once, and unused space.
//!
//! One pass over the file hashes the content of every array of primitives and reads the fields of every string, box and
//! collection. Sorting the hashes finds equal content. Every byte is counted once: an array that belongs to a string or
//! a collection is not counted again as an array. Unreachable objects are left out.
//!
//! Two arrays count as equal if their 64-bit hashes of type, length and content are equal. The content is not compared
//! again. Among a hundred million different arrays the probability that any two have the same hash is 1 in 3,700.

mod forms;
mod scan;

use std::cmp::Reverse;

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::answers::holders::{Hold, Holders};
use crate::bytes::array::Array;
use crate::error::Result;
use crate::graph::bits::Bits;
use crate::ids::{ClassIndex, NONE, ObjectIndex};
use crate::progress::Progress;
use crate::snapshot::Snapshot;
use scan::{Collection, WasteScan};

/// Minimum number of unused bytes for which an array is reported.
const LEAST_ROOM: u64 = 32;
/// Maximum number of dominators that the search for a holder visits.
const CLIMB: usize = 256;
/// Name prefixes of JDK classes whose objects are not entries or nodes of collections.
const NO_CONTENT: [&str; 4] = ["java.lang.", "jdk.", "sun.", "com.sun."];
/// Number of objects whose holders one task looks up.
const CHUNK: usize = 1 << 14;

/// A kind of wasted memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum WasteKind {
    /// Strings with the same text as another string. Savings: all but one string of each text, with their character
    /// arrays unless the strings already share one.
    DuplicateStrings,
    /// Arrays of primitives with the same content as another array, except [`WasteKind::ZeroArrays`]. Savings: all but
    /// one array of each content.
    DuplicateArrays,
    /// Boxed values equal to another box of the same class. Savings: all but one box of each value.
    DuplicateBoxes,
    /// Boxed values that remain if duplicates are removed, and that only an array or a collection holds. An array of
    /// primitives could replace such values. Boxes that `valueOf` caches are not counted. Savings: the size of the box,
    /// minus the bytes by which the primitive value is larger than a reference.
    BoxedValues,
    /// Collections, maps and string builders without elements. Savings: the object with its array.
    EmptyCollections,
    /// Collections, maps and string builders that need at most half of their array. Savings: the size of the array
    /// minus the size of an array of the needed length.
    SparseCollections,
    /// Arrays with at least 32 bytes of elements, all zero or null. Savings: the arrays.
    ZeroArrays,
    /// Arrays whose second half is zero or null, if at least 32 bytes at the end are zero or null. Savings: the size of
    /// the array minus the size of an array that ends with the last element that is not zero or null.
    LongArrays,
}

impl WasteKind {
    /// All kinds, in a fixed order.
    pub const ALL: [Self; 8] = [
        Self::DuplicateStrings,
        Self::DuplicateArrays,
        Self::DuplicateBoxes,
        Self::BoxedValues,
        Self::EmptyCollections,
        Self::SparseCollections,
        Self::ZeroArrays,
        Self::LongArrays,
    ];

    /// Returns the name of the kind in reports, such as `duplicate_strings`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::DuplicateStrings => "duplicate_strings",
            Self::DuplicateArrays => "duplicate_arrays",
            Self::DuplicateBoxes => "duplicate_boxes",
            Self::BoxedValues => "boxed_values",
            Self::EmptyCollections => "empty_collections",
            Self::SparseCollections => "sparse_collections",
            Self::ZeroArrays => "zero_arrays",
            Self::LongArrays => "long_arrays",
        }
    }

    /// True if objects of this kind are wasted because another object has the same content.
    #[must_use]
    pub const fn is_duplicate(self) -> bool {
        matches!(
            self,
            Self::DuplicateStrings | Self::DuplicateArrays | Self::DuplicateBoxes
        )
    }
}

/// Options for [`Snapshot::waste`].
pub struct WasteOptions<'a> {
    /// Maximum number of groups to keep for each kind. The groups with the largest savings are kept.
    pub groups: usize,
    /// Objects to ignore, as if they were not in the dump.
    pub except: &'a [ObjectIndex],
    /// Returns true for classes whose instances are only parts of another object, such as nodes of a collection. From
    /// such an instance, the search for a holder goes on to the object that holds the instance.
    pub passes: &'a (dyn Fn(ClassIndex) -> bool + Sync),
}

impl std::fmt::Debug for WasteOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut debug = f.debug_struct("WasteOptions");
        debug.field("groups", &self.groups).finish_non_exhaustive()
    }
}

/// Number of objects, their bytes, and the bytes that could be saved.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WasteTotal {
    /// Number of objects. For duplicates, all equal objects count, also the one that must stay.
    pub objects: u64,
    /// Shallow bytes of these objects, including the arrays that belong only to them.
    pub shallow_bytes: u64,
    /// Savings in bytes.
    pub bytes_to_win: u64,
}

impl std::ops::AddAssign for WasteTotal {
    fn add_assign(&mut self, other: Self) {
        self.objects += other.objects;
        self.shallow_bytes += other.shallow_bytes;
        self.bytes_to_win += other.bytes_to_win;
    }
}

/// A group of objects: for duplicates, objects with the same content; for other kinds, objects of one class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct WasteGroup {
    /// An example of the group: for equal objects, the first of them; for other kinds, the object with the largest
    /// savings.
    pub example: ObjectIndex,
    /// The totals of the group.
    pub total: WasteTotal,
}

/// A field that holds wasted objects. The figures are sums over all instances of the field's class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct WasteHolder {
    /// The class of the objects that hold the wasted objects, or the class whose static field holds them. `None` if
    /// only GC roots hold them.
    pub class: Option<ClassIndex>,
    /// The field, or other reference, that holds the objects.
    pub hold: Hold,
    /// Number of objects that could be removed or made smaller.
    pub objects: u64,
    /// Savings in bytes.
    pub bytes_to_win: u64,
}

/// The wasted memory of one kind.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct WasteOf {
    /// The totals.
    pub total: WasteTotal,
    /// Number of groups: for duplicates, the number of different contents; for other kinds, the number of classes.
    pub groups: u64,
    /// The groups with the largest savings, largest first.
    pub largest: Vec<WasteGroup>,
    /// The holders of objects that could be removed or made smaller. Holders with the largest savings come first.
    pub holders: Vec<WasteHolder>,
}

/// A dump's waste by kind, in the order of [`WasteKind::ALL`]. See [`Snapshot::waste`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Waste {
    of: [WasteOf; WasteKind::ALL.len()],
}

impl Waste {
    /// Returns the wasted memory of one kind.
    #[must_use]
    pub const fn of(&self, kind: WasteKind) -> &WasteOf {
        &self.of[kind as usize]
    }

    /// Returns all kinds, each with its wasted memory.
    pub fn iter(&self) -> impl Iterator<Item = (WasteKind, &WasteOf)> {
        WasteKind::ALL.into_iter().zip(&self.of)
    }
}

impl Snapshot {
    /// Finds wasted memory.
    ///
    /// Cost: two passes over the file, one for the waste and one for its holders. Then the entries for strings, boxes
    /// and arrays are sorted. Memory: eight bytes for each object without references, and up to 44 bytes for each
    /// string, box, collection and array of primitives.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn waste(&self, options: &WasteOptions<'_>, progress: &dyn Progress) -> Result<Waste> {
        progress.phase("looking for waste", self.source().len() as u64);
        let scanned = scan::scan(self, options.except, progress)?;
        progress.phase("comparing contents", 0);
        let mut finder = WasteFinder::new(self, options)?;
        finder.collections(&scanned)?;
        finder.strings(&scanned)?;
        finder.count_boxes(scanned.boxes)?;
        finder.arrays(&scanned.hashes, &scanned.room)?;
        drop((scanned.hashes, scanned.strings));
        progress.phase("finding the holders of waste", 0);
        let holders = self.holders()?;
        Ok(finder.with_holders(&holders))
    }
}

/// The bytes of one wasted object, and how many of these bytes could be saved.
#[derive(Clone, Copy, Default)]
struct Cost {
    shallow: u64,
    win: u64,
}

/// Counts the wasted objects of each kind.
struct WasteFinder<'a> {
    snapshot: &'a Snapshot,
    options: &'a WasteOptions<'a>,
    waste: Waste,
    /// For each kind, the objects that could be removed or made smaller. Each pair is the object and its savings in
    /// bytes.
    spare: [Array<[u64; 2]>; WasteKind::ALL.len()],
    /// Arrays to skip when arrays are counted: an array that belongs to a string or a collection, or was already
    /// counted.
    owned: Bits,
}

impl<'a> WasteFinder<'a> {
    fn new(snapshot: &'a Snapshot, options: &'a WasteOptions<'a>) -> Result<Self> {
        let empty = || snapshot.store.zeroed(0);
        Ok(Self {
            snapshot,
            options,
            waste: Waste::default(),
            spare: [
                empty()?,
                empty()?,
                empty()?,
                empty()?,
                empty()?,
                empty()?,
                empty()?,
                empty()?,
            ],
            owned: Bits::new(snapshot.object_count() as usize),
        })
    }

    fn size(&self, object: u32) -> u64 {
        self.snapshot.shallow_bytes(ObjectIndex(object))
    }

    /// Adds an array that is part of another object to the set `owned`. Returns false if the array is already in the
    /// set, unreachable or [`NONE`].
    fn mark_as_part(&mut self, array: u32) -> bool {
        let free = array != NONE
            && !self.owned.has(array)
            && self.snapshot.tree().is_reachable(ObjectIndex(array));
        if free {
            self.owned.set(array);
        }
        free
    }

    /// Returns the shallow size in bytes that `array` would have with the length `len`.
    fn size_with(&self, array: u32, len: u64) -> u64 {
        let len = u32::try_from(len).unwrap_or(u32::MAX);
        match self.snapshot.class_of(ObjectIndex(array)) {
            Some(class) => self.snapshot.dump.sizes.array(class, len),
            None => 0,
        }
    }

    /// Counts a wasted object of a kind other than duplicates.
    fn count_single(
        &mut self,
        kind: WasteKind,
        groups: &mut ByClass,
        object: u32,
        cost: Cost,
    ) -> Result<()> {
        let one = WasteTotal {
            objects: 1,
            shallow_bytes: cost.shallow,
            bytes_to_win: cost.win,
        };
        self.waste.of[kind as usize].total += one;
        groups.add(self.snapshot, object, one);
        self.spare[kind as usize].extend(&[[u64::from(object), cost.win]])
    }

    fn collections(&mut self, scanned: &WasteScan) -> Result<()> {
        let (mut empty, mut sparse) = (ByClass::default(), ByClass::default());
        for &Collection {
            object,
            array,
            used,
            need,
        } in &scanned.collections
        {
            // In the JDK, no two collections share an array.
            let array = Some(array).filter(|&a| self.mark_as_part(a));
            let len = array.and_then(|a| self.snapshot.array_length(ObjectIndex(a)));
            let room = array.filter(|_| len.is_some_and(|len| len > 0));
            let bytes = room.map_or(0, |a| self.size(a));
            if used == 0 {
                let all = self.size(object) + bytes;
                let cost = Cost {
                    shallow: all,
                    win: all,
                };
                self.count_single(WasteKind::EmptyCollections, &mut empty, object, cost)?;
                continue;
            }
            let (Some(array), Some(len)) = (room, len) else {
                continue;
            };
            let win = bytes.saturating_sub(self.size_with(array, need));
            if need <= u64::from(len) / 2 && win > 0 {
                let shallow = self.size(object) + bytes;
                self.count_single(
                    WasteKind::SparseCollections,
                    &mut sparse,
                    object,
                    Cost { shallow, win },
                )?;
            }
        }
        self.by_class(WasteKind::EmptyCollections, empty);
        self.by_class(WasteKind::SparseCollections, sparse);
        Ok(())
    }

    fn by_class(&mut self, kind: WasteKind, groups: ByClass) {
        let of = &mut self.waste.of[kind as usize];
        let mut groups: Vec<WasteGroup> = groups.groups.into_values().map(|g| g.1).collect();
        of.groups = groups.len() as u64;
        sort(&mut groups, self.options.groups);
        of.largest = groups;
    }

    fn strings(&mut self, scanned: &WasteScan) -> Result<()> {
        let first = self.snapshot.split.inner;
        let strings = &scanned.strings;
        let mut keys: Array<[u64; 2]> = self.snapshot.store.zeroed(strings.len())?;
        let filled = keys.par_iter_mut().zip(strings.par_iter());
        filled.for_each(|(key, &[string, array, wide])| {
            let leaf = array.checked_sub(first);
            let hash = leaf.map_or(0, |leaf| scanned.hashes[leaf as usize]);
            // The same bytes are a different string if each character takes two bytes instead of one. So the key
            // depends on `wide`, too.
            *key = [
                hash.rotate_left(wide),
                u64::from(array) << 32 | u64::from(string),
            ];
        });
        keys.par_sort_unstable();
        let mut costs = Vec::new();
        let mut largest = Largest::new(self.options.groups);
        // Each group has the strings with one text. Strings with a common array are neighbours in the group. The
        // group's first string and its array are not waste.
        for group in keys.chunk_by(|a, b| a[0] == b[0]) {
            // The text of a string is unknown if its array is not in the dump.
            if group.len() < 2 || group[0][0] == 0 {
                continue;
            }
            costs.clear();
            for key in group {
                let (array, string) = ((key[1] >> 32) as u32, key[1] as u32);
                let bytes = if self.mark_as_part(array) {
                    self.size(array)
                } else {
                    0
                };
                let shallow = self.size(string) + bytes;
                let win = if costs.is_empty() { 0 } else { shallow };
                costs.push((string, Cost { shallow, win }));
            }
            self.group(WasteKind::DuplicateStrings, &mut largest, &costs)?;
        }
        for &[_, array, _] in strings.iter() {
            self.owned.set(array);
        }
        self.finish(WasteKind::DuplicateStrings, largest);
        Ok(())
    }

    fn count_boxes(&mut self, mut boxes: Array<[u64; 2]>) -> Result<()> {
        boxes.par_sort_unstable();
        let mut largest = Largest::new(self.options.groups);
        let mut costs = Vec::new();
        let (cached, mut boxed) = (self.snapshot.cached_boxes(), ByClass::default());
        // An entry for a box (such as an `Integer`) has two words: its value, then a word with its class (upper half)
        // and object number (lower half). Boxes with the same value and class form a group.
        for group in boxes.chunk_by(|a, b| a[0] == b[0] && a[1] >> 32 == b[1] >> 32) {
            self.count_equal_group(WasteKind::DuplicateBoxes, &mut largest, &mut costs, group)?;
            // `count_equal_group` has counted the savings of all boxes of the group except the first box. The first box
            // counts as waste if an array of primitives could replace it.
            let first = group.first().map_or(NONE, |key| key[1] as u32);
            if cached.binary_search(&ObjectIndex(first)).is_err() && self.is_held_as_content(first)
            {
                let shallow = self.size(first);
                let win = shallow.saturating_sub(self.inline_size_difference(first));
                let cost = Cost { shallow, win };
                self.count_single(WasteKind::BoxedValues, &mut boxed, first, cost)?;
            }
        }
        self.finish(WasteKind::DuplicateBoxes, largest);
        self.by_class(WasteKind::BoxedValues, boxed);
        Ok(())
    }

    /// True if only an array, or an entry or node of a collection, holds the object.
    fn is_held_as_content(&self, object: u32) -> bool {
        let (snapshot, tree) = (self.snapshot, self.snapshot.tree());
        let above = tree.dominator(ObjectIndex(object));
        let Some(above) = above.and_then(|node| tree.object(node)) else {
            return false;
        };
        let class = snapshot.class_of(above);
        class.is_some_and(|index| {
            let class = &snapshot.classes()[index];
            let keeps = || {
                (self.options.passes)(index)
                    && !NO_CONTENT.iter().any(|p| class.name.starts_with(p))
            };
            class.element.is_some() || snapshot.represents(above).is_none() && keeps()
        })
    }

    /// Returns how much larger an array element is if it holds the primitive value in place of a reference to the box,
    /// in bytes.
    fn inline_size_difference(&self, object: u32) -> u64 {
        let class = self.snapshot.class_of(ObjectIndex(object));
        let name = class.map(|class| &*self.snapshot.classes()[class].name);
        match name {
            Some("java.lang.Long" | "java.lang.Double") => {
                8_u64.saturating_sub(self.snapshot.layout().reference.into())
            }
            _ => 0,
        }
    }

    /// Counts a group of objects with the same content, if the group has at least two objects. Each key consists of two
    /// words. The lower half of the second word is the object's number, and the other parts are not used here.
    fn count_equal_group(
        &mut self,
        kind: WasteKind,
        largest: &mut Largest,
        costs: &mut Vec<(u32, Cost)>,
        group: &[[u64; 2]],
    ) -> Result<()> {
        if group.len() < 2 {
            return Ok(());
        }
        costs.clear();
        for key in group {
            let object = key[1] as u32;
            let shallow = self.size(object);
            let win = if costs.is_empty() { 0 } else { shallow };
            costs.push((object, Cost { shallow, win }));
        }
        self.group(kind, largest, costs)
    }

    /// Counts a group of equal objects. The first object is kept, the others are waste.
    fn group(
        &mut self,
        kind: WasteKind,
        largest: &mut Largest,
        costs: &[(u32, Cost)],
    ) -> Result<()> {
        let mut total = WasteTotal::default();
        for &(object, cost) in costs {
            total += WasteTotal {
                objects: 1,
                shallow_bytes: cost.shallow,
                bytes_to_win: cost.win,
            };
            if cost.win > 0 {
                self.spare[kind as usize].extend(&[[u64::from(object), cost.win]])?;
            }
        }
        let of = &mut self.waste.of[kind as usize];
        of.total += total;
        of.groups += 1;
        let example = costs
            .first()
            .map_or(ObjectIndex(NONE), |c| ObjectIndex(c.0));
        largest.push(WasteGroup { example, total });
        Ok(())
    }

    fn finish(&mut self, kind: WasteKind, largest: Largest) {
        self.waste.of[kind as usize].largest = largest.into_sorted();
    }

    /// Counts the arrays that do not belong to a string or collection: first arrays that are all zero, then duplicates,
    /// then arrays that are too long.
    fn arrays(&mut self, hashes: &Array<u64>, room: &[[u32; 2]]) -> Result<()> {
        let first = self.snapshot.split.inner;
        let (mut zero, mut long) = (ByClass::default(), ByClass::default());
        for &[array, _] in room.iter().filter(|r| r[1] == 0) {
            if !self.owned.has(array) {
                self.owned.set(array);
                let all = self.size(array);
                let cost = Cost {
                    shallow: all,
                    win: all,
                };
                self.count_single(WasteKind::ZeroArrays, &mut zero, array, cost)?;
            }
        }
        let mut keys: Array<[u64; 2]> = self.snapshot.store.zeroed(0)?;
        let mut some: Vec<[u64; 2]> = Vec::with_capacity(CHUNK);
        for (chunk, at) in hashes.chunks(CHUNK).zip((first..).step_by(CHUNK)) {
            some.clear();
            let free = |&(hash, object): &(u64, u32)| hash != 0 && !self.owned.has(object);
            let pairs = chunk.iter().copied().zip(at..).filter(free);
            some.extend(pairs.map(|(hash, object)| [hash, u64::from(object)]));
            keys.extend(&some)?;
        }
        keys.par_sort_unstable();
        let mut largest = Largest::new(self.options.groups);
        let mut costs = Vec::new();
        for group in keys.chunk_by(|a, b| a[0] == b[0]) {
            self.count_equal_group(WasteKind::DuplicateArrays, &mut largest, &mut costs, group)?;
            for &(array, _) in costs.iter().filter(|_| group.len() > 1) {
                self.owned.set(array);
            }
        }
        self.finish(WasteKind::DuplicateArrays, largest);
        for &[array, used] in room.iter().filter(|r| r[1] > 0) {
            if self.owned.has(array) {
                continue;
            }
            let shallow = self.size(array);
            let win = shallow.saturating_sub(self.size_with(array, u64::from(used)));
            if win > 0 {
                self.count_single(
                    WasteKind::LongArrays,
                    &mut long,
                    array,
                    Cost { shallow, win },
                )?;
            }
        }
        self.by_class(WasteKind::ZeroArrays, zero);
        self.by_class(WasteKind::LongArrays, long);
        Ok(())
    }

    fn with_holders(self, holders: &Holders) -> Waste {
        let mut waste = self.waste;
        let passes: Vec<bool> = self
            .snapshot
            .classes()
            .iter()
            .map(|(i, class)| class.element.is_some() || (self.options.passes)(i))
            .collect();
        let look = HolderLookup {
            snapshot: self.snapshot,
            holders,
            passes,
        };
        for (of, spare) in waste.of.iter_mut().zip(&self.spare) {
            of.holders = look.holders_of(spare);
        }
        waste
    }
}

/// The groups of one kind of waste, one for each class. The number beside each group is the largest savings of a single
/// object. That object is the example of the group.
#[derive(Default)]
struct ByClass {
    groups: FxHashMap<u32, (u64, WasteGroup)>,
}

impl ByClass {
    fn add(&mut self, snapshot: &Snapshot, object: u32, one: WasteTotal) {
        let class = snapshot.class_of(ObjectIndex(object));
        let group = WasteGroup {
            example: ObjectIndex(object),
            total: WasteTotal::default(),
        };
        let row = self.groups.entry(class.map_or(NONE, |c| c.0));
        let (most, group) = row.or_insert((0, group));
        if one.bytes_to_win > *most {
            *most = one.bytes_to_win;
            group.example = ObjectIndex(object);
        }
        group.total += one;
    }
}

fn sort(groups: &mut Vec<WasteGroup>, limit: usize) {
    groups.sort_unstable_by_key(|g| (Reverse(g.total.bytes_to_win), g.example));
    groups.truncate(limit);
}

/// The groups with the largest savings, at most `limit`.
struct Largest {
    limit: usize,
    groups: Vec<WasteGroup>,
}

impl Largest {
    const fn new(limit: usize) -> Self {
        Self {
            limit,
            groups: Vec::new(),
        }
    }

    fn push(&mut self, group: WasteGroup) {
        self.groups.push(group);
        if self.groups.len() >= 2 * self.limit.max(512) {
            sort(&mut self.groups, self.limit);
        }
    }

    fn into_sorted(mut self) -> Vec<WasteGroup> {
        sort(&mut self.groups, self.limit);
        self.groups
    }
}

/// Looks up the holders of objects.
struct HolderLookup<'a> {
    snapshot: &'a Snapshot,
    holders: &'a Holders,
    /// For each class, true if its instances are only parts of other objects, such as nodes of a list. From such an
    /// instance, the search goes on to the instance's holder.
    passes: Vec<bool>,
}

/// The key of a holder and its field: the holder's class (for a class object, the class that it represents), a flag
/// that is true for class objects, and the code from [`Holders::key`].
type HolderKey = (u32, bool, u16);

impl HolderLookup<'_> {
    fn holders_of(&self, spare: &[[u64; 2]]) -> Vec<WasteHolder> {
        let parts = spare.par_chunks(CHUNK).map(|chunk| {
            let mut found: FxHashMap<HolderKey, (u64, u64, u32)> = FxHashMap::default();
            for &[object, win] in chunk {
                let (key, held) = self.holder(object as u32);
                let row = found.entry(key).or_insert((0, 0, held));
                *row = (row.0 + 1, row.1 + win, row.2.min(held));
            }
            found
        });
        let all = parts.reduce(FxHashMap::default, |mut all, part| {
            for (key, (objects, win, held)) in part {
                let row = all.entry(key).or_insert((0, 0, held));
                *row = (row.0 + objects, row.1 + win, row.2.min(held));
            }
            all
        });
        let holder =
            |(key, (objects, bytes_to_win, held)): (HolderKey, (u64, u64, u32))| WasteHolder {
                class: (key.0 != NONE).then_some(ClassIndex(key.0)),
                hold: self.snapshot.hold_of(self.holders, ObjectIndex(held)),
                objects,
                bytes_to_win,
            };
        let mut all: Vec<(HolderKey, WasteHolder)> =
            all.into_iter().map(|e| (e.0, holder(e))).collect();
        all.sort_unstable_by_key(|(key, holder)| (Reverse(holder.bytes_to_win), *key));
        all.into_iter().map(|(_, holder)| holder).collect()
    }

    /// Returns the nearest dominator whose class is not skipped (see `passes`), and the object that it holds. If the
    /// classes of all visited dominators are skipped, returns the immediate dominator.
    fn holder(&self, object: u32) -> (HolderKey, u32) {
        let (snapshot, tree) = (self.snapshot, self.snapshot.tree());
        let mut at = ObjectIndex(object);
        let mut nearest = None;
        for _ in 0..CLIMB {
            let above = tree.dominator(at).and_then(|node| tree.object(node));
            let Some(above) = above else { break };
            let class_object = snapshot.represents(above);
            let class = class_object.or_else(|| snapshot.class_of(above));
            let class = class.map_or(NONE, |c| c.0);
            let key = (class, class_object.is_some(), self.holders.key(at));
            if self
                .passes
                .get(class as usize)
                .is_some_and(|passes| !passes)
            {
                return (key, at.0);
            }
            nearest.get_or_insert((key, at.0));
            at = above;
        }
        nearest.unwrap_or(((NONE, false, 0), object))
    }
}
