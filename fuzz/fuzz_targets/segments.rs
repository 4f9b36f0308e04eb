//! Fuzzes the reading of a dump in three parts, two of which are segments. Run it with `cargo +nightly fuzz run
//! segments`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hprof::fuzz::segments(bytes));
