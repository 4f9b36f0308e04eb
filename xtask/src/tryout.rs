//! Tests an installed or unpacked heapdiff program: it compares dumps, attaches to a JVM, and finds the agent's samples
//! in a dump.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use testdata::jvm::Launch;

use heapdiff_lab::{java, run};

/// Compares the dumps that are stored in the repository.
pub(crate) fn compare(program: &Path) -> Result<()> {
    let home = tempfile::tempdir()?;
    let dumps =
        ["before.hprof.gz", "after.hprof.gz"].map(|name| run::root().join("testdata").join(name));
    let text = output(alone(program, home.path()).args(dumps))?;
    let holder = "com.acme.shop.SessionRegistry.sessions";
    ensure!(
        text.contains(holder),
        "the report does not name {holder}: {text}"
    );
    println!("  compares dumps");
    Ok(())
}

/// Attaches to a JVM with the agent in the program, and starts another JVM with the same agent. Both dumps must contain
/// data of the agent, and the second dump must contain samples.
pub(crate) fn attach(program: &Path) -> Result<()> {
    let home = tempfile::tempdir()?;
    let jdk = java::ensure_jdk()?;
    let launch = Launch::source(&jdk, testdata::programs::shelf()).flag("-Xmx256m");
    let mut target = launch.start()?;
    target.wait_ready(1)?;
    let pid = target.pid().to_string();
    let said = output(alone(program, home.path()).args(["attach", &pid, "interval=1k"]))?;
    print!("  {said}");
    // The JVM samples a thread for the first time only after the thread has allocated as much as the JVM's own sampling
    // interval. So there may be no samples.
    live_samples(program, home.path(), &pid)?;

    // Start the second JVM with the agent library that the program has unpacked.
    let library = output(alone(program, home.path()).arg("agent"))?;
    let library = Path::new(library.trim_end());
    ensure!(
        library.is_absolute() && library.is_file(),
        "{}",
        library.display()
    );
    let mut target = launch.agent(library, "interval=1k").start()?;
    target.wait_ready(1)?;
    let samples = live_samples(program, home.path(), &target.pid().to_string())?;
    ensure!(samples > 0, "the dump has no samples");
    println!("  a JVM that starts with the agent has {samples} samples in its dump");
    Ok(())
}

/// Takes a dump, and returns the number of the agent's samples in it. Fails if the dump has no agent.
fn live_samples(program: &Path, home: &Path, pid: &str) -> Result<u64> {
    let dump = home.join(format!("{pid}.hprof"));
    output(
        alone(program, home)
            .args(["dump", pid, "-q", "-o"])
            .arg(&dump),
    )?;
    let sites = output(
        alone(program, home)
            .args(["sites", "--format", "json"])
            .arg(&dump),
    )?;
    let sites: Value = serde_json::from_str(&sites)?;
    let samples = sites["snapshot"]["agent"]["live_samples"].as_u64();
    samples.context("the dump has no data of the agent")
}

/// Writes a script that runs a program with `runner`, such as an emulator. Returns its path.
pub(crate) fn script(runner: &Path, program: &Path, script: &Path) -> Result<PathBuf> {
    let line = format!(
        "#!/bin/sh\nexec '{}' '{}' \"$@\"\n",
        runner.display(),
        program.display()
    );
    fs::write(script, line).with_context(|| script.display().to_string())?;
    run::run(Command::new("chmod").arg("+x").arg(script))?;
    Ok(script.to_owned())
}

/// Returns the standard output of a command that succeeds.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let shown = run::command_text(command);
    let done = command
        .output()
        .with_context(|| format!("cannot start {shown}"))?;
    let errors = String::from_utf8_lossy(&done.stderr);
    ensure!(done.status.success(), "{shown} failed: {errors}");
    Ok(String::from_utf8(done.stdout)?)
}

/// Returns the size of a file in bytes.
pub(crate) fn size(path: &Path) -> Result<u64> {
    Ok(fs::metadata(path)
        .with_context(|| path.display().to_string())?
        .len())
}

/// Returns a command that runs the program in an environment that does not name an agent.
pub(crate) fn alone(program: &Path, home: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .current_dir(home)
        .env_remove("HEAPDIFF_AGENT")
        .env("XDG_CACHE_HOME", home.join("cache"));
    command
}
