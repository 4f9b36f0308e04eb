//! Tests dumps and indexes that are truncated or overwritten while they are read. The run prints an error with a hint,
//! and its exit code is 3.

use std::fs::{self, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};
use std::time::Duration;

use testdata::writer::{Elements, HeapBuilder, Options, Root};

const DUMP: &str = "heap.hprof";
const INDEX: &str = "heap.hprof.hdx";

/// Returns a folder with a dump of about 30 MB with many small arrays.
fn folder() -> tempfile::TempDir {
    let mut heap = HeapBuilder::new(Options::default());
    for i in 0..40_000_u32 {
        let bytes = vec![7; 600 + i as usize % 200];
        let array = heap.add_primitive_array(Elements::Byte(bytes));
        heap.add_root(Root::JniGlobal { global_ref: 5 }, array);
    }
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join(DUMP), heap.build()).expect("a dump");
    folder
}

fn start(folder: &Path, args: &[&str]) -> Child {
    let mut command = crate::support::heapdiff(folder, args);
    command.env("XDG_CACHE_HOME", folder.join("cache"));
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    child.spawn().expect("a run")
}

/// Starts a query that blocks in the middle, because nobody reads its output. Then calls `change`.
fn in_the_middle(folder: &Path, args: &[&str], change: impl FnOnce()) -> Output {
    let sql = "select id, class, shallow_bytes, retained_bytes, dominator_id from objects";
    let query = ["query", DUMP, sql, "--format", "csv", "-o", "/dev/stdout"];
    let mut child = start(folder, &[&query, args].concat());
    let mut first = [0; 16];
    let out = child.stdout.as_mut().expect("its output");
    out.read_exact(&mut first).expect("rows");
    std::thread::sleep(Duration::from_millis(200));
    change();
    child.wait_with_output().expect("an end")
}

/// Maximum number of runs to start. Each run tries to read a file that changes during the run, but may end before the
/// change.
const ATTEMPTS: usize = 40;

/// Starts runs, each on another dump, and changes the dump as soon as the run has mapped it. A run takes about 20 ms,
/// so on a busy machine it may end before the change. In this case, another run is started. Returns the folder and the
/// output of the last run.
fn once_mapped(args: &[&str], change: fn(&Path)) -> (tempfile::TempDir, Output) {
    for attempt in 1.. {
        let folder = folder();
        let mut child = start(folder.path(), args);
        let maps = PathBuf::from(format!("/proc/{}/maps", child.id()));
        let mut is_running = true;
        while is_running && !fs::read_to_string(&maps).is_ok_and(|maps| maps.contains(DUMP)) {
            is_running = child.try_wait().expect("a state").is_none();
        }
        if is_running {
            change(&folder.path().join(DUMP));
        }
        let done = child.wait_with_output().expect("an end");
        if !done.status.success() || attempt == ATTEMPTS {
            return (folder, done);
        }
    }
    unreachable!("the last attempt returns")
}

fn cut(path: &Path) {
    let file = OpenOptions::new().write(true).open(path).expect("the file");
    file.set_len(4096).expect("a shorter file");
}

/// Overwrites a part of the file with the same bytes, so that only the modification time of the file changes.
fn write_again(path: &Path) {
    let mut file = OpenOptions::new();
    let mut file = file.read(true).write(true).open(path).expect("the file");
    let mut bytes = vec![0; 9000];
    file.seek(SeekFrom::End(-20_000)).expect("a place");
    file.read_exact(&mut bytes).expect("bytes");
    file.seek(SeekFrom::End(-20_000)).expect("a place");
    file.write_all(&bytes).expect("the same bytes");
}

#[track_caller]
fn is_refused(done: &Output, name: &str, said: &str) {
    let stderr = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(3), "{:?}: {stderr}", done.status);
    let lines: Vec<&str> = stderr.lines().collect();
    let [line, hint] = lines[..] else {
        panic!("one line and a hint: {stderr}")
    };
    assert!(line.contains(name) && line.contains(said), "{stderr}");
    assert!(hint.contains("run heapdiff again"), "{stderr}");
}

#[test]
fn a_dump_that_is_cut_while_it_is_read_is_refused() {
    for command in [
        &["top", DUMP][..],
        &["histo", DUMP],
        &["diff", DUMP, DUMP],
        &["paths", DUMP, "byte[]"],
        &["waste", DUMP],
    ] {
        let (_folder, done) = once_mapped(&[command, &["-q"]].concat(), cut);
        is_refused(&done, DUMP, "the file changed from ");
        assert!(done.stdout.is_empty(), "{command:?}");
    }
}

#[test]
fn a_dump_that_is_overwritten_while_it_is_read_is_refused() {
    for command in [&["top", DUMP][..], &["histo", DUMP], &["diff", DUMP, DUMP]] {
        let to_file = [command, &["-q", "--no-index", "-o", "report.json"]].concat();
        let (folder, done) = once_mapped(&to_file, write_again);
        is_refused(&done, DUMP, "was modified while heapdiff read it");
        let files = fs::read_dir(folder.path()).expect("the folder").count();
        assert_eq!(files, 1, "no report and nothing half: {command:?}");
    }
}

#[test]
fn query_rows_of_a_modified_dump_end_with_a_failure() {
    let folder = folder();
    let dump = folder.path().join(DUMP);
    let done = in_the_middle(folder.path(), &["-q", "--no-index"], || write_again(&dump));
    is_refused(&done, DUMP, "was modified while heapdiff read it");
    let done = in_the_middle(folder.path(), &["-q", "--no-index"], || cut(&dump));
    is_refused(&done, DUMP, "the file changed from ");
}

#[test]
fn an_index_that_is_cut_while_it_is_used_is_refused() {
    let folder = folder();
    let made = start(folder.path(), &["top", DUMP, "-q"]);
    let made = made.wait_with_output().expect("a run");
    assert!(made.status.success());
    let index = folder.path().join(INDEX);
    let whole = fs::read(&index).expect("an index");
    let done = in_the_middle(folder.path(), &["-q"], || cut(&index));
    is_refused(&done, INDEX, "the file changed from ");
    fs::write(&index, whole).expect("the index");
    let done = in_the_middle(folder.path(), &["-q"], || write_again(&index));
    is_refused(&done, INDEX, "was modified while heapdiff read it");
}

#[test]
fn an_export_without_disk_space_leaves_no_partial_file() {
    let folder = folder();
    // Limits each file to 64 blocks of 512 or 1024 bytes.
    let script = format!(
        "ulimit -f 64; exec '{}' export {DUMP} -o tables --format csv --no-index -q",
        env!("CARGO_BIN_EXE_heapdiff")
    );
    let mut command = std::process::Command::new("sh");
    let command = command.args(["-c", &script]).current_dir(folder.path());
    let done = command.output().expect("a run");
    let stderr = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(2), "{:?}: {stderr}", done.status);
    assert!(stderr.contains("cannot write"), "{stderr}");
    let left = fs::read_dir(folder.path().join("tables")).expect("the folder");
    let left: Vec<_> = left.map(|e| e.expect("an entry").file_name()).collect();
    assert!(!left.iter().any(|n| n == "objects.csv"), "{left:?}");
    assert!(
        !left.iter().any(|n| n.to_string_lossy().starts_with('.')),
        "{left:?}"
    );
}

#[test]
fn an_unmodified_dump_gets_a_report() {
    let folder = folder();
    let done = start(folder.path(), &["histo", DUMP, "-q"]);
    let done = done.wait_with_output().expect("an end");
    assert!(done.status.success() && !done.stdout.is_empty());
}
