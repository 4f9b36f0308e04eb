//! Tests commands and their output: every file in `tests/cmd`, and the examples in README and docs.
//!
//! `TRYCMD=overwrite cargo test -p heapdiff --test cli` writes the actual output into the files.
//!
//! The environment variable `HEAPDIFF_BIN` names another program to test, such as one for another system, and
//! `HEAPDIFF_RUNNER` a program that runs it, such as `wine64`.

use std::path::{Path, PathBuf};

#[test]
fn commands_answer_as_recorded() {
    let folder = tempfile::tempdir().expect("a folder");
    crate::support::prepare(folder.path());
    // This may change the working directory, because no other test depends on it.
    std::env::set_current_dir(folder.path()).expect("the folder");
    let here = env!("CARGO_MANIFEST_DIR");
    let cases = trycmd::TestCases::new();
    cases
        .register_bin("heapdiff", program(folder.path()))
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
        // A file that is left out has to be named after the others.
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

/// Returns the program to test. If it needs a runner, returns a script that calls the runner.
fn program(folder: &Path) -> PathBuf {
    let program = crate::support::program();
    let Some(runner) = std::env::var_os("HEAPDIFF_RUNNER").map(PathBuf::from) else {
        return program;
    };
    let script = folder.join("run-heapdiff");
    let line = format!(
        "#!/bin/sh\nexec {} {} \"$@\"\n",
        runner.display(),
        program.display()
    );
    std::fs::write(&script, line).expect("a written script");
    #[cfg(unix)]
    {
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&script, executable).expect("an executable script");
    }
    script
}
