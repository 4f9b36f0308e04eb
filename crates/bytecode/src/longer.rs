//! Inserts instructions into a method's code and moves everything that refers to the code.

use crate::class::{ClassFile, Method, POOL_COUNT};
use crate::code::{Cases, Form, Instruction, Instructions, padding};
use crate::cursor::Cursor;
use crate::error::{Damage, Fault, Reason};
use crate::frames;
use crate::moved::{LONGEST, Moved};
use crate::pool::{Additions, Pool};
use crate::tables;

/// Returns the class file with the additional constants, and with new `Code` attributes for the changed methods.
pub(crate) fn file(
    class: &[u8],
    file: &ClassFile<'_>,
    added: &Additions,
    changes: &[(&Method<'_>, Vec<u8>)],
) -> Vec<u8> {
    let more: usize = changes.iter().map(|(_, code)| code.len()).sum();
    let mut out = Vec::with_capacity(class.len() + added.bytes().len() + more);
    let mut copied = 0;
    let mut copy = |out: &mut Vec<u8>, to: usize, skipped_to: usize| {
        out.extend(class.get(copied..to).unwrap_or_default());
        copied = skipped_to;
    };
    copy(&mut out, POOL_COUNT.start, POOL_COUNT.end);
    out.extend(added.count());
    copy(&mut out, file.pool_end, file.pool_end);
    out.extend(added.bytes());
    for (method, code) in changes {
        copy(&mut out, method.place.start - 4, method.place.end);
        // The length fits into 32 bits in practice, because the code is shorter than 64 KB and each entry of its tables
        // grows by at most a few bytes.
        let length = u32::try_from(code.len()).unwrap_or(u32::MAX);
        out.extend(length.to_be_bytes());
        out.extend(code);
    }
    copy(&mut out, class.len(), class.len());
    out
}

/// Code to insert before the instruction at `at`, or behind it if `after` is true. `start..end` is the range of this
/// code in the block of all inserted code.
pub(crate) struct Inserted {
    pub(crate) at: usize,
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) after: bool,
}

/// The parts of the attribute `Code`.
pub(crate) struct Parts<'a> {
    pub(crate) max_stack: u16,
    pub(crate) max_locals: u16,
    pub(crate) code: Cursor<'a>,
    pub(crate) length: usize,
    pub(crate) exceptions: (u16, Cursor<'a>),
    pub(crate) attributes: Vec<Attribute<'a>>,
}

pub(crate) struct Attribute<'a> {
    pub(crate) index: u16,
    pub(crate) name: &'a [u8],
    pub(crate) content: Cursor<'a>,
}

impl<'a> Parts<'a> {
    pub(crate) fn read(mut cursor: Cursor<'a>, pool: &Pool<'a>) -> Result<Self, Damage> {
        const WHAT: &str = "the attribute Code";
        let (max_stack, max_locals) = (cursor.u16(WHAT)?, cursor.u16(WHAT)?);
        let offset = cursor.offset();
        let told = cursor.u32(WHAT)?;
        let length = usize::try_from(told).unwrap_or(usize::MAX);
        if !(1..=LONGEST).contains(&length) {
            return Err(Fault::CodeLength(told).at(offset));
        }
        let code = cursor.part(length, WHAT)?;
        let handlers = cursor.u16(WHAT)?;
        let exceptions = cursor.part(8 * usize::from(handlers), WHAT)?;
        let mut attributes = Vec::new();
        for _ in 0..cursor.u16(WHAT)? {
            let index = cursor.u16(WHAT)?;
            let name = pool.utf8(index)?;
            let length = cursor.length(WHAT)?;
            let content = cursor.part(length, WHAT)?;
            attributes.push(Attribute {
                index,
                name,
                content,
            });
        }
        cursor.end(WHAT)?;
        Ok(Parts {
            max_stack,
            max_locals,
            code,
            length,
            exceptions: (handlers, exceptions),
            attributes,
        })
    }
}

/// The new target of a branch. The old target is an instruction that now has inserted code before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Branches {
    /// The branch goes to the inserted code, because the code has to run before every execution of the instruction.
    ToInserted,
    /// The branch goes to the instruction and skips the inserted code.
    PastInserted,
}

/// The code of a method, and the code to insert into it.
pub(crate) struct Longer<'l, 'a> {
    pub(crate) parts: &'l Parts<'a>,
    /// The positions of the pieces of inserted code, ordered by offset.
    pub(crate) inserted: &'l [Inserted],
    /// The bytes of all inserted code, as one block.
    pub(crate) code: &'l [u8],
    /// Number of stack slots that the new code needs in addition to those of the method.
    pub(crate) stack: u16,
    /// Number of local variables that the new code needs in addition to those of the method.
    pub(crate) locals: u16,
    /// The offset of each `new`, in order.
    pub(crate) news: &'l [usize],
    pub(crate) branches: Branches,
}

impl<'a> Longer<'_, 'a> {
    /// Returns the new content of the attribute `Code`. Adds the names of dropped attributes to `dropped`.
    pub(crate) fn written(&self, dropped: &mut Vec<&'a [u8]>) -> Result<Vec<u8>, Reason> {
        let parts = self.parts;
        let mut moved = Moved::new(parts.length, self.branches);
        let mut next = self.inserted.iter().peekable();
        for instruction in Instructions::new(parts.code) {
            let instruction = instruction?;
            let (before, after) = match next.next_if(|i| i.at == instruction.at) {
                Some(i) if i.after => (0, i.end - i.start),
                Some(i) => (i.end - i.start, 0),
                None => (0, 0),
            };
            let placed = moved.place(&instruction, before, after);
            placed.ok_or(Reason::TooLong)?;
        }
        moved.finish().ok_or(Reason::TooLong)?;

        let max_stack = parts.max_stack.checked_add(self.stack);
        let max_locals = parts.max_locals.checked_add(self.locals);
        let mut out = Vec::new();
        out.extend(max_stack.ok_or(Reason::StackTooDeep)?.to_be_bytes());
        out.extend(max_locals.ok_or(Reason::TooManyLocals)?.to_be_bytes());
        let length = u32::try_from(moved.new_length()).map_err(|_| Reason::TooLong)?;
        out.extend(length.to_be_bytes());
        let start = out.len();
        let mut next = self.inserted.iter().peekable();
        for instruction in Instructions::new(parts.code) {
            let instruction = instruction?;
            let inserted = next.next_if(|i| i.at == instruction.at);
            let part = |i: &Inserted| self.code.get(i.start..i.end).unwrap_or_default();
            out.extend(inserted.filter(|i| !i.after).map(part).unwrap_or_default());
            let at = out.len() - start;
            let place = Place {
                moved: &moved,
                at,
                offset: parts.code.offset() + instruction.at,
            };
            place.write(&instruction, &mut out)?;
            out.extend(inserted.filter(|i| i.after).map(part).unwrap_or_default());
        }

        let (handlers, table) = parts.exceptions;
        out.extend(handlers.to_be_bytes());
        out.extend(tables::exceptions(table, &moved)?);
        self.attributes(&moved, dropped, &mut out)?;
        Ok(out)
    }

    fn attributes(
        &self,
        moved: &Moved,
        dropped: &mut Vec<&'a [u8]>,
        out: &mut Vec<u8>,
    ) -> Result<(), Reason> {
        let is_new = |at: u16| self.news.binary_search(&usize::from(at)).is_ok();
        let mut kept = Vec::new();
        let mut framed = false;
        for attribute in &self.parts.attributes {
            let content = attribute.content;
            let new = match attribute.name {
                b"StackMapTable" if framed => {
                    return Err(Fault::Second("StackMapTable").at(content.offset()).into());
                }
                b"StackMapTable" => {
                    framed = true;
                    frames::moved(content, moved, is_new)?
                }
                b"LineNumberTable" => tables::lines(content, moved)?,
                b"LocalVariableTable" | b"LocalVariableTypeTable" => {
                    tables::variables(content, moved)?
                }
                b"RuntimeVisibleTypeAnnotations" | b"RuntimeInvisibleTypeAnnotations" => {
                    tables::type_annotations(content, moved)?
                }
                name => {
                    dropped.push(name);
                    continue;
                }
            };
            kept.push((attribute.index, new));
        }
        // Attributes are dropped but never added, so their number still fits into 16 bits.
        let count = u16::try_from(kept.len()).unwrap_or(u16::MAX);
        out.extend(count.to_be_bytes());
        for (index, content) in kept {
            out.extend(index.to_be_bytes());
            // The attribute's new length fits into 32 bits in practice, because each of its entries grows by at most a
            // few bytes.
            let length = u32::try_from(content.len()).map_err(|_| Reason::TooLong)?;
            out.extend(length.to_be_bytes());
            out.extend(content);
        }
        Ok(())
    }
}

/// The position of an instruction in the new code.
struct Place<'m> {
    moved: &'m Moved,
    /// The offset of the instruction in the new code.
    at: usize,
    /// The offset of the instruction in the input file, for errors.
    offset: usize,
}

impl Place<'_> {
    fn write(&self, instruction: &Instruction<'_>, out: &mut Vec<u8>) -> Result<(), Reason> {
        match instruction.form {
            Form::Plain => out.extend(instruction.bytes),
            Form::Jump(distance) => {
                let new = self.distance(instruction.at, distance.into())?;
                let too_far = || Reason::JumpTooFar(u16::try_from(instruction.at).unwrap_or(0));
                let new = i16::try_from(new).map_err(|_| too_far())?;
                out.push(instruction.opcode);
                out.extend(new.to_be_bytes());
            }
            Form::WideJump(distance) => {
                out.push(instruction.opcode);
                out.extend(self.distance(instruction.at, distance)?.to_be_bytes());
            }
            Form::Switch(default, cases) => {
                out.push(instruction.opcode);
                out.extend([0; 3].iter().take(padding(self.at)));
                out.extend(self.distance(instruction.at, default)?.to_be_bytes());
                let (head, cases, key) = match cases {
                    Cases::Table(head, cases) => (head, cases, 0),
                    Cases::Lookup(head, cases) => (head, cases, 4),
                };
                out.extend(head);
                for case in cases.chunks_exact(key + 4) {
                    let (key, distance) = case.split_at(key);
                    out.extend(key);
                    let distance = Cursor::new(distance, self.offset).i32("the code")?;
                    out.extend(self.distance(instruction.at, distance)?.to_be_bytes());
                }
            }
        }
        Ok(())
    }

    /// Returns the new distance of a branch. `old_at` is the old offset of the branch, and `distance` is its old
    /// distance.
    fn distance(&self, old_at: usize, distance: i32) -> Result<i32, Damage> {
        let old_at = i64::try_from(old_at).unwrap_or(i64::MAX);
        let to = self
            .moved
            .target(old_at + i64::from(distance), self.offset)?;
        // The offsets of the branch and of its target are below 65,536.
        let at = i32::try_from(self.at).unwrap_or(i32::MAX);
        Ok(i32::from(to) - at)
    }
}
