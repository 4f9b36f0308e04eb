//! Tests `heapdiff count` with a program for which the number of allocations is known.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStderr};
use std::time::Duration;

use serde_json::{Value, json};
use testdata::jvm::{Jdk, Launch, Target};

use crate::support::{ended, first_line, folder, jdks, ready, run, signal, start};
use crate::trace::library;

/// Starts a program. For each line on its standard input, it allocates 2,000 times in each of four threads.
fn started(jdk: &Jdk) -> Target {
    ready(&launch(jdk))
}

fn launch(jdk: &Jdk) -> Launch {
    let program = testdata::programs::agent("Counted.java");
    let classes = jdk.compile(&program).expect("classes");
    Launch::class(jdk, classes, "Counted")
        .flags(["-Xmx256m", "-XX:+EnableDynamicAgentLoading"])
        .arg("4")
        .arg("2000")
        .timeout(Duration::from_secs(120))
}

/// Starts a count and waits until it has begun.
fn begun(target: &Target, home: &Path, more: &[&str]) -> (Child, BufReader<ChildStderr>) {
    let (pid, library) = (target.pid().to_string(), library());
    let library = library.to_str().expect("a name");
    let args = ["count", &pid, "--for", "100s", "--agent", library];
    let mut child = start(home, &[&args, more].concat());
    let (announced, mut rest) = first_line(&mut child);
    let of = format!("heapdiff: process {pid} (");
    assert!(
        announced.starts_with(&of) && announced.contains("inserting counters into "),
        "{announced}"
    );
    assert!(
        announced.contains("; the program is slower for about 1s, "),
        "{announced}"
    );
    let mut line = String::new();
    rest.read_line(&mut line).expect("a line");
    assert_eq!(
        line,
        "heapdiff: counting for 1m40s; Ctrl-C ends the count now\n"
    );
    (child, rest)
}

/// Counts while the program allocates, and ends the count with Ctrl-C as a user does. Returns standard output.
fn counted(target: &mut Target, home: &Path, phase: u32, more: &[&str]) -> String {
    let (child, _rest) = begun(target, home, more);
    target.advance(phase).expect("READY");
    signal("INT", child.id());
    ended(child).well().stdout
}

fn schema(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/json");
    let path = path.join(format!("{name}.schema.json"));
    let mut schema: Value =
        serde_json::from_str(&std::fs::read_to_string(path).expect("a schema")).expect("JSON");
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
    close(&mut schema);
    schema
}

fn assert_fits(report: &Value, name: &str) {
    let validator = jsonschema::validator_for(&schema(name)).expect("a valid schema");
    let faults = validator.iter_errors(report).map(|e| e.to_string());
    assert_eq!(faults.collect::<Vec<_>>(), [] as [String; 0]);
}

/// A dump of a JVM whose agent has `count=on` contains all allocation counts, and the time until which they are
/// complete.
#[test]
fn a_dump_contains_the_allocation_counts() {
    for jdk in jdks() {
        let home = folder();
        let library = library();
        let launch = launch(&jdk).agent(&library, "count=on,interval=16k");
        let mut target = ready(&launch);
        target.advance(2).expect("READY");
        // A forked dump contains the counts up to the fork.
        let (pid, library) = (target.pid().to_string(), library.display().to_string());
        let dump = ["dump", &pid, "--fork", "-o", "d.hprof", "--agent", &library];
        run(home.path(), &dump).well();
        let told = |more: &[&str]| {
            let command = ["sites", "d.hprof", "--allocated"];
            run(home.path(), &[&command, more].concat()).well().stdout
        };
        let text = told(&[]);
        assert!(
            text.contains("\nallocations counted: ") && text.contains(" before the dump\n"),
            "{text}"
        );
        assert!(
            text.contains("even if the JIT compiler removes them"),
            "{text}"
        );
        assert!(text.contains("count=jdk adds counters to them"), "{text}");
        let report: Value = serde_json::from_str(&told(&["--format", "json"])).expect("JSON");
        assert_fits(&report, "allocated");
        let counted = &report["counted"];
        let sites = counted["sites"].as_array().expect("sites");
        let of = |method: &str, class: &str| {
            let mut of = sites.iter();
            let found = of.find(|s| s["method"] == method && s["allocated"] == class);
            let found = found.unwrap_or_else(|| panic!("{method} {class}: {counted:#}"));
            (found["objects"].as_u64(), found["bytes"].as_u64())
        };
        assert_eq!(of("object", "Counted$Small"), (Some(8000), Some(8000 * 16)));
        assert_eq!(of("keep", "Counted$Kept"), (Some(2000), Some(2000 * 24)));
        assert_eq!(
            of("removed", "Counted$Removed"),
            (Some(8000), Some(8000 * 16))
        );
        assert_eq!(of("twoSizes", "int[][]"), (Some(8000), Some(8000 * 24)));
        assert_eq!(of("main", "java.lang.Object[]").0, Some(1));
        assert_eq!(
            counted["totals"]["sites"].as_u64(),
            Some(sites.len() as u64)
        );
        assert_eq!(counted["totals"]["sites_without_bytes"], 0, "{counted:#}");
        assert_eq!(
            counted["missed"],
            json!({"sites": 0, "methods": 0, "classes": 0})
        );
        let sql = "select objects, bytes from counted_sites where method = 'keep'";
        let rows = run(home.path(), &["query", "d.hprof", sql, "--format", "json"]);
        let rows: Value = serde_json::from_str(&rows.well().stdout).expect("JSON");
        assert_eq!(rows["rows"], json!([[2000, 48_000]]), "{rows:#}");
        let focused = told(&["--focus", r"Counted\.keep", "--format", "json"]);
        let focused: Value = serde_json::from_str(&focused).expect("JSON");
        assert_eq!(focused["counted"]["totals"]["objects"], 2000, "{focused:#}");
        // Counts by class need an agent that counts classes. The agent in this test does not.
        run(
            home.path(),
            &["sites", "d.hprof", "--allocated", "--by", "class"],
        )
        .failed(2, "the agent did not count classes");
        assert!(target.finish().expect("an end"));
    }
}

#[test]
fn every_allocation_of_a_running_jvm_is_counted() {
    for jdk in jdks() {
        let home = folder();
        let mut target = started(&jdk);
        let text = counted(&mut target, home.path(), 2, &["--top", "3"]);
        assert!(
            text.contains("(Counted): ") && text.contains(" more sites (--top N"),
            "{text}"
        );
        assert!(
            text.contains("even if the JIT compiler removes it"),
            "{text}"
        );
        assert!(text.contains("--jdk adds counters to them"), "{text}");

        let json = ["--format", "json", "--include", "^Counted"];
        let report: Value =
            serde_json::from_str(&counted(&mut target, home.path(), 3, &json)).expect("JSON");
        assert_fits(&report, "count");
        let objects = |method: &str, class: &str| {
            let sites = report["sites"].as_array().expect("sites");
            let of = sites
                .iter()
                .find(|s| s["method"] == method && s["allocated"] == class);
            of.and_then(|site| site["objects"].as_u64())
        };
        assert_eq!(objects("object", "Counted$Small"), Some(8000));
        assert_eq!(objects("twoSizes", "int[]"), Some(16_000));
        assert_eq!(objects("removed", "Counted$Removed"), Some(8000));
        assert_eq!(objects("main", "java.lang.Object[]"), None);

        // Unlike the previous count, this one includes allocations in JDK classes.
        let jdk_too = [
            "--format",
            "json",
            "--jdk",
            "--include",
            r"^java\.lang\.Thread$",
        ];
        let report: Value =
            serde_json::from_str(&counted(&mut target, home.path(), 4, &jdk_too)).expect("JSON");
        let sites = report["sites"].as_array().expect("sites");
        assert!(report["jdk"] == true && !sites.is_empty(), "{report}");
        assert!(
            sites.iter().all(|site| site["class"] == "java.lang.Thread"),
            "{report}"
        );
        assert!(target.finish().expect("an end"));
    }
}

/// Counts of a program that ProGuard shortened show its original names.
#[test]
fn counts_have_the_names_of_a_mapping() {
    let [jar, _, mapping] = testdata::programs::shrunk();
    let mapping = mapping.to_str().expect("a name");
    let jdks = jdks();
    let jdk = jdks.first().expect("a JDK");
    let launch = Launch::class(jdk, &jar, "com.acme.shop.Shop")
        .flags(["-Xmx64m", "-XX:+EnableDynamicAgentLoading"])
        .timeout(Duration::from_secs(120));
    let mut target = ready(&launch);
    let home = folder();
    let more = ["--format", "json", "--mapping", mapping];
    let report: Value =
        serde_json::from_str(&counted(&mut target, home.path(), 2, &more)).expect("JSON");
    assert_fits(&report, "count");
    let sites = report["sites"].as_array().expect("sites");
    let objects = |method: &str, allocated: &str| {
        let of = sites
            .iter()
            .find(|s| s["method"] == method && s["allocated"] == allocated);
        of.map(|site| (site["class"].clone(), site["objects"].clone()))
    };
    // `main` never returns, and a method that is already running does not get counters.
    let of = |class: &str| Some((json!(class), json!(2000)));
    assert_eq!(
        objects("<init>", "long[]"),
        of("com.acme.shop.Shop$Line"),
        "{report}"
    );
    assert_eq!(
        objects("<init>", "java.util.ArrayList"),
        of("com.acme.shop.Shop$Cart"),
        "{report}"
    );
    assert!(target.finish().expect("an end"));
}

/// Ctrl-C also ends a count while counters are being inserted. The classes are then restored.
#[test]
fn a_count_can_be_interrupted_before_it_begins() {
    for jdk in jdks() {
        let home = folder();
        let mut target = started(&jdk);
        let (pid, library) = (target.pid().to_string(), library());
        let library = library.to_str().expect("a name");
        let args = ["count", &pid, "--jdk", "--for", "100s", "--agent", library];
        let mut child = start(home.path(), &args);
        let (announced, mut stderr) = first_line(&mut child);
        assert!(
            announced.contains("inserting counters into "),
            "{announced}"
        );
        signal("INT", child.id());
        let done = ended(child);
        let mut why = String::new();
        stderr.read_to_string(&mut why).expect("lines");
        assert_eq!(done.code, Some(3), "{why}");
        assert!(
            why.contains("ended before all classes had counters"),
            "{why}"
        );
        let json = ["--format", "json", "--include", "^Counted"];
        let report: Value =
            serde_json::from_str(&counted(&mut target, home.path(), 2, &json)).expect("JSON");
        assert_eq!(report["missed"]["classes"], 0, "{report}");
        assert!(report["classes"].as_u64() > Some(0), "{report}");
        assert!(target.finish().expect("an end"));
    }
}

/// Two things are rejected: a second count at the same time, and a process that is not a JVM.
#[test]
fn one_count_at_a_time() {
    let jdk = &jdks()[0];
    let home = folder();
    let target = started(jdk);
    let pid = target.pid().to_string();
    let (first, _rest) = begun(&target, home.path(), &[]);
    let library = library();
    let agent = ["--agent", library.to_str().expect("a name")];
    let again = |pid: &str| {
        run(
            home.path(),
            &[&["count", pid, "--for", "1s"], &agent[..]].concat(),
        )
    };
    let done = again(&pid);
    done.failed(3, "the allocations of this JVM are already being counted");
    signal("INT", first.id());
    ended(first).well();
    let own = std::process::id().to_string();
    again(&own).failed(3, "is not a HotSpot JVM");
    assert!(target.finish().expect("an end"));
}
