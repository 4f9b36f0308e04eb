//! Copies of the agent library that a JVM in a container can read. A copy is in the JVM's `/tmp`. If `/tmp` is too
//! full, read-only, or mounted with `noexec`, the copy is in another folder of the JVM.

use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{StatVfsMountFlags, statvfs};

use super::folder::Folder;
use super::protocol::Jvm;
use crate::interrupt::Unfinished;
use crate::leftovers::{self, COPY};

/// The usual folders for temporary files, in the order in which they are tried.
const USUAL: [&str; 4] = ["/tmp", "/var/tmp", "/dev/shm", "/run"];
/// Kinds of file systems that cannot store ordinary files.
const KERNELS: [&str; 8] = [
    "proc",
    "sysfs",
    "cgroup",
    "cgroup2",
    "mqueue",
    "devpts",
    "devtmpfs",
    "securityfs",
];

/// A copy of the library. Dropping this value removes the copy.
#[derive(Debug)]
pub(super) struct Copy {
    /// The path under which the JVM sees the copy.
    pub(super) path: PathBuf,
    /// Removes the file when it is dropped. This field is declared before `_folder`, because fields are dropped in the
    /// order of their declaration, and removing the file needs the folder.
    _file: Unfinished,
    /// The open and locked file. Other runs of heapdiff do not remove a copy that is open or locked.
    _held: File,
    _folder: Folder,
}

impl Copy {
    /// Copies the agent's library to the first folder of the JVM in which this is possible. The file gets a random
    /// name, because another JVM may share the folder and load its own copy at the same time.
    pub(super) fn create(jvm: &Jvm<'_>, library: &Path) -> io::Result<Self> {
        let content = fs::read(library)?;
        let mountinfo = fs::read_to_string(format!("/proc/{}/mountinfo", jvm.process.pid));
        let mut first = None;
        for (number, place) in places(&mountinfo.unwrap_or_default()).iter().enumerate() {
            if number >= USUAL.len() {
                sweep_in(jvm, place);
            }
            match Self::to(jvm, place, &content) {
                Ok(copy) => return Ok(copy),
                Err(e) => _ = first.get_or_insert(e),
            }
        }
        Err(first.unwrap_or_else(|| ErrorKind::NotFound.into()))
    }

    fn to(jvm: &Jvm<'_>, place: &Path, content: &[u8]) -> io::Result<Self> {
        let folder = jvm.root.open_in_root(place)?;
        let room = statvfs(folder.path("."))?;
        if room.f_flag.contains(StatVfsMountFlags::NOEXEC) {
            return Err(ErrorKind::PermissionDenied.into());
        }
        if is_full(room.f_blocks, room.f_bavail, room.f_frsize, content.len()) {
            return Err(ErrorKind::StorageFull.into());
        }
        let name = unused_name();
        let path = folder.path(&name);
        let user = &jvm.process.user;
        let (copy, mut file) = Unfinished::new(|| {
            let file = user.create_as(|| {
                let mut new = OpenOptions::new();
                new.write(true).create_new(true).mode(0o644).open(&path)
            })?;
            Ok((path, file))
        })?;
        // Other runs of heapdiff remove copies that killed runs left. They do not remove a file that is locked or open.
        // So lock this copy, and keep its file open in case the file system has no locks.
        let _ = file.try_lock();
        let (uid, gid) = (user.uid.as_raw(), user.gid.as_raw());
        if file.metadata()?.uid() != uid {
            std::os::unix::fs::fchown(&file, Some(uid), Some(gid))?;
        }
        file.write_all(content)?;
        Ok(Self {
            path: place.join(name),
            _file: copy,
            _held: file,
            _folder: folder,
        })
    }
}

/// Removes leftover copies from the usual folders of the JVM. Copies are left by runs of heapdiff that were killed
/// while the JVM loaded the library. Other folders are cleaned when a copy is written there.
pub(super) fn remove_leftover_copies(jvm: &Jvm<'_>) {
    for place in USUAL {
        sweep_in(jvm, Path::new(place));
    }
}

/// Removes leftover copies in one folder. The JVM's user owns the copies and may have put anything in the folder. So
/// this function runs with the rights of the JVM's user.
fn sweep_in(jvm: &Jvm<'_>, place: &Path) {
    if let Ok(folder) = jvm.root.open_in_root(place) {
        let path = folder.path(".");
        let _ = jvm.process.user.create_as(|| {
            leftovers::sweep_copies(&path);
            Ok(())
        });
    }
}

/// True if a file system has no room for `wanted` bytes. The file system has `blocks` blocks of `size` bytes, and
/// `free` of them are available. If a file system reports 0 blocks (ramfs and some FUSE file systems do), it is assumed
/// to have room.
fn is_full(blocks: u64, free: u64, size: u64, wanted: usize) -> bool {
    blocks != 0 && free.saturating_mul(size) < wanted as u64
}

/// Returns the folders of a process in which to try to write a copy, from its list of mounts.
fn places(mountinfo: &str) -> Vec<PathBuf> {
    let mut places: Vec<PathBuf> = USUAL.iter().map(PathBuf::from).collect();
    for line in mountinfo.lines() {
        let mut words = line.split(' ');
        // The fields of a line: mount id, parent id, device, root of the mount in its file system, mount point and
        // options.
        let (Some(place), Some(options)) = (words.nth(4), words.next()) else {
            continue;
        };
        let kind = words.skip_while(|word| *word != "-").nth(1);
        let has = |option| options.split(',').any(|o| o == option);
        // Skip paths with unusual characters, which the kernel writes with a backslash.
        let is_plain = !place.contains('\\') && !places.iter().any(|p| p == Path::new(place));
        if is_plain && has("rw") && !has("noexec") && kind.is_some_and(|k| !KERNELS.contains(&k)) {
            places.push(place.into());
        }
    }
    places
}

/// Returns a random name that nobody can guess. All copies of the library have names with the same beginning and end.
fn unused_name() -> String {
    let random = RandomState::new().hash_one(std::process::id());
    let [before, after] = COPY;
    format!("{before}{random:016x}{after}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::library::MARK;

    #[test]
    fn copies_have_unique_recognizable_names() {
        let names = [unused_name(), unused_name()];
        assert!(names.iter().all(|name| name.contains(MARK)), "{names:?}");
        assert_ne!(names[0], names[1]);
    }

    #[test]
    fn a_file_system_with_unknown_space_is_not_full() {
        assert!(is_full(9, 1, 4096, 4097) && !is_full(9, 2, 4096, 4097));
        assert!(!is_full(0, 0, 4096, 4097));
    }

    #[test]
    fn writable_mounts_are_possible_places() {
        let mounts = "\
1 0 8:1 / / ro,relatime - ext4 /dev/sda rw
2 1 0:20 / /proc rw - proc proc rw
3 1 0:21 / /tmp rw,noexec - tmpfs tmpfs rw
4 1 0:22 / /data rw,relatime shared:1 - ext4 /dev/sdb rw
5 1 0:23 / /odd\\040name rw - ext4 /dev/sdc rw
6 1 0:24 / /secret ro - tmpfs tmpfs rw
7 1 0:25 / /cache rw,noexec - tmpfs tmpfs rw
";
        let places = places(mounts);
        let more: Vec<_> = places.iter().skip(USUAL.len()).collect();
        assert_eq!(more, [Path::new("/data")]);
        assert_eq!(places[0], Path::new("/tmp"));
    }
}
