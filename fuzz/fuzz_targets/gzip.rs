//! Fuzzes the decompression of dumps. Run it with `cargo +nightly fuzz run gzip`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hprof::fuzz::gzip(bytes));
