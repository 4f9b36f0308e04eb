//! Memory: counters that Java code adds to, and files and pipes without a name in any folder.

use std::alloc::{Layout, alloc_zeroed};
use std::ffi::CString;
use std::fs::File;
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::Release};

/// What a pipe holds at most, where the system lets it.
const PIPE: libc::c_int = 1 << 20;

/// A new file in memory. Its name shows only among the open files of the process.
pub(crate) fn memory_file(name: &str) -> io::Result<File> {
    let name = CString::new(name)?;
    // Not by the C library, which has the function from glibc 2.27 on.
    // SAFETY: the name ends with a zero byte and outlives the call.
    let made = unsafe { libc::syscall(libc::SYS_memfd_create, name.as_ptr(), libc::MFD_CLOEXEC) };
    match RawFd::try_from(made) {
        // SAFETY: the kernel has just given it, to nobody else.
        Ok(made) if made >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(made) }.into()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A new pipe that holds much.
pub(crate) fn wide_pipe() -> io::Result<(PipeReader, PipeWriter)> {
    let (from, to) = io::pipe()?;
    // SAFETY: the descriptor is open, and the argument a number. Where it fails the pipe stays as it is.
    let _ = unsafe { libc::fcntl(to.as_raw_fd(), libc::F_SETPIPE_SZ, PIPE) };
    Ok((from, to))
}

/// Counters that compiled Java code adds to. They are there until the process ends.
pub(crate) struct Shared {
    start: NonNull<AtomicU64>,
    len: usize,
}

// SAFETY: the memory belongs to no thread, and all access to it is atomic.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Shared {
    /// So many counters at zero; `None` if there is no memory.
    pub(crate) fn new(len: usize) -> Option<Self> {
        // A line of memory more, so that the first counter can begin one.
        let layout = Layout::array::<AtomicU64>(len.checked_add(8)?).ok()?;
        if len == 0 {
            return None;
        }
        // SAFETY: the size is not zero.
        let memory = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        let skipped = memory.align_offset(64);
        // SAFETY: fewer than 64 bytes, which were added, and a multiple of eight, as the memory is aligned to eight.
        let start = unsafe { memory.add(skipped) }.cast::<AtomicU64>();
        Some(Self { start, len })
    }

    pub(crate) fn address(&self) -> i64 {
        i64::try_from(self.start.as_ptr().expose_provenance()).unwrap_or(0)
    }

    fn at(&self, at: usize) -> Option<&AtomicU64> {
        // SAFETY: there are as many as `len` says; they were zero bytes at first, and are never given back.
        (at < self.len).then(|| unsafe { self.start.add(at).as_ref() })
    }

    /// A counter; 0 for one that is not there.
    pub(crate) fn get(&self, at: usize) -> u64 {
        self.at(at).map_or(0, |counter| counter.load(Relaxed))
    }

    /// Sets a counter, if it is there.
    pub(crate) fn set(&self, at: usize, to: u64) {
        if let Some(counter) = self.at(at) {
            counter.store(to, Release);
        }
    }
}
