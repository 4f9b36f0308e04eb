//! Folders as a process in another mount namespace sees them.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, ResolveFlags, open, openat2};
use rustix::io::Errno;

/// An open folder. Files in it are opened relative to its descriptor, so renaming or replacing the folder's path has no
/// effect.
#[derive(Debug)]
pub(super) struct Folder {
    fd: OwnedFd,
}

const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

impl Folder {
    /// Opens the root of the file system that a process sees.
    pub(super) fn root_of(pid: u32) -> io::Result<Self> {
        let fd = open(format!("/proc/{pid}/root"), FOLDER, Mode::empty())?;
        Ok(Self { fd })
    }

    /// Opens the working folder of a process.
    pub(super) fn cwd_of(pid: u32) -> io::Result<Self> {
        let fd = open(format!("/proc/{pid}/cwd"), FOLDER, Mode::empty())?;
        Ok(Self { fd })
    }

    /// Opens a folder by a path in our own file system.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let fd = open(path, FOLDER, Mode::empty())?;
        Ok(Self { fd })
    }

    /// Opens a folder. `path` is a path in a process whose root folder is `self`.
    ///
    /// Links are followed as that process would follow them: a link to `/etc` in a container leads to the container's
    /// `/etc`, not to ours.
    pub(super) fn open_in_root(&self, path: &Path) -> io::Result<Self> {
        let fd = self.resolve(path, FOLDER)?;
        Ok(Self { fd })
    }

    /// Returns the device and inode of a file. `path` is a path in a process whose root folder is `self`.
    pub(super) fn identity_of(&self, path: &Path) -> io::Result<(u64, u64)> {
        let fd = self.resolve(path, OFlags::PATH | OFlags::CLOEXEC)?;
        let meta = File::from(fd).metadata()?;
        Ok((meta.dev(), meta.ino()))
    }

    /// Opens a regular file for reading. `path` is a path in a process whose root folder is `self`.
    pub(super) fn file(&self, path: &Path) -> io::Result<File> {
        // `NONBLOCK`: opening a named pipe would block otherwise.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(self.resolve(path, flags)?);
        if file.metadata()?.is_file() {
            Ok(file)
        } else {
            Err(io::Error::from(io::ErrorKind::InvalidInput))
        }
    }

    fn resolve(&self, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let within = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        match openat2(&self.fd, path, flags, Mode::empty(), within) {
            // Kernels before Linux 5.6 and some sandboxes lack `openat2`. In this case paths with links are refused,
            // because only a link can lead out of the root.
            Err(Errno::NOSYS | Errno::PERM) => self.resolve_without_links(path, flags),
            found => Ok(found?),
        }
    }

    fn resolve_without_links(&self, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let mut at = self.fd.try_clone()?;
        let mut steps = path
            .components()
            .filter_map(|step| match step {
                std::path::Component::Normal(name) => Some(name),
                _ => None,
            })
            .peekable();
        while let Some(step) = steps.next() {
            let flags = if steps.peek().is_some() {
                FOLDER
            } else {
                flags
            };
            at = rustix::fs::openat(&at, step, flags | OFlags::NOFOLLOW, Mode::empty())?;
        }
        Ok(at)
    }

    /// Returns a path in our own file system for a name in this folder. The path is valid while the folder is open.
    pub(super) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.fd.as_raw_fd())).join(name)
    }

    /// Returns the device and inode, which identify the folder.
    pub(super) fn identity(&self) -> io::Result<(u64, u64)> {
        let meta = fs::metadata(self.path("."))?;
        Ok((meta.dev(), meta.ino()))
    }

    /// Checks that the calling thread may create files in this folder.
    pub(super) fn is_writable(&self) -> io::Result<()> {
        use rustix::fs::{Access, AtFlags, CWD, accessat};
        let wanted = Access::WRITE_OK | Access::EXEC_OK;
        Ok(accessat(CWD, self.path("."), wanted, AtFlags::EACCESS)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_stay_below_the_root() {
        let jail = tempfile::tempdir().unwrap();
        fs::create_dir_all(jail.path().join("etc/inner")).unwrap();
        std::os::unix::fs::symlink("/etc", jail.path().join("tmp")).unwrap();
        std::os::unix::fs::symlink("../../../..", jail.path().join("up")).unwrap();
        let root = Folder::open(jail.path()).unwrap();
        let etc = Folder::open(&jail.path().join("etc")).unwrap();
        let through = root.open_in_root(Path::new("/tmp")).unwrap();
        assert_eq!(through.identity().unwrap(), etc.identity().unwrap());
        let up = root.open_in_root(Path::new("/up")).unwrap();
        assert_eq!(up.identity().unwrap(), root.identity().unwrap());
        assert!(root.open_in_root(Path::new("/tmp/inner")).is_ok());
        // The fallback for kernels without `openat2` refuses links.
        let links = |path: &str| root.resolve_without_links(Path::new(path), FOLDER);
        assert!(links("/etc/inner").is_ok());
        assert!(links("/tmp").is_err() && links("/tmp/inner").is_err());
    }
}
