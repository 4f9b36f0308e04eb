//! Watches the child process of a JVM that writes a dump. If the dump takes long, finds out what the child is waiting
//! for.

use std::fs;
use std::time::{Duration, Instant};

use heapdiff_agent::State;

use super::deadline::Sign;
use super::process::Process;

/// Length of a time window. In a window, the state of the child process is checked several times. At the end of the
/// window, these checks show whether and why the child waits.
const WINDOW: Duration = Duration::from_secs(5);
/// Time between two searches for the child process.
const SEARCH: Duration = Duration::from_secs(1);
/// Limit in percent of one processor's time. A runnable child that gets less than this is waiting for a processor.
const LITTLE: u64 = 10;

/// The child process, once it is found.
#[derive(Debug)]
pub(super) struct Child {
    jvm: i32,
    searched: Option<Instant>,
    watched: Option<(i32, Window)>,
    /// The reasons that were already reported. Each is reported only once.
    told: Vec<Waits>,
}

/// The reason why a child makes no progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waits {
    /// The child is runnable but waits for a processor. The value is the percentage of one processor's time that the
    /// child got.
    Processor(u64),
    Disk,
    /// A signal has stopped the child. It stays stopped until somebody sends a signal to continue it.
    Stopped,
}

impl Waits {
    fn text(self, pid: i32) -> String {
        let what = match self {
            Self::Processor(share) => format!(
                "waits for a processor: it got {share} % of one processor in the last {} s",
                WINDOW.as_secs()
            ),
            Self::Disk => "waits for a disk".to_owned(),
            Self::Stopped => format!("is stopped; continue it with `kill -CONT {pid}`"),
        };
        format!("the forked child that writes the dump {what}")
    }

    fn matches(self, other: Self) -> bool {
        std::mem::discriminant(&self) == std::mem::discriminant(&other)
    }
}

impl Child {
    pub(super) fn for_jvm(jvm: &Process) -> Self {
        Self {
            jvm: i32::try_from(jvm.pid).unwrap_or_default(),
            searched: None,
            watched: None,
            told: Vec::new(),
        }
    }

    /// Returns an observation of the child. [`Progress`](super::deadline::Progress) compares successive observations to
    /// detect progress. `bytes` is the current size of the dump.
    pub(super) fn sign(&self, bytes: u64) -> Sign {
        match self.watched {
            // Even if the child is stopped or waits for a disk, heapdiff continues to wait, and only prints a message.
            Some(_) => Sign::Child,
            None if bytes > 0 => Sign::Dump(bytes),
            None => Sign::Nothing,
        }
    }

    /// Returns a new message about what the child is waiting for; `None` if there is nothing new. `bytes` is the
    /// current size of the dump.
    pub(super) fn new_wait_message(&mut self, bytes: u64) -> Option<String> {
        let now = Instant::now();
        let pid = match &self.watched {
            Some((pid, _)) => *pid,
            None => {
                let is_due = self.searched.is_none_or(|at| now - at >= SEARCH);
                let found = is_due.then(|| child_of(self.jvm));
                self.searched = is_due.then_some(now).or(self.searched);
                found.flatten()?
            }
        };
        let state = State::read_process(pid)
            .filter(|state| state.parent == self.jvm && state.letter != 'Z');
        let Some(state) = state else {
            self.watched = None;
            return None;
        };
        let (_, window) = self
            .watched
            .get_or_insert_with(|| (pid, Window::new(state, bytes, now)));
        let waits = window.add(state, bytes, now)?;
        if self.told.iter().any(|told| told.matches(waits)) {
            return None;
        }
        self.told.push(waits);
        Some(waits.text(pid))
    }
}

/// Returns the child that a JVM forked: a child process with the same command line as the JVM.
fn child_of(jvm: i32) -> Option<i32> {
    let command = |pid| fs::read(format!("/proc/{pid}/cmdline")).ok();
    let own = command(jvm)?;
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let mut pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.find(|&pid| {
        State::read_process(pid).is_some_and(|state| state.parent == jvm)
            && command(pid).as_ref() == Some(&own)
    })
}

/// Samples the state of a child for the length of one window.
#[derive(Debug)]
struct Window {
    since: Instant,
    /// Processor time of the child at the start of the window (5 seconds), in kernel ticks of 10 ms.
    ticks: u64,
    bytes: u64,
    looks: u32,
    /// Number of checks in which the child had one of three states: running or runnable, in disk sleep, or stopped.
    letters: [u32; 3],
}

impl Window {
    const fn new(state: State, bytes: u64, now: Instant) -> Self {
        Self {
            since: now,
            ticks: state.ticks,
            bytes,
            looks: 0,
            letters: [0; 3],
        }
    }

    /// Records one check of the child's state. At the end of a window, returns the reason why the child waited, and
    /// starts the next window.
    fn add(&mut self, state: State, bytes: u64, now: Instant) -> Option<Waits> {
        self.looks += 1;
        let seen = ["R", "D", "Tt"]
            .iter()
            .position(|l| l.contains(state.letter));
        if let Some(count) = seen.and_then(|at| self.letters.get_mut(at)) {
            *count += 1;
        }
        let time = now - self.since;
        if time < WINDOW {
            return None;
        }
        let mostly = |count: u32| u64::from(count) * 4 >= u64::from(self.looks) * 3;
        let ticks = state.ticks.saturating_sub(self.ticks);
        let had = u128::from(ticks * 1000 / State::TICKS);
        let share = u64::try_from(had * 100 / time.as_millis().max(1)).unwrap_or(u64::MAX);
        let waits = match self.letters.map(mostly) {
            [true, _, _] if share < LITTLE => Some(Waits::Processor(share)),
            [_, true, _] if bytes == self.bytes => Some(Waits::Disk),
            [_, _, true] => Some(Waits::Stopped),
            _ => None,
        };
        *self = Self::new(state, bytes, now);
        waits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the message about a child after one window of 5 seconds. The child's state is checked five times a
    /// second. `letters` are the states that the checks find; they repeat until the end of the window. `ticks` is the
    /// processor time that the child uses in the window, in units of 10 ms. The dump has 7 bytes at first, and `bytes`
    /// bytes at the end of the window.
    fn told(letters: &str, ticks: u64, bytes: u64) -> Option<String> {
        let state = |letter, ticks| State {
            letter,
            parent: 1,
            ticks,
        };
        let start = Instant::now();
        let mut window = Window::new(state('R', 100), 7, start);
        let letters: Vec<char> = letters.chars().cycle().take(26).collect();
        let mut told = Vec::new();
        for (n, &letter) in (0..).zip(&letters) {
            let now = start + Duration::from_millis(200 * n);
            let is_last = n == 25;
            let ticks = if is_last { 100 + ticks } else { 100 };
            told.extend(window.add(state(letter, ticks), if is_last { bytes } else { 7 }, now));
        }
        assert!(told.len() <= 1);
        told.pop().map(|waits| waits.text(77))
    }

    #[test]
    fn the_cause_of_a_childs_wait_is_reported() {
        let processor = "the forked child that writes the dump waits for a processor: it got ";
        let of = |share| {
            Some(format!(
                "{processor}{share} % of one processor in the last 5 s"
            ))
        };
        assert_eq!(told("R", 0, 7), of(0));
        assert_eq!(told("RRRS", 49, 900), of(9));
        assert_eq!(told("R", 50, 7), None, "it runs, with or without bytes");
        assert_eq!(told("RS", 3, 7), None, "it mostly sleeps");
        let disk = told("D", 3, 7).unwrap();
        assert!(disk.ends_with("dump waits for a disk"), "{disk}");
        assert_eq!(told("D", 3, 8), None, "the disk is slow, but it goes on");
        let stopped = told("T", 3, 7).unwrap();
        assert!(
            stopped.ends_with("is stopped; continue it with `kill -CONT 77`"),
            "{stopped}"
        );
        assert_eq!(told("S", 0, 7), None);
    }

    #[test]
    fn no_other_process_is_taken_for_the_child() {
        let mut other = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let own = i32::try_from(std::process::id()).unwrap();
        let found = child_of(own);
        other.kill().unwrap();
        other.wait().unwrap();
        assert_eq!(found, None);
    }
}
