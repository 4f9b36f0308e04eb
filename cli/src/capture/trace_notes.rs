//! Notes (short messages) that heapdiff adds to the trace of a JVM's agent: the progress of `heapdiff hunt`, and the paths
//! of dumps.
//!
//! The trace belongs to the JVM's user, so heapdiff adds notes as that user. No command waits for a note or fails
//! because of one. If adding a note fails, heapdiff silently tries again while the command waits for something else.

use std::collections::VecDeque;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use heapdiff_trace::{DumpTaken, SideWriter, TraceError, Written};

use super::dump::{DumpResult, now_ms};
use super::process::inside;
use super::protocol::Jvm;

/// Pause after a failed attempt to add a note to the agent's trace.
const AGAIN: Duration = Duration::from_secs(1);
/// Maximum time that an agent takes to create its trace. [`LOOK`] is the pause between two searches for the trace.
const MAKING: Duration = Duration::from_secs(3);
const LOOK: Duration = Duration::from_millis(100);
/// Suffix of the file that SQLite maps into memory while a database is being written.
const INDEX: &str = "-shm";
/// Maximum number of SQLite databases of a JVM that heapdiff tries, in order to find the trace and add notes to it.
const MOST: usize = 16;

/// Notes for the trace of a JVM.
#[derive(Debug)]
pub(super) struct TraceNotes<'a> {
    jvm: &'a Jvm<'a>,
    /// Notes that could not be added to the trace yet, oldest first. For example, an agent that was just loaded is
    /// still creating its trace.
    waiting: VecDeque<TraceNote>,
    next: Instant,
}

#[derive(Debug)]
enum TraceNote {
    Note {
        time_ms: i64,
        text: String,
    },
    Dump {
        asked_ms: i64,
        done_ms: i64,
        path: String,
    },
}

impl<'a> TraceNotes<'a> {
    pub(super) fn new(jvm: &'a Jvm<'a>) -> Self {
        Self {
            jvm,
            waiting: VecDeque::new(),
            next: Instant::now(),
        }
    }

    /// Adds a note on the progress of `heapdiff hunt` to the trace. The live view shows this note.
    pub(super) fn hunt(&mut self, text: &str) {
        self.put(TraceNote::Note {
            time_ms: now_ms(),
            text: format!("hunt: {text}"),
        });
    }

    /// Adds the path of a dump.
    pub(super) fn dump(&mut self, dump: &DumpResult) {
        self.put(TraceNote::Dump {
            asked_ms: dump.asked_ms,
            done_ms: now_ms(),
            path: dump.target.to_string_lossy().into_owned(),
        });
    }

    fn put(&mut self, note: TraceNote) {
        self.waiting.push_back(note);
        self.next = Instant::now();
        self.try_again();
    }

    /// Tries again to add the notes that could not be added to the trace yet, at most once per [`AGAIN`].
    pub(super) fn try_again(&mut self) {
        while let Some(note) = self.waiting.front()
            && Instant::now() >= self.next
        {
            if !self.add(note) {
                self.next = Instant::now() + AGAIN;
                return;
            }
            self.waiting.pop_front();
        }
    }

    /// Adds a note to one of the trace databases that the JVM has open: the first one that accepts it.
    fn add(&self, note: &TraceNote) -> bool {
        let process = self.jvm.process;
        let added = |path: &Path| {
            // Other libraries in the JVM may have SQLite databases open, too.
            let Ok(Some(mut trace)) = SideWriter::open(path, process.inner_pid) else {
                return false;
            };
            matches!(note.add_to(&mut trace), Ok(Written::Done))
        };
        open_databases(self.jvm)
            .iter()
            .any(|path| matches!(process.user.run_as(|| added(path)), Ok(true)))
    }
}

impl TraceNote {
    fn add_to(&self, trace: &mut SideWriter) -> Result<Written, TraceError> {
        match self {
            Self::Note { time_ms, text } => trace.note(*time_ms, text),
            Self::Dump {
                asked_ms,
                done_ms,
                path,
            } => trace.dump(&DumpTaken {
                asked_ms: *asked_ms,
                done_ms: *done_ms,
                path,
            }),
        }
    }
}

/// Returns the path, in heapdiff's file system, of the trace that the agent of a JVM is writing. Returns `None` if
/// there is no trace, or if the JVM runs in a container. Waits for an agent that was just loaded and is still creating
/// its trace.
pub(super) fn trace_of(jvm: &Jvm<'_>) -> Option<PathBuf> {
    let start = Instant::now();
    loop {
        let trace = current_trace(jvm);
        if trace.is_some() || start.elapsed() > MAKING {
            return trace;
        }
        sleep(LOOK);
    }
}

fn current_trace(jvm: &Jvm<'_>) -> Option<PathBuf> {
    let is_trace = |path: &PathBuf| {
        let open = || SideWriter::open(path, jvm.process.inner_pid);
        matches!(jvm.process.user.run_as(open), Ok(Ok(Some(_))))
    };
    open_databases(jvm).into_iter().find(is_trace)
}

/// Returns the paths, in heapdiff's file system, of the databases that the JVM has open. Databases in a container have
/// no such path and are left out.
fn open_databases(jvm: &Jvm<'_>) -> Vec<PathBuf> {
    let (mapped, root) = (jvm.process.mapped(INDEX, MOST), jvm.process.root());
    let named = mapped.iter().filter_map(|path| path.strip_suffix(INDEX));
    named
        .filter(|path| {
            let ours = fs::metadata(path).map(|meta| (meta.dev(), meta.ino()));
            let theirs = jvm.root.identity_of(Path::new(inside(&root, path)));
            matches!((ours, theirs), (Ok(ours), Ok(theirs)) if ours == theirs)
        })
        .map(PathBuf::from)
        .collect()
}
