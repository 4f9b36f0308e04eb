//! The agent's own records of what each slot of the sample table contains. The agent can read them without calling the
//! JVM.

use std::sync::OnceLock;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};

use heapdiff_sites::CHUNK;
use heapdiff_trace::Sample;

use crate::ledger::Booking;

/// The sample or class definition in a slot.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SlotRecord {
    pub(crate) slot: u32,
    /// Unique id of a sample, never reused. For a class definition, the id of the class's name.
    pub(crate) uid: u64,
    pub(crate) size: u64,
    /// The account in the ledger to which the sample is booked.
    pub(crate) booking: Booking,
    /// Id of the thread's name.
    pub(crate) thread: u32,
    /// Time of the allocation, in milliseconds since the start of sampling.
    pub(crate) time: u32,
}

impl SlotRecord {
    /// Converts the record to a sample of the trace, with this class and stack.
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

    /// Records the content of a slot. The slot is empty, and the caller has reserved it.
    pub(crate) fn set(&self, record: SlotRecord) {
        let slot = record.slot as usize;
        let Some(chunk) = self.0.get(slot / CHUNK) else {
            return;
        };
        let records = chunk.get_or_init(|| (0..CHUNK).map(|_| AtomicRecord::default()).collect());
        let atomic = &records[slot % CHUNK];
        // Use `Release`. If a thread reads one of these new values, it then also sees that the uid of the slot's
        // previous sample was cleared.
        atomic.size.store(record.size, Release);
        atomic.booking.store(record.booking.bits(), Release);
        atomic.thread.store(record.thread, Release);
        atomic.time.store(record.time, Release);
        atomic.uid.store(record.uid, Release);
    }

    /// Clears a slot's record.
    pub(crate) fn clear(&self, slot: u32) {
        if let Some(atomic) = self.get(slot) {
            atomic.uid.store(0, Relaxed);
        }
    }

    /// Replaces the reference from a slot's sample to its account. The trace needs the account.
    pub(crate) fn set_booking(&self, slot: u32, booking: Booking) {
        if let Some(atomic) = self.get(slot) {
            atomic.booking.store(booking.bits(), Relaxed);
        }
    }

    /// Returns the record of a slot. Returns `None` if the slot is empty, or if another thread changes it during the
    /// call.
    pub(crate) fn at(&self, slot: u32) -> Option<SlotRecord> {
        let atomic = self.get(slot)?;
        let uid = atomic.uid.load(Acquire);
        let record = SlotRecord {
            slot,
            uid,
            size: atomic.size.load(Acquire),
            booking: Booking::from_bits(atomic.booking.load(Acquire)),
            thread: atomic.thread.load(Acquire),
            time: atomic.time.load(Acquire),
        };
        // No uid is used twice. So if the uid is unchanged, all values belong to it.
        (uid != 0 && atomic.uid.load(Relaxed) == uid).then_some(record)
    }

    /// Returns the uid of a slot's content, or 0 if it is empty.
    pub(crate) fn uid(&self, slot: u32) -> u64 {
        self.get(slot).map_or(0, |atomic| atomic.uid.load(Relaxed))
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
