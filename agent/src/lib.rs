//! The native agent: samples allocations and leaves their stacks in the heap, where any dump
//! finds them.
//!
//! For each sample the JVM reports (`SampledObjectAlloc`, JEP 331) the agent makes one small Java
//! object that refers to the sampled one by a phantom reference and names its allocation site.
//! What a dump then holds is written down in `heapdiff_sites`.
//!
//! | module | what it does |
//! |---|---|
//! | `jvmti` | raw bindings, the functions the JVM calls; all `unsafe` is there |
//! | `agent` | loading, starting, stopping; the one global |
//! | `options` | the option string |
//! | `sampler` | what happens at a sample and at a class definition |
//! | `chooser` | which samples are taken: the strategies |
//! | `stacks`, `intern`, `names` | from raw frames to the id of a site |
//! | `heap`, `table`, `totals` | what is kept in the Java heap |
//! | `reaper`, `garbage` | the agent's thread: finds collected samples, thins, brings figures up to date |
//! | `sample_ref`, `classfile` | the bytes of the Java class |
//!
//! # What it misses
//!
//! * Allocations before the JVM is up (`VMInit`), and objects that the compiler does away with.
//! * A thread that runs when sampling is turned on (by attaching, or after `delay`) is sampled from its
//!   next allocation buffer on; on JDK 17 its first sample comes after the old interval of 512 KiB.
//!   With `interval=0` from the start nothing is missed: the agent has the JVM collect once.
//! * JDK 17 forgets at each collection what its threads have allocated since their last sample (half an
//!   interval or less for each): estimates were 1.3 % low where ten collections met forty threads with 11 MB
//!   each and 16 KiB between samples. JDK 25 does not.
//! * A sample near the end of a thread's stack or of the heap has no room for its object. It is counted.
//!
//! # Rules
//!
//! It lives in production JVMs. No panic leaves it, no lock is held across a call into the JVM, every
//! table has a limit, and what does not fit is counted.
#![deny(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod agent;
mod chooser;
mod classfile;
mod counters;
mod garbage;
mod heap;
mod intern;
#[allow(unsafe_code)]
mod jvmti;
mod names;
pub mod options;
mod reaper;
mod sample_ref;
mod sampler;
mod stacks;
mod table;
mod totals;

pub use jvmti::sys::{Places, capability};
