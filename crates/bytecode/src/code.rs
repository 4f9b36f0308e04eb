//! Splits code into instructions. For each instruction, finds the parts that depend on its offset, such as branch
//! distances.

use crate::cursor::Cursor;
use crate::error::{Damage, Fault};

pub(crate) const NEW: u8 = 0xbb;
pub(crate) const NEWARRAY: u8 = 0xbc;
pub(crate) const ANEWARRAY: u8 = 0xbd;
pub(crate) const MULTIANEWARRAY: u8 = 0xc5;
const TABLESWITCH: u8 = 0xaa;
const LOOKUPSWITCH: u8 = 0xab;
const WIDE: u8 = 0xc4;
const IINC: u8 = 0x84;
const WHAT: &str = "the code";

pub(crate) struct Instruction<'a> {
    /// The offset of the instruction in the code.
    pub(crate) at: usize,
    pub(crate) opcode: u8,
    /// The bytes of the whole instruction.
    pub(crate) bytes: &'a [u8],
    pub(crate) form: Form<'a>,
}

/// The parts of an instruction that change if the instruction moves to another offset.
pub(crate) enum Form<'a> {
    /// No part of the instruction depends on the instruction's offset.
    Plain,
    /// A branch: a 16-bit distance follows the opcode.
    Jump(i16),
    /// A branch: a 32-bit distance follows the opcode.
    WideJump(i32),
    /// A switch: padding to a multiple of four bytes, the distance of the default case, and the other cases.
    Switch(i32, Cases<'a>),
}

/// The part of a switch instruction that follows the distance of the default case.
#[derive(Clone, Copy)]
pub(crate) enum Cases<'a> {
    /// `tableswitch`: the bytes of `low` and `high`, followed by the distances.
    Table(&'a [u8], &'a [u8]),
    /// `lookupswitch`: the bytes of the count, followed by pairs of key and distance.
    Lookup(&'a [u8], &'a [u8]),
}

impl Cases<'_> {
    /// Returns the length of this part in bytes.
    pub(crate) fn len(&self) -> usize {
        let (Cases::Table(head, cases) | Cases::Lookup(head, cases)) = self;
        head.len() + cases.len()
    }
}

/// Iterates over the instructions of a method. Only the last item may be an error.
pub(crate) struct Instructions<'a> {
    cursor: Cursor<'a>,
    /// The offset of the code in the file.
    base: usize,
}

/// Returns the number of padding bytes between the opcode of a switch at `at` and its operands.
pub(crate) fn padding(at: usize) -> usize {
    3 - at % 4
}

impl<'a> Instructions<'a> {
    pub(crate) fn new(code: Cursor<'a>) -> Self {
        Instructions {
            cursor: code,
            base: code.offset(),
        }
    }

    fn instruction(&mut self) -> Result<Instruction<'a>, Damage> {
        let start = self.cursor;
        let at = start.offset() - self.base;
        let cursor = &mut self.cursor;
        let opcode = cursor.u8(WHAT)?;
        let mut form = Form::Plain;
        let plain = match opcode {
            0x00..=0x0f | 0x1a..=0x35 | 0x3b..=0x83 | 0x85..=0x98 => 0,
            0xac..=0xb1 | 0xbe | 0xbf | 0xc2 | 0xc3 => 0,
            0x10 | 0x12 | 0x15..=0x19 | 0x36..=0x3a | 0xa9 | NEWARRAY => 1,
            0x11 | 0x13 | 0x14 | IINC | 0xb2..=0xb8 | NEW | ANEWARRAY | 0xc0 | 0xc1 => 2,
            MULTIANEWARRAY => 3,
            0xb9 | 0xba => 4,
            0x99..=0xa8 | 0xc6 | 0xc7 => {
                form = Form::Jump(cursor.i16(WHAT)?);
                0
            }
            0xc8 | 0xc9 => {
                form = Form::WideJump(cursor.i32(WHAT)?);
                0
            }
            TABLESWITCH | LOOKUPSWITCH => {
                cursor.take(padding(at), WHAT)?;
                let default = cursor.i32(WHAT)?;
                form = Form::Switch(default, cases(cursor, opcode)?);
                0
            }
            WIDE => match cursor.u8(WHAT)? {
                0x15..=0x19 | 0x36..=0x3a | 0xa9 => 2,
                IINC => 4,
                other => return Err(Fault::Opcode(other).at(start.offset() + 1)),
            },
            other => return Err(Fault::Opcode(other).at(start.offset())),
        };
        cursor.take(plain, WHAT)?;
        Ok(Instruction {
            at,
            opcode,
            bytes: self.cursor.since(&start),
            form,
        })
    }
}

fn cases<'a>(cursor: &mut Cursor<'a>, opcode: u8) -> Result<Cases<'a>, Damage> {
    let start = *cursor;
    let (count, each) = if opcode == TABLESWITCH {
        let (low, high) = (cursor.i32(WHAT)?, cursor.i32(WHAT)?);
        (i64::from(high) - i64::from(low) + 1, 4)
    } else {
        (i64::from(cursor.i32(WHAT)?), 8)
    };
    let head = cursor.since(&start);
    let length = usize::try_from(count)
        .ok()
        .and_then(|n| n.checked_mul(each));
    let Some(length) = length.filter(|_| each == 8 || count > 0) else {
        let mut again = start;
        let low = again.i32(WHAT)?;
        let high = if each == 4 { again.i32(WHAT)? } else { low };
        return Err(Fault::Switch { low, high }.at(start.offset()));
    };
    let distances = cursor.take(length, WHAT)?;
    Ok(match each {
        4 => Cases::Table(head, distances),
        _ => Cases::Lookup(head, distances),
    })
}

impl<'a> Iterator for Instructions<'a> {
    type Item = Result<Instruction<'a>, Damage>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.cursor.is_at_end() {
            return None;
        }
        let next = self.instruction();
        if next.is_err() {
            self.cursor = Cursor::new(&[], self.cursor.offset());
        }
        Some(next)
    }
}
