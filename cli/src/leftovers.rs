//! What runs that were killed have left: files that were not finished, and copies of the agent's library.
//!
//! They are known by their names, by nobody having written to them for a while, by no run holding a lock on them, and by no
//! process that we can look into having them open.

use std::fs::{self, Metadata};
use std::path::Path;
use std::time::Duration;

use crate::interrupt::UNFINISHED;

#[cfg(target_os = "linux")]
pub(crate) use linux::{sweep, sweep_copies};

/// A file that was written to since may still be.
const STILL: Duration = Duration::from_secs(60);
/// Letters and digits that follow, of temporary files and of dumps.
const RANDOM: [usize; 2] = [6, 16];

/// What stands around the random part of the name of the agent's library where it is copied for a JVM to load.
#[cfg(target_os = "linux")]
pub(crate) const COPY: [&str; 2] = ["libheapdiff_agent-", "-copy.so"];

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
#[cfg(not(target_os = "linux"))]
fn is_abandoned(path: &Path) -> bool {
    let is_file = fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file());
    is_file && fs::File::open(path).is_ok_and(|file| is_deserted(&file).is_some())
}

#[cfg(target_os = "linux")]
fn is_abandoned(path: &Path) -> bool {
    linux::is_abandoned(rustix::fs::CWD, path)
}

/// What is told of an open file to which nobody has written for a while, and that nobody has locked.
fn is_deserted(file: &fs::File) -> Option<Metadata> {
    let meta = file.metadata().ok()?;
    (meta.is_file() && is_old(&meta, STILL) && file.try_lock().is_ok()).then_some(meta)
}

fn is_old(meta: &Metadata, than: Duration) -> bool {
    let since = meta.modified().ok().and_then(|time| time.elapsed().ok());
    since.is_some_and(|since| since > than)
}

/// Folders that others may write to, as `/tmp`: what has been looked at may be something else a moment later. So all goes by open
/// folders and files, and no link is followed.
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

    use super::{COPY, STILL, UNFINISHED, is_deserted, is_old};

    const FILE: OFlags = OFlags::NOFOLLOW
        .union(OFlags::NONBLOCK)
        .union(OFlags::NOCTTY)
        .union(OFlags::CLOEXEC);
    const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);
    /// A folder with nothing in it may be one in which a JVM has not begun to write.
    const EMPTY: Duration = Duration::from_secs(60 * 60);

    /// Whether nobody has written to a file for a while, nor holds it.
    pub(super) fn is_abandoned(folder: impl AsFd, name: impl Arg + Copy) -> bool {
        let is_file = statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_file());
        let deserted = if is_file {
            deserted(folder, name)
        } else {
            None
        };
        deserted.is_some_and(|meta| !is_open(&meta))
    }

    /// Looks at what is opened: since the name was looked at, a pipe or a link may have come in the file's place. Opening a pipe
    /// does not wait.
    pub(super) fn deserted(folder: impl AsFd, name: impl Arg) -> Option<Metadata> {
        let file = openat(folder, name, FILE, Mode::empty()).ok()?;
        is_deserted(&File::from(file))
    }

    /// Whether a process that we can look into has a file open.
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

    /// Removes what killed runs left of dumps in a folder: files, and folders of the acting user with nothing else. What cannot be
    /// removed stays.
    pub(crate) fn sweep(folder: &Path) {
        let Ok(folder) = open(folder, FOLDER, Mode::empty()) else {
            return;
        };
        for name in names(&folder).unwrap_or_default() {
            let text = name.to_string_lossy();
            let Some(dump) = dump_of(&text) else {
                continue;
            };
            if is_abandoned(&folder, &*name) {
                // A thread of a JVM has closed its part before the others have, and then the parts are put together.
                if dump == text || is_absent(&folder, dump) || is_abandoned(&folder, dump) {
                    let _ = unlinkat(&folder, &*name, AtFlags::empty());
                }
            } else if dump == text && emptied(&folder, &name).is_some() {
                // This fails, as it should, when something came meanwhile.
                let _ = unlinkat(&folder, &*name, AtFlags::REMOVEDIR);
            }
        }
    }

    /// Removes the copies of the agent's library that killed runs left in a folder. A run that lives holds a lock on its copy;
    /// a JVM that has loaded one needs its name no more.
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

    /// The name of the dump that a file with this name is, or is a part of: what users may have named so is none.
    fn dump_of(name: &str) -> Option<&str> {
        let dump = whole(name);
        dump.strip_prefix(UNFINISHED)
            .is_some_and(is_random)
            .then_some(dump)
    }

    /// What we take for the part of a name that nobody can tell beforehand.
    fn is_random(text: &str) -> bool {
        let is_hex = |b| matches!(b, b'0'..=b'9' | b'a'..=b'f');
        text.len() == 16 && text.bytes().all(is_hex)
    }

    /// A name without the number of a part.
    fn whole(name: &str) -> &str {
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

    /// Empties a folder that a killed run made for a dump.
    fn emptied(folder: impl AsFd, name: &CStr) -> Option<()> {
        let opened = openat(folder, name, FOLDER | OFlags::NOFOLLOW, Mode::empty()).ok()?;
        let opened = File::from(opened);
        let meta = opened.metadata().ok()?;
        let within = names(&opened).ok()?;
        let age = if within.is_empty() { EMPTY } else { STILL };
        let is_left = |name: &CString| {
            whole(&name.to_string_lossy()) == "dump.hprof" && is_abandoned(&opened, &**name)
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
    fn what_killed_runs_left_goes_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in [
            ".heapdiff-0123456789abcdef",
            ".heapdiff-0123456789abcdef.p3",
            // Not ours, or not old enough, or in use.
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
        // Parts of a dump that is being put together, and of none.
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
        sweep(folder.path());
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
        sweep(folder.path());
        assert!(!at(".heapdiff-1111111111111111").exists());
        assert!(!is_left_behind(&at(".heapdiff-fedcba9876543210"), &[]));
        drop(made(&at(".heapdiff-abcdef.hdx"), 90));
        assert!(is_left_behind(&at(".heapdiff-abcdef.hdx"), &["hdx"]));
        assert!(!is_left_behind(&at(".heapdiff-abcdef.hdx"), &[]));
    }

    #[test]
    fn copies_of_the_agent_go_with_the_run_that_made_them() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let copy =
            |first: char| format!("{}{}{}", COPY[0], String::from(first).repeat(16), COPY[1]);
        drop(made(&at(&copy('0')), 90));
        drop(made(&at(&copy('1')), 30));
        let locked = made(&at(&copy('2')), 90);
        locked.lock().unwrap();
        let kept = [
            // In the user's cache, for good.
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
        sweep(folder.path());
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

    /// In `/tmp` anybody may put something by such a name, also between two looks.
    #[test]
    fn what_others_put_in_the_way_leads_nowhere() {
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
        // Another user's folder, if there is somebody who may make one.
        let theirs = at(".heapdiff-3333333333333333");
        fs::create_dir(&theirs).unwrap();
        drop(made(&theirs.join("dump.hprof"), 90));
        age_of(&File::open(&theirs).unwrap(), 90);
        let is_theirs = std::os::unix::fs::chown(&theirs, Some(65_534), None).is_ok();
        sweep(folder.path());
        assert!(kept.exists() && at(pipe).exists());
        assert_eq!(theirs.exists(), is_theirs);
        // What is put there after the first look, too.
        let opened = |name: &str| linux::deserted(rustix::fs::CWD, at(name));
        assert!(opened(pipe).is_none());
        assert!(opened(".heapdiff-1111111111111111").is_none());
        assert!(linux::deserted(rustix::fs::CWD, &kept).is_some());
    }
}
