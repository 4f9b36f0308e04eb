//! The index and the cached summary of a dump: their file names, and when they are read, written and deleted.
//!
//! The files are `DUMP.hdx` and `DUMP.hds` beside the dump, or in the user's cache folder if the dump's folder is not
//! writable. A command about one dump writes its index after it has answered. A comparison only reads indexes, and
//! writes the summaries of its dumps.

pub(crate) mod summary;

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use heapdiff_units::Size;
use hprof::index::IndexFault;
use hprof::{Options, Progress, Refs, Snapshot};
use twox_hash::XxHash3_64;

use crate::failure::{Exit, Failure, Result, system_message};
use crate::interrupt::{UNFINISHED, Unfinished};
use crate::job::Setup;
use crate::leftovers::is_leftover;
use crate::overwrite;
use crate::progress::{Meter, Wanted};
use crate::write;

const EXTENSION: &str = "hdx";
/// Extensions of the files that heapdiff writes beside a dump.
const EXTENSIONS: [&str; 2] = [EXTENSION, summary::EXTENSION];
/// Minimum size in bytes of a dump that gets an index. A smaller dump can be read about as fast as an index.
const SMALLEST: u64 = 16 << 20;

/// Opens the index of a dump, from the first of its possible paths that has a usable index. For each unusable index,
/// prints why it is not used.
pub(crate) fn read<T>(
    setup: &Setup,
    dump: &Path,
    meter: &Meter,
    open: impl Fn(&Path, &Path, &Options) -> Result<T, IndexFault>,
) -> Option<T> {
    let open = |place: &Path| {
        meter.phase("reading the index", 0);
        open(dump, place, &setup.analysis)
    };
    read_from(setup, dump, EXTENSION, open)
}

/// Opens a file that belongs to a dump, such as its index, from the first of its possible paths that has a usable file.
/// For each unusable file, prints why it is not used.
fn read_from<T>(
    setup: &Setup,
    dump: &Path,
    extension: &str,
    open: impl Fn(&Path) -> Result<T, IndexFault>,
) -> Option<T> {
    if !setup.index {
        return None;
    }
    let dump_meta = fs::metadata(dump).ok()?;
    for place in places(dump, setup.analysis.refs, extension) {
        // Skip special files, such as pipes, because reading them may never end. Skip files of other users, because
        // they may have any content.
        let Ok(meta) = fs::symlink_metadata(&place) else {
            continue;
        };
        let unusable = if !meta.is_file() {
            Some("is not used, because it is not a regular file")
        } else if !is_trusted(&meta, &dump_meta) {
            Some("is not used, because it belongs neither to you nor to the owner of the dump")
        } else {
            None
        };
        if let Some(what) = unusable {
            note(setup.progress, true, &place, what);
            continue;
        }
        match open(&place) {
            Ok(opened) => return Some(opened),
            Err(IndexFault::NoFile) => return None,
            Err(fault) => {
                let what = format!("is not used ({fault}); heapdiff reads the dump instead");
                note(setup.progress, !fault.is_damage(), &place, &what);
            }
        }
    }
    None
}

/// Prints that an index is damaged. Used if the damage was detected only while the index was in use.
pub(crate) fn note_damage(snapshot: &Snapshot, setup: &Setup) {
    let places = places(snapshot.source().path(), snapshot.refs(), EXTENSION);
    let used = places.into_iter().find(|place| is_index_file(place));
    if let Some(place) = used {
        let what = "is not used (damaged: the checksum of a section is wrong); heapdiff reads the dump instead";
        note(setup.progress, false, &place, what);
    }
}

/// Prints a message to standard error. If the message is about a usual event, it is printed only with `--verbose`.
fn note(wanted: Wanted, usual: bool, index: &Path, what: &str) {
    if wanted.verbose || !(usual || wanted.quiet) {
        // Ignore errors: if standard error is closed, there is no other place for the message.
        let _ = writeln!(io::stderr(), "heapdiff: {} {what}", index.display());
    }
}

/// Returns the possible paths of an index or summary. The path beside the dump comes first. Links are resolved, so all
/// links to a dump share its index.
fn places(dump: &Path, refs: Refs, extension: &str) -> Vec<PathBuf> {
    // On Windows, the function of the standard library returns an unusual path, which begins with `\\?\`.
    #[cfg(windows)]
    use dunce::canonicalize;
    #[cfg(not(windows))]
    use fs::canonicalize;
    let Ok(dump) = canonicalize(dump) else {
        return Vec::new();
    };
    let beside = cache_file_name(dump.clone().into_os_string(), refs, extension);
    let cached = cache().map(|cache| {
        let mut name = dump.file_name().unwrap_or(OsStr::new("dump")).to_owned();
        let path = XxHash3_64::oneshot(dump.as_os_str().as_encoded_bytes());
        name.push(format!("-{path:016x}"));
        cache.join(cache_file_name(name, refs, extension))
    });
    std::iter::once(beside.into()).chain(cached).collect()
}

/// Returns the name of an index or summary. The name depends on `refs`, the references that retain objects, because
/// each choice of `refs` needs a separate file.
fn cache_file_name(mut dump: OsString, refs: Refs, extension: &str) -> OsString {
    dump.push(match refs {
        Refs::Soft => ".",
        Refs::Strong => ".strong.",
        Refs::All => ".all.",
    });
    dump.push(extension);
    dump
}

/// Returns the user's cache folder. It contains files that can be created again: indexes and summaries that cannot be
/// written beside their dumps, and the agent library.
pub(crate) fn cache() -> Option<PathBuf> {
    // The environment variable that contains the user's folder, and the cache folder in that folder.
    let (home, below) = if cfg!(windows) {
        ("LOCALAPPDATA", "")
    } else if cfg!(target_os = "macos") {
        ("HOME", "Library/Caches")
    } else {
        ("HOME", ".cache")
    };
    let set = |name| {
        let path = std::env::var_os(name).map(PathBuf::from);
        path.filter(|path| path.is_absolute())
    };
    let cache = set("XDG_CACHE_HOME").or_else(|| Some(set(home)?.join(below)));
    Some(cache?.join("heapdiff"))
}

/// True if a file belongs to this user, to the owner of the dump, or to root.
fn is_trusted(index: &Metadata, dump: &Metadata) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        #[cfg(target_os = "linux")]
        let own = rustix::process::geteuid().as_raw();
        #[cfg(not(target_os = "linux"))]
        let own = dump.uid();
        [0, own, dump.uid()].contains(&index.uid())
    }
    #[cfg(not(unix))]
    {
        let _ = (index, dump);
        true
    }
}

/// Snapshots whose indexes are not written yet.
static PENDING: Mutex<Vec<(Arc<Snapshot>, Wanted)>> = Mutex::new(Vec::new());

/// Schedules an index to be written after the report.
pub(crate) fn write_later(snapshot: Arc<Snapshot>, setup: &Setup) {
    if setup.index
        && snapshot.source().file_bytes() >= SMALLEST
        && hprof::index::can_be_written(&snapshot)
    {
        let mut pending = PENDING.lock().unwrap_or_else(PoisonError::into_inner);
        pending.push((snapshot, setup.progress));
    }
}

/// Writes the indexes and summaries that were scheduled to be written after the report (see [`write_later`]). If this
/// fails, the run still succeeds.
pub(crate) fn write_pending() {
    summary::write_pending();
    let pending = std::mem::take(&mut *PENDING.lock().unwrap_or_else(PoisonError::into_inner));
    for (snapshot, wanted) in pending {
        let dump = snapshot.source().path();
        let meter = Meter::new(wanted, dump);
        meter.phase("writing the index", hprof::index::max_bytes(&snapshot));
        let refs = snapshot.refs();
        write_to(&places(dump, refs, EXTENSION), wanted, |place| {
            let is_current = || hprof::index::can_be_written(&snapshot);
            write(
                dump,
                place,
                hprof::index::max_bytes(&snapshot),
                is_current,
                |file| hprof::index::write(&snapshot, file),
            )
        });
    }
}

/// Drops the scheduled indexes and summaries without writing them.
pub(crate) fn drop_pending() {
    summary::drop_pending();
    let pending = std::mem::take(&mut *PENDING.lock().unwrap_or_else(PoisonError::into_inner));
    drop(pending);
}

/// Writes a file, such as an index, to the first of the given paths that is writable.
fn write_to(places: &[PathBuf], wanted: Wanted, write: impl Fn(&Path) -> io::Result<()>) {
    for place in places {
        match write(place) {
            Ok(()) => break,
            Err(e) => {
                let what = format!("was not written: {}", system_message(&e));
                note(wanted, true, place, &what);
            }
        }
    }
}

/// Writes a temporary file of at most `bytes` bytes beside the path `place`, and renames it to `place` when it is
/// complete. If the dump has changed meanwhile, the file is discarded.
fn write(
    dump: &Path,
    place: &Path,
    bytes: u64,
    is_current: impl FnOnce() -> bool,
    content: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    if let Some(refusal) = overwrite::refusal_of_index(place) {
        return Err(refusal.into());
    }
    let folder = place.parent().unwrap_or(Path::new("."));
    if cache().as_deref() == Some(folder) {
        fs::create_dir_all(folder)?;
    }
    let dump = fs::metadata(dump)?;
    let (unfinished, mut file) = Unfinished::new(|| {
        let file = tempfile::Builder::new()
            .prefix(UNFINISHED)
            .suffix(&format!(".{}", extension_of(place)))
            .tempfile_in(folder)?;
        // The lock shows other runs that the file is being written. On file systems without locks, the recent
        // modification time of the file shows them this.
        let _ = file.as_file().try_lock();
        Ok((file.path().to_path_buf(), file))
    })?;
    if !hprof::index::has_room(file.as_file(), bytes) {
        return Err(io::Error::new(
            io::ErrorKind::StorageFull,
            "not enough space on the disk",
        ));
    }
    content(file.as_file_mut())?;
    // Users may read the index if and only if they may read the dump.
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = dump.permissions().mode() & 0o666 | 0o600;
        file.as_file()
            .set_permissions(fs::Permissions::from_mode(mode))?;
    }
    let _ = dump;
    if !is_current() {
        return Err(io::Error::other("the dump changed while heapdiff read it"));
    }
    unfinished.finish(|_| file.persist(place).map_err(|e| e.error))?;
    Ok(())
}

fn extension_of(path: &Path) -> &str {
    path.extension().and_then(OsStr::to_str).unwrap_or_default()
}

/// Deletes the indexes and summaries of the given dumps, and all indexes and summaries in the given folders. Without
/// arguments, deletes those in the cache folder.
pub(crate) fn clean(paths: &[PathBuf]) -> Result<Exit> {
    let mut removed = (0_u64, 0_u64);
    let mut found = Vec::new();
    for path in paths {
        if path.is_dir() {
            found.extend(in_folder(path)?);
        } else {
            let all = [Refs::Soft, Refs::Strong, Refs::All].into_iter();
            let of_dump: Vec<PathBuf> = all
                .flat_map(|refs| candidate_paths(path, refs))
                .filter(|place| is_index_file(place))
                .collect();
            if of_dump.is_empty() && !path.exists() {
                let message = format!("{}: no such file or folder", path.display());
                return Err(Failure::usage(message));
            }
            found.extend(of_dump);
        }
    }
    if paths.is_empty()
        && let Some(cache) = cache().filter(|cache| cache.is_dir())
    {
        found.extend(in_folder(&cache)?);
    }
    found.sort();
    found.dedup();
    let mut text = String::new();
    for index in found {
        let bytes = fs::symlink_metadata(&index).map_or(0, |meta| meta.len());
        fs::remove_file(&index)
            .map_err(|e| Failure::usage(format!("{}: {}", index.display(), system_message(&e))))?;
        removed = (removed.0 + 1, removed.1 + bytes);
        text += &format!("removed {}  {}\n", index.display(), Size(bytes));
    }
    text += &match removed {
        (0, _) => "no index found\n".to_owned(),
        (1, _) => String::new(),
        (files, bytes) => format!("removed {files} files, {} in total\n", Size(bytes)),
    };
    write::print(&text)?;
    Ok(Exit::Done)
}

/// Like [`places`], returns the possible paths of an index or summary. Also accepts a dump that was deleted, and the
/// path of an index or summary itself.
fn candidate_paths(path: &Path, refs: Refs) -> Vec<PathBuf> {
    let places: Vec<PathBuf> = EXTENSIONS
        .iter()
        .flat_map(|extension| places(path, refs, extension))
        .collect();
    if EXTENSIONS.contains(&extension_of(path)) {
        return vec![path.to_path_buf()];
    }
    if places.is_empty() {
        EXTENSIONS
            .map(|extension| cache_file_name(path.as_os_str().to_owned(), refs, extension).into())
            .to_vec()
    } else {
        places
    }
}

/// Returns the indexes in a folder, and temporary files of indexes that killed runs left there.
fn in_folder(folder: &Path) -> Result<Vec<PathBuf>> {
    let failed =
        |e: io::Error| Failure::usage(format!("{}: {}", folder.display(), system_message(&e)));
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let indexed = EXTENSIONS.contains(&extension_of(&path)) && is_index_file(&path);
        if indexed || is_leftover(&path, &EXTENSIONS) {
            found.push(path);
        }
    }
    Ok(found)
}

/// True if a file starts like an index.
fn is_index_file(path: &Path) -> bool {
    let mut first = [0; 64];
    fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file())
        && fs::File::open(path)
            .and_then(|mut file| file.read(&mut first))
            .is_ok_and(|read| hprof::index::is_index(&first[..read]))
}
