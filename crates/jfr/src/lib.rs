//! Reads recordings of Java Flight Recorder and of async-profiler: allocations, live objects, garbage collections, and
//! information about the JVM.
//!
//! # The format
//!
//! A file is a sequence of chunks (`FLR\0`). Each chunk describes its own types. It contains events, and the constants
//! that the events refer to. So a reader only needs to know the names of events and fields. The modules, from the
//! bottom up: `cursor` (integers, strings), `types` (the metadata), `layout` (records by their types), `chunk` (header,
//! events, constants), `chunks` (a file), `names` (stacks and classes of all chunks), and [`Recording`].
//!
//! # Bounds
//!
//! A recording is untrusted: its lengths, counts, offsets and types can have any value. No input makes this crate
//! panic, recurse, or loop without consuming bytes. One chunk at a time is in memory, together with the events and
//! names that were read so far. The numbers of these events and names are limited. Damaged parts are reported as
//! [`Damage`] with their offset, and the rest is still read.
//!
//! # Why this crate has its own reader
//!
//! The only reader on crates.io with users is `jfrs` (0.2.5, October 2023, its last change). It allocates memory
//! according to lengths in the file (`Vec::with_capacity` of an array's count or a chunk's size). It recurses into
//! nested types without a limit. It does not terminate on a chunk or an event of zero bytes. A caller cannot prevent
//! any of this.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod chunk;
mod chunks;
mod cursor;
mod error;
mod layout;
mod names;
mod recording;
mod types;
mod weight;

pub use chunks::is_recording;
pub use error::{Damage, Fault, JfrError};
pub use names::{ChainId, Frame, Link, NameId, Names, Stack, StackId};
pub use recording::{
    Collection, Event, HeapDump, HeapSummary, Jvm, LIVE_TABLE_FULL, MANY_OLD, MOST_LIVE, Recording,
    Sample, State,
};

/// Fuzz entry point: reads these bytes as a recording.
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub fn fuzz(bytes: &[u8]) {
    if let Ok(recording) = Recording::from_bytes(bytes.to_vec()) {
        for sample in &recording.samples {
            let stack = recording.names.stack(sample.stack);
            assert!(
                stack
                    .frames
                    .iter()
                    .all(|&f| (f as usize) < recording.names.frames().len())
            );
        }
    }
}
