//! Replaces constants in the class file of a compiled class. The values of these constants are known only when the
//! class is defined.

use crate::cursor::Cursor;
use crate::error::{Damage, Fault};
use crate::pool::{INTEGER, LONG, UTF8};

/// Base of the `long` placeholders. The constant `LONG_PLACEHOLDER + n` is replaced by the number with index n.
pub const LONG_PLACEHOLDER: i64 = 0x4845_4150_0000_0000;
/// Base of the `int` placeholders. The constant `INT_PLACEHOLDER + n` is replaced by the number with index n.
pub const INT_PLACEHOLDER: i32 = 0x4845_0000;

const SYNTHETIC: u16 = 0x1000;

/// Replaces placeholders in the constant pool by `numbers`, renames `names`, and sets the flag `ACC_SYNTHETIC` of the
/// class.
///
/// Each number must fit the type of its placeholder. Code and attributes are copied unchanged, because they refer to
/// constants by index.
///
/// # Errors
/// Returns an error if the class cannot be read up to the end of its constant pool.
pub fn fill(bytes: &[u8], numbers: &[i64], names: &[(&str, &str)]) -> Result<Vec<u8>, Damage> {
    const WHAT: &str = "the constant pool";
    let number = |offset: i64| usize::try_from(offset).ok().and_then(|at| numbers.get(at));
    let mut cursor = Cursor::new(bytes, 0);
    let mut filled = cursor.take(8, WHAT)?.to_vec();
    let count = cursor.u16(WHAT)?;
    filled.extend(count.to_be_bytes());
    // Indexes of constants start at 1.
    let mut next = 1;
    while next < count {
        let offset = cursor.offset();
        let tag = cursor.u8(WHAT)?;
        filled.push(tag);
        match tag {
            UTF8 => {
                let length = cursor.u16(WHAT)?;
                let name = cursor.take(usize::from(length), WHAT)?;
                let other = names.iter().find(|(from, _)| from.as_bytes() == name);
                let name = other.map_or(name, |(_, to)| to.as_bytes());
                let length = u16::try_from(name.len());
                let length = length.map_err(|_| Fault::Short(WHAT).at(offset))?;
                filled.extend(length.to_be_bytes());
                filled.extend(name);
            }
            INTEGER => {
                let value = cursor.i32(WHAT)?;
                let known = number(i64::from(value) - i64::from(INT_PLACEHOLDER));
                let known = known.and_then(|&known| i32::try_from(known).ok());
                filled.extend(known.unwrap_or(value).to_be_bytes());
            }
            LONG => {
                let value = cursor.i64(WHAT)?;
                let known = number(value.wrapping_sub(LONG_PLACEHOLDER));
                filled.extend(known.unwrap_or(&value).to_be_bytes());
                // A `long` takes two indexes.
                next += 1;
            }
            7 | 8 | 16 | 19 | 20 => filled.extend(cursor.take(2, WHAT)?),
            15 => filled.extend(cursor.take(3, WHAT)?),
            4 | 9..=12 | 17 | 18 => filled.extend(cursor.take(4, WHAT)?),
            6 => {
                filled.extend(cursor.take(8, WHAT)?);
                next += 1;
            }
            tag => return Err(Fault::Tag(tag).at(offset)),
        }
        next += 1;
    }
    let access = cursor.u16("the class")? | SYNTHETIC;
    filled.extend(access.to_be_bytes());
    filled.extend(cursor.rest());
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds the part of a class file that precedes the access flags. It contains a name, an `int` and a `long`.
    fn class(name: &str, int: i32, long: i64) -> Vec<u8> {
        let mut bytes = vec![0xca, 0xfe, 0xba, 0xbe, 0, 0, 0, 55, 0, 6, UTF8, 0];
        bytes.push(name.len() as u8);
        bytes.extend(name.as_bytes());
        bytes.extend([INTEGER].iter().chain(&int.to_be_bytes()));
        bytes.extend([LONG].iter().chain(&long.to_be_bytes()));
        bytes.extend([7, 0, 1]);
        bytes
    }

    fn with_access(mut bytes: Vec<u8>, access: u16) -> Vec<u8> {
        bytes.extend(access.to_be_bytes());
        bytes.push(9);
        bytes
    }

    #[test]
    fn placeholders_and_names_are_replaced() {
        let placeholders = class("a", INT_PLACEHOLDER + 1, LONG_PLACEHOLDER);
        let filled = fill(
            &with_access(placeholders, 0x30),
            &[-7, 8],
            &[("a", "other")],
        );
        assert_eq!(filled, Ok(with_access(class("other", 8, -7), 0x1030)));
        let others = class("b", INT_PLACEHOLDER + 2, LONG_PLACEHOLDER - 1);
        let filled = fill(&with_access(others.clone(), 0x30), &[1, 2], &[("a", "c")]);
        assert_eq!(filled, Ok(with_access(others, 0x1030)));
    }

    #[test]
    fn a_class_that_ends_early_is_damaged() {
        let whole = with_access(class("a", 1, 2), 0);
        for length in 0..whole.len() - 1 {
            assert!(fill(&whole[..length], &[], &[]).is_err(), "{length}");
        }
        let mut unknown = whole;
        unknown[10] = 2;
        assert_eq!(fill(&unknown, &[], &[]), Err(Fault::Tag(2).at(10)));
    }
}
