//! Tests reports on written heaps and on dumps of JVMs. One test program links faster than twenty.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is a failure")]
#![allow(clippy::print_stdout, reason = "tests show their figures")]

mod alone;
mod blamed;
mod bounds;
mod common;
mod counts_jvm;
mod courses;
mod detectors;
mod generated;
mod holders;
mod kept;
mod levels;
mod printed_paths;
mod redacted;
mod sampled;
mod scenarios_jvm;
mod shrunk_jvm;
mod stacks_jvm;
mod synthetic;
mod told;
mod usage_jvm;
mod verdicts;
