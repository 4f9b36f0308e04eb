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

fn hold(name: &str, args: &[&str]) {
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

/// Checks all reports in the recorded outputs of commands. A new command also has a recorded output, so its report is
/// checked, too.
#[test]
fn recorded_reports_hold() {
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
fn histo_holds() {
    hold("histo", &["histo", BEFORE]);
    hold("histo", &["histo", BEFORE, "--retained"]);
    hold("histo", &["histo", "cut.hprof"]);
}

#[test]
fn query_holds() {
    let all = "select * from objects limit 20";
    hold("query", &["query", BEFORE, all]);
    let computed = "select count(*) as n, 0.5, null, via from refs group by via";
    hold("query", &["query", SAMPLED, computed, "--max-rows", "3"]);
    hold(
        "query",
        &["query", "cut.hprof", "select * from strings where 0"],
    );
    let both = "select count(*) from after.objects, before.threads";
    hold("query", &["query", BEFORE, "testdata/after.hprof.gz", both]);
    hold("query", &["query", BEFORE, ".tables"]);
}

#[test]
fn diff_holds() {
    hold("diff", &["diff", BEFORE, "testdata/after.hprof.gz"]);
    hold("diff", &[BEFORE, BEFORE, "cut.hprof"]);
}

#[test]
fn one_dump_holds() {
    hold("heap", &[BEFORE]);
    hold("heap", &["diff", SAMPLED, "--top", "2"]);
    hold("heap", &["cut.hprof", "--include", "Shop"]);
}

#[test]
fn sites_holds() {
    hold("sites", &["sites", SAMPLED]);
    hold(
        "sites",
        &["sites", SAMPLED, "--top", "2", "--focus", "Orders"],
    );
}

#[test]
fn sites_by_class_and_what_was_allocated_hold() {
    hold("sites", &["sites", SAMPLED, "--by", "class"]);
    hold("allocated", &["sites", SAMPLED, "--allocated"]);
    let focused = ["sites", SAMPLED, "--allocated", "--focus", "Orders"];
    hold("allocated", &[&focused[..], &["--top", "1"]].concat());
}

#[test]
fn recordings_hold() {
    for recording in ["testdata/recorded.jfr.gz", "live.jfr", "cut.jfr"] {
        hold("recording", &["sites", recording]);
        let focused = ["sites", recording, "--allocated", "--focus", "main"];
        hold("recording", &[&focused[..], &["--top", "1"]].concat());
        hold("recording", &["sites", recording, "--by", "class"]);
    }
}

#[test]
fn dumps_with_the_agent_hold() {
    let before = "testdata/sampled-before.hprof.gz";
    hold("diff", &[before, SAMPLED]);
    hold("histo", &["histo", SAMPLED, "--retained"]);
    hold("histo", &["histo", SAMPLED]);
    hold("top", &["top", SAMPLED]);
    hold("threads", &["threads", SAMPLED]);
    hold("show", &["show", SAMPLED, "/SampleRef/"]);
    hold("paths", &["paths", SAMPLED, "/Orders/"]);
}

#[test]
fn top_holds() {
    hold("top", &["top", BEFORE]);
    hold("top", &["top", "cut.hprof", "--top", "1000"]);
    hold("top", &["top", BEFORE, "--under", "java.lang.Thread"]);
}

#[test]
fn paths_holds() {
    for selector in ["java.lang.String", "class java.lang.Thread", "/./", "/Ref/"] {
        hold("paths", &["paths", BEFORE, selector]);
        hold("paths", &["paths", "cut.hprof", selector, "--refs", "all"]);
    }
}

#[test]
fn threads_holds() {
    hold("threads", &["threads", BEFORE]);
    hold("threads", &["threads", "cut.hprof"]);
}

#[test]
fn show_holds() {
    for selector in ["/./", "/\\[\\]/", "class java.lang.Thread", "/Reference/"] {
        hold("show", &["show", BEFORE, selector, "--top", "50"]);
        hold("show", &["show", "cut.hprof", selector]);
    }
}

#[test]
fn sizeof_holds() {
    for selector in ["/./", "class java.lang.Thread", "java.lang.Integer"] {
        hold("sizeof", &["sizeof", BEFORE, selector, "--skip-flyweights"]);
        hold(
            "sizeof",
            &["sizeof", "cut.hprof", selector, "--exclude", "List"],
        );
        hold("sizeof", &["sizeof", SAMPLED, selector, "--stop-at", "Map"]);
        hold("sizeof", &["sizeof", BEFORE, selector, "--tree"]);
        hold("sizeof", &["sizeof", BEFORE, selector, "--skip-final"]);
    }
}

#[test]
fn waste_holds() {
    hold("waste", &["waste", BEFORE]);
    hold("waste", &["waste", "cut.hprof", "--top", "0"]);
    hold(
        "waste",
        &["waste", BEFORE, "testdata/after.hprof.gz", "--top", "100"],
    );
    hold("waste", &["waste", SAMPLED]);
}

#[test]
fn traces_hold() {
    hold("trace-info", &["trace", "info", "shop.db"]);
    hold("trace-top", &["trace", "top", "imported.db"]);
    for trace in ["shop.db", "young.db"] {
        hold("trace-top", &["trace", "top", trace]);
        hold("trace-top", &["trace", "top", trace, "--by", "class"]);
        hold("trace-top", &["trace", "top", trace, "--window", "0"]);
        hold(
            "trace-samples",
            &["trace", "samples", trace, "--by", "bytes"],
        );
        for garbage in ["recent", "chosen"] {
            let of_threads = ["--garbage", garbage, "--thread", "http", "--focus", "."];
            let args = [&["trace", "samples", trace][..], &of_threads].concat();
            hold("trace-samples", &args);
        }
    }
}

#[test]
fn a_snapshot_is_described_alike_everywhere() {
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
    ] {
        assert_eq!(schema(name)["$defs"]["SnapshotInfo"], snapshot, "{name}");
    }
}
