//! What happens when memory of a mapped file cannot be read any more: the file was cut, or its disk failed.

use std::io;

use crate::error::Error;

/// Has `end` called, once and on a thread of its own, when a dump or an index cannot be read any more because it
/// was cut while it was read, or because its disk failed. The error says which.
///
/// The threads that read it never go on: there is nothing that they could be given. So `end` should end the
/// process, and soon: when it returns, or takes longer than ten seconds, the process ends with the signal (SIGBUS), as
/// it does at once where this is never called. Other causes of that signal are left to the handler that was
/// installed before. Where files that are mapped cannot be cut (Windows) this does nothing.
///
/// # Errors
/// When the handler or its thread cannot be had.
pub fn on_lost_file(end: impl FnOnce(Error) + Send + 'static) -> io::Result<()> {
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

    /// Steps of the handler's wait, and their length in nanoseconds.
    const STEPS: usize = 1000;
    const STEP: i64 = 10_000_000;

    /// The pipe that wakes the thread that ends the process.
    static WAKE: AtomicI32 = AtomicI32::new(-1);
    /// The handler is not to wait any longer.
    static ENDED: AtomicBool = AtomicBool::new(false);
    /// What handled the signal before.
    static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

    pub(super) fn install(end: Box<dyn FnOnce(Error) + Send>) -> io::Result<()> {
        let (mut woken, wake) = io::pipe()?;
        std::thread::Builder::new()
            .name("lost-files".into())
            .spawn(move || {
                let mut byte = [0];
                if woken.read_exact(&mut byte).is_ok()
                    && let Some(error) = Place::lost()
                {
                    end(error);
                }
                ENDED.store(true, Ordering::Release);
            })?;
        // The pipe stays open for as long as the process runs.
        if WAKE
            .compare_exchange(-1, wake.into_raw_fd(), Ordering::AcqRel, Ordering::Acquire)
            .is_err()
        {
            return Err(io::Error::other(
                "the handler for lost files is already installed",
            ));
        }
        // SAFETY: a null new action asks for the present one, which is written to a value of its type.
        let before = unsafe {
            let mut before = MaybeUninit::<libc::sigaction>::zeroed();
            if libc::sigaction(libc::SIGBUS, std::ptr::null(), before.as_mut_ptr()) != 0 {
                return Err(io::Error::last_os_error());
            }
            before.assume_init()
        };
        let _ = BEFORE.set(before);
        // SAFETY: an action of zeroes is a valid one; the handler has the type that SA_SIGINFO asks for, and does
        // only what is allowed in a handler.
        unsafe {
            let mut action = MaybeUninit::<libc::sigaction>::zeroed().assume_init();
            action.sa_sigaction = handler as extern "C" fn(_, _, _) as usize;
            // On the thread's own stack for signals, since the usual one may have overflown.
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigemptyset(&raw mut action.sa_mask);
            if libc::sigaction(libc::SIGBUS, &raw const action, std::ptr::null_mut()) != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    }

    /// Stops the thread that read what cannot be read, and wakes the one that ends the process.
    extern "C" fn handler(signal: c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
        // SAFETY: the system passes the signal's information, which for this signal has an address.
        let address = unsafe { (*info).si_addr() }.addr();
        if !Place::lose(address) {
            pass_on(signal, info, context);
            return;
        }
        let byte = 0_u8;
        // SAFETY: one byte of our own, to a descriptor that is never closed.
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
            // SAFETY: the time to wait is ours, and what is left of it is not asked for.
            unsafe {
                libc::nanosleep(&raw const step, std::ptr::null_mut());
            }
        }
        // Nobody ended the process: reading again now does.
        default_action(signal);
    }

    /// Lets the handler before this one decide.
    fn pass_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
        let Some(before) = BEFORE.get() else {
            return default_action(signal);
        };
        match before.sa_sigaction {
            // An ignored fault would be raised for ever.
            libc::SIG_DFL | libc::SIG_IGN => default_action(signal),
            function if before.sa_flags & libc::SA_SIGINFO != 0 => {
                // SAFETY: the system held this for a handler of that type, and would have called it with these
                // arguments.
                unsafe {
                    let function: extern "C" fn(c_int, *mut libc::siginfo_t, *mut libc::c_void) =
                        std::mem::transmute(function);
                    function(signal, info, context);
                }
            }
            function => {
                // SAFETY: as above, for a handler without information.
                unsafe {
                    let function: extern "C" fn(c_int) = std::mem::transmute(function);
                    function(signal);
                }
            }
        }
    }

    /// From now on the signal ends the process.
    fn default_action(signal: c_int) {
        // SAFETY: allowed in a handler; the default action is a valid one.
        unsafe {
            libc::signal(signal, libc::SIG_DFL);
        }
    }
}
