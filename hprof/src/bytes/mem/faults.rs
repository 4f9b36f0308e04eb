//! Handles memory of mapped files that cannot be read any more, because the file was truncated or its disk failed.

use std::io;

use crate::error::Error;

/// Arranges a call of `end`, once and on a separate thread, when a dump or an index cannot be read any more. The reason
/// is that the file was truncated while it was read, or that its disk failed. The error shows which of the two
/// happened.
///
/// The threads that read the file never continue, because there is no data for them. So `end` should end the process
/// soon. If it returns, or takes longer than ten seconds, SIGBUS ends the process. Without a call of this function, the
/// signal ends the process at once. Signals with other causes are passed to the handler that was installed before. On
/// Windows, mapped files cannot be truncated, so this function does nothing.
///
/// # Errors
/// Returns an error if the handler or its thread cannot be created.
pub fn set_read_error_handler(end: impl FnOnce(Error) + Send + 'static) -> io::Result<()> {
    #[cfg(unix)]
    return unix::install(Box::new(end));
    #[cfg(not(unix))]
    {
        drop(end);
        Ok(())
    }
}

#[cfg(unix)]
mod unix {
    use std::ffi::c_int;
    use std::io::{self, Read};
    use std::mem::MaybeUninit;
    use std::os::fd::IntoRawFd;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

    use crate::bytes::mapped::Place;
    use crate::error::Error;

    /// Maximum number of steps (of [`STEP`] nanoseconds each) in which the signal handler waits for the end of the
    /// process.
    const STEPS: usize = 1000;
    /// Length of one waiting step in nanoseconds.
    const STEP: i64 = 10_000_000;

    /// The end of the pipe to which the signal handler writes a byte. This byte wakes the thread that calls `end`.
    static WAKE: AtomicI32 = AtomicI32::new(-1);
    /// True if the handler must not wait any longer.
    static ENDED: AtomicBool = AtomicBool::new(false);
    /// The action for SIGBUS that was installed before this handler.
    static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

    pub(super) fn install(end: Box<dyn FnOnce(Error) + Send>) -> io::Result<()> {
        let (mut woken, wake) = io::pipe()?;
        std::thread::Builder::new()
            .name("lost-files".into())
            .spawn(move || {
                let mut byte = [0];
                if woken.read_exact(&mut byte).is_ok()
                    && let Some(error) = Place::take_read_error()
                {
                    end(error);
                }
                ENDED.store(true, Ordering::Release);
            })?;
        // The pipe stays open until the process ends.
        if WAKE
            .compare_exchange(-1, wake.into_raw_fd(), Ordering::AcqRel, Ordering::Acquire)
            .is_err()
        {
            return Err(io::Error::other(
                "the handler for files that become unreadable is already installed",
            ));
        }
        // SAFETY: with a null new action, `sigaction` only writes the current action to `before`, which has the right
        // type. It returned 0, so `before` is initialized.
        let before = unsafe {
            let mut before = MaybeUninit::<libc::sigaction>::zeroed();
            if libc::sigaction(libc::SIGBUS, std::ptr::null(), before.as_mut_ptr()) != 0 {
                return Err(io::Error::last_os_error());
            }
            before.assume_init()
        };
        let _ = BEFORE.set(before);
        // SAFETY: an action of zeros is valid. The handler has the type that SA_SIGINFO requires, and it only uses
        // functions that are allowed in a signal handler.
        unsafe {
            let mut action = MaybeUninit::<libc::sigaction>::zeroed().assume_init();
            action.sa_sigaction = handler as extern "C" fn(_, _, _) as usize;
            // The handler runs on the separate signal stack of the thread, because the normal stack may have
            // overflowed.
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigemptyset(&raw mut action.sa_mask);
            if libc::sigaction(libc::SIGBUS, &raw const action, std::ptr::null_mut()) != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    }

    /// Called by the system if a thread cannot read a mapped file. Stops this thread, and wakes the thread that calls
    /// `end`.
    extern "C" fn handler(signal: c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
        // SAFETY: the system passes valid signal information, which for SIGBUS contains an address.
        let address = unsafe { (*info).si_addr() }.addr();
        if !Place::record_lost(address) {
            call_previous_handler(signal, info, context);
            return;
        }
        let byte = 0_u8;
        // SAFETY: writes one byte of a local variable to a descriptor that is never closed.
        unsafe {
            libc::write(WAKE.load(Ordering::Acquire), (&raw const byte).cast(), 1);
        }
        let step = libc::timespec {
            tv_sec: 0,
            tv_nsec: STEP,
        };
        for _ in 0..STEPS {
            if ENDED.load(Ordering::Acquire) {
                break;
            }
            // SAFETY: `step` is valid, and the pointer for the remaining time may be null.
            unsafe {
                libc::nanosleep(&raw const step, std::ptr::null_mut());
            }
        }
        // The process still runs. After this handler, the read is repeated, and its fault ends the process.
        default_action(signal);
    }

    /// Calls the handler for SIGBUS that was installed before.
    fn call_previous_handler(
        signal: c_int,
        info: *mut libc::siginfo_t,
        context: *mut libc::c_void,
    ) {
        let Some(before) = BEFORE.get() else {
            return default_action(signal);
        };
        match before.sa_sigaction {
            // If the signal were ignored, the read would be repeated and raise the signal again, forever.
            libc::SIG_DFL | libc::SIG_IGN => default_action(signal),
            function if before.sa_flags & libc::SA_SIGINFO != 0 => {
                // SAFETY: `function` was registered as a handler of this type. The system would have called it with
                // these arguments.
                unsafe {
                    let function: extern "C" fn(c_int, *mut libc::siginfo_t, *mut libc::c_void) =
                        std::mem::transmute(function);
                    function(signal, info, context);
                }
            }
            function => {
                // SAFETY: `function` was registered as a handler without SA_SIGINFO, which has this type.
                unsafe {
                    let function: extern "C" fn(c_int) = std::mem::transmute(function);
                    function(signal);
                }
            }
        }
    }

    /// Makes the signal end the process from now on.
    fn default_action(signal: c_int) {
        // SAFETY: `signal` may be called in a handler, and the default action is valid.
        unsafe {
            libc::signal(signal, libc::SIG_DFL);
        }
    }
}
