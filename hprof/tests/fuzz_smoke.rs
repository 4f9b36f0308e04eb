//! The fuzz targets' functions on a stable compiler: a seeded mutator over small dumps, for as many
//! seconds as `FUZZ_SECONDS` says (20 unless told).

#![allow(clippy::print_stdout)]

#[test]
fn no_input_does_harm() {
    let runs = testdata::hostile::run(
        &[
            ("outline", hprof::fuzz::outline),
            ("gzip", hprof::fuzz::gzip),
            ("segments", hprof::fuzz::segments),
            ("histogram", hprof::fuzz::histogram),
            ("snapshot", hprof::fuzz::snapshot),
            ("redaction", hprof::fuzz::redaction),
        ],
        20,
    );
    println!("{runs} inputs");
}
