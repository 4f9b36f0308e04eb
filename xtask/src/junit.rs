//! Tests the Java libraries: runs their tests, their examples, and long series of assertions.

mod gradle;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use testdata::jvm::Jdk;

use heapdiff_lab::{java, run, tools};

/// Options of `cargo xtask java`.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Options {
    /// The heapdiff program to run [default: build it]
    #[arg(long, value_name = "FILE")]
    heapdiff: Option<PathBuf>,
    /// A JVM for the libraries' tests, with or without a compiler; may be repeated [default: the oldest JDK found]
    #[arg(long, value_name = "DIR")]
    home: Vec<PathBuf>,
    /// Instead of the tests, run this number of leak assertions in one process of each JVM, and measure the time that
    /// one measured round of an assertion takes
    #[arg(long, value_name = "N")]
    soak: Option<u32>,
    /// Megabytes of live objects to keep in the heap during `--soak`
    #[arg(long, value_name = "MB", default_value_t = 0, requires = "soak")]
    heap: u32,
    /// When forked child processes write the snapshots during `--soak`: auto, always or never
    #[arg(long, value_name = "WHEN", default_value = "auto", requires = "soak")]
    fork: String,
}

/// The Maven goal that writes the class path of the tests. It has a fixed version, because Maven's default version
/// changes.
const CLASSPATH: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:build-classpath";

/// Compiles the libraries, and runs their tests or the series of assertions on each JVM.
pub(crate) fn junit(options: &Options) -> Result<()> {
    let compiler = java::ensure_jdk()?;
    tools::ensure_maven()?;
    let heapdiff = match &options.heapdiff {
        Some(file) => std::path::absolute(file)?,
        None => run::Products::build_test_profile()?.heapdiff(),
    };
    let project = run::root().join("java");
    let jvms = match options.home.as_slice() {
        [] => vec![java::ensure_jdk()?],
        homes => homes
            .iter()
            .map(|home| Jdk::at(home))
            .collect::<Result<_, _>>()?,
    };
    if let Some(runs) = options.soak {
        let of = Soak {
            sizes: [runs, options.heap],
            fork: &options.fork,
        };
        return soak(&project, &compiler, &jvms, &heapdiff, &of);
    }
    for jvm in &jvms {
        run::run(
            maven(&project, &compiler, &heapdiff)
                .arg("test")
                .arg(format!("-Dtest.java={}", jvm.java().display())),
        )?;
    }
    for jvm in &jvms {
        run::run(
            maven(&project.join("labels"), &compiler, &heapdiff)
                .arg("test")
                .arg(format!("-Dtest.java={}", jvm.java().display())),
        )?;
    }
    // The examples fetch the library from a Maven repository, as users do. For the test, the repository is in the
    // target folder.
    let folder = run::target_dir().join("maven");
    let repository = format!("-Dmaven.repo.local={}", folder.display());
    run::run(
        maven(&project, &compiler, &heapdiff)
            .args(["install", "-Dmaven.test.skip=true"])
            .arg(&repository),
    )?;
    let example = project.join("examples/maven");
    run::run(
        maven(&example, &compiler, &heapdiff)
            .arg("test")
            .arg(&repository),
    )?;
    gradle::example(
        &project.join("examples/gradle"),
        &compiler,
        &heapdiff,
        &folder,
    )
}

/// The settings of a series of assertions.
struct Soak<'a> {
    /// Two numbers: how many leak assertions to run, and the size of the live objects in megabytes.
    sizes: [u32; 2],
    fork: &'a str,
}

/// Runs a series of assertions on each JVM. The assertions print their times.
fn soak(
    project: &Path,
    compiler: &Jdk,
    jvms: &[Jdk],
    heapdiff: &Path,
    of: &Soak<'_>,
) -> Result<()> {
    let list = run::target_dir().join("junit-classpath.txt");
    run::run(
        maven(project, compiler, heapdiff)
            .args(["test-compile", CLASSPATH])
            .arg(format!("-Dmdep.outputFile={}", list.display())),
    )?;
    let libraries = std::fs::read_to_string(&list)?;
    let classes = project.join("target");
    let classpath = format!(
        "{0}/classes:{0}/test-classes:{1}",
        classes.display(),
        libraries.trim()
    );
    for jvm in jvms {
        run::run(
            Command::new(jvm.java())
                .arg("-Xmx512m")
                .arg(format!("-Dheapdiff.program={}", heapdiff.display()))
                .arg(format!("-Dheapdiff.fork={}", of.fork))
                .args(["-cp", &classpath, "io.github.heapdiff.junit.Soak"])
                .args(of.sizes.map(|size| size.to_string())),
        )?;
    }
    Ok(())
}

/// Returns a Maven command that runs in this project with this JDK. Sets the property with the path of the heapdiff
/// program.
fn maven(project: &Path, compiler: &Jdk, heapdiff: &Path) -> Command {
    let mut maven = Command::new("mvn");
    maven
        .current_dir(project)
        .args(["--quiet", "--batch-mode"])
        .arg(format!("-Dheapdiff.program={}", heapdiff.display()))
        .env("JAVA_HOME", compiler.home());
    maven
}
