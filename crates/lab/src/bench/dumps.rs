//! The measured heaps. They are generated once and kept below the target folder.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use crate::{java, run};

/// Scale of the heap in the smoke run. The heap has about 890,000 objects.
pub(super) const SMOKE_SCALE: f64 = 0.02;

/// Kinds of heaps, with different objects or collectors. By default, `cargo xtask bench` measures all of them except
/// [`Heap::Mixed`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Heap {
    /// All kinds of objects, on G1
    Mixed,
    /// An H2 database in memory, on Parallel GC
    Database,
    /// Linked lists and trees
    Linked,
    /// Many small maps and strings
    Small,
    /// The same program as for `mixed`, on Parallel GC, with a young generation full of objects
    Young,
}

impl Heap {
    pub(super) const MEASURED: [Self; 4] = [Self::Database, Self::Linked, Self::Small, Self::Young];

    fn source(self) -> PathBuf {
        run::root().join(match self {
            Self::Mixed | Self::Young => "testdata/java/BigHeap.java",
            Self::Database | Self::Linked | Self::Small => "testdata/java/bench/Heaps.java",
        })
    }

    fn command(self, scale: f64) -> Result<Command> {
        // The objects take 2.5 GB at scale 1. The rest of the heap is free space for the collector.
        let gigabytes = (12.0 * scale.min(1.0) + 6.0 * (scale - 1.0).max(0.0)).ceil();
        let mut command = Command::new(java::ensure_jdk()?.java());
        command.arg(format!("-Xmx{gigabytes}g"));
        match self {
            Self::Mixed | Self::Linked | Self::Small => {}
            Self::Database => {
                let h2 = java::libraries(&run::root().join("testdata/real/h2"), "h2", None)?;
                command
                    .arg("-XX:+UseParallelGC")
                    .args(["-cp", &format!("{}/*", h2.display())]);
            }
            Self::Young => {
                // The young generation must not fill up before the dump. Its size is a third of the heap.
                let young = (1024.0 * scale).ceil().max(16.0);
                // The initial heap is large. Without the adaptive size policy, the old generation hardly grows, so a
                // small initial heap would cause one GC after another.
                let all = (5120.0 * scale).ceil().max(96.0);
                command
                    .args(["-XX:+UseParallelGC", "-XX:-UseAdaptiveSizePolicy"])
                    .args(["-XX:SurvivorRatio=8", &format!("-Xmn{young}m")])
                    .arg(format!("-Xms{all}m"))
                    .arg("-Dlive=false");
            }
        }
        command.arg(self.source());
        if matches!(self, Self::Database | Self::Linked | Self::Small) {
            command.arg(self.to_string());
        }
        command.arg(scale.to_string());
        Ok(command)
    }
}

impl fmt::Display for Heap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mixed => "mixed",
            Self::Database => "database",
            Self::Linked => "linked",
            Self::Small => "small",
            Self::Young => "young",
        })
    }
}

/// Returns two dumps of one program. The leak is larger in the second dump.
pub(super) fn make_dump_pair(heap: Heap, scale: f64, scratch: &Path) -> Result<[PathBuf; 2]> {
    let files = [1, 2].map(|i| scratch.join(format!("{heap}-{scale}-{i}.hprof")));
    generate(heap, scale, &files)?;
    Ok(files)
}

/// Returns one dump of the mixed heap.
pub(super) fn make_mixed_dump(scale: f64, scratch: &Path) -> Result<PathBuf> {
    let file = scratch.join(format!("{}-{scale}-1.hprof", Heap::Mixed));
    generate(Heap::Mixed, scale, std::slice::from_ref(&file))?;
    Ok(file)
}

fn generate(heap: Heap, scale: f64, files: &[PathBuf]) -> Result<()> {
    if scale.is_nan() || scale <= 0.0 {
        bail!("the scale must be greater than 0");
    }
    let source = heap.source();
    if files.iter().all(|file| is_newer(file, &source)) {
        return Ok(());
    }
    run::run(heap.command(scale)?.args(files))
}

fn is_newer(file: &Path, source: &Path) -> bool {
    let modified = |path: &Path| fs::metadata(path).and_then(|data| data.modified());
    match (modified(file), modified(source)) {
        (Ok(made), Ok(changed)) => made > changed,
        _ => false,
    }
}
