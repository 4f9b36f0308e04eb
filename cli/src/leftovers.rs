//! Removes files that killed runs left: unfinished files, and copies of the agent library.
//!
//! A file is removed only if all of these are true:
//!
//! - It has a name that heapdiff gives to such files.
//! - Nobody has written to it for [`STILL`].
//! - No run holds a lock on it.
//! - No process has it open. (Processes that heapdiff cannot inspect are ignored.)

use std::fs::{self, Metadata};
use std::path::Path;
use std::time::Duration;

use crate::interrupt::UNFINISHED;

#[cfg(target_os = "linux")]
pub(crate) use linux::{remove_leftovers, sweep_copies};

/// Files that were modified within this time count as still in use.
const STILL: Duration = Duration::from_secs(60);
/// Lengths of the random part of a name: in names of temporary files, and in names of dumps.
const RANDOM: [usize; 2] = [6, 16];

/// Beginning and end of the name of a copied agent library. A random part is between them.
#[cfg(target_os = "linux")]
pub(crate) const COPY: [&str; 2] = ["libheapdiff_agent-", "-copy.so"];

/// True if a killed run left the file behind before it was finished. Returns false for a file in use: a run that writes
/// a file holds a lock on it, and a JVM that writes a dump has it open.
pub(crate) fn is_leftover(path: &Path, extensions: &[&str]) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    is_unfinished(&name, extensions) && is_abandoned(path)
}

/// True if `name` is a name that heapdiff gives to unfinished files. Some JVMs write a dump in several parts, whose
/// names end with a number.
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

/// True if nobody has written to a file for [`STILL`] and nobody has locked it.
#[cfg(not(target_os = "linux"))]
fn is_abandoned(path: &Path) -> bool {
    let is_file = fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file());
    is_file && fs::File::open(path).is_ok_and(|file| abandoned_metadata(&file).is_some())
}

#[cfg(target_os = "linux")]
fn is_abandoned(path: &Path) -> bool {
    linux::is_abandoned(rustix::fs::CWD, path)
}

/// Returns the metadata of an open file if nobody has written to it for [`STILL`] and nobody has locked it.
fn abandoned_metadata(file: &fs::File) -> Option<Metadata> {
    let meta = file.metadata().ok()?;
    (meta.is_file() && is_old(&meta, STILL) && file.try_lock().is_ok()).then_some(meta)
}

fn is_old(meta: &Metadata, than: Duration) -> bool {
    let since = meta.modified().ok().and_then(|time| time.elapsed().ok());
    since.is_some_and(|since| since > than)
}

/// Handles folders that others can write to, such as `/tmp`. In such folders, another user can replace a file just
/// after its name was checked. So every operation uses open folders and files, and no link is followed.
#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::{CStr, CString};
    use std::fs::{self, File, Metadata};
    use std::io;
    use std::os::fd::AsFd;
    use std::os::unix::fs::MetadataExt;
    use std::path::Path;
    use std::time::Duration;

    use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, open, openat, statat, unlinkat};
    use rustix::path::Arg;
    use rustix::process::geteuid;

    use super::{COPY, STILL, UNFINISHED, abandoned_metadata, is_old};

    const FILE: OFlags = OFlags::NOFOLLOW
        .union(OFlags::NONBLOCK)
        .union(OFlags::NOCTTY)
        .union(OFlags::CLOEXEC);
    const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);
    /// Minimum time without changes after which an empty folder is removed. It is longer than [`STILL`], because the
    /// folder may belong to a JVM that has not started to write yet.
    const EMPTY: Duration = Duration::from_secs(60 * 60);

    /// True if nobody has written to a file for [`STILL`], and nobody has locked or opened it.
    pub(super) fn is_abandoned(folder: impl AsFd, name: impl Arg + Copy) -> bool {
        let is_file = statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_file());
        let deserted = if is_file {
            open_abandoned(folder, name)
        } else {
            None
        };
        deserted.is_some_and(|meta| !is_open(&meta))
    }

    /// Opens a file, and returns its metadata if nobody has written to it for [`STILL`] and nobody has locked it. The
    /// check uses the open file, because a pipe or a link may have replaced the file after its name was checked.
    /// Opening a pipe does not block.
    pub(super) fn open_abandoned(folder: impl AsFd, name: impl Arg) -> Option<Metadata> {
        let file = openat(folder, name, FILE, Mode::empty()).ok()?;
        abandoned_metadata(&File::from(file))
    }

    /// True if a process has the file open. Processes that we cannot inspect are ignored.
    fn is_open(meta: &Metadata) -> bool {
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
        files.any(|file| {
            fs::metadata(file.path()).is_ok_and(|meta| (meta.dev(), meta.ino()) == wanted)
        })
    }

    /// Removes the dumps that killed runs left in a folder. Also removes folders that contain only such dumps and
    /// belong to the user with whose rights this function runs. If a file cannot be removed, it stays.
    pub(crate) fn remove_leftovers(folder: &Path) {
        let Ok(folder) = open(folder, FOLDER, Mode::empty()) else {
            return;
        };
        for name in names(&folder).unwrap_or_default() {
            let text = name.to_string_lossy();
            let Some(dump) = dump_of(&text) else {
                continue;
            };
            if is_abandoned(&folder, &*name) {
                // Several threads of a JVM may write a dump, each to its own part. The threads close their parts at
                // different times, and then the JVM joins the parts. So a part is removed only if its dump is abandoned
                // as well, or does not exist.
                if dump == text || is_absent(&folder, dump) || is_abandoned(&folder, dump) {
                    let _ = unlinkat(&folder, &*name, AtFlags::empty());
                }
            } else if dump == text && delete_dumps(&folder, &name).is_some() {
                // This fails, as intended, if a file was added to the folder meanwhile.
                let _ = unlinkat(&folder, &*name, AtFlags::REMOVEDIR);
            }
        }
    }

    /// Removes copies of the agent library that killed runs left in a folder. If a copy is locked, its run has not
    /// ended, so the copy stays. After a JVM has loaded a copy, it no longer needs the copy's name.
    pub(crate) fn sweep_copies(folder: &Path) {
        let Ok(folder) = open(folder, FOLDER, Mode::empty()) else {
            return;
        };
        for name in names(&folder).unwrap_or_default() {
            if is_copy(&name.to_string_lossy()) && is_abandoned(&folder, &*name) {
                let _ = unlinkat(&folder, &*name, AtFlags::empty());
            }
        }
    }

    fn is_copy(name: &str) -> bool {
        let [before, after] = COPY;
        let random = name
            .strip_prefix(before)
            .and_then(|n| n.strip_suffix(after));
        random.is_some_and(is_random)
    }

    /// Returns the name of the dump to which a file belongs, according to the file's name. Returns `None` for names
    /// that a user may have chosen.
    fn dump_of(name: &str) -> Option<&str> {
        let dump = without_part_number(name);
        dump.strip_prefix(UNFINISHED)
            .is_some_and(is_random)
            .then_some(dump)
    }

    /// True if a text looks like the random part of a name that heapdiff gives.
    fn is_random(text: &str) -> bool {
        let is_hex = |b| matches!(b, b'0'..=b'9' | b'a'..=b'f');
        text.len() == 16 && text.bytes().all(is_hex)
    }

    /// Removes the ending `.p` and number from the name of a dump's part: `a.hprof.p1` becomes `a.hprof`. Returns other
    /// names unchanged.
    fn without_part_number(name: &str) -> &str {
        match name.rsplit_once(".p") {
            Some((dump, part)) if !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()) => {
                dump
            }
            _ => name,
        }
    }

    fn is_absent(folder: impl AsFd, name: &str) -> bool {
        let found = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW);
        found.err() == Some(rustix::io::Errno::NOENT)
    }

    /// Deletes the dumps that a killed run left in the folder `name`. Deletes nothing and returns `None` if the folder
    /// belongs to another user, may be in use, or contains other files.
    fn delete_dumps(folder: impl AsFd, name: &CStr) -> Option<()> {
        let opened = openat(folder, name, FOLDER | OFlags::NOFOLLOW, Mode::empty()).ok()?;
        let opened = File::from(opened);
        let meta = opened.metadata().ok()?;
        let within = names(&opened).ok()?;
        let age = if within.is_empty() { EMPTY } else { STILL };
        let is_left = |name: &CString| {
            without_part_number(&name.to_string_lossy()) == "dump.hprof"
                && is_abandoned(&opened, &**name)
        };
        let is_ours = meta.uid() == geteuid().as_raw();
        if !is_ours || !is_old(&meta, age) || !within.iter().all(is_left) {
            return None;
        }
        for name in within {
            let _ = unlinkat(&opened, &*name, AtFlags::empty());
        }
        Some(())
    }

    fn names(folder: impl AsFd) -> io::Result<Vec<CString>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(folder)? {
            let entry = entry?;
            if ![c".", c".."].contains(&entry.file_name()) {
                names.push(entry.file_name().to_owned());
            }
        }
        Ok(names)
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
    fn only_files_of_killed_runs_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in [
            ".heapdiff-0123456789abcdef",
            ".heapdiff-0123456789abcdef.p3",
            // These files stay, because heapdiff does not create files with such names.
            ".heapdiff-0123456789abcdef.hprof",
            ".heapdiff-abcdef",
            ".heapdiff-backup",
            ".heapdiff-0123456789ABCDEF",
            ".heapdiff-backup-of-mondays",
            ".heapdiff-notes",
            "before.hprof",
        ] {
            drop(made(&at(name), 90));
        }
        drop(made(&at(".heapdiff-fedcba9876543210"), 30));
        let held = made(&at(".heapdiff-1111111111111111"), 90);
        // The first file is a part of a dump that a JVM is still assembling from its parts. The second file is a part
        // whose dump does not exist.
        drop(made(&at(".heapdiff-1111111111111111.p0"), 90));
        drop(made(&at(".heapdiff-aaaaaaaaaaaaaaaa.p0"), 90));
        for (name, within, age) in [
            (".heapdiff-2222222222222222", None, 3700),
            (".heapdiff-3333333333333333", Some(("dump.hprof", 90)), 90),
            (".heapdiff-4444444444444444", Some(("dump.hprof", 30)), 90),
            (".heapdiff-5555555555555555", None, 3500),
            (".heapdiff-6666666666666666", Some(("notes", 90)), 90),
        ] {
            fs::create_dir(at(name)).unwrap();
            if let Some((file, age)) = within {
                drop(made(&at(name).join(file), age));
            }
            age_of(&File::open(at(name)).unwrap(), age);
        }
        remove_leftovers(folder.path());
        let mut left: Vec<String> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        let kept = [
            ".heapdiff-0123456789ABCDEF",
            ".heapdiff-0123456789abcdef.hprof",
            ".heapdiff-1111111111111111",
            ".heapdiff-1111111111111111.p0",
            ".heapdiff-4444444444444444",
            ".heapdiff-5555555555555555",
            ".heapdiff-6666666666666666",
            ".heapdiff-abcdef",
            ".heapdiff-backup",
            ".heapdiff-backup-of-mondays",
            ".heapdiff-fedcba9876543210",
            ".heapdiff-notes",
            "before.hprof",
        ];
        assert_eq!(left, kept);
        drop(held);
        remove_leftovers(folder.path());
        assert!(!at(".heapdiff-1111111111111111").exists());
        assert!(!is_leftover(&at(".heapdiff-fedcba9876543210"), &[]));
        drop(made(&at(".heapdiff-abcdef.hdx"), 90));
        assert!(is_leftover(&at(".heapdiff-abcdef.hdx"), &["hdx"]));
        assert!(!is_leftover(&at(".heapdiff-abcdef.hdx"), &[]));
    }

    #[test]
    fn agent_copies_of_ended_runs_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let copy =
            |first: char| format!("{}{}{}", COPY[0], String::from(first).repeat(16), COPY[1]);
        drop(made(&at(&copy('0')), 90));
        drop(made(&at(&copy('1')), 30));
        let locked = made(&at(&copy('2')), 90);
        locked.lock().unwrap();
        let kept = [
            // A copy of the library in the user's cache folder. Such copies are never removed.
            "libheapdiff_agent-3333333333333333.so",
            "libheapdiff_agent-333333333333333-copy.so",
            "libheapdiff_agent-backupofmondays_-copy.so",
            "libheapdiff_agent.so",
        ];
        for name in kept {
            drop(made(&at(name), 90));
        }
        fs::create_dir(at(&copy('4'))).unwrap();
        std::os::unix::fs::symlink(at(kept[0]), at(&copy('5'))).unwrap();
        let left = || -> Vec<String> {
            let entries = fs::read_dir(folder.path()).unwrap();
            let mut names: Vec<String> = entries
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort();
            names
        };
        remove_leftovers(folder.path());
        assert!(at(&copy('0')).exists(), "dumps only");
        sweep_copies(folder.path());
        let mut all: Vec<String> = kept.map(str::to_owned).into();
        all.extend(['1', '2', '4', '5'].map(copy));
        all.sort();
        assert_eq!(left(), all);
        drop(locked);
        sweep_copies(folder.path());
        all.retain(|name| *name != copy('2'));
        assert_eq!(left(), all);
    }

    /// In `/tmp`, any user may create files with the names that heapdiff uses, even between two checks.
    #[test]
    fn links_of_other_users_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let outside = tempfile::tempdir().unwrap();
        let kept = outside.path().join("dump.hprof");
        drop(made(&kept, 90));
        age_of(&File::open(outside.path()).unwrap(), 90);
        std::os::unix::fs::symlink(outside.path(), at(".heapdiff-0000000000000000")).unwrap();
        std::os::unix::fs::symlink(&kept, at(".heapdiff-1111111111111111")).unwrap();
        let pipe = ".heapdiff-2222222222222222";
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, at(pipe), kind, mode, 0).unwrap();
        // A folder that belongs to another user, if this test may change the owner of files.
        let theirs = at(".heapdiff-3333333333333333");
        fs::create_dir(&theirs).unwrap();
        drop(made(&theirs.join("dump.hprof"), 90));
        age_of(&File::open(&theirs).unwrap(), 90);
        let is_theirs = std::os::unix::fs::chown(&theirs, Some(65_534), None).is_ok();
        remove_leftovers(folder.path());
        assert!(kept.exists() && at(pipe).exists());
        assert_eq!(theirs.exists(), is_theirs);
        // The check after opening a file refuses a pipe and a symbolic link. Another user may put a pipe or a link in
        // place of the file between the check of its name and the opening.
        let opened = |name: &str| linux::open_abandoned(rustix::fs::CWD, at(name));
        assert!(opened(pipe).is_none());
        assert!(opened(".heapdiff-1111111111111111").is_none());
        assert!(linux::open_abandoned(rustix::fs::CWD, &kept).is_some());
    }
}
