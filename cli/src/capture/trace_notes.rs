//! Notes in the trace that the agent of a JVM is writing: how a hunt goes, and where dumps are.
//!
//! The trace belongs to the JVM's user, and notes are added as that user. No command waits or fails for them: what
//! does not work at once is tried again while the command waits for something else, silently.

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

/// The time until a failed attempt is repeated.
const AGAIN: Duration = Duration::from_secs(1);
/// The time in which an agent makes its trace, and how often is looked for it.
const MAKING: Duration = Duration::from_secs(3);
const LOOK: Duration = Duration::from_millis(100);
/// The ending of the file that SQLite maps beside a database that is being written.
const INDEX: &str = "-shm";
/// The most open databases of a JVM that are looked at.
const MOST: usize = 16;

/// What is to be added to the trace of a JVM.
#[derive(Debug)]
pub(super) struct TraceNotes<'a> {
    jvm: &'a Jvm<'a>,
    /// What could not be added yet, the oldest first: an agent that was just loaded is still making its trace.
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

    /// A note on how a hunt goes, which the live view shows as its progress.
    pub(super) fn hunt(&mut self, text: &str) {
        self.put(TraceNote::Note {
            time_ms: now_ms(),
            text: format!("hunt: {text}"),
        });
    }

    /// Where a dump is.
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

    /// Repeats what failed before, if that is [`AGAIN`] ago.
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

    /// Adds a note to the first database among the JVM's that takes it.
    fn add(&self, note: &TraceNote) -> bool {
        let process = self.jvm.process;
        let added = |path: &Path| {
            // Other programs in the JVM may have databases, too.
            let Ok(Some(mut trace)) = SideWriter::open(path, process.inner_pid) else {
                return false;
            };
            matches!(note.add_to(&mut trace), Ok(Written::Done))
        };
        open_databases(self.jvm)
            .iter()
            .any(|path| matches!(process.user.act(|| added(path)), Ok(true)))
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

/// Returns the trace that the agent of a JVM is writing, by its path for us; `None` for one in a container. Waits for an
/// agent that was just loaded and is still making its trace.
pub(super) fn trace_of(jvm: &Jvm<'_>) -> Option<PathBuf> {
    let start = Instant::now();
    loop {
        let trace = trace_now(jvm);
        if trace.is_some() || start.elapsed() > MAKING {
            return trace;
        }
        sleep(LOOK);
    }
}

fn trace_now(jvm: &Jvm<'_>) -> Option<PathBuf> {
    let is_trace = |path: &PathBuf| {
        let open = || SideWriter::open(path, jvm.process.inner_pid);
        matches!(jvm.process.user.act(open), Ok(Ok(Some(_))))
    };
    open_databases(jvm).into_iter().find(is_trace)
}

/// The databases that the JVM has open, by their paths for us: those in a container have none.
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
