//! Tables of live references in the heap.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};

use heapdiff_sites::CHUNK;

use crate::heap::{Fields, ObjectChunks};
use crate::jvmti::calls::{Env, JniError, Objects, Ref, Result};
use crate::ledger::Booking;
use crate::slots::{SlotRecord, SlotRecords};

/// A table with a fixed capacity. A chunk of it is created before the slots in this chunk are needed.
pub(crate) struct Table {
    chunks: ObjectChunks,
    capacity: u32,
    /// Lowest number of a slot that was never used.
    fresh: AtomicU32,
    /// Number of slots in use.
    live: AtomicU32,
    free: Mutex<Vec<u32>>,
    /// A record of each slot's content. With it, downsampling and the trace need no calls into the JVM.
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
        // Create the first chunk now. Without it there would be no slot for any sample.
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

    /// Reserves a slot, or returns `None` if the table is full.
    pub(crate) fn take(&self) -> Option<u32> {
        let freed = self.free().pop();
        let fresh = |next| (next < self.capacity).then_some(next + 1);
        let slot = freed.or_else(|| self.fresh.fetch_update(Relaxed, Relaxed, fresh).ok())?;
        self.live.fetch_add(1, Relaxed);
        Some(slot)
    }

    /// Frees slots. The caller must have removed the references from these slots before.
    pub(crate) fn free_slots(&self, slots: &[u32]) {
        for &slot in slots {
            self.records.clear(slot);
        }
        let count = u32::try_from(slots.len()).unwrap_or(u32::MAX);
        self.live.fetch_sub(count, Relaxed);
        self.free().extend_from_slice(slots);
    }

    /// Records the content of a reserved slot.
    pub(crate) fn record(&self, record: SlotRecord) {
        self.records.set(record);
    }

    /// Returns the record of a slot. Returns `None` if the slot is empty, or if another thread changes it during the
    /// call.
    pub(crate) fn record_at(&self, slot: u32) -> Option<SlotRecord> {
        self.records.at(slot)
    }

    /// Returns the uid of the sample in a slot, or 0 if the slot is empty.
    pub(crate) fn uid_at(&self, slot: u32) -> u64 {
        self.records.uid(slot)
    }

    /// Sets the account of the sample in a slot. An account has the sums for one pair of class and stack.
    pub(crate) fn set_booking(&self, slot: u32, booking: Booking) {
        self.records.set_booking(slot, booking);
    }

    /// Returns the number of slots that were ever used. They are the slots with the lowest numbers.
    pub(crate) fn places(&self) -> u32 {
        self.fresh.load(Relaxed)
    }

    /// Iterates over the records of all slots that are not empty.
    pub(crate) fn records(&self) -> impl Iterator<Item = SlotRecord> {
        (0..self.places()).filter_map(|slot| self.record_at(slot))
    }

    fn free(&self) -> std::sync::MutexGuard<'_, Vec<u32>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores a reference in a reserved slot. Returns false if the heap is full. When a quarter of the current chunk is
    /// in use, also creates the next chunk.
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

    /// Removes the reference from a slot. Returns true on success.
    pub(crate) fn clear(&self, env: &Env<'_>, slot: u32) -> bool {
        self.place(slot)
            .is_some_and(|(chunk, place)| chunk.put(env, place, None).is_ok())
    }

    /// Removes a reference from its slot, and calls `clear` for the reference itself. Without this call, under
    /// generational ZGC, a reference in the old generation would keep its object alive until the reference itself is
    /// collected.
    pub(crate) fn clear_reference(&self, env: &Env<'_>, slot: u32) -> bool {
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
            // If the call of `clear` fails, the sample's reference keeps its object alive until the reference itself is
            // collected.
            let _ = env.call_void(reference.get(), c"clear");
        }
        true
    }

    /// Clears all slots. The caller must make sure that nothing is stored in the table afterwards.
    pub(crate) fn clear_all(&self, env: &Env<'_>) {
        for record in self.records() {
            self.clear(env, record.slot);
        }
    }

    /// Clears all slots and the references in them. The caller must make sure that nothing is stored in the table
    /// afterwards.
    pub(crate) fn clear_all_references(&self, env: &Env<'_>) {
        for record in self.records() {
            self.clear_reference(env, record.slot);
        }
    }

    /// Returns the chunk of a slot, and the slot's index in this chunk.
    pub(crate) fn place(&self, slot: u32) -> Option<(Ref<'_, Objects>, usize)> {
        let (chunk, place) = Self::split(slot);
        Some((self.chunks.get(chunk)?.get(), place))
    }

    /// Iterates over the chunks in use, each with the number of its first slot.
    pub(crate) fn chunks(&self) -> impl Iterator<Item = (u32, Ref<'_, Objects>)> {
        let used = (self.fresh.load(Relaxed) as usize).div_ceil(CHUNK);
        (0..used).filter_map(|chunk| {
            let first = u32::try_from(chunk * CHUNK).ok()?;
            Some((first, self.chunks.get(chunk)?.get()))
        })
    }

    /// True if at most one eighth of the slots is free.
    pub(crate) fn is_nearly_full(&self) -> bool {
        self.live.load(Relaxed) >= self.capacity - self.capacity / 8
    }

    /// True if at least half of the slots are free.
    pub(crate) fn is_half_free(&self) -> bool {
        self.live.load(Relaxed) <= self.capacity / 2
    }

    /// Returns the number of slots.
    pub(crate) const fn capacity(&self) -> u32 {
        self.capacity
    }

    const fn split(slot: u32) -> (usize, usize) {
        (slot as usize / CHUNK, slot as usize % CHUNK)
    }
}
