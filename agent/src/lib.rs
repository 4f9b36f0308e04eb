//! The native agent: samples allocations and leaves their stacks in the heap, where any dump
//! finds them.
//!
//! For each sample the JVM reports (`SampledObjectAlloc`, JEP 331) the agent makes one small Java
//! object that refers to the sampled one by a phantom reference and names its allocation site.
//! What a dump then holds is written down in `heapdiff_sites`.
//!
//! | module | what it does |
//! |---|---|
//! | `entry` | the functions that the JVM calls |
//! | `jvmti` | JVMTI and JNI: nearly all `unsafe` is there; it imports nothing of ours |
//! | `agent` | loading, starting, stopping; the one global |
//! | `lent`, `giving_up` | what callbacks share until it is detached; whether faults ended it |
//! | `ground` | what is in the Java heap from the start on: all of it is made, or nothing |
//! | `options` | the option string |
//! | `sampler` | what happens at a sample and at a class definition |
//! | `strategy`, `random` | which samples are taken |
//! | `stacks`, `intern` | from raw frames to the id of a site |
//! | `heap`, `table`, `totals` | what is kept in the Java heap |
//! | `slots` | the agent's own record of each sample, read without asking the JVM |
//! | `collected` | collected samples that are remembered, in the heap and for the trace |
//! | `reaper`, `wakeup` | the agent's thread: finds collected samples, thins, brings figures up to date |
//! | `ledger`, `tracer`, `tries` | accounts of sites, the thread that writes them to a trace, and what it does where it cannot |
//! | `jvm_stats`, `pauses` | the JVM's own figures: heap, metaspace, collections |
//! | `log`, `counters` | what the agent says and counts |
//! | `java` | the agent's own Java classes: sources and class files |
//! | `sample_ref` | the class of samples in the JVM |
//!
//! # What it misses
//!
//! * Allocations before the JVM is up (`VMInit`), and objects that the compiler does away with.
//! * A thread that runs when sampling is turned on (by attaching, or after `delay`) is sampled from its
//!   next allocation buffer on; on JDK 17 its first sample comes after the old interval of 512 KiB.
//!   With `interval=0` from the start nothing is missed: the agent has the JVM collect once.
//! * Before JDK 25 a thread forgets at each collection what it has allocated in its buffer since its last sample:
//!   an interval in the mean, or half of the buffer where that is less. The JVM sizes buffers such that a thread fills
//!   some fifty between two collections (`TLABWasteTargetPercent`), so estimates are about 1 % low at most once it
//!   knows its threads: 1.3 to 2.4 % were seen where ten collections met forty new threads with 11 MB each. Which
//!   objects are missed is chance, so shares stay right. It is not made up for: how many threads were allocating at
//!   a collection, and how full their buffers were, the JVM does not tell. JDK 25 keeps count (JDK-8356372).
//!   Before that the JVM also samples objects too rarely that it puts outside of a thread's buffer: up to a quarter
//!   of large ones was missed (`Sampling::shortfall`, `docs/measurements.md`).
//! * A sample near the end of a thread's stack or of the heap has no room for its object. It is counted.
//!
//! # What a sample costs
//!
//! Nearly all is the JVM's `GetStackTrace`, a good 0.1 µs a frame; the rest is about 1 µs, half of it the
//! collector's work on the references (`docs/measurements.md`). So overhead is the rate of allocation divided by the
//! interval, times 2 to 9 µs; `interval` and `depth` change it. `AsyncGetCallTrace` is faster and is not used: called
//! from a runtime stub, as here, it looks for debug information after the return address instead of at it
//! and so gives the first compiled frame, the one that matters, wrong lines or wrong inlined methods.
//!
//! # Rules
//!
//! It lives in production JVMs. No panic leaves it, no lock is held across a call into the JVM, every
//! table has a limit, and what does not fit is counted. A call into the JVM that throws is a call that failed: nothing is
//! looked up or made in the Java heap to say why (`jvmti::calls`), for in a full heap that would throw as well.
#![deny(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod agent;
mod collected;
mod counters;
mod counting;
mod debugger;
#[allow(unsafe_code)]
mod entry;
mod giving_up;
mod ground;
mod heap;
mod intern;
mod java;
mod jvm_stats;
#[allow(unsafe_code)]
mod jvmti;
mod ledger;
mod lent;
mod log;
pub mod options;
mod pace;
mod pauses;
mod random;
mod reaper;
#[allow(unsafe_code)]
mod sample_ref;
mod sampler;
mod slots;
mod snapshot;
mod stacks;
mod strategy;
mod table;
mod totals;
mod tracer;
mod tries;
mod unproven;
mod usage;
mod wakeup;

pub use jvmti::sys::{Places, capability};
pub use snapshot::{State, memory_left};
