//! Maps the offsets of instructions in the old code to offsets in the new code.

use crate::code::{Form, Instruction, padding};
use crate::error::{Damage, Fault};
use crate::longer::Branches;

/// Maximum length of the code of a method.
pub(crate) const LONGEST: usize = 65_535;
/// The value in a table of new offsets for an old offset that is not the beginning of an instruction.
const NONE: u32 = u32::MAX;

/// Maps each offset in the old code to its offset in the new code. Here is an example in which a call of five bytes is
/// inserted before `newarray`:
///
/// ```text
/// old code:   0 iconst_3   1 newarray              3 pop
/// new code:   0 iconst_3   1 call   6 newarray     8 pop
///
/// start[1] = 1, itself[1] = 6
/// ```
pub(crate) struct Moved {
    /// For each old offset, the new offset of the code that is inserted before the instruction. The last entry is the
    /// end of the code.
    start: Vec<u32>,
    /// For each old offset, the new offset of the instruction itself.
    itself: Vec<u32>,
    /// The length of the new code so far.
    length: usize,
    branches: Branches,
}

impl Moved {
    /// Creates an empty map from old to new offsets, for old code of `old_length` bytes.
    pub(crate) fn new(old_length: usize, branches: Branches) -> Self {
        Moved {
            start: vec![NONE; old_length + 1],
            itself: vec![NONE; old_length + 1],
            length: 0,
            branches,
        }
    }

    /// Adds the next instruction, with `inserted` new bytes before it and `after` new bytes after it. No jump leads to
    /// the bytes after the instruction. Returns `None` if the new code gets longer than [`LONGEST`].
    pub(crate) fn place(
        &mut self,
        instruction: &Instruction<'_>,
        inserted: usize,
        after: usize,
    ) -> Option<()> {
        let itself = self.length + inserted;
        let length = match &instruction.form {
            // A switch consists of the opcode, padding, the distance of the default case, and the other cases.
            Form::Switch(_, cases) => 1 + padding(itself) + 4 + cases.len(),
            _ => instruction.bytes.len(),
        };
        self.set(instruction.at, self.length, itself)?;
        self.length = itself + length + after;
        (self.length <= LONGEST).then_some(())
    }

    /// Records the offset of the end of the code.
    pub(crate) fn finish(&mut self) -> Option<()> {
        self.set(self.start.len() - 1, self.length, self.length)
    }

    fn set(&mut self, old: usize, start: usize, itself: usize) -> Option<()> {
        *self.start.get_mut(old)? = u32::try_from(start).ok()?;
        *self.itself.get_mut(old)? = u32::try_from(itself).ok()?;
        Some(())
    }

    /// Returns the length of the new code.
    pub(crate) fn new_length(&self) -> usize {
        self.length
    }

    /// Returns the new offset of a branch target. `old` is the target's offset in the old code. The end of the code is
    /// not a valid target. If the target is invalid, the error reports the offset `told_at` in the file.
    pub(crate) fn target(&self, old: i64, told_at: usize) -> Result<u16, Damage> {
        let table = match self.branches {
            Branches::ToInserted => &self.start,
            Branches::PastInserted => &self.itself,
        };
        Self::look_up_offset(table, self.new_offset(old), old, told_at)
    }

    /// Returns the new offset at which a source line starts. If code is inserted at the start of the line, the line
    /// starts before the inserted code.
    pub(crate) fn line(&self, old: u16, told_at: usize) -> Result<u16, Damage> {
        let old = i64::from(old);
        Self::look_up_offset(&self.start, self.new_offset(old), old, told_at)
    }

    fn new_offset(&self, old: i64) -> Option<usize> {
        let end = self.start.len() - 1;
        usize::try_from(old).ok().filter(|&old| old < end)
    }

    /// Returns the new offset of the start or the end of a range. Code that is inserted before an instruction belongs
    /// to the instruction, so the returned offset is before the inserted code. The end of the code is also a valid
    /// bound.
    pub(crate) fn new_range_bound(&self, old: usize, told_at: usize) -> Result<u16, Damage> {
        let told = i64::try_from(old).unwrap_or(i64::MAX);
        Self::look_up_offset(&self.start, Some(old), told, told_at)
    }

    /// Returns the new offset of the instruction itself, after the code that is inserted before it.
    pub(crate) fn instruction(&self, old: u16, told_at: usize) -> Result<u16, Damage> {
        let known = usize::from(old);
        let known = Some(known).filter(|&old| old < self.itself.len() - 1);
        Self::look_up_offset(&self.itself, known, i64::from(old), told_at)
    }

    fn look_up_offset(
        table: &[u32],
        old: Option<usize>,
        told: i64,
        at: usize,
    ) -> Result<u16, Damage> {
        let new = old.and_then(|old| table.get(old)).copied();
        let new = new.and_then(|new| u16::try_from(new).ok());
        new.ok_or_else(|| Fault::Target(told).at(at))
    }
}
