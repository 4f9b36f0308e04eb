//! Opens two dumps at the same time.
//!
//! Some steps of opening a dump run on one thread. On a machine with many processors, these steps take most of the
//! time, and the other processors are idle. The idle processors can work on a second dump. The cost is that both dumps
//! are in memory at the same time.

use std::fs;
use std::io::Read;
use std::panic;
use std::path::Path;
use std::thread;

use heapdiff_diff::Summary;
use hprof::Snapshot;

use super::diff::{cached_summary, open_and_summarize, opened_last};
use crate::failure::Result;
use crate::job::Setup;
use crate::messages;
use crate::progress::Wanted;
use crate::style::When;

/// Minimum number of threads for opening two dumps at the same time.
const THREADS: usize = 8;
/// Required free memory, as a multiple of the size of both dumps. The arrays of an analysis take half a byte for each
/// byte of a dump. Pages of mapped files count as free memory, because the system can take them back.
const FREE: u64 = 2;

/// True if it is faster to open both dumps at the same time. All of these conditions must be met:
///
/// - The earlier dump has no cached summary.
/// - There are at least [`THREADS`] threads.
/// - The sizes of both dumps are known: neither dump is compressed or has segments.
/// - There are at least [`FREE`] times as many bytes of free memory as both dumps have together.
/// - `--max-memory` does not limit the memory.
pub(super) fn is_faster_side_by_side(setup: &Setup, dumps: [&Path; 2]) -> bool {
    let is_limited = setup.analysis.max_memory.is_some();
    !is_limited
        && rayon::current_num_threads() >= THREADS
        && size(dumps).is_some_and(|size| fits(size, memory_left()))
        && cached_summary(setup, dumps[0]).is_none()
}

/// Returns the uncompressed size of two dumps in bytes; `None` if it is unknown before reading them.
fn size(dumps: [&Path; 2]) -> Option<u64> {
    let sizes = dumps.map(|dump| {
        let mut start = [0; 12];
        let mut file = fs::File::open(dump).ok()?;
        file.read_exact(&mut start).ok()?;
        // The file of a compressed dump or of a dump with segments is smaller than the dump.
        let is_plain = start.starts_with(b"JAVA PROFILE") && !hprof::bytes::has_segments(dump);
        is_plain
            .then(|| file.metadata().ok())?
            .map(|meta| meta.len())
    });
    sizes[0]?.checked_add(sizes[1]?)
}

fn fits(size: u64, free: Option<u64>) -> bool {
    free.is_some_and(|free| free / FREE >= size)
}

fn memory_left() -> Option<u64> {
    #[cfg(target_os = "linux")]
    {
        heapdiff_agent::memory_left().map(|(bytes, _)| bytes)
    }
    #[cfg(not(target_os = "linux"))]
    None
}

/// Opens two dumps at the same time. Returns both summaries, and the snapshot of the later dump.
pub(super) fn opened(
    setup: &Setup,
    before: &Path,
    after: &Path,
) -> Result<(Vec<Summary>, Snapshot)> {
    if setup.progress.verbose {
        messages::print_done("both dumps are loaded at the same time");
    }
    // Both dumps are read at the same time, but a terminal can show only one progress bar. So only the later dump
    // (`after`) has one.
    let beside = Setup {
        progress: Wanted {
            when: When::Never,
            ..setup.progress
        },
        ..setup.clone()
    };
    let (earlier, later) = thread::scope(|scope| {
        let earlier =
            scope.spawn(|| open_and_summarize(&beside, None, before).map(|(_, summary)| summary));
        let later = opened_last(setup, None, after);
        let earlier = earlier
            .join()
            .unwrap_or_else(|why| panic::resume_unwind(why));
        (earlier, later)
    });
    let earlier = earlier?;
    let (last, summary) = later?;
    Ok((vec![earlier, summary], last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_uncompressed_dumps_have_known_sizes() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            fs::write(&path, bytes).unwrap();
            path
        };
        let plain = file("plain", b"JAVA PROFILE 1.0.2\0");
        let gzip = file("gzip", &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0]);
        let short = file("short", b"JAVA");
        assert_eq!(size([&plain, &plain]), Some(38));
        for other in [&gzip, &short, &folder.path().join("none")] {
            assert_eq!(size([&plain, other]), None, "{}", other.display());
            assert_eq!(size([other, &plain]), None, "{}", other.display());
        }
    }

    #[test]
    fn two_dumps_fit_into_memory_of_twice_their_size() {
        assert!(fits(50, Some(100)));
        assert!(!fits(51, Some(101)));
        assert!(!fits(1, None), "not known");
        assert!(!fits(u64::MAX, Some(u64::MAX)));
    }
}
