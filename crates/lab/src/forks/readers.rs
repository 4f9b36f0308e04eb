//! Reads a forked dump with other programs. The programs must find the same objects as in the JVM's own dump.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use testdata::jvm::Jdk;

use super::service::{Service, Tools, loading};
use crate::bench;

/// The class whose objects are counted.
const CLASS: &str = "Service$Entry";
/// Megabytes of live objects.
const LIVE: u32 = 50;

/// Runs each program on both dumps of one service, and returns a table of the results.
pub(super) fn readers(jdks: &[Jdk], tools: &Tools, folder: Option<&Path>) -> Result<String> {
    let peers = bench::readers(folder)?;
    let mut text = "\
## Other programs

Each program found all entries of the service, in a forked dump and in a dump by the JVM. The table shows the number of entries:

| JVM | program | entries in the forked dump | entries in the dump by `GC.heap_dump` |
|---|---|---|---|
"
    .to_owned();
    for jdk in jdks {
        let service = Service::start(jdk, LIVE, 0, &loading(jdk))?;
        let files = ["forked.hprof", "own.hprof"].map(|name| tools.scratch.join(name));
        let [forked, own] = &files;
        tools.forked(service.target.pid(), forked)?;
        tools.ordinary(&service.target, own)?;
        for (name, program) in &peers {
            for file in &files {
                has_entries((name, program), file, service.entries)?;
            }
            let count = service.entries;
            writeln!(text, "| {} | {name} | {count} | {count} |", jdk.version())?;
        }
        ensure!(service.target.finish()?, "the JVM ended with an error");
    }
    Ok(text)
}

/// Fails unless the program finds `count` entries in the dump.
fn has_entries((name, program): (&str, &Path), file: &Path, count: u64) -> Result<()> {
    let mut command = Command::new(program);
    if name == "hprof-slurp" {
        command.args(["--filter", CLASS]);
    }
    let done = command.arg(file).output();
    let done = done.with_context(|| name.to_owned())?;
    let said = String::from_utf8_lossy(&done.stdout).replace(',', "");
    let errors = String::from_utf8_lossy(&done.stderr);
    ensure!(done.status.success(), "{name} failed: {errors}");
    let count = count.to_string();
    let is_row = |line: &str| line.contains(CLASS) && line.split_whitespace().any(|w| w == count);
    let file = file.display();
    ensure!(
        said.lines().any(is_row),
        "{name} does not find {count} entries in {file}: {said}"
    );
    Ok(())
}
