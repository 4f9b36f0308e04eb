//! Tests the Gradle example. Its tests must pass, and the build must fail if a leak is added.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use testdata::jvm::Jdk;

use heapdiff_lab::{run, tools};

/// The first Gradle version that runs JUnit 5. Debian has an earlier version.
const RUNS_JUNIT: (u32, u32) = (4, 6);

/// The JUnit launcher. It runs the tests if the installed Gradle is too old to do so.
const LAUNCHER: &str = "org.junit.platform:junit-platform-console-standalone:1.10.5";

/// The Maven goal that fetches one archive. It has a fixed version, because Maven's default version changes.
const GET: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:get";

/// Runs the example with libraries from Maven's `repository`, which contains our library.
pub(super) fn example(
    project: &Path,
    compiler: &Jdk,
    heapdiff: &Path,
    repository: &Path,
) -> Result<()> {
    tools::ensure_gradle()?;
    let old = version()? < RUNS_JUNIT;
    let work = std::path::absolute(run::target_dir())?.join("gradle");
    let copy = work.join("orders");
    if copy.exists() {
        fs::remove_dir_all(&copy).with_context(|| format!("{}", copy.display()))?;
    }
    fs::create_dir_all(&work).with_context(|| format!("{}", work.display()))?;
    run::run(Command::new("cp").arg("-r").arg(project).arg(&copy))?;
    let repository = format!("-Dmaven.repo.local={}", repository.display());
    let mut test = Command::new("gradle");
    test.current_dir(&copy)
        .args(["--no-daemon", "--console=plain", "-g"])
        .arg(work.join("home"))
        .arg(&repository)
        .arg(format!("-Dheapdiff.program={}", heapdiff.display()))
        .env("JAVA_HOME", compiler.home());
    if old {
        run::run(
            Command::new("mvn")
                .args(["--quiet", "--batch-mode", GET, &repository])
                .arg(format!("-Dartifact={LAUNCHER}"))
                .current_dir(&copy)
                .env("JAVA_HOME", compiler.home()),
        )?;
        test.arg("-I")
            .arg(run::root().join("xtask/src/junit/before-4.6.gradle"));
    }
    test.arg("test");
    run::run(&mut test)?;

    let leak = copy.join("src/test/java/com/acme/LeakTest.java");
    fs::write(&leak, include_str!("LeakTest.java"))?;
    let output = test.arg("--info").output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    let growth = "the heap grows with each round: com.acme.LeakTest.KEPT grew by";
    ensure!(
        !output.status.success() && said.contains(growth),
        "a Gradle build with a leak ended with {}:\n{said}{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}

/// Returns Gradle's major and minor version.
fn version() -> Result<(u32, u32)> {
    let output = Command::new("gradle").arg("--version").output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    numbers(&said).with_context(|| format!("gradle did not print its version: {said}"))
}

fn numbers(said: &str) -> Option<(u32, u32)> {
    let version = said.lines().find_map(|line| line.strip_prefix("Gradle "))?;
    let mut numbers = version.split(['.', '-', ' ']);
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_read() {
        let said = "openjdk version \"17.0.15\"\n---\nGradle 4.4.1\n---\n\nGroovy: 2.4.21\n";
        assert_eq!(numbers(said), Some((4, 4)));
        assert_eq!(numbers("\nGradle 8.10\n"), Some((8, 10)));
        assert_eq!(numbers("Groovy: 2.4.21"), None);
    }
}
