//! Files and pipes in memory, which have no name in any folder.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

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
