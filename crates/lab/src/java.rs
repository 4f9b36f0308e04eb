//! Finds a JDK, or installs one; has Maven fetch libraries.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use testdata::jvm::Jdk;

use crate::{run, tools};

/// A JDK that can run the scenarios, the oldest there is; installs one from the distribution
/// if there is none and that is possible.
pub fn ensure_jdk() -> Result<Jdk> {
    const HINT: &str = "no JDK found: install JDK 17 or later, or set JAVA_HOME";
    let find = || Jdk::all_for_scenarios().into_iter().next();
    if let Some(jdk) = find() {
        return Ok(jdk);
    }
    tools::install("default-jdk-headless").context(HINT)?;
    find().context(HINT)
}

/// The JDKs of these major versions, one of each; all there are where none is asked for.
pub fn jdks(majors: &[u32]) -> Result<Vec<Jdk>> {
    ensure_jdk()?;
    let mut jdks = Jdk::all_for_scenarios();
    jdks.retain(|jdk| majors.is_empty() || majors.contains(&jdk.major()));
    // Two of one version would be told apart by nothing in a table.
    jdks.dedup_by_key(|jdk| jdk.major());
    ensure!(!jdks.is_empty(), "no such JDK: {majors:?}");
    Ok(jdks)
}

/// JVMs that the agent can be loaded into, from 11 on: those that are found and those that are given, with a compiler or without,
/// the oldest first; one of each major version that is wanted (all, if none is named), given ones first.
pub fn for_agent(given: &[PathBuf], majors: &[u32]) -> Result<Vec<Jdk>> {
    ensure_jdk()?;
    let mut jdks = Vec::new();
    for home in given {
        jdks.push(Jdk::at(home)?);
    }
    jdks.extend(Jdk::all());
    jdks.retain(|jdk| jdk.major() >= 11 && (majors.is_empty() || majors.contains(&jdk.major())));
    jdks.sort_by_key(Jdk::major);
    jdks.dedup_by_key(|jdk| jdk.major());
    ensure!(!jdks.is_empty(), "no such JVM: {majors:?}");
    Ok(jdks)
}

/// The plugin, of a stated version: what Maven takes without one changes.
const COPY: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies";

/// Fetches the libraries that a folder's `pom.xml` names, of the version that is tested where it leaves that open;
/// returns the folder that they lie in.
pub fn libraries(project: &Path, name: &str, version: Option<&str>) -> Result<PathBuf> {
    let name = match version {
        Some(version) => format!("{name}-{version}"),
        None => name.to_owned(),
    };
    let libraries = run::target_dir().join("real").join(name);
    let mut maven = Command::new("mvn");
    maven
        .current_dir(project)
        .args(["--quiet", "--batch-mode", COPY, "-DincludeScope=runtime"])
        .arg(format!("-DoutputDirectory={}", libraries.display()))
        .args(version.map(|version| format!("-Dtested={version}")));
    if Command::new("mvn").arg("--version").output().is_err() {
        bail!("Maven is needed to fetch the programs: install the package maven");
    }
    run::run(&mut maven)?;
    Ok(libraries)
}

/// Has Maven copy one archive into a folder, from a repository of its own there: nothing else of this machine's is touched.
pub fn archive(artifact: &str, folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot create {}", folder.display()))?;
    let repository = folder.join("repository");
    run::run(
        Command::new("mvn")
            .args(["--quiet", "--batch-mode", "dependency:copy"])
            .arg(format!("-Dartifact={artifact}"))
            .arg(format!("-DoutputDirectory={}", folder.display()))
            .arg(format!("-Dmaven.repo.local={}", repository.display()))
            .current_dir(folder),
    )
}
