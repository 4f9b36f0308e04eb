//! The summary of a dump, which a comparison keeps beside it so that the next one need not open it.

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

/// The kept summary of a dump, which is open or not.
pub(crate) fn read(
    setup: &Setup,
    dump: &Path,
    open: Option<&Snapshot>,
    meter: &Meter,
) -> Option<Summary> {
    let name = || dump.display().to_string();
    // What is kept is of a file's first dump.
    if setup.analysis.dump > 0 {
        return None;
    }
    read_from(setup, dump, EXTENSION, |place| {
        meter.phase("reading the summary", 0);
        Summary::from_kept(dump, place, &setup.analysis, name(), open)
    })
}

/// A file that is still to be written.
struct Pending {
    dump: PathBuf,
    stamp: FileStamp,
    refs: Refs,
    file: Vec<u8>,
    wanted: Wanted,
}

static PENDING: Mutex<Vec<Pending>> = Mutex::new(Vec::new());

/// Has a summary written once the report is out.
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

/// Drops what [`write_later`] was given.
pub(super) fn forget_pending() {
    PENDING
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clear();
}

/// Writes what [`write_later`] was given. A failure to write a summary does not fail the run.
pub(super) fn write_pending() {
    let pending = std::mem::take(&mut *PENDING.lock().unwrap_or_else(PoisonError::into_inner));
    for one in pending {
        let is_current = || fs::metadata(&one.dump).is_ok_and(|meta| one.stamp.agrees(&meta));
        let places = places(&one.dump, one.refs, EXTENSION);
        let bytes = one.file.len() as u64;
        write_to(&places, one.wanted, |place| {
            write(&one.dump, place, bytes, is_current, |to| {
                to.write_all(&one.file)
            })
        });
    }
}
