//! `cargo +nightly fuzz run redaction`

#![no_main]

libfuzzer_sys::fuzz_target!(
    init: hprof::fuzz::on_this_thread(),
    |bytes: &[u8]| hprof::fuzz::redaction(bytes)
);
