//! Tests answers about written heaps and about dumps of JVMs. Tests that measure the memory of their process are test
//! programs of their own.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is a failure")]
#![allow(clippy::print_stdout, reason = "tests show their figures")]

mod contents;
mod contents_jvm;
mod deep;
mod deep_jvm;
mod flattened_values;
mod formats;
mod garbage_between;
mod held;
mod hidden_classes;
mod incomplete;
mod index;
mod layers;
mod long_rows;
mod objects;
mod paths_disjoint;
mod paths_without;
mod properties;
mod redaction;
mod redaction_jvm;
mod repair;
mod segments;
mod sizes_jvm;
mod small_dump;
mod uncommon;
mod unreachable;
mod warnings;
mod waste;
mod waste_jvm;
