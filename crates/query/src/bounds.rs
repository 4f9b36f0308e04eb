//! Limits of a running query: time, cancellation, and the size of SQLite's temporary files.
//!
//! A thread checks the limits every [`TICK`]. If a limit is exceeded, the thread sets a flag and interrupts SQLite,
//! which stops at the next row. The tables check the flag while they search for a row.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rusqlite::InterruptHandle;

use crate::error::{Error, Result};
use crate::sql::Limits;

/// Maximum number of bytes of SQLite's temporary files, unless a caller sets a smaller limit.
pub(crate) const TEMPORARY_FILES: u64 = 1 << 30;
/// Time between two checks of the limits.
const TICK: Duration = Duration::from_millis(20);

/// The limit that a query exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exceeded {
    Time = 1,
    TemporaryFiles = 2,
    Cancelled = 3,
}

/// A flag that ends a query. The tables check the flag while they search for rows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stop(Option<Arc<AtomicU8>>);

impl Stop {
    /// A flag that is never set.
    pub(crate) const NEVER: Self = Self(None);

    pub(crate) fn new() -> Self {
        Self(Some(Arc::default()))
    }

    fn set(&self, exceeded: Exceeded) {
        if let Some(flag) = &self.0 {
            flag.store(exceeded as u8, Ordering::Relaxed);
        }
    }

    fn value(&self) -> u8 {
        self.0
            .as_ref()
            .map_or(0, |flag| flag.load(Ordering::Relaxed))
    }

    /// True if the query must end.
    pub(crate) fn is_set(&self) -> bool {
        self.value() != 0
    }

    /// Returns an error if the query must end.
    pub(crate) fn check(&self) -> Result<()> {
        if self.is_set() {
            Err(Error::Run("interrupted".to_owned()))
        } else {
            Ok(())
        }
    }

    /// Returns the error for the limit that was exceeded.
    pub(crate) fn error(&self, limits: Limits) -> Option<Error> {
        let value = self.value();
        if value == Exceeded::Time as u8 {
            return limits.time.map(|limit| Error::Time { limit });
        }
        (value == Exceeded::TemporaryFiles as u8).then(|| Error::TemporaryFiles {
            limit: limits.temporary_files(),
        })
    }
}

/// A thread that checks the limits until this value is dropped.
pub(crate) struct Watchdog {
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watchdog {
    /// Starts the thread. The time limit of the query counts from now.
    pub(crate) fn start(interrupt: InterruptHandle, stop: Stop, limits: Limits) -> Result<Self> {
        let begin = Instant::now();
        // Unnamed files that were opened before the query, such as a temporary file with the dump, do not count towards
        // the limit.
        let others: Vec<FileId> = unnamed_files()
            .unwrap_or_default()
            .iter()
            .map(|f| f.0)
            .collect();
        let (end, ended) = channel::<()>();
        let exceeded = move || {
            if limits.time.is_some_and(|time| begin.elapsed() >= time) {
                return Some(Exceeded::Time);
            }
            if limits.is_given_up.is_some_and(|is_given_up| is_given_up()) {
                return Some(Exceeded::Cancelled);
            }
            let bytes = temporary_bytes(&others);
            (bytes > limits.temporary_files()).then_some(Exceeded::TemporaryFiles)
        };
        let watch = move || {
            while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(TICK) {
                if !stop.is_set()
                    && let Some(exceeded) = exceeded()
                {
                    stop.set(exceeded);
                }
                if stop.is_set() {
                    // SQLite ignores an interrupt before the first step of a statement, so the thread interrupts again
                    // after every [`TICK`].
                    interrupt.interrupt();
                }
            }
        };
        let thread = std::thread::Builder::new().name("query limits".to_owned());
        let thread = thread
            .spawn(watch)
            .map_err(|e| Error::Run(format!("cannot start the thread that checks limits: {e}")))?;
        Ok(Self {
            end: Some(end),
            thread: Some(thread),
        })
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Device and inode of an open file.
type FileId = (u64, u64);

/// Returns the open files of this process that have no name, with their sizes. Returns `None` if the system does not
/// list open files.
///
/// SQLite's temporary files have no name: no folder contains an entry for them.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn unnamed_files() -> Option<Vec<(FileId, u64)>> {
    use std::os::unix::fs::MetadataExt;
    // Errors are ignored, because other threads open and close files at the same time.
    let open = std::fs::read_dir("/proc/self/fd").ok()?.flatten();
    let files = open.filter_map(|entry| std::fs::metadata(entry.path()).ok());
    let unnamed = files.filter(|file| file.is_file() && file.nlink() == 0);
    Some(
        unnamed
            .map(|file| ((file.dev(), file.ino()), file.len()))
            .collect(),
    )
}

/// Returns `None`, because this system does not list the open files of a process.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const fn unnamed_files() -> Option<Vec<(FileId, u64)>> {
    None
}

/// True if this system allows the growth of temporary files to be watched.
pub(crate) fn can_watch_files() -> bool {
    unnamed_files().is_some()
}

/// Returns the total size of all open unnamed files except `others`, in bytes.
fn temporary_bytes(others: &[FileId]) -> u64 {
    let files = unnamed_files().unwrap_or_default().into_iter();
    let own = files.filter(|(id, _)| !others.contains(id));
    own.fold(0, |sum, (_, bytes)| sum.saturating_add(bytes))
}
