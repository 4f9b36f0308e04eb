//! Mapped files that other processes may change: detects changes, and registers where each file is in memory.

use std::fs::{File, Metadata};
use std::io;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use memmap2::Mmap;

use crate::bytes::mem;
use crate::bytes::stamp::modified;
use crate::error::Error;

/// A file that is mapped for reading and registered in the process.
///
/// If the file changes, the data that is read is garbled. If it is truncated, reading the missing part ends the process
/// with SIGBUS, unless [`set_read_error_handler`](crate::bytes::set_read_error_handler) was called.
#[derive(Debug)]
pub(crate) struct MappedFile {
    map: Mmap,
    place: &'static Place,
}

impl MappedFile {
    pub(crate) fn new(file: File, path: &Path) -> io::Result<Self> {
        let entry = Entry::from_metadata(&file.metadata()?);
        Self::watched(file, path, Some(entry))
    }

    /// Maps a temporary file without a name, which no other process can change. `path` is the path that errors name.
    pub(crate) fn map_temporary(file: File, path: &Path) -> io::Result<Self> {
        Self::watched(file, path, None)
    }

    fn watched(file: File, path: &Path, entry: Option<Entry>) -> io::Result<Self> {
        let map = mem::map_file(&file)?;
        let watched = Watched {
            path: path.to_path_buf(),
            file,
            entry,
        };
        let place = Place::take(&map, watched);
        Ok(Self { map, place })
    }

    pub(crate) fn map(&self) -> &Mmap {
        &self.map
    }

    /// Returns an error if the file has changed since it was mapped.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match self.place.change() {
            Some(change) => Err(change),
            None => Ok(()),
        }
    }
}

impl Deref for MappedFile {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.map
    }
}

impl Drop for MappedFile {
    fn drop(&mut self) {
        if let Some(change) = self.place.release() {
            CHANGED
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .get_or_insert(change);
        }
    }
}

/// The first change that was found when a file was unmapped.
static CHANGED: Mutex<Option<Error>> = Mutex::new(None);

/// Returns an error for a file that changed while this process had it mapped: a file that is still mapped, or one that
/// was unmapped since the last call.
///
/// Data that was read from the file may be garbled, and so may all results computed from it.
/// [`Snapshot::open`](crate::Snapshot::open) and similar functions return an error if the file changed before they
/// return. A program that reads more (contents of objects, names) should call this function after its last read, before
/// it uses the results.
#[must_use]
pub fn changed_file() -> Option<Error> {
    let before = CHANGED
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take();
    before.or_else(|| places().find_map(Place::change))
}

/// The size and the modification time of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    bytes: u64,
    modified: Option<(u64, u32)>,
}

impl Entry {
    fn from_metadata(meta: &Metadata) -> Self {
        Self {
            bytes: meta.len(),
            modified: modified(meta),
        }
    }
}

/// A mapped file.
#[derive(Debug)]
struct Watched {
    path: PathBuf,
    file: File,
    /// Size and time when the file was mapped; `None` for a file that no other process can change.
    entry: Option<Entry>,
}

/// The address range of a mapped file. A `Place` is never freed. When its file is unmapped, the `Place` is reused for
/// another file. So a signal handler can iterate over all `Place` values at any time, without a lock.
#[derive(Debug)]
pub(crate) struct Place {
    /// The start of the address range of the mapped file; zero if no file uses this `Place`.
    start: AtomicUsize,
    end: AtomicUsize,
    /// True if reading the memory failed.
    lost: AtomicBool,
    watched: Mutex<Option<Watched>>,
    next: OnceLock<&'static Place>,
}

static FIRST: OnceLock<&'static Place> = OnceLock::new();

fn places() -> impl Iterator<Item = &'static Place> {
    std::iter::successors(FIRST.get().copied(), |place| place.next.get().copied())
}

impl Place {
    fn take(map: &Mmap, watched: Watched) -> &'static Self {
        let mut link = &FIRST;
        let place = loop {
            let place = *link.get_or_init(|| Box::leak(Box::new(Self::empty())));
            let mut free = place.watched.lock().unwrap_or_else(PoisonError::into_inner);
            if free.is_none() {
                *free = Some(watched);
                break place;
            }
            link = &place.next;
        };
        let start = map.as_ptr().addr();
        place.lost.store(false, Ordering::Relaxed);
        place.end.store(start + map.len(), Ordering::Release);
        place.start.store(start, Ordering::Release);
        place
    }

    const fn empty() -> Self {
        Self {
            start: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
            lost: AtomicBool::new(false),
            watched: Mutex::new(None),
            next: OnceLock::new(),
        }
    }

    fn release(&self) -> Option<Error> {
        let change = self.change();
        self.start.store(0, Ordering::Release);
        *self.watched.lock().unwrap_or_else(PoisonError::into_inner) = None;
        change
    }

    /// Records that memory of a mapped file could not be read. Returns false if no file is mapped at the address.
    ///
    /// For signal handlers: takes no lock and allocates no memory.
    #[cfg(unix)]
    pub(crate) fn record_lost(address: usize) -> bool {
        for place in places() {
            let start = place.start.load(Ordering::Acquire);
            let end = place.end.load(Ordering::Acquire);
            let within = start != 0 && (start..end).contains(&address);
            // If this [`Place`] was released and reused after `start` was read, `end` may belong to another file. So
            // check that `start` is still the same.
            if within && place.start.load(Ordering::Acquire) == start {
                place.lost.store(true, Ordering::Release);
                return true;
            }
        }
        false
    }

    /// Returns an error for a mapped file that could not be read, with the reason. `None` if there is no such file.
    #[cfg(unix)]
    pub(crate) fn take_read_error() -> Option<Error> {
        let place = places().find(|place| place.lost.load(Ordering::Acquire))?;
        let change = place.change();
        change.or_else(|| {
            let watched = place.watched.lock().unwrap_or_else(PoisonError::into_inner);
            let path = watched.as_ref()?.path.clone();
            let source =
                io::Error::other("the disk reported an error while heapdiff read the file");
            Some(Error::Io { path, source })
        })
    }

    /// Returns an error if the file has changed since it was mapped.
    fn change(&self) -> Option<Error> {
        let watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        let watched = watched.as_ref()?;
        let before = watched.entry?;
        // If the size and time cannot be read any more, the file counts as unchanged.
        let now = Entry::from_metadata(&watched.file.metadata().ok()?);
        (now != before).then(|| Error::Changed {
            path: watched.path.clone(),
            before: before.bytes,
            now: now.bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_change_is_detected_while_mapped_and_after() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&[1; 5000]).unwrap();
        let open = || MappedFile::new(File::open(file.path()).unwrap(), file.path()).unwrap();
        let map = open();
        assert!(map.check().is_ok());
        let again = open();
        file.as_file().set_len(6000).unwrap();
        let text = map.check().unwrap_err().to_string();
        assert!(text.contains("from 5000 to 6000 bytes"), "{text}");
        assert!(again.check().is_err());
        assert!(open().check().is_ok());
    }

    #[cfg(unix)]
    #[test]
    fn an_address_is_lost_only_in_a_mapped_file() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&[1; 5000]).unwrap();
        let map = MappedFile::map_temporary(File::open(file.path()).unwrap(), file.path()).unwrap();
        let at = map.as_ptr().addr();
        let end = at + map.len();
        assert!(!Place::record_lost(0) && !Place::record_lost(end + (1 << 20)));
        assert!(Place::record_lost(at) && Place::record_lost(end - 1));
        assert!(map.place.lost.load(Ordering::Relaxed));
        let place = map.place;
        drop(map);
        // Another test may already use the same [`Place`] for its own file.
        assert!(place.start.load(Ordering::Relaxed) != at || !place.lost.load(Ordering::Relaxed));
    }
}
