//! Inserts a hook call inside a method: before an instruction that sets a field, or after a call.
//!
//! Before a field is set, the object and the new value are on the stack, and the field still has its old value. After a
//! call, the returned value is on the stack. [`Push`](crate::Push) steps compute the hook's arguments from these
//! values, and the stack is the same afterwards. A branch to an instruction that sets a field leads to the inserted
//! call. No branch leads to the code after a call. Constructors are never changed, because an object must not be passed
//! to a hook before its constructor has called another constructor.

use crate::class::{ClassFile, Method};
use crate::code::{Instructions, NEW};
use crate::entry::{Entered, Entry, call, each_method};
use crate::error::{Error, Reason};
use crate::longer::{Branches, Inserted, Longer, Parts};
use crate::moved::LONGEST;
use crate::pool::Additions;
use crate::site::Name;

const PUTFIELD: u8 = 0xb5;
const INVOKEVIRTUAL: u8 = 0xb6;
const INVOKESTATIC: u8 = 0xb8;

/// The kind of instruction at which a hook can be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Does {
    /// Sets a field of an object. The hook is called before the field is set.
    Sets,
    /// Calls a method, but not through an interface. The hook is called after the method has returned.
    Calls,
}

/// An instruction at which a hook can be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step<'a> {
    /// The name and the descriptor of the method that contains the instruction.
    pub method: (Name<'a>, Name<'a>),
    /// The kind of the instruction.
    pub does: Does,
    /// The class of the field or the method, as the instruction names it.
    pub owner: Name<'a>,
    /// The name of the field or the method.
    pub name: Name<'a>,
    /// The descriptor of the field or the method.
    pub descriptor: Name<'a>,
}

/// Inserts a hook call at each instruction for which `entries` returns a hook call.
///
/// # Errors
/// Returns an error if the class cannot be read to its end. The caller should then leave the class unchanged.
pub fn within<'a, 'p>(
    class: &'a [u8],
    mut entries: impl FnMut(&Step<'a>) -> Option<Entry<'p>>,
) -> Result<Entered<'a>, Error> {
    each_method(class, |file, method, added| match method.name.0 {
        b"<init>" => Ok(None),
        _ => code(file, method, &mut entries, added),
    })
}

fn code<'a, 'p>(
    file: &ClassFile<'a>,
    method: &Method<'a>,
    entries: &mut impl FnMut(&Step<'a>) -> Option<Entry<'p>>,
    added: &mut Additions,
) -> Result<Option<Vec<u8>>, Reason> {
    let parts = Parts::read(method.code, &file.pool)?;
    let (mut inserted, mut written, mut news) = (Vec::new(), Vec::new(), Vec::new());
    let mut deepest = 0;
    for instruction in Instructions::new(parts.code) {
        let instruction = instruction?;
        let (does, index) = match *instruction.bytes {
            [NEW, ..] => {
                news.push(instruction.at);
                continue;
            }
            [PUTFIELD, a, b] => (Does::Sets, [a, b]),
            [INVOKEVIRTUAL..=INVOKESTATIC, a, b] => (Does::Calls, [a, b]),
            _ => continue,
        };
        let Some(member) = file.pool.member(u16::from_be_bytes(index)) else {
            continue;
        };
        let step = Step {
            method: (method.name, method.descriptor),
            does,
            owner: Name(member.owner),
            name: Name(member.name),
            descriptor: Name(member.descriptor),
        };
        let Some(entry) = entries(&step) else {
            continue;
        };
        let (code, depth) = call(&entry, added)?;
        deepest = deepest.max(depth);
        let start = written.len();
        written.extend(code);
        // The inserted code alone is already too long, so the method stays unchanged.
        if written.len() > LONGEST {
            return Err(Reason::TooLong);
        }
        inserted.push(Inserted {
            at: instruction.at,
            start,
            end: written.len(),
            after: does == Does::Calls,
        });
    }
    if inserted.is_empty() {
        return Ok(None);
    }
    let longer = Longer {
        parts: &parts,
        inserted: &inserted,
        code: &written,
        stack: deepest,
        locals: 0,
        news: &news,
        branches: Branches::ToInserted,
    };
    longer.written(&mut Vec::new()).map(Some)
}
