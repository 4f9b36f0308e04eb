//! The cached summary of a dump. A comparison writes it beside the dump, so that the next comparison need not open the
//! dump.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use heapdiff_diff::Summary;
use hprof::index::FileStamp;
use hprof::{Progress, Refs, Snapshot};

use super::{SMALLEST, places, read_from, write, write_to};
use crate::job::Setup;
use crate::progress::{Meter, Wanted};

pub(super) const EXTENSION: &str = "hds";

/// Reads the cached summary of a dump. `open` is the snapshot of the dump, if the dump is already open.
pub(crate) fn read(
    setup: &Setup,
    dump: &Path,
    open: Option<&Snapshot>,
    meter: &Meter,
) -> Option<Summary> {
    let name = || dump.display().to_string();
    // Only the first dump in a file has a cached summary.
    if setup.analysis.dump > 0 {
        return None;
    }
    read_from(setup, dump, EXTENSION, |place| {
        meter.phase("reading the summary", 0);
        Summary::from_kept(dump, place, &setup.analysis, name(), open)
    })
}

/// A summary that is not written yet.
struct Pending {
    dump: PathBuf,
    stamp: FileStamp,
    refs: Refs,
    file: Vec<u8>,
    wanted: Wanted,
}

static PENDING: Mutex<Vec<Pending>> = Mutex::new(Vec::new());

/// Schedules a summary to be written after the report.
pub(crate) fn write_later(summary: &Summary, snapshot: &Snapshot, setup: &Setup) {
    if !setup.index || (snapshot.source().len() as u64) < SMALLEST {
        return;
    }
    let file = snapshot.file_stamp().zip(summary.to_kept(snapshot));
    if let Some((stamp, file)) = file {
        let mut pending = PENDING.lock().unwrap_or_else(PoisonError::into_inner);
        pending.push(Pending {
            dump: snapshot.source().path().to_path_buf(),
            stamp,
            refs: snapshot.refs(),
            file,
            wanted: setup.progress,
        });
    }
}

/// Drops the scheduled summaries.
pub(super) fn drop_pending() {
    PENDING
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clear();
}

/// Writes the cached summaries that were scheduled during the analysis. If this fails, the run still succeeds.
pub(super) fn write_pending() {
    let pending = std::mem::take(&mut *PENDING.lock().unwrap_or_else(PoisonError::into_inner));
    for one in pending {
        let is_current =
            || fs::metadata(&one.dump).is_ok_and(|meta| one.stamp.matches_metadata(&meta));
        let places = places(&one.dump, one.refs, EXTENSION);
        let bytes = one.file.len() as u64;
        write_to(&places, one.wanted, |place| {
            write(&one.dump, place, bytes, is_current, |to| {
                to.write_all(&one.file)
            })
        });
    }
}
