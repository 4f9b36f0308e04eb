//! Tests one rule for all outputs: no output replaces an input file of the command line. An output replaces a dump, a
//! recording or a trace only with `--force`.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Output;

use crate::support::{heapdiff, prepare};

const BEFORE: &str = "testdata/before.hprof.gz";
const AFTER: &str = "testdata/after.hprof.gz";

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    prepare(folder.path());
    folder
}

fn run(folder: &Path, line: &str) -> Output {
    let args: Vec<&str> = line.split(' ').collect();
    heapdiff(folder, &args).output().expect("a run")
}

/// Runs a command that must be rejected with the reason `why` and leave `file` unchanged.
#[track_caller]
fn refuses(folder: &Path, line: &str, file: &str, why: &str) {
    let content = fs::read(folder.join(file)).expect("the file");
    let done = run(folder, line);
    let stderr = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(2), "{line}: {stderr}");
    let first = stderr.lines().next().unwrap_or_default();
    assert!(first.contains(why), "{line}: {stderr}");
    assert!(
        stderr.contains("give another file name"),
        "{line}: {stderr}"
    );
    let now = fs::read(folder.join(file)).expect("the file");
    assert!(now == content, "{line}: {file} was replaced");
}

#[track_caller]
fn works(folder: &Path, line: &str) {
    let done = run(folder, line);
    let stderr = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{line}: {stderr}");
}

#[test]
fn no_output_replaces_an_input_of_the_command_line() {
    let folder = folder();
    let folder = folder.path();
    let at = |name: &str| folder.join(name);
    for made in ["out", "tables", "classes/com", "libs"] {
        fs::create_dir_all(at(made)).expect("a folder");
    }
    for (name, content) in [
        ("q.sql", "select 1"),
        ("app.jar", "PK"),
        ("libs/a.jar", "PK"),
        ("classes/com/A.class", "class"),
        ("agent.so", "library"),
        ("shop.db-wal", "log"),
    ] {
        fs::write(at(name), content).expect("a file");
    }
    fs::copy(at(BEFORE), at("out/objects.csv")).expect("a copy");
    fs::copy(at("mapping.txt"), at("tables/roots.csv")).expect("a copy");
    fs::copy(at("shop.db"), at("out/tick.csv")).expect("a copy");
    works(folder, &format!("{BEFORE} {AFTER} -o report.json"));
    works(folder, &format!("summarize {BEFORE} -o before.heap"));
    for (line, file) in [
        (
            "BEFORE AFTER --trace shop.db -o shop.db --format json",
            "shop.db",
        ),
        (
            "BEFORE AFTER --trace shop.db -o shop.db-wal --format json",
            "shop.db-wal",
        ),
        (
            "BEFORE AFTER --ignore known-growth.txt -o known-growth.txt --format json",
            "known-growth.txt",
        ),
        ("BEFORE AFTER -o AFTER --format json", AFTER),
        ("BEFORE AFTER AFTER -o BEFORE --format json", BEFORE),
        (
            "before.heap AFTER -o before.heap --format json",
            "before.heap",
        ),
        ("report.json -o report.json", "report.json"),
        (
            "histo BEFORE --mapping mapping.txt -o mapping.txt --format json",
            "mapping.txt",
        ),
        ("query BEFORE -f q.sql -o q.sql --format csv", "q.sql"),
        (
            "query --as a=BEFORE -f q.sql -o BEFORE --format csv",
            BEFORE,
        ),
        (
            "sizeof BEFORE Orders --skip-final --classpath classes:app.jar -o app.jar --format json",
            "app.jar",
        ),
        (
            "sizeof BEFORE Orders --skip-final --classpath libs/* -o libs/a.jar --format json",
            "libs/a.jar",
        ),
        (
            "sizeof BEFORE Orders --skip-final --classpath classes -o classes/com/A.class --format json",
            "classes/com/A.class",
        ),
        (
            "export out/objects.csv --format csv -o out",
            "out/objects.csv",
        ),
        (
            "export BEFORE --mapping tables/roots.csv --format csv -o tables",
            "tables/roots.csv",
        ),
        (
            "trace export out/tick.csv --format csv -o out",
            "out/tick.csv",
        ),
        (
            "trace export shop.db --format csv --table tick -o shop.db",
            "shop.db",
        ),
        (
            "trace top shop.db --mapping mapping.txt -o mapping.txt --format json",
            "mapping.txt",
        ),
        ("trace import live.jfr -o live.jfr --force", "live.jfr"),
        (
            "trace import live.jfr begun.jfr -o begun.jfr --force",
            "begun.jfr",
        ),
        ("summarize BEFORE -o BEFORE --force", BEFORE),
        (
            "summarize BEFORE --mapping mapping.txt -o mapping.txt",
            "mapping.txt",
        ),
        ("redact BEFORE -o BEFORE --force", BEFORE),
        ("repair cut.hprof -o cut.hprof --force", "cut.hprof"),
        ("agent --agent agent.so -o agent.so", "agent.so"),
        (
            "dump 2147483647 --fork --agent agent.so -o agent.so --force",
            "agent.so",
        ),
        (
            "count 2147483647 --mapping mapping.txt -o mapping.txt --format json",
            "mapping.txt",
        ),
    ] {
        let line = line.replace("BEFORE", BEFORE).replace("AFTER", AFTER);
        refuses(folder, &line, file, "would overwrite");
    }
}

#[test]
fn an_input_is_recognized_by_any_of_its_names() {
    let folder = folder();
    let folder = folder.path();
    let at = |name: &str| folder.join(name);
    fs::hard_link(at("mapping.txt"), at("hard.json")).expect("a link");
    symlink(at("mapping.txt"), at("soft.json")).expect("a link");
    symlink("soft.json", at("twice.json")).expect("a link");
    for output in ["hard.json", "soft.json", "twice.json", "./mapping.txt"] {
        let line = format!("histo {BEFORE} --mapping mapping.txt --format json -o {output}");
        refuses(
            folder,
            &line,
            "mapping.txt",
            "would overwrite the input mapping.txt",
        );
    }
    // The rule also applies to an input that is a symbolic link.
    let line = format!("histo {BEFORE} --mapping twice.json --format json -o mapping.txt");
    refuses(
        folder,
        &line,
        "mapping.txt",
        "would overwrite the input twice.json",
    );
    // The input is a dump on standard input.
    let done = heapdiff(folder, &["summarize", "-", "-o", "cut.hprof", "--force"])
        .stdin(fs::File::open(at("cut.hprof")).expect("the dump"))
        .output()
        .expect("a run");
    let stderr = String::from_utf8_lossy(&done.stderr);
    assert!(
        stderr.contains("would overwrite the input /dev/stdin"),
        "{stderr}"
    );
}

#[test]
fn dumps_recordings_and_traces_are_replaced_only_with_force() {
    let folder = folder();
    let folder = folder.path();
    let at = |name: &str| folder.join(name);
    let existing = [
        (AFTER, "a heap dump"),
        ("cut.hprof", "a heap dump"),
        ("live.jfr", "a JFR recording"),
        ("testdata/recorded.jfr.gz", "a JFR recording"),
        ("shop.db", "a trace"),
    ];
    for (file, what) in existing {
        let why = format!("-o {file}: the file exists and is {what}");
        for command in [
            "summarize BEFORE",
            "redact BEFORE",
            "repair BEFORE",
            "histo BEFORE --format json",
            "BEFORE BEFORE --format md",
            "trace info young.db --format json",
            "trace export young.db --format csv --table tick",
            "query BEFORE .tables --format csv",
            "agent --agent letter.txt",
        ] {
            let line = format!("{command} -o {file}").replace("BEFORE", BEFORE);
            refuses(folder, &line, file, &why);
        }
    }
    fs::create_dir(at("out")).expect("a folder");
    fs::copy(at("cut.hprof"), at("out/roots.csv")).expect("a copy");
    let line = format!("export {BEFORE} --format csv -o out");
    refuses(
        folder,
        &line,
        "out/roots.csv",
        "the file exists and is a heap dump",
    );
    let written = fs::read_dir(at("out")).expect("the folder").count();
    assert_eq!(written, 1, "nothing is written before the refusal");
    for (command, file) in [("summarize", "cut.hprof"), ("redact", "live.jfr")] {
        let old = fs::read(at(file)).expect("the file");
        works(folder, &format!("{command} {BEFORE} -o {file} --force -q"));
        assert!(fs::read(at(file)).expect("the file") != old);
    }
}

#[test]
fn outputs_that_can_be_recreated_are_replaced() {
    let folder = folder();
    let folder = folder.path();
    for line in [
        "summarize BEFORE -o before.heap -q",
        "summarize AFTER -o before.heap -q",
        "BEFORE AFTER -o report.json -q",
        "BEFORE AFTER -o report.json -q",
        "redact BEFORE -o letter.txt -q",
        "export BEFORE --tables classes --format csv -o out -q",
        "export BEFORE --tables classes --format csv -o out -q",
        "histo BEFORE -o /dev/null --format json",
        "redact BEFORE -o /dev/null -q",
        "histo BEFORE -o /dev/stdout --format json",
    ] {
        works(
            folder,
            &line.replace("BEFORE", BEFORE).replace("AFTER", AFTER),
        );
    }
}

#[test]
fn two_outputs_do_not_name_one_file() {
    let folder = folder();
    let folder = folder.path();
    symlink("a.json", folder.join("b.json")).expect("a link to nothing");
    for pair in [
        "-o a.json -o ./a.json",
        "-o a.json -o b.json",
        "-o b.json -o a.json",
    ] {
        let done = run(folder, &format!("{BEFORE} {AFTER} {pair}"));
        let stderr = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(2), "{pair}: {stderr}");
        assert!(stderr.contains(".json was given twice"), "{pair}: {stderr}");
        assert!(!folder.join("a.json").exists(), "{pair}");
    }
}

#[test]
fn pages_of_the_manual_replace_no_dump() {
    let folder = folder();
    let folder = folder.path();
    fs::create_dir(folder.join("man")).expect("a folder");
    works(folder, "man man");
    works(folder, "man man");
    let page = folder.join("man/heapdiff-histo.1");
    fs::copy(folder.join(BEFORE), &page).expect("a copy");
    let done = run(folder, "man man");
    assert_eq!(done.status.code(), Some(2));
    let stderr = String::from_utf8_lossy(&done.stderr);
    assert!(
        stderr.contains("the file exists and is a heap dump"),
        "{stderr}"
    );
}
