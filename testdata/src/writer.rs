//! Writes synthetic heap dumps (HPROF) for the tests.
//!
//! The writer shares no type, constant or table with the `hprof` crate. So if one of the two misunderstands the format,
//! a test fails.
//!
//! * [`HeapBuilder`] builds a heap of classes, objects, threads and roots. It assigns addresses and sizes as a JVM with
//!   the given [`JvmLayout`] would.
//! * [`graph`] turns a directed graph into a dump, so that tests can compare results with those of plain graph
//!   algorithms.
//! * [`linked`] streams lists and trees of any length without holding them in memory.
//! * [`RecordWriter`] and [`Body`] write single records, for unusual and broken dumps.

mod boot;
mod emit;
mod error;
mod format;
pub mod graph;
mod gzip;
mod heap;
mod layout;
pub mod linked;
mod record;
mod thread;
mod value;

pub use boot::{Boot, ReferenceKind};
pub use emit::Dump;
pub use error::BuildError;
pub use format::{Body, ClassDump, Datum, FieldType, IdSize, Root, Version, sub, tag};
pub use gzip::{Gzip, compress};
pub use heap::{ClassId, FileOrder, HeapBuilder, Obj, Options, Place, StringForm};
pub use layout::{JvmLayout, Shape};
pub use record::{Framing, Header, RecordWriter};
pub use thread::{Frame, Thread};
pub use value::{Elements, Ref, Value};

/// A small deterministic random generator (splitmix64), so that every dump is the same in every run.
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    /// Creates a generator that yields the same numbers for the same seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number in `0..bound`, or 0 if `bound` is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        match bound {
            0 => 0,
            _ => (self.next_u64() % bound as u64) as usize,
        }
    }

    /// Puts the items in a random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i + 1));
        }
    }
}
