//! A call of a hook within a method: before it sets a field, or after another method has returned to it.
//!
//! Before a field is set the object and the new value are on the stack, and the field has what it had. After a call there is what was
//! returned. The hook is given what [`Push`](crate::Push) makes of that, and leaves the stack as it was. A branch to an instruction
//! that sets a field goes to the call before it; no branch leads to what follows a call. Constructors stay as they are: until they have
//! called another one their object may be given to nobody.

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

/// What an instruction does that a hook may be called at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Does {
    /// It sets a field of an object: the hook is called before.
    Sets,
    /// It calls a method, not through an interface: the hook is called after.
    Calls,
}

/// An instruction that a hook may be called at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step<'a> {
    /// The method that it is in, and its descriptor.
    pub method: (Name<'a>, Name<'a>),
    /// What it does.
    pub does: Does,
    /// The class of the field or the method, as the instruction names it.
    pub owner: Name<'a>,
    /// The name of the field or the method.
    pub name: Name<'a>,
    /// Its descriptor.
    pub descriptor: Name<'a>,
}

/// Inserts a call at each step that has an entry.
///
/// # Errors
/// When the class cannot be read to its end. It is to be left as it is.
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
    for instruction in Instructions::of(parts.code) {
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
        // What is inserted alone would be too long.
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
