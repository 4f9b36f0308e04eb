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
