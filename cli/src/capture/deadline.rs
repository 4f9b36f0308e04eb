//! How long a command waits for a JVM: until the time-out ends, which begins anew whenever the JVM makes progress.
//!
//! Bytes of an answer are no progress: a JVM can send one now and then for ever. A dump that grows is progress, and so is
//! the processor time of a JVM that has begun a dump, since it collects garbage before the dump grows. Before that only
//! the threads count that run the agent, which may rewrite thousands of classes, and commands of other clients.

use std::fs;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use heapdiff_agent::State;

use super::process::Process;

/// The threads of HotSpot, from JDK 9 on, that run commands, and what these request of the JVM.
const THREADS: [&str; 2] = ["Attach Listener", "VM Thread"];
/// The time over which processor time is measured.
const WINDOW: Duration = Duration::from_millis(400);
/// The processor time of a thread that works, at least, in percent and in ticks.
const SHARE: u64 = 5;
const TICKS: u64 = 2;

/// The time at which a command gives up.
#[derive(Debug)]
pub(super) struct Deadline {
    timeout: Duration,
    /// `None` for a time too far away for the clock.
    end: Mutex<Option<Instant>>,
}

impl Deadline {
    pub(super) fn new(timeout: Duration) -> Self {
        Self {
            timeout,
            end: Mutex::new(Instant::now().checked_add(timeout)),
        }
    }

    /// The JVM made progress, or the command begins a new step.
    pub(super) fn restart(&self) {
        *self.end.lock().unwrap_or_else(PoisonError::into_inner) =
            Instant::now().checked_add(self.timeout);
    }

    /// Returns the time that is left, zero when the command gives up.
    pub(super) fn left(&self) -> Duration {
        let end = *self.end.lock().unwrap_or_else(PoisonError::into_inner);
        end.map_or(Duration::MAX, |end| {
            end.saturating_duration_since(Instant::now())
        })
    }

    pub(super) const fn timeout(&self) -> Duration {
        self.timeout
    }
}

/// What is seen of a JVM that was sent a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    /// No file of a dump.
    Nothing,
    /// The file of the dump is there, with so many bytes.
    Dump(u64),
    /// A forked child of the JVM lives.
    Child,
}

/// Tells a JVM that works from one that does not.
#[derive(Debug)]
pub(super) struct Progress {
    pid: i32,
    bytes: u64,
    /// When processor time was measured last, of the process or of its threads, and how much it was.
    measured: Option<(Instant, Sign, u64)>,
    threads: Vec<i32>,
}

impl Progress {
    pub(super) fn of(process: &Process) -> Self {
        Self {
            pid: i32::try_from(process.pid).unwrap_or_default(),
            bytes: 0,
            measured: None,
            threads: Vec::new(),
        }
    }

    /// True if the JVM made progress since the last look.
    pub(super) fn look(&mut self, sign: Sign) -> bool {
        let (kind, ticks) = match sign {
            Sign::Child => return true,
            Sign::Dump(bytes) if bytes > self.bytes => {
                self.bytes = bytes;
                return true;
            }
            Sign::Dump(_) => (Sign::Dump(0), State::of(self.pid).map(|state| state.ticks)),
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
                works(ticks.saturating_sub(before), time)
            }
            _ => {
                self.measured = Some((now, kind, ticks));
                false
            }
        }
    }

    /// Processor time of the threads that run commands.
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

/// True if so much processor time in this time is that of a thread that works.
fn works(ticks: u64, time: Duration) -> bool {
    let used = u128::from(ticks * 1000 / State::TICKS);
    ticks >= TICKS && used * 100 >= time.as_millis() * u128::from(SHARE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_passes_and_begins_anew() {
        let deadline = Deadline::new(Duration::ZERO);
        assert_eq!(deadline.left(), Duration::ZERO);
        deadline.restart();
        assert_eq!(deadline.left(), Duration::ZERO);
        let deadline = Deadline::new(Duration::from_secs(3600));
        assert!(deadline.left() > Duration::from_secs(3000));
        assert_eq!(Deadline::new(Duration::MAX).left(), Duration::MAX);
    }

    #[test]
    fn processor_time_shows_who_works() {
        let second = Duration::from_secs(1);
        assert!(works(5, second) && !works(4, second));
        assert!(works(2, WINDOW) && !works(1, Duration::from_millis(1)));
    }

    #[test]
    fn growth_and_children_are_progress_and_silence_is_none() {
        let own = i32::try_from(std::process::id()).unwrap();
        let mut progress = Progress {
            pid: own,
            bytes: 0,
            measured: None,
            threads: Vec::new(),
        };
        assert!(progress.look(Sign::Child));
        assert!(!progress.look(Sign::Dump(0)));
        assert!(progress.look(Sign::Dump(1)));
        assert!(!progress.look(Sign::Dump(1)));
        assert!(progress.look(Sign::Dump(2)));
        // No thread here has the name of a JVM's.
        assert!(!progress.look(Sign::Nothing) && !progress.look(Sign::Nothing));
        // This process works after the file has appeared.
        assert!(!progress.look(Sign::Dump(2)));
        let end = Instant::now() + Duration::from_secs(60);
        let mut worked = false;
        while !worked && Instant::now() < end {
            let spin = Instant::now();
            while spin.elapsed() < WINDOW {
                std::hint::black_box(0);
            }
            worked = progress.look(Sign::Dump(2));
        }
        assert!(worked);
    }
}
