//! Tests commands and their output: every file in `tests/cmd`, and the examples in README and docs.
//!
//! `TRYCMD=overwrite cargo test -p heapdiff --test cli` writes the actual output into the files.
//!
//! The environment variable `HEAPDIFF_BIN` names another program to test, or a script that runs it with an emulator. If
//! the name ends in `.exe`, the program is for Windows.

#[test]
fn commands_answer_as_recorded() {
    let folder = tempfile::tempdir().expect("a folder");
    crate::support::prepare(folder.path());
    // This may change the working directory, because no other test depends on it.
    std::env::set_current_dir(folder.path()).expect("the folder");
    let here = env!("CARGO_MANIFEST_DIR");
    let cases = trycmd::TestCases::new();
    cases
        .register_bin("heapdiff", crate::support::program())
        .case(format!("{here}/tests/cmd/*.trycmd"))
        .case(format!("{here}/../README.md"))
        .case(format!("{here}/../docs/*.md"))
        .case(format!("{here}/../docs/commands/*.md"))
        .env("NO_COLOR", "1")
        .env("COLUMNS", "100");
    let is_for_windows = crate::support::program()
        .extension()
        .is_some_and(|end| end == "exe");
    if is_for_windows {
        // These cases were added before. `skip` overwrites their expectation, so they are not run.
        for (name, _) in NOT_ON_WINDOWS {
            cases.skip(format!("{here}/tests/cmd/{name}"));
        }
    }
    cases.run();
}

/// Files with cases that have other output on Windows, and the reasons.
const NOT_ON_WINDOWS: [(&str, &str); 1] = [(
    "capture.trycmd",
    "commands for running JVMs exit with 3 before they check their other arguments",
)];
