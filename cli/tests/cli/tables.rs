//! Tests `heapdiff query` and `heapdiff export`: the contents of the exported files, and the output for a hostile dump.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Output;

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};
use serde_json::Value;

const DUMP: &str = "testdata/after.hprof.gz";
const SAMPLED: &str = "testdata/sampled-after.hprof.gz";

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    crate::support::prepare(folder.path());
    folder
}

fn run(folder: &Path, args: &[&str]) -> Output {
    let done = crate::support::heapdiff(folder, args)
        .output()
        .expect("a run");
    let stderr = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{args:?}: {stderr}");
    done
}

fn json(folder: &Path, args: &[&str]) -> Value {
    let done = run(folder, &[args, &["--format", "json"]].concat());
    serde_json::from_slice(&done.stdout).expect("JSON")
}

/// Returns the rows and the metadata of a Parquet file.
fn read(path: &Path) -> (Vec<Row>, BTreeMap<String, String>) {
    let file = fs::File::open(path).expect("the file");
    let reader = SerializedFileReader::new(file).expect("Parquet");
    let pairs = reader.metadata().file_metadata().key_value_metadata();
    let pairs = pairs.expect("metadata").iter();
    let pairs = pairs.map(|kv| (kv.key.clone(), kv.value.clone().unwrap_or_default()));
    let rows = reader.get_row_iter(None).expect("rows");
    (rows.map(|r| r.expect("a row")).collect(), pairs.collect())
}

fn field<'a>(row: &'a Row, name: &str) -> &'a Field {
    let mut fields = row.get_column_iter();
    fields.find(|(n, _)| *n == name).expect("the column").1
}

fn whole(row: &Row, name: &str) -> i64 {
    match field(row, name) {
        Field::Long(value) => *value,
        other => panic!("{name}: {other:?}"),
    }
}

fn text(row: &Row, name: &str) -> String {
    match field(row, name) {
        Field::Str(value) => value.clone(),
        other => panic!("{name}: {other:?}"),
    }
}

#[test]
fn an_export_contains_the_data_of_reports() {
    let folder = folder();
    let here = folder.path();
    for dump in [DUMP, SAMPLED] {
        let args = [
            "export",
            dump,
            "-o",
            "out/tables",
            "--label",
            "service=shop",
        ];
        let done = run(here, &[&args[..], &["--label", "note=a=b"]].concat());
        let shown = String::from_utf8(done.stdout).expect("text");
        let histo = json(here, &["histo", dump, "--retained"]);
        let out = here.join("out/tables");
        let (objects, about) = read(&out.join("objects.parquet"));
        assert_eq!(about["service"], "shop");
        assert_eq!(about["note"], "a=b");
        assert_eq!(about["heapdiff.dump"], dump);
        assert_eq!(
            about["heapdiff.taken_ms"],
            histo["snapshot"]["taken_ms"].to_string()
        );
        assert_eq!(about["heapdiff.partial"], "false");
        assert_eq!(objects.len() as u64, histo["snapshot"]["objects"]);

        let mut sums: BTreeMap<(String, u64), (u64, i64)> = BTreeMap::new();
        for row in &objects {
            let Field::ULong(class) = field(row, "class_id") else {
                panic!("a class without an id");
            };
            let sum = sums.entry((text(row, "class"), *class)).or_default();
            sum.0 += 1;
            sum.1 += whole(row, "shallow_bytes");
        }
        let listed = histo["classes"].as_array().expect("classes");
        assert_eq!(listed.len(), sums.len());
        let (classes, _) = read(&out.join("classes.parquet"));
        let mut found = 0;
        for row in &classes {
            let Field::ULong(id) = field(row, "id") else {
                continue;
            };
            let (count, bytes) = sums
                .get(&(text(row, "class"), *id))
                .copied()
                .unwrap_or_default();
            assert_eq!(whole(row, "objects"), count as i64);
            assert_eq!(whole(row, "shallow_bytes"), bytes);
            found += usize::from(count > 0);
        }
        assert_eq!(found, sums.len());
        let mut one_name: Vec<(&str, i64, i64, i64)> = Vec::new();
        for class in listed {
            let figure = |key: &str| class[key].as_i64().expect("a number");
            one_name.push((
                class["class"].as_str().expect("a name"),
                figure("objects"),
                figure("shallow_bytes"),
                figure("retained_bytes"),
            ));
        }
        let names: Vec<String> = classes.iter().map(|row| text(row, "class")).collect();
        let mut from_file: Vec<(&str, i64, i64, i64)> = classes
            .iter()
            .zip(&names)
            .filter(|(row, _)| whole(row, "objects") > 0)
            .map(|(row, name)| {
                let figure = |key| whole(row, key);
                (
                    &**name,
                    figure("objects"),
                    figure("shallow_bytes"),
                    figure("retained_bytes"),
                )
            })
            .collect();
        from_file.sort_unstable();
        one_name.sort_unstable();
        let without_retained = |rows: &[(&str, i64, i64, i64)]| -> Vec<(String, i64, i64)> {
            let rows = rows.iter();
            rows.map(|row| (row.0.to_owned(), row.1, row.2)).collect()
        };
        assert_eq!(without_retained(&from_file), without_retained(&one_name));
        // In the table `classes`, the retained bytes of a class are the sum over its instances, without instances that
        // another instance of the class retains. This sum is a lower bound of the bytes that all instances retain
        // together.
        for (of_table, of_set) in from_file.iter().zip(&one_name) {
            assert!(of_table.3 <= of_set.3, "{of_table:?} {of_set:?}");
        }

        // Each exported table must have as many rows as the table that a query reads.
        for table in [
            "objects",
            "classes",
            "refs",
            "roots",
            "strings",
            "threads",
            "frames",
            "samples",
            "allocated",
            "counted_sites",
        ] {
            let sql = format!("select count(*) from {table}");
            let counted = json(here, &["query", dump, &sql]);
            let (rows, _) = read(&out.join(format!("{table}.parquet")));
            assert_eq!(counted["rows"][0][0], rows.len() as u64, "{table}");
            assert!(
                shown.contains(&format!("out/tables/{table}.parquet")),
                "{shown}"
            );
        }
        let (strings, _) = read(&out.join("strings.parquet"));
        assert!(strings.iter().any(|row| text(row, "value") == "main"));
        let top = json(here, &["top", dump, "--top", "1"]);
        let most = objects
            .iter()
            .filter_map(|row| match field(row, "retained_bytes") {
                Field::Long(bytes) => Some(*bytes),
                _ => None,
            });
        assert_eq!(most.max(), top["objects"][0]["retained_bytes"].as_i64());
    }
}

#[test]
fn an_export_is_the_same_each_time_and_replaces_the_last() {
    let folder = folder();
    let here = folder.path();
    let export = |out: &str, threads: &str| {
        run(here, &["export", DUMP, "-o", out, "--threads", threads]);
    };
    export("one", "1");
    export("two", "2");
    export("two", "2");
    let mut files = 0;
    for entry in fs::read_dir(here.join("two")).expect("the folder") {
        let name = entry.expect("an entry").file_name();
        let [one, two] =
            ["one", "two"].map(|f| fs::read(here.join(f).join(&name)).expect("a file"));
        assert!(one == two, "{}", name.display());
        files += 1;
    }
    assert_eq!(files, 10);
}

#[test]
fn a_query_writes_parquet_with_typed_columns() {
    let folder = folder();
    let here = folder.path();
    let sql = "select id, class, reachable, count(*) over () * 1 as n, 0.5 * length as half,
               null as blank from objects where class = 'int[]'";
    run(here, &["query", DUMP, sql, "-o", "ints.parquet"]);
    let (rows, about) = read(&here.join("ints.parquet"));
    assert_eq!(about["heapdiff.sql"], sql);
    assert!(matches!(field(&rows[0], "id"), Field::ULong(_)));
    assert!(matches!(field(&rows[0], "reachable"), Field::Bool(_)));
    assert!(matches!(field(&rows[0], "half"), Field::Double(_)));
    assert!(matches!(field(&rows[0], "blank"), Field::Null));
    assert_eq!(whole(&rows[0], "n"), rows.len() as i64);
    // The first rows determine the type of a column. If a later value has another type, the export fails and leaves no
    // file behind.
    let mixed =
        "select case when row_number() over () < 6000 then 1 else 'x' end as v from objects";
    let args = ["query", DUMP, mixed, "-o", "mixed.parquet"];
    let done = crate::support::heapdiff(here, &args)
        .output()
        .expect("a run");
    assert_eq!(done.status.code(), Some(2));
    let stderr = String::from_utf8(done.stderr).expect("text");
    assert!(
        stderr.contains("column v: row 6000 contains text"),
        "{stderr}"
    );
    let left: Vec<_> = fs::read_dir(here)
        .expect("the folder")
        .map(|e| e.expect("an entry").file_name())
        .filter(|n| n.to_string_lossy().contains("mixed") || n.to_string_lossy().starts_with('.'))
        .collect();
    assert_eq!(left, [] as [std::ffi::OsString; 0]);
}

/// The dump has names and strings with control sequences for terminals.
#[test]
fn names_in_a_dump_cannot_control_a_terminal() {
    use testdata::writer::{FieldType, HeapBuilder, Options, Root};
    let folder = folder();
    let here = folder.path();
    let mut heap = HeapBuilder::new(Options::default());
    let object = heap.boot().object;
    let evil = "\u{1b}]0;owned\u{7}\u{202e}evil";
    let class = heap.add_class(
        evil,
        Some(object),
        &[("next\u{1b}[2J", FieldType::Object)],
        &[],
    );
    let text = heap.add_string("a\r\n\u{9b}31mb\u{200f}");
    let holder = heap.add_instance(class, &[text.into()]);
    heap.add_root(Root::JniGlobal { global_ref: 1 }, holder);
    fs::write(here.join("evil.hprof"), heap.build()).expect("a dump");
    let shown = |sql: &str| {
        let done = run(here, &["query", "evil.hprof", sql, "-q"]);
        String::from_utf8(done.stdout).expect("text")
    };
    for sql in [
        "select class, id from objects",
        "select id, class from objects",
        "select source_class, via, target_class from refs",
        "select value, id from strings",
        "select id, value from strings",
        "select 1 as \"\u{1b}[31m\"",
    ] {
        let shown = shown(sql);
        let bad = shown
            .chars()
            .find(|c| c.is_control() && *c != '\n' || matches!(c, '\u{202e}' | '\u{200f}'));
        assert_eq!(bad, None, "{sql}: {shown:?}");
    }
    assert!(shown("select class from objects").contains("evil"));
    // In formats for programs, the strings are unchanged.
    let report = json(
        here,
        &[
            "query",
            "evil.hprof",
            "select value from strings where value like 'a%b%'",
        ],
    );
    assert_eq!(report["rows"][0][0], "a\r\n\u{9b}31mb\u{200f}");
}

/// Ctrl-C ends a query that would never end. No part of the query's output file remains.
#[cfg(target_os = "linux")]
#[test]
fn a_query_can_be_interrupted() {
    use std::os::unix::process::ExitStatusExt;
    let folder = folder();
    let here = folder.path();
    let endless = "with recursive n(x) as (select 1 union all select x + 1 from n) select x from n";
    let mut child = crate::support::heapdiff(here, &["query", DUMP, endless, "-o", "n.csv"])
        .spawn()
        .expect("a run");
    let begun = || {
        let names = fs::read_dir(here).expect("the folder");
        let mut names = names.map(|e| e.expect("an entry").file_name());
        names.any(|n| n.to_string_lossy().starts_with(".heapdiff-"))
    };
    while !begun() {
        assert!(child.try_wait().expect("a state").is_none(), "it ended");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    // If the tests run in the background, they ignore Ctrl-C, and their child processes inherit this.
    let status = fs::read_to_string("/proc/self/status").expect("the state");
    let mask = status.lines().find_map(|l| l.strip_prefix("SigIgn:"));
    let ignored = u64::from_str_radix(mask.expect("a mask").trim(), 16).expect("a number");
    let (name, number) = if ignored & 2 == 0 {
        ("INT", 2)
    } else {
        ("TERM", 15)
    };
    let kill = format!("kill -{name} {}", child.id());
    let sent = std::process::Command::new("sh")
        .args(["-c", &kill])
        .status();
    assert!(sent.expect("a shell").success());
    let end = child.wait().expect("an end");
    assert_eq!(end.signal(), Some(number));
    assert!(!begun() && !here.join("n.csv").exists());
}
