//! The types of a chunk, from its metadata event.
//!
//! Each chunk describes the types of its events and constants, field by field, as a tree of elements with attributes. A
//! reader only needs to know the names of the fields.

use rustc_hash::FxHashMap;

use crate::cursor::{Cursor, Text};
use crate::error::{Damage, Fault};

/// Maximum number of strings, types and fields in the metadata of a chunk. Current JVMs have about 200 types.
const MOST_STRINGS: u64 = 1 << 18;
const MOST_TYPES: usize = 1 << 14;
const MOST_FIELDS: usize = 1 << 17;
/// Maximum number of characters of a name that are stored.
const MOST_CHARS: usize = 256;
/// Maximum nesting depth of elements. Real metadata has five levels: root, metadata, class, field, annotation.
const MOST_DEPTH: usize = 16;

/// The index of a type in [`Types`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct TypeIndex(pub(crate) u32);

/// A field in the metadata.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) name: Box<str>,
    /// The id of the field's type.
    pub(crate) id: i64,
    /// True if the field contains the key of an entry in the constant pool instead of the value itself.
    pub(crate) pooled: bool,
    pub(crate) array: bool,
}

/// A type of events, of constants, or of fields.
#[derive(Clone, Debug)]
pub(crate) struct Type {
    pub(crate) name: Box<str>,
    pub(crate) id: i64,
    pub(crate) fields: Vec<Field>,
}

/// The types of a chunk.
#[derive(Clone, Debug, Default)]
pub(crate) struct Types {
    pub(crate) list: Vec<Type>,
    by_id: FxHashMap<i64, TypeIndex>,
}

impl Types {
    pub(crate) fn by_id(&self, id: i64) -> Option<TypeIndex> {
        self.by_id.get(&id).copied()
    }

    pub(crate) fn find_by_name(&self, name: &str) -> Option<TypeIndex> {
        let at = self.list.iter().position(|t| &*t.name == name)?;
        Some(TypeIndex(u32::try_from(at).ok()?))
    }

    pub(crate) fn get(&self, index: TypeIndex) -> Option<&Type> {
        self.list.get(index.0 as usize)
    }

    /// Reads a metadata event. The cursor must be after the event's size and type.
    pub(crate) fn read(cursor: &mut Cursor<'_>) -> Result<Self, Damage> {
        const WHAT: &str = "the metadata";
        for _ in 0..3 {
            // Skip the first three fields of the event: the start, the duration and the id of the event.
            cursor.long(WHAT)?;
        }
        let start = *cursor;
        let count = cursor.count(WHAT)?;
        if count > MOST_STRINGS {
            return Err(limit(&start, "strings in the metadata", MOST_STRINGS));
        }
        let mut strings = Vec::new();
        for _ in 0..count {
            strings.push(cursor.text()?);
        }
        let mut types = Self::default();
        types.elements(cursor, &Strings(&strings))?;
        Ok(types)
    }

    fn elements(&mut self, cursor: &mut Cursor<'_>, strings: &Strings<'_>) -> Result<(), Damage> {
        const WHAT: &str = "the metadata";
        // For each depth: the number of elements that are still to be read.
        let mut open: Vec<u64> = vec![1];
        let mut fields = 0;
        // The depth of the class element that was read last. Its fields are one level deeper.
        let mut class_depth = None;
        while let Some(left) = open.last_mut() {
            if *left == 0 {
                open.pop();
                continue;
            }
            *left -= 1;
            let start = *cursor;
            if open.len() > MOST_DEPTH {
                let most = MOST_DEPTH as u64;
                return Err(limit(&start, "nested elements in the metadata", most));
            }
            let element = strings.get(cursor)?;
            let attributes = Attributes::read(cursor, strings)?;
            if element.is("class") {
                if self.list.len() >= MOST_TYPES {
                    return Err(limit(&start, "types", MOST_TYPES as u64));
                }
                let id = attributes.id.unwrap_or(0);
                let index = TypeIndex(u32::try_from(self.list.len()).unwrap_or(u32::MAX));
                self.by_id.insert(id, index);
                self.list.push(Type {
                    name: attributes.name,
                    id,
                    fields: Vec::new(),
                });
                class_depth = Some(open.len());
            } else if element.is("field")
                && class_depth == Some(open.len() - 1)
                && let Some(class) = self.list.last_mut()
            {
                fields += 1;
                if fields > MOST_FIELDS {
                    return Err(limit(&start, "fields", MOST_FIELDS as u64));
                }
                class.fields.push(Field {
                    name: attributes.name,
                    id: attributes.class.unwrap_or(0),
                    pooled: attributes.pooled,
                    array: attributes.array,
                });
            } else if class_depth.is_some_and(|depth| depth >= open.len()) {
                class_depth = None;
            }
            open.push(cursor.count(WHAT)?);
        }
        Ok(())
    }
}

fn limit(cursor: &Cursor<'_>, what: &'static str, most: u64) -> Damage {
    cursor.fault(Fault::Limit { what, most })
}

/// The strings of the metadata, by index.
struct Strings<'a>(&'a [Text<'a>]);

impl<'a> Strings<'a> {
    fn get(&self, cursor: &mut Cursor<'_>) -> Result<Word<'a>, Damage> {
        let start = *cursor;
        let index = cursor.count("the metadata")?;
        let text = usize::try_from(index).ok().and_then(|i| self.0.get(i));
        let count = self.0.len();
        text.map(|&text| Word(text))
            .ok_or_else(|| start.fault(Fault::MetadataString { index, count }))
    }
}

/// A string of the metadata.
#[derive(Clone, Copy)]
struct Word<'a>(Text<'a>);

impl Word<'_> {
    fn is(self, word: &str) -> bool {
        match self.0 {
            Text::Utf8(bytes) | Text::Latin1(bytes) => bytes == word.as_bytes(),
            _ => self.text() == word,
        }
    }

    fn text(self) -> String {
        self.0.decoded(MOST_CHARS).unwrap_or_default()
    }
}

/// The attributes of a metadata element. Only those attributes are stored that are needed to read the recording's
/// events and constants.
#[derive(Default)]
struct Attributes {
    name: Box<str>,
    id: Option<i64>,
    class: Option<i64>,
    pooled: bool,
    array: bool,
}

impl Attributes {
    fn read(cursor: &mut Cursor<'_>, strings: &Strings<'_>) -> Result<Self, Damage> {
        let mut attributes = Self::default();
        let count = cursor.count("the metadata")?;
        // `count` may be too large in a damaged file. Each attribute takes at least two bytes, so the loop then fails
        // at the end of the chunk.
        for _ in 0..count {
            let key = strings.get(cursor)?;
            let start = *cursor;
            let value = strings.get(cursor)?;
            let number = || {
                let text = value.text();
                let number = text.parse::<i64>();
                number.map_err(|_| start.fault(Fault::Number(text)))
            };
            if key.is("name") {
                attributes.name = value.text().into();
            } else if key.is("id") {
                // Annotations and settings can have an `id` that is not a number. Ignore such an id, because it is not
                // needed.
                attributes.id = number().ok();
            } else if key.is("class") {
                attributes.class = Some(number()?);
            } else if key.is("constantPool") {
                attributes.pooled = value.is("true");
            } else if key.is("dimension") {
                attributes.array = number()? > 0;
            }
        }
        Ok(attributes)
    }
}
