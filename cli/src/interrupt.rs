//! What Ctrl-C and other signals do: end a wait early, or remove what is unfinished and end the run.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

#[derive(Debug)]
pub(crate) struct State {
    /// Files, and folders with all that is in them.
    unfinished: Vec<PathBuf>,
    waits: Option<Sender<()>>,
}

static STATE: Mutex<State> = Mutex::new(State {
    unfinished: Vec::new(),
    waits: None,
});

fn state() -> MutexGuard<'static, State> {
    // Each change is a single step, so a panic leaves no half-made state.
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Installs the handlers: Ctrl-C ends a wait, and without one the run; a request to end (SIGTERM)
/// and the loss of the terminal (SIGHUP) end the run. What is unfinished is removed, and the run ends
/// as the signal would have ended it.
#[cfg(unix)]
pub(crate) fn handle() {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
    // A file beyond the user's limit is then an error of writing, as a full disk is, and ends nothing by a signal.
    let _ = signal_hook::flag::register(SIGXFSZ, std::sync::Arc::default());
    // What is ignored from the start (`nohup`, a job in the background) stays ignored.
    let ignored = ignored_signals();
    let ends = [SIGHUP, SIGINT, SIGTERM]
        .into_iter()
        .filter(|signal| ignored & (1 << (signal - 1)) == 0);
    // Without a handler a signal ends the run all the same.
    let Ok(mut signals) = signal_hook::iterator::Signals::new(ends) else {
        return;
    };
    std::thread::spawn(move || {
        for signal in signals.forever() {
            if signal == SIGINT && end_wait() {
                continue;
            }
            // The lock is held to the end, so that no file is begun or gets its final name.
            let _state = remove_unfinished();
            let _ = signal_hook::low_level::emulate_default_handler(signal);
            std::process::exit(128 + signal);
        }
    });
}

/// The signals that this process was started to ignore, bit `n - 1` for signal `n`. Where the
/// system does not tell, the loss of the terminal is taken to be one of them.
#[cfg(unix)]
fn ignored_signals() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(1 << (signal_hook::consts::SIGHUP - 1))
}

/// Installs the handler: Ctrl-C ends a wait, and without one removes what is unfinished and ends the
/// run.
#[cfg(not(unix))]
pub(crate) fn handle() {
    // Without a handler an interrupt ends the run all the same.
    let _ = ctrlc::set_handler(|| {
        if !end_wait() {
            let _state = remove_unfinished();
            std::process::exit(130);
        }
    });
}

fn end_wait() -> bool {
    let waits = state().waits.take();
    waits.is_some_and(|waits| waits.send(()).is_ok())
}

/// Removes what is unfinished; as long as the result lives nothing is begun or finished.
pub(crate) fn remove_unfinished() -> MutexGuard<'static, State> {
    let mut state = state();
    for path in state.unfinished.drain(..) {
        let _ = remove(&path);
    }
    state
}

/// How the names of files begin that are not finished.
pub(crate) const UNFINISHED: &str = ".heapdiff-";

/// A file or folder that must not outlive the run unless it is finished.
#[derive(Debug)]
pub(crate) struct Unfinished {
    path: PathBuf,
}

impl Unfinished {
    /// From now on an interrupt removes what `make` makes.
    pub(crate) fn new<T>(make: impl FnOnce() -> io::Result<(PathBuf, T)>) -> io::Result<(Self, T)> {
        let mut state = state();
        let (path, made) = make()?;
        state.unfinished.push(path.clone());
        Ok((Self { path }, made))
    }

    /// Gives it its final name, by `rename`, or removes it. No interrupt comes in between.
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
            // A partial file that cannot be removed is not tried again.
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

/// A wait that an interrupt ends.
#[derive(Debug)]
pub(crate) struct Wait {
    ended: Receiver<()>,
}

impl Wait {
    /// From now on the next interrupt ends this wait and not the run.
    pub(crate) fn start() -> Self {
        let (send, ended) = channel();
        state().waits = Some(send);
        Self { ended }
    }

    /// Waits a while; `false` when the wait was ended.
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

    #[test]
    fn what_is_not_finished_is_removed() {
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
