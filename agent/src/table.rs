//! The places of live references in the heap.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use heapdiff_sites::CHUNK;
use jni::Env;
use jni::errors::Result;
use jni::objects::{Global, JObject, JObjectArray};

use crate::heap::ObjectChunks;
use crate::jvmti::java::RefClass;

/// A table of a fixed capacity, its chunks made as it fills.
pub(crate) struct Table {
    chunks: ObjectChunks,
    capacity: u32,
    /// Places from here on were never used.
    fresh: AtomicU32,
    free: Mutex<Vec<u32>>,
}

impl Table {
    pub(crate) fn create(
        env: &mut Env<'_>,
        refs: &RefClass,
        name: &str,
        capacity: usize,
    ) -> Result<Self> {
        let chunks = ObjectChunks::create(env, refs, name, capacity.div_ceil(CHUNK))?;
        chunks.at(env, 0, CHUNK.min(capacity));
        Ok(Self {
            chunks,
            capacity: u32::try_from(capacity).unwrap_or(u32::MAX),
            fresh: AtomicU32::new(0),
            free: Mutex::default(),
        })
    }

    /// Takes a place; `None` when all are taken.
    pub(crate) fn take(&self) -> Option<u32> {
        if let Some(slot) = self.free().pop() {
            return Some(slot);
        }
        self.fresh
            .fetch_update(Relaxed, Relaxed, |next| {
                (next < self.capacity).then_some(next + 1)
            })
            .ok()
    }

    /// Gives a place back, whose reference is gone from the heap.
    pub(crate) fn give_back(&self, slots: &[u32]) {
        self.free().extend_from_slice(slots);
    }

    fn free(&self) -> std::sync::MutexGuard<'_, Vec<u32>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a reference into a place that was taken; `false` if the heap has no room for another chunk. The
    /// next one is made when one is a quarter full.
    pub(crate) fn store(&self, env: &mut Env<'_>, slot: u32, object: &JObject<'_>) -> bool {
        let (chunk, place) = Self::split(slot);
        if place >= CHUNK / 4 && self.chunks.get(chunk + 1).is_none() {
            let left = (self.capacity as usize).saturating_sub((chunk + 1) * CHUNK);
            if left > 0 {
                self.chunks.prepare(env, chunk + 1, CHUNK.min(left));
            }
        }
        let left = (self.capacity as usize).saturating_sub(chunk * CHUNK);
        let Some(array) = self.chunks.at(env, chunk, CHUNK.min(left)) else {
            return false;
        };
        array.set_element(env, place, object).is_ok()
    }

    /// Empties a place.
    pub(crate) fn clear(&self, env: &Env<'_>, slot: u32) -> bool {
        self.place(slot)
            .is_some_and(|(chunk, place)| chunk.set_element(env, place, JObject::null()).is_ok())
    }

    /// The chunk that a place is in, and where.
    pub(crate) fn place(&self, slot: u32) -> Option<(&Global<JObjectArray<'static>>, usize)> {
        let (chunk, place) = Self::split(slot);
        Some((self.chunks.get(chunk)?, place))
    }

    /// The chunks in use, with the first place of each.
    pub(crate) fn chunks(&self) -> impl Iterator<Item = (u32, &Global<JObjectArray<'static>>)> {
        let used = (self.fresh.load(Relaxed) as usize).div_ceil(CHUNK);
        (0..used).filter_map(|chunk| {
            let first = u32::try_from(chunk * CHUNK).ok()?;
            Some((first, self.chunks.get(chunk)?))
        })
    }

    /// How many places are taken.
    pub(crate) fn live(&self) -> usize {
        let free = self.free().len();
        (self.fresh.load(Relaxed) as usize).saturating_sub(free)
    }

    /// Whether fewer than one place in eight is free.
    pub(crate) fn is_crowded(&self) -> bool {
        self.live() >= self.capacity as usize / 8 * 7
    }

    const fn split(slot: u32) -> (usize, usize) {
        (slot as usize / CHUNK, slot as usize % CHUNK)
    }
}
