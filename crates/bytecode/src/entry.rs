//! Inserts a hook call at the start of a method.
//!
//! The call is inserted at the start of the code. It needs no stack map frame, because the types at the start of a
//! method follow from the method's descriptor. A branch to the method's original first instruction skips the call, so
//! the hook runs once for each call of the method. The method's exception handlers do not cover the hook call.

use crate::class::{ClassFile, Method};
use crate::code::{Instructions, NEW};
use crate::error::{Error, Reason};
use crate::insert::Pushed;
use crate::longer::{self, Branches, Inserted, Longer, Parts};
use crate::pool::{Additions, Full};
use crate::rewrite::LeftAlone;
use crate::site::Name;

const ALOAD: u8 = 0x19;
const ILOAD: u8 = 0x15;
const LLOAD: u8 = 0x16;
const DUP: u8 = 0x59;
const DUP2: u8 = 0x5c;
const SWAP: u8 = 0x5f;
const ISUB: u8 = 0x64;
const GETFIELD: u8 = 0xb4;
const INVOKEVIRTUAL: u8 = 0xb6;
const INVOKESPECIAL: u8 = 0xb7;
const INVOKESTATIC: u8 = 0xb8;
const ARRAYLENGTH: u8 = 0xbe;

/// One step of computing the hook's arguments. The steps are executed in order. The caller must make sure that the
/// named fields and methods exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Push<'p> {
    /// Pushes the reference in this local variable.
    Reference(u8),
    /// Pushes the `int` in this local variable.
    Number(u8),
    /// Pushes the `long` in this local variable.
    Long(u8),
    /// Pushes this number.
    Constant(i32),
    /// Replaces the reference on top of the stack by the value of a field. The strings are the field's class, name and
    /// descriptor. The value must take one stack slot.
    Field(&'p str, &'p str, &'p str),
    /// Replaces the reference on top of the stack by the result of a virtual method without arguments. The strings are
    /// the method's class, name and descriptor. The result must take one stack slot.
    Call(&'p str, &'p str, &'p str),
    /// Works like [`Push::Call`], but always calls the method of the given class, even if a subclass overrides it.
    Own(&'p str, &'p str, &'p str),
    /// Replaces the array on top of the stack by its length.
    Length,
    /// Replaces the two topmost numbers by their difference: the number below the top minus the number on top.
    Less,
    /// Replaces the two topmost `int`s by the result of a static method that takes these two `int`s. The strings are
    /// the method's class and name.
    Combined(&'p str, &'p str),
    /// Duplicates the value on top of the stack.
    Again,
    /// Duplicates the two topmost values, each of one slot.
    PairAgain,
    /// Swaps the two topmost values, each of one slot.
    Swap,
}

/// A hook call to insert.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry<'p> {
    /// The steps that push the hook's arguments.
    pub pushes: Vec<Push<'p>>,
    /// The class, the name and the descriptor of the hook. The hook must be a static `void` method.
    pub hook: [&'p str; 3],
}

/// A class with calls of a hook at the start of methods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entered<'a> {
    /// The new class file, or `None` if nothing changes.
    pub bytes: Option<Vec<u8>>,
    /// The name and the descriptor of each method that now begins with a hook call.
    pub methods: Vec<(Name<'a>, Name<'a>)>,
    /// The methods that were not changed although `entries` returned a hook call for them. Each has the reason.
    pub left_alone: Vec<LeftAlone<'a>>,
}

/// Inserts a hook call at the start of each method for which `entries` returns a hook call. The arguments of `entries`
/// are the method's name and its descriptor.
///
/// # Errors
/// Returns an error if the class cannot be read to its end. The caller should then leave the class unchanged.
pub fn enter<'a, 'p>(
    class: &'a [u8],
    mut entries: impl FnMut(Name<'a>, Name<'a>) -> Option<Entry<'p>>,
) -> Result<Entered<'a>, Error> {
    each_method(class, |file, method, added| {
        let Some(entry) = entries(method.name, method.descriptor) else {
            return Ok(None);
        };
        let parts = Parts::read(method.code, &file.pool)?;
        code(&parts, &entry, added).map(Some)
    })
}

/// Replaces the code of each method for which `code` returns new code.
pub(crate) fn each_method<'a>(
    class: &'a [u8],
    mut code: impl FnMut(&ClassFile<'a>, &Method<'a>, &mut Additions) -> Result<Option<Vec<u8>>, Reason>,
) -> Result<Entered<'a>, Error> {
    let file = ClassFile::read(class)?;
    let mut added = Additions::after(&file.pool);
    let mut entered = Entered {
        bytes: None,
        methods: Vec::new(),
        left_alone: Vec::new(),
    };
    let mut changes = Vec::new();
    for method in &file.methods {
        let (name, descriptor) = (method.name, method.descriptor);
        let before = added.mark();
        match code(&file, method, &mut added) {
            Ok(Some(code)) => {
                changes.push((method, code));
                entered.methods.push((name, descriptor));
            }
            Ok(None) => added.rollback(before),
            Err(reason) => {
                added.rollback(before);
                entered.left_alone.push(LeftAlone {
                    method: name,
                    descriptor,
                    reason,
                });
            }
        }
    }
    if !changes.is_empty() {
        entered.bytes = Some(longer::file(class, &file, &added, &changes));
    }
    Ok(entered)
}

fn code(parts: &Parts<'_>, entry: &Entry<'_>, added: &mut Additions) -> Result<Vec<u8>, Reason> {
    let (code, deepest) = call(entry, added)?;
    let mut news = Vec::new();
    for instruction in Instructions::new(parts.code) {
        let instruction = instruction?;
        if instruction.opcode == NEW {
            news.push(instruction.at);
        }
    }
    let longer = Longer {
        parts,
        inserted: &[Inserted {
            at: 0,
            start: 0,
            end: code.len(),
            after: false,
        }],
        code: &code,
        // The operand stack is empty where the hook call is inserted. So the new maximum stack depth is the larger of
        // the depth of the hook call and the depth of the method, not the sum of both depths.
        stack: deepest.saturating_sub(parts.max_stack),
        locals: 0,
        news: &news,
        branches: Branches::PastInserted,
    };
    longer.written(&mut Vec::new())
}

/// Returns the code of the hook call, and the maximum stack depth that this code needs.
pub(crate) fn call(entry: &Entry<'_>, added: &mut Additions) -> Result<(Vec<u8>, u16), Full> {
    let mut code = Vec::new();
    let (mut depth, mut deepest) = (0_u16, 0_u16);
    for push in &entry.pushes {
        let with = |code: &mut Vec<u8>, opcode: u8, constant: u16| {
            code.push(opcode);
            code.extend(constant.to_be_bytes());
        };
        match *push {
            Push::Reference(slot) => code.extend([ALOAD, slot]),
            Push::Number(slot) => code.extend([ILOAD, slot]),
            Push::Long(slot) => code.extend([LLOAD, slot]),
            Push::Constant(number) => code.push_number(number, added)?,
            Push::Field(class, name, descriptor) => {
                let class = added.class(class)?;
                with(&mut code, GETFIELD, added.field(class, name, descriptor)?);
            }
            Push::Call(class, name, descriptor) => {
                let class = added.class(class)?;
                let method = added.method(class, name, descriptor)?;
                with(&mut code, INVOKEVIRTUAL, method);
            }
            Push::Own(class, name, descriptor) => {
                let class = added.class(class)?;
                let method = added.method(class, name, descriptor)?;
                with(&mut code, INVOKESPECIAL, method);
            }
            Push::Length => code.push(ARRAYLENGTH),
            Push::Less => code.push(ISUB),
            Push::Combined(class, name) => {
                let class = added.class(class)?;
                with(&mut code, INVOKESTATIC, added.method(class, name, "(II)I")?);
            }
            Push::Again => code.push(DUP),
            Push::PairAgain => code.push(DUP2),
            Push::Swap => code.push(SWAP),
        }
        match push {
            Push::Reference(_) | Push::Number(_) | Push::Constant(_) | Push::Again => depth += 1,
            Push::Long(_) | Push::PairAgain => depth += 2,
            Push::Field(..) | Push::Call(..) | Push::Own(..) | Push::Length | Push::Swap => {}
            Push::Less | Push::Combined(..) => depth = depth.saturating_sub(1),
        }
        deepest = deepest.max(depth);
    }
    let [class, name, descriptor] = entry.hook;
    let class = added.class(class)?;
    let hook = added.method(class, name, descriptor)?;
    code.push(INVOKESTATIC);
    code.extend(hook.to_be_bytes());
    Ok((code, deepest))
}
