//! What the agent itself knows of each place in a table, so that nobody has to ask the JVM.

use std::sync::OnceLock;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};

use heapdiff_sites::CHUNK;
use heapdiff_trace::Sample;

use crate::ledger::Booking;

/// What was noted of a place.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Noted {
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

impl Noted {
    /// As the trace tells of a sample that is booked for this class and stack.
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
struct Note {
    /// 0 where there is nothing.
    uid: AtomicU64,
    size: AtomicU64,
    booking: AtomicU32,
    thread: AtomicU32,
    time: AtomicU32,
}

/// Notes by place, their chunks made as they fill.
///
/// Whoever has a place writes its note and takes it away again; others read it at any time without waiting.
pub(crate) struct Notes(Box<[OnceLock<Box<[Note]>>]>);

impl Notes {
    pub(crate) fn new(capacity: usize) -> Self {
        let chunks = capacity.div_ceil(CHUNK);
        Self((0..chunks).map(|_| OnceLock::new()).collect())
    }

    fn get(&self, slot: u32) -> Option<&Note> {
        let (chunk, place) = (slot as usize / CHUNK, slot as usize % CHUNK);
        self.0.get(chunk)?.get()?.get(place)
    }

    /// Notes what was put into a place, which is empty and the caller's.
    pub(crate) fn set(&self, noted: Noted) {
        let slot = noted.slot as usize;
        let Some(chunk) = self.0.get(slot / CHUNK) else {
            return;
        };
        let notes = chunk.get_or_init(|| (0..CHUNK).map(|_| Note::default()).collect());
        let note = &notes[slot % CHUNK];
        // Whoever reads one of these reads the uid before as 0 from then on: it was taken away before.
        note.size.store(noted.size, Release);
        note.booking.store(noted.booking.bits(), Release);
        note.thread.store(noted.thread, Release);
        note.time.store(noted.time, Release);
        note.uid.store(noted.uid, Release);
    }

    /// Takes a place's note away.
    pub(crate) fn clear(&self, slot: u32) {
        if let Some(note) = self.get(slot) {
            note.uid.store(0, Relaxed);
        }
    }

    /// Where a place's sample is booked now.
    pub(crate) fn book(&self, slot: u32, booking: Booking) {
        if let Some(note) = self.get(slot) {
            note.booking.store(booking.bits(), Relaxed);
        }
    }

    /// What was noted of a place; `None` if it is empty, or changed meanwhile.
    pub(crate) fn at(&self, slot: u32) -> Option<Noted> {
        let note = self.get(slot)?;
        let uid = note.uid.load(Acquire);
        let noted = Noted {
            slot,
            uid,
            size: note.size.load(Acquire),
            booking: Booking::from_bits(note.booking.load(Acquire)),
            thread: note.thread.load(Acquire),
            time: note.time.load(Acquire),
        };
        // No uid comes twice, so these are all its own.
        (uid != 0 && note.uid.load(Relaxed) == uid).then_some(noted)
    }

    /// The uid of what is in a place; 0 for none.
    pub(crate) fn uid(&self, slot: u32) -> u64 {
        self.get(slot).map_or(0, |note| note.uid.load(Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    fn noted(slot: u32, uid: u64) -> Noted {
        let low = u32::try_from(uid & 0xffff_ffff).unwrap();
        Noted {
            slot,
            uid,
            size: uid * 3,
            booking: Booking::from_bits(low),
            thread: low ^ 0x5555,
            time: low.wrapping_mul(7),
        }
    }

    #[test]
    fn a_note_is_there_until_it_is_taken_away() {
        let notes = Notes::new(CHUNK + 1);
        let last = u32::try_from(CHUNK).unwrap();
        assert!(notes.at(last).is_none() && notes.uid(last) == 0);
        notes.set(noted(last, 9));
        let found = notes.at(last).unwrap();
        assert_eq!((found.uid, found.size, notes.uid(last)), (9, 27, 9));
        notes.book(last, Booking::from_bits(77));
        assert_eq!(notes.at(last).unwrap().booking.bits(), 77);
        notes.clear(last);
        assert!(notes.at(last).is_none() && notes.uid(last) == 0);
        // Beyond the last chunk there is nothing, and nothing happens.
        notes.set(noted(u32::MAX, 1));
        assert_eq!(notes.uid(u32::MAX), 0);
    }

    /// A place that changes hands all the time never shows parts of two samples.
    #[test]
    fn what_is_read_is_of_one_sample() {
        let notes = Notes::new(1);
        let (stop, seen) = (AtomicBool::new(false), AtomicU64::new(0));
        let facts = |n: Noted| (n.size, n.booking, n.thread, n.time);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Relaxed) {
                    if let Some(found) = notes.at(0) {
                        assert_eq!(facts(found), facts(noted(0, found.uid)), "{found:?}");
                        seen.fetch_add(1, Relaxed);
                    }
                }
            });
            for uid in 1..=100_000_000 {
                notes.set(noted(0, uid));
                notes.clear(0);
                if seen.load(Relaxed) >= 4_000_000 {
                    break;
                }
            }
            stop.store(true, Relaxed);
        });
        assert!(seen.into_inner() > 0);
    }
}
