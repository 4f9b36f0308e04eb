//! Where instructions were and where they are.

use crate::code::{Form, Instruction, padding};
use crate::error::{Damage, Fault};
use crate::longer::Branches;

/// The longest code that a class file has.
pub(crate) const LONGEST: usize = 65_535;
/// No instruction begins here.
const NONE: u32 = u32::MAX;

/// For each offset in the code as it was, where what was there is now.
pub(crate) struct Moved {
    /// With what was inserted before it, by old offset; the end too.
    start: Vec<u32>,
    /// Without.
    itself: Vec<u32>,
    /// How long the code is so far.
    length: usize,
    branches: Branches,
}

impl Moved {
    /// Nothing is placed yet in a code of this length.
    pub(crate) fn new(old_length: usize, branches: Branches) -> Self {
        Moved {
            start: vec![NONE; old_length + 1],
            itself: vec![NONE; old_length + 1],
            length: 0,
            branches,
        }
    }

    /// Places the next instruction behind so many inserted bytes, and before so many that no jump leads to. `None`: the code gets
    /// too long.
    pub(crate) fn place(
        &mut self,
        instruction: &Instruction<'_>,
        inserted: usize,
        after: usize,
    ) -> Option<()> {
        let itself = self.length + inserted;
        let length = match &instruction.form {
            // Opcode, padding, the default's distance, cases.
            Form::Switch(_, cases) => 1 + padding(itself) + 4 + cases.len(),
            _ => instruction.bytes.len(),
        };
        self.set(instruction.at, self.length, itself)?;
        self.length = itself + length + after;
        (self.length <= LONGEST).then_some(())
    }

    /// The code has ended.
    pub(crate) fn finish(&mut self) -> Option<()> {
        self.set(self.start.len() - 1, self.length, self.length)
    }

    fn set(&mut self, old: usize, start: usize, itself: usize) -> Option<()> {
        *self.start.get_mut(old)? = u32::try_from(start).ok()?;
        *self.itself.get_mut(old)? = u32::try_from(itself).ok()?;
        Some(())
    }

    /// How long the code is now.
    pub(crate) fn new_length(&self) -> usize {
        self.length
    }

    /// Where to go for what was at an offset. The end is no target.
    pub(crate) fn target(&self, old: i64, told_at: usize) -> Result<u16, Damage> {
        let table = match self.branches {
            Branches::ToInserted => &self.start,
            Branches::PastInserted => &self.itself,
        };
        Self::look(table, self.inside(old), old, told_at)
    }

    /// Where a line begins: with what is inserted.
    pub(crate) fn line(&self, old: u16, told_at: usize) -> Result<u16, Damage> {
        let old = i64::from(old);
        Self::look(&self.start, self.inside(old), old, told_at)
    }

    fn inside(&self, old: i64) -> Option<usize> {
        let end = self.start.len() - 1;
        usize::try_from(old).ok().filter(|&old| old < end)
    }

    /// As [`Moved::target`], and the end is where a range may end.
    pub(crate) fn bound(&self, old: usize, told_at: usize) -> Result<u16, Damage> {
        let told = i64::try_from(old).unwrap_or(i64::MAX);
        Self::look(&self.start, Some(old), told, told_at)
    }

    /// The instruction itself.
    pub(crate) fn instruction(&self, old: u16, told_at: usize) -> Result<u16, Damage> {
        let known = usize::from(old);
        let known = Some(known).filter(|&old| old < self.itself.len() - 1);
        Self::look(&self.itself, known, i64::from(old), told_at)
    }

    fn look(table: &[u32], old: Option<usize>, told: i64, at: usize) -> Result<u16, Damage> {
        let new = old.and_then(|old| table.get(old)).copied();
        let new = new.and_then(|new| u16::try_from(new).ok());
        new.ok_or_else(|| Fault::Target(told).at(at))
    }
}
