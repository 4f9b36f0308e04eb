//! The places of live references in the heap.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};

use heapdiff_sites::CHUNK;

use crate::heap::{Fields, ObjectChunks};
use crate::jvmti::calls::{Env, JniError, Objects, Ref, Result};
use crate::ledger::Booking;
use crate::slots::{SlotRecord, SlotRecords};

/// A table of a fixed capacity, its chunks made as it fills.
pub(crate) struct Table {
    chunks: ObjectChunks,
    capacity: u32,
    /// Places from here on were never used.
    fresh: AtomicU32,
    /// Places that are taken.
    live: AtomicU32,
    free: Mutex<Vec<u32>>,
    /// What is in each place, so that thinning and the trace need not ask the JVM for it.
    records: SlotRecords,
}

impl Table {
    pub(crate) fn create(
        env: &Env<'_>,
        fields: &mut Fields,
        name: &'static str,
        capacity: usize,
    ) -> Result<Self> {
        let chunks = ObjectChunks::create(env, fields, name, capacity.div_ceil(CHUNK))?;
        // Without the first there is no place for a sample.
        if chunks.at(env, 0, CHUNK.min(capacity)).is_none() {
            return Err(JniError::HeapFull);
        }
        Ok(Self {
            chunks,
            capacity: u32::try_from(capacity).unwrap_or(u32::MAX),
            fresh: AtomicU32::new(0),
            live: AtomicU32::new(0),
            free: Mutex::default(),
            records: SlotRecords::new(capacity),
        })
    }

    /// Takes a place; `None` when all are taken.
    pub(crate) fn take(&self) -> Option<u32> {
        let freed = self.free().pop();
        let fresh = |next| (next < self.capacity).then_some(next + 1);
        let slot = freed.or_else(|| self.fresh.fetch_update(Relaxed, Relaxed, fresh).ok())?;
        self.live.fetch_add(1, Relaxed);
        Some(slot)
    }

    /// Gives places back, whose references are gone from the heap.
    pub(crate) fn give_back(&self, slots: &[u32]) {
        for &slot in slots {
            self.records.clear(slot);
        }
        let count = u32::try_from(slots.len()).unwrap_or(u32::MAX);
        self.live.fetch_sub(count, Relaxed);
        self.free().extend_from_slice(slots);
    }

    /// Records what was put into a place that was taken.
    pub(crate) fn record(&self, record: SlotRecord) {
        self.records.set(record);
    }

    /// The record of a place; `None` if it is empty or is just being filled anew.
    pub(crate) fn record_at(&self, slot: u32) -> Option<SlotRecord> {
        self.records.at(slot)
    }

    /// The uid of what is in a place; 0 for none.
    pub(crate) fn uid_at(&self, slot: u32) -> u64 {
        self.records.uid(slot)
    }

    /// Says where a place's sample is booked now.
    pub(crate) fn book(&self, slot: u32, booking: Booking) {
        self.records.book(slot, booking);
    }

    /// Places that were ever used: those below this one.
    pub(crate) fn places(&self) -> u32 {
        self.fresh.load(Relaxed)
    }

    /// The records of all places that are not empty.
    pub(crate) fn records(&self) -> impl Iterator<Item = SlotRecord> {
        (0..self.places()).filter_map(|slot| self.record_at(slot))
    }

    fn free(&self) -> std::sync::MutexGuard<'_, Vec<u32>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a reference into a place that was taken; `false` if the heap has no room for another chunk. The
    /// next one is made when one is a quarter full.
    pub(crate) fn store(&self, env: &Env<'_>, slot: u32, object: Ref<'_>) -> bool {
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
        array.get().put(env, place, Some(object)).is_ok()
    }

    /// Empties a place.
    pub(crate) fn clear(&self, env: &Env<'_>, slot: u32) -> bool {
        self.place(slot)
            .is_some_and(|(chunk, place)| chunk.put(env, place, None).is_ok())
    }

    /// Empties a place and lets go of the reference's object: else a reference that is old would keep it under generational
    /// ZGC until it is collected itself.
    pub(crate) fn let_go(&self, env: &Env<'_>, slot: u32) -> bool {
        let Some((chunk, place)) = self.place(slot) else {
            return false;
        };
        let Ok(reference) = chunk.at(env, place) else {
            return false;
        };
        if chunk.put(env, place, None).is_err() {
            return false;
        }
        if let Some(reference) = reference {
            // If it fails the object is kept until the reference goes, which is all that was to be spared.
            let _ = env.tell(reference.get(), c"clear");
        }
        true
    }

    /// Empties all places, of a table that nothing is put into any more.
    pub(crate) fn clear_all(&self, env: &Env<'_>) {
        for record in self.records() {
            self.clear(env, record.slot);
        }
    }

    /// Lets go of the objects of a table that nothing is put into any more.
    pub(crate) fn let_all_go(&self, env: &Env<'_>) {
        for record in self.records() {
            self.let_go(env, record.slot);
        }
    }

    /// The chunk that a place is in, and where.
    pub(crate) fn place(&self, slot: u32) -> Option<(Ref<'_, Objects>, usize)> {
        let (chunk, place) = Self::split(slot);
        Some((self.chunks.get(chunk)?.get(), place))
    }

    /// The chunks in use, with the first place of each.
    pub(crate) fn chunks(&self) -> impl Iterator<Item = (u32, Ref<'_, Objects>)> {
        let used = (self.fresh.load(Relaxed) as usize).div_ceil(CHUNK);
        (0..used).filter_map(|chunk| {
            let first = u32::try_from(chunk * CHUNK).ok()?;
            Some((first, self.chunks.get(chunk)?.get()))
        })
    }

    /// Whether fewer than one place in eight is free.
    pub(crate) fn is_crowded(&self) -> bool {
        self.live.load(Relaxed) >= self.capacity - self.capacity / 8
    }

    /// Whether half of the places are free.
    pub(crate) fn is_half_free(&self) -> bool {
        self.live.load(Relaxed) <= self.capacity / 2
    }

    /// All its places.
    pub(crate) const fn capacity(&self) -> u32 {
        self.capacity
    }

    const fn split(slot: u32) -> (usize, usize) {
        (slot as usize / CHUNK, slot as usize % CHUNK)
    }
}
