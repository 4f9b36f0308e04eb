//! The traces that are shown: opened, watched for changes, opened again when one was replaced.

use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use heapdiff_trace::{Database, TraceError};
use rusqlite::{Connection, ErrorCode};

/// For one question to one trace.
const LONGEST: Duration = Duration::from_secs(20);
/// Steps of SQLite's virtual machine between two looks at the clock: some microseconds each hundred.
const STEPS: i32 = 10_000;
/// For a JVM that has just begun to make its trace.
const MAKING: Duration = Duration::from_secs(3);
/// Before a trace that cannot be read is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// Why a question has no answer, in words for the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unanswered(pub(crate) String);

impl From<rusqlite::Error> for Unanswered {
    fn from(error: rusqlite::Error) -> Self {
        Self(match error.sqlite_error_code() {
            Some(ErrorCode::OperationInterrupted) => format!(
                "the answer took longer than {} s; a shorter window takes less",
                LONGEST.as_secs()
            ),
            _ => error.to_string(),
        })
    }
}

/// All traces of a page.
pub(crate) struct Traces(Vec<Trace>);

impl Traces {
    /// Opens them; a trace may get lost later, but is there at first.
    pub(crate) fn open(paths: Vec<PathBuf>) -> Result<Self, TraceError> {
        let traces = paths.into_iter().map(|path| {
            let open = Open::once_made(&path)?;
            let state = Mutex::new(State {
                open: Some(open),
                ..State::default()
            });
            Ok(Trace { path, state })
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
        // All are looked at.
        self.0.iter().filter(|t| t.look()).count() > 0
    }
}

/// One trace.
pub(crate) struct Trace {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    open: Option<Open>,
    /// Why it is not open, or what was wrong last.
    fault: Option<String>,
    tried: Option<Instant>,
}

struct Open {
    database: Database,
    /// When the question that is being answered takes too long.
    deadline: Arc<Mutex<Option<Instant>>>,
    file: Option<Identity>,
    /// SQLite's number for what others have committed.
    version: i64,
}

impl Open {
    /// Waits a little where there is a file without tables.
    fn once_made(path: &Path) -> Result<Self, TraceError> {
        let begun = Instant::now();
        loop {
            match Self::new(path) {
                Err(TraceError::Foreign { found: 0, .. }) if begun.elapsed() < MAKING => {
                    std::thread::sleep(AGAIN / 10);
                }
                opened => return opened,
            }
        }
    }

    fn new(path: &Path) -> Result<Self, TraceError> {
        let mut database = Database::open(path)?;
        let wrap = |source| TraceError::Sqlite {
            path: path.to_owned(),
            source,
        };
        let deadline = Arc::new(Mutex::new(None::<Instant>));
        let over = Arc::clone(&deadline);
        let is_over = move || {
            let deadline = over.lock().unwrap_or_else(PoisonError::into_inner);
            deadline.is_some_and(|d| Instant::now() > d)
        };
        let handled = database
            .connection_mut()
            .progress_handler(STEPS, Some(is_over));
        handled.map_err(wrap)?;
        // Whoever made the file may have put functions into its schema: none is called.
        let connection = database.connection();
        connection
            .pragma_update(None, "trusted_schema", false)
            .map_err(wrap)?;
        connection
            .pragma_update(None, "query_only", true)
            .map_err(wrap)?;
        let version = version(connection).map_err(wrap)?;
        let file = std::fs::metadata(path).ok().as_ref().map(Identity::of);
        Ok(Self {
            database,
            deadline,
            file,
            version,
        })
    }

    /// Asks for a bounded time, and sees the trace as it is at one moment.
    fn ask<T>(
        &self,
        question: impl FnOnce(&Connection) -> Result<T, Unanswered>,
    ) -> Result<T, Unanswered> {
        let set = |to| *self.deadline.lock().unwrap_or_else(PoisonError::into_inner) = to;
        set(Some(Instant::now() + LONGEST));
        let reading = self.database.connection().unchecked_transaction()?;
        let answer = question(&reading);
        // It has changed nothing. Going back is no question, and not too late either.
        set(None);
        reading.finish()?;
        answer
    }
}

fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "data_version", |row| row.get(0))
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
        // What a panic leaves is at worst a trace that is opened again.
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
                    // Whatever was wrong with the last answer: the next one tells.
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
        match Open::new(&self.path) {
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
        question: impl FnOnce(&Connection) -> Result<T, Unanswered>,
    ) -> Result<T, Unanswered> {
        let mut state = self.state();
        let Some(open) = state.open.as_ref() else {
            let fault = state.fault.clone().unwrap_or_default();
            return Err(Unanswered(fault));
        };
        let answer = open.ask(question);
        if let Err(Unanswered(fault)) = &answer {
            let path = self.path.display();
            state.fault = Some(format!("{path}: {fault}"));
            return Err(Unanswered(format!("{path}: {fault}")));
        }
        answer
    }
}

/// Whether the trace changed; or why it can no longer be read.
fn still_there(path: &Path, open: &mut Open) -> Result<bool, String> {
    let words = |e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
    let now = std::fs::metadata(path).map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => words(&"the trace is gone"),
        _ => words(&e),
    })?;
    if open.file.is_some_and(|file| file != Identity::of(&now)) {
        return Err(words(&"another file has taken the trace's place"));
    }
    let version = version(open.database.connection()).map_err(|e| words(&e))?;
    Ok(std::mem::replace(&mut open.version, version) != version)
}

/// What tells a file from another one that is given its name.
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
        // An open file cannot be replaced there.
        Self(0, 0)
    }
}
