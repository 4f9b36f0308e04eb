//! Objects and bytes by id: counted here, copied to the heap.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use heapdiff_sites::TOTALS_CHUNK;
use jni::Env;
use jni::errors::Result;

use crate::heap::LongChunks;
use crate::jvmti::java::RefClass;

type Chunk = Box<[AtomicU64]>;

/// A pair of counters for each id below a limit.
pub(crate) struct Totals {
    chunks: Box<[OnceLock<Chunk>]>,
    dirty: Box<[AtomicBool]>,
    heap: LongChunks,
}

impl Totals {
    pub(crate) fn create(
        env: &mut Env<'_>,
        refs: &RefClass,
        name: &str,
        limit: usize,
    ) -> Result<Self> {
        let count = limit.div_ceil(TOTALS_CHUNK);
        let totals = Self {
            chunks: (0..count).map(|_| OnceLock::new()).collect(),
            dirty: (0..count).map(|_| AtomicBool::new(false)).collect(),
            heap: LongChunks::create(env, refs, name, count)?,
        };
        totals.heap.at(env, 0, 2 * TOTALS_CHUNK);
        Ok(totals)
    }

    /// Counts an object; the pair before it.
    pub(crate) fn add(&self, id: u32, bytes: u64) -> (u64, u64) {
        let (chunk, place) = (id as usize / TOTALS_CHUNK, 2 * (id as usize % TOTALS_CHUNK));
        let Some(lock) = self.chunks.get(chunk) else {
            return (0, 0);
        };
        let pairs = lock.get_or_init(|| (0..2 * TOTALS_CHUNK).map(|_| AtomicU64::new(0)).collect());
        let before = (
            pairs[place].fetch_add(1, Relaxed),
            pairs[place + 1].fetch_add(bytes, Relaxed),
        );
        self.dirty[chunk].store(true, Relaxed);
        before
    }

    /// Copies one pair to the heap.
    pub(crate) fn show(&self, env: &mut Env<'_>, id: u32) {
        let (chunk, place) = (id as usize / TOTALS_CHUNK, 2 * (id as usize % TOTALS_CHUNK));
        let Some(pairs) = self.chunks.get(chunk).and_then(OnceLock::get) else {
            return;
        };
        let pair = [&pairs[place], &pairs[place + 1]].map(|n| n.load(Relaxed).cast_signed());
        if let Some(array) = self.heap.at(env, chunk, 2 * TOTALS_CHUNK) {
            let place = i32::try_from(place).unwrap_or(0);
            // The agent's thread copies it again.
            if array.set_region(env, place, &pair).is_err() {
                env.exception_clear();
            }
        }
    }

    /// Copies to the heap what has changed.
    pub(crate) fn flush(&self, env: &mut Env<'_>) {
        for (chunk, dirty) in self.dirty.iter().enumerate() {
            if !dirty.swap(false, Relaxed) {
                continue;
            }
            let pairs = self.chunks[chunk].get();
            let values: Vec<i64> = pairs
                .iter()
                .flat_map(|pairs| pairs.iter())
                .map(|n| n.load(Relaxed).cast_signed())
                .collect();
            let copied = self
                .heap
                .at(env, chunk, 2 * TOTALS_CHUNK)
                .is_some_and(|array| array.set_region(env, 0, &values).is_ok());
            if !copied {
                env.exception_clear();
                dirty.store(true, Relaxed);
            }
        }
    }
}
