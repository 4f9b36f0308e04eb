//! What is added to the trace that the agent in a JVM is writing: how a hunt goes, and where dumps are.
//!
//! The trace is the JVM's user's, and so is whoever adds to it. It is worth no waiting and no error: where it
//! does not work at once, nothing is said.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use heapdiff_trace::{Beside, DumpTaken, TraceError, Written};

use super::protocol::Jvm;

/// What SQLite puts beside a database that is being written, and maps.
const INDEX: &str = "-shm";
/// Databases that a JVM has open which are looked at.
const MOST: usize = 16;

/// Milliseconds since 1970.
pub(super) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    i64::try_from(since.unwrap_or_default().as_millis()).unwrap_or(i64::MAX)
}

/// Adds a note on how a hunt goes, which the live view shows as its progress.
pub(super) fn hunt(jvm: &Jvm<'_>, text: &str) {
    let text = format!("hunt: {text}");
    add(jvm, |trace| trace.note(now_ms(), &text));
}

/// Adds where a dump is that was asked for at a moment.
pub(super) fn dump(jvm: &Jvm<'_>, file: &Path, asked_ms: i64) {
    let path = file.to_string_lossy();
    add(jvm, |trace| {
        trace.dump(&DumpTaken {
            asked_ms,
            done_ms: now_ms(),
            path: &path,
        })
    });
}

/// Does it with each trace that the JVM writes; there is one at most, unless somebody plays with us.
fn add(jvm: &Jvm<'_>, row: impl Fn(&mut Beside) -> Result<Written, TraceError> + Sync) {
    let pid = jvm.process.inner_pid;
    for path in open_databases(jvm) {
        let added = jvm.process.user.act(|| {
            // Other programs in the JVM may have databases, too.
            let Ok(Some(mut trace)) = Beside::open(&path, pid) else {
                return false;
            };
            matches!(row(&mut trace), Ok(Written::Done))
        });
        if matches!(added, Ok(true)) {
            return;
        }
    }
}

/// The databases that the JVM has open, as far as they have the same names for us: not those in a container.
fn open_databases(jvm: &Jvm<'_>) -> Vec<PathBuf> {
    let mapped = jvm.process.mapped(INDEX, MOST);
    let named = mapped.iter().filter_map(|path| path.strip_suffix(INDEX));
    named
        .map(PathBuf::from)
        .filter(|path| {
            let ours = fs::metadata(path).map(|meta| (meta.dev(), meta.ino()));
            let theirs = jvm.root.identity_of(path);
            matches!((ours, theirs), (Ok(ours), Ok(theirs)) if ours == theirs)
        })
        .collect()
}
