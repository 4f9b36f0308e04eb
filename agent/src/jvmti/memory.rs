//! Memory outside of the Java heap: counters that Java code increments, anonymous files in memory, and pipes.

use std::alloc::{Layout, alloc_zeroed};
use std::ffi::CString;
use std::fs::File;
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::Release};

/// Requested capacity of a pipe in bytes. The kernel may refuse it.
const PIPE: libc::c_int = 1 << 20;

/// Creates an anonymous file in memory. Its name is visible only in the process's list of open files (`/proc/PID/fd`).
pub(crate) fn memory_file(name: &str) -> io::Result<File> {
    let name = CString::new(name)?;
    // Calls the kernel directly, because glibc has this function only since 2.27.
    // SAFETY: the name is NUL-terminated and outlives the call.
    let made = unsafe { libc::syscall(libc::SYS_memfd_create, name.as_ptr(), libc::MFD_CLOEXEC) };
    match RawFd::try_from(made) {
        // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
        Ok(made) if made >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(made) }.into()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Creates a pipe with a buffer of [`PIPE`] bytes. If the kernel refuses this size, the buffer has the usual size.
pub(crate) fn wide_pipe() -> io::Result<(PipeReader, PipeWriter)> {
    let (from, to) = io::pipe()?;
    // SAFETY: the descriptor is open, and the argument is a number. If the call fails, the pipe keeps its size.
    let _ = unsafe { libc::fcntl(to.as_raw_fd(), libc::F_SETPIPE_SZ, PIPE) };
    Ok((from, to))
}

/// Counters that compiled Java code increments. They are never freed.
pub(crate) struct Shared {
    start: NonNull<AtomicU64>,
    len: usize,
}

// SAFETY: the memory belongs to no particular thread, and all access to it is atomic.
unsafe impl Send for Shared {}
// SAFETY: the memory belongs to no particular thread, and all access to it is atomic.
unsafe impl Sync for Shared {}

impl Shared {
    /// Allocates `len` counters, all zero. Returns `None` if there is not enough memory.
    pub(crate) fn new(len: usize) -> Option<Self> {
        // Allocate one cache line more, so that the first counter can be aligned to a line.
        let layout = Layout::array::<AtomicU64>(len.checked_add(8)?).ok()?;
        if len == 0 {
            return None;
        }
        // SAFETY: the size is not zero.
        let memory = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        let skipped = memory.align_offset(64);
        // SAFETY: the offset is a multiple of 8 and less than 64, and 64 bytes more were allocated.
        let start = unsafe { memory.add(skipped) }.cast::<AtomicU64>();
        Some(Self { start, len })
    }

    pub(crate) fn address(&self) -> i64 {
        i64::try_from(self.start.as_ptr().expose_provenance()).unwrap_or(0)
    }

    fn at(&self, at: usize) -> Option<&AtomicU64> {
        // SAFETY: the index is less than `len`. The counters were initialized to zero and are never freed.
        (at < self.len).then(|| unsafe { self.start.add(at).as_ref() })
    }

    /// Returns a counter's value, or 0 if the index is out of range.
    pub(crate) fn get(&self, at: usize) -> u64 {
        self.at(at).map_or(0, |counter| counter.load(Relaxed))
    }

    /// Sets a counter, if the index is in range.
    pub(crate) fn set(&self, at: usize, to: u64) {
        if let Some(counter) = self.at(at) {
            counter.store(to, Release);
        }
    }
}
