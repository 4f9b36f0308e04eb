//! Checks that every JSON report fits its schema, and that the schema names every key in use.

mod by_hand;

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

fn schema(name: &str) -> Value {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../docs/json/{name}.schema.json"));
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).expect("JSON")
}

/// Makes a schema reject unknown keys. Published schemas allow unknown keys, because later versions may add some. In
/// these tests, a key that the schema does not describe is an error.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            if map.contains_key("properties") {
                map.insert("additionalProperties".into(), json!(false));
            }
            map.values_mut().for_each(close);
        }
        Value::Array(list) => list.iter_mut().for_each(close),
        _ => {}
    }
}

/// Returns the violations of the schema in a report.
pub(crate) fn faults(name: &str, report: &Value) -> Vec<String> {
    let mut closed = schema(name);
    close(&mut closed);
    let validator = jsonschema::validator_for(&closed).expect("a valid schema");
    let faults = validator.iter_errors(report);
    faults
        .map(|e| format!("{}: {e}", e.instance_path()))
        .collect()
}

fn assert_matches_schema(name: &str, args: &[&str]) {
    let folder = tempfile::tempdir().expect("a folder");
    crate::support::prepare(folder.path());
    let args = [args, &["--format", "json"]].concat();
    let done = crate::support::heapdiff(folder.path(), &args)
        .output()
        .expect("a run");
    let report: Value = serde_json::from_slice(&done.stdout).unwrap_or_else(|e| {
        let stderr = String::from_utf8_lossy(&done.stderr);
        panic!("{args:?}: {e}: {stderr}");
    });
    assert_eq!(faults(name, &report), [] as [String; 0], "{args:?}");
    by_hand::agree(name, &report);
}

const SAMPLED: &str = "testdata/sampled-after.hprof.gz";
const BEFORE: &str = "testdata/before.hprof.gz";

/// Checks all reports in the recorded outputs of commands. Every command has recorded outputs, so the reports of new
/// commands are checked, too.
#[test]
fn recorded_reports_match_their_schemas() {
    let mut checked = 0;
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cmd");
    for case in fs::read_dir(cases).expect("a folder").flatten() {
        let text = fs::read_to_string(case.path()).expect("a case");
        for block in text.split("\n{\n").skip(1) {
            let body = block.split("\n}\n").next().unwrap_or_default();
            // Blocks that are not valid JSON contain a wildcard or belong to a script.
            let Ok(report) = serde_json::from_str::<Value>(&format!("{{{body}}}")) else {
                continue;
            };
            let name = report["schema"].as_str().and_then(|name| {
                let name = name.strip_prefix("heapdiff.")?;
                name.strip_suffix("/1")
            });
            if let Some(name) = name {
                let case = case.path();
                assert_eq!(
                    faults(name, &report),
                    [] as [String; 0],
                    "{}",
                    case.display()
                );
                checked += 1;
            }
        }
    }
    assert!(checked > 10, "{checked} reports");
}

#[test]
fn histo_matches_its_schema() {
    assert_matches_schema("histo", &["histo", BEFORE]);
    assert_matches_schema("histo", &["histo", BEFORE, "--retained"]);
    assert_matches_schema("histo", &["histo", "cut.hprof"]);
}

#[test]
fn query_matches_its_schema() {
    let all = "select * from objects limit 20";
    assert_matches_schema("query", &["query", BEFORE, all]);
    let computed = "select count(*) as n, 0.5, null, via from refs group by via";
    assert_matches_schema("query", &["query", SAMPLED, computed, "--max-rows", "3"]);
    assert_matches_schema(
        "query",
        &["query", "cut.hprof", "select * from strings where 0"],
    );
    let both = "select count(*) from after.objects, before.threads";
    assert_matches_schema("query", &["query", BEFORE, "testdata/after.hprof.gz", both]);
    assert_matches_schema("query", &["query", BEFORE, ".tables"]);
}

#[test]
fn diff_matches_its_schema() {
    assert_matches_schema("diff", &["diff", BEFORE, "testdata/after.hprof.gz"]);
    assert_matches_schema("diff", &[BEFORE, BEFORE, "cut.hprof"]);
}

#[test]
fn one_dump_matches_its_schema() {
    assert_matches_schema("heap", &[BEFORE]);
    assert_matches_schema("heap", &["diff", SAMPLED, "--top", "2"]);
    assert_matches_schema("heap", &["cut.hprof", "--include", "Shop"]);
}

#[test]
fn sites_matches_its_schema() {
    assert_matches_schema("sites", &["sites", SAMPLED]);
    assert_matches_schema(
        "sites",
        &["sites", SAMPLED, "--top", "2", "--focus", "Orders"],
    );
}

#[test]
fn sites_by_class_and_allocations_match_their_schemas() {
    assert_matches_schema("sites", &["sites", SAMPLED, "--by", "class"]);
    assert_matches_schema("allocated", &["sites", SAMPLED, "--allocated"]);
    let focused = ["sites", SAMPLED, "--allocated", "--focus", "Orders"];
    assert_matches_schema("allocated", &[&focused[..], &["--top", "1"]].concat());
}

#[test]
fn recordings_match_their_schema() {
    for recording in ["testdata/recorded.jfr.gz", "live.jfr", "cut.jfr"] {
        assert_matches_schema("recording", &["sites", recording]);
        let focused = ["sites", recording, "--allocated", "--focus", "main"];
        assert_matches_schema("recording", &[&focused[..], &["--top", "1"]].concat());
        assert_matches_schema("recording", &["sites", recording, "--by", "class"]);
    }
}

#[test]
fn dumps_with_the_agent_match_their_schema() {
    let before = "testdata/sampled-before.hprof.gz";
    assert_matches_schema("diff", &[before, SAMPLED]);
    assert_matches_schema("histo", &["histo", SAMPLED, "--retained"]);
    assert_matches_schema("histo", &["histo", SAMPLED]);
    assert_matches_schema("top", &["top", SAMPLED]);
    assert_matches_schema("threads", &["threads", SAMPLED]);
    assert_matches_schema("show", &["show", SAMPLED, "/SampleRef/"]);
    assert_matches_schema("paths", &["paths", SAMPLED, "/Orders/"]);
}

#[test]
fn top_matches_its_schema() {
    assert_matches_schema("top", &["top", BEFORE]);
    assert_matches_schema("top", &["top", "cut.hprof", "--top", "1000"]);
    assert_matches_schema("top", &["top", BEFORE, "--under", "java.lang.Thread"]);
    assert_matches_schema("top", &["top", BEFORE, "--unreachable"]);
}

#[test]
fn find_matches_its_schema() {
    for pattern in ["a", "/^[A-Z]/", "hex:00", "no such text"] {
        assert_matches_schema("find", &["find", BEFORE, pattern]);
        assert_matches_schema("find", &["find", "cut.hprof", pattern]);
    }
}

#[test]
fn paths_matches_its_schema() {
    for selector in ["java.lang.String", "class java.lang.Thread", "/./", "/Ref/"] {
        assert_matches_schema("paths", &["paths", BEFORE, selector]);
        let alternatives = ["paths", BEFORE, selector, "--alternatives", "3"];
        assert_matches_schema("paths", &alternatives);
        let without = ["paths", BEFORE, selector, "--exclude", "java.util.HashMap"];
        assert_matches_schema("paths", &without);
        assert_matches_schema("paths", &["paths", "cut.hprof", selector, "--refs", "all"]);
    }
}

#[test]
fn threads_matches_its_schema() {
    assert_matches_schema("threads", &["threads", BEFORE]);
    assert_matches_schema("threads", &["threads", "cut.hprof"]);
}

#[test]
fn show_matches_its_schema() {
    for selector in ["/./", "/\\[\\]/", "class java.lang.Thread", "/Reference/"] {
        assert_matches_schema("show", &["show", BEFORE, selector, "--top", "50"]);
        assert_matches_schema("show", &["show", "cut.hprof", selector]);
    }
}

#[test]
fn sizeof_matches_its_schema() {
    for selector in ["/./", "class java.lang.Thread", "java.lang.Integer"] {
        assert_matches_schema("sizeof", &["sizeof", BEFORE, selector, "--skip-flyweights"]);
        assert_matches_schema(
            "sizeof",
            &["sizeof", "cut.hprof", selector, "--exclude", "List"],
        );
        assert_matches_schema("sizeof", &["sizeof", SAMPLED, selector, "--stop-at", "Map"]);
        assert_matches_schema("sizeof", &["sizeof", BEFORE, selector, "--tree"]);
        assert_matches_schema("sizeof", &["sizeof", BEFORE, selector, "--skip-final"]);
    }
}

#[test]
fn waste_matches_its_schema() {
    assert_matches_schema("waste", &["waste", BEFORE]);
    assert_matches_schema("waste", &["waste", "cut.hprof", "--top", "0"]);
    assert_matches_schema(
        "waste",
        &["waste", BEFORE, "testdata/after.hprof.gz", "--top", "100"],
    );
    assert_matches_schema("waste", &["waste", SAMPLED]);
}

#[test]
fn owners_match_their_schema() {
    assert_matches_schema("owners", &["owners", BEFORE]);
    let two = ["owners", BEFORE, "testdata/after.hprof.gz", "--top", "1"];
    assert_matches_schema("owners", &two);
    for by in ["package", "jar", "loader", "thread"] {
        assert_matches_schema("owners", &["owners", SAMPLED, "--by", by]);
    }
}

#[test]
fn traces_match_their_schemas() {
    assert_matches_schema("trace-info", &["trace", "info", "shop.db"]);
    assert_matches_schema("trace-top", &["trace", "top", "imported.db"]);
    for trace in ["shop.db", "young.db"] {
        assert_matches_schema("trace-top", &["trace", "top", trace]);
        assert_matches_schema("trace-top", &["trace", "top", trace, "--by", "class"]);
        assert_matches_schema("trace-top", &["trace", "top", trace, "--window", "0"]);
        assert_matches_schema(
            "trace-samples",
            &["trace", "samples", trace, "--by", "bytes"],
        );
        assert_matches_schema("trace-ages", &["trace", "ages", trace]);
        let temporary = [
            "trace",
            "ages",
            trace,
            "--sort",
            "temporary",
            "--by",
            "class",
        ];
        assert_matches_schema("trace-ages", &temporary);
        for garbage in ["recent", "chosen"] {
            let of_threads = ["--garbage", garbage, "--thread", "http", "--focus", "."];
            let args = [&["trace", "samples", trace][..], &of_threads].concat();
            assert_matches_schema("trace-samples", &args);
        }
    }
}

#[test]
fn the_schema_of_a_snapshot_is_the_same_everywhere() {
    let snapshot = schema("histo")["$defs"]["SnapshotInfo"].clone();
    assert!(snapshot.is_object());
    for name in [
        "diff",
        "heap",
        "top",
        "show",
        "paths",
        "threads",
        "sites",
        "allocated",
        "sizeof",
        "waste",
        "owners",
    ] {
        assert_eq!(schema(name)["$defs"]["SnapshotInfo"], snapshot, "{name}");
    }
}
