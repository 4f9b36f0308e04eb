//! Tests exports of traces, which other programs read, and traces that were imported or pruned.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::{heapdiff, prepare};

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    prepare(folder.path());
    folder
}

/// Runs a command that must succeed, and returns its output.
fn run(folder: &Path, args: &[&str]) -> String {
    let done = heapdiff(folder, args).output().expect("a run");
    let stderr = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{args:?}: {stderr}");
    String::from_utf8(done.stdout).expect("text")
}

#[test]
fn tables_have_all_rows() {
    let folder = folder();
    let home = folder.path();
    for format in ["csv", "json", "parquet"] {
        run(
            home,
            &[
                "trace", "export", "shop.db", "--format", format, "-o", "tables",
            ],
        );
    }
    let lines = |name: &str| {
        let text = fs::read_to_string(home.join("tables").join(name)).expect("a table");
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(lines("tick.jsonl").len(), 120);
    let csv = lines("tick.csv");
    assert_eq!(csv.len(), 121);
    assert!(
        csv[0].starts_with("id,run,time_ms,uptime_ms,span_ms,heap_used,"),
        "{}",
        csv[0]
    );
    let row: Value = serde_json::from_str(&lines("site_tick.jsonl")[0]).expect("JSON");
    assert_eq!(row["site"], 1);
    assert!(row["live_bytes_variance"].is_f64(), "{row}");
    let run_row: Value = serde_json::from_str(&lines("run.jsonl")[0]).expect("JSON");
    assert_eq!(
        (&run_row["service"], &run_row["pid"]),
        (&"shop".into(), &4711.into())
    );
    for name in [
        "run",
        "class",
        "frame",
        "stack",
        "site",
        "tick",
        "site_tick",
        "collection",
        "note",
    ] {
        let bytes = fs::read(home.join(format!("tables/{name}.parquet"))).expect("a table");
        assert!(
            bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"),
            "{name}"
        );
    }
    // If a table is exported alone, it must equal the same table in the full export.
    let alone = run(
        home,
        &[
            "trace", "export", "shop.db", "--format", "csv", "--table", "tick",
        ],
    );
    assert_eq!(alone.lines().collect::<Vec<_>>(), csv);
}

#[test]
fn slices_are_exported_as_profiles() {
    let folder = folder();
    let home = folder.path();
    let args = [
        "trace", "export", "shop.db", "--format", "pprof", "--slice", "30s", "-o", "slices",
    ];
    run(home, &args);
    let mut names: Vec<_> = fs::read_dir(home.join("slices"))
        .expect("the folder")
        .map(|e| {
            e.expect("an entry")
                .file_name()
                .into_string()
                .expect("text")
        })
        .collect();
    names.sort();
    assert_eq!(
        names,
        [
            "4711-1760000000000.pb.gz",
            "4711-1760000030000.pb.gz",
            "4711-1760000060000.pb.gz",
            "4711-1760000090000.pb.gz"
        ]
    );
    let pprof = |args: &[&str], files: &[String]| {
        let done = Command::new("go")
            .args(["tool", "pprof", "-symbolize=none", "-unit=B"])
            .args(args)
            .args(files)
            .current_dir(home.join("slices"))
            .output()
            .expect("go is needed for this test");
        assert!(
            done.status.success(),
            "{}",
            String::from_utf8_lossy(&done.stderr)
        );
        String::from_utf8(done.stdout).expect("text")
    };
    // The leak: 160 buffers of 2064 bytes in each of 100 ticks.
    let last = pprof(&["-top", "-sample_index=inuse_space"], &names[3..]);
    let leak = last
        .lines()
        .find(|l| l.ends_with(" com.acme.Interceptor.record"))
        .expect("the leak");
    assert!(
        leak.trim_start().starts_with("33024000B") || leak.trim_start().starts_with("33"),
        "{last}"
    );
    assert!(last.contains("Duration: 30s"), "{last}");
    assert!(last.contains("Time: 2025-10-09 08:54:50 UTC"), "{last}");
    // The sum of the allocations in all slices equals the total of the trace.
    let all = pprof(&["-top", "-sample_index=alloc_space"], &names);
    let report = run(home, &["trace", "top", "shop.db", "--format", "json"]);
    let report: Value = serde_json::from_str(&report).expect("JSON");
    let allocated = report["totals"]["allocated_bytes"].as_u64().expect("bytes");
    assert!(
        all.contains(&format!("of {allocated}B total")),
        "{allocated}: {all}"
    );
}

#[test]
fn an_imported_recording_has_all_of_it() {
    let folder = folder();
    let home = folder.path();
    for recording in ["testdata/recorded.jfr.gz", "live.jfr"] {
        let json = |args: &[&str]| -> Value {
            let all = [args, &["--format", "json"]].concat();
            serde_json::from_str(&run(home, &all)).expect("JSON")
        };
        let trace = format!("{}.db", recording.replace('/', "-"));
        run(
            home,
            &["trace", "import", recording, "-o", &trace, "--tick", "70ms"],
        );
        let top = json(&["trace", "top", &trace]);
        let (live, allocated) = (
            json(&["sites", recording]),
            json(&["sites", recording, "--allocated"]),
        );
        let near = |a: &Value, b: &Value| {
            let (a, b) = (a.as_u64().expect("a figure"), b.as_u64().expect("a figure"));
            // One figure is a sum of values that were rounded for each tick of the trace. The other figure was rounded
            // only once. So the two figures may differ a little.
            assert!(a.abs_diff(b) <= 600, "{a} and {b}");
        };
        near(
            &top["totals"]["live_bytes"],
            &live["totals"]["estimated_bytes"],
        );
        near(
            &top["totals"]["allocated_bytes"],
            &allocated["totals"]["estimated_bytes"],
        );
        assert_eq!(top["totals"]["live_samples"], live["totals"]["samples"]);
        assert_eq!(top["basis"], "survivors");
        let first = &top["candidates"][0];
        assert_eq!(first["class"], "byte[]");
        assert_eq!(first["frames"], live["stacks"][0]["frames"]);
        // The recording lists only the objects that were alive at its end. So the trace does not show how many objects
        // were alive before.
        assert_eq!(first["verdict"], "growth");
        let info = json(&["trace", "info", &trace]);
        let collections = &info["runs"][0]["collections"]["all"];
        assert_eq!(collections, &live["recording"]["collections"]);
        // A recording does not contain the times at which objects were freed.
        for args in [
            &["ages", &*trace][..],
            &["flame", &*trace, "--ages", "--format", "collapsed"],
        ] {
            let args = [&["trace"], args].concat();
            let done = heapdiff(home, &args).output().expect("a run");
            let errors = String::from_utf8_lossy(&done.stderr);
            assert_eq!(done.status.code(), Some(3), "{args:?}");
            assert!(
                errors.contains("does not contain the ages of objects"),
                "{errors}"
            );
        }
    }
    let left = fs::read_dir(home).expect("the folder");
    let left = left.filter_map(Result::ok).map(|e| e.file_name());
    assert_eq!(
        left.filter(|n| n.to_string_lossy().starts_with(".heapdiff-"))
            .count(),
        0
    );
}

/// A flame graph of ages always covers all objects since the start of the run, so `--since` and `--window` are refused.
#[test]
fn a_flame_graph_of_ages_begins_with_the_run() {
    let folder = folder();
    for part in ["--since", "--window"] {
        let args = ["trace", "flame", "shop.db", "--ages", part, "1m"];
        let args = [&args[..], &["--format", "collapsed"]].concat();
        let done = heapdiff(folder.path(), &args).output().expect("a run");
        let errors = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(2), "{errors}");
        assert!(errors.contains("it works with --until"), "{errors}");
    }
}

#[test]
fn an_unmerged_log_is_not_applied_to_another_trace() {
    let folder = folder();
    let home = folder.path();
    fs::write(home.join("t.db-wal"), "left by a JVM that was killed").expect("a file");
    let args = ["trace", "import", "live.jfr", "-o", "t.db", "--force"];
    let done = heapdiff(home, &args).output().expect("a run");
    assert_eq!(done.status.code(), Some(2));
    assert!(!home.join("t.db").exists());
}

#[test]
fn old_data_is_pruned() {
    let folder = folder();
    let home = folder.path();
    // The old name of the command works, too.
    fs::copy(home.join("shop.db"), home.join("copy.db")).expect("a copy");
    let said = ["prune", "expunge"].map(|name| {
        let trace = match name {
            "prune" => "shop.db",
            _ => "copy.db",
        };
        let args = ["trace", name, trace, "--before", "1m"];
        let done = heapdiff(home, &args).output().expect("a run");
        assert_eq!(done.status.code(), Some(0));
        String::from_utf8(done.stderr).expect("text")
    });
    assert!(said[0].contains("deleted all data before"), "{}", said[0]);
    assert_eq!(said[0], said[1]);
    let same = |trace: &str| {
        run(
            home,
            &[
                "trace", "export", trace, "--table", "tick", "--format", "csv",
            ],
        )
    };
    assert_eq!(same("shop.db"), same("copy.db"));
    let report = run(home, &["trace", "top", "shop.db", "--format", "json"]);
    let report: Value = serde_json::from_str(&report).expect("JSON");
    assert!(
        report["window"]["ticks"].as_u64().expect("ticks") <= 62,
        "{}",
        report["window"]
    );
    // The live bytes include objects that were alive before the start of the window.
    let taxes = report["candidates"].as_array().expect("a list").iter();
    let taxes = taxes.filter(|c| c["class"] == "com.acme.Tax");
    assert_eq!(
        taxes
            .map(|c| c["live_objects"].as_u64())
            .collect::<Vec<_>>(),
        [Some(4800)]
    );
}
