//! Runs the functions of the fuzz targets on a stable compiler: a seeded mutator changes small dumps for `FUZZ_SECONDS`
//! seconds (default: 20).

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
            ("repair", hprof::fuzz::repair),
        ],
        20,
    );
    println!("{runs} inputs");
}
