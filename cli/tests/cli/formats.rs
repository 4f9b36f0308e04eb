//! Reads the reports with other programs: pprof, flame graph tools, JUnit's schema.

use std::collections::BTreeMap;
use std::fs;
use std::io::Cursor;
use std::path::Path;
use std::process::{Command, Output};

use heapdiff_diff::FrameParts;
use serde_json::Value;

use crate::support::{heapdiff, prepare, testdata};

const DUMPS: [&str; 2] = [
    "testdata/sampled-before.hprof.gz",
    "testdata/sampled-after.hprof.gz",
];

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    prepare(folder.path());
    folder
}

fn run(folder: &Path, args: &[&str]) -> Output {
    let done = heapdiff(folder, args).output().expect("a run");
    let stderr = String::from_utf8_lossy(&done.stderr);
    assert!(
        matches!(done.status.code(), Some(0 | 1)),
        "{args:?}: {stderr}"
    );
    done
}

/// Runs another program, which `cargo xtask test` finds or installs.
fn tool(folder: &Path, program: &str, args: &[&str]) -> Output {
    let done = Command::new(program)
        .args(args)
        .current_dir(folder)
        .output();
    done.unwrap_or_else(|e| {
        panic!("{program} is needed for this test (cargo xtask test installs it): {e}")
    })
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("text")
}

#[test]
fn go_reads_the_profile() {
    let folder = folder();
    let [before, after] = DUMPS;
    // The second run gets the dumps in the reverse order. heapdiff sorts them by time.
    for (name, dumps) in [
        ("up.pb.gz", [before, after]),
        ("again.pprof", [after, before]),
    ] {
        run(folder.path(), &[dumps[0], dumps[1], "-o", name, "-q"]);
        let pprof = |more: &[&str]| {
            let args = [
                &["tool", "pprof", "-symbolize=none", "-unit=B"],
                more,
                &[name],
            ]
            .concat();
            let done = tool(folder.path(), "go", &args);
            assert!(done.status.success(), "{}", text(done.stderr));
            text(done.stdout)
        };
        let top = pprof(&["-top", "-nodecount=3"]);
        assert!(top.contains("Type: growth_space"), "{top}");
        let leaf = top
            .lines()
            .find(|l| l.ends_with(" Orders$Order.<init>"))
            .expect("the leaf");
        assert!(leaf.trim_start().starts_with("160000B"), "{top}");
        let lines = pprof(&["-traces", "-lines"]);
        assert!(
            lines.contains("Orders$Order.<init> Orders.java:22"),
            "{lines}"
        );
        let classes = pprof(&["-tags"]);
        assert!(
            classes.contains("class:") && classes.contains("long[]"),
            "{classes}"
        );
        let alive = pprof(&["-top", "-sample_index=after_objects"]);
        assert!(alive.contains("Type: after_objects"), "{alive}");
    }
    run(folder.path(), &["sites", after, "-o", "live.pprof"]);
    let top = tool(
        folder.path(),
        "go",
        &["tool", "pprof", "-top", "live.pprof"],
    );
    assert!(text(top.stdout).contains("Type: inuse_space"));
}

/// The estimates of a suspect's stacks are the same in the report and in collapsed stacks.
#[test]
fn collapsed_stacks_equal_those_of_the_report() {
    let folder = folder();
    let of = |more: &[&str]| {
        let args = [&DUMPS[..], &["-q"], more].concat();
        text(run(folder.path(), &args).stdout)
    };
    let report: Value = serde_json::from_str(&of(&["--format", "json"])).expect("JSON");
    let mut told: BTreeMap<String, u64> = BTreeMap::new();
    for suspect in report["suspects"].as_array().expect("suspects") {
        for stack in suspect["stacks"].as_array().expect("stacks") {
            let frames = stack["frames"].as_array().expect("frames").iter().rev();
            let method = |f: &Value| {
                let frame = f.as_str().expect("a frame");
                FrameParts::parse(frame).function.to_owned()
            };
            let class = stack["class"].as_str().expect("a class").to_owned();
            let line: Vec<String> = frames.map(method).chain([class]).collect();
            let bytes = stack["estimated_bytes"].as_u64().expect("bytes");
            *told.entry(line.join(";")).or_default() += bytes;
        }
    }
    assert!(told.len() > 1, "{report}");
    let figures = |more: &[&str]| -> Vec<(String, Vec<u64>)> {
        let lines = of(&[&["--format", "collapsed"], more].concat());
        let line = |line: &str| {
            let (figures, names): (Vec<&str>, Vec<&str>) =
                line.split(' ').partition(|w| w.parse::<u64>().is_ok());
            let figures = figures.into_iter().flat_map(str::parse);
            (names.join(" "), figures.collect())
        };
        lines.lines().map(line).collect()
    };
    let growth: BTreeMap<String, Vec<u64>> = figures(&[]).into_iter().collect();
    for (stack, bytes) in &told {
        assert_eq!(growth.get(stack), Some(&vec![*bytes]), "{stack}");
    }
    // The live bytes are the bytes that `sites` reports for the last dump.
    let sites = ["sites", DUMPS[1], "--format", "json", "--top", "1000"];
    let sites: Value = serde_json::from_slice(&run(folder.path(), &sites).stdout).expect("JSON");
    let stacks = sites["stacks"].as_array().expect("stacks");
    let bytes = stacks.iter().map(|s| s["estimated_bytes"].as_u64());
    let all: u64 = bytes.map(|bytes| bytes.expect("bytes")).sum();
    let both = figures(&["--columns", "both"]);
    let alive: u64 = both.iter().map(|l| l.1[1]).sum();
    // For stacks with few samples, the comparison corrects the estimate separately for each holder. The command `sites`
    // corrects the estimate for the whole heap. So the totals may differ a little.
    assert!(alive.abs_diff(all) * 100 <= all, "{alive}, {all}");
    let drawn = text(run(folder.path(), &[DUMPS[0], DUMPS[1], "--format", "svg"]).stdout);
    let grouped = |n: u64| {
        let digits = n.to_string();
        let from_end = digits.as_bytes().rchunks(3).rev();
        let parts: Vec<&str> = from_end.flat_map(std::str::from_utf8).collect();
        parts.join(",")
    };
    let title = format!("<title>all ({} bytes", grouped(alive));
    assert!(drawn.contains(&title), "{title}");
}

#[test]
fn a_flame_graph_is_drawn_of_collapsed_stacks() {
    let folder = folder();
    for columns in ["growth", "both"] {
        let args = [
            DUMPS[0],
            DUMPS[1],
            "--format",
            "collapsed",
            "--columns",
            columns,
        ];
        let stacks = text(run(folder.path(), &args).stdout);
        let mut options = inferno::flamegraph::Options::default();
        let mut svg = Vec::new();
        inferno::flamegraph::from_reader(&mut options, Cursor::new(&stacks), &mut svg)
            .expect("a flame graph");
        let svg = text(svg);
        assert!(
            svg.contains("<title>Orders$Order.&lt;init&gt; ("),
            "{columns}: {stacks}"
        );
    }
}

#[test]
fn junit_results_match_the_schema() {
    let folder = folder();
    let schema = testdata().join("junit.xsd");
    let schema = schema.to_str().expect("a path");
    for more in [
        &[][..],
        &["--fail-on-suspect"],
        &[
            "--fail-on-suspect",
            "--fail-on-growth",
            "1",
            "--ignore",
            "known-growth.txt",
        ],
        &["--fail-on-growth", "1GB"],
    ] {
        for dumps in [
            DUMPS,
            ["testdata/before.hprof.gz", "testdata/after.hprof.gz"],
            [DUMPS[0], DUMPS[0]],
        ] {
            let args = [
                &dumps[..],
                &["-q", "--top", "1000", "-o", "growth.xml"],
                more,
            ]
            .concat();
            let code = heapdiff(folder.path(), &args).output().expect("a run");
            let code = code.status.code().expect("an exit code");
            // If a dump is compared with itself, heapdiff cannot check any gate (a condition under which the run
            // fails). So the exit code is 3.
            let same = dumps[0] == dumps[1] && !more.is_empty();
            assert!(if same { code == 3 } else { code <= 1 }, "{args:?}: {code}");
            let done = tool(
                folder.path(),
                "xmllint",
                &["--noout", "--schema", schema, "growth.xml"],
            );
            assert!(done.status.success(), "{more:?}: {}", text(done.stderr));
            // A test case fails if and only if the run fails.
            let xml = fs::read_to_string(folder.path().join("growth.xml")).expect("the results");
            assert_eq!(xml.contains("<failure"), code == 1, "{args:?}");
            assert_eq!(xml.contains("<error"), code == 3, "{args:?}");
        }
    }
    // Check that the schema rejects files that are wrong.
    fs::write(
        folder.path().join("bad.xml"),
        "<testsuites><testsuite/></testsuites>",
    )
    .expect("a file");
    let done = tool(
        folder.path(),
        "xmllint",
        &["--noout", "--schema", schema, "bad.xml"],
    );
    assert!(!done.status.success());
}

#[test]
fn html_and_svg_are_well_formed() {
    let folder = folder();
    run(folder.path(), &[DUMPS[0], DUMPS[1], "-o", "growth.svg"]);
    let done = tool(
        folder.path(),
        "xmllint",
        &["--noout", "--nonet", "growth.svg"],
    );
    assert!(done.status.success(), "{}", text(done.stderr));
    run(folder.path(), &[DUMPS[0], DUMPS[1], "-o", "growth.html"]);
    let page = fs::read_to_string(folder.path().join("growth.html")).expect("the page");
    let (_, rest) = page.split_once("id=\"report\">").expect("the report");
    let (json, _) = rest.split_once("</script>").expect("its end");
    let embedded: serde_json::Value = serde_json::from_str(json).expect("JSON");
    let args = [DUMPS[0], DUMPS[1], "--format", "json"];
    let report = run(folder.path(), &args).stdout;
    let report: serde_json::Value = serde_json::from_slice(&report).expect("JSON");
    assert_eq!(embedded, report);
}

#[test]
fn top_limits_the_classes_of_a_page_as_in_text() {
    let folder = folder();
    let embedded = |page: &str, id: &str| -> Value {
        let (_, rest) = page.split_once(&format!("id=\"{id}\">")).expect("data");
        let (json, _) = rest.split_once("</script>").expect("its end");
        serde_json::from_str(json).expect("JSON")
    };
    for dumps in [&DUMPS[..], &DUMPS[1..]] {
        let written = |top: &[&str]| {
            let files = ["-o", "r.html", "-o", "r.txt"];
            run(folder.path(), &[dumps, &files, top].concat());
            let read = |name| fs::read_to_string(folder.path().join(name)).expect("a report");
            (read("r.html"), read("r.txt"))
        };
        let (page, _) = written(&[]);
        let all = embedded(&page, "report")["classes"].clone();
        let all = all.as_array().expect("classes").len();
        assert!(
            all > 5 && !page.contains(" (--top N shows more)</p>"),
            "{all}"
        );
        let (page, text) = written(&["--top", "3"]);
        let report = embedded(&page, "report");
        let classes = report["classes"].as_array().expect("classes");
        assert_eq!(classes.len(), 3);
        for class in classes {
            let line = format!("  {}\n", class["class"].as_str().expect("a name"));
            assert!(text.contains(&line), "{line}: {text}");
        }
        let data = if dumps.len() > 1 {
            "sentences"
        } else {
            "report"
        };
        assert_eq!(embedded(&page, data)["all_classes"], all);
        let more = text
            .lines()
            .find(|l| l.ends_with("(--top N shows more)") && l.contains("class"));
        assert!(page.contains(&format!("{}</p>", more.expect("a note"))));
    }
}

#[test]
fn classes_of_a_recording_add_up_to_its_stacks() {
    let folder = folder();
    for recording in ["testdata/recorded.jfr.gz", "live.jfr"] {
        for more in [&[][..], &["--allocated"], &["--focus", "main"]] {
            let report = |by| -> Value {
                let args = ["sites", recording, "--by", by, "--format", "json"];
                let done = run(folder.path(), &[&args[..], more].concat());
                serde_json::from_slice(&done.stdout).expect("JSON")
            };
            let (stacks, classes) = (report("stack"), report("class"));
            assert_eq!(stacks["totals"], classes["totals"]);
            assert_eq!(
                (&stacks["by"], &classes["by"]),
                (&"stack".into(), &"class".into())
            );
            assert_eq!(classes["stacks"], Value::Array(Vec::new()));
            let figure = |row: &Value, key: &str| row[key].as_u64().expect("a number");
            let rows = |report: &Value, key: &str| report[key].as_array().expect("rows").clone();
            let stacks = rows(&stacks, "stacks");
            let classes = rows(&classes, "classes");
            assert!(!classes.is_empty());
            for row in &classes {
                let of_class: Vec<&Value> = stacks
                    .iter()
                    .filter(|stack| stack["class"] == row["class"])
                    .collect();
                let sum = |key| of_class.iter().map(|stack| figure(stack, key)).sum::<u64>();
                assert_eq!(figure(row, "samples"), sum("samples"), "{row}");
                // The bytes of each stack are rounded, so their sum may differ a little from the bytes of the class.
                let off = figure(row, "estimated_bytes").abs_diff(sum("estimated_bytes"));
                assert!(off <= of_class.len() as u64, "{row}");
            }
            let classes_of_stacks = stacks.iter().map(|stack| stack["class"].as_str());
            let of_stacks: std::collections::BTreeSet<_> = classes_of_stacks.collect();
            assert_eq!(classes.len(), of_stacks.len());
        }
    }
}

/// The schema of SARIF 2.1.0 that OASIS publishes is in testdata.
#[test]
fn sarif_matches_its_schema() {
    let folder = folder();
    let schema = fs::read_to_string(testdata().join("sarif.schema.json")).expect("the schema");
    // The schema's pattern for languages is not a valid regular expression.
    let schema = schema.replace("{2}]?$", "{2}$");
    let schema: Value = serde_json::from_str(&schema).expect("JSON");
    let schema = jsonschema::validator_for(&schema).expect("a valid schema");
    let [before, after] = DUMPS;
    let gates = ["--fail-on-suspect", "--fail-on-growth", "1KiB"];
    let runs: [&[&str]; 6] = [
        &[before, after],
        &[after],
        &[before, after, "--ignore", "known-growth.txt"],
        &[
            before,
            after,
            "--include",
            "nothing",
            gates[0],
            gates[1],
            gates[2],
        ],
        &["testdata/before.hprof.gz", after, "--fail-on-suspect"],
        &[
            "cut.hprof",
            "testdata/after.hprof.gz",
            "--source-root",
            "src/main/java",
        ],
    ];
    for args in runs {
        let args = [args, &["--format", "sarif", "-q"]].concat();
        let done = heapdiff(folder.path(), &args).output().expect("a run");
        let log: Value = serde_json::from_slice(&done.stdout).expect("JSON");
        let faults = schema.iter_errors(&log);
        let faults: Vec<String> = faults
            .map(|e| format!("{}: {e}", e.instance_path()))
            .collect();
        assert_eq!(faults, [] as [String; 0], "{args:?}");
        // Locations are relative to a folder that readers of the SARIF file know. So no location may be an absolute
        // `file:` URL.
        let text = log.to_string();
        assert!(
            !text.contains("file:") && text.contains("heapdiff"),
            "{args:?}"
        );
    }
}
