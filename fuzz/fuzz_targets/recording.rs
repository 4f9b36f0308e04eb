//! Fuzzes the reading of flight recordings. Run it with `cargo +nightly fuzz run recording`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| heapdiff_jfr::fuzz(bytes));
