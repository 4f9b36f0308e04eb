//! The traces that are shown: opened, watched for changes, opened again when one was replaced.

use std::cell::RefCell;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use heapdiff_sites::Originals;
use heapdiff_trace::TraceError;

use crate::counted::Counts;
use crate::rankings::Rankings;

/// The time for one question to one trace.
const LONGEST: Duration = Duration::from_secs(20);
/// The bytes of a database's smallest page.
const SMALLEST: u64 = 512;
/// How long a JVM may take to make its trace.
const MAKING: Duration = Duration::from_secs(3);
/// The time until a trace that cannot be read is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// Why a question has no answer, in words for the page.
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

/// The names that classes and methods had before they were shortened.
pub(crate) type OriginalNames = Option<Arc<dyn Originals>>;

impl Traces {
    /// Opens all traces. Each must exist now, and may be removed later.
    pub(crate) fn open(paths: Vec<PathBuf>, names: &OriginalNames) -> Result<Self, TraceError> {
        let traces = paths.into_iter().map(|path| {
            let open = Open::once_made(&path, names)?;
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

    /// Whether anything has changed since the last look.
    pub(crate) fn look(&self) -> bool {
        // Every trace is looked at, even after one that changed.
        self.0.iter().filter(|t| t.look()).count() > 0
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
    /// Why it is not open, or what was wrong last.
    fault: Option<String>,
    tried: Option<Instant>,
}

/// A trace as questions find it.
pub(crate) struct Open {
    pub(crate) trace: heapdiff_trace::Trace,
    /// Rankings that were worked out lately.
    pub(crate) rankings: RefCell<Rankings>,
    /// Counts that were read lately.
    pub(crate) counts: RefCell<Counts>,
    file: Option<Identity>,
    /// SQLite's number for what others have committed.
    version: i64,
}

impl Open {
    /// Waits a little where there is a file without tables.
    fn once_made(path: &Path, names: &OriginalNames) -> Result<Self, TraceError> {
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
        let file = std::fs::metadata(path).ok().as_ref().map(Identity::of);
        Ok(Self {
            trace,
            rankings: RefCell::default(),
            counts: RefCell::default(),
            file,
            version,
        })
    }

    /// Asks for a bounded time, and sees the trace as it is at one moment.
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

/// A trace that is held at one moment, until this is dropped.
struct Held<'a>(&'a heapdiff_trace::Trace);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // The transaction's end has no time limit, and cannot fail: nothing was changed.
        self.0.set_deadline(None);
        let _ = self.0.release();
    }
}

impl Trace {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What is wrong with it.
    pub(crate) fn fault(&self) -> Option<String> {
        self.state().fault.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic leaves at worst a trace that has to be opened again.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it changed, or its state did. Does not wait for a question that is being answered.
    fn look(&self) -> bool {
        let Ok(mut state) = self.state.try_lock() else {
            return false;
        };
        let State { open, fault, tried } = &mut *state;
        if let Some(opened) = open {
            return match still_there(&self.path, opened) {
                Ok(false) => false,
                Ok(true) => {
                    // The fault of the last answer is outdated; the next answer tells.
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

    /// Asks the trace, as it is at one moment and for a bounded time.
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

/// Whether the trace changed; or why it can no longer be read.
fn still_there(path: &Path, open: &mut Open) -> Result<bool, String> {
    let words = |e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
    let now = std::fs::metadata(path).map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => words(&"the trace file was deleted"),
        _ => words(&e),
    })?;
    if open.file.is_some_and(|file| file != Identity::of(&now)) {
        return Err(words(&"the trace file was replaced with another file"));
    }
    // Cached pages and the log can still be read long after the file was removed.
    if now.len() < SMALLEST {
        return Err(words(&"the trace file was overwritten"));
    }
    let version = open.trace.version().map_err(|e| e.to_string())?;
    Ok(std::mem::replace(&mut open.version, version) != version)
}

/// The identity of a file, which another file of the same name does not have.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Identity(u64, u64);

impl Identity {
    #[cfg(unix)]
    fn of(file: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Self(file.dev(), file.ino())
    }

    #[cfg(not(unix))]
    fn of(_file: &Metadata) -> Self {
        // Such systems do not let an open file be replaced.
        Self(0, 0)
    }
}
