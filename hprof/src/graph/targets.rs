//! How the pass over the objects records what references lead to.

use crate::graph::address::{AddressMap, MarkWriter, Range, Split};
use crate::graph::blocks::BlockWriter;
use crate::ids::NONE;
use crate::records::classes::Classes;

/// How the target of a reference is recorded.
pub(crate) trait Targets: Copy + Sync {
    /// Whether references are recorded at all.
    const COLLECT: bool;
    fn encode(&self, id: u64) -> u32;
    /// The slot of an object's start.
    #[inline(always)]
    fn start(&self, marks: &MarkWriter<'_>, id: u64) -> Option<u64> {
        marks.range.slot(id)
    }
}

/// References are not needed (a histogram) or come in a later pass.
#[derive(Clone, Copy)]
pub(crate) struct NoTargets;

impl Targets for NoTargets {
    const COLLECT: bool = false;
    fn encode(&self, _: u64) -> u32 {
        NONE
    }
}

/// References as grains from the base of the address range, to be translated when all starts are known.
#[derive(Clone, Copy)]
pub(crate) struct SlotTargets(pub(crate) Range);

impl Targets for SlotTargets {
    const COLLECT: bool = true;
    #[inline(always)]
    fn encode(&self, id: u64) -> u32 {
        self.0.slot(id).map_or(NONE, |slot| slot as u32)
    }
}

/// References, where they are wanted, as slots of blocks, which are numbered as the pass comes upon them.
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

/// References as object numbers.
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
