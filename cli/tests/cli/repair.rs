//! Tests `heapdiff repair`: the output appears only when it is complete, and no input is replaced.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::support::{heapdiff, prepare};

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    prepare(folder.path());
    folder
}

/// Returns standard output and standard error of a run that ends with `code`.
#[track_caller]
fn ends(folder: &Path, code: i32, line: &str) -> (Vec<u8>, String) {
    let args: Vec<&str> = line.split(' ').collect();
    let done = heapdiff(folder, &args).output().expect("a run");
    let err = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(code), "{line}: {err}");
    (done.stdout, err)
}

/// True if a file has the end record of a dump.
fn is_whole(path: &Path) -> bool {
    let bytes = fs::read(path).expect("the file");
    bytes.ends_with(&[0x2c, 0, 0, 0, 0, 0, 0, 0, 0])
}

#[test]
fn links_to_the_input_are_not_replaced() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    fs::hard_link(at("cut.hprof"), at("hard.hprof")).expect("a link");
    symlink("cut.hprof", at("soft.hprof")).expect("a link");
    let before = fs::read(at("cut.hprof")).expect("the dump");
    for output in ["hard.hprof", "soft.hprof", "./cut.hprof", "cut.hprof"] {
        let line = format!("repair cut.hprof -o {output} --force");
        let (_, err) = ends(folder.path(), 2, &line);
        assert!(err.contains("would overwrite the input"), "{err}");
    }
    assert!(fs::read(at("cut.hprof")).expect("the dump") == before);
    // Another dump is replaced only with --force.
    fs::write(at("other.hprof"), &before).expect("a dump");
    ends(folder.path(), 2, "repair cut.hprof -o other.hprof");
    ends(
        folder.path(),
        0,
        "repair cut.hprof -o other.hprof --force -q",
    );
    assert!(is_whole(&at("other.hprof")));
}

#[test]
fn only_the_owner_can_read_the_output() {
    let folder = folder();
    let output = folder.path().join("whole.hprof");
    // The second time, the output replaces a file that all users can read.
    for force in ["", " --force"] {
        let line = format!("repair cut.hprof -o whole.hprof -q{force}");
        ends(folder.path(), 0, &line);
        let meta = fs::metadata(&output).expect("the dump");
        assert_eq!(meta.permissions().mode() & 0o777, 0o600);
        assert_eq!(meta.nlink(), 1);
        fs::set_permissions(&output, fs::Permissions::from_mode(0o644)).expect("a mode");
    }
}

#[test]
fn all_outputs_have_the_same_content() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    let (out, _) = ends(folder.path(), 0, "repair cut.hprof -o whole.hprof -q");
    assert!(out.is_empty());
    ends(folder.path(), 0, "repair cut.hprof -o whole.hprof.gz -q");
    let (out, err) = ends(folder.path(), 0, "repair cut.hprof -o -");
    let whole = fs::read(at("whole.hprof")).expect("the dump");
    assert!(out == whole && err.contains("GC roots for"), "{err}");
    assert!(testdata::dumps::unpacked(&at("whole.hprof.gz")) == whole);
    // If nothing is missing, standard output is a copy, and no file is written.
    let (out, err) = ends(folder.path(), 0, "repair whole.hprof -o -");
    assert!(
        out == whole && err.contains("nothing more to repair"),
        "{err}"
    );
    ends(folder.path(), 0, "repair whole.hprof -o none.hprof");
    assert!(!at("none.hprof").exists());
}

#[test]
fn a_killed_run_leaves_no_dump_under_the_final_name() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    // A dump with many names, so that the run takes long enough for the test to kill it.
    let cut = fs::read(at("cut.hprof")).expect("the dump");
    let (head, rest) = cut.split_at(31);
    let mut large = head.to_vec();
    let name = [&[1, 0, 0, 0, 0, 0, 1, 0, 0][..], &[b'x'; 0x1_0000]].concat();
    for _ in 0..1500 {
        large.extend_from_slice(&name);
    }
    large.extend_from_slice(rest);
    fs::write(at("large.hprof"), &large).expect("a dump");
    let start = Instant::now();
    ends(folder.path(), 0, "repair large.hprof -o whole.hprof -q");
    let takes = start.elapsed();
    let whole = fs::read(at("whole.hprof")).expect("the dump");
    let mut unfinished = 0;
    for part in 0..20 {
        let _ = fs::remove_file(at("whole.hprof"));
        let args = ["repair", "large.hprof", "-o", "whole.hprof", "-q"];
        let mut run = heapdiff(folder.path(), &args).spawn().expect("a run");
        std::thread::sleep(takes * part / 20 + Duration::from_millis(1));
        run.kill().expect("a kill");
        run.wait().expect("the end of the run");
        match fs::read(at("whole.hprof")) {
            Ok(bytes) => assert!(bytes == whole, "part {part}"),
            Err(_) => unfinished += 1,
        }
    }
    assert!(unfinished > 0, "no run was killed early");
}
