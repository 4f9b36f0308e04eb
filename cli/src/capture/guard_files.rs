//! The files that the agent's guard writes.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Start of the names of the files that the agent's guard writes.
const PREFIX: &str = "heapdiff-guard-";
const DUMP: &str = ".hprof";
const PART: &str = ".hprof.part";
/// If a JVM has ended and its incomplete dumps have not grown for this time, they count as abandoned.
const GIVEN_UP: Duration = Duration::from_secs(10);

/// Returns the complete dumps of all guards in a folder, in the order of their names.
pub(crate) fn dumps(folder: &Path) -> Vec<PathBuf> {
    files(folder, |name| name.ends_with(DUMP))
}

/// The files of the guard of one JVM.
#[derive(Debug)]
pub(crate) struct GuardFiles {
    folder: PathBuf,
    pid: u32,
    /// Dumps that are older than this time are ignored, because they may be of an earlier JVM with the same process id.
    /// Process ids repeat, for example, when a container is restarted.
    since: SystemTime,
    /// Total size of the incomplete dumps, and the time at which they reached this size.
    seen: (u64, Option<Instant>),
}

impl GuardFiles {
    /// Creates a value for the files of the JVM with the process id `pid`. `pid` is the id that the JVM itself sees.
    /// Dumps that are older than `since` are ignored.
    pub(crate) fn new(folder: &Path, pid: u32, since: SystemTime) -> Self {
        Self {
            folder: folder.to_owned(),
            pid,
            since,
            seen: (0, None),
        }
    }

    /// Returns the complete dumps, the oldest first.
    pub(crate) fn dumps(&self) -> Vec<PathBuf> {
        files(&self.folder, |name| {
            name.ends_with(DUMP) && self.is_ours(name)
        })
    }

    /// Returns the incomplete dumps.
    pub(crate) fn parts(&self) -> Vec<PathBuf> {
        files(&self.folder, |name| {
            name.ends_with(PART) && self.is_ours(name)
        })
    }

    /// True if a file belongs to our JVM and is not older than `since`. `name` is the part of the file name after
    /// [`PREFIX`]. It begins with the process id and the time in whole seconds since 1970.
    fn is_ours(&self, name: &str) -> bool {
        let mut parts = name.splitn(3, '-');
        let pid = parts.next().and_then(|pid| pid.parse().ok());
        let seconds = parts.next().and_then(|seconds| seconds.parse().ok());
        let since = self.since.duration_since(UNIX_EPOCH).unwrap_or_default();
        pid == Some(self.pid) && seconds.is_some_and(|at: u64| at >= since.as_secs())
    }

    /// Returns the path of the agent's trace; `None` if the agent writes no trace to this folder.
    pub(crate) fn trace(&self) -> Option<PathBuf> {
        let file = self.folder.join(format!("{PREFIX}{}.db", self.pid));
        file.is_file().then_some(file)
    }

    /// Called after the end of the JVM. True if there is no incomplete dump, or if the incomplete dumps have not grown
    /// for [`GIVEN_UP`].
    pub(crate) fn are_final(&mut self) -> bool {
        let parts = self.parts();
        if parts.is_empty() {
            return true;
        }
        let size = |part: &PathBuf| fs::metadata(part).map_or(0, |data| data.len());
        let bytes = parts.iter().map(size).sum();
        let (earlier, since) = &mut self.seen;
        if since.is_none() || bytes != *earlier {
            (*earlier, *since) = (bytes, Some(Instant::now()));
        }
        since.is_some_and(|since| since.elapsed() >= GIVEN_UP)
    }
}

/// Returns a message with the command that makes a readable dump from an incomplete dump.
pub(crate) fn repair_hint(part: &Path) -> String {
    let shown = part.display();
    let whole = part.with_extension("");
    format!(
        "{shown} is incomplete; `heapdiff repair {shown} -o {}` makes a readable dump of it",
        whole.display()
    )
}

/// Returns the files of guards for which `wanted` returns true, in the order of their names. `wanted` gets the part of
/// a name after [`PREFIX`].
fn files(folder: &Path, wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let is_wanted = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.and_then(|name| name.strip_prefix(PREFIX))
            .is_some_and(&wanted)
    };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut paths: Vec<PathBuf> = paths.filter(is_wanted).collect();
    paths.sort();
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dump_that_grows_is_awaited_after_the_end_of_its_jvm() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let since = UNIX_EPOCH + Duration::from_millis(1500);
        let mut guard = GuardFiles::new(folder.path(), 7, since);
        assert!(guard.are_final(), "no dump");
        fs::write(at("heapdiff-guard-77-1-heap.hprof.part"), "x").unwrap();
        assert!(guard.are_final(), "the dump of another JVM");
        fs::write(at("heapdiff-guard-7-0-heap.hprof"), "x").unwrap();
        assert!(guard.dumps().is_empty(), "an earlier dump");
        let part = at("heapdiff-guard-7-1-heap.hprof.part");
        fs::write(&part, "x").unwrap();
        assert!(!guard.are_final());
        guard.seen.1 = Instant::now().checked_sub(GIVEN_UP);
        assert!(guard.are_final(), "it did not grow");
        fs::write(&part, "xy").unwrap();
        assert!(!guard.are_final());
        assert!(repair_hint(&part).contains("-heap.hprof.part -o "));
        fs::rename(&part, at("heapdiff-guard-7-1-heap.hprof")).unwrap();
        assert!(guard.are_final());
        assert_eq!((guard.dumps().len(), dumps(folder.path()).len()), (1, 2));
    }
}
