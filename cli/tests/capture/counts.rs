//! Tests the agent's counts for each class, from the JVM to `heapdiff trace top`.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use testdata::jvm::{Jdk, Launch};

use crate::support::{folder, jdks, run};
use crate::trace::library;

/// Runs the program `Steady`, which keeps 20,000 objects and drops 60,000, with a trace until it ends. Returns the
/// folder with the trace.
fn steady(jdk: &Jdk, options: &str) -> TempDir {
    let home = folder();
    let program = testdata::programs::agent("Steady.java");
    let classes = jdk.compile(&program).expect("classes");
    let trace = home.path().join("t.db");
    let options = format!("trace={},tick=200ms,{options}", trace.display());
    let launch = Launch::class(jdk, classes, "Steady")
        .agent(&library(), &options)
        .arg("20000")
        .timeout(Duration::from_secs(120));
    let mut target = launch.start().expect("a JVM");
    target.wait_ready(1).expect("READY");
    assert!(target.finish().expect("an end"));
    home
}

fn top(home: &Path, more: &[&str]) -> String {
    let args = [&["trace", "top", "t.db", "--by", "class"], more].concat();
    run(home, &args).well().stdout
}

fn report(home: &Path, more: &[&str]) -> Value {
    let json = [&["--format", "json"], more].concat();
    serde_json::from_str(&top(home, &json)).expect("JSON")
}

const COUNTED: &str =
    "allocations that pass the agent's filters, from its start to the last data point";

#[test]
fn a_trace_contains_the_counts_of_each_class() {
    for jdk in jdks() {
        let home = steady(&jdk, "strategy=class,rate=50");
        let home = home.path();
        let all = report(home, &["--top", "100000"]);
        let rows = all["counted"]["rows"].as_array().expect("rows");
        let count = |class: &str| {
            let row = rows.iter().find(|row| row["class"] == class);
            let row = row.unwrap_or_else(|| panic!("{all:#}"));
            [&row["objects"], &row["bytes"]].map(|n| n.as_u64().expect("a number"))
        };
        let [kept, kept_bytes] = count("Steady$Kept");
        let [dropped, dropped_bytes] = count("Steady$Dropped");
        let what = format!("JDK {}", jdk.version());
        assert_eq!((kept, dropped), (20_000, 60_000), "{what}");
        // The size of an object with three long fields and a header.
        let size = kept_bytes / kept;
        assert!((32..=40).contains(&size), "{what}: {size}");
        assert_eq!(
            (kept_bytes, dropped_bytes),
            (kept * size, dropped * size),
            "{what}"
        );
        let sum = |key: &str| rows.iter().filter_map(|row| row[key].as_u64()).sum::<u64>();
        let counted = &all["counted"];
        assert_eq!(counted["objects"].as_u64(), Some(sum("objects")), "{what}");
        assert_eq!(counted["bytes"].as_u64(), Some(sum("bytes")), "{what}");
        assert_eq!(
            counted["classes"].as_u64(),
            Some(rows.len() as u64),
            "{what}"
        );
        assert_eq!(counted["unknown_objects"].as_u64(), Some(0), "{what}");
        let candidates = all["candidates"].as_array().expect("candidates");
        let found = candidates.iter().find(|c| c["class"] == "Steady$Kept");
        assert_eq!(
            found.expect("a candidate")["counted"]["objects"].as_u64(),
            Some(kept)
        );

        let text = top(home, &["-v", "--top", "1000"]);
        let made = format!(
            "    created  20,000 objects of {} bytes in total, counted\n",
            grouped(kept_bytes)
        );
        assert!(
            text.contains(&made) && text.contains(COUNTED),
            "{what}: {text}"
        );
        let row = format!(" 60,000  {:>9}  Steady$Dropped\n", grouped(dropped_bytes));
        assert!(text.contains(&row), "{what}: {text}");
        // If the report covers only a part of the run, it shows no counts by class, and says why.
        let part = top(home, &["-v", "--since", "+0s"]);
        let more = "counts by class are shown only without --focus, --since";
        assert!(
            part.contains(more) && !part.contains(COUNTED),
            "{what}: {part}"
        );
        assert!(
            report(home, &["--focus", "Steady"])["counted"].is_null(),
            "{what}"
        );
    }
}

#[test]
fn a_trace_without_counts_shows_none() {
    for jdk in jdks() {
        let home = steady(&jdk, "interval=4k");
        let home = home.path();
        let all = report(home, &["--top", "100000"]);
        assert!(all["counted"].is_null(), "{all:#}");
        let candidates = all["candidates"].as_array().expect("candidates");
        assert!(!candidates.is_empty() && candidates.iter().all(|c| c["counted"].is_null()));
        let text = top(home, &["-v"]);
        assert!(text.contains(", estimated from samples\n"), "{text}");
        assert!(
            !text.contains(COUNTED) && !text.contains("in total, counted"),
            "{text}"
        );
    }
}

fn grouped(n: u64) -> String {
    heapdiff_units::grouped(n)
}

/// Compares the counts by line of code with samples. Apart from random variation, counts and samples differ only for
/// allocations that the compiler removes, because these allocations are counted but never sampled.
#[test]
fn a_trace_has_rates_of_lines() {
    const N: u64 = 300_000;
    for jdk in jdks() {
        let home = folder();
        let home = home.path();
        let program = testdata::programs::agent("Counted.java");
        let classes = jdk.compile(&program).expect("classes");
        let options = format!(
            "trace={},tick=200ms,count=on,interval=16k",
            home.join("t.db").display()
        );
        let launch = Launch::class(&jdk, classes, "Counted")
            .flags(["-Xmx256m"])
            .agent(&library(), &options)
            .arg("1")
            .arg(N.to_string())
            .timeout(Duration::from_secs(300));
        let mut target = launch.start().expect("a JVM");
        target.wait_ready(1).expect("READY");
        target.advance(2).expect("a phase");
        assert!(target.finish().expect("an end"));
        let what = format!("JDK {}", jdk.version());
        let top = |more: &[&str]| {
            let args = [&["trace", "top", "t.db", "--by", "line"], more].concat();
            run(home, &args).well().stdout
        };
        let json = top(&["--format", "json", "--top", "1000"]);
        let all: Value = serde_json::from_str(&json).expect("JSON");
        let lines = &all["lines"];
        let rows = lines["rows"].as_array().expect("rows");
        let of = |method: &str, class: &str| {
            let fits = |row: &&Value| row["method"] == method && row["allocated"] == class;
            rows.iter()
                .find(fits)
                .unwrap_or_else(|| panic!("{what}: {all:#}"))
        };
        for (method, class) in [
            ("object", "Counted$Small"),
            ("bytes", "byte[]"),
            ("removed", "Counted$Removed"),
        ] {
            let row = of(method, class);
            assert_eq!(row["objects"], N, "{what}: {row}");
            let span =
                ["from_uptime_ms", "to_uptime_ms"].map(|key| lines[key].as_u64().expect("a time"));
            let ms = span[1] - span[0];
            assert_eq!(
                row["objects_per_second"],
                (N * 1000 + ms / 2) / ms,
                "{what}: {row}"
            );
        }
        assert_eq!(
            of("bytes", "byte[]")["bytes"],
            (0..N)
                .map(|i| (16 + i % 100_u64).next_multiple_of(8))
                .sum::<u64>()
        );
        assert_eq!(of("removed", "Counted$Removed")["bytes"], N * 16, "{what}");
        let removed = &of("removed", "Counted$Removed")["sampled"];
        assert_eq!(removed["beyond_chance"], true, "{what}: {removed}");
        // Before JDK 25, JVMs take too few samples of objects of some sizes, so these classes are checked only from JDK
        // 25 on.
        if jdk.major() >= 25 {
            for (method, class) in [("object", "Counted$Small"), ("bytes", "byte[]")] {
                let sampled = &of(method, class)["sampled"];
                assert_eq!(sampled["beyond_chance"], false, "{what}: {sampled}");
            }
        }
        let text = top(&["--top", "1000"]);
        let row = text
            .lines()
            .find(|line| line.contains("  Counted.removed:"));
        let row = row.unwrap_or_else(|| panic!("{what}: {text}"));
        let figures: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(figures[3], "300,000", "{what}: {row}");
        for says in [
            "allocations by bytecode, even if the JIT compiler removes them",
            "sampled/s: objects per second, estimated from samples; shown if the difference is significant",
            "JDK classes have no counters; count=jdk adds counters to them.",
        ] {
            assert!(text.contains(says), "{what}: {says}: {text}");
        }
        let info = run(home, &["trace", "info", "t.db"]).well().stdout;
        assert!(
            info.contains("    counts   exact for each line of code, from "),
            "{info}"
        );
        let export = [
            "trace",
            "export",
            "t.db",
            "--format",
            "csv",
            "--table",
            "counted_site",
        ];
        let sites = run(home, &export).well().stdout;
        assert!(sites.contains(",Counted,removed,"), "{sites}");
    }
}
