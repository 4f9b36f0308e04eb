//! Fuzzes the rewriting of class files. Run it with `cargo +nightly fuzz run class`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| heapdiff_bytecode::fuzz(bytes));
