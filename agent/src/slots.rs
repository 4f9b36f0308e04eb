//! A copy of each slot's content in the tables of samples and class definitions. The agent can read this copy without
//! calling the JVM.

use std::sync::OnceLock;

use heapdiff_sites::CHUNK;
use heapdiff_trace::Sample;

use crate::atomic::Ordering::{Acquire, Relaxed, Release};
use crate::atomic::{AtomicU32, AtomicU64};
use crate::ledger::Booking;

/// The sample or class definition in a slot.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SlotRecord {
    pub(crate) slot: u32,
    /// Unique id of a sample, never reused. For a class definition, the id of the class's type.
    pub(crate) uid: u64,
    pub(crate) size: u64,
    /// The sample's account in the [`crate::ledger`]. An account has the sums for one pair of class and stack.
    pub(crate) booking: Booking,
    /// Id of the thread's name.
    pub(crate) thread: u32,
    /// Time of the allocation, in milliseconds since the start of sampling.
    pub(crate) time: u32,
}

impl SlotRecord {
    /// Converts the record to a sample of the trace. `class` and `stack` are the ids of the sample's class and stack.
    pub(crate) fn sample(&self, (class, stack): (u32, u32)) -> Sample {
        Sample {
            uid: self.uid,
            class,
            stack,
            thread: self.thread,
            bytes: self.size,
            allocated_ms: self.time.into(),
        }
    }
}

#[derive(Default)]
struct AtomicRecord {
    /// The uid of the slot's content; 0 if the slot is empty.
    uid: AtomicU64,
    size: AtomicU64,
    booking: AtomicU32,
    thread: AtomicU32,
    time: AtomicU32,
}

impl AtomicRecord {
    fn set(&self, record: SlotRecord) {
        // Use `Release`. If a thread reads one of these new values, it then also sees that the uid of the slot's
        // previous sample was cleared.
        self.size.store(record.size, Release);
        self.set_booking(record.booking);
        self.thread.store(record.thread, Release);
        self.time.store(record.time, Release);
        self.uid.store(record.uid, Release);
    }

    fn clear(&self) {
        self.uid.store(0, Relaxed);
    }

    fn set_booking(&self, booking: Booking) {
        self.booking.store(booking.bits(), Release);
    }

    fn uid(&self) -> u64 {
        self.uid.load(Relaxed)
    }

    fn read(&self, slot: u32) -> Option<SlotRecord> {
        let uid = self.uid.load(Acquire);
        let record = SlotRecord {
            slot,
            uid,
            size: self.size.load(Acquire),
            booking: Booking::from_bits(self.booking.load(Acquire)),
            thread: self.thread.load(Acquire),
            time: self.time.load(Acquire),
        };
        // No two samples have the same uid. In records of class definitions, all values except the uid are 0. So if the
        // uid did not change during this call, all values belong to the sample or class definition with this uid.
        (uid != 0 && self.uid() == uid).then_some(record)
    }
}

/// The records of all slots, in chunks that are created as they fill.
///
/// The thread that reserved a slot writes its record, and later clears it. Other threads read records at any time,
/// without a lock.
pub(crate) struct SlotRecords(Box<[OnceLock<Box<[AtomicRecord]>>]>);

impl SlotRecords {
    pub(crate) fn new(capacity: usize) -> Self {
        let chunks = capacity.div_ceil(CHUNK);
        Self((0..chunks).map(|_| OnceLock::new()).collect())
    }

    fn get(&self, slot: u32) -> Option<&AtomicRecord> {
        let (chunk, place) = (slot as usize / CHUNK, slot as usize % CHUNK);
        self.0.get(chunk)?.get()?.get(place)
    }

    /// Writes the record of an empty slot. The caller must have reserved the slot.
    pub(crate) fn set(&self, record: SlotRecord) {
        let slot = record.slot as usize;
        let Some(chunk) = self.0.get(slot / CHUNK) else {
            return;
        };
        let records = chunk.get_or_init(|| (0..CHUNK).map(|_| AtomicRecord::default()).collect());
        records[slot % CHUNK].set(record);
    }

    /// Clears a slot's record.
    pub(crate) fn clear(&self, slot: u32) {
        if let Some(atomic) = self.get(slot) {
            atomic.clear();
        }
    }

    /// Sets the account of the sample in a slot. An account has the sums for one pair of class and stack.
    pub(crate) fn set_booking(&self, slot: u32, booking: Booking) {
        if let Some(atomic) = self.get(slot) {
            atomic.set_booking(booking);
        }
    }

    /// Returns the record of a slot. Returns `None` if the slot is empty, or if another thread changes it during the
    /// call.
    pub(crate) fn at(&self, slot: u32) -> Option<SlotRecord> {
        self.get(slot)?.read(slot)
    }

    /// Returns the uid of a slot's content, or 0 if the slot is empty.
    pub(crate) fn uid(&self, slot: u32) -> u64 {
        self.get(slot).map_or(0, AtomicRecord::uid)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    fn record(slot: u32, uid: u64) -> SlotRecord {
        let low = u32::try_from(uid & 0xffff_ffff).unwrap();
        SlotRecord {
            slot,
            uid,
            size: uid * 3,
            booking: Booking::from_bits(low),
            thread: low ^ 0x5555,
            time: low.wrapping_mul(7),
        }
    }

    #[test]
    fn a_record_exists_until_it_is_cleared() {
        let records = SlotRecords::new(CHUNK + 1);
        let last = u32::try_from(CHUNK).unwrap();
        assert!(records.at(last).is_none() && records.uid(last) == 0);
        records.set(record(last, 9));
        let found = records.at(last).unwrap();
        assert_eq!((found.uid, found.size, records.uid(last)), (9, 27, 9));
        records.set_booking(last, Booking::from_bits(77));
        assert_eq!(records.at(last).unwrap().booking.bits(), 77);
        records.clear(last);
        assert!(records.at(last).is_none() && records.uid(last) == 0);
        // A slot beyond the last chunk is empty, and writes to it have no effect.
        records.set(record(u32::MAX, 1));
        assert_eq!(records.uid(u32::MAX), 0);
    }

    /// A thread that reads a slot while another thread changes it never gets a mixture of two samples.
    #[test]
    fn a_read_never_mixes_two_samples() {
        let records = SlotRecords::new(1);
        let (stop, seen) = (AtomicBool::new(false), AtomicU64::new(0));
        let facts = |n: SlotRecord| (n.size, n.booking, n.thread, n.time);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Relaxed) {
                    if let Some(found) = records.at(0) {
                        assert_eq!(facts(found), facts(record(0, found.uid)), "{found:?}");
                        seen.fetch_add(1, Relaxed);
                    }
                }
            });
            for uid in 1..=100_000_000 {
                records.set(record(0, uid));
                records.clear(0);
                if seen.load(Relaxed) >= 4_000_000 {
                    break;
                }
            }
            stop.store(true, Relaxed);
        });
        assert!(seen.into_inner() > 0);
    }
}

/// Tests with the library loom. Loom runs all interleavings of the threads, and tries each value that a processor with
/// a weak memory order may read.
#[cfg(all(test, loom))]
mod weak_memory {
    use loom::sync::Arc;
    use loom::thread;

    use super::*;

    fn record(uid: u64) -> SlotRecord {
        let low = u32::try_from(uid).unwrap();
        SlotRecord {
            slot: 0,
            uid,
            size: uid,
            booking: Booking::from_bits(low),
            thread: low,
            time: low,
        }
    }

    /// While a slot is emptied and used again, a thread that reads the slot gets values of only one sample. Only the
    /// sample's booking (the position of its account in the ledger) may change during the read.
    #[test]
    fn a_read_never_mixes_two_samples() {
        loom::model(|| {
            let slot = Arc::new(AtomicRecord::default());
            slot.set(record(1));
            let writer = {
                let slot = Arc::clone(&slot);
                thread::spawn(move || {
                    slot.clear();
                    slot.set(record(2));
                    slot.set_booking(Booking::from_bits(3));
                })
            };
            if let Some(found) = slot.read(0) {
                let uid = found.uid;
                let low = u32::try_from(uid).unwrap();
                assert_eq!((found.size, found.thread, found.time), (uid, low, low));
                let booking = found.booking.bits();
                assert!(booking == low || (uid, booking) == (2, 3), "{found:?}");
            }
            writer.join().unwrap();
        });
    }
}
