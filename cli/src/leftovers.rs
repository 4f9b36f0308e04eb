//! What runs that were killed have left: files that were not finished.
//!
//! They are known by their names, by nobody having written to them for a while, and by no process that we can look into having
//! them open.

use std::fs::{self, Metadata};
use std::path::Path;
use std::time::Duration;

use crate::interrupt::UNFINISHED;

/// A file that was written to since may still be.
const STILL: Duration = Duration::from_secs(60);
/// Letters and digits that follow, of temporary files and of dumps.
const RANDOM: [usize; 2] = [6, 16];

/// Whether a file is one that a killed run had not finished. Nobody writes to it: runs that do hold a lock, and
/// a JVM that writes a dump has it open.
pub(crate) fn is_left_behind(path: &Path, extensions: &[&str]) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    is_unfinished(&name, extensions) && is_abandoned(path)
}

/// Whether files that are not finished have such names. Recent JVMs write a dump in parts.
fn is_unfinished(name: &str, extensions: &[&str]) -> bool {
    let Some(rest) = name.strip_prefix(UNFINISHED) else {
        return false;
    };
    let (random, end) = rest.split_once('.').unwrap_or((rest, ""));
    let is_part = end
        .strip_prefix('p')
        .is_some_and(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()));
    let is_plain = random.bytes().all(|b| b.is_ascii_alphanumeric());
    is_plain
        && RANDOM.contains(&random.len())
        && (end.is_empty() || is_part || extensions.contains(&end))
}

/// Whether nobody has written to a file for a while, nor holds it.
fn is_abandoned(path: &Path) -> bool {
    let Ok(meta) = fs::symlink_metadata(path) else {
        return false;
    };
    meta.is_file()
        && is_old(&meta)
        && fs::File::open(path).is_ok_and(|file| file.try_lock().is_ok())
        && !is_open(&meta)
}

fn is_old(meta: &Metadata) -> bool {
    let since = meta.modified().ok().and_then(|time| time.elapsed().ok());
    since.is_some_and(|since| since > STILL)
}

/// Whether a process that we can look into has a file open.
#[cfg(target_os = "linux")]
fn is_open(meta: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    let wanted = (meta.dev(), meta.ino());
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut files = processes
        .filter(|process| {
            let name = process.file_name();
            name.as_encoded_bytes().iter().all(u8::is_ascii_digit)
        })
        .flat_map(|process| {
            fs::read_dir(process.path().join("fd"))
                .into_iter()
                .flatten()
        })
        .flatten();
    files.any(|file| fs::metadata(file.path()).is_ok_and(|meta| (meta.dev(), meta.ino()) == wanted))
}

#[cfg(not(target_os = "linux"))]
fn is_open(_: &Metadata) -> bool {
    false
}

/// Removes what killed runs left of dumps in a folder: files, and folders with nothing else. What cannot be removed stays.
#[cfg(target_os = "linux")]
pub(crate) fn sweep(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if !is_unfinished(&entry.file_name().to_string_lossy(), &[]) {
            continue;
        }
        let Ok(meta) = fs::symlink_metadata(&path) else {
            continue;
        };
        if !meta.is_dir() {
            if is_abandoned(&path) {
                let _ = fs::remove_file(&path);
            }
            continue;
        }
        let within: Vec<std::path::PathBuf> = fs::read_dir(&path)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .collect();
        if is_old(&meta) && within.iter().all(|path| is_abandoned(path)) {
            for path in within {
                let _ = fs::remove_file(path);
            }
            // This fails, as it should, when something came meanwhile.
            let _ = fs::remove_dir(&path);
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs::File;
    use std::time::SystemTime;

    use super::*;

    fn made(path: &Path, age: u64) -> File {
        let file = File::create(path).unwrap();
        age_of(&file, age);
        file
    }

    fn age_of(file: &File, seconds: u64) {
        file.set_modified(SystemTime::now() - Duration::from_secs(seconds))
            .unwrap();
    }

    #[test]
    fn what_killed_runs_left_goes_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in [
            ".heapdiff-0123456789abcdef",
            ".heapdiff-0123456789abcdef.p3",
            ".heapdiff-abcdef",
            // Not ours, or not old enough, or in use.
            ".heapdiff-0123456789abcdef.hprof",
            ".heapdiff-notes",
            "before.hprof",
        ] {
            drop(made(&at(name), 90));
        }
        drop(made(&at(".heapdiff-fedcba9876543210"), 30));
        let held = made(&at(".heapdiff-1111111111111111"), 90);
        for (name, more) in [
            (".heapdiff-2222222222222222", None),
            (".heapdiff-3333333333333333", Some(90)),
            (".heapdiff-4444444444444444", Some(30)),
        ] {
            fs::create_dir(at(name)).unwrap();
            if let Some(age) = more {
                drop(made(&at(name).join("dump.hprof"), age));
            }
            age_of(&File::open(at(name)).unwrap(), 90);
        }
        sweep(folder.path());
        let mut left: Vec<String> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        let kept = [
            ".heapdiff-0123456789abcdef.hprof",
            ".heapdiff-1111111111111111",
            ".heapdiff-4444444444444444",
            ".heapdiff-fedcba9876543210",
            ".heapdiff-notes",
            "before.hprof",
        ];
        assert_eq!(left, kept);
        drop(held);
        sweep(folder.path());
        assert!(!at(".heapdiff-1111111111111111").exists());
        assert!(!is_left_behind(&at(".heapdiff-fedcba9876543210"), &[]));
        drop(made(&at(".heapdiff-abcdef.hdx"), 90));
        assert!(is_left_behind(&at(".heapdiff-abcdef.hdx"), &["hdx"]));
        assert!(!is_left_behind(&at(".heapdiff-abcdef.hdx"), &[]));
    }
}
