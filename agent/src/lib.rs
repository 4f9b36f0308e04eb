//! The native agent: samples allocations and stores their stacks in the Java heap, so that every dump contains them.
//!
//! For each sample that the JVM reports (`SampledObjectAlloc`, JEP 331), the agent creates one small Java object. This
//! Java object is a phantom reference to the sampled object and contains the id of the allocation site. The crate
//! `heapdiff_sites` documents the agent's data in a dump.
//!
//! | module | purpose |
//! |---|---|
//! | `entry` | the functions that the JVM calls |
//! | `jvmti` | JVMTI and JNI: nearly all `unsafe` code; imports no other module of the agent |
//! | `agent` | loading, starting, stopping; the agent's global state |
//! | `lent`, `giving_up` | state that callbacks share until a detach; the stop after internal errors |
//! | `ground` | the initial objects in the Java heap: all of them are created, or none |
//! | `options` | the option string |
//! | `sampler` | handling of a sample and of a class definition |
//! | `strategy`, `random` | the choice of samples |
//! | `labels` | labels of threads, such as `tenant=acme` |
//! | `stacks`, `intern` | turn the frames of a stack into the id of a site |
//! | `heap`, `table`, `totals` | data in the Java heap |
//! | `slots` | the agent's own record of each sample, readable without calling the JVM |
//! | `collected` | collected samples that are stored in the heap and for the trace |
//! | `reaper`, `wakeup` | the agent's thread: finds collected samples, downsamples, copies counters to the heap |
//! | `unproven`, `pace` | limits for tracked samples under generational ZGC |
//! | `ledger`, `tracer`, `tries` | sums by allocation site, the thread that writes them to a trace, and its retries |
//! | `jvm_stats`, `pauses`, `gc_match` | the JVM's statistics: heap, metaspace, GCs |
//! | `counting`, `usage` | exact counts of allocations, and of uses of JDK collections |
//! | `snapshot` | dumps written by a forked child |
//! | `own_file` | the agent's library file, so that later commands find the agent in a JVM with musl |
//! | `atomic` | atomics, and the simulated ones of tests |
//! | `log`, `counters` | messages and counters of the agent |
//! | `java` | the agent's Java classes: sources and class files |
//! | `sample_ref` | the class of samples in the JVM |
//!
//! # What the agent misses
//!
//! * Allocations before the JVM is initialized (`VMInit`), and objects that the JIT compiler removes.
//! * A thread that already runs when sampling starts (by attaching, or after `delay`) is sampled from its next TLAB on.
//!   On JDK 17 its first sample comes after the old interval of 512 KiB. With `interval=0` from the JVM's start nothing
//!   is missed, because the agent then requests one GC, which retires the old TLABs.
//! * Before JDK 25, a thread forgets at each GC how much it has allocated in its TLAB since its last sample. The
//!   forgotten amount is one interval on average, or half of the TLAB if that is less. JDK 25 keeps this count
//!   (JDK-8356372). The JVM chooses the size of TLABs so that a thread fills about fifty of them between two GCs
//!   (`TLABWasteTargetPercent`). So estimates are too low by at most about 1 %, once the JVM has adapted the size of
//!   the TLABs to its threads. The largest error measured was 1.3 to 2.4 %, with ten GCs and forty new threads that
//!   allocated 11 MB each. The missed objects are random, so the proportions between the sites stay right. The agent
//!   does not correct the estimates, because the JVM does not report how many threads were allocating at a GC and how
//!   full their TLABs were.
//! * Before JDK 25, the JVM samples objects outside of TLABs too rarely. In measurements, up to a quarter of the large
//!   objects was missed (`Sampling::shortfall`, `docs/measurements.md`).
//! * A sample is dropped if the thread's stack or the heap is too full for the sample's Java object. The agent counts
//!   dropped samples.
//!
//! # What a sample costs
//!
//! Most of the time is spent in the JVM's `GetStackTrace`, somewhat more than 0.1 µs per frame. The remaining work
//! takes about 1 µs, half of it for the GC's work on the references (`docs/measurements.md`). So the overhead is the
//! allocation rate divided by the interval, times 2 to 9 µs. The options `interval` and `depth` change the overhead.
//!
//! `AsyncGetCallTrace` is faster, but the agent does not use it. Called from a runtime stub, as it would be here, it
//! searches for debug information after the return address instead of at the return address. So the first compiled
//! frame, the most important one, gets wrong lines or wrong inlined methods.
//!
//! # Rules
//!
//! The agent runs in production JVMs. Therefore:
//!
//! * No panic leaves the agent.
//! * No lock is held across a call into the JVM.
//! * Every table has a maximum size, and the agent counts the entries that a full table rejects.
//! * If a call into the JVM throws, it has failed. To find the reason, the agent neither looks up classes nor creates
//!   objects in the Java heap (`jvmti::calls`), because in a full heap this would throw, too.
#![deny(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod agent;
mod atomic;
mod cgroup;
mod collected;
mod counters;
mod counting;
mod debugger;
#[allow(unsafe_code)]
mod entry;
mod gc_match;
mod giving_up;
mod ground;
mod guard;
mod heap;
mod intern;
mod java;
mod jvm_stats;
#[allow(unsafe_code)]
mod jvmti;
mod labels;
mod ledger;
mod lent;
mod log;
pub mod options;
mod own_file;
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
