//! What a user types, and what comes back: every file in `tests/cmd`, and the README's examples.
//!
//! `TRYCMD=overwrite cargo test -p heapdiff --test commands` writes what comes back into the files.

mod support;

#[test]
fn commands_answer_as_recorded() {
    let folder = tempfile::tempdir().expect("a folder");
    support::prepare(folder.path());
    // The only test of this program: nothing else minds where it works.
    std::env::set_current_dir(folder.path()).expect("the folder");
    let here = env!("CARGO_MANIFEST_DIR");
    trycmd::TestCases::new()
        .case(format!("{here}/tests/cmd/*.trycmd"))
        .case(format!("{here}/../README.md"))
        .env("NO_COLOR", "1")
        .run();
}
