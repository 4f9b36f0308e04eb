//! The agent's guard as other processes see it: its options, and the files that it writes.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use heapdiff_units::Size;

/// Start of the names of the files that the agent's guard writes.
const PREFIX: &str = "heapdiff-guard-";
const DUMP: &str = ".hprof";
const PART: &str = ".hprof.part";
/// Maximum time for which a dump of a JVM that ended may not grow, before it counts as given up.
const GIVEN_UP: Duration = Duration::from_secs(10);

/// Share of the heap and of the container's memory at which a guard takes a dump, unless another is given.
pub(crate) const LIMIT: &str = "90%";

/// Returns the agent's options for a guard, without the folder.
pub(crate) fn options(heap: &str, container: &str, disk: Option<Size>) -> String {
    let mut options = format!("guard={heap},guard-container={container}");
    if let Some(disk) = disk {
        options.push_str(&format!(",guard-disk={}", disk.0));
    }
    options
}

/// Returns the complete dumps of all guards in a folder, in the order of their names.
pub(crate) fn dumps(folder: &Path) -> Vec<PathBuf> {
    files(folder, "", DUMP)
}

/// The files of the guard of one JVM.
#[derive(Debug)]
pub(crate) struct GuardFiles {
    folder: PathBuf,
    pid: u32,
    /// Total size of the incomplete dumps, and since when it is the same.
    seen: (u64, Option<Instant>),
}

impl GuardFiles {
    /// `pid` is the id of the JVM as the JVM sees it.
    pub(crate) fn new(folder: &Path, pid: u32) -> Self {
        Self {
            folder: folder.to_owned(),
            pid,
            seen: (0, None),
        }
    }

    /// Returns the complete dumps, the oldest first.
    pub(crate) fn dumps(&self) -> Vec<PathBuf> {
        files(&self.folder, &format!("{}-", self.pid), DUMP)
    }

    /// Returns the incomplete dumps.
    pub(crate) fn parts(&self) -> Vec<PathBuf> {
        files(&self.folder, &format!("{}-", self.pid), PART)
    }

    /// Returns the trace, unless the agent writes it to another place.
    pub(crate) fn trace(&self) -> Option<PathBuf> {
        let file = self.folder.join(format!("{PREFIX}{}.db", self.pid));
        file.is_file().then_some(file)
    }

    /// After the JVM's end: returns true if no incomplete dump is left that still grows.
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

/// Returns the sentence that says how an incomplete dump becomes a readable one.
pub(crate) fn repair_hint(part: &Path) -> String {
    let shown = part.display();
    let whole = part.with_extension("");
    format!(
        "{shown} is incomplete; `heapdiff repair {shown} -o {}` makes a readable dump of it",
        whole.display()
    )
}

/// Returns the files of guards whose names continue with `start` and end in `end`, in the order of their names.
fn files(folder: &Path, start: &str, end: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let is_ours = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.and_then(|name| name.strip_prefix(PREFIX))
            .is_some_and(|rest| rest.starts_with(start) && rest.ends_with(end))
    };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut paths: Vec<PathBuf> = paths.filter(is_ours).collect();
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
        let mut guard = GuardFiles::new(folder.path(), 7);
        assert!(guard.are_final(), "no dump");
        fs::write(at("heapdiff-guard-77-1-heap.hprof.part"), "x").unwrap();
        assert!(guard.are_final(), "the dump of another JVM");
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
        assert_eq!((guard.dumps().len(), dumps(folder.path()).len()), (1, 1));
    }

    #[test]
    fn the_agents_options_are_those_of_the_command() {
        let all = options("80%", "75%", Some(Size(1 << 30)));
        assert_eq!(all, "guard=80%,guard-container=75%,guard-disk=1073741824");
        assert_eq!(options("90%", "90%", None), "guard=90%,guard-container=90%");
    }
}
