//! Adapts tables to the new offsets in the code: the tables of exceptions, lines, variables and type annotations.

use crate::cursor::Cursor;
use crate::error::{Damage, Fault};
use crate::moved::Moved;

/// Returns the entries of the exception table for the new code. The number of entries is not included.
pub(crate) fn exceptions(mut cursor: Cursor<'_>, moved: &Moved) -> Result<Vec<u8>, Damage> {
    const WHAT: &str = "the exception table";
    let mut out = Vec::new();
    while !cursor.is_at_end() {
        let offset = cursor.offset();
        let (start, end) = (cursor.u16(WHAT)?, cursor.u16(WHAT)?);
        let handler = cursor.u16(WHAT)?;
        out.extend(moved.target(start.into(), offset)?.to_be_bytes());
        out.extend(moved.new_range_bound(end.into(), offset)?.to_be_bytes());
        out.extend(moved.target(handler.into(), offset)?.to_be_bytes());
        out.extend(cursor.take(2, WHAT)?);
    }
    Ok(out)
}

/// The lines from all line number tables of a method, as pairs of offset and line number.
#[derive(Default)]
pub(crate) struct Lines(Vec<(u16, u16)>);

impl Lines {
    pub(crate) fn add(&mut self, mut cursor: Cursor<'_>) -> Result<(), Damage> {
        for _ in 0..cursor.u16(LINES)? {
            let start = cursor.u16(LINES)?;
            self.0.push((start, cursor.u16(LINES)?));
        }
        cursor.end(LINES)
    }

    /// Sorts the lines by offset. Call this after all tables were added. Lines with the same offset keep their order.
    pub(crate) fn sort(&mut self) {
        self.0.sort_by_key(|&(start, _)| start);
    }

    /// Returns the line of an offset by the same rule as HotSpot: the first line that begins at exactly this offset. If
    /// there is no such line, returns the last line that begins before the offset.
    pub(crate) fn at(&self, at: u16) -> Option<u16> {
        let from = self.0.partition_point(|&(start, _)| start < at);
        let (before, rest) = self.0.split_at(from);
        let exact = rest.first().filter(|&&(start, _)| start == at);
        exact.or(before.last()).map(|&(_, line)| line)
    }
}

const LINES: &str = "the line numbers";

/// Returns the attribute `LineNumberTable` for the new code.
pub(crate) fn lines(table: Cursor<'_>, moved: &Moved) -> Result<Vec<u8>, Damage> {
    entries(table, LINES, |cursor, out| {
        let offset = cursor.offset();
        let start = cursor.u16(LINES)?;
        out.extend(moved.line(start, offset)?.to_be_bytes());
        out.extend(cursor.take(2, LINES)?);
        Ok(())
    })
}

/// Copies a table that begins with the number of its entries. For each entry, `entry` reads the entry and writes it for
/// the new code.
fn entries<'a>(
    mut cursor: Cursor<'a>,
    what: &'static str,
    entry: impl Fn(&mut Cursor<'a>, &mut Vec<u8>) -> Result<(), Damage>,
) -> Result<Vec<u8>, Damage> {
    let count = cursor.u16(what)?;
    let mut out = count.to_be_bytes().to_vec();
    for _ in 0..count {
        entry(&mut cursor, &mut out)?;
    }
    cursor.end(what)?;
    Ok(out)
}

const VARIABLES: &str = "the local variables";

/// Returns the attribute `LocalVariableTable` or `LocalVariableTypeTable` for the new code.
pub(crate) fn variables(table: Cursor<'_>, moved: &Moved) -> Result<Vec<u8>, Damage> {
    entries(table, VARIABLES, |cursor, out| {
        range(cursor, moved, out)?;
        // Name, descriptor or signature, slot.
        out.extend(cursor.take(6, VARIABLES)?);
        Ok(())
    })
}

/// Reads a range (start and length) in the old code, and writes the range for the new code.
fn range(cursor: &mut Cursor<'_>, moved: &Moved, out: &mut Vec<u8>) -> Result<(), Damage> {
    let offset = cursor.offset();
    let (start, length) = (cursor.u16(VARIABLES)?, cursor.u16(VARIABLES)?);
    let new = moved.new_range_bound(start.into(), offset)?;
    let end = moved.new_range_bound(usize::from(start) + usize::from(length), offset)?;
    out.extend(new.to_be_bytes());
    // In the old code, the end of the range is not before its start. The offsets in the new code have the same order,
    // so the difference cannot be negative.
    out.extend(end.saturating_sub(new).to_be_bytes());
    Ok(())
}

const ANNOTATIONS: &str = "the type annotations";

/// Returns the attribute `RuntimeVisibleTypeAnnotations` or `RuntimeInvisibleTypeAnnotations` of `Code` for the new
/// code.
pub(crate) fn type_annotations(table: Cursor<'_>, moved: &Moved) -> Result<Vec<u8>, Damage> {
    entries(table, ANNOTATIONS, |cursor, out| {
        target(cursor, moved, out)?;
        let rest = *cursor;
        let path = cursor.u8(ANNOTATIONS)?;
        cursor.take(2 * usize::from(path), ANNOTATIONS)?;
        skip_annotation(cursor)?;
        out.extend(cursor.since(&rest));
        Ok(())
    })
}

/// Copies the target of an annotation, and moves its offsets. Compilers also store annotations of the method itself in
/// this attribute. The targets of these annotations have no offsets.
fn target(cursor: &mut Cursor<'_>, moved: &Moved, out: &mut Vec<u8>) -> Result<(), Damage> {
    let offset = cursor.offset();
    let kind = cursor.u8(ANNOTATIONS)?;
    out.push(kind);
    let plain = match kind {
        0x40 | 0x41 => {
            let count = cursor.u16(ANNOTATIONS)?;
            out.extend(count.to_be_bytes());
            for _ in 0..count {
                range(cursor, moved, out)?;
                out.extend(cursor.take(2, ANNOTATIONS)?);
            }
            0
        }
        0x43..=0x4b => {
            let of = cursor.u16(ANNOTATIONS)?;
            out.extend(moved.instruction(of, offset)?.to_be_bytes());
            usize::from(kind >= 0x47)
        }
        0x13..=0x15 => 0,
        0x00 | 0x01 | 0x16 => 1,
        0x10..=0x12 | 0x17 | 0x42 => 2,
        other => return Err(Fault::AnnotationTarget(other).at(offset)),
    };
    out.extend(cursor.take(plain, ANNOTATIONS)?);
    Ok(())
}

/// Skips an annotation. The annotation's values can contain further annotations and lists. Instead of recursion, this
/// function uses a stack of values that are still to be read.
fn skip_annotation(cursor: &mut Cursor<'_>) -> Result<(), Damage> {
    /// The number of values that are still to be read. `named` is true if a name precedes each value.
    struct Pending {
        values: u16,
        named: bool,
    }
    let annotation = |cursor: &mut Cursor<'_>| -> Result<Pending, Damage> {
        cursor.take(2, ANNOTATIONS)?;
        let values = cursor.u16(ANNOTATIONS)?;
        Ok(Pending {
            values,
            named: true,
        })
    };
    let mut stack = vec![annotation(cursor)?];
    while let Some(top) = stack.last_mut() {
        if top.values == 0 {
            stack.pop();
            continue;
        }
        top.values -= 1;
        cursor.take(2 * usize::from(top.named), ANNOTATIONS)?;
        let offset = cursor.offset();
        let plain = match cursor.u8(ANNOTATIONS)? {
            b'B' | b'C' | b'D' | b'F' | b'I' | b'J' | b'S' | b'Z' | b's' | b'c' => 2,
            b'e' => 4,
            b'@' => {
                stack.push(annotation(cursor)?);
                0
            }
            b'[' => {
                let values = cursor.u16(ANNOTATIONS)?;
                stack.push(Pending {
                    values,
                    named: false,
                });
                0
            }
            other => return Err(Fault::AnnotationValue(other).at(offset)),
        };
        cursor.take(plain, ANNOTATIONS)?;
    }
    Ok(())
}
