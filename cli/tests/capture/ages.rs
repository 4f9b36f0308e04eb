//! Tests the ages of objects with a program that logs its allocations and the notifications of its GCs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use testdata::jvm::Jdk;
use testdata::programs::{agent_library, ages};

use crate::support::{folder, jdks, run};

/// The GCs that the program runs, in this order: Y is a young GC, F is a full GC.
const ROUNDS: &str = "YYFYFYYF";

/// Groups of objects that survived the same GCs. Each entry has the number of full GCs, the number of young GCs, and
/// the number of objects.
type Survived = Vec<([u64; 2], u64)>;

/// Runs the program, with a trace of all its allocations. Returns what the program logged: the number of GCs, and the
/// ages of the live and the freed objects of each class.
fn logged(jdk: &Jdk, folder: &Path, collector: &str) -> (u64, BTreeMap<String, [Survived; 2]>) {
    let classes = jdk.compile(&ages()).expect("classes");
    let agent = agent_library();
    let done = Command::new(jdk.java())
        .args(["-Xmx128m", "-Xmn32m", collector])
        .arg(format!(
            "-agentpath:{}=interval=0,tick=200ms,garbage=65536,trace=t.db",
            agent.display()
        ))
        .arg("-cp")
        .arg(classes)
        .args(["Ages", ROUNDS])
        .current_dir(folder)
        .output()
        .expect("java");
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success(), "{done:?}");
    let mut classes: BTreeMap<String, [Survived; 2]> = BTreeMap::new();
    let (gcs, rest) = text.split_once('\n').expect("lines");
    for line in rest.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |at: usize| words[at].parse::<u64>().expect("a number");
        let lists = classes.entry(format!("Ages${}", words[0])).or_default();
        lists[usize::from(words[1] == "freed")].push(([number(2), number(3)], number(4)));
    }
    let gcs = gcs.strip_prefix("GCs ").expect("GCs");
    (gcs.parse().expect("a number"), classes)
}

/// Returns the figures that the report must contain for these ages.
fn expected(ages: &Survived) -> Value {
    let all = |gcs: &[u64; 2]| gcs[0] + gcs[1];
    let generations: BTreeSet<u64> = ages.iter().map(|(gcs, _)| all(gcs)).collect();
    let most = ages.iter().map(|(gcs, _)| (all(gcs), gcs[0])).max();
    let (all, major) = most.expect("objects");
    json!({
        "samples": ages.iter().map(|(_, number)| number).sum::<u64>(),
        "generations": generations.len(),
        "most_gcs": { "major": major, "all": all },
    })
}

fn share(ages: &Survived, from: u64, to: u64) -> u64 {
    let all: u64 = ages.iter().map(|(_, number)| number).sum();
    let within = |gcs: &[u64; 2]| (from..=to).contains(&(gcs[0] + gcs[1]));
    let within = ages.iter().filter(|(gcs, _)| within(gcs));
    let within: u64 = within.map(|(_, number)| number).sum();
    (within * 1000 + all / 2) / all
}

#[test]
fn the_ages_of_objects_are_exact() {
    for jdk in jdks() {
        for collector in ["-XX:+UseSerialGC", "-XX:+UseG1GC"] {
            let home = folder();
            let (gcs, log) = logged(&jdk, home.path(), collector);
            let args = ["trace", "ages", "t.db", "--by", "class", "--top", "1000"];
            let json = [&args[..], &["--format", "json"]].concat();
            let report = run(home.path(), &json).well().stdout;
            let report: Value = serde_json::from_str(&report).expect("JSON");
            let seen = &report["collections"]["all"];
            assert_eq!(seen, gcs, "{jdk:?} {collector}");
            let rows = report["rows"].as_array().expect("rows");
            for (class, [live, freed]) in &log {
                let row = rows.iter().find(|row| row["class"] == **class);
                let row = row.unwrap_or_else(|| panic!("{class}: {report:#}"));
                let context = format!("{jdk:?} {collector} {row:#}");
                for (key, ages) in [("live", live), ("freed", freed)] {
                    if ages.is_empty() {
                        assert!(row[key].is_null(), "{key}: {context}");
                        continue;
                    }
                    let expected = expected(ages);
                    for (figure, value) in expected.as_object().expect("figures") {
                        assert_eq!(&row[key][figure], value, "{key} {figure}: {context}");
                    }
                }
                for part in row["survived"].as_array().expect("parts") {
                    let from = part["from_gcs"].as_u64().expect("a number");
                    let to = part["to_gcs"].as_u64().unwrap_or(u64::MAX);
                    assert_eq!(part["permille"], share(freed, from, to), "{context}");
                }
            }
            let flame = [
                "trace",
                "flame",
                "t.db",
                "--ages",
                "--focus",
                "Ages",
                "--format",
                "collapsed",
            ];
            let flame = run(home.path(), &flame).well().stdout;
            let size = |name: &str| {
                let end = format!("{name} ");
                let line = flame.lines().find_map(|line| line.split_once(&end));
                line.map(|(_, bytes)| bytes.parse::<u64>().expect("bytes"))
            };
            // An object has 16 bytes.
            assert_eq!(
                size("Ages$Temporary (freed by the first GC)"),
                Some(8 * 20 * 16)
            );
            assert_eq!(size("Ages$Leaked (alive)"), Some(8 * 20 * 16));
            assert_eq!(size("Ages$Leaked (freed)"), None);
        }
    }
}
