//! A chunk: its header, its events, and the constants that the events refer to.
//!
//! A recording is a sequence of independent chunks. Two kinds of events describe the chunk itself. The metadata event
//! describes the layout of all other events. Checkpoint events hold constants (stacks, classes, names), each with its
//! type and key. Constants can come before or after the events that refer to them. So a chunk is read twice: once for
//! the positions of its constants, and once for its events.
//!
//! ```text
//! chunk:        header (68 bytes) | event | checkpoint | event | ... | metadata | ...
//! event:        size | type id | values of the fields
//! checkpoint:   size | 1 | start | duration | distance to previous | kind | number of pools | pools
//! pool:         type id | number of constants | key, value | key, value | ...
//! ```

use rustc_hash::FxHashMap;

use crate::cursor::{Cursor, Text};
use crate::error::{Damage, Fault};
use crate::layout::{Array, Item, Layouts, Value, item_of};
use crate::types::{TypeIndex, Types};

pub(crate) const MAGIC: &[u8] = b"FLR\0";
/// Size of a chunk's header in bytes.
pub(crate) const HEADER: usize = 68;
/// Maximum number of constants in one chunk, counting only the kinds that are needed.
const MOST_CONSTANTS: usize = 1 << 22;
/// Type ids of the metadata event and of checkpoint events.
const METADATA: i64 = 0;
const CHECKPOINT: i64 = 1;

/// The header of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) size: u64,
    metadata: i64,
    /// Time at which the chunk starts, in nanoseconds since 1970.
    pub(crate) start_ns: i64,
    pub(crate) duration_ns: i64,
    start_ticks: i64,
    ticks_per_second: i64,
    compressed: bool,
    /// True if the JVM was still writing to the chunk. The header then describes only the part of the chunk that was
    /// already flushed.
    is_open: bool,
}

impl Header {
    /// Reads a header. `base` is the offset of the chunk in the file.
    pub(crate) fn read(bytes: &[u8], base: u64) -> Result<Self, Damage> {
        let mut cursor = Cursor::new(bytes, base, false);
        let magic = cursor.take(4, "the chunk's header")?;
        if magic != MAGIC {
            return Err(Fault::Magic(magic.to_vec()).at(base));
        }
        let version = cursor.take(4, "the chunk's header")?;
        let number = |at: usize| u16::from_be_bytes([version[at], version[at + 1]]);
        let (major, minor) = (number(0), number(2));
        if !(1..=2).contains(&major) {
            return Err(Fault::Version { major, minor }.at(base + 4));
        }
        let size = cursor.raw_long()?.cast_unsigned();
        if size < HEADER as u64 {
            return Err(Fault::ChunkSize(size).at(base + 8));
        }
        let _last_checkpoint = cursor.raw_long()?;
        let metadata = cursor.raw_long()?;
        let start_ns = cursor.raw_long()?;
        let duration_ns = cursor.raw_long()?;
        let start_ticks = cursor.raw_long()?;
        let at = cursor.offset();
        let ticks_per_second = cursor.raw_long()?;
        if ticks_per_second <= 0 {
            return Err(Fault::Clock(ticks_per_second).at(at));
        }
        let features = cursor.take(4, "the chunk's header")?;
        Ok(Self {
            size,
            metadata,
            start_ns,
            duration_ns,
            start_ticks,
            ticks_per_second,
            compressed: features[3] & 1 == 1,
            is_open: features[0] != 0,
        })
    }

    /// Converts a time of the chunk's clock to nanoseconds since 1970.
    pub(crate) fn time_ns(&self, ticks: i64) -> i64 {
        self.start_ns
            .saturating_add(self.span_ns(ticks.saturating_sub(self.start_ticks)))
    }

    /// Converts a number of ticks of the chunk's clock to nanoseconds.
    pub(crate) fn span_ns(&self, ticks: i64) -> i64 {
        let ns = i128::from(ticks) * 1_000_000_000 / i128::from(self.ticks_per_second);
        i64::try_from(ns).unwrap_or(if ns < 0 { i64::MIN } else { i64::MAX })
    }
}

/// The position of an event in the chunk. Metadata and checkpoints are events, too.
#[derive(Clone, Copy, Debug)]
struct Found {
    kind: i64,
    /// The offset of the first byte after the event's size and type.
    body: usize,
    end: usize,
}

/// A chunk with its types and the positions of its constants.
#[derive(Debug)]
pub(crate) struct Chunk<'a> {
    pub(crate) header: Header,
    cursor: Cursor<'a>,
    pub(crate) types: Types,
    layouts: Layouts,
    constants: FxHashMap<(TypeIndex, i64), usize>,
    /// The offset of the end of the last complete event.
    end: usize,
    /// Damaged parts of the chunk. They are left out when the chunk is read.
    pub(crate) damage: Vec<Damage>,
}

impl<'a> Chunk<'a> {
    /// Indexes a chunk. `bytes` may be shorter than the header says. Positions are stored only for constants of the
    /// types in `kinds`.
    ///
    /// Cost: one step for each event and each constant.
    pub(crate) fn open(bytes: &'a [u8], base: u64, kinds: &[&str]) -> Result<Self, Damage> {
        let header = Header::read(bytes, base)?;
        let end = usize::try_from(header.size).unwrap_or(usize::MAX);
        let cursor = Cursor::new(&bytes[..end.min(bytes.len())], base, header.compressed);
        let mut chunk = Self {
            header,
            cursor,
            types: Types::default(),
            layouts: Layouts::default(),
            constants: FxHashMap::default(),
            end: bytes.len(),
            damage: Vec::new(),
        };
        if header.is_open {
            chunk.damage.push(Fault::Open.at(base + 64));
        }
        let mut checkpoints = Vec::new();
        let mut metadata = None;
        let mut at = HEADER;
        while let Some(found) = chunk.event(&mut at) {
            match found.kind {
                // Use the metadata event that the header points to, because it is complete. Earlier metadata events
                // lack types that were added later.
                METADATA => {
                    let named = usize::try_from(header.metadata).ok();
                    let is_named = named.is_some_and(|n| n < found.body && found.body <= n + 18);
                    if is_named || !matches!(metadata, Some((true, _))) {
                        metadata = Some((is_named, found));
                    }
                }
                CHECKPOINT => checkpoints.push(found),
                _ => {}
            }
        }
        chunk.end = at;
        let Some((_, metadata)) = metadata else {
            // If the metadata is missing because the chunk ends early, return the damage found at that end.
            let unfinished = Fault::Unfinished.at(base);
            return Err(chunk.damage.pop().unwrap_or(unfinished));
        };
        let mut cursor = chunk.cursor.part(metadata.body, metadata.end);
        chunk.types = Types::read(&mut cursor)?;
        chunk.layouts = Layouts::new(&chunk.types);
        let kinds: Vec<TypeIndex> = kinds
            .iter()
            .filter_map(|k| chunk.types.find_by_name(k))
            .collect();
        for checkpoint in checkpoints {
            if let Err(damage) = chunk.checkpoint(checkpoint, &kinds) {
                chunk.damage.push(damage);
            }
        }
        Ok(chunk)
    }

    /// Returns the event at `at` and moves `at` to its end. Returns `None` at the end of the chunk, or if the event is
    /// damaged. Damage is recorded.
    fn event(&mut self, at: &mut usize) -> Option<Found> {
        let mut cursor = self.cursor.part(*at, usize::MAX);
        if cursor.is_at_end() {
            return None;
        }
        let start = cursor;
        let mut found = || {
            let size = cursor.count("an event")?;
            let end = usize::try_from(size).ok().and_then(|s| at.checked_add(s));
            let kind = cursor.long("an event")?;
            let body = cursor.at();
            match end {
                Some(end) if end >= body => {
                    let there = self.cursor.part(end, usize::MAX).at();
                    if there == end {
                        Ok(Found { kind, body, end })
                    } else {
                        Err(start.fault(Fault::Short("an event")))
                    }
                }
                _ => Err(start.fault(Fault::EventSize(size))),
            }
        };
        match found() {
            Ok(found) => {
                *at = found.end;
                Some(found)
            }
            Err(damage) => {
                self.damage.push(damage);
                None
            }
        }
    }

    /// Stores the positions of the constants in a checkpoint event.
    fn checkpoint(&mut self, found: Found, kinds: &[TypeIndex]) -> Result<(), Damage> {
        const WHAT: &str = "a checkpoint";
        let mut cursor = self.cursor.part(found.body, found.end);
        // Skip the start, the duration, and the distance to the previous checkpoint. The distance is not needed,
        // because all checkpoints are found without them.
        for _ in 0..3 {
            cursor.long(WHAT)?;
        }
        // The type of the checkpoint.
        cursor.byte(WHAT)?;
        let pools = cursor.count(WHAT)?;
        for _ in 0..pools {
            let start = cursor;
            let id = cursor.long(WHAT)?;
            let index = self.types.by_id(id);
            let index = index.ok_or_else(|| start.fault(Fault::UnknownType(id)))?;
            let kept = kinds.contains(&index);
            self.layouts.make(&self.types, index, start.offset())?;
            let item = item_of(&self.types, index);
            let count = cursor.count(WHAT)?;
            // Each constant has at least one byte, for its key. So the loop stops at the end of the chunk, even if the
            // count is too large.
            for _ in 0..count {
                let key = cursor.long(WHAT)?;
                if kept {
                    if self.constants.len() >= MOST_CONSTANTS {
                        let (what, most) = ("constants in a chunk", MOST_CONSTANTS as u64);
                        return Err(cursor.fault(Fault::Limit { what, most }));
                    }
                    self.constants.insert((index, key), cursor.at());
                }
                self.layouts.pass(item, 1, &mut cursor)?;
            }
        }
        Ok(())
    }

    /// Calls `each` with every event of the wanted types, in file order.
    ///
    /// Cost: one step for each event.
    pub(crate) fn events(
        &mut self,
        wanted: impl Fn(&str) -> bool,
        mut each: impl FnMut(&Self, Record<'a, '_>) -> Result<(), Damage>,
    ) {
        let mut chosen: FxHashMap<i64, TypeIndex> = FxHashMap::default();
        for number in 0..self.types.list.len() {
            let index = TypeIndex(u32::try_from(number).unwrap_or(u32::MAX));
            let of = &self.types.list[number];
            if !wanted(&of.name) {
                continue;
            }
            match self.layouts.make(&self.types, index, self.cursor.offset()) {
                Ok(()) => {
                    chosen.insert(of.id, index);
                }
                Err(damage) => self.damage.push(damage),
            }
        }
        let mut values = Vec::new();
        let mut at = HEADER;
        while at < self.end {
            // Discard the damage that is found here, because `open` has already reported it.
            let told = self.damage.len();
            let found = self.event(&mut at);
            self.damage.truncate(told);
            let Some(found) = found else { break };
            let Some(&index) = chosen.get(&found.kind) else {
                continue;
            };
            let mut cursor = self.cursor.part(found.body, found.end);
            let read = self.layouts.read(index, &mut cursor, &mut values);
            let done = read.and_then(|()| {
                let record = Record {
                    index,
                    values: &values,
                };
                each(self, record)
            });
            if let Err(damage) = done {
                self.damage.push(damage);
            }
        }
    }

    /// Returns the name of a type.
    pub(crate) fn name(&self, index: TypeIndex) -> &str {
        self.types.get(index).map_or("", |t| &t.name)
    }

    /// Returns the index of a field in the records of a type.
    pub(crate) fn field(&self, index: TypeIndex, name: &str) -> Option<usize> {
        self.layouts.get(index)?.iter().position(|s| s.name == name)
    }

    /// Reads a constant into `values`. Returns `false` if the constant is missing or cannot be read.
    pub(crate) fn constant(&self, index: TypeIndex, key: i64, values: &mut Vec<Value<'a>>) -> bool {
        values.clear();
        let Some(&at) = self.constants.get(&(index, key)) else {
            return false;
        };
        let mut cursor = self.cursor.part(at, usize::MAX);
        if let Item::Plain(_) = item_of(&self.types, index) {
            // In a recording, a constant whose type has no fields can only be a string.
            return match cursor.text() {
                Ok(text) => {
                    values.push(Value::Text(text));
                    true
                }
                Err(_) => false,
            };
        }
        let read = self.layouts.read_to_array(index, &mut cursor, values, true);
        read.is_ok()
    }

    /// Calls `each` with each element of an array of records, until `each` returns `false`.
    pub(crate) fn elements(&self, array: Array, mut each: impl FnMut(Record<'a, '_>) -> bool) {
        let Item::Record(index) = array.item else {
            return;
        };
        if self.layouts.get(index).is_none_or(Vec::is_empty) {
            return;
        }
        let mut cursor = self.cursor.part(array.at, usize::MAX);
        let mut values = Vec::new();
        for _ in 0..array.count {
            if self.layouts.read(index, &mut cursor, &mut values).is_err() {
                return;
            }
            let record = Record {
                index,
                values: &values,
            };
            if !each(record) {
                return;
            }
        }
    }

    /// Returns a string of at most `most` characters. If the field refers to a string constant, returns the constant's
    /// value.
    pub(crate) fn text(&self, text: Text<'a>, most: usize) -> Option<String> {
        let Text::Pooled(key) = text else {
            return text.decoded(most);
        };
        let mut values = Vec::new();
        let index = self.types.find_by_name("java.lang.String")?;
        match (self.constant(index, key, &mut values), values.first()) {
            // Follow only one reference. A constant that refers to another constant is treated as missing.
            (true, Some(Value::Text(text))) => text.decoded(most),
            _ => None,
        }
    }

    /// Returns the offset of the chunk in the file.
    pub(crate) fn offset(&self) -> u64 {
        self.cursor.offset()
    }
}

/// An event, a constant or an element of an array, with its values in the order of its type's fields.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record<'a, 'v> {
    pub(crate) index: TypeIndex,
    values: &'v [Value<'a>],
}

impl<'a, 'v> Record<'a, 'v> {
    pub(crate) fn new(index: TypeIndex, values: &'v [Value<'a>]) -> Self {
        Self { index, values }
    }

    /// Returns the value of the field with this name.
    pub(crate) fn get(&self, chunk: &Chunk<'_>, name: &str) -> Option<Value<'a>> {
        let at = chunk.field(self.index, name)?;
        self.values.get(at).copied()
    }

    /// Returns the integer in a field, or 0 if the field is missing.
    pub(crate) fn int(&self, chunk: &Chunk<'_>, name: &str) -> i64 {
        match self.get(chunk, name) {
            Some(Value::Int(int)) => int,
            _ => 0,
        }
    }

    /// Returns the integer in a field as an unsigned number, or 0 if the integer is negative or the field is missing.
    pub(crate) fn size(&self, chunk: &Chunk<'_>, name: &str) -> u64 {
        u64::try_from(self.int(chunk, name)).unwrap_or(0)
    }

    /// Returns the type and the key of a constant that a field refers to.
    pub(crate) fn constant(&self, chunk: &Chunk<'_>, name: &str) -> Option<(TypeIndex, i64)> {
        match self.get(chunk, name)? {
            Value::Constant(index, key) => Some((index, key)),
            _ => None,
        }
    }

    /// Returns the string in a field, at most `most` characters of it. Returns `None` if the string is null or the
    /// field is missing.
    pub(crate) fn text(&self, chunk: &Chunk<'a>, name: &str, most: usize) -> Option<String> {
        match self.get(chunk, name)? {
            Value::Text(text) => chunk.text(text, most),
            Value::Constant(index, key) => {
                let mut values = Vec::new();
                match (chunk.constant(index, key, &mut values), values.first()) {
                    (true, Some(Value::Text(text))) => chunk.text(*text, most),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}
