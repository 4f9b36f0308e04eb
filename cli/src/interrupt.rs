//! Ctrl-C and other signals: they end a wait early, or remove unfinished files and end the run.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

#[derive(Debug)]
pub(crate) struct State {
    /// Unfinished files and folders. A folder is removed with its content.
    unfinished: Vec<PathBuf>,
    waits: Option<Sender<()>>,
    undo: Option<Action>,
}

/// An action that undoes an effect outside of this process.
struct Action(Box<dyn FnOnce() + Send>);

impl fmt::Debug for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Action")
    }
}

static STATE: Mutex<State> = Mutex::new(State {
    unfinished: Vec::new(),
    waits: None,
    undo: None,
});

fn state() -> MutexGuard<'static, State> {
    // Ignore a panic in another thread. It cannot leave the state inconsistent, because each change of the state is a
    // single step.
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Installs the signal handlers. Ctrl-C ends a wait, or the run if there is no wait. SIGTERM and the loss of the
/// terminal (SIGHUP) end the run. When a signal ends the run, unfinished files are removed, and the exit status is that
/// of a process that the signal has killed.
#[cfg(unix)]
pub(crate) fn handle() {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
    // With this handler, writing beyond the user's file size limit (SIGXFSZ) is an ordinary write error, like a full
    // disk. Without it, the signal would end the process.
    let _ = signal_hook::flag::register(SIGXFSZ, std::sync::Arc::default());
    // Signals that are ignored from the start (`nohup`, background jobs) stay ignored.
    let ignored = ignored_signals();
    let ends = [SIGHUP, SIGINT, SIGTERM]
        .into_iter()
        .filter(|signal| ignored & (1 << (signal - 1)) == 0);
    // If this fails, signals end the run by their default action.
    let Ok(mut signals) = signal_hook::iterator::Signals::new(ends) else {
        return;
    };
    std::thread::spawn(move || {
        for signal in signals.forever() {
            if signal == SIGINT && end_wait() {
                continue;
            }
            // The lock is held to the end, so that no other thread creates or renames a file.
            let _state = remove_unfinished();
            let _ = signal_hook::low_level::emulate_default_handler(signal);
            std::process::exit(128 + signal);
        }
    });
}

/// Returns the signals that this process ignored when it was started. In the result, bit `n - 1` stands for signal `n`.
/// If the system does not report these signals, returns only SIGHUP.
#[cfg(unix)]
fn ignored_signals() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(1 << (signal_hook::consts::SIGHUP - 1))
}

/// The exit code that Windows gives to a program that Ctrl-C ends (`STATUS_CONTROL_C_EXIT`).
#[cfg(not(unix))]
const CONTROL_C_EXIT: i32 = 0xC000_013A_u32.cast_signed();

/// Installs the handler. Ctrl-C ends a wait. Without a wait, Ctrl-C removes unfinished files and ends the run.
/// Ctrl-Break, the end of the session and a console window that closes have the same effect.
#[cfg(not(unix))]
pub(crate) fn handle() {
    // If the handler cannot be installed, Ctrl-C ends the process at once, which is the default action.
    let _ = ctrlc::set_handler(|| {
        if !end_wait() {
            let _state = remove_unfinished();
            std::process::exit(CONTROL_C_EXIT);
        }
    });
}

fn end_wait() -> bool {
    let waits = state().waits.take();
    waits.is_some_and(|waits| waits.send(()).is_ok())
}

/// Runs the action that an [`Undo`] stored, and removes unfinished files. While the returned value exists, no file is
/// created or renamed.
pub(crate) fn remove_unfinished() -> MutexGuard<'static, State> {
    let mut state = state();
    if let Some(Action(undo)) = state.undo.take() {
        undo();
    }
    for path in state.unfinished.drain(..) {
        let _ = remove(&path);
    }
    state
}

/// The start of the names of unfinished files.
pub(crate) const UNFINISHED: &str = ".heapdiff-";

/// A file or folder that is removed at the end of the run, unless it is finished.
#[derive(Debug)]
pub(crate) struct Unfinished {
    path: PathBuf,
}

impl Unfinished {
    /// Calls `make` to create a file or folder. After this call, an interrupt removes the file or folder.
    pub(crate) fn new<T>(make: impl FnOnce() -> io::Result<(PathBuf, T)>) -> io::Result<(Self, T)> {
        let mut state = state();
        let (path, made) = make()?;
        state.unfinished.push(path.clone());
        Ok((Self { path }, made))
    }

    /// Gives the file its final name by calling `rename`. If `rename` fails, the file is removed. An interrupt during
    /// this call takes effect after the call.
    pub(crate) fn finish<T>(self, rename: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
        let mut state = state();
        let renamed = rename(&self.path)?;
        state.unfinished.retain(|path| *path != self.path);
        Ok(renamed)
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        let mut state = state();
        if let Some(at) = state.unfinished.iter().position(|p| *p == self.path) {
            state.unfinished.swap_remove(at);
            // If the file cannot be removed now, its removal is not tried again.
            let _ = remove(&self.path);
        }
    }
}

fn remove(path: &Path) -> io::Result<()> {
    if fs::symlink_metadata(path)?.is_dir() {
        fs::remove_dir_all(path)
    } else {
        fs::remove_file(path)
    }
}

/// An effect outside of this process that must end with the run, such as a recording in a JVM. At most one such value
/// exists. Dropping this value undoes the effect, and so does an interrupt.
#[cfg(target_os = "linux")]
#[derive(Debug)]
pub(crate) struct Undo(());

#[cfg(target_os = "linux")]
impl Undo {
    /// Calls `begin`, and stores the action `undo`. An interrupt during this call takes effect after the call. Neither
    /// function may create an [`Unfinished`] file.
    pub(crate) fn new<T>(
        undo: impl FnOnce() + Send + 'static,
        begin: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<(Self, T)> {
        let mut state = state();
        let begun = begin()?;
        state.undo = Some(Action(Box::new(undo)));
        Ok((Self(()), begun))
    }
}

#[cfg(target_os = "linux")]
impl Drop for Undo {
    fn drop(&mut self) {
        // This thread holds the lock, so that an interrupt cannot end the run in the middle of the action.
        let mut state = state();
        if let Some(Action(undo)) = state.undo.take() {
            undo();
        }
    }
}

/// A wait that an interrupt can end.
#[derive(Debug)]
pub(crate) struct Wait {
    ended: Receiver<()>,
}

impl Wait {
    /// Begins a wait. The next interrupt ends the wait and not the run.
    pub(crate) fn start() -> Self {
        let (send, ended) = channel();
        state().waits = Some(send);
        Self { ended }
    }

    /// Sleeps for `time`. Returns false if the wait was ended.
    pub(crate) fn pause(&self, time: Duration) -> bool {
        self.ended.recv_timeout(time) == Err(RecvTimeoutError::Timeout)
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        state().waits = None;
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn an_action_is_undone_once() {
        let (send, undone) = channel();
        let undo = move || send.send(()).unwrap();
        let failed = Undo::new(|| (), || io::Result::<()>::Err(ErrorKind::Other.into()));
        assert!(failed.is_err() && state().undo.is_none());
        let (guard, begun) = Undo::new(undo, || Ok(7)).unwrap();
        assert_eq!((begun, undone.try_recv().is_ok()), (7, false));
        drop(guard);
        assert!(undone.try_recv().is_ok() && state().undo.is_none());
    }

    #[test]
    fn unfinished_files_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            let path = folder.path().join(name);
            Unfinished::new(|| fs::write(&path, "x").map(|()| (path.clone(), ())))
                .unwrap()
                .0
        };
        drop(make("dropped"));
        let to = folder.path().join("kept");
        make("half").finish(|from| fs::rename(from, &to)).unwrap();
        let failed = make("failed").finish(|_| io::Result::<()>::Err(ErrorKind::Other.into()));
        assert!(failed.is_err());
        let below = folder.path().join("folder");
        let (guard, ()) = Unfinished::new(|| {
            fs::create_dir(&below)?;
            fs::write(below.join("part"), "x").map(|()| (below.clone(), ()))
        })
        .unwrap();
        drop(guard);
        let left: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(left.len(), 1);
        assert!(to.exists());
    }
}
