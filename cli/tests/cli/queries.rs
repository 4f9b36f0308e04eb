//! Tests the sources of the SQL statement of `heapdiff query`, and the names of its dumps.

use std::fs;
use std::path::Path;
use std::process::{Output, Stdio};

const BEFORE: &str = "testdata/before.hprof.gz";
const AFTER: &str = "testdata/after.hprof.gz";
const SQL: &str = "select count(*) as n\nfrom threads where name = 'main';\n";

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    crate::support::prepare(folder.path());
    fs::write(folder.path().join("q.sql"), SQL).expect("a written file");
    folder
}

fn run(folder: &Path, args: &[&str], stdin: Option<&str>) -> Output {
    let from = match stdin {
        Some(name) => Stdio::from(fs::File::open(folder.join(name)).expect("a file")),
        None => Stdio::null(),
    };
    let mut command = crate::support::heapdiff(folder, args);
    command.stdin(from).output().expect("a run")
}

fn shown(folder: &Path, args: &[&str], stdin: Option<&str>) -> String {
    let done = run(folder, args, stdin);
    let stderr = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{args:?}: {stderr}");
    String::from_utf8(done.stdout).expect("text")
}

fn refused(folder: &Path, args: &[&str], stdin: Option<&str>) -> String {
    let done = run(folder, args, stdin);
    assert_eq!(done.status.code(), Some(2), "{args:?}");
    String::from_utf8_lossy(&done.stderr).into_owned()
}

#[test]
fn statements_come_from_files_and_standard_input() {
    let folder = folder();
    let here = folder.path();
    let rows = "n\n1\n(1 row)\n";
    for (args, stdin) in [
        (&["query", AFTER, SQL][..], None),
        (&["query", AFTER, "-f", "q.sql"], None),
        (&["query", AFTER, "--file", "-"], Some("q.sql")),
        (&["query", AFTER, "-"], Some("q.sql")),
        (&["query", AFTER], Some("q.sql")),
        (&["query", BEFORE, AFTER], Some("q.sql")),
        (
            &["query", "--as", "x=testdata/after.hprof.gz", "-"],
            Some("q.sql"),
        ),
    ] {
        assert_eq!(shown(here, args, stdin), rows, "{args:?}");
    }
    fs::write(here.join("two.sql"), "select 1;\nselect 2;\n").expect("a written file");
    fs::write(here.join("odd.sql"), b"select '\xff'").expect("a written file");
    fs::write(here.join("long.sql"), " ".repeat((1 << 20) + 1)).expect("a written file");
    for (args, stdin, text) in [
        (
            &["query", AFTER, "-f", "two.sql"][..],
            None,
            "a query must be exactly one statement, but this query has several",
        ),
        (
            &["query", AFTER, "-f", "odd.sql"],
            None,
            "the query from odd.sql is not UTF-8",
        ),
        (
            &["query", AFTER, "-f", "long.sql"],
            None,
            "the query from long.sql is longer than 1048576 bytes",
        ),
        (
            &["query", AFTER, "-f", "no.sql"],
            None,
            "cannot read the query from no.sql",
        ),
        (
            &["query", AFTER],
            None,
            "a query must be exactly one statement, but this query has none",
        ),
        (
            &["query", AFTER, "-"],
            Some("long.sql"),
            "the query from standard input is longer",
        ),
        (
            &["query", "-f", "q.sql", "--as", "1x=a.hprof"],
            None,
            "a dump cannot be named `1x`",
        ),
    ] {
        let stderr = refused(here, args, stdin);
        assert!(stderr.contains(text), "{args:?}: {stderr}");
    }
}

#[test]
fn dumps_are_queried_by_their_names() {
    let folder = folder();
    let here = folder.path();
    let count = |dump: &str| {
        let sql = "select count(*) from objects";
        let text = shown(here, &["query", dump, sql, "--format", "csv"], None);
        text.lines().nth(1).expect("a row").to_owned()
    };
    let (old, new) = (count(BEFORE), count(AFTER));
    assert_ne!(old, new);
    let sql = |a: &str, b: &str| {
        format!(
            "select (select count(*) from {a}.objects), (select count(*) from {b}.objects), count(*) from objects"
        )
    };
    let row = |args: &[&str]| {
        let text = shown(here, &[args, &["--format", "csv"]].concat(), None);
        text.lines().nth(1).expect("a row").to_owned()
    };
    let expected = format!("{old},{new},{old}");
    assert_eq!(
        row(&["query", BEFORE, AFTER, &sql("before", "after")]),
        expected
    );
    let named = format!("new={AFTER}");
    assert_eq!(
        row(&["query", BEFORE, "--as", &named, &sql("dump1", "new")]),
        expected
    );
    let third = row(&["query", BEFORE, AFTER, BEFORE, &sql("dump3", "dump2")]);
    assert_eq!(third, expected);
    let stderr = refused(
        here,
        &["query", BEFORE, AFTER, "select * from old.objects"],
        None,
    );
    assert!(stderr.contains("dumps: before, after"), "{stderr}");
}
