//! Joins recordings of a JVM with its heap dumps: finds the stacks that probably allocated the objects that a suspect
//! holds.
//!
//! A plain heap dump has no allocating stacks. A recording (Java Flight Recorder, async-profiler) has stacks, but only
//! for samples of the allocations and of the live objects. The join finds the recorded stacks whose objects have the
//! classes and array lengths that the suspect's objects have, and ranks these stacks by probability.
//!
//! The modules: [`evidence`] extracts from a recording the data that the join needs, [`matching`] checks that recording
//! and dumps are of one JVM, and [`rank`] computes the probabilities.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod evidence;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzz;
pub mod matching;
mod profile;
pub mod rank;
mod saved;
mod sentence;
mod stacks;

pub use evidence::{Evidence, EvidenceError};
pub use matching::{Dump, Fit, Refusal};
pub use rank::Join;
