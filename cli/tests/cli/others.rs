//! Checks docs/other-tools.md: its commands run successfully, and the tests that it names exist.

use std::fs;
use std::process::Command;

use crate::support::{prepare, root};

/// Returns the strings between backticks.
fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

#[test]
fn each_feature_of_another_tool_has_a_counterpart() {
    let page = fs::read_to_string(root().join("docs/other-tools.md")).expect("the page");
    let folder = tempfile::tempdir().expect("a folder");
    prepare(folder.path());
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_heapdiff"));
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", program.parent().expect("a folder").display());
    let mut run = 0;
    let mut named = 0;
    for row in page.lines().filter(|line| line.starts_with("| ")).skip(1) {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let [_, _, here, rest @ ..] = &cells[..] else {
            panic!("{row}");
        };
        let test: Vec<&str> = rest.iter().flat_map(|cell| quoted(cell)).collect();
        if let [file, function] = test[..] {
            let text = fs::read_to_string(root().join(file)).expect(file);
            assert!(text.contains(function), "{file} lacks {function}");
            named += 1;
            continue;
        }
        let command = quoted(here).next().expect(row);
        let done = Command::new("sh")
            .args(["-c", command])
            .env("PATH", &path)
            .env("XDG_CACHE_HOME", folder.path())
            .current_dir(folder.path())
            .output()
            .expect("a run");
        assert!(done.status.success(), "{command}: {done:?}");
        // The command must print something or write a file.
        if let Some((_, file)) = command.split_once(" -o ") {
            let bytes = fs::metadata(folder.path().join(file)).expect(file).len();
            assert!(bytes > 500, "{command}: {bytes} bytes");
        } else {
            let said = done.stdout.len() + done.stderr.len();
            assert!(said > 10, "{command}: {done:?}");
        }
        run += 1;
    }
    assert!(run > 20 && named > 3, "{run} commands, {named} tests");
}
