//! Compares `sizeof --skip-final` and `--skip-transient` with sizes that a program measures by reflection. The program
//! measures its own objects without following these fields. On every JDK of this machine, both sizes must be equal.

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use testdata::jvm::{DumpOptions, Jdk, Launch, Selection};

fn sizeof(dump: &Path, selector: &str, options: &[&str]) -> (Value, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_heapdiff"));
    command.args(["sizeof", "--format", "json", "--top", "0"]);
    let done = command.arg(dump).arg(selector).args(options).output();
    let done = done.expect("a run");
    let stderr = String::from_utf8_lossy(&done.stderr).into_owned();
    let report = serde_json::from_slice(&done.stdout);
    (
        report.unwrap_or_else(|e| panic!("{selector}: {e}: {stderr}")),
        stderr,
    )
}

fn check(jdk: &Jdk, folder: &Path) -> Vec<String> {
    let classes = jdk
        .compile(&testdata::programs::deep_sizes())
        .expect("classes");
    let agent = jdk.agent_jar("DeepSizes", "", folder).expect("a jar");
    let mut target = Launch::class(jdk, &classes, "DeepSizes")
        .flag("-Xmx256m")
        .flag(format!("-javaagent:{}", agent.display()))
        .flag("-XX:+UnlockDiagnosticVMOptions")
        .flag("-XX:DisableIntrinsic=_getObjectSize")
        .start()
        .expect("a JVM");
    let lines = target.lines_until_ready().expect("lines");
    let file = folder.join(format!("{}.hprof", jdk.major()));
    let all = DumpOptions {
        selection: Selection::All,
        ..DumpOptions::default()
    };
    target.dump(&file, all).expect("a dump");
    drop(target);
    let classpath = std::env::join_paths([jdk.home(), classes.as_path()]).expect("paths");
    let classpath = classpath.to_str().expect("a path in UTF-8");
    let finals = ["--skip-final", "--classpath", classpath];
    let transients = ["--skip-transient", "--classpath", classpath];
    let both = [&finals[..1], &transients].concat();
    let mut failures = Vec::new();
    let mut compared = 0;
    for line in &lines {
        let words: Vec<&str> = line.split(' ').collect();
        let zoo = |field: &str| format!("DeepSizes$Zoo.{field}");
        let (selector, expected, options) = match words[..] {
            ["FINAL", field, bytes] => (zoo(field), bytes, &finals[..]),
            ["TRANSIENT", field, bytes] => (zoo(field), bytes, &transients[..]),
            ["BOTH", field, bytes] => (zoo(field), bytes, &both[..]),
            ["FINALSTATICS", bytes] => {
                ("class DeepSizes$HasStatics".to_owned(), bytes, &finals[..])
            }
            _ => continue,
        };
        compared += 1;
        let (report, stderr) = sizeof(&file, &selector, options);
        let bytes = report["set"]["deep_bytes"].to_string();
        let unknown = &report["finals"];
        if bytes != expected || unknown["unknown_classes"] != 0 || !stderr.is_empty() {
            let major = jdk.major();
            failures.push(format!(
                "JDK {major}: {selector}: {bytes}, the JVM says {expected}; {unknown}; {stderr}"
            ));
        }
    }
    assert!(compared > 210, "{lines:?}");
    // Without class files, only the final fields of records and lambdas are known.
    let (record, stderr) = sizeof(&file, "DeepSizes$Zoo.record", &["--skip-final"]);
    assert_eq!(record["set"]["deep_objects"], 1, "{record}");
    assert_eq!(stderr, "");
    let (lambda, _) = sizeof(&file, "DeepSizes$Zoo.capturing", &["--skip-final"]);
    assert_eq!(lambda["set"]["deep_objects"], 1, "{lambda}");
    let (list, stderr) = sizeof(&file, "DeepSizes$Zoo.immutableList", &["--skip-final"]);
    let unknown = "java.util.ImmutableCollections$ListN";
    assert_eq!(list["finals"]["unknown"], serde_json::json!([unknown]));
    assert!(
        stderr.contains("does not record which fields are final"),
        "{stderr}"
    );
    assert!(stderr.contains(unknown), "{stderr}");
    assert_ne!(list["set"]["deep_objects"], 1);
    failures
}

#[test]
fn sizes_without_final_or_transient_fields_equal_the_measured_sizes() {
    let jdks = Jdk::all_for_scenarios();
    assert!(!jdks.is_empty(), "no JDK found");
    let folder = tempfile::tempdir().expect("a folder");
    let failures: Vec<String> = jdks
        .iter()
        .flat_map(|jdk| check(jdk, folder.path()))
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
