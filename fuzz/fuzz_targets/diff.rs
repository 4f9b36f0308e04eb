//! `cargo +nightly fuzz run diff`

#![no_main]

libfuzzer_sys::fuzz_target!(
    init: hprof::fuzz::on_this_thread(),
    |bytes: &[u8]| heapdiff_diff::fuzz::diff(bytes)
);
