//! Runs the tests of the workspace.
//!
//! `cargo test` runs one test program after the other. Some programs have few tests, which wait for JVMs, so two
//! programs run at the same time here.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use heapdiff_lab::{java, run, tools};
use serde::Deserialize;
use testdata::jvm::Jdk;

/// Number of test programs that run at the same time.
const PROGRAMS: usize = 2;

/// A message of `cargo test --no-run` in JSON.
#[derive(Deserialize)]
struct Built {
    executable: Option<PathBuf>,
    manifest_path: Option<PathBuf>,
    profile: Option<Profile>,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

/// A test program, and the folder of its crate.
struct Program {
    executable: PathBuf,
    folder: PathBuf,
}

impl Program {
    /// Returns the name for messages, such as `agent: jvm-3bc52eb73a1bf9f3`.
    fn name(&self) -> String {
        let name = |path: &Path| path.file_name().unwrap_or_default().display().to_string();
        format!("{}: {}", name(&self.folder), name(&self.executable))
    }

    fn run(&self, home: &Path) -> Result<Output> {
        let mut command = Command::new(&self.executable);
        command
            .current_dir(&self.folder)
            .env("CARGO_MANIFEST_DIR", &self.folder)
            .env("JAVA_HOME", home)
            // Run one more test than there are cores in each test program, although two programs run at the same time.
            // Most tests wait for JVMs most of the time.
            .env("RUST_TEST_THREADS", (cores() + 1).to_string())
            // These fuzzing runs are short. `cargo xtask fuzz` has longer ones.
            .env("FUZZ_SECONDS", "1")
            .stdin(Stdio::null());
        let output = command.output();
        output.with_context(|| format!("cannot start {}", self.executable.display()))
    }
}

fn cores() -> usize {
    thread::available_parallelism().map_or(2, usize::from)
}

/// Runs all tests. They are optimised, because some of them read heaps of millions of objects.
pub(crate) fn test() -> Result<()> {
    let jdk = java::ensure_jdk()?;
    tools::ensure_readers()?;
    let programs = build()?;
    ensure!(!programs.is_empty(), "cargo built no tests");
    let failed = run_all(&programs, &jdk);
    run::run(run::cargo().args(["test", "--workspace", "--release", "--locked", "--doc"]))?;
    if !failed.is_empty() {
        bail!("tests failed in {}", failed.join(", "));
    }
    Ok(())
}

/// Builds the test programs.
fn build() -> Result<Vec<Program>> {
    let mut command = run::cargo();
    command
        .args(["test", "--workspace", "--release", "--locked", "--no-run"])
        .arg("--message-format=json-render-diagnostics")
        .stderr(Stdio::inherit());
    println!("==> {}", run::command_text(&command));
    let output = command.output().context("cannot start cargo")?;
    ensure!(output.status.success(), "the tests cannot be built");
    let mut programs = Vec::new();
    for line in String::from_utf8(output.stdout)?.lines() {
        let built: Built = serde_json::from_str(line).context("an unknown message of cargo")?;
        let is_test = built.profile.is_some_and(|profile| profile.test);
        if let (true, Some(executable), Some(manifest)) =
            (is_test, built.executable, built.manifest_path)
        {
            let folder = manifest.parent().context("a manifest without a folder")?;
            programs.push(Program {
                executable,
                folder: folder.to_owned(),
            });
        }
    }
    Ok(programs)
}

/// Runs the test programs and prints their output. Returns the names of the programs that failed.
fn run_all(programs: &[Program], jdk: &Jdk) -> Vec<String> {
    let waiting = Mutex::new(programs.iter());
    let failed = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..PROGRAMS {
            scope.spawn(|| {
                loop {
                    let next = locked(&waiting).next();
                    let Some(program) = next else { break };
                    let start = Instant::now();
                    let result = program.run(jdk.home());
                    // Print the output of one program at a time.
                    let mut failed = locked(&failed);
                    println!("==> {}, {} s", program.name(), start.elapsed().as_secs());
                    let is_passed = match result {
                        Ok(output) => {
                            print!("{}", String::from_utf8_lossy(&output.stdout));
                            print!("{}", String::from_utf8_lossy(&output.stderr));
                            output.status.success()
                        }
                        Err(error) => {
                            println!("{error:#}");
                            false
                        }
                    };
                    if !is_passed {
                        failed.push(program.name());
                    }
                }
            });
        }
    });
    failed
        .into_inner()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}
