//! Fuzzes the reading of a dump's header and outline (the offsets of all records outside the heap). Run it with
//! `cargo +nightly fuzz run outline`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hprof::fuzz::outline(bytes));
