//! Counters for ids, such as ids of sites or classes. The Java heap contains a copy of the counters, so that dumps
//! contain them.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use heapdiff_sites::TOTALS_CHUNK;

use crate::atomic::Changed;
use crate::heap::{Fields, LongChunks};
use crate::jvmti::calls::{Env, Result};

type Chunk = Box<[AtomicU64]>;

/// `N` counters for each id. The maximum number of ids is fixed.
pub(crate) struct Totals<const N: usize> {
    chunks: Box<[OnceLock<Chunk>]>,
    dirty: Box<[Changed]>,
    heap: LongChunks,
}

/// The values of all counters at an earlier time.
#[derive(Debug, Default)]
pub(crate) struct Seen(Vec<Vec<u64>>);

impl<const N: usize> Totals<N> {
    pub(crate) fn create(
        env: &Env<'_>,
        fields: &mut Fields,
        name: &'static str,
        limit: usize,
    ) -> Result<Self> {
        let count = limit.div_ceil(TOTALS_CHUNK);
        let totals = Self {
            chunks: (0..count).map(|_| OnceLock::new()).collect(),
            dirty: (0..count).map(|_| Changed::new()).collect(),
            heap: LongChunks::create(env, fields, name, count)?,
        };
        totals.heap.at(env, 0, N * TOTALS_CHUNK);
        Ok(totals)
    }

    /// Adds to the counters of an id. Returns their values before the addition.
    pub(crate) fn add(&self, id: u32, amounts: [u64; N]) -> [u64; N] {
        let (chunk, place) = Self::split(id);
        let Some(counters) = self.chunk(chunk) else {
            return [0; N];
        };
        let before = std::array::from_fn(|i| counters[place + i].fetch_add(amounts[i], Relaxed));
        self.dirty[chunk].mark();
        before
    }

    /// Sets the counters of an id.
    pub(crate) fn set(&self, id: u32, figures: [u64; N]) {
        let (chunk, place) = Self::split(id);
        if let Some(counters) = self.chunk(chunk) {
            (counters[place..].iter().zip(figures))
                .for_each(|(c, figure)| c.store(figure, Relaxed));
            self.dirty[chunk].mark();
        }
    }

    fn chunk(&self, chunk: usize) -> Option<&Chunk> {
        let lock = self.chunks.get(chunk)?;
        Some(lock.get_or_init(|| (0..N * TOTALS_CHUNK).map(|_| AtomicU64::new(0)).collect()))
    }

    /// Returns the ids whose counters have changed since `before`, each with the increases. Updates `before`.
    pub(crate) fn take_increases(&self, before: &mut Seen) -> Vec<(u32, [u64; N])> {
        let mut changes = Vec::new();
        before.0.resize(self.chunks.len(), Vec::new());
        let first_ids = (0_u32..).step_by(TOTALS_CHUNK);
        for ((chunk, before), first) in self.chunks.iter().zip(&mut before.0).zip(first_ids) {
            let Some(counters) = chunk.get() else {
                continue;
            };
            before.resize(counters.len(), 0);
            let figures = counters.chunks_exact(N).zip(before.chunks_exact_mut(N));
            for (id, (counters, before)) in (first..).zip(figures) {
                let now: [u64; N] = std::array::from_fn(|i| counters[i].load(Relaxed));
                let change: [u64; N] = std::array::from_fn(|i| now[i].saturating_sub(before[i]));
                if change != [0; N] {
                    before.copy_from_slice(&now);
                    changes.push((id, change));
                }
            }
        }
        changes
    }

    /// Undoes an update of `before` by [`Self::take_increases`], so that the next call returns these increases again.
    pub(crate) fn restore_increases(
        before: &mut Seen,
        changes: impl IntoIterator<Item = (u32, [u64; N])>,
    ) {
        for (id, change) in changes {
            let (chunk, place) = Self::split(id);
            let figures = before.0.get_mut(chunk);
            if let Some(figures) = figures.and_then(|f| f.get_mut(place..place + N)) {
                for (figure, change) in figures.iter_mut().zip(change) {
                    *figure -= change;
                }
            }
        }
    }

    /// Returns the chunk of an id, and the index of the id's first counter in the chunk.
    const fn split(id: u32) -> (usize, usize) {
        (id as usize / TOTALS_CHUNK, N * (id as usize % TOTALS_CHUNK))
    }

    /// Copies the counters of an id to the heap.
    pub(crate) fn copy_counters(&self, env: &Env<'_>, id: u32) {
        let (chunk, place) = Self::split(id);
        let Some(counters) = self.chunks.get(chunk).and_then(OnceLock::get) else {
            return;
        };
        let figures: [i64; N] =
            std::array::from_fn(|i| counters[place + i].load(Relaxed).cast_signed());
        if let Some(array) = self.heap.at(env, chunk, N * TOTALS_CHUNK) {
            // If this fails, the agent's thread copies the counters later.
            let _ = array.get().put(env, place, &figures);
        }
    }

    /// Copies changed chunks to the heap.
    pub(crate) fn flush(&self, env: &Env<'_>) {
        for (chunk, dirty) in self.dirty.iter().enumerate() {
            if !dirty.take() {
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
                .at(env, chunk, N * TOTALS_CHUNK)
                .is_some_and(|array| array.get().put(env, 0, &values).is_ok());
            if !copied {
                dirty.mark();
            }
        }
    }
}
