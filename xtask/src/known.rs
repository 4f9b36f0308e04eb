//! Tests libraries that have known leaks. Each program runs with two versions of its library, before and after the fix.
//! Before the fix, the report on the two dumps must name the leak, and no other known leak. After the fix, the report
//! must name no known leak. The libraries come from the Maven repository.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use heapdiff_lab::{java, run};
use serde_json::Value;

use crate::languages::fetch;

/// A program with a known leak.
struct Program {
    /// The main class.
    class: &'static str,
    /// The id of the known leak pattern.
    id: &'static str,
    /// The library (group and artifact), and other libraries that the program needs (group, artifact and version).
    library: [&'static str; 2],
    others: &'static [[&'static str; 3]],
    /// The last version with the leak, and the first version without it. `None` if there is no such version.
    versions: [Option<&'static str>; 2],
}

const SLF4J: [&str; 3] = ["org.slf4j", "slf4j-nop", "1.7.36"];
const SPRING: [[&str; 3]; 2] = [
    ["org.springframework", "spring-core", "5.3.39"],
    ["org.springframework", "spring-context", "5.3.39"],
];

const PROGRAMS: [Program; 10] = [
    Program {
        class: "Kafka",
        id: "KAFKA-7660",
        library: ["org.apache.kafka", "kafka-clients"],
        others: &[SLF4J],
        versions: [Some("2.1.0"), Some("2.1.1")],
    },
    Program {
        class: "KafkaStreams",
        id: "KAFKA-6925",
        library: ["org.apache.kafka", "kafka-streams"],
        others: &[],
        versions: [Some("1.1.0"), Some("1.1.1")],
    },
    Program {
        class: "Jersey",
        id: "jersey-3058",
        library: ["org.glassfish.jersey.core", "jersey-client"],
        others: &[],
        versions: [Some("2.17"), Some("2.18")],
    },
    Program {
        class: "Netty",
        id: "netty-8017",
        library: ["io.netty", "netty-common"],
        others: &[],
        versions: [Some("4.1.25.Final"), Some("4.1.26.Final")],
    },
    Program {
        class: "Aws",
        id: "aws-sdk-java-v2-1679",
        library: ["software.amazon.awssdk", "apache-client"],
        others: &[SLF4J],
        versions: [Some("2.20.83"), Some("2.20.84")],
    },
    Program {
        class: "Retry",
        id: "spring-retry-141",
        library: ["org.springframework.retry", "spring-retry"],
        others: &SPRING,
        versions: [Some("1.2.5.RELEASE"), Some("1.3.0")],
    },
    Program {
        class: "Boot",
        id: "spring-boot-29874",
        library: ["org.springframework.boot", "spring-boot"],
        others: &[],
        versions: [Some("2.5.9"), Some("2.5.10")],
    },
    Program {
        class: "Grpc",
        id: "grpc-java-5283",
        library: ["io.grpc", "grpc-core"],
        others: &[],
        versions: [Some("1.18.0"), Some("1.19.0")],
    },
    Program {
        class: "Groovy",
        id: "GROOVY-7683",
        library: ["org.codehaus.groovy", "groovy"],
        others: &[],
        versions: [Some("2.4.7"), Some("2.4.8")],
    },
    Program {
        class: "Log4j",
        id: "azkaban-835",
        library: ["log4j", "log4j"],
        others: &[],
        versions: [Some("1.2.17"), None],
    },
];

/// Runs the programs whose class name contains `only`. If `only` is `None`, runs all programs.
pub(crate) fn known(only: Option<&str>) -> Result<()> {
    let heapdiff = run::Products::build_test_profile()?.heapdiff();
    let folder = std::path::absolute(run::target_dir())?.join("known");
    let mut wrong = Vec::new();
    let wanted = |program: &&Program| only.is_none_or(|only| program.class.contains(only));
    for program in PROGRAMS.iter().filter(wanted) {
        for (version, expected) in program.versions.into_iter().zip([Some(program.id), None]) {
            let Some(version) = version else { continue };
            let report = report(&heapdiff, &folder, program, version)?;
            let suspects = report["suspects"].as_array().map_or(&[][..], Vec::as_slice);
            let found: Vec<&str> = suspects
                .iter()
                .filter_map(|suspect| suspect["known"]["id"].as_str())
                .collect();
            let artifact = program.library[1];
            println!("{artifact} {version}: {found:?}");
            if found.iter().any(|id| Some(*id) != expected)
                || found.is_empty() != expected.is_none()
            {
                for suspect in suspects {
                    println!("  {} {}", suspect["class"], suspect["path"]);
                }
                wrong.push(format!("{artifact} {version}"));
            }
        }
    }
    ensure!(wrong.is_empty(), "wrong: {}", wrong.join(", "));
    Ok(())
}

/// Runs a program with one version of its library, and returns the comparison of its dumps.
fn report(heapdiff: &Path, folder: &Path, program: &Program, version: &str) -> Result<Value> {
    let jdk = java::ensure_jdk()?;
    let [group, artifact] = program.library;
    let folder = folder.join(format!("{artifact}-{version}"));
    let libraries = [&[[group, artifact, version]], program.others].concat();
    let jars = fetch(&folder, &libraries)?;
    let classes = folder.join("classes");
    let source = run::root().join("testdata/java/known");
    let class_path = format!("{jars}/*");
    run::run(
        Command::new(jdk.home().join("bin/javac"))
            .args(["-nowarn", "-cp", &class_path, "-d"])
            .arg(&classes)
            .arg(source.join("Dumps.java"))
            .arg(source.join(format!("{}.java", program.class))),
    )?;
    let dumps = ["before", "after"].map(|name| folder.join(format!("{name}.hprof")));
    for dump in dumps.iter().filter(|dump| dump.exists()) {
        fs::remove_file(dump)?;
    }
    let done = Command::new(jdk.java())
        .args([
            "--add-opens",
            "java.base/java.lang=ALL-UNNAMED",
            "-Xmx512m",
            "-cp",
        ])
        .arg(std::env::join_paths([&*classes, Path::new(&class_path)])?)
        .arg(program.class)
        .args(&dumps)
        .output()
        .context("cannot run java")?;
    ensure!(done.status.success(), "{}: {done:?}", program.class);
    let done = Command::new(heapdiff)
        .args(["--format", "json", "--no-index"])
        .args(&dumps)
        .output()
        .context("cannot run heapdiff")?;
    ensure!(done.status.success(), "{done:?}");
    Ok(serde_json::from_slice(&done.stdout)?)
}
