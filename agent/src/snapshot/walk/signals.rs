//! The signal handlers of the child: they detect the end of the walk, and write the end of the dump.

use std::ffi::{CString, NulError, c_int};
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::ptr::null_mut;
use std::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::time::Duration;

use super::{CHILD, code_of, end};

/// The last step of a child that continues to write its dump if the JVM ends.
#[derive(Clone, Debug)]
pub(crate) enum Completion {
    /// The child renames the file: it gives the file the name of a complete dump.
    Rename { part: CString, last: CString },
    /// The child does nothing, because the dump is in a pipe. Such a dump is complete when its last byte has been
    /// written.
    Pipe,
}

impl Completion {
    pub(crate) fn rename(part: &Path, last: &Path) -> std::result::Result<Self, NulError> {
        let name = |path: &Path| CString::new(path.as_os_str().as_bytes());
        Ok(Self::Rename {
            part: name(part)?,
            last: name(last)?,
        })
    }

    /// Performs the child's last step. Returns the child's exit code.
    fn run(&self, file: c_int) -> c_int {
        let Self::Rename { part, last } = self else {
            return end::DONE;
        };
        let (part, last) = (part.as_ptr(), last.as_ptr());
        // SAFETY: these are system calls with an open file and NUL-terminated names.
        let is_done = unsafe { libc::fsync(file) == 0 && libc::rename(part, last) == 0 };
        if is_done {
            end::DONE
        } else {
            code_of(&std::io::Error::last_os_error())
        }
    }
}

/// Signal handler: the parent reports that the heap walk is over.
pub(super) extern "C" fn finish(_: c_int) {
    let walk = CHILD.load(Acquire);
    if walk.is_null() {
        return;
    }
    // SAFETY: the walk lives as long as the child. The child has only this thread. The thread sleeps outside of
    // callbacks, and the check of `busy` below confirms this, so no other reference to the walk is in use.
    let walk = unsafe { &mut *walk };
    if walk.page.shared().busy.load(Acquire) {
        return;
    }
    let finished = catch_unwind(AssertUnwindSafe(|| walk.writer.finish()));
    let code = match finished {
        Ok(Ok(())) => match &walk.completion {
            Some(completion) => completion.run(walk.file),
            None => end::DONE,
        },
        Ok(Err(e)) => code_of(&e),
        Err(_) => end::PANICKED,
    };
    if code == end::DONE {
        walk.page.shared().done.store(true, Release);
    }
    // SAFETY: this ends the child without running any code of the JVM.
    unsafe { libc::_exit(code) }
}

/// Interval of the timer of a child whose JVM has ended.
const CHECK: Duration = Duration::from_millis(50);
/// The walk is over if this number of consecutive checks found no change and all seen objects have been visited.
const IDLE_CHECKS: u32 = 10;
/// A child that waits in the middle of the walk ends itself after this number of consecutive checks without any change.
/// The reason for the wait is a thread of the JVM that does not exist in the child.
const STUCK_CHECKS: u32 = 1200;

/// Signal handler of the child: the JVM has ended. Starts the timer, which checks whether the heap walk is over.
pub(super) extern "C" fn orphaned(_: c_int) {
    let period = libc::timeval {
        tv_sec: 0,
        tv_usec: CHECK.subsec_micros().into(),
    };
    let timer = libc::itimerval {
        it_interval: period,
        it_value: period,
    };
    // SAFETY: the pointer is to a local variable.
    unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const timer, null_mut()) };
}

/// Values that the last call of [`check_end`] has read, in a child whose JVM has ended.
struct Checked {
    callbacks: AtomicU64,
    /// Number of times that the child has gone to sleep by itself.
    sleeps: AtomicU64,
    /// Number of memory pages that the kernel had to read from a disk. The child also sleeps during these reads.
    reads: AtomicU64,
    /// Number of consecutive checks without any change.
    idle: AtomicU32,
}

static CHECKED: Checked = Checked {
    callbacks: AtomicU64::new(0),
    sleeps: AtomicU64::new(0),
    reads: AtomicU64::new(0),
    idle: AtomicU32::new(0),
};

/// Signal handler of the timer: writes the end of the dump if the walk is over.
pub(super) extern "C" fn check_end(_: c_int) {
    let walk = CHILD.load(Acquire);
    if walk.is_null() {
        return;
    }
    // SAFETY: the walk lives as long as the child. This code reads only the field `page`. Nothing changes this field,
    // and its content is atomic.
    let shared = unsafe { (*walk).page.shared() };
    // SAFETY: zeroes are a valid `rusage`. The pointer is to a local variable.
    let usage = unsafe {
        let mut usage = std::mem::zeroed::<libc::rusage>();
        libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
        usage
    };
    let callbacks = shared.callbacks.load(Relaxed);
    let sleeps = usage.ru_nvcsw.cast_unsigned();
    let reads = usage.ru_majflt.cast_unsigned();
    let is_same = CHECKED.callbacks.swap(callbacks, Relaxed) == callbacks
        && CHECKED.reads.swap(reads, Relaxed) == reads;
    let has_slept = CHECKED.sleeps.swap(sleeps, Relaxed) != sleeps;
    if !is_same || !has_slept || shared.busy.load(Acquire) {
        CHECKED.idle.store(0, Relaxed);
        return;
    }
    let idle = CHECKED.idle.fetch_add(1, Relaxed) + 1;
    let has_visited_all =
        callbacks > 0 && shared.seen.load(Relaxed) == shared.visited.load(Relaxed);
    if idle >= IDLE_CHECKS && has_visited_all {
        finish(0);
    }
    if idle >= STUCK_CHECKS {
        // SAFETY: this ends the child without running any code of the JVM.
        unsafe { libc::_exit(end::FAILED) }
    }
}
