//! Watches the agent's trace during a hunt: requests the trace from the agent, and checks it for growth.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use heapdiff_diff::allocating_frame;
use heapdiff_sites::attach;
use heapdiff_trace::{Candidate, Timeline, Trace, TraceError, Window, rank_groups};
use heapdiff_units::{Size, counted};

use super::TRACE;
use super::folder::Folder;
use super::protocol::Jvm;
use super::request::LONGEST_ARGUMENT;
use crate::merge::{Groups, Merged, in_focus};

/// The time before the first check for growth. Earlier growth may belong to the start of the program, and not to a
/// leak.
const EARLIEST: Duration = Duration::from_secs(10);
const PERIOD: Duration = Duration::from_secs(1);
/// Maximum number of growing allocation sites that one check returns.
const MOST: usize = 20;

/// Adds a trace in the folder of the hunt to the agent's options. If the user's options already name a trace, uses that
/// trace instead, provided that its path is known. Returns the options and the path of the trace, or the reason why
/// there is no trace to watch.
pub(super) fn traced(
    jvm: &Jvm<'_>,
    folder: &Path,
    options: &str,
) -> (String, Result<PathBuf, String>) {
    let asked = options
        .split(',')
        .find_map(|option| option.strip_prefix("trace="));
    if let Some(path) = asked {
        let path = PathBuf::from(path);
        let known = path.is_absolute() && !options.contains('%');
        let unknown = "heapdiff cannot find the trace file that is given in the options";
        return (
            options.to_owned(),
            known.then_some(path).ok_or_else(|| unknown.to_owned()),
        );
    }
    let none = |why: &str| {
        (
            options.to_owned(),
            Err(format!("{} {why}", folder.display())),
        )
    };
    let inside = match shared_folder(jvm, folder) {
        Ok(inside) => inside,
        Err(why) => return none(why),
    };
    let path = inside.join(TRACE);
    let separator = if options.is_empty() { "" } else { "," };
    let all = format!("trace={}{separator}{options}", path.display());
    if all.len() + attach::ADD.len() >= LONGEST_ARGUMENT {
        return none(ODD_NAME);
    }
    (all, Ok(folder.join(TRACE)))
}

const ODD_NAME: &str = "has a name that cannot be part of the agent's options";

/// Returns the path of a folder, for use in the agent's options; the error is the reason why the agent cannot write
/// there.
pub(super) fn shared_folder(jvm: &Jvm<'_>, folder: &Path) -> Result<PathBuf, &'static str> {
    let inside = canonical_folder(folder)?;
    let odd = |c: char| c == ',' || c == '%' || c.is_control();
    if inside.to_str().is_none_or(|path| path.contains(odd)) {
        return Err(ODD_NAME);
    }
    let ours = Folder::open(&inside).and_then(|folder| folder.identity());
    let theirs = jvm.root.identity_of(&inside);
    let same = matches!((ours, theirs), (Ok(ours), Ok(theirs)) if ours == theirs);
    let writable = || Folder::open(&inside).and_then(|folder| folder.is_writable());
    match (same, jvm.process.user.run_as(writable)) {
        (true, Ok(Ok(()))) => Ok(inside),
        (false, _) => Err("is not visible to the JVM, which runs in a container"),
        (true, _) => Err("is a folder that the JVM's user may not write to"),
    }
}

/// Returns the path of a folder without symbolic links.
fn canonical_folder(folder: &Path) -> Result<PathBuf, &'static str> {
    fs::canonicalize(folder).map_err(|_| "cannot be found")
}

/// An allocation site that has grown in a trace.
#[derive(Debug)]
pub(super) struct Seen {
    /// The class of the allocated objects.
    pub(super) class: String,
    /// The message about the growth.
    pub(super) said: String,
}

/// Checks a trace for growth from time to time.
#[derive(Debug)]
pub(super) struct Watch {
    trace: PathBuf,
    /// Growth in bytes that ends the wait.
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

    pub(super) fn trace(&self) -> &Path {
        &self.trace
    }

    /// Returns the growth in bytes that ends the wait.
    pub(super) const fn min_growth(&self) -> u64 {
        self.enough
    }

    /// Returns the allocation sites that grew by at least [`Self::min_growth`] bytes, the largest suspects first. If
    /// the trace does not exist yet or cannot be read, returns no sites, because this is no reason to end a hunt.
    pub(super) fn sites_grown_enough(&mut self) -> Vec<Seen> {
        if self.start.elapsed() < EARLIEST || Instant::now() < self.next {
            return Vec::new();
        }
        let begun = Instant::now();
        let seen = self.read_growing_sites();
        // A trace that takes long to read is checked less often.
        self.next = Instant::now() + PERIOD.max(begun.elapsed() * 10);
        seen.unwrap_or_default()
    }

    fn read_growing_sites(&self) -> Result<Vec<Seen>, TraceError> {
        let trace = Trace::open(&self.trace)?;
        trace.hold()?;
        let Some(run) = trace.runs()?.pop() else {
            return Ok(Vec::new());
        };
        let timeline = Timeline::of(&trace, &run, Window::ALL)?;
        // One leak may have many call paths, and each path alone may grow too little to be found. Therefore the growth
        // of all paths to an allocating frame is added up.
        let stacks = trace.stacks()?;
        let mut groups = Groups::new(&stacks, Merged::Frame, None);
        let ranking = rank_groups(&trace, &timeline, |site| groups.of(site))?;
        if ranking.points.collections < 2 {
            return Ok(Vec::new());
        }
        let found = ranking
            .candidates
            .iter()
            .filter(|c| self.has_grown_enough(c));
        let found: Vec<&Candidate> = found.take(MOST).collect();
        let seen = |candidate: &Candidate| {
            let frames = candidate
                .sites
                .first()
                .and_then(|s| in_focus(&stacks, s, None));
            let at = frames.as_deref().and_then(allocating_frame);
            let at = at.map_or_else(String::new, |f| format!(" allocated in {f}"));
            Seen {
                class: candidate.class.to_string(),
                said: format!(
                    "{}{at} grew by {} across {}",
                    candidate.class,
                    Size(candidate.trending.grown_bytes.max(0).unsigned_abs()),
                    counted(ranking.points.collections as u64, "GC"),
                ),
            }
        };
        Ok(found.into_iter().map(seen).collect())
    }

    fn has_grown_enough(&self, candidate: &Candidate) -> bool {
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

#[cfg(test)]
mod tests {
    use heapdiff_trace::synthetic;

    use super::*;

    #[test]
    fn a_missing_folder_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(
            canonical_folder(&folder.path().join("gone")),
            Err("cannot be found")
        );
        assert!(
            canonical_folder(folder.path()).is_ok(),
            "and not that it cannot be found"
        );
    }

    #[test]
    fn sufficient_growth_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(TRACE);
        synthetic::write(&path, &synthetic::Scene::default()).unwrap();
        let told = |enough| {
            let seen = Watch::new(path.clone(), enough)
                .read_growing_sites()
                .unwrap();
            let said: Vec<String> = seen.into_iter().map(|s| s.said).collect();
            said.join("; ")
        };
        let some = told(1);
        assert!(
            some.contains(" grew by ") && some.contains(" GCs"),
            "{some}"
        );
        let none = told(u64::MAX);
        assert!(!none.contains(" grew by "), "{none}");
    }
}
