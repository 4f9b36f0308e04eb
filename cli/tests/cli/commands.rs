//! Tests commands and their output: every file in `tests/cmd`, and the examples in README and docs.
//!
//! `TRYCMD=overwrite cargo test -p heapdiff --test cli` writes the actual output into the files.

#[test]
fn commands_answer_as_recorded() {
    let folder = tempfile::tempdir().expect("a folder");
    crate::support::prepare(folder.path());
    // This may change the working directory, because no other test depends on it.
    std::env::set_current_dir(folder.path()).expect("the folder");
    let here = env!("CARGO_MANIFEST_DIR");
    trycmd::TestCases::new()
        .register_bin("heapdiff", crate::support::program())
        .case(format!("{here}/tests/cmd/*.trycmd"))
        .case(format!("{here}/../README.md"))
        .case(format!("{here}/../docs/*.md"))
        .case(format!("{here}/../docs/commands/*.md"))
        .env("NO_COLOR", "1")
        .env("COLUMNS", "100")
        .run();
}
