//! Opens the displayed traces, checks them for changes, and reopens a trace that was replaced.

use std::cell::RefCell;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use heapdiff_sites::Originals;
use heapdiff_trace::TraceError;

use crate::counted::Counts;
use crate::rankings::Rankings;

/// Time limit for one request to one trace.
const LONGEST: Duration = Duration::from_secs(20);
/// The size of the smallest possible database page in bytes.
const SMALLEST: u64 = 512;
/// Maximum time to wait until a JVM has created the tables of its trace.
const MAKING: Duration = Duration::from_secs(3);
/// The pause before an unreadable trace is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// The reason why a request has no answer, as a message for the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unanswered(pub(crate) String);

impl From<TraceError> for Unanswered {
    fn from(error: TraceError) -> Self {
        Self(match error {
            TraceError::Late { path } => format!(
                "{}: the query took longer than {} s; choose a shorter time window",
                path.display(),
                LONGEST.as_secs()
            ),
            _ => error.to_string(),
        })
    }
}

/// All traces of a page.
pub(crate) struct Traces(Vec<Trace>);

/// The original names of classes and methods.
pub(crate) type OriginalNames = Option<Arc<dyn Originals>>;

impl Traces {
    /// Opens all traces. Each file must exist now, but may be deleted later.
    pub(crate) fn open(paths: Vec<PathBuf>, names: &OriginalNames) -> Result<Self, TraceError> {
        let traces = paths.into_iter().map(|path| {
            let open = Open::open_when_created(&path, names)?;
            let state = Mutex::new(State {
                open: Some(open),
                ..State::default()
            });
            let names = names.clone();
            Ok(Trace { path, names, state })
        });
        Ok(Self(traces.collect::<Result<_, _>>()?))
    }

    pub(crate) fn get(&self, index: usize) -> Option<&Trace> {
        self.0.get(index)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &Trace)> {
        self.0.iter().enumerate()
    }

    /// Checks all traces. Returns true if any of them has changed since the last check.
    pub(crate) fn check_for_changes(&self) -> bool {
        // Check all traces: `any` would stop at the first trace that has changed.
        self.0.iter().filter(|t| t.check_for_changes()).count() > 0
    }
}

/// One trace.
pub(crate) struct Trace {
    path: PathBuf,
    names: OriginalNames,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    open: Option<Open>,
    /// The reason why the trace is not open, or else the error of the last request.
    fault: Option<String>,
    tried: Option<Instant>,
}

/// An open trace.
pub(crate) struct Open {
    pub(crate) trace: heapdiff_trace::Trace,
    /// Rankings that were computed recently.
    pub(crate) rankings: RefCell<Rankings>,
    /// Cached answers about counts by line.
    pub(crate) counts: RefCell<Counts>,
    file: Option<Identity>,
    /// The value of SQLite's `data_version` at the last check. The value changes when another connection commits.
    version: i64,
}

impl Open {
    /// Opens a trace. If the file has no tables yet, waits for them at most [`MAKING`].
    fn open_when_created(path: &Path, names: &OriginalNames) -> Result<Self, TraceError> {
        let begun = Instant::now();
        loop {
            match Self::new(path, names) {
                Err(TraceError::Foreign { found: 0, .. }) if begun.elapsed() < MAKING => {
                    std::thread::sleep(AGAIN / 10);
                }
                opened => return opened,
            }
        }
    }

    fn new(path: &Path, names: &OriginalNames) -> Result<Self, TraceError> {
        let mut trace = heapdiff_trace::Trace::open(path)?;
        if let Some(names) = names {
            trace.set_names(Arc::clone(names));
        }
        let version = trace.version()?;
        let file = std::fs::metadata(path)
            .ok()
            .as_ref()
            .map(Identity::from_metadata);
        Ok(Self {
            trace,
            rankings: RefCell::default(),
            counts: RefCell::default(),
            file,
            version,
        })
    }

    /// Runs a request with a time limit, on a consistent state of the trace.
    fn ask<T>(
        &self,
        question: impl FnOnce(&Self) -> Result<T, Unanswered>,
    ) -> Result<T, Unanswered> {
        self.trace.set_deadline(Some(Instant::now() + LONGEST));
        self.trace.hold()?;
        let _held = Held(&self.trace);
        question(self)
    }
}

/// A read transaction on a trace. Dropping it ends the transaction.
struct Held<'a>(&'a heapdiff_trace::Trace);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // Ending the transaction needs no time limit. It cannot fail, because nothing was changed in it.
        self.0.set_deadline(None);
        let _ = self.0.release();
    }
}

impl Trace {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the error of the last attempt to read the trace, if that attempt failed.
    pub(crate) fn fault(&self) -> Option<String> {
        self.state().fault.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // The state is valid even after a panic in another thread. In the worst case, a trace is opened once more than
        // necessary.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if the trace or its state changed. Does not wait for a running request.
    fn check_for_changes(&self) -> bool {
        let Ok(mut state) = self.state.try_lock() else {
            return false;
        };
        let State { open, fault, tried } = &mut *state;
        if let Some(opened) = open {
            return match check_open_trace(&self.path, opened) {
                Ok(false) => false,
                Ok(true) => {
                    // The error of the last request may no longer apply. If it does, the next request sets it again.
                    *fault = None;
                    true
                }
                Err(said) => {
                    (*open, *fault) = (None, Some(said));
                    true
                }
            };
        }
        if tried.is_some_and(|t| t.elapsed() < AGAIN) {
            return false;
        }
        *tried = Some(Instant::now());
        match Open::new(&self.path, &self.names) {
            Ok(opened) => {
                (*open, *fault) = (Some(opened), None);
                true
            }
            Err(e) => fault.replace(e.to_string()) != Some(e.to_string()),
        }
    }

    /// Runs a request on a consistent state of the trace, with a time limit.
    pub(crate) fn ask<T>(
        &self,
        question: impl FnOnce(&Open) -> Result<T, Unanswered>,
    ) -> Result<T, Unanswered> {
        let mut state = self.state();
        let Some(open) = state.open.as_ref() else {
            let fault = state.fault.clone().unwrap_or_default();
            return Err(Unanswered(fault));
        };
        let answer = open.ask(question);
        if let Err(Unanswered(fault)) = &answer {
            state.fault = Some(fault.clone());
        }
        answer
    }
}

/// Returns true if the trace changed, or an error if it can no longer be read.
fn check_open_trace(path: &Path, open: &mut Open) -> Result<bool, String> {
    let words = |e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
    let now = std::fs::metadata(path).map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => words(&"the trace file was deleted"),
        _ => words(&e),
    })?;
    if open
        .file
        .is_some_and(|file| file != Identity::from_metadata(&now))
    {
        return Err(words(&"the trace file was replaced with another file"));
    }
    // Check the size, because SQLite could answer from cached pages and the log for a long time after the file was
    // truncated.
    if now.len() < SMALLEST {
        return Err(words(&"the trace file was overwritten"));
    }
    let version = open.trace.version().map_err(|e| e.to_string())?;
    Ok(std::mem::replace(&mut open.version, version) != version)
}

/// The identity of a file. If the file is replaced by another one with the same name, the identity changes.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Identity(u64, u64);

impl Identity {
    #[cfg(unix)]
    fn from_metadata(file: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Self(file.dev(), file.ino())
    }

    #[cfg(not(unix))]
    fn from_metadata(_file: &Metadata) -> Self {
        // On systems other than Unix, an open file cannot be replaced. So all files may have the same identity.
        Self(0, 0)
    }
}
