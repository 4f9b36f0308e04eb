//! Fuzzes the ranking of stacks for a recording or profile. Run it with `cargo +nightly fuzz run join`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| heapdiff_join::fuzz::join(bytes));
