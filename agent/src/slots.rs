//! The agent's own record of what is in each slot of a table, so that the JVM need not be asked.

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
    /// Never given twice. Of a class definition it is its name's id.
    pub(crate) uid: u64,
    pub(crate) size: u64,
    /// Where the trace has it booked.
    pub(crate) booking: Booking,
    /// The id of the thread's name.
    pub(crate) thread: u32,
    /// Milliseconds since the start.
    pub(crate) time: u32,
}

impl SlotRecord {
    /// The sample as the trace lists it, booked for this class and stack.
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
    /// 0 where there is nothing.
    uid: AtomicU64,
    size: AtomicU64,
    booking: AtomicU32,
    thread: AtomicU32,
    time: AtomicU32,
}

/// The records of all slots, in chunks that are made as they fill.
///
/// The thread that has taken a slot writes its record and clears it again; other threads read records at any time,
/// without waiting.
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

    /// Records what was put into a slot, which is empty and the caller's.
    pub(crate) fn set(&self, record: SlotRecord) {
        let slot = record.slot as usize;
        let Some(chunk) = self.0.get(slot / CHUNK) else {
            return;
        };
        let records = chunk.get_or_init(|| (0..CHUNK).map(|_| AtomicRecord::default()).collect());
        let atomic = &records[slot % CHUNK];
        // A thread that reads one of these reads the uid of the sample before as 0 from then on: it was cleared before.
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

    /// Says where a slot's sample is booked now.
    pub(crate) fn book(&self, slot: u32, booking: Booking) {
        if let Some(atomic) = self.get(slot) {
            atomic.booking.store(booking.bits(), Relaxed);
        }
    }

    /// The record of a slot; `None` if the slot is empty, or changed meanwhile.
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
        // No uid comes twice, so these are all its own.
        (uid != 0 && atomic.uid.load(Relaxed) == uid).then_some(record)
    }

    /// The uid of what is in a slot; 0 for none.
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
    fn a_record_is_there_until_it_is_cleared() {
        let records = SlotRecords::new(CHUNK + 1);
        let last = u32::try_from(CHUNK).unwrap();
        assert!(records.at(last).is_none() && records.uid(last) == 0);
        records.set(record(last, 9));
        let found = records.at(last).unwrap();
        assert_eq!((found.uid, found.size, records.uid(last)), (9, 27, 9));
        records.book(last, Booking::from_bits(77));
        assert_eq!(records.at(last).unwrap().booking.bits(), 77);
        records.clear(last);
        assert!(records.at(last).is_none() && records.uid(last) == 0);
        // Beyond the last chunk there is nothing, and nothing happens.
        records.set(record(u32::MAX, 1));
        assert_eq!(records.uid(u32::MAX), 0);
    }

    /// A place that changes hands all the time never shows parts of two samples.
    #[test]
    fn what_is_read_is_of_one_sample() {
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
