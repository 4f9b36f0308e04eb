//! The pass over all objects. It hashes arrays and reads the content of strings, boxes and collections.

use std::hash::Hasher;

use rayon::prelude::*;
use rustc_hash::FxHasher;

use super::LEAST_ROOM;
use super::forms::{self, ArrayUse, Form};
use crate::answers::objects::object::{Body, Numbering};
use crate::bytes::array::Array;
use crate::error::Result;
use crate::graph::bits::Bits;
use crate::ids::{NONE, ObjectId, ObjectIndex};
use crate::progress::Progress;
use crate::records::outline::Segment;
use crate::records::record::Kind;
use crate::records::walk::{self, Object, Visitor, read_id};
use crate::snapshot::Snapshot;

/// Number of pieces of the file (about a megabyte each) that are read together. While the results of these pieces are
/// merged, they are in memory twice: in the lists of each piece, and in the lists of the whole file.
const BATCH: usize = 128;

/// A collection whose number of elements is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Collection {
    pub(super) object: u32,
    /// The collection's array, or [`NONE`] without one.
    pub(super) array: u32,
    /// Number of elements, or number of array elements that are in use.
    pub(super) used: u64,
    /// The array length that the elements need.
    pub(super) need: u64,
}

/// The results of the pass over all objects. Each list is in the order of the file.
pub(super) struct WasteScan {
    /// For each object without references: if it is an array of primitives, the hash of its type, length and content;
    /// otherwise 0.
    pub(super) hashes: Array<u64>,
    /// For each string: the string, its array, and 1 if its characters take two bytes, otherwise 0.
    pub(super) strings: Array<[u32; 3]>,
    /// For each box: its value, then a word with its class (upper half) and object number (lower half).
    pub(super) boxes: Array<[u64; 2]>,
    pub(super) collections: Vec<Collection>,
    /// Arrays whose second half is zero or null. Each pair is the array and the number of elements before the zeros,
    /// which is 0 if all elements are zero.
    pub(super) room: Vec<[u32; 2]>,
}

pub(super) fn scan(
    snapshot: &Snapshot,
    except: &[ObjectIndex],
    progress: &dyn Progress,
) -> Result<WasteScan> {
    let leaves = snapshot.leaf_shapes.len();
    let mut all = WasteScan {
        hashes: snapshot.store.zeroed(leaves)?,
        strings: snapshot.store.zeroed(0)?,
        boxes: snapshot.store.zeroed(0)?,
        collections: Vec::new(),
        room: Vec::new(),
    };
    let id_size = snapshot.header().id_size;
    let forms = forms::all(snapshot.classes(), id_size);
    let count = snapshot.object_count();
    let mut left_out = Bits::new(count as usize);
    let except = except.iter().filter(|o| u64::from(o.0) < count);
    except.for_each(|o| left_out.set(o.0));
    // Static fields with names like `<init_lock>` belong to the JVM. The program cannot avoid the objects
    // that they hold.
    let statics = snapshot.classes().iter().flat_map(|(_, c)| &c.statics);
    let hidden = statics.filter(|s| s.kind == Kind::Object && s.name.starts_with('<'));
    let hidden = hidden.filter_map(|s| snapshot.find(ObjectId(s.value)));
    hidden.for_each(|o| left_out.set(o.0));
    for pieces in snapshot.pieces.chunks(BATCH) {
        progress.check_cancelled()?;
        let parts: Vec<PieceContents<'_>> = pieces
            .par_iter()
            .map(|piece| {
                let mut part = PieceContents::new(
                    snapshot,
                    &forms,
                    &left_out,
                    Numbering::new(snapshot, piece),
                );
                let Segment { start, end } = piece.segment;
                snapshot.source().advise_sequential(start, end - start);
                // Errors of the walk are ignored, because this damage was already reported when the dump was opened.
                let _ = walk::walk(snapshot.source(), start, end, id_size, &mut part);
                progress.advance((end - start) as u64);
                part
            })
            .collect();
        for part in parts {
            for (leaf, hash) in part.hashes {
                all.hashes[leaf as usize] = hash;
            }
            all.strings.extend(&part.strings)?;
            all.boxes.extend(&part.boxes)?;
            all.collections.extend(part.collections);
            all.room.extend(part.room);
        }
    }
    Ok(all)
}

/// The results of the pass for one piece of the file.
struct PieceContents<'a> {
    snapshot: &'a Snapshot,
    forms: &'a [Option<Form>],
    left_out: &'a Bits,
    numbering: Numbering<'a>,
    /// Number of bytes of a reference in the heap.
    reference: usize,
    hashes: Vec<(u32, u64)>,
    strings: Vec<[u32; 3]>,
    boxes: Vec<[u64; 2]>,
    collections: Vec<Collection>,
    room: Vec<[u32; 2]>,
}

impl<'a> PieceContents<'a> {
    fn new(
        snapshot: &'a Snapshot,
        forms: &'a [Option<Form>],
        left_out: &'a Bits,
        numbering: Numbering<'a>,
    ) -> Self {
        Self {
            snapshot,
            forms,
            left_out,
            numbering,
            reference: snapshot.layout().reference as usize,
            hashes: Vec::new(),
            strings: Vec::new(),
            boxes: Vec::new(),
            collections: Vec::new(),
            room: Vec::new(),
        }
    }

    fn counts(&self, number: u32) -> bool {
        number != NONE
            && !self.left_out.has(number)
            && self.snapshot.tree().is_reachable(ObjectIndex(number))
    }

    fn read(&mut self, number: u32, class: u32, form: Form, body: &[u8]) -> Option<()> {
        let snapshot = self.snapshot;
        let object = |at: u32| -> Option<u32> {
            let at = at as usize;
            let id = match snapshot.header().id_size {
                8 => read_id::<8>(body.get(at..at + 8)?, 0),
                _ => read_id::<4>(body.get(at..at + 4)?, 0),
            };
            Some(match id {
                0 => NONE,
                id => snapshot.map.by_id(id, snapshot.split),
            })
        };
        let bits = |at: u32, kind: Kind| -> Option<u64> {
            let at = at as usize;
            let bytes = body.get(at..at + kind.size(8))?;
            Some(bytes.iter().fold(0, |v, &b| v << 8 | u64::from(b)))
        };
        let int = |at: u32| Some(i64::from((bits(at, Kind::Int)? as u32).cast_signed()));
        let is_wide = |coder: Option<u32>| match coder {
            Some(at) => bits(at, Kind::Byte).map(|b| b != 0),
            None => Some(false),
        };
        match form {
            Form::String { value, coder } => {
                let array = object(value)?;
                if array != NONE {
                    self.strings
                        .push([number, array, u32::from(is_wide(coder)?)]);
                }
            }
            // A flattened box takes no memory of its own.
            Form::Box { .. } if self.snapshot.shallow_bytes(ObjectIndex(number)) == 0 => {}
            Form::Box { value, kind } => {
                let value = bits(value, kind)?;
                self.boxes
                    .push([value, u64::from(class) << 32 | u64::from(number)]);
            }
            Form::Sized {
                size,
                array,
                usage,
                coder,
            } => {
                let used = u64::try_from(int(size)?).ok()?;
                let array = match usage {
                    ArrayUse::Nothing => NONE,
                    _ => object(array)?,
                };
                // Up to JDK 8, text is in a `char[]`, where each character takes one element.
                let need = usage.needed_length(used, is_wide(coder)?);
                self.collections.push(Collection {
                    object: number,
                    array,
                    used,
                    need,
                });
            }
            Form::Counted { size, cells, array } => {
                if object(cells)? != NONE {
                    return None;
                }
                let used = u64::try_from(bits(size, Kind::Long)?.cast_signed()).ok()?;
                // A count that does not fit in 32 bits is regarded as damaged.
                let used = Some(used).filter(|&u| u <= u64::from(u32::MAX))?;
                let (array, need) = (
                    object(array)?,
                    ArrayUse::EarlyTable.needed_length(used, false),
                );
                self.collections.push(Collection {
                    object: number,
                    array,
                    used,
                    need,
                });
            }
            Form::Deque { head, tail, array } => {
                let array = object(array)?;
                let len = snapshot.array_length(ObjectIndex(Some(array).filter(|&a| a != NONE)?));
                let len = i64::from(len?).max(1);
                let used = int(tail)?
                    .checked_sub(int(head)?)?
                    .rem_euclid(len)
                    .cast_unsigned();
                // One element of a deque's array is always unused.
                self.collections.push(Collection {
                    object: number,
                    array,
                    used,
                    need: used + 1,
                });
            }
        }
        Some(())
    }
}

/// Returns the number of elements before the zeros at the end. An element has `size` bytes.
fn trimmed_len(bytes: &[u8], size: usize) -> usize {
    let (head, words) = bytes.split_at(bytes.len() % 8);
    let zeros = words.rchunks_exact(8).take_while(|w| **w == [0; 8]).count();
    let rest = &words[..words.len() - 8 * zeros];
    let end = match rest.iter().rposition(|&b| b != 0) {
        Some(last) => head.len() + last + 1,
        None => head
            .iter()
            .rposition(|&b| b != 0)
            .map_or(0, |last| last + 1),
    };
    end.div_ceil(size)
}

/// Returns the number of elements in use, that is, before the zeros at the end. Returns `None` if more than half of the
/// elements are in use, or if the unused elements have too few bytes to be reported. An element has `size` bytes in the
/// file and `width` bytes in the heap.
fn room(bytes: &[u8], size: usize, width: usize) -> Option<u32> {
    let len = bytes.len() / size;
    let half = bytes.get(len.div_ceil(2) * size..)?;
    // A quick check: in most arrays the last word is not zero.
    if half.iter().rev().take(8).any(|&b| b != 0) {
        return None;
    }
    let used = trimmed_len(bytes, size);
    let unused = (len - used) * width;
    let worth = unused as u64 >= LEAST_ROOM && used <= len / 2;
    worth.then(|| u32::try_from(used).unwrap_or(u32::MAX))
}

/// Returns the hash of an array of primitives. The hash is never 0.
fn hash(kind: Kind, len: u32, elements: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write_u64(u64::from(len) << 8 | kind as u64);
    hasher.write(elements);
    hasher.finish().max(1)
}

impl Visitor for PieceContents<'_> {
    #[inline(always)]
    fn instance(&mut self, object: Object, class: u64, body: &[u8]) {
        let content = Body::Instance(class, body);
        let index = self.snapshot.classes().by_id(ObjectId(class));
        let form = index.and_then(|c| Some((c, self.forms[c.index()]?)));
        let Some((index, form)) = form else {
            self.numbering.counted(object.id, content);
            return;
        };
        let number = self.numbering.of(object.id, content);
        if self.counts(number) {
            // If the body is too short for the fields of its class, ignore the object.
            let _ = self.read(number, index.0, form, body);
        }
    }

    #[inline(always)]
    fn object_array(&mut self, object: Object, class: u64, elements: &[u8]) {
        let content = Body::Objects(class, elements);
        let Some(used) = room(elements, self.snapshot.header().id_size, self.reference) else {
            self.numbering.counted(object.id, content);
            return;
        };
        let number = self.numbering.of(object.id, content);
        if self.counts(number) {
            self.room.push([number, used]);
        }
    }

    #[inline(always)]
    fn primitive_array(&mut self, object: Object, kind: Kind, len: u32, elements: &[u8]) {
        let number = self
            .numbering
            .of(object.id, Body::Primitives(kind, len, elements));
        let leaf = number.wrapping_sub(self.snapshot.split.inner);
        // In stripped dumps of Android, arrays have a length but no elements.
        let told = len == 0 || !elements.is_empty();
        if !told || (leaf as usize) >= self.snapshot.leaf_shapes.len() || !self.counts(number) {
            return;
        }
        let size = kind.size(8);
        let used = room(elements, size, size);
        if let Some(used) = used {
            self.room.push([number, used]);
        }
        self.hashes.push((leaf, hash(kind, len, elements)));
    }
}
