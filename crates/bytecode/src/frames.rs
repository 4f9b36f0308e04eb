//! Adapts the attribute `StackMapTable` to the new offsets. The attribute contains the types that the verifier expects
//! at branch targets.

use crate::cursor::Cursor;
use crate::error::{Damage, Fault};
use crate::moved::Moved;

const WHAT: &str = "the frames";
const SAME_WITH_STACK: u8 = 64;
const RESERVED: u8 = 128;
const SAME_WITH_STACK_FAR: u8 = 247;
const SAME_FAR: u8 = 251;
const FULL: u8 = 255;
const UNINITIALIZED: u8 = 8;
const OBJECT: u8 = 7;

/// Returns the stack map frames for the new code. `is_new` returns true for an offset in the old code at which a `new`
/// instruction begins.
pub(crate) fn moved(
    mut cursor: Cursor<'_>,
    moved: &Moved,
    is_new: impl Fn(u16) -> bool,
) -> Result<Vec<u8>, Damage> {
    let count = cursor.u16(WHAT)?;
    let mut out = count.to_be_bytes().to_vec();
    // A frame stores its distance from the previous frame, minus one.
    let (mut old_before, mut new_before) = (-1_i64, -1_i64);
    for _ in 0..count {
        let offset = cursor.offset();
        let kind = cursor.u8(WHAT)?;
        let old_delta = match kind {
            0..SAME_WITH_STACK => u16::from(kind),
            SAME_WITH_STACK..RESERVED => u16::from(kind - SAME_WITH_STACK),
            RESERVED..SAME_WITH_STACK_FAR => return Err(Fault::Frame(kind).at(offset)),
            SAME_WITH_STACK_FAR..=FULL => cursor.u16(WHAT)?,
        };
        old_before += i64::from(old_delta) + 1;
        let new = i64::from(moved.target(old_before, offset)?);
        // In the old code, each frame has a higher offset than the previous frame. The frames keep their order in the
        // new code.
        let delta = u16::try_from(new - new_before - 1);
        let delta = delta.map_err(|_| Fault::Target(old_before).at(offset))?;
        new_before = new;
        let short = u8::try_from(delta).ok().filter(|&d| d < SAME_WITH_STACK);
        let mut types = Types {
            cursor: &mut cursor,
            out: &mut out,
            moved,
            is_new: &is_new,
        };
        match (kind, short) {
            (0..SAME_WITH_STACK | SAME_FAR, Some(short)) => types.out.push(short),
            (0..SAME_WITH_STACK | SAME_FAR, None) => types.head(SAME_FAR, delta),
            (SAME_WITH_STACK..=SAME_WITH_STACK_FAR, short) => {
                match short {
                    Some(short) => types.out.push(SAME_WITH_STACK + short),
                    None => types.head(SAME_WITH_STACK_FAR, delta),
                }
                types.copy(1)?;
            }
            (FULL, _) => {
                types.head(FULL, delta);
                types.counted()?;
                types.counted()?;
            }
            // Chop frames and append frames.
            (kind, _) => {
                types.head(kind, delta);
                types.copy(u16::from(kind.saturating_sub(SAME_FAR)))?;
            }
        }
    }
    cursor.end(WHAT)?;
    Ok(out)
}

struct Types<'c, 'a, F> {
    cursor: &'c mut Cursor<'a>,
    out: &'c mut Vec<u8>,
    moved: &'c Moved,
    is_new: &'c F,
}

impl<F: Fn(u16) -> bool> Types<'_, '_, F> {
    fn head(&mut self, kind: u8, delta: u16) {
        self.out.push(kind);
        self.out.extend(delta.to_be_bytes());
    }

    fn counted(&mut self) -> Result<(), Damage> {
        let count = self.cursor.u16(WHAT)?;
        self.out.extend(count.to_be_bytes());
        self.copy(count)
    }

    fn copy(&mut self, count: u16) -> Result<(), Damage> {
        for _ in 0..count {
            let offset = self.cursor.offset();
            let tag = self.cursor.u8(WHAT)?;
            self.out.push(tag);
            match tag {
                0..OBJECT => {}
                OBJECT => self.out.extend(self.cursor.take(2, WHAT)?),
                UNINITIALIZED => {
                    let of = self.cursor.u16(WHAT)?;
                    if !(self.is_new)(of) {
                        return Err(Fault::NotNew(of.into()).at(offset));
                    }
                    let new = self.moved.instruction(of, offset)?;
                    self.out.extend(new.to_be_bytes());
                }
                other => return Err(Fault::FrameType(other).at(offset)),
            }
        }
        Ok(())
    }
}
