//! Compares the groups of pending work that heapdiff reports with the groups that the programs print: Kotlin
//! coroutines, Reactor subscriptions and Netty channels. The libraries and the Kotlin compiler come from the Maven
//! repository.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use heapdiff_lab::{java, run};
use serde_json::Value;

use crate::languages::{KOTLIN, fetch};

const LIBRARIES: [[&str; 3]; 3] = [
    [
        "org.jetbrains.kotlinx",
        "kotlinx-coroutines-core-jvm",
        "1.10.2",
    ],
    ["io.projectreactor", "reactor-core", "3.7.6"],
    ["io.netty", "netty-transport", "4.1.121.Final"],
];

/// Number of groups, and number of the lines that describe the groups. Each is a pair: expected, and found.
#[derive(Default)]
struct Score {
    groups: [usize; 2],
    lines: [usize; 2],
}

/// Runs each program `rounds` times, each time with another seed.
pub(crate) fn pending(rounds: u32) -> Result<()> {
    let heapdiff = run::Products::build_test_profile()?.heapdiff();
    let scratch = std::path::absolute(run::target_dir())?.join("pending");
    let jdk = java::ensure_jdk()?;
    let [group, artifact, version, main] = KOTLIN;
    let compiler = fetch(&scratch.join("kotlin"), &[[group, artifact, version]])?;
    let libraries = fetch(&scratch.join("libraries"), &LIBRARIES)?;
    let classes = scratch.join("classes");
    fs::create_dir_all(&classes).with_context(|| format!("cannot create {}", classes.display()))?;
    let folder = run::root().join("testdata/java/pending");
    let jars = fs::read_dir(&libraries)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<std::io::Result<Vec<PathBuf>>>()?;
    let jars = std::env::join_paths(&jars)?;
    run::run(
        Command::new(jdk.java())
            .args(["-cp", &format!("{compiler}/*"), main])
            .args(["-no-stdlib", "-no-reflect", "-jvm-target", "17", "-cp"])
            .arg(&jars)
            .arg("-d")
            .arg(&classes)
            .arg(folder.join("Coroutines.kt")),
    )?;
    run::run(
        Command::new(jdk.home().join("bin/javac"))
            .arg("-cp")
            .arg(&jars)
            .arg("-d")
            .arg(&classes)
            .arg(folder.join("Streams.java")),
    )?;
    let class_path = std::env::join_paths([&*classes, Path::new(&format!("{libraries}/*"))])?;
    let dump = scratch.join("pending.hprof");
    let mut score = Score::default();
    for seed in 0..rounds {
        for program in ["com.acme.CoroutinesKt", "Streams"] {
            if dump.exists() {
                fs::remove_file(&dump)?;
            }
            let done = Command::new(jdk.java())
                .arg("-cp")
                .arg(&class_path)
                .arg(program)
                .arg(&dump)
                .arg(seed.to_string())
                .output()
                .context("cannot run java")?;
            ensure!(done.status.success(), "{program}: {done:?}");
            let expected = String::from_utf8(done.stdout)?;
            let report = report(&heapdiff, &dump, &classes)?;
            for line in expected.lines().filter(|line| line.contains('\t')) {
                compare(line, &report, &mut score);
            }
        }
    }
    let Score { groups, lines } = &score;
    println!(
        "{} of {} groups have the expected number, {} of {} lines are right",
        groups[1], groups[0], lines[1], lines[0]
    );
    ensure!(groups[0] == groups[1], "some groups are wrong");
    ensure!(
        lines[1] * 100 >= lines[0] * 99,
        "more than 1 % of the lines are wrong"
    );
    Ok(())
}

fn report(heapdiff: &Path, dump: &Path, classes: &Path) -> Result<Value> {
    let done = Command::new(heapdiff)
        .args(["threads", "--format", "json", "--top", "1000", "--no-index"])
        .arg("--classpath")
        .arg(classes)
        .arg(dump)
        .output()
        .context("cannot run heapdiff")?;
    ensure!(done.status.success(), "{done:?}");
    Ok(serde_json::from_slice(&done.stdout)?)
}

/// Searches heapdiff's report for a group of pending work with the expected kind, lines and count. Updates the score.
fn compare(expected: &str, report: &Value, score: &mut Score) {
    let mut words = expected.split('\t');
    let kind = words.next().unwrap_or("");
    let count: Option<u64> = words.next().and_then(|count| count.parse().ok());
    let lines: Vec<&str> = words.collect();
    let is_meant = |group: &&Value| {
        let shape = group["shape"].as_array().map_or(&[][..], Vec::as_slice);
        // The first and the last lines of a group may belong to the library.
        let mut shape = shape.iter().filter_map(Value::as_str);
        let in_order = lines.iter().all(|line| shape.any(|own| own.contains(line)));
        group["kind"] == kind && in_order && group["count"].as_u64() == count
    };
    let groups = report["pending"].as_array().map_or(&[][..], Vec::as_slice);
    let is_found = groups.iter().any(|group| is_meant(&group));
    if !is_found {
        println!("not found: {expected}");
        for group in groups.iter().filter(|group| group["kind"] == kind) {
            println!("  {} {}", group["count"], group["shape"]);
        }
    }
    score.groups[0] += 1;
    score.lines[0] += lines.len();
    score.groups[1] += usize::from(is_found);
    score.lines[1] += if is_found { lines.len() } else { 0 };
}
