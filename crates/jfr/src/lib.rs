//! Recordings of Java Flight Recorder and of async-profiler: what they say of allocations, live objects,
//! collections and the JVM.
//!
//! # The format
//!
//! A file is a row of chunks (`FLR\0`). Each describes its own types and holds events and the constants that these
//! refer to, so that a reader needs to know names of events and fields and nothing else. The layers here, from below:
//! `cursor` (integers, strings), `types` (the metadata), `layout` (records by their types), `chunk` (header, events,
//! constants), `chunks` (a file), `names` (stacks and classes of all chunks), and [`Recording`].
//!
//! # Bounds
//!
//! A recording is not trusted: lengths, counts, offsets and types come from the file. No input makes this panic,
//! recurse or loop without consuming bytes. Memory is that of the largest chunk, as far as the file really has it,
//! and of what was read of events and names; each kind of thing has a limit. What cannot be read is
//! [`Damage`] with its offset, and the rest is read all the same.
//!
//! # Why a reader of our own
//!
//! The one reader on crates.io that is used, `jfrs` (0.2.5, October 2023, the last change to it), allocates what a length in
//! the file says (`Vec::with_capacity` of an array's count, a chunk's size), recurses as deep as the file's types
//! refer to each other, and does not come to an end on a chunk or an event of no bytes. None of this can be caught
//! from outside.

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
pub use names::{Frame, NameId, Names, Stack, StackId};
pub use recording::{
    Collection, Event, HeapSummary, Jvm, LIVE_TABLE_FULL, MANY_OLD, MOST_LIVE, Recording, Sample,
    State,
};

/// Fuzzing: a recording with these bytes.
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
