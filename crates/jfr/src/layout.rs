//! The layout of the records of a type.
//!
//! A field whose type has fields itself is stored inline. So a layout lists only plain fields (fields whose type has no
//! fields), with names such as `heapSpace.committedSize`. A decoded record contains only the length of an array, not
//! its elements.

use crate::cursor::{Cursor, Text};
use crate::error::{Damage, Fault};
use crate::types::{TypeIndex, Types};

/// Maximum nesting depth of inline types, and of arrays inside arrays.
const MOST_DEPTH: usize = 8;
/// Maximum number of plain fields (fields whose type has no fields): `MOST_FIELDS` for one type, and
/// `MOST_FIELDS_IN_ALL` for all types that a chunk uses.
const MOST_FIELDS: usize = 1 << 10;
const MOST_FIELDS_IN_ALL: usize = 1 << 16;

/// A type without fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plain {
    Boolean,
    Byte,
    Char,
    Short,
    Int,
    Long,
    Float,
    Double,
    String,
}

impl Plain {
    fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "boolean" => Self::Boolean,
            "byte" => Self::Byte,
            "char" => Self::Char,
            "short" => Self::Short,
            "int" => Self::Int,
            "long" => Self::Long,
            "float" => Self::Float,
            "double" => Self::Double,
            "java.lang.String" => Self::String,
            _ => return None,
        })
    }
}

/// The kind of value that a record holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    Plain(Plain),
    /// The key of a constant of the given type.
    Constant(TypeIndex),
    /// A whole record. Used only for elements of arrays. Outside of arrays, the layout lists the fields of the record
    /// instead.
    Record(TypeIndex),
}

#[derive(Clone, Debug)]
pub(crate) struct Slot {
    /// The name, qualified by the names of the enclosing fields.
    pub(crate) name: String,
    pub(crate) item: Item,
    pub(crate) array: bool,
}

/// The plain fields of a type: the fields whose type has no fields.
pub(crate) type Layout = Vec<Slot>;

/// The layouts of a chunk's types, computed on first use.
#[derive(Debug, Default)]
pub(crate) struct Layouts {
    made: Vec<Option<Layout>>,
    fields: usize,
}

/// A value in a record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Value<'a> {
    Int(i64),
    Float(f64),
    Text(Text<'a>),
    Constant(TypeIndex, i64),
    Array(Array),
}

/// The position of the elements of an array.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Array {
    pub(crate) item: Item,
    pub(crate) count: u64,
    /// The offset of the first element in the chunk.
    pub(crate) at: usize,
}

/// Returns how a recording stores the constants of a type: as plain values, or as records with fields.
pub(crate) fn item_of(types: &Types, index: TypeIndex) -> Item {
    let plain = types.get(index).and_then(|t| Plain::from_name(&t.name));
    plain.map_or(Item::Record(index), Item::Plain)
}

impl Layouts {
    pub(crate) fn new(types: &Types) -> Self {
        Self {
            made: vec![None; types.list.len()],
            fields: 0,
        }
    }

    pub(crate) fn get(&self, index: TypeIndex) -> Option<&Layout> {
        self.made.get(index.0 as usize)?.as_ref()
    }

    /// Computes the layout of a type and of the element types of its arrays. `at` is the file offset that errors
    /// contain.
    pub(crate) fn make(&mut self, types: &Types, index: TypeIndex, at: u64) -> Result<(), Damage> {
        let mut wanted = vec![index];
        while let Some(index) = wanted.pop() {
            let Some(place) = self.made.get(index.0 as usize) else {
                continue;
            };
            if place.is_some() {
                continue;
            }
            let layout = flatten_fields(types, index, at)?;
            self.fields += layout.len();
            if self.fields > MOST_FIELDS_IN_ALL {
                let (what, most) = ("fields in all types", MOST_FIELDS_IN_ALL as u64);
                return Err(Fault::Limit { what, most }.at(at));
            }
            for slot in &layout {
                if let Item::Record(element) = slot.item {
                    wanted.push(element);
                }
            }
            self.made[index.0 as usize] = Some(layout);
        }
        Ok(())
    }

    /// Reads a record. The layout of the record's type must have been computed.
    pub(crate) fn read<'a>(
        &self,
        index: TypeIndex,
        cursor: &mut Cursor<'a>,
        values: &mut Vec<Value<'a>>,
    ) -> Result<(), Damage> {
        self.read_to_array(index, cursor, values, false)
    }

    /// Reads a record as [`Self::read`] does. If `ends` is true and the last field is an array, the elements of this
    /// array are not skipped: the cursor is then at its first element.
    pub(crate) fn read_to_array<'a>(
        &self,
        index: TypeIndex,
        cursor: &mut Cursor<'a>,
        values: &mut Vec<Value<'a>>,
        ends: bool,
    ) -> Result<(), Damage> {
        values.clear();
        let layout = self.get(index).map_or(&[][..], |l| l);
        for (at, slot) in layout.iter().enumerate() {
            let value = if slot.array {
                let count = cursor.count("an array")?;
                let array = Array {
                    item: slot.item,
                    count,
                    at: cursor.at(),
                };
                if !ends || at + 1 < layout.len() {
                    self.pass(slot.item, count, cursor)?;
                }
                Value::Array(array)
            } else {
                value(slot.item, cursor)?
            };
            values.push(value);
        }
        Ok(())
    }

    /// Skips `count` items.
    pub(crate) fn pass(
        &self,
        item: Item,
        count: u64,
        cursor: &mut Cursor<'_>,
    ) -> Result<(), Damage> {
        // Most items are not records, or are records without arrays. Skip these without the stack that is used below.
        let Item::Record(index) = item else {
            for _ in 0..count {
                value(item, cursor)?;
            }
            return Ok(());
        };
        let layout = self.get(index).map_or(&[][..], |l| l);
        if layout.is_empty() {
            return Ok(());
        }
        if layout.iter().all(|slot| !slot.array) {
            for _ in 0..count {
                for slot in layout {
                    value(slot.item, cursor)?;
                }
            }
            return Ok(());
        }
        // The arrays that are being skipped, outermost first. Each entry has the element type, the number of elements
        // left, and the next field of the current element. The stack avoids recursion.
        let mut open = vec![(item, count, 0_usize)];
        while let Some((item, left, next)) = open.last_mut() {
            if *left == 0 {
                open.pop();
                continue;
            }
            let Item::Record(index) = *item else {
                value(*item, cursor)?;
                *left -= 1;
                continue;
            };
            let layout = self.get(index).map_or(&[][..], |l| l);
            let Some(slot) = layout.get(*next) else {
                *left -= 1;
                *next = 0;
                // Elements without fields take no bytes, so all of them are skipped at once, whatever their number.
                if layout.is_empty() {
                    *left = 0;
                }
                continue;
            };
            *next += 1;
            if !slot.array {
                value(slot.item, cursor)?;
                continue;
            }
            let inner = cursor.count("an array")?;
            if open.len() >= MOST_DEPTH {
                let (what, most) = ("nested arrays", MOST_DEPTH as u64);
                return Err(cursor.fault(Fault::Limit { what, most }));
            }
            open.push((slot.item, inner, 0));
        }
        Ok(())
    }
}

/// Reads a value that is neither an array nor a record.
#[inline]
fn value<'a>(item: Item, cursor: &mut Cursor<'a>) -> Result<Value<'a>, Damage> {
    const WHAT: &str = "a field";
    let plain = match item {
        Item::Plain(plain) => plain,
        Item::Constant(index) => return Ok(Value::Constant(index, cursor.long(WHAT)?)),
        Item::Record(_) => return Ok(Value::Int(0)),
    };
    Ok(match plain {
        Plain::Boolean | Plain::Byte => Value::Int(cursor.byte(WHAT)?.into()),
        Plain::Char => Value::Int(cursor.character(WHAT)?),
        Plain::Short => Value::Int(cursor.short(WHAT)?),
        Plain::Int => Value::Int(cursor.int(WHAT)?),
        Plain::Long => Value::Int(cursor.long(WHAT)?),
        Plain::Float => {
            let bytes = cursor.take(4, WHAT)?;
            let bits = bytes.iter().fold(0, |n, &b| n << 8 | u32::from(b));
            Value::Float(f32::from_bits(bits).into())
        }
        Plain::Double => {
            let bytes = cursor.take(8, WHAT)?;
            let bits = bytes.iter().fold(0, |n, &b| n << 8 | u64::from(b));
            Value::Float(f64::from_bits(bits))
        }
        Plain::String => Value::Text(cursor.text()?),
    })
}

/// Returns the plain fields of a type. The fields of inline types replace the field that contains them.
fn flatten_fields(types: &Types, index: TypeIndex, at: u64) -> Result<Layout, Damage> {
    let limit = |what, most: usize| {
        let most = most as u64;
        Fault::Limit { what, most }.at(at)
    };
    let mut layout = Layout::new();
    // The nested types being listed, outermost first. Each entry has the type, its next field, and the prefix for the
    // names of its fields.
    let mut open: Vec<(TypeIndex, usize, String)> = vec![(index, 0, String::new())];
    let mut steps = 0;
    while let Some((index, next, prefix)) = open.last_mut() {
        // Limit also the number of loop steps, because types without fields add nothing to the layout and so never
        // reach the limit of fields.
        steps += 1;
        if steps > MOST_FIELDS * MOST_DEPTH {
            return Err(limit("fields in a type", MOST_FIELDS));
        }
        let Some(field) = types.get(*index).and_then(|t| t.fields.get(*next)) else {
            open.pop();
            continue;
        };
        *next += 1;
        let name = if prefix.is_empty() {
            field.name.to_string()
        } else {
            format!("{prefix}.{}", field.name)
        };
        let unknown = || Fault::UnknownType(field.id).at(at);
        let of = types.by_id(field.id).ok_or_else(unknown)?;
        let plain = types.get(of).and_then(|t| Plain::from_name(&t.name));
        let item = match (field.pooled, plain) {
            (true, _) => Item::Constant(of),
            (false, Some(plain)) => Item::Plain(plain),
            (false, None) if field.array => Item::Record(of),
            (false, None) => {
                if open.len() >= MOST_DEPTH {
                    return Err(limit("nested types", MOST_DEPTH));
                }
                open.push((of, 0, name));
                continue;
            }
        };
        if layout.len() >= MOST_FIELDS {
            return Err(limit("fields in a type", MOST_FIELDS));
        }
        layout.push(Slot {
            name,
            item,
            array: field.array,
        });
    }
    Ok(layout)
}
