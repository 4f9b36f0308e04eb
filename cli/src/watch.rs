//! Lets another part of the program follow a job, in addition to the terminal.
//!
//! This follower receives the progress of the job and can cancel it. A process runs one job at a time, so the follower
//! receives the progress of all files that the job reads.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Minimum time between two progress messages within a phase.
const PAUSE: Duration = Duration::from_millis(250);

/// The progress of a job.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Step {
    /// The number of phases that have begun, plus the fraction of the current phase that is done. Each progress message
    /// has a larger number than the one before.
    pub(crate) done: f64,
    /// The current activity.
    pub(crate) told: String,
}

/// A follower of a job: another part of the program, which receives the progress of the job and can cancel it.
pub(crate) struct Watch {
    cancelled: AtomicBool,
    told: Mutex<Told>,
    tell: Box<dyn Fn(Step) + Send + Sync>,
}

#[derive(Debug, Default)]
struct Told {
    phases: f64,
    last: f64,
    at: Option<Instant>,
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Watch");
        shown.field("cancelled", &self.is_cancelled());
        shown.finish_non_exhaustive()
    }
}

impl Watch {
    pub(crate) fn new(tell: impl Fn(Step) + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self {
            cancelled: AtomicBool::new(false),
            told: Mutex::default(),
            tell: Box::new(tell),
        })
    }

    /// Cancels the job. The job ends at its next check.
    pub(crate) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Reports the start of a phase of a job. `what` is the name of the dump.
    pub(crate) fn phase(&self, what: &str, name: &str) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.phases += 1.0;
        let done = told.phases;
        self.send_progress(&mut told, done, || format!("{what}: {name}"));
    }

    /// Reports that `done` of the `total` units of work in a phase are done. Sends no message if `total` is zero, or if
    /// the last message was sent within [`PAUSE`].
    pub(crate) fn report_done(&self, what: &str, name: &str, (done, total): (u64, u64)) {
        let Ok(mut told) = self.told.try_lock() else {
            return;
        };
        if total == 0 || told.at.is_some_and(|at| at.elapsed() < PAUSE) {
            return;
        }
        let part = (done as f64 / total as f64).min(0.999);
        let all = told.phases + part;
        let percent = (part * 100.0) as u64;
        self.send_progress(&mut told, all, || format!("{what}: {name}, {percent} %"));
    }

    /// Sends a progress message, unless an earlier message reported more progress. Progress can seem to go back if two
    /// dumps are read at the same time.
    fn send_progress(&self, told: &mut Told, done: f64, text: impl FnOnce() -> String) {
        if done > told.last && !self.is_cancelled() {
            (told.last, told.at) = (done, Some(Instant::now()));
            (self.tell)(Step { done, told: text() });
        }
    }
}

static WATCH: Mutex<Option<Arc<Watch>>> = Mutex::new(None);

/// Makes a follower receive all progress until this value is dropped.
#[derive(Debug)]
pub(crate) struct Followed(());

impl Followed {
    pub(crate) fn by(watch: Arc<Watch>) -> Self {
        *WATCH.lock().unwrap_or_else(PoisonError::into_inner) = Some(watch);
        Self(())
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        *WATCH.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// Returns the follower of the running job, which receives the job's progress. Returns `None` if nobody follows the
/// job.
pub(crate) fn current() -> Option<Arc<Watch>> {
    let watch = WATCH.lock().unwrap_or_else(PoisonError::into_inner);
    watch.clone()
}

/// True if the running job was cancelled.
pub(crate) fn is_cancelled() -> bool {
    current().is_some_and(|watch| watch.is_cancelled())
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn reported_progress_only_grows() {
        let (send, steps) = channel();
        let watch = Watch::new(move |step| send.send(step).unwrap());
        watch.phase("a.hprof", "reading objects");
        // This progress is not sent, because it comes too soon after the previous message.
        watch.report_done("a.hprof", "reading objects", (50, 100));
        watch.told.lock().unwrap().at = None;
        watch.report_done("a.hprof", "reading objects", (50, 100));
        watch.told.lock().unwrap().at = None;
        // The following two messages are not sent: the first reports less progress than the message before, and the
        // second has no total.
        watch.report_done("b.hprof", "reading objects", (10, 100));
        watch.report_done("b.hprof", "searching", (10, 0));
        watch.phase("a.hprof", "searching");
        let told: Vec<(f64, String)> = steps.try_iter().map(|s| (s.done, s.told)).collect();
        let expected = [
            (1.0, "a.hprof: reading objects"),
            (1.5, "a.hprof: reading objects, 50 %"),
            (2.0, "a.hprof: searching"),
        ];
        assert_eq!(told, expected.map(|(done, told)| (done, told.to_owned())));
        assert!(!watch.is_cancelled());
        watch.cancel();
        assert!(watch.is_cancelled());
        watch.phase("a.hprof", "sorting");
        assert!(steps.try_iter().next().is_none());
    }
}
