//! The heaps that are measured, generated once and kept below the target folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use crate::{java, run};

/// The scale of the smoke run: some 890,000 objects.
pub(super) const SMOKE_SCALE: f64 = 0.02;

/// Two dumps of one program, the later one with its leak grown.
pub(super) fn pair(scale: f64, scratch: &Path) -> Result<[PathBuf; 2]> {
    let files = [1, 2].map(|i| scratch.join(format!("big-{scale}-{i}.hprof")));
    generate(scale, &files)?;
    Ok(files)
}

/// One dump.
pub(super) fn single(scale: f64, scratch: &Path) -> Result<PathBuf> {
    let file = scratch.join(format!("big-{scale}-1.hprof"));
    generate(scale, std::slice::from_ref(&file))?;
    Ok(file)
}

fn generate(scale: f64, files: &[PathBuf]) -> Result<()> {
    if scale.is_nan() || scale <= 0.0 {
        bail!("the scale must be above 0");
    }
    let source = run::root().join("testdata/java/BigHeap.java");
    if files.iter().all(|file| is_newer(file, &source)) {
        return Ok(());
    }
    // The heap is 2.5 GB at scale 1; the rest is room for the collector.
    let gigabytes = (12.0 * scale.min(1.0) + 6.0 * (scale - 1.0).max(0.0)).ceil();
    let mut command = Command::new(java::ensure_jdk()?.java());
    command.arg(format!("-Xmx{gigabytes}g")).arg(source);
    command.arg(scale.to_string()).args(files);
    run::run(&mut command)
}

fn is_newer(file: &Path, source: &Path) -> bool {
    let modified = |path: &Path| fs::metadata(path).and_then(|data| data.modified());
    match (modified(file), modified(source)) {
        (Ok(made), Ok(changed)) => made > changed,
        _ => false,
    }
}
