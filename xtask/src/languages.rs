//! Recompiles the Kotlin and Scala programs whose classes are stored in testdata.
//!
//! The compilers come from the Maven repository, fetched by Maven. The programs do not use the libraries of their
//! languages at run time, so only their own classes are kept.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use heapdiff_lab::{java, run};

/// The Maven group, artifact and version of a compiler, and its main class.
pub(crate) const KOTLIN: [&str; 4] = [
    "org.jetbrains.kotlin",
    "kotlin-compiler-embeddable",
    "2.1.21",
    "org.jetbrains.kotlin.cli.jvm.K2JVMCompiler",
];
const SCALA: [&str; 4] = [
    "org.scala-lang",
    "scala-compiler",
    "2.13.16",
    "scala.tools.nsc.Main",
];

/// Compiles `testdata/languages` to `testdata/languages/orders.jar`.
pub(crate) fn languages() -> Result<()> {
    let folder = run::root().join("testdata/languages");
    let jdk = java::ensure_jdk()?;
    let scratch = run::target_dir().join("languages");
    let classes = scratch.join("classes");
    if classes.exists() {
        fs::remove_dir_all(&classes)
            .with_context(|| format!("cannot empty {}", classes.display()))?;
    }
    fs::create_dir_all(&classes).with_context(|| format!("cannot create {}", classes.display()))?;
    let kotlin = compiler(&scratch.join("kotlin"), KOTLIN)?;
    let stdlib = format!("{kotlin}/kotlin-stdlib-{}.jar", KOTLIN[2]);
    run::run(
        Command::new(jdk.java())
            .args(["-cp", &format!("{kotlin}/*"), KOTLIN[3]])
            // Switch off the parameter checks that the compiler inserts, because they call the Kotlin library.
            .args(["-no-stdlib", "-no-reflect", "-jvm-target", "17"])
            .args(["-Xno-param-assertions", "-Xno-call-assertions"])
            .args(["-cp", &stdlib, "-d"])
            .arg(&classes)
            .arg(folder.join("Orders.kt")),
    )?;
    let scala = compiler(&scratch.join("scala"), SCALA)?;
    run::run(
        Command::new(jdk.java())
            .args(["-cp", &format!("{scala}/*"), SCALA[3]])
            .args(["-usejavacp", "-release", "17", "-d"])
            .arg(&classes)
            .arg(folder.join("Orders.scala")),
    )?;
    run::run(
        Command::new(jdk.home().join("bin/jar"))
            .args([
                "--create",
                "--no-manifest",
                "--date",
                "2000-01-01T00:00:00Z",
            ])
            .arg("--file")
            .arg(folder.join("orders.jar"))
            .arg("-C")
            .arg(&classes)
            .arg("com"),
    )
}

/// Fetches a program of the Maven repository with its dependencies into a folder, and returns its class path.
pub(crate) fn compiler(folder: &Path, [group, artifact, version, _]: [&str; 4]) -> Result<String> {
    fetch(folder, &[[group, artifact, version]])
}

/// Fetches archives of the Maven repository (group, artifact and version) with their dependencies into a folder, and
/// returns the folder of the jars.
pub(crate) fn fetch(folder: &Path, archives: &[[&str; 3]]) -> Result<String> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let project = folder.join("pom.xml");
    let dependencies: String = archives
        .iter()
        .map(|[group, artifact, version]| {
            format!(
                "<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>\
                 <version>{version}</version></dependency>\n"
            )
        })
        .collect();
    let text = format!(
        "<project xmlns=\"http://maven.apache.org/POM/4.0.0\"><modelVersion>4.0.0</modelVersion>\n\
         <groupId>languages</groupId><artifactId>languages</artifactId><version>1</version>\n\
         <dependencies>{dependencies}</dependencies></project>\n"
    );
    fs::write(&project, text).with_context(|| format!("cannot write {}", project.display()))?;
    let jars = folder.join("jars");
    run::run(
        Command::new("mvn")
            .args(["--quiet", "--batch-mode", "dependency:copy-dependencies"])
            .arg(format!("-DoutputDirectory={}", jars.display()))
            .current_dir(folder),
    )?;
    Ok(jars.display().to_string())
}
