//! Synthetic dumps, leak scenarios and real JVMs for the tests.

pub mod authority;
pub mod cgroup;
pub mod deadline;
pub mod dumps;
pub mod hostile;
pub mod jvm;
pub mod programs;
pub mod recordings;
pub mod sampled;
pub mod scenarios;
pub mod stub_server;
mod trim;
pub mod writer;

pub use dumps::{make_sampled_dumps, regenerate_dumps};
pub use recordings::{make_joined, make_recording};
