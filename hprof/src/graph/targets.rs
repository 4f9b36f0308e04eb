//! Ways to record the target of each reference during the pass over the objects: as a slot (a position in the address
//! map), as an object number, or not at all.

use crate::graph::address::{AddressMap, MarkWriter, Range, Split};
use crate::graph::blocks::BlockWriter;
use crate::ids::NONE;
use crate::records::classes::Classes;

/// A way to record the target of a reference.
pub(crate) trait Targets: Copy + Sync {
    /// True if references are recorded at all.
    const COLLECT: bool;
    fn encode(&self, id: u64) -> u32;
    /// Returns the slot (position in the address map) whose bit must be set, because the object with this id starts
    /// there.
    #[inline(always)]
    fn start(&self, marks: &MarkWriter<'_>, id: u64) -> Option<u64> {
        marks.range.slot(id)
    }
}

/// Records no references. Use this if references are not needed, as for a histogram, or if a later pass records them.
#[derive(Clone, Copy)]
pub(crate) struct NoTargets;

impl Targets for NoTargets {
    const COLLECT: bool = false;
    fn encode(&self, _: u64) -> u32 {
        NONE
    }
}

/// Records references as slots (positions in the address range). When the address map contains all objects, the slots
/// are converted to object numbers.
#[derive(Clone, Copy)]
pub(crate) struct SlotTargets(pub(crate) Range);

impl Targets for SlotTargets {
    const COLLECT: bool = true;
    #[inline(always)]
    fn encode(&self, id: u64) -> u32 {
        self.0.slot(id).map_or(NONE, |slot| slot as u32)
    }
}

/// Records the target of each reference as a slot in the blocks of the address map, or nothing if `COLLECT` is false. A
/// block gets its number when the pass over the objects first finds an object in it, or a reference to an address in
/// it.
#[derive(Clone, Copy)]
pub(crate) struct BlockTargets<'a, 'b, const COLLECT: bool>(pub(crate) &'a BlockWriter<'b>);

impl<const COLLECT: bool> Targets for BlockTargets<'_, '_, COLLECT> {
    const COLLECT: bool = COLLECT;
    #[inline(always)]
    fn encode(&self, id: u64) -> u32 {
        self.0.slot(id).map_or(NONE, |slot| slot as u32)
    }
    #[inline(always)]
    fn start(&self, _: &MarkWriter<'_>, id: u64) -> Option<u64> {
        self.0.slot(id)
    }
}

/// Records references as object numbers.
#[derive(Clone, Copy)]
pub(crate) struct NumberTargets<'a> {
    pub(crate) map: &'a AddressMap,
    pub(crate) classes: &'a Classes,
    pub(crate) split: Split,
}

impl Targets for NumberTargets<'_> {
    const COLLECT: bool = true;
    #[inline]
    fn encode(&self, id: u64) -> u32 {
        match self.map.by_id(id, self.split) {
            // A class without a record has no class object.
            NONE => match self.classes.by_id(crate::ids::ObjectId(id)) {
                Some(class) if class.0 < self.split.classes => class.0,
                _ => NONE,
            },
            number => number,
        }
    }
}
