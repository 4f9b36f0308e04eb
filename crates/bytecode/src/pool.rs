//! The constant pool: reads constants and appends new ones.

use crate::cursor::Cursor;
use crate::error::{Damage, Fault};

pub(crate) const UTF8: u8 = 1;
pub(crate) const INTEGER: u8 = 3;
pub(crate) const LONG: u8 = 5;
const CLASS: u8 = 7;
const STRING: u8 = 8;
const FIELD: u8 = 9;
const METHOD: u8 = 10;
const INTERFACE_METHOD: u8 = 11;
const NAME_AND_TYPE: u8 = 12;
const HANDLE: u8 = 15;
const DYNAMIC: u8 = 18;

/// The constants of a class file. A constant's value is stored only if its kind is needed to look up classes, names and
/// calls.
pub(crate) struct Pool<'a> {
    constants: Vec<Constant<'a>>,
    /// The offset of the constant pool in the class file, for error messages.
    offset: usize,
}

#[derive(Clone, Copy)]
enum Constant<'a> {
    Utf8(&'a [u8]),
    Class(u16),
    String(u16),
    /// A field or a method. The values are indexes of two constants: the class, and the name and type.
    Member(u16, u16),
    NameAndType(u16, u16),
    /// An `invokedynamic` call. The values are the number of the call's bootstrap method, and the index of the constant
    /// with the call's name and type.
    Dynamic(u16, u16),
    Handle(u16),
    Other,
}

/// A field or a called method.
pub(crate) struct Member<'a> {
    /// The index of the constant for the class.
    pub(crate) class: u16,
    pub(crate) owner: &'a [u8],
    pub(crate) name: &'a [u8],
    pub(crate) descriptor: &'a [u8],
}

impl<'a> Pool<'a> {
    pub(crate) fn read(cursor: &mut Cursor<'a>) -> Result<Self, Damage> {
        const WHAT: &str = "the constant pool";
        let offset = cursor.offset();
        let count = usize::from(cursor.u16(WHAT)?);
        // Indexes of constants start at 1.
        let mut constants = vec![Constant::Other];
        while constants.len() < count {
            let offset = cursor.offset();
            let (constant, bytes, slots) = match cursor.u8(WHAT)? {
                UTF8 => {
                    let length = cursor.u16(WHAT)?;
                    let text = cursor.take(usize::from(length), WHAT)?;
                    (Constant::Utf8(text), 0, 1)
                }
                CLASS => (Constant::Class(cursor.u16(WHAT)?), 0, 1),
                STRING => (Constant::String(cursor.u16(WHAT)?), 0, 1),
                tag @ (FIELD | METHOD | INTERFACE_METHOD | NAME_AND_TYPE | DYNAMIC) => {
                    let (a, b) = (cursor.u16(WHAT)?, cursor.u16(WHAT)?);
                    let constant = match tag {
                        NAME_AND_TYPE => Constant::NameAndType(a, b),
                        DYNAMIC => Constant::Dynamic(a, b),
                        _ => Constant::Member(a, b),
                    };
                    (constant, 0, 1)
                }
                HANDLE => {
                    cursor.take(1, WHAT)?;
                    (Constant::Handle(cursor.u16(WHAT)?), 0, 1)
                }
                INTEGER | 4 | 17 => (Constant::Other, 4, 1),
                LONG | 6 => (Constant::Other, 8, 2),
                16 | 19 | 20 => (Constant::Other, 2, 1),
                tag => return Err(Fault::Tag(tag).at(offset)),
            };
            cursor.take(bytes, WHAT)?;
            constants.push(constant);
            if slots == 2 {
                constants.push(Constant::Other);
            }
        }
        // A constant that takes two indexes must not start at the last index.
        if constants.len() != count {
            return Err(Fault::Short(WHAT).at(cursor.offset()));
        }
        Ok(Pool { constants, offset })
    }

    /// Returns the number of indexes in use. Index 0 counts, although it has no constant.
    pub(crate) fn count(&self) -> usize {
        self.constants.len()
    }

    pub(crate) fn utf8(&self, index: u16) -> Result<&'a [u8], Damage> {
        match self.constants.get(usize::from(index)) {
            Some(Constant::Utf8(text)) => Ok(text),
            _ => Err(self.wrong_constant(index, "a text")),
        }
    }

    pub(crate) fn class(&self, index: u16) -> Result<&'a [u8], Damage> {
        match self.constants.get(usize::from(index)) {
            Some(Constant::Class(name)) => self.utf8(*name),
            _ => Err(self.wrong_constant(index, "a class")),
        }
    }

    fn get(&self, index: u16) -> Constant<'a> {
        let constant = self.constants.get(usize::from(index));
        constant.copied().unwrap_or(Constant::Other)
    }

    /// Returns the field or the method with this index. Returns `None` if the pool lacks a constant to which it refers.
    pub(crate) fn member(&self, index: u16) -> Option<Member<'a>> {
        let Constant::Member(class, named) = self.get(index) else {
            return None;
        };
        let (name, descriptor) = self.named(named)?;
        Some(Member {
            class,
            owner: self.class(class).ok()?,
            name,
            descriptor,
        })
    }

    /// Returns the number of the bootstrap method of a call, and the call's name and descriptor.
    pub(crate) fn dynamic(&self, index: u16) -> Option<(u16, &'a [u8], &'a [u8])> {
        let Constant::Dynamic(bootstrap, named) = self.get(index) else {
            return None;
        };
        let (name, descriptor) = self.named(named)?;
        Some((bootstrap, name, descriptor))
    }

    fn named(&self, index: u16) -> Option<(&'a [u8], &'a [u8])> {
        let Constant::NameAndType(name, descriptor) = self.get(index) else {
            return None;
        };
        Some((self.utf8(name).ok()?, self.utf8(descriptor).ok()?))
    }

    /// Returns the index of the constant for the method to which a method handle refers.
    pub(crate) fn handle(&self, index: u16) -> Option<u16> {
        match self.get(index) {
            Constant::Handle(of) => Some(of),
            _ => None,
        }
    }

    pub(crate) fn string(&self, index: u16) -> Option<&'a [u8]> {
        match self.get(index) {
            Constant::String(text) => self.utf8(text).ok(),
            _ => None,
        }
    }

    fn wrong_constant(&self, index: u16, wanted: &'static str) -> Damage {
        Fault::Constant { index, wanted }.at(self.offset)
    }
}

/// Constants that are appended after the constants of the input file.
pub(crate) struct Additions {
    bytes: Vec<u8>,
    /// The index of the next constant to append.
    next: usize,
}

/// The size of [`Additions`] before a method was rewritten. If the method stays unchanged after all, this size is
/// restored.
#[derive(Clone, Copy)]
pub(crate) struct Mark(usize, usize);

/// Error: all indexes of the constant pool are in use.
pub(crate) struct Full;

impl Additions {
    pub(crate) fn after(pool: &Pool<'_>) -> Self {
        Additions {
            bytes: Vec::new(),
            next: pool.count(),
        }
    }

    pub(crate) fn mark(&self) -> Mark {
        Mark(self.bytes.len(), self.next)
    }

    pub(crate) fn rollback(&mut self, mark: Mark) {
        self.bytes.truncate(mark.0);
        self.next = mark.1;
    }

    /// Returns the count of all constants, as the two bytes that the class file contains.
    pub(crate) fn count(&self) -> [u8; 2] {
        // The count is one more than the highest index. `add` returns only indexes below 65,535, so the count is at
        // most 65,535.
        u16::try_from(self.next).unwrap_or(u16::MAX).to_be_bytes()
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn add(&mut self, tag: u8, parts: &[&[u8]]) -> Result<u16, Full> {
        // The count of constants has 16 bits, so the highest index is 65,534.
        let number = u16::try_from(self.next).ok().filter(|&n| n < u16::MAX);
        let number = number.ok_or(Full)?;
        self.next += 1;
        self.bytes.push(tag);
        parts.iter().for_each(|part| self.bytes.extend(*part));
        Ok(number)
    }

    /// Adds a string. Before this call, the caller has checked the length of the names of hooks.
    fn utf8(&mut self, text: &str) -> Result<u16, Full> {
        let length = u16::try_from(text.len()).map_err(|_| Full)?;
        self.add(UTF8, &[&length.to_be_bytes(), text.as_bytes()])
    }

    pub(crate) fn integer(&mut self, number: i32) -> Result<u16, Full> {
        self.add(INTEGER, &[&number.to_be_bytes()])
    }

    pub(crate) fn class(&mut self, name: &str) -> Result<u16, Full> {
        let name = self.utf8(name)?;
        self.add(CLASS, &[&name.to_be_bytes()])
    }

    pub(crate) fn method(&mut self, class: u16, name: &str, descriptor: &str) -> Result<u16, Full> {
        self.member(METHOD, class, (name, descriptor))
    }

    pub(crate) fn field(&mut self, class: u16, name: &str, descriptor: &str) -> Result<u16, Full> {
        self.member(FIELD, class, (name, descriptor))
    }

    fn member(
        &mut self,
        tag: u8,
        class: u16,
        (name, descriptor): (&str, &str),
    ) -> Result<u16, Full> {
        let name = self.utf8(name)?.to_be_bytes();
        let descriptor = self.utf8(descriptor)?.to_be_bytes();
        let both = self.add(NAME_AND_TYPE, &[&name, &descriptor])?;
        self.add(tag, &[&class.to_be_bytes(), &both.to_be_bytes()])
    }
}
