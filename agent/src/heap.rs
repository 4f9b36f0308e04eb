//! Arrays in the Java heap: chunks that are added before they are needed, and the site table's bytes.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::counters::Counters;
use crate::jvmti::calls::{Any, Bytes, Env, Global, Ints, Longs, Objects, Ref, Result};
use crate::sample_ref::{RefClass, Static};
use heapdiff_sites::Counter;

/// Static fields that are set at once, when all that they refer to is there: until then a dump, and an agent that is at work
/// in this JVM, see nothing of it.
#[derive(Default)]
pub(crate) struct Fields(Vec<(&'static str, Content)>);

enum Content {
    Int(i32),
    Long(i64),
    Objects(Arc<Global<Objects>>),
    Ints(Arc<Global<Ints>>),
    Longs(Arc<Global<Longs>>),
}

impl Fields {
    pub(crate) fn int(&mut self, name: &'static str, value: i32) {
        self.0.push((name, Content::Int(value)));
    }

    pub(crate) fn long(&mut self, name: &'static str, value: i64) {
        self.0.push((name, Content::Long(value)));
    }

    /// Makes an `Object[]` of so many `null`s for a field.
    pub(crate) fn objects(
        &mut self,
        env: &Env<'_>,
        name: &'static str,
        len: usize,
    ) -> Result<Arc<Global<Objects>>> {
        let array = Arc::new(env.objects(len)?.hold(env)?);
        self.0.push((name, Content::Objects(Arc::clone(&array))));
        Ok(array)
    }

    /// Makes an `int[]` of so many zeroes for a field.
    pub(crate) fn ints(
        &mut self,
        env: &Env<'_>,
        name: &'static str,
        len: usize,
    ) -> Result<Arc<Global<Ints>>> {
        let array = Arc::new(env.ints(len)?.hold(env)?);
        self.0.push((name, Content::Ints(Arc::clone(&array))));
        Ok(array)
    }

    /// Makes a `long[]` of so many zeroes for a field.
    pub(crate) fn longs(
        &mut self,
        env: &Env<'_>,
        name: &'static str,
        len: usize,
    ) -> Result<Arc<Global<Longs>>> {
        let array = Arc::new(env.longs(len)?.hold(env)?);
        self.0.push((name, Content::Longs(Arc::clone(&array))));
        Ok(array)
    }

    /// Sets them all, in the order in which they came. Nothing is made for that.
    pub(crate) fn set(self, env: &Env<'_>, refs: &RefClass) -> Result<()> {
        self.0.into_iter().try_for_each(|(name, content)| {
            let value = match &content {
                Content::Int(value) => Static::Int(*value),
                Content::Long(value) => Static::Long(*value),
                Content::Objects(array) => Static::Objects(array.get()),
                Content::Ints(array) => Static::Ints(array.get()),
                Content::Longs(array) => Static::Longs(array.get()),
            };
            refs.set(env, name, value)
        })
    }
}

/// An array of arrays in the heap, the inner ones made when they are needed.
pub(crate) struct Chunks<K> {
    outer: Arc<Global<Objects>>,
    chunks: Box<[OnceLock<Global<K>>]>,
    /// Which chunks are in the outer array.
    shown: Box<[AtomicBool]>,
    /// Which chunks somebody makes ahead of their need.
    claimed: Box<[AtomicBool]>,
}

impl<K> Chunks<K> {
    pub(crate) fn create(
        env: &Env<'_>,
        fields: &mut Fields,
        name: &'static str,
        count: usize,
    ) -> Result<Self> {
        Ok(Self {
            outer: fields.objects(env, name, count)?,
            chunks: (0..count).map(|_| OnceLock::new()).collect(),
            shown: (0..count).map(|_| AtomicBool::new(false)).collect(),
            claimed: (0..count).map(|_| AtomicBool::new(false)).collect(),
        })
    }

    /// A chunk that is there.
    pub(crate) fn get(&self, index: usize) -> Option<&Global<K>> {
        self.chunks.get(index)?.get()
    }

    /// A chunk, made by `make` if it is not there. `None` only if the heap has no room.
    ///
    /// Threads that need it at once each make one, and the first to be done decides: to wait for another
    /// could take as long as that is not scheduled, and to go without would lose a sample.
    fn ensure(
        &self,
        env: &Env<'_>,
        index: usize,
        make: impl FnOnce(&Env<'_>) -> Result<Global<K>>,
    ) -> Option<&Global<K>> {
        let place = self.chunks.get(index)?;
        if place.get().is_none() {
            // One that came too late is dropped here, outside of any lock.
            if let Ok(chunk) = make(env) {
                drop(place.set(chunk));
            }
        }
        let chunk = place.get()?;
        let shown = &self.shown[index];
        if !shown.load(Acquire) {
            // The chunk is shown before anything is put into it. Two threads that come at once both do so.
            let object: Ref<'_, Any> = chunk.get().any();
            self.outer.get().put(env, index, Some(object)).ok()?;
            shown.store(true, Release);
        }
        Some(chunk)
    }

    /// Makes a chunk that will be needed soon, unless somebody does already.
    fn ahead(&self, env: &Env<'_>, index: usize, make: impl FnOnce(&Env<'_>) -> Result<Global<K>>) {
        let Some(claim) = self.claimed.get(index) else {
            return;
        };
        if self.get(index).is_none() && !claim.swap(true, AcqRel) {
            self.ensure(env, index, make);
            claim.store(false, Release);
        }
    }
}

/// Chunks of objects.
pub(crate) type ObjectChunks = Chunks<Objects>;
/// Chunks of `long`s.
pub(crate) type LongChunks = Chunks<Longs>;

impl ObjectChunks {
    /// A chunk of so many `null`s, made if it is not there; see [`Chunks::ensure`].
    pub(crate) fn at(&self, env: &Env<'_>, index: usize, len: usize) -> Option<&Global<Objects>> {
        self.ensure(env, index, |env| nulls(env, len))
    }

    /// As [`Self::at`] for a chunk that can wait; see [`Chunks::ahead`].
    pub(crate) fn prepare(&self, env: &Env<'_>, index: usize, len: usize) {
        self.ahead(env, index, |env| nulls(env, len));
    }
}

fn nulls(env: &Env<'_>, len: usize) -> Result<Global<Objects>> {
    env.objects(len)?.hold(env)
}

impl LongChunks {
    /// A chunk of so many zeroes, made if it is not there; see [`Chunks::ensure`].
    pub(crate) fn at(&self, env: &Env<'_>, index: usize, len: usize) -> Option<&Global<Longs>> {
        self.ensure(env, index, |env| env.longs(len)?.hold(env))
    }
}

/// Bytes of a piece of the site table. A longer batch has a piece of its own.
const PIECE: usize = 64 << 10;
/// So many pieces at most: twice what the interner's budget can fill.
const PIECES: usize = 2048;

struct Piece {
    array: Arc<Global<Bytes>>,
    used: usize,
    len: usize,
}

#[derive(Default)]
struct Log {
    piece: Option<Piece>,
    pieces: usize,
    /// Places of pieces that the heap had no room for.
    free: Vec<usize>,
}

/// The site table's bytes.
pub(crate) struct Blobs {
    outer: Arc<Global<Objects>>,
    log: Mutex<Log>,
}

impl Blobs {
    pub(crate) fn create(env: &Env<'_>, fields: &mut Fields, name: &'static str) -> Result<Self> {
        Ok(Self {
            outer: fields.objects(env, name, PIECES)?,
            log: Mutex::default(),
        })
    }

    /// Writes a batch in one step, so that a dump has all of it or nothing. Whether that worked.
    pub(crate) fn write(&self, env: &Env<'_>, batch: &[u8], counters: &Counters) -> bool {
        let written = self.put(env, batch);
        if written {
            counters.add(Counter::BlobBytes, batch.len() as u64);
        }
        written
    }

    /// As [`Self::write`], of a table whose bytes nobody counts.
    pub(crate) fn put(&self, env: &Env<'_>, batch: &[u8]) -> bool {
        let reserved = self.reserve(batch.len());
        let reserved = match reserved {
            Some(place) => Some(place),
            None => self.add_piece(env, batch.len()),
        };
        let Some((array, offset)) = reserved else {
            return false;
        };
        let bytes: Vec<i8> = batch.iter().map(|b| b.cast_signed()).collect();
        array.get().put(env, offset, &bytes).is_ok()
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reserve(&self, len: usize) -> Option<(Arc<Global<Bytes>>, usize)> {
        let mut log = self.log();
        let piece = log.piece.as_mut()?;
        let offset = piece.used;
        if piece.len - offset < len {
            return None;
        }
        piece.used += len;
        Some((Arc::clone(&piece.array), offset))
    }

    fn add_piece(&self, env: &Env<'_>, len: usize) -> Option<(Arc<Global<Bytes>>, usize)> {
        let index = {
            let mut log = self.log();
            match log.free.pop() {
                Some(index) => index,
                None if log.pieces >= PIECES => return None,
                None => {
                    log.pieces += 1;
                    log.pieces - 1
                }
            }
        };
        let size = len.max(PIECE);
        let made = env.bytes(size).and_then(|array| {
            let outer = self.outer.get();
            outer.put(env, index, Some(array.get().any()))?;
            array.hold(env)
        });
        let Ok(array) = made else {
            self.log().free.push(index);
            return None;
        };
        let array = Arc::new(array);
        let piece = Piece {
            array: Arc::clone(&array),
            used: len,
            len: size,
        };
        let old = { self.log().piece.replace(piece) };
        // Dropping it may call into the JVM: not under the lock.
        drop(old);
        Some((array, 0))
    }
}
