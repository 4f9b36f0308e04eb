//! Finds the agent library: at the path that the user gives, beside this program, or embedded in it.
//!
//! An installed or packaged program embeds the library, so program and library always have the same version, wherever
//! the program is copied. A released program embeds two libraries, one for glibc and one for musl: a JVM can load only
//! the library for its own C library.
//!
//! A JVM can load a library only from a file. So the library is written to the user's cache folder, or to a private
//! temporary folder. Such a file is used only if it has exactly the embedded bytes and no other user can change it.

use std::env;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::IntoRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{MemfdFlags, OFlags, memfd_create};
use rustix::process::geteuid;
use twox_hash::XxHash3_64;

use super::c_library::CLibrary;
use crate::failure::{Failure, Result, system_message};
use crate::index;
use crate::interrupt::Unfinished;
use crate::job::folder_of;
use crate::overwrite;
use crate::write::failed;

const LIBRARY: &str = "libheapdiff_agent.so";
/// Part of the file name of the library and of its copies.
pub(super) const MARK: &str = "heapdiff_agent";

/// The libraries for glibc and musl that are embedded in this program, compressed. A library that this build does not
/// embed is `None`.
#[cfg(carries_glibc_agent)]
const GLIBC: Option<&[u8]> = Some(include_bytes!(env!("HEAPDIFF_CARRIED_AGENT_GLIBC")));
#[cfg(not(carries_glibc_agent))]
const GLIBC: Option<&[u8]> = None;
#[cfg(carries_musl_agent)]
const MUSL: Option<&[u8]> = Some(include_bytes!(env!("HEAPDIFF_CARRIED_AGENT_MUSL")));
#[cfg(not(carries_musl_agent))]
const MUSL: Option<&[u8]> = None;

const fn carried(c_library: CLibrary) -> Option<&'static [u8]> {
    match c_library {
        CLibrary::Glibc => GLIBC,
        CLibrary::Musl => MUSL,
    }
}

/// The source of the agent library that a command uses.
#[derive(Clone, Debug)]
pub(super) struct Library {
    /// The library that the user gave; `None` to use a library of this program.
    given: Option<PathBuf>,
    program: PathBuf,
    in_memory: bool,
}

impl Library {
    /// Finds the agent library. Searches in this order: the value of `--agent`, the environment variable
    /// `HEAPDIFF_AGENT`, the folder of this program, and the program itself.
    ///
    /// If the program embeds a library, a different library beside the program is from another version and is ignored.
    pub(super) fn find(told: Option<&Path>) -> Result<Self> {
        let program = env::current_exe()
            .and_then(fs::canonicalize)
            .unwrap_or_default();
        let found = Self {
            given: given(told)?,
            program,
            in_memory: false,
        };
        let has_any = found.given.is_some() || GLIBC.or(MUSL).is_some();
        if has_any || installed_library(&found.program).is_some() {
            return Ok(found);
        }
        let program = found.program.display();
        Err(Failure::usage(format!("{LIBRARY} is not next to {program}")).with_hint(
            "download heapdiff with the agent from https://github.com/heapdiff/heapdiff/releases, run `cargo xtask install` in its sources, or give the path of the library with --agent or HEAPDIFF_AGENT",
        ))
    }

    /// Like [`Self::find`], but writes no file: an embedded library is copied to memory.
    pub(super) fn without_files(told: Option<&Path>) -> Result<Self> {
        let found = Self::find(told)?;
        Ok(Self {
            in_memory: true,
            ..found
        })
    }

    /// Returns the path of an agent library for the given C library. Returns `None` if heapdiff has no such library. If
    /// an embedded library is copied to memory, the path is valid only in this process.
    pub(super) fn path_for(&self, wanted: CLibrary) -> Result<Option<PathBuf>> {
        let other = Some(wanted.other());
        let fits = |path: &PathBuf| {
            fs::read(path).is_ok_and(|content| CLibrary::of_library(&content) != other)
        };
        if let Some(given) = &self.given {
            return Ok(Some(given.clone()).filter(fits));
        }
        let beside = installed_library(&self.program);
        let Some(packed) = carried(wanted) else {
            return Ok(beside.filter(fits));
        };
        let content = decompressed(packed)?;
        match beside.filter(|path| fs::read(path).is_ok_and(|found| found == content)) {
            Some(path) => Ok(Some(path)),
            None if self.in_memory => in_memory(&content).map(Some).map_err(|e| {
                let why = system_message(&e);
                Failure::usage(format!("cannot copy the agent library to memory: {why}"))
            }),
            None => unpack(&content).map(Some),
        }
    }

    /// Returns the path of the library that `heapdiff agent` prints.
    pub(super) fn path(&self, wanted: Option<CLibrary>) -> Result<PathBuf> {
        if let (Some(given), None) = (&self.given, wanted) {
            return Ok(given.clone());
        }
        let wanted = wanted.unwrap_or_else(CLibrary::of_machine);
        self.path_for(wanted)?
            .ok_or_else(|| Failure::usage(self.missing(wanted)))
    }

    /// Returns the message that there is no library for the given C library. The message names the build of heapdiff
    /// that has one.
    pub(super) fn missing(&self, wanted: CLibrary) -> String {
        let other = wanted.other();
        match &self.given {
            Some(given) => format!(
                "{} was built for {other}; leave out --agent and HEAPDIFF_AGENT, or use the library for {wanted}",
                given.display()
            ),
            None => format!(
                "this heapdiff has only the agent for {other}; a heapdiff from `cargo xtask dist` also has the agent for {wanted}"
            ),
        }
    }
}

/// Returns the library that the user gave, with `--agent` or in the environment.
fn given(told: Option<&Path>) -> Result<Option<PathBuf>> {
    let from_environment = env::var_os("HEAPDIFF_AGENT")
        .filter(|value| !value.is_empty())
        .map(PathBuf::from);
    let (path, by) = match (told, from_environment) {
        (Some(told), _) => (told.to_owned(), "--agent"),
        (None, Some(path)) => (path, "HEAPDIFF_AGENT"),
        (None, None) => return Ok(None),
    };
    fs::canonicalize(&path)
        .and_then(|path| File::open(&path).map(|_| Some(path)))
        .map_err(|e| Failure::usage(format!("{by}: {}: {}", path.display(), system_message(&e))))
}

fn in_memory(content: &[u8]) -> io::Result<PathBuf> {
    let mut file = File::from(memfd_create(LIBRARY, MemfdFlags::CLOEXEC)?);
    file.write_all(content)?;
    Ok(format!("/proc/self/fd/{}", file.into_raw_fd()).into())
}

/// Returns the library in the program's folder, or in a folder where packages install it.
fn installed_library(program: &Path) -> Option<PathBuf> {
    let folder = program.parent()?;
    ["", "../lib", "../lib/heapdiff"]
        .iter()
        .find_map(|below| fs::canonicalize(folder.join(below).join(LIBRARY)).ok())
}

/// Copies the library to a file, or into a folder. Returns the path of the copy.
pub(crate) fn copy_to(library: &Path, output: &Path) -> Result<PathBuf> {
    let file = if output.is_dir() {
        output.join(LIBRARY)
    } else {
        output.to_owned()
    };
    overwrite::check("-o", &file)?;
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
                system_message(&e)
            ))
        })?;
    Ok(content)
}

/// Writes the embedded library to a file from which the JVM can load it, unless that file exists already.
fn unpack(content: &[u8]) -> Result<PathBuf> {
    let own_temporary = env::temp_dir().join(format!("heapdiff-{}", geteuid().as_raw()));
    let known = index::cache().into_iter().chain([own_temporary]);
    for folder in known {
        let put = prepare(&folder).and_then(|()| install_in(&folder, content));
        if let Ok(path) = put.and_then(fs::canonicalize) {
            return Ok(path);
        }
    }
    // The usual folders cannot be used, for example because another user owns them. So use a folder with a random name.
    tempfile::Builder::new()
        .prefix("heapdiff-")
        .tempdir()
        .and_then(|folder| install_in(&folder.keep(), content))
        .and_then(fs::canonicalize)
        .map_err(|e| {
            let folder = env::temp_dir();
            Failure::usage(format!(
                "cannot write the agent library to {}: {}",
                folder.display(),
                system_message(&e)
            ))
            .with_hint("set XDG_CACHE_HOME to a writable folder, or give the path of the library with --agent")
        })
}

/// Returns the file name of a copy, which contains a hash of the content. The dynamic linker loads a library only once
/// per path. So if the same library is attached twice, the second attach reaches the same agent, which detects that it
/// is already sampling.
fn name_of(content: &[u8]) -> String {
    format!("lib{MARK}-{:016x}.so", XxHash3_64::oneshot(content))
}

/// Creates the folder, or checks that no other user can put a file in it or replace it.
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

/// Checks that only this user can change a folder. The rules for a parent folder (`is_above`) are weaker:
///
/// - The folder may also belong to root.
/// - Other users may write to the folder if it has the sticky bit, like `/tmp`. In such a folder, users cannot rename
///   files that they do not own.
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

/// Writes the library to a folder that belongs to us. The file appears only when it is complete.
fn install_in(folder: &Path, content: &[u8]) -> io::Result<PathBuf> {
    let path = folder.join(name_of(content));
    if holds(&path, content) {
        return Ok(path);
    }
    write_whole(folder, &path, 0o644, content)?;
    Ok(path)
}

/// Writes a temporary file in the folder, and renames it when it is complete.
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

/// True if the file belongs to us and has this content.
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
    fn a_library_is_rewritten_only_after_a_change() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("cache/heapdiff");
        prepare(&folder).unwrap();
        assert_eq!(mode(&folder), 0o700);
        let path = install_in(&folder, b"library").unwrap();
        assert!(path.to_str().unwrap().contains(MARK));
        assert_eq!(mode(&path) & 0o022, 0);
        let written = fs::metadata(&path).unwrap().ino();
        assert_eq!(install_in(&folder, b"library").unwrap(), path);
        assert_eq!(fs::metadata(&path).unwrap().ino(), written, "as it was");

        for change in ["other", "library and more", ""] {
            fs::write(&path, change).unwrap();
            assert_eq!(install_in(&folder, b"library").unwrap(), path);
            assert_eq!(fs::read(&path).unwrap(), b"library");
        }
        // Other users could write to the file, so it is replaced and not used.
        chmod(&path, 0o666);
        let written = fs::metadata(&path).unwrap().ino();
        install_in(&folder, b"library").unwrap();
        assert_ne!(fs::metadata(&path).unwrap().ino(), written);
        // A symbolic link is replaced, and the file that it points to stays unchanged.
        let elsewhere = home.path().join("elsewhere");
        fs::write(&elsewhere, "library").unwrap();
        fs::remove_file(&path).unwrap();
        symlink(&elsewhere, &path).unwrap();
        install_in(&folder, b"library").unwrap();
        assert!(fs::symlink_metadata(&path).unwrap().is_file());
        assert_ne!(install_in(&folder, b"other").unwrap(), path);
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
    fn only_folders_of_the_current_user_are_used() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("heapdiff");
        prepare(&folder).unwrap();
        prepare(&folder).unwrap();
        chmod(&folder, 0o770);
        assert!(prepare(&folder).is_err(), "a group can write it");
        chmod(&folder, 0o755);
        prepare(&folder).unwrap();
        // A user who can write to the parent folder can replace this folder, unless the sticky bit protects names.
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
        assert_eq!(installed_library(&program), None);
        for below in ["lib/heapdiff", "lib", "bin"] {
            let path = home.path().join(below).join(LIBRARY);
            fs::write(&path, "").unwrap();
            assert_eq!(
                installed_library(&program),
                Some(fs::canonicalize(path).unwrap())
            );
        }
    }

    #[test]
    fn the_embedded_library_is_decompressed() {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(b"library").unwrap();
        let carried = encoder.finish().unwrap();
        assert_eq!(decompressed(&carried).unwrap(), b"library");
        assert!(decompressed(&carried[..carried.len() - 1]).is_err());
    }
}
