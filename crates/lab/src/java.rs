//! Finds or installs a JDK, and fetches libraries with Maven.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use testdata::jvm::Jdk;

use crate::{run, tools};

/// Returns the oldest JDK that can run the scenarios. If there is none, installs one from the distribution if possible.
pub fn ensure_jdk() -> Result<Jdk> {
    const HINT: &str = "no JDK found: install JDK 17 or later, or set JAVA_HOME";
    let find = || Jdk::all_for_scenarios().into_iter().next();
    if let Some(jdk) = find() {
        return Ok(jdk);
    }
    tools::install("default-jdk-headless").context(HINT)?;
    find().context(HINT)
}

/// Returns one JDK of each of these major versions. If `majors` is empty, returns one of each version that is found.
pub fn jdks(majors: &[u32]) -> Result<Vec<Jdk>> {
    ensure_jdk()?;
    let mut jdks = Jdk::all_for_scenarios();
    jdks.retain(|jdk| majors.is_empty() || majors.contains(&jdk.major()));
    // Only one JDK of each version is used, because tables show only the version.
    jdks.dedup_by_key(|jdk| jdk.major());
    ensure!(
        !jdks.is_empty(),
        "there is no JDK with these versions: {majors:?}"
    );
    Ok(jdks)
}

/// Returns the JVMs that the agent can be loaded into (version 11 and later), oldest first. A JVM without a Java
/// compiler is accepted. Returns one JVM of each major version in `majors`, or of each version that is found if
/// `majors` is empty. A JVM that the user names is used instead of the one found for that version.
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
    ensure!(
        !jdks.is_empty(),
        "there is no JVM with these versions: {majors:?}"
    );
    Ok(jdks)
}

/// The Maven plugin has a fixed version, because Maven's default version changes.
const COPY: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies";

/// Fetches the libraries that the folder's `pom.xml` names, and returns the folder with them. `version` is the version
/// of the tested library, for a `pom.xml` that does not fix this version.
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
        bail!("the programs are fetched with Maven: install the package maven");
    }
    run::run(&mut maven)?;
    Ok(libraries)
}

/// Lets Maven copy one archive into a folder. Maven uses its own local repository in that folder, so nothing else on
/// this machine changes.
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
