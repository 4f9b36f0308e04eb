//! Arrays in the Java heap. Some arrays consist of chunks, and each chunk is created when it is needed, or shortly
//! before. Other arrays contain the bytes of the site table.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::counters::Counters;
use crate::jvmti::calls::{Any, Bytes, Env, Global, Ints, Longs, Objects, Ref, Result};
use crate::sample_ref::{RefClass, Static};
use heapdiff_sites::Counter;

/// New values of static fields. All fields are set together once all objects exist. Before that, the fields do not
/// refer to these objects, so neither dumps nor an agent that already runs in this JVM find them.
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

    /// Creates an `Object[]` of `len` nulls for a field.
    pub(crate) fn objects(
        &mut self,
        env: &Env<'_>,
        name: &'static str,
        len: usize,
    ) -> Result<Arc<Global<Objects>>> {
        let array = Arc::new(env.objects(len)?.new_global_ref(env)?);
        self.0.push((name, Content::Objects(Arc::clone(&array))));
        Ok(array)
    }

    /// Creates an `int[]` of `len` zeros for a field.
    pub(crate) fn ints(
        &mut self,
        env: &Env<'_>,
        name: &'static str,
        len: usize,
    ) -> Result<Arc<Global<Ints>>> {
        let array = Arc::new(env.ints(len)?.new_global_ref(env)?);
        self.0.push((name, Content::Ints(Arc::clone(&array))));
        Ok(array)
    }

    /// Creates a `long[]` of `len` zeros for a field.
    pub(crate) fn longs(
        &mut self,
        env: &Env<'_>,
        name: &'static str,
        len: usize,
    ) -> Result<Arc<Global<Longs>>> {
        let array = Arc::new(env.longs(len)?.new_global_ref(env)?);
        self.0.push((name, Content::Longs(Arc::clone(&array))));
        Ok(array)
    }

    /// Sets all fields, in the order in which they were added. This allocates nothing in the Java heap.
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

/// An array of arrays in the heap. An inner array (chunk) is created when it is needed, or shortly before.
pub(crate) struct Chunks<K> {
    outer: Arc<Global<Objects>>,
    chunks: Box<[OnceLock<Global<K>>]>,
    /// True for each chunk that was added to the outer array.
    shown: Box<[AtomicBool]>,
    /// True for each chunk that a thread is creating before it is needed.
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

    /// Returns a chunk if it exists.
    pub(crate) fn get(&self, index: usize) -> Option<&Global<K>> {
        self.chunks.get(index)?.get()
    }

    /// Returns a chunk. If the chunk does not exist, creates it with `make`. Returns `None` if the heap is full or if
    /// `index` is out of range.
    ///
    /// If several threads need the same chunk at the same time, each of them creates one. The first chunk that is ready
    /// is used. Waiting for another thread could take long if that thread is not scheduled. Continuing without a chunk
    /// would lose a sample.
    fn ensure(
        &self,
        env: &Env<'_>,
        index: usize,
        make: impl FnOnce(&Env<'_>) -> Result<Global<K>>,
    ) -> Option<&Global<K>> {
        let place = self.chunks.get(index)?;
        if place.get().is_none() {
            // If another thread was faster, this chunk is dropped here, outside of any lock.
            if let Ok(chunk) = make(env) {
                drop(place.set(chunk));
            }
        }
        let chunk = place.get()?;
        let shown = &self.shown[index];
        if !shown.load(Acquire) {
            // Add the chunk to the outer array before anything is stored in the chunk. If two threads get here at once,
            // both add the chunk, which is harmless.
            let object: Ref<'_, Any> = chunk.get().any();
            self.outer.get().put(env, index, Some(object)).ok()?;
            shown.store(true, Release);
        }
        Some(chunk)
    }

    /// Creates a chunk that will be needed soon, unless another thread already creates it.
    fn preallocate(
        &self,
        env: &Env<'_>,
        index: usize,
        make: impl FnOnce(&Env<'_>) -> Result<Global<K>>,
    ) {
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
    /// Returns a chunk of `len` elements; see [`Chunks::ensure`].
    pub(crate) fn at(&self, env: &Env<'_>, index: usize, len: usize) -> Option<&Global<Objects>> {
        self.ensure(env, index, |env| nulls(env, len))
    }

    /// Creates a chunk that will be needed soon; see [`Chunks::preallocate`].
    pub(crate) fn prepare(&self, env: &Env<'_>, index: usize, len: usize) {
        self.preallocate(env, index, |env| nulls(env, len));
    }
}

fn nulls(env: &Env<'_>, len: usize) -> Result<Global<Objects>> {
    env.objects(len)?.new_global_ref(env)
}

impl LongChunks {
    /// Returns a chunk of `len` zeros; see [`Chunks::ensure`].
    pub(crate) fn at(&self, env: &Env<'_>, index: usize, len: usize) -> Option<&Global<Longs>> {
        self.ensure(env, index, |env| env.longs(len)?.new_global_ref(env))
    }
}

/// Size in bytes of a Java array that contains a piece of a site table (definitions of allocation sites). A batch of
/// definitions that is longer than this size gets a separate array of its length.
const PIECE: usize = 64 << 10;
/// Maximum number of Java arrays that contain one site table. The interner limits the definitions of sampled sites, so
/// that they fill at most half of this number of arrays.
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
    /// Indexes of the arrays of this site table that could not be created because the Java heap was full.
    free: Vec<usize>,
}

/// The bytes of the site table.
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

    /// Writes a batch of definitions in one step, so that a dump contains all of it or nothing. Returns true on
    /// success.
    pub(crate) fn write(&self, env: &Env<'_>, batch: &[u8], counters: &Counters) -> bool {
        let written = self.put(env, batch);
        if written {
            counters.add(Counter::BlobBytes, batch.len() as u64);
        }
        written
    }

    /// Writes a batch as [`Self::write`] does, but does not add its bytes to [`Counter::BlobBytes`].
    pub(crate) fn put(&self, env: &Env<'_>, batch: &[u8]) -> bool {
        let reserved = self.reserve(batch.len());
        let reserved = match reserved {
            Some(place) => Some(place),
            None => self.append_chunk(env, batch.len()),
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

    fn append_chunk(&self, env: &Env<'_>, len: usize) -> Option<(Arc<Global<Bytes>>, usize)> {
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
            array.new_global_ref(env)
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
        // Drop the old array outside of the lock, since that may call the JVM.
        drop(old);
        Some((array, 0))
    }
}
