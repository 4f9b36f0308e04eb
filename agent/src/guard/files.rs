//! The guard's dumps: their file names, and the disk space for them.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use heapdiff_units::Size;
use rustix::fs::OFlags;

use crate::options::GuardOptions;

/// Beginning of the names of all files that the guard writes.
const PREFIX: &str = "heapdiff-guard-";
const DUMP: &str = "hprof";
/// File name extension of a dump that is not complete.
const PART: &str = "part";
/// Number of bytes that must stay free on the disk after a dump.
const RESERVE: u64 = 64 << 20;

/// The folder of the guard's files.
pub(super) struct Files {
    folder: PathBuf,
    /// Maximum size of all dumps in the folder.
    most: u64,
}

/// The paths of a dump's file.
#[derive(Debug)]
pub(super) struct Names {
    /// Path of the file while the dump is written.
    pub(super) part: PathBuf,
    /// Path of the file when the dump is complete.
    pub(super) last: PathBuf,
}

impl Files {
    pub(super) fn new(options: &GuardOptions, largest_heap: u64) -> Self {
        Self {
            folder: options.folder.clone(),
            most: options.disk.unwrap_or(largest_heap.saturating_mul(2)),
        }
    }

    /// Creates the folder if it does not exist. Returns an error if the agent cannot write files in the folder.
    pub(super) fn check(&self) -> Result<(), String> {
        let failed = |e| format!("{}: {e}", self.folder.display());
        fs::create_dir_all(&self.folder).map_err(failed)?;
        let probe = self
            .folder
            .join(format!("{PREFIX}{}.probe", std::process::id()));
        fs::write(&probe, []).map_err(failed)?;
        fs::remove_file(&probe).map_err(failed)
    }

    /// Returns paths for a dump of a heap with `used` bytes. If all dumps together would exceed the maximum size,
    /// deletes the oldest dumps. Returns an error if the new dump alone would exceed the maximum size, or if the disk
    /// lacks space.
    pub(super) fn make_room(&self, used: u64, cause: &str) -> Result<Names, String> {
        // Estimate the size of the dump. It is larger than the heap: each record has 16 to 24 bytes in addition to the
        // fields, and a reference takes 8 bytes.
        let expected = used.saturating_add(used / 2);
        if expected > self.most {
            return Err(format!(
                "the dump may have {}, but the guard's dumps may have {} (agent option guard-disk)",
                Size(expected),
                Size(self.most)
            ));
        }
        let mut dumps = self.dumps();
        dumps.sort_by_key(|dump| dump.written);
        let mut all: u64 = dumps.iter().map(|dump| dump.bytes).sum();
        for dump in dumps {
            if all.saturating_add(expected) <= self.most {
                break;
            }
            fs::remove_file(&dump.path).map_err(|e| format!("{}: {e}", dump.path.display()))?;
            all -= dump.bytes;
        }
        let wanted = expected.saturating_add(RESERVE);
        match free_bytes(&self.folder) {
            Some(free) if free < wanted => Err(format!(
                "the disk of {} has {} left, but {} are needed",
                self.folder.display(),
                Size(free),
                Size(wanted)
            )),
            _ => Ok(self.names(cause)),
        }
    }

    fn names(&self, cause: &str) -> Names {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let (pid, seconds) = (std::process::id(), now.unwrap_or_default().as_secs());
        let last = format!("{PREFIX}{pid}-{seconds}-{cause}.{DUMP}");
        Names {
            part: self.folder.join(format!("{last}.{PART}")),
            last: self.folder.join(last),
        }
    }

    /// Returns all dumps that guards have written to the folder, including incomplete dumps.
    fn dumps(&self) -> Vec<Dump> {
        let Ok(entries) = fs::read_dir(&self.folder) else {
            return Vec::new();
        };
        let dump = |entry: fs::DirEntry| {
            let path = entry.path();
            let name = path.file_name()?.to_str()?;
            let is_dump = name.strip_suffix(&format!(".{PART}")).unwrap_or(name);
            if !name.starts_with(PREFIX) || !is_dump.ends_with(&format!(".{DUMP}")) {
                return None;
            }
            let data = entry.metadata().ok().filter(fs::Metadata::is_file)?;
            Some(Dump {
                path,
                bytes: data.len(),
                written: data.modified().ok()?,
            })
        };
        entries.filter_map(Result::ok).filter_map(dump).collect()
    }
}

/// Checks that a file is a named pipe.
pub(super) fn check_pipe(path: &Path) -> Result<(), String> {
    match fs::metadata(path) {
        Ok(data) if data.file_type().is_fifo() => Ok(()),
        Ok(_) => Err(format!(
            "{} is not a pipe (agent option guard-pipe); make one with mkfifo",
            path.display()
        )),
        Err(e) => Err(format!("{}: {e}", path.display())),
    }
}

/// Opens a named pipe for writing. Returns an error if no process reads it.
pub(super) fn open_pipe(path: &Path) -> Result<File, String> {
    check_pipe(path)?;
    // With the flag `O_NONBLOCK`, opening the pipe does not wait for a reader.
    let mut options = File::options();
    let options = options.write(true).custom_flags(libc::O_NONBLOCK);
    let failed = |e: io::Error| match e.raw_os_error() {
        Some(libc::ENXIO) => format!("no process reads {}", path.display()),
        _ => format!("{}: {e}", path.display()),
    };
    let pipe = options.open(path).map_err(failed)?;
    // Clear the flag, so that writing waits while the pipe is full.
    rustix::fs::fcntl_setfl(&pipe, OFlags::empty()).map_err(|e| failed(e.into()))?;
    Ok(pipe)
}

struct Dump {
    path: PathBuf,
    bytes: u64,
    written: SystemTime,
}

/// Returns the number of free bytes on the disk of a folder.
fn free_bytes(folder: &Path) -> Option<u64> {
    let room = rustix::fs::statvfs(folder).ok()?;
    room.f_bavail.checked_mul(room.f_frsize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(folder: &Path, most: u64) -> Files {
        Files {
            folder: folder.to_owned(),
            most,
        }
    }

    #[test]
    fn the_oldest_dumps_make_room_for_a_new_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let old = path("heapdiff-guard-1-100-heap.hprof");
        let part = path("heapdiff-guard-1-200-heap.hprof.part");
        let other = path("mine.hprof");
        for (file, seconds) in [(&old, 100), (&part, 200), (&other, 1)] {
            fs::write(file, [0; 1000]).unwrap();
            let at = UNIX_EPOCH + std::time::Duration::from_secs(seconds);
            fs::File::options()
                .write(true)
                .open(file)
                .unwrap()
                .set_modified(at)
                .unwrap();
        }
        let files = files(folder.path(), 4000);
        let names = files.make_room(1000, "heap").unwrap();
        assert!(old.exists() && part.exists(), "3,500 of 4,000 bytes");
        assert_eq!(names.part, names.last.with_extension("hprof.part"));
        files.make_room(2000, "heap").unwrap();
        assert!(!old.exists() && part.exists() && other.exists());
        let why = files.make_room(4000, "heap").unwrap_err();
        assert!(why.contains("guard-disk"), "{why}");
        assert!(
            part.exists(),
            "nothing is deleted for a dump that is too large"
        );
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, []).unwrap();
        assert!(files(&file, 1).check().is_err());
        let new = folder.path().join("a/b");
        files(&new, 1).check().unwrap();
        assert_eq!(fs::read_dir(new).unwrap().count(), 0, "the probe is gone");
    }

    #[test]
    fn a_pipe_is_opened_only_if_a_process_reads_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        assert!(open_pipe(&path).unwrap_err().contains("No such file"));
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RWXU).unwrap();
        let why = open_pipe(&path).unwrap_err();
        assert!(why.starts_with("no process reads"), "{why}");
        let mut options = File::options();
        let options = options.read(true).custom_flags(libc::O_NONBLOCK);
        let _reader = options.open(&path).unwrap();
        let pipe = open_pipe(&path).unwrap();
        let flags = rustix::fs::fcntl_getfl(&pipe).unwrap();
        assert!(!flags.contains(OFlags::NONBLOCK));
        fs::write(folder.path().join("file"), []).unwrap();
        let why = open_pipe(&folder.path().join("file")).unwrap_err();
        assert!(why.contains("make one with mkfifo"), "{why}");
    }

    #[test]
    fn a_full_disk_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let why = files(folder.path(), u64::MAX)
            .make_room(1 << 60, "heap")
            .unwrap_err();
        assert!(why.contains("left, but"), "{why}");
    }
}
