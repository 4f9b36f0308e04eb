//! Where the agent's library is: as the user says, beside this program, or in it.
//!
//! A program that was installed or packed carries the library, so that the two fit each other wherever the program is
//! put. To be loaded it has to be a file: it is written to the user's cache folder, or to a private folder for temporary
//! files, and used from there only when it is byte for byte what the program carries and nobody else can change it.

use std::env;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::IntoRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{MemfdFlags, OFlags, memfd_create};
use rustix::process::geteuid;
use twox_hash::XxHash3_64;

use crate::failure::{Failure, Result, plain};
use crate::index;
use crate::interrupt::Unfinished;
use crate::job::folder_of;
use crate::overwrite;
use crate::write::failed;

const LIBRARY: &str = "libheapdiff_agent.so";
/// In the name of the library and of its copies.
pub(super) const MARK: &str = "heapdiff_agent";

/// The library that this program carries, compressed.
#[cfg(carries_agent)]
const CARRIED: Option<&[u8]> = Some(include_bytes!(env!("HEAPDIFF_CARRIED_AGENT")));
#[cfg(not(carries_agent))]
const CARRIED: Option<&[u8]> = None;

/// Finds the agent's library: as told, by `HEAPDIFF_AGENT`, beside this program, or in it.
///
/// One beside a program that carries another is of another version, and is left alone.
pub(crate) fn library(told: Option<&Path>) -> Result<PathBuf> {
    found(told, unpack)
}

/// As [`library`], without a file for what this program carries: it is in memory as long as this process lives, by a path
/// that leads nobody else to it.
pub(super) fn library_without_files(told: Option<&Path>) -> Result<PathBuf> {
    found(told, |content| {
        in_memory(content).map_err(|e| {
            Failure::usage(format!(
                "cannot copy the agent library to memory: {}",
                plain(&e)
            ))
        })
    })
}

fn in_memory(content: &[u8]) -> io::Result<PathBuf> {
    let mut file = File::from(memfd_create(LIBRARY, MemfdFlags::CLOEXEC)?);
    file.write_all(content)?;
    Ok(format!("/proc/self/fd/{}", file.into_raw_fd()).into())
}

/// The library in its place; `carried` makes one of what this program carries.
fn found(told: Option<&Path>, carried: impl Fn(&[u8]) -> Result<PathBuf>) -> Result<PathBuf> {
    let from_environment = env::var_os("HEAPDIFF_AGENT")
        .filter(|value| !value.is_empty())
        .map(PathBuf::from);
    for (path, by) in [
        (told.map(Path::to_owned), "--agent"),
        (from_environment, "HEAPDIFF_AGENT"),
    ] {
        if let Some(path) = path {
            return fs::canonicalize(&path)
                .and_then(|path| File::open(&path).map(|_| path))
                .map_err(|e| Failure::usage(format!("{by}: {}: {}", path.display(), plain(&e))));
        }
    }
    let program = env::current_exe()
        .and_then(fs::canonicalize)
        .unwrap_or_default();
    let beside = beside(&program);
    let Some(packed) = CARRIED else {
        return beside.ok_or_else(|| {
            Failure::usage(format!("{LIBRARY} is not next to {}", program.display())).with_hint(
                "install heapdiff with the library embedded (`cargo xtask install` in its source), or give the path of the library with --agent or HEAPDIFF_AGENT",
            )
        });
    };
    let content = decompressed(packed)?;
    match beside.filter(|path| fs::read(path).is_ok_and(|found| found == content)) {
        Some(path) => Ok(path),
        None => carried(&content),
    }
}

/// The library in the program's folder, or where packages have it.
fn beside(program: &Path) -> Option<PathBuf> {
    let folder = program.parent()?;
    ["", "../lib", "../lib/heapdiff"]
        .iter()
        .find_map(|below| fs::canonicalize(folder.join(below).join(LIBRARY)).ok())
}

/// Copies the library to a file, or into a folder; returns where it is.
pub(crate) fn copy_to(library: &Path, output: &Path) -> Result<PathBuf> {
    let file = if output.is_dir() {
        output.join(LIBRARY)
    } else {
        output.to_owned()
    };
    overwrite::check(&file)?;
    let copied = || -> io::Result<PathBuf> {
        let content = fs::read(library)?;
        write_whole(folder_of(&file), &file, 0o666, &content)?;
        fs::canonicalize(&file)
    };
    copied().map_err(|e| failed(format!("-o {}", file.display()), &e))
}

fn decompressed(carried: &[u8]) -> Result<Vec<u8>> {
    let mut content = Vec::new();
    flate2::read::GzDecoder::new(carried)
        .read_to_end(&mut content)
        .map_err(|e| {
            Failure::usage(format!(
                "the agent library embedded in heapdiff is damaged: {}",
                plain(&e)
            ))
        })?;
    Ok(content)
}

/// Writes the library where it can be loaded from, unless it is there already.
fn unpack(content: &[u8]) -> Result<PathBuf> {
    let own_temporary = env::temp_dir().join(format!("heapdiff-{}", geteuid().as_raw()));
    let known = index::cache().into_iter().chain([own_temporary]);
    for folder in known {
        let put = prepare(&folder).and_then(|()| put(&folder, content));
        if let Ok(path) = put.and_then(fs::canonicalize) {
            return Ok(path);
        }
    }
    // Somebody else took the name.
    tempfile::Builder::new()
        .prefix("heapdiff-")
        .tempdir()
        .and_then(|folder| put(&folder.keep(), content))
        .and_then(fs::canonicalize)
        .map_err(|e| {
            let folder = env::temp_dir();
            Failure::usage(format!(
                "cannot write the agent library to {}: {}",
                folder.display(),
                plain(&e)
            ))
            .with_hint("set XDG_CACHE_HOME to a writable folder, or give the path of the library with --agent")
        })
}

/// The name of a copy: of its content, for a library that is loaded twice under one name is one, and knows that it
/// is at work already.
fn name_of(content: &[u8]) -> String {
    format!("lib{MARK}-{:016x}.so", XxHash3_64::oneshot(content))
}

/// Makes the folder, or makes sure that nobody else can put anything in it or another in its place.
fn prepare(folder: &Path) -> io::Result<()> {
    let parent = folder.parent().unwrap_or(Path::new("/"));
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(parent)?;
    check(&fs::metadata(parent)?, true)?;
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
        made => return made,
    }
    check(&fs::symlink_metadata(folder)?, false)
}

/// Whether a folder can be changed by this user alone. What lies above may also be root's, or shared as `/tmp` is, where
/// nobody can rename what is another's.
fn check(folder: &Metadata, is_above: bool) -> io::Result<()> {
    const STICKY: u32 = 0o1000;
    let us = geteuid().as_raw();
    let is_owner = folder.uid() == us || is_above && folder.uid() == 0;
    let is_closed = folder.mode() & 0o022 == 0 || is_above && folder.mode() & STICKY != 0;
    if folder.is_dir() && is_owner && is_closed {
        Ok(())
    } else {
        Err(ErrorKind::PermissionDenied.into())
    }
}

/// Puts the library into a folder of ours, whole or not at all.
fn put(folder: &Path, content: &[u8]) -> io::Result<PathBuf> {
    let path = folder.join(name_of(content));
    if holds(&path, content) {
        return Ok(path);
    }
    write_whole(folder, &path, 0o644, content)?;
    Ok(path)
}

/// Writes a file beside its place and gives it its name when it is whole.
fn write_whole(folder: &Path, path: &Path, mode: u32, content: &[u8]) -> io::Result<()> {
    let (unfinished, mut file) = Unfinished::new(|| {
        let file = tempfile::Builder::new()
            .prefix(".heapdiff-")
            .permissions(Permissions::from_mode(mode))
            .tempfile_in(folder)?;
        Ok((file.path().to_owned(), file))
    })?;
    file.write_all(content)?;
    unfinished.finish(|_| file.persist(path).map_err(|e| e.error))?;
    Ok(())
}

/// Whether the file is ours and nothing else than this.
fn holds(path: &Path, content: &[u8]) -> bool {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let open = || -> io::Result<bool> {
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(flags)
            .open(path)?;
        let meta = file.metadata()?;
        let is_ours =
            meta.is_file() && meta.uid() == geteuid().as_raw() && meta.mode() & 0o022 == 0;
        let mut found = Vec::new();
        file.take(content.len() as u64 + 1)
            .read_to_end(&mut found)?;
        Ok(is_ours && found == content)
    };
    open().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().mode() & 0o777
    }

    fn chmod(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_library_is_written_once_and_again_when_it_was_changed() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("cache/heapdiff");
        prepare(&folder).unwrap();
        assert_eq!(mode(&folder), 0o700);
        let path = put(&folder, b"library").unwrap();
        assert!(path.to_str().unwrap().contains(MARK));
        assert_eq!(mode(&path) & 0o022, 0);
        let written = fs::metadata(&path).unwrap().ino();
        assert_eq!(put(&folder, b"library").unwrap(), path);
        assert_eq!(fs::metadata(&path).unwrap().ino(), written, "as it was");

        for change in ["other", "library and more", ""] {
            fs::write(&path, change).unwrap();
            assert_eq!(put(&folder, b"library").unwrap(), path);
            assert_eq!(fs::read(&path).unwrap(), b"library");
        }
        // Others could write it: it is replaced, not trusted.
        chmod(&path, 0o666);
        let written = fs::metadata(&path).unwrap().ino();
        put(&folder, b"library").unwrap();
        assert_ne!(fs::metadata(&path).unwrap().ino(), written);
        // A link is replaced, and what it leads to is left alone.
        let elsewhere = home.path().join("elsewhere");
        fs::write(&elsewhere, "library").unwrap();
        fs::remove_file(&path).unwrap();
        symlink(&elsewhere, &path).unwrap();
        put(&folder, b"library").unwrap();
        assert!(fs::symlink_metadata(&path).unwrap().is_file());
        assert_ne!(put(&folder, b"other").unwrap(), path);
        assert_eq!(
            fs::read_dir(&folder).unwrap().count(),
            2,
            "nothing is left over"
        );
    }

    #[test]
    fn a_library_in_memory_is_in_no_folder() {
        let path = in_memory(b"library").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"library");
        let name = fs::read_link(&path).unwrap();
        assert!(name.starts_with(format!("/memfd:{LIBRARY} (deleted)")));
    }

    #[test]
    fn only_folders_of_our_own_are_used() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("heapdiff");
        prepare(&folder).unwrap();
        prepare(&folder).unwrap();
        chmod(&folder, 0o770);
        assert!(prepare(&folder).is_err(), "a group can write it");
        chmod(&folder, 0o755);
        prepare(&folder).unwrap();
        // Who can write above can put another in its place, unless names are protected there.
        chmod(home.path(), 0o777);
        assert!(prepare(&folder).is_err());
        chmod(home.path(), 0o1777);
        prepare(&folder).unwrap();
        let link = home.path().join("link");
        symlink(&folder, &link).unwrap();
        assert!(prepare(&link).is_err(), "a link");
        let file = home.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(prepare(&file).is_err(), "a file");
    }

    #[test]
    fn a_library_beside_the_program_is_found() {
        let home = tempfile::tempdir().unwrap();
        let program = home.path().join("bin/heapdiff");
        for below in ["bin", "lib/heapdiff"] {
            fs::create_dir_all(home.path().join(below)).unwrap();
        }
        assert_eq!(beside(&program), None);
        for below in ["lib/heapdiff", "lib", "bin"] {
            let path = home.path().join(below).join(LIBRARY);
            fs::write(&path, "").unwrap();
            assert_eq!(beside(&program), Some(fs::canonicalize(path).unwrap()));
        }
    }

    #[test]
    fn what_is_carried_is_compressed() {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(b"library").unwrap();
        let carried = encoder.finish().unwrap();
        assert_eq!(decompressed(&carried).unwrap(), b"library");
        assert!(decompressed(&carried[..carried.len() - 1]).is_err());
    }
}
