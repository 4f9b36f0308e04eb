//! What a hunt does with the agent's trace: has it written, and watches it for growth.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use heapdiff_diff::frame_text;
use heapdiff_trace::{By, Candidate, Timeline, Trace, TraceError, Window, rank};
use heapdiff_units::{Size, counted};

use super::folder::Folder;
use super::protocol::Jvm;
use crate::job::LONGEST_ARGUMENT;

/// The trace's name in the hunt's folder.
pub(super) const NAME: &str = "trace.db";
/// What grows before this much time has passed is taken for a program that starts.
const EARLIEST: Duration = Duration::from_secs(10);
const PERIOD: Duration = Duration::from_secs(1);

/// The agent's options with a trace in the hunt's folder, if the JVM can write there; and the trace's path. Where
/// the user names a trace, that one is watched if it can be.
pub(super) fn traced(jvm: &Jvm<'_>, folder: &Path, options: &str) -> (String, Option<PathBuf>) {
    let asked = options
        .split(',')
        .find_map(|option| option.strip_prefix("trace="));
    if let Some(path) = asked {
        let path = PathBuf::from(path);
        let known = path.is_absolute() && !options.contains('%');
        return (options.to_owned(), known.then_some(path));
    }
    let none = (options.to_owned(), None);
    let Ok(inside) = fs::canonicalize(folder) else {
        return none;
    };
    let Some(path) = inside.join(NAME).to_str().map(str::to_owned) else {
        return none;
    };
    let separator = if options.is_empty() { "" } else { "," };
    let all = format!("trace={path}{separator}{options}");
    let odd = |c: char| c == ',' || c == '%' || c.is_control();
    if path.contains(odd) || all.len() >= LONGEST_ARGUMENT {
        return none;
    }
    let ours = Folder::open(&inside).and_then(|folder| folder.identity());
    let theirs = jvm.root.identity_of(&inside);
    let same = matches!((ours, theirs), (Ok(ours), Ok(theirs)) if ours == theirs);
    let writable = || Folder::open(&inside).and_then(|folder| folder.is_writable());
    match same && matches!(jvm.process.user.act(writable), Ok(Ok(()))) {
        true => (all, Some(folder.join(NAME))),
        false => none,
    }
}

/// Looks at a trace from time to time.
#[derive(Debug)]
pub(super) struct Watch {
    trace: PathBuf,
    /// Growth, in bytes, that ends the wait.
    enough: u64,
    start: Instant,
    next: Instant,
}

impl Watch {
    pub(super) fn new(trace: PathBuf, enough: u64) -> Self {
        let start = Instant::now();
        Self {
            trace,
            enough,
            start,
            next: start + EARLIEST.min(PERIOD),
        }
    }

    pub(super) fn into_trace(self) -> PathBuf {
        self.trace
    }

    /// What was seen to grow, once it is enough. A trace that does not exist yet, or cannot be read, is no
    /// reason to end a hunt.
    pub(super) fn enough(&mut self) -> Option<String> {
        if self.start.elapsed() < EARLIEST || Instant::now() < self.next {
            return None;
        }
        let begun = Instant::now();
        let seen = self.look();
        // Long traces are looked at less often.
        self.next = Instant::now() + PERIOD.max(begun.elapsed() * 10);
        seen.ok().flatten()
    }

    fn look(&self) -> Result<Option<String>, TraceError> {
        let trace = Trace::open(&self.trace)?;
        trace.hold()?;
        let Some(run) = trace.runs()?.pop() else {
            return Ok(None);
        };
        let timeline = Timeline::of(&trace, &run, Window::ALL)?;
        let ranking = rank(&trace, &timeline, By::Site)?;
        let found = ranking.candidates.iter().find(|c| self.is_enough(c));
        let Some(found) = found.filter(|_| ranking.points.collections >= 2) else {
            return Ok(None);
        };
        let stacks = trace.stacks()?;
        let stack = found.sites.first().and_then(|site| site.stack);
        let frames = stack.map_or_else(Vec::new, |stack| stacks.frames(stack));
        let text = |f: &&heapdiff_trace::read::Frame| {
            frame_text(&f.class, &f.method, f.file.as_deref(), f.line)
        };
        let frames: Vec<String> = frames.iter().map(text).collect();
        let own = frames.iter().find(|f| !heapdiff_diff::is_runtime_frame(f));
        let at = own
            .or(frames.first())
            .map_or_else(String::new, |f| format!(" of {f}"));
        Ok(Some(format!(
            "{}{at} grew by {} across {}",
            found.class,
            Size(found.trending.grown_bytes.max(0).unsigned_abs()),
            counted(ranking.points.collections as u64, "collection"),
        )))
    }

    fn is_enough(&self, candidate: &Candidate) -> bool {
        use heapdiff_trace::{Trend, Verdict};
        let t = &candidate.trending;
        t.verdict <= Verdict::Growth
            && matches!(
                t.trend,
                Trend::Steady | Trend::Uneven | Trend::RisingSawtooth
            )
            && t.bytes.is_sure()
            && u64::try_from(t.grown_bytes).is_ok_and(|grown| grown >= self.enough)
    }
}
