//! Limits how long a command waits for a JVM. The time-out starts again whenever the JVM makes progress.
//!
//! The following events count as progress:
//!
//! - The dump file grows.
//! - The JVM has started a dump and uses processor time: the GC runs before the file grows.
//! - Before the dump starts, the threads that run the agent or the commands of other clients use processor time. For
//!   example, the agent may rewrite thousands of classes.
//!
//! Bytes of an answer are not progress, because a JVM could send a byte now and then forever.

use std::fs;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use heapdiff_agent::State;

use super::process::Process;

/// Names that two HotSpot threads have since JDK 9. The first thread runs attach commands. The second thread runs the
/// VM operations of these commands.
const THREADS: [&str; 2] = ["Attach Listener", "VM Thread"];
/// Length of the time over which processor time is measured.
const WINDOW: Duration = Duration::from_millis(400);
/// A thread or process counts as working if it uses at least [`SHARE`] percent of the measured time, and at least
/// [`TICKS`] kernel ticks (of 10 ms) of processor time.
const SHARE: u64 = 5;
const TICKS: u64 = 2;

/// The time at which a command gives up.
#[derive(Debug)]
pub(super) struct Deadline {
    timeout: Duration,
    /// `None` if the end of the time-out is later than the clock can represent.
    end: Mutex<Option<Instant>>,
}

impl Deadline {
    pub(super) fn new(timeout: Duration) -> Self {
        Self {
            timeout,
            end: Mutex::new(Instant::now().checked_add(timeout)),
        }
    }

    /// Starts the time-out again, after progress of the JVM or at the next step of a command.
    pub(super) fn restart(&self) {
        *self.end.lock().unwrap_or_else(PoisonError::into_inner) =
            Instant::now().checked_add(self.timeout);
    }

    /// Returns the time that is left, or zero if the command has to give up.
    pub(super) fn remaining(&self) -> Duration {
        let end = *self.end.lock().unwrap_or_else(PoisonError::into_inner);
        end.map_or(Duration::MAX, |end| {
            end.saturating_duration_since(Instant::now())
        })
    }

    pub(super) const fn timeout(&self) -> Duration {
        self.timeout
    }
}

/// The state of a JVM that is running a command, as observed at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    /// There is no dump file.
    Nothing,
    /// The dump file exists and has this many bytes.
    Dump(u64),
    /// A forked child of the JVM is alive.
    Child,
}

/// Detects whether a JVM is making progress.
#[derive(Debug)]
pub(super) struct Progress {
    pid: i32,
    bytes: u64,
    /// The last measurement of processor time: when it was made, what was measured (the whole process or only its
    /// command threads), and the processor time in kernel ticks of 10 ms.
    measured: Option<(Instant, Sign, u64)>,
    threads: Vec<i32>,
}

impl Progress {
    pub(super) fn for_process(process: &Process) -> Self {
        Self {
            pid: i32::try_from(process.pid).unwrap_or_default(),
            bytes: 0,
            measured: None,
            threads: Vec::new(),
        }
    }

    /// True if the JVM has made progress since the previous call.
    pub(super) fn has_progressed(&mut self, sign: Sign) -> bool {
        let (kind, ticks) = match sign {
            Sign::Child => return true,
            Sign::Dump(bytes) if bytes > self.bytes => {
                self.bytes = bytes;
                return true;
            }
            Sign::Dump(_) => (
                Sign::Dump(0),
                State::read_process(self.pid).map(|state| state.ticks),
            ),
            Sign::Nothing => (Sign::Nothing, Some(self.ticks_of_threads())),
        };
        let (Some(ticks), now) = (ticks, Instant::now()) else {
            return false;
        };
        match self.measured {
            Some((at, of, before)) if of == kind => {
                let time = now - at;
                if time < WINDOW {
                    return false;
                }
                self.measured = Some((now, kind, ticks));
                is_working(ticks.saturating_sub(before), time)
            }
            _ => {
                self.measured = Some((now, kind, ticks));
                false
            }
        }
    }

    /// Returns the processor time of the threads that run commands, in kernel ticks of 10 ms.
    fn ticks_of_threads(&mut self) -> u64 {
        if self.threads.is_empty() {
            let tasks = fs::read_dir(format!("/proc/{}/task", self.pid));
            let tasks = tasks.into_iter().flatten().flatten();
            let of_commands = tasks.filter_map(|task| {
                let name = fs::read_to_string(task.path().join("comm")).ok()?;
                let is_one = THREADS.contains(&name.trim_end());
                is_one.then(|| task.file_name().to_str()?.parse().ok())?
            });
            self.threads = of_commands.collect();
        }
        let ticks = |&thread: &i32| State::of_thread(self.pid, thread).map(|state| state.ticks);
        self.threads.iter().filter_map(ticks).sum()
    }
}

/// True if a thread or process that used `ticks` (in units of 10 ms) of processor time within `time` counts as working.
fn is_working(ticks: u64, time: Duration) -> bool {
    let used = u128::from(ticks * 1000 / State::TICKS);
    ticks >= TICKS && used * 100 >= time.as_millis() * u128::from(SHARE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_expires_and_restarts() {
        let deadline = Deadline::new(Duration::ZERO);
        assert_eq!(deadline.remaining(), Duration::ZERO);
        deadline.restart();
        assert_eq!(deadline.remaining(), Duration::ZERO);
        let deadline = Deadline::new(Duration::from_secs(3600));
        assert!(deadline.remaining() > Duration::from_secs(3000));
        assert_eq!(Deadline::new(Duration::MAX).remaining(), Duration::MAX);
    }

    #[test]
    fn processor_time_shows_that_a_process_works() {
        let second = Duration::from_secs(1);
        assert!(is_working(5, second) && !is_working(4, second));
        assert!(is_working(2, WINDOW) && !is_working(1, Duration::from_millis(1)));
    }

    #[test]
    fn growth_and_children_count_as_progress() {
        let own = i32::try_from(std::process::id()).unwrap();
        let mut progress = Progress {
            pid: own,
            bytes: 0,
            measured: None,
            threads: Vec::new(),
        };
        assert!(progress.has_progressed(Sign::Child));
        assert!(!progress.has_progressed(Sign::Dump(0)));
        assert!(progress.has_progressed(Sign::Dump(1)));
        assert!(!progress.has_progressed(Sign::Dump(1)));
        assert!(progress.has_progressed(Sign::Dump(2)));
        // The next line expects no progress, because this test process is no JVM: it has no thread with the name of a
        // JVM's command thread.
        assert!(!progress.has_progressed(Sign::Nothing) && !progress.has_progressed(Sign::Nothing));
        // This process uses processor time after the file has appeared.
        assert!(!progress.has_progressed(Sign::Dump(2)));
        let end = Instant::now() + Duration::from_secs(60);
        let mut worked = false;
        while !worked && Instant::now() < end {
            let spin = Instant::now();
            while spin.elapsed() < WINDOW {
                std::hint::black_box(0);
            }
            worked = progress.has_progressed(Sign::Dump(2));
        }
        assert!(worked);
    }
}
