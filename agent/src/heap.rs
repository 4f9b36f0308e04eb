//! Arrays in the Java heap: chunks that are added before they are needed, and the site table's bytes.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use jni::Env;
use jni::errors::Result;
use jni::objects::{Global, JByteArray, JLongArray, JObject, JObjectArray};
use jni::refs::Reference;

use crate::counters::Counters;
use crate::jvmti::java::RefClass;
use heapdiff_sites::Counter;

pub(crate) const OBJECTS: &str = "[Ljava/lang/Object;";
pub(crate) const INTS: &str = "[I";
pub(crate) const LONGS: &str = "[J";

/// An `Object[]` of so many `null`s.
pub(crate) fn objects<'local>(
    env: &mut Env<'local>,
    len: usize,
) -> Result<JObjectArray<'local, JObject<'local>>> {
    JObjectArray::<JObject>::new(env, len, JObject::null())
}

/// Keeps hold of an object beyond the call that made it.
pub(crate) fn held<'local, O>(env: &mut Env<'local>, object: O) -> Result<Global<O::GlobalKind>>
where
    O: Reference + AsRef<JObject<'local>> + Into<JObject<'local>>,
{
    let global = env.new_global_ref(&object);
    env.delete_local_ref(object);
    global
}

/// Makes an `Object[]`, puts it into a static field and keeps hold of it.
pub(crate) fn static_objects(
    env: &mut Env<'_>,
    refs: &RefClass,
    name: &str,
    len: usize,
) -> Result<Global<JObjectArray<'static>>> {
    let array = objects(env, len)?;
    refs.set_static(env, name, OBJECTS, (&array).into())?;
    held(env, array)
}

/// An array of arrays in the heap, the inner ones made when they are needed.
pub(crate) struct Chunks<A>
where
    A: Into<JObject<'static>>
        + AsRef<JObject<'static>>
        + Default
        + Reference
        + Send
        + Sync
        + 'static,
{
    outer: Global<JObjectArray<'static>>,
    chunks: Box<[OnceLock<Global<A>>]>,
    /// Which chunks are in the outer array.
    shown: Box<[AtomicBool]>,
    /// Which chunks somebody makes ahead of their need.
    claimed: Box<[AtomicBool]>,
}

impl<A> Chunks<A>
where
    A: Into<JObject<'static>>
        + AsRef<JObject<'static>>
        + Default
        + Reference
        + Send
        + Sync
        + 'static,
{
    pub(crate) fn create(
        env: &mut Env<'_>,
        refs: &RefClass,
        name: &str,
        count: usize,
    ) -> Result<Self> {
        Ok(Self {
            outer: static_objects(env, refs, name, count)?,
            chunks: (0..count).map(|_| OnceLock::new()).collect(),
            shown: (0..count).map(|_| AtomicBool::new(false)).collect(),
            claimed: (0..count).map(|_| AtomicBool::new(false)).collect(),
        })
    }

    /// A chunk that is there.
    pub(crate) fn get(&self, index: usize) -> Option<&Global<A>> {
        self.chunks.get(index)?.get()
    }

    /// A chunk, made by `make` if it is not there. `None` only if the heap has no room.
    ///
    /// Threads that need it at once each make one, and the first to be done decides: to wait for another
    /// could take as long as that is not scheduled, and to go without would lose a sample.
    fn ensure(
        &self,
        env: &mut Env<'_>,
        index: usize,
        make: impl FnOnce(&mut Env<'_>) -> Result<Global<A>>,
    ) -> Option<&Global<A>> {
        let place = self.chunks.get(index)?;
        if place.get().is_none() {
            match make(env) {
                // One that came too late is dropped here, outside of any lock.
                Ok(chunk) => drop(place.set(chunk)),
                Err(_) => env.exception_clear(),
            }
        }
        let chunk = place.get()?;
        let shown = &self.shown[index];
        if !shown.load(Acquire) {
            // The chunk is shown before anything is put into it. Two threads that come at once both do so.
            let object: &JObject<'_> = (**chunk).as_ref();
            if self.outer.set_element(env, index, object).is_err() {
                env.exception_clear();
                return None;
            }
            shown.store(true, Release);
        }
        Some(chunk)
    }

    /// Makes a chunk that will be needed soon, unless somebody does already.
    fn ahead(
        &self,
        env: &mut Env<'_>,
        index: usize,
        make: impl FnOnce(&mut Env<'_>) -> Result<Global<A>>,
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
pub(crate) type ObjectChunks = Chunks<JObjectArray<'static>>;
/// Chunks of `long`s.
pub(crate) type LongChunks = Chunks<JLongArray<'static>>;

impl ObjectChunks {
    /// A chunk of so many `null`s, made if it is not there; see [`Chunks::ensure`].
    pub(crate) fn at(
        &self,
        env: &mut Env<'_>,
        index: usize,
        len: usize,
    ) -> Option<&Global<JObjectArray<'static>>> {
        self.ensure(env, index, |env| nulls(env, len))
    }

    /// As [`Self::at`] for a chunk that can wait; see [`Chunks::ahead`].
    pub(crate) fn prepare(&self, env: &mut Env<'_>, index: usize, len: usize) {
        self.ahead(env, index, |env| nulls(env, len));
    }
}

fn nulls(env: &mut Env<'_>, len: usize) -> Result<Global<JObjectArray<'static>>> {
    let array = objects(env, len)?;
    held(env, array)
}

impl LongChunks {
    /// A chunk of so many zeroes, made if it is not there; see [`Chunks::ensure`].
    pub(crate) fn at(
        &self,
        env: &mut Env<'_>,
        index: usize,
        len: usize,
    ) -> Option<&Global<JLongArray<'static>>> {
        self.ensure(env, index, |env| {
            let array = JLongArray::new(env, len)?;
            held(env, array)
        })
    }
}

/// Bytes of a piece of the site table. A longer batch has a piece of its own.
const PIECE: usize = 64 << 10;
/// So many pieces at most: twice what the interner's budget can fill.
const PIECES: usize = 2048;

struct Piece {
    array: Arc<Global<JByteArray<'static>>>,
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
    outer: Global<JObjectArray<'static>>,
    log: Mutex<Log>,
}

impl Blobs {
    pub(crate) fn create(env: &mut Env<'_>, refs: &RefClass, name: &str) -> Result<Self> {
        Ok(Self {
            outer: static_objects(env, refs, name, PIECES)?,
            log: Mutex::default(),
        })
    }

    /// Writes a batch in one step, so that a dump has all of it or nothing. Whether that worked.
    pub(crate) fn write(&self, env: &mut Env<'_>, batch: &[u8], counters: &Counters) -> bool {
        let reserved = self.reserve(batch.len());
        let reserved = match reserved {
            Some(place) => Some(place),
            None => self.add_piece(env, batch.len()),
        };
        let Some((array, offset)) = reserved else {
            return false;
        };
        let bytes: Vec<i8> = batch.iter().map(|b| b.cast_signed()).collect();
        let offset = i32::try_from(offset).unwrap_or(i32::MAX);
        if array.set_region(env, offset, &bytes).is_err() {
            env.exception_clear();
            return false;
        }
        counters.add(Counter::BlobBytes, batch.len() as u64);
        true
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reserve(&self, len: usize) -> Option<(Arc<Global<JByteArray<'static>>>, usize)> {
        let mut log = self.log();
        let piece = log.piece.as_mut()?;
        let offset = piece.used;
        if piece.len - offset < len {
            return None;
        }
        piece.used += len;
        Some((Arc::clone(&piece.array), offset))
    }

    fn add_piece(
        &self,
        env: &mut Env<'_>,
        len: usize,
    ) -> Option<(Arc<Global<JByteArray<'static>>>, usize)> {
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
        let made = JByteArray::new(env, size).and_then(|array| {
            self.outer.set_element(env, index, &array)?;
            held(env, array)
        });
        let Ok(array) = made else {
            env.exception_clear();
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
