//! Finds the arrays that a redaction keeps. The search starts at static fields. It walks only blocks (parts of the heap
//! records) that may contain the wanted ids.

use std::collections::{HashMap, HashSet};

use rayon::prelude::*;

use crate::answers::jvm::PROPERTIES;
use crate::ids::ObjectId;
use crate::records::id_table::IdTable;
use crate::records::record::Kind;
use crate::records::walk::{self, Object, Visitor};
use crate::redaction::rules::{KeptTables, Rules, is_text};
use crate::redaction::survey::{Block, Survey};

/// Maximum number of system properties to read. A JVM has about a hundred.
const ENTRIES: usize = 1 << 14;
/// Maximum length of a chain in one bucket of the properties' hash table.
const CHAIN: usize = 16;
/// Maximum number of bytes of a property's value.
const VALUE: usize = 256;

/// Arrays whose content is not replaced by a token or zeros, by id.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// Arrays that are kept unchanged.
    pub(super) whole: HashSet<u64>,
    /// Arrays that the redacted dump contains with changed content, and this content.
    pub(super) anew: HashMap<u64, Vec<u8>>,
    /// The ids of all arrays in `whole` and `anew`. The id of each array in the dump is looked up in this set.
    ids: IdTable,
}

/// An object's record.
#[derive(Clone, Copy, Debug)]
enum Found<'a> {
    Instance { class: u64, body: &'a [u8] },
    Objects(&'a [u8]),
    Primitives(Kind, &'a [u8]),
}

impl Kept {
    pub(super) fn find(
        bytes: &[u8],
        survey: &Survey,
        rules: &Rules<'_>,
        overwrite: &dyn Fn(&mut [u8]),
    ) -> Self {
        let mut kept = Self::default();
        let finder = Finder { bytes, survey };
        finder.properties(&mut kept);
        for tables in &rules.tables {
            finder.tables(tables, overwrite, &mut kept);
        }
        let ids: Vec<u64> = kept.whole.iter().chain(kept.anew.keys()).copied().collect();
        kept.ids = IdTable::new(ids.into_iter());
        kept
    }

    /// True if a redaction keeps an array, unchanged or with other content.
    #[inline]
    pub(super) fn has(&self, id: u64) -> bool {
        self.ids.get(id).is_some()
    }
}

struct Finder<'a> {
    bytes: &'a [u8],
    survey: &'a Survey,
}

impl<'a> Finder<'a> {
    /// Keeps the values of the system properties that identify the JVM and its layout.
    fn properties(&self, kept: &mut Kept) -> Option<()> {
        let properties = self.one(self.static_value("java.lang.System", "props")?)?;
        let table = match self.field(properties, "map") {
            Some(map) => self.field(self.one(map)?, "table")?,
            None => self.field(properties, "table")?,
        };
        let Found::Objects(buckets) = self.one(table)? else {
            return None;
        };
        let mut entries: Vec<u64> = self.ids(buckets).take(ENTRIES).collect();
        let mut pairs = Vec::new();
        for _ in 0..CHAIN {
            let found = self.all(&entries);
            if found.is_empty() || pairs.len() >= ENTRIES {
                break;
            }
            pairs.extend(found.iter().filter_map(|&entry| {
                let value = self
                    .field(entry, "val")
                    .or_else(|| self.field(entry, "value"))?;
                Some((self.field(entry, "key")?, value))
            }));
            let next = |&entry| {
                self.field(entry, "next")
                    .or_else(|| self.field(entry, "first"))
            };
            entries = found.iter().filter_map(next).collect();
        }
        let strings: Vec<u64> = pairs.iter().map(|p| p.0).collect();
        let arrays = self.arrays(&strings);
        let texts = self.lookup(arrays.values().copied());
        let wanted = pairs.iter().filter(|(key, _)| {
            let text = arrays.get(key).and_then(|a| texts.get(a));
            text.is_some_and(|&text| PROPERTIES.into_iter().any(|p| has_text(text, p)))
        });
        let values: Vec<u64> = wanted.map(|p| p.1).collect();
        let arrays: HashSet<u64> = self.arrays(&values).into_values().collect();
        for (id, found) in self.lookup(arrays.into_iter()) {
            if let Found::Primitives(Kind::Byte | Kind::Char, text) = found
                && text.len() <= VALUE
                && text.iter().all(|b| matches!(b, 0 | b' '..=b'~'))
            {
                kept.whole.insert(id);
            }
        }
        Some(())
    }

    /// Returns the character arrays of strings, by the strings' ids.
    fn arrays(&self, strings: &[u64]) -> HashMap<u64, u64> {
        let found = self.lookup(strings.iter().copied());
        let array = |(&id, &string): (&u64, &Found<'a>)| Some((id, self.field(string, "value")?));
        found.iter().filter_map(array).collect()
    }

    /// Keeps the numbers and names in tables that reports need. The static fields of the class `tables.class` lead to
    /// the tables.
    fn tables(&self, tables: &KeptTables<'_>, overwrite: &dyn Fn(&mut [u8]), kept: &mut Kept) {
        for name in tables.figures {
            let Some(id) = self.static_value(tables.class, name) else {
                continue;
            };
            match self.one(id) {
                Some(Found::Objects(chunks)) => {
                    let chunks = self.lookup(self.ids(chunks));
                    let figures = chunks
                        .into_iter()
                        .filter(|(_, found)| has_only_numbers(*found));
                    kept.whole.extend(figures.map(|(id, _)| id));
                }
                Some(found) if has_only_numbers(found) => {
                    kept.whole.insert(id);
                }
                _ => {}
            }
        }
        for [name, _, field] in tables.held {
            let table = self.static_value(tables.class, name);
            let Some(Found::Objects(objects)) = table.and_then(|id| self.one(id)) else {
                continue;
            };
            let objects = self.lookup(self.ids(objects));
            let arrays = objects.values().filter_map(|&o| self.field(o, field));
            let arrays = self.lookup(arrays).into_iter();
            let figures = arrays.filter(|(_, found)| has_only_numbers(*found));
            kept.whole.extend(figures.map(|(id, _)| id));
        }
        for name in tables.names {
            let table = self
                .static_value(tables.class, name)
                .and_then(|id| self.one(id));
            let Some(Found::Objects(pieces)) = table else {
                continue;
            };
            let mut seen = HashSet::new();
            let ids: Vec<u64> = self.ids(pieces).filter(|&id| seen.insert(id)).collect();
            let found = self.lookup(ids.iter().copied());
            let pieces = ids.iter().filter_map(|id| match found.get(id) {
                Some(&Found::Primitives(Kind::Byte, bytes)) => Some((*id, bytes)),
                _ => None,
            });
            let (ids, pieces): (Vec<u64>, Vec<&[u8]>) = pieces.unzip();
            let Some(cleaned) = (tables.clean)(&pieces, overwrite) else {
                continue;
            };
            for ((id, piece), cleaned) in ids.into_iter().zip(pieces).zip(cleaned) {
                if cleaned.len() == piece.len() {
                    kept.anew.insert(id, cleaned);
                }
            }
        }
    }

    /// Returns the id of the object to which a static field of a boot loader class refers. Returns `None` if the field
    /// does not exist or is null.
    fn static_value(&self, class: &str, field: &str) -> Option<u64> {
        let classes = &self.survey.classes;
        let mut named = classes.by_name(class).iter().map(|&c| &classes[c]);
        let class = named.find(|c| c.loader.is_null() && c.dumped)?;
        let field = class.statics.iter().find(|f| &*f.name == field)?;
        (field.kind == Kind::Object && field.value != 0).then_some(field.value)
    }

    /// Returns the id in a field of an instance. `None` for null.
    fn field(&self, found: Found<'a>, name: &str) -> Option<u64> {
        let Found::Instance { class, body } = found else {
            return None;
        };
        let classes = &self.survey.classes;
        let mut at = 0;
        for class in classes.chain(classes.by_id(ObjectId(class))?) {
            for field in &classes[class].fields {
                if field.kind == Kind::Object && &*field.name == name {
                    let id = body.get(at..at + self.survey.id_size)?;
                    return self.ids(id).next();
                }
                at += field.kind.size(self.survey.id_size);
            }
        }
        None
    }

    /// Returns the ids in these bytes of a record. Null ids are left out.
    fn ids(&self, bytes: &'a [u8]) -> impl Iterator<Item = u64> + use<'a> {
        let ids = bytes.chunks_exact(self.survey.id_size);
        let ids = ids.map(|id| id.iter().fold(0, |v, &b| v << 8 | u64::from(b)));
        ids.filter(|&id| id != 0)
    }

    fn one(&self, id: u64) -> Option<Found<'a>> {
        self.lookup(std::iter::once(id)).remove(&id)
    }

    fn all(&self, ids: &[u64]) -> Vec<Found<'a>> {
        let found = self.lookup(ids.iter().copied());
        ids.iter().filter_map(|id| found.get(id).copied()).collect()
    }

    /// Returns the records of these objects. If several objects have the same id, returns the first.
    ///
    /// Cost: a walk over each block that may contain one of the ids, according to the block's smallest and largest id.
    fn lookup(&self, ids: impl Iterator<Item = u64>) -> HashMap<u64, Found<'a>> {
        let mut wanted: Vec<u64> = ids.collect();
        wanted.sort_unstable();
        wanted.dedup();
        let blocks = self.survey.blocks.par_iter().filter(|block| {
            let (from, to) = block.ids;
            let first = wanted.partition_point(|&id| id < from);
            wanted.get(first).is_some_and(|&id| id <= to)
        });
        let found: Vec<(u64, Found<'a>)> = blocks
            .flat_map_iter(|block| self.find_in_block(block, &wanted))
            .collect();
        let mut by_id = HashMap::with_capacity(found.len());
        for (id, found) in found {
            by_id.entry(id).or_insert(found);
        }
        by_id
    }

    fn find_in_block(&self, block: &Block, wanted: &[u64]) -> Vec<(u64, Found<'a>)> {
        let mut visitor = FindVisitor {
            wanted,
            found: Vec::new(),
        };
        // The walk cannot fail, because blocks (groups of records) end before the first damage.
        let _ = walk::walk(
            self.bytes,
            block.start,
            block.end,
            self.survey.id_size,
            &mut visitor,
        );
        let found = visitor.found.into_iter();
        found
            .filter_map(|(id, found)| Some((id, self.held(found)?)))
            .collect()
    }

    /// Returns a record that was found, as slices of the file.
    fn held(&self, place: PlaceOf) -> Option<Found<'a>> {
        let id_size = self.survey.id_size;
        Some(match place {
            PlaceOf::Instance(at, class, len) => Found::Instance {
                class,
                body: self.part(at + 1 + 2 * id_size + 8, len)?,
            },
            PlaceOf::Objects(at, len) => Found::Objects(self.part(at + 1 + 2 * id_size + 8, len)?),
            PlaceOf::Primitives(at, kind, len) => {
                Found::Primitives(kind, self.part(at + 1 + id_size + 9, len)?)
            }
        })
    }

    fn part(&self, at: usize, len: usize) -> Option<&'a [u8]> {
        self.bytes.get(at..at + len)
    }
}

/// The offset of an object's record, and the length of the object's content.
#[derive(Clone, Copy)]
enum PlaceOf {
    Instance(usize, u64, usize),
    Objects(usize, usize),
    Primitives(usize, Kind, usize),
}

struct FindVisitor<'w> {
    wanted: &'w [u64],
    found: Vec<(u64, PlaceOf)>,
}

impl FindVisitor<'_> {
    #[inline(always)]
    fn record_if_wanted(&mut self, object: Object, place: impl FnOnce() -> PlaceOf) {
        if self.wanted.binary_search(&object.id).is_ok() {
            self.found.push((object.id, place()));
        }
    }
}

impl Visitor for FindVisitor<'_> {
    #[inline(always)]
    fn instance(&mut self, object: Object, class: u64, body: &[u8]) {
        self.record_if_wanted(object, || PlaceOf::Instance(object.at, class, body.len()));
    }
    #[inline(always)]
    fn object_array(&mut self, object: Object, _: u64, elements: &[u8]) {
        self.record_if_wanted(object, || PlaceOf::Objects(object.at, elements.len()));
    }
    #[inline(always)]
    fn primitive_array(&mut self, object: Object, kind: Kind, _: u32, elements: &[u8]) {
        self.record_if_wanted(object, || {
            PlaceOf::Primitives(object.at, kind, elements.len())
        });
    }
}

fn has_only_numbers(found: Found<'_>) -> bool {
    matches!(found, Found::Primitives(Kind::Int | Kind::Long, _))
}

/// True if an object is an array of characters that has this text.
fn has_text(found: Found<'_>, text: &str) -> bool {
    match found {
        Found::Primitives(Kind::Byte, bytes) => is_text(bytes, false, text),
        Found::Primitives(Kind::Char, bytes) => is_text(bytes, true, text),
        _ => false,
    }
}
