//! Finds calls of methods that allocate, such as `clone`, although the caller has no allocation instruction. Determines
//! which method is called, and which hook is called after it.

use std::ops::Range;

use crate::code::Instruction;
use crate::pool::Pool;
use crate::site::{ClassName, Name};

pub(crate) const INVOKEVIRTUAL: u8 = 0xb6;
const INVOKESPECIAL: u8 = 0xb7;
const INVOKESTATIC: u8 = 0xb8;
const INVOKEINTERFACE: u8 = 0xb9;
pub(crate) const INVOKEDYNAMIC: u8 = 0xba;

/// The instruction that calls a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Invoke<'a> {
    /// `invokevirtual`.
    Virtual,
    /// `invokespecial`.
    Special,
    /// `invokestatic`.
    Static,
    /// `invokeinterface`.
    Interface,
    /// `invokedynamic`. The first value is the name of the bootstrap method. The second value is the first static
    /// argument after the standard ones, if this argument is a string.
    Dynamic(Name<'a>, Option<Name<'a>>),
}

/// A call in a method's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Call<'a> {
    /// The class that contains the call.
    pub class: Name<'a>,
    /// The method that contains the call.
    pub method: Name<'a>,
    /// The descriptor of the method that contains the call.
    pub method_descriptor: Name<'a>,
    /// The call instruction.
    pub how: Invoke<'a>,
    /// The class of the called method, as the call names the class. The class may be an array class. For
    /// `invokedynamic`, this is the class of the bootstrap method.
    pub owner: Name<'a>,
    /// The name of the called method.
    pub name: Name<'a>,
    /// The descriptor of the called method.
    pub descriptor: Name<'a>,
}

/// The hook to call after a call has returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// `object(site)`: the call allocates one object. The value is the name of the object's class.
    Object(&'static str),
    /// `array(length, site)`: the call returns one array. The array's class is the return type in the call's
    /// descriptor. If the return type is not an array class, as for `clone`, the array's class is [`Call::owner`].
    Array,
    /// `hook(returned, site)` with the descriptor `(Ljava/lang/Object;I)V`: the class of the returned object is known
    /// only at run time.
    Returned {
        /// A static method of the hook class.
        hook: &'static str,
        /// A number that the caller of this crate chooses for calls of this kind. This crate does not interpret the
        /// number. It returns the number in [`Kind::Returned`](crate::Kind::Returned).
        mark: u8,
    },
}

/// The hook to call after a call, with the class of the returned value.
#[derive(Clone, Copy)]
pub(crate) struct After<'a> {
    pub(crate) told: Told,
    /// The class of the returned value, as far as the code shows it.
    pub(crate) class: ClassName<'a>,
    /// The class constant of an array class. The returned value must be cast to this class before its length can be
    /// read.
    pub(crate) cast: Option<u16>,
}

/// Returns the call that an instruction makes, and the class constant of the called method. Returns `None` if the
/// instruction is not a call, or if the constant pool lacks a constant that the call needs.
pub(crate) fn called<'a>(
    pool: &Pool<'a>,
    bootstraps: &Bootstraps<'a>,
    [class, method, method_descriptor]: [Name<'a>; 3],
    instruction: &Instruction<'a>,
) -> Option<(Call<'a>, u16)> {
    let [opcode, a, b, ..] = *instruction.bytes else {
        return None;
    };
    let index = u16::from_be_bytes([a, b]);
    let (how, member) = match opcode {
        INVOKEVIRTUAL => (Invoke::Virtual, pool.member(index)?),
        INVOKESPECIAL => (Invoke::Special, pool.member(index)?),
        INVOKESTATIC => (Invoke::Static, pool.member(index)?),
        INVOKEINTERFACE => (Invoke::Interface, pool.member(index)?),
        INVOKEDYNAMIC => {
            let (bootstrap, name, descriptor) = pool.dynamic(index)?;
            let (handle, first) = bootstraps.get(bootstrap)?;
            let mut member = pool.member(pool.handle(handle)?)?;
            let linked_by = Name(member.name);
            (member.name, member.descriptor) = (name, descriptor);
            let text = first.and_then(|first| pool.string(first)).map(Name);
            (Invoke::Dynamic(linked_by, text), member)
        }
        _ => return None,
    };
    let call = Call {
        class,
        method,
        method_descriptor,
        how,
        owner: Name(member.owner),
        name: Name(member.name),
        descriptor: Name(member.descriptor),
    };
    Some((call, member.class))
}

impl<'a> After<'a> {
    /// Combines a hook with the class of the object that a call returns. Returns `None` if the call does not return a
    /// reference. Also returns `None` if the hook is [`Told::Array`], but neither the call's return type nor its owner
    /// is an array class.
    pub(crate) fn for_call(told: Told, call: &Call<'a>, class: u16) -> Option<Self> {
        let returned = returned(call.descriptor.0)?;
        let (class, cast) = match told {
            Told::Object(class) => (ClassName::named(class.as_bytes()), None),
            Told::Array if returned.starts_with(b"[") => (ClassName::named(returned), None),
            Told::Array if call.owner.0.starts_with(b"[") => {
                (ClassName::named(call.owner.0), Some(class))
            }
            Told::Array => return None,
            Told::Returned { .. } => (ClassName::named(strip_descriptor(returned)), None),
        };
        Some(Self { told, class, cast })
    }
}

/// Returns the return type of a method descriptor if this type is a class or an array.
fn returned(descriptor: &[u8]) -> Option<&[u8]> {
    let end = descriptor.iter().rposition(|&c| c == b')')?;
    let returned = descriptor.get(end + 1..)?;
    matches!(returned, [b'[' | b'L', _, ..]).then_some(returned)
}

/// Returns `name` if the type descriptor is `Lname;`. Returns other descriptors, such as those of arrays, unchanged.
fn strip_descriptor(kind: &[u8]) -> &[u8] {
    match kind {
        [b'L', name @ .., b';'] => name,
        _ => kind,
    }
}

/// The attribute `BootstrapMethods`, and the byte range of each entry of this attribute.
#[derive(Default)]
pub(crate) struct Bootstraps<'a> {
    content: &'a [u8],
    places: Vec<Range<usize>>,
}

impl<'a> Bootstraps<'a> {
    /// Reads the content of the attribute. Entries that cannot be read are left out.
    pub(crate) fn read(content: &'a [u8]) -> Self {
        let number = |at: usize| -> Option<usize> {
            let bytes = content.get(at..at + 2)?;
            Some(usize::from(u16::from_be_bytes([bytes[0], bytes[1]])))
        };
        let mut places = Vec::new();
        let mut at = 2;
        for _ in 0..number(0).unwrap_or(0) {
            let Some(arguments) = number(at + 2) else {
                break;
            };
            let end = at + 4 + 2 * arguments;
            if end > content.len() {
                break;
            }
            places.push(at..end);
            at = end;
        }
        Self { content, places }
    }

    /// Returns the method handle and the first static argument of a bootstrap method, as indexes of constants. The
    /// argument is `None` if the bootstrap method has no static arguments.
    fn get(&self, number: u16) -> Option<(u16, Option<u16>)> {
        let place = self.places.get(usize::from(number))?;
        let numbers = self.content.get(place.clone())?;
        let at = |at: usize| {
            let bytes = numbers.get(at..at + 2)?;
            Some(u16::from_be_bytes([bytes[0], bytes[1]]))
        };
        Some((at(0)?, at(4)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn return_types_are_parsed() {
        assert_eq!(returned(b"()[I"), Some(&b"[I"[..]));
        assert_eq!(
            returned(b"(I)La/B;").map(strip_descriptor),
            Some(&b"a/B"[..])
        );
        for none in [&b"()V"[..], b"()I", b"(I)", b"", b"()L"] {
            assert_eq!(returned(none), None);
        }
    }

    #[test]
    fn truncated_bootstrap_methods_are_ignored() {
        let bytes = [0, 3, 0, 7, 0, 0, 0, 8, 0, 2, 0, 9, 0, 10, 0, 11, 0, 1, 0];
        let read = Bootstraps::read(&bytes);
        assert_eq!(read.places.len(), 2);
        assert_eq!(read.get(0), Some((7, None)));
        assert_eq!(read.get(1), Some((8, Some(9))));
        assert_eq!(read.get(2), None);
        assert!(Bootstraps::read(&[]).places.is_empty());
    }
}
