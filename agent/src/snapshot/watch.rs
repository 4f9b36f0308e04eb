//! Watches the child from the parent. Detects when the child's heap walk is over. Ends a child that hangs, or that uses
//! memory which other processes need.

use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::Progress;
use super::walk::Child;

const POLL: Duration = Duration::from_millis(10);
/// Maximum time without progress. While the child sleeps, wall-clock time counts. While the child is runnable, only its
/// CPU time counts: it may have the lowest priority, and then it waits long for a CPU on a busy machine.
const STUCK: Duration = Duration::from_secs(60);
/// A child that waits for another thread is ended after this number of consecutive checks without any change. The child
/// has no other thread, so it would wait forever.
const LOOKS: u32 = 5;
/// Interval between checks of free memory.
const MEMORY: Duration = Duration::from_millis(20);

/// How a child ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// The child ended with this exit code. A negative number is the negated number of the signal that ended it.
    Code(i32),
    Stuck,
    /// The child waits forever, because it waits for another thread and has only one.
    Locked,
    Memory(String),
    /// The dump file was removed, so nobody waits for the dump.
    Unwanted,
}

/// Watches the child until the child has ended or must be ended, for example because `room` returns an error: memory is
/// scarce. If the child still runs when this function returns, dropping `child` kills it.
///
/// `file` is the dump file, or `None` for a pipe. If the dump file is removed, this function ends the child. If the
/// dump goes to a pipe that nobody reads any more, the child itself fails when it writes.
pub(super) fn watch(
    child: &mut Child,
    file: Option<&Path>,
    mut room: impl FnMut() -> Result<(), String>,
) -> Ended {
    let mut moved = Instant::now();
    let mut looked = Instant::now();
    let mut last = child.progress();
    let mut written = None;
    let mut used = 0;
    let mut locked = 0;
    loop {
        if let Some(code) = child.try_wait() {
            return Ended::Code(code);
        }
        let before = child.progress();
        let state = State::read_process(child.pid());
        let sleeps = state.is_some_and(|state| state.letter == 'S');
        let after = child.progress();
        let is_over = sleeps && has_finished_walk(&before, &after);
        if is_over {
            child.finish();
        }
        let waits = sleeps && !is_over && after == last && waits_for_a_thread(child.pid());
        locked = if waits { locked + 1 } else { 0 };
        if locked >= LOOKS {
            return Ended::Locked;
        }
        if after != last {
            (moved, last) = (Instant::now(), after);
            used = state.map_or(used, |state| state.ticks);
        } else if moved.elapsed() > STUCK && state.is_none_or(|state| state.is_stuck(used)) {
            return Ended::Stuck;
        }
        if looked.elapsed() > MEMORY {
            looked = Instant::now();
            if let Err(why) = room() {
                return Ended::Memory(why);
            }
            if file.is_some_and(|file| length_of(file).is_none()) && !child.is_done() {
                return Ended::Unwanted;
            }
            // The child writes a large array within one callback. So count written bytes as progress, too.
            let now = written_by(child.pid()).or_else(|| length_of(file?));
            if now != written {
                (moved, written) = (Instant::now(), now);
                used = state.map_or(used, |state| state.ticks);
            }
        }
        sleep(POLL);
    }
}

/// True if a child has finished its heap walk. The child slept between two readings of its progress. The walk is over
/// if the two readings are equal, the child is not in a callback, and all objects that were seen have been visited.
fn has_finished_walk(before: &Progress, after: &Progress) -> bool {
    let tally = &after.tally;
    before == after && !after.busy && after.callbacks > 0 && tally.seen == tally.visited
}

/// The state of a process as the kernel reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State {
    /// `S` for sleeping, `R` for running or runnable.
    pub letter: char,
    /// Id of the parent process.
    pub parent: i32,
    /// CPU time that the process has used. The unit is 1 / [`State::TICKS`] seconds.
    pub ticks: u64,
}

impl State {
    /// Kernel ticks per second, the unit of CPU times in `/proc`.
    pub const TICKS: u64 = 100;

    /// Reads the state of a process; `None` if the process does not exist.
    #[must_use]
    pub fn read_process(pid: i32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        Self::read(&stat)
    }

    /// Reads the state of one thread of a process; `None` if the thread does not exist.
    #[must_use]
    pub fn of_thread(pid: i32, thread: i32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/task/{thread}/stat")).ok()?;
        Self::read(&stat)
    }

    fn read(stat: &str) -> Option<Self> {
        // The process name, which precedes the state in the line, may contain spaces and brackets.
        let mut words = stat.rsplit_once(") ")?.1.split_ascii_whitespace();
        let letter = words.next()?.chars().next()?;
        let parent = words.next()?.parse().ok()?;
        // The process's CPU time in user mode, and its CPU time in kernel mode.
        let (own, kernel) = (words.nth(9)?, words.next()?);
        let ticks = own.parse::<u64>().ok()? + kernel.parse::<u64>().ok()?;
        Some(Self {
            letter,
            parent,
            ticks,
        })
    }

    /// True if the process sleeps, or if its CPU time since its last progress exceeds the limit. `used` is its CPU time
    /// at the last progress.
    fn is_stuck(self, used: u64) -> bool {
        self.letter != 'R' || self.ticks.saturating_sub(used) > STUCK.as_secs() * Self::TICKS
    }
}

/// True if the main thread of a process waits for another thread without a timeout. If the kernel does not show what
/// the thread waits for, returns false.
fn waits_for_a_thread(pid: i32) -> bool {
    let call = fs::read_to_string(format!("/proc/{pid}/syscall"));
    call.is_ok_and(|call| is_endless_wait(&call))
}

/// True if a line of `/proc/PID/syscall` shows a futex wait without a timeout.
fn is_endless_wait(call: &str) -> bool {
    let mut words = call.split_ascii_whitespace();
    let number = words.next().and_then(|word| word.parse().ok());
    let mut argument = |n| {
        let word: Option<&str> = words.nth(n);
        u64::from_str_radix(word?.strip_prefix("0x")?, 16).ok()
    };
    // The second argument of `futex` is the operation, the fourth is the timeout.
    let (operation, timeout) = (argument(1), argument(1));
    let flags = u64::from((libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME).unsigned_abs());
    let waits = [
        libc::FUTEX_WAIT,
        libc::FUTEX_WAIT_BITSET,
        libc::FUTEX_LOCK_PI,
    ];
    number == Some(libc::SYS_futex)
        && operation.is_some_and(|o| {
            waits
                .iter()
                .any(|w| u64::from(w.unsigned_abs()) == o & !flags)
        })
        && timeout == Some(0)
}

/// Returns the number of bytes that a process has written to files and pipes. Returns `None` if the kernel does not
/// show this number.
fn written_by(pid: i32) -> Option<u64> {
    let counts = fs::read_to_string(format!("/proc/{pid}/io")).ok()?;
    let written = counts
        .lines()
        .find_map(|line| line.strip_prefix("wchar: "))?;
    written.parse().ok()
}

/// Returns the length of a file; `None` if the file does not exist.
fn length_of(file: &Path) -> Option<u64> {
    Some(fs::symlink_metadata(file).ok()?.len())
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::super::Tally;
    use super::*;

    #[test]
    fn the_walk_ends_when_idle_and_complete() {
        let progress = |callbacks, busy, seen, visited| Progress {
            callbacks,
            sent: false,
            busy,
            tally: Tally {
                seen,
                visited,
                ..Tally::default()
            },
        };
        let done = progress(9, false, 5, 5);
        assert!(has_finished_walk(&done, &done));
        assert!(
            !has_finished_walk(&progress(8, false, 5, 5), &done),
            "it moved"
        );
        for other in [
            progress(9, true, 5, 5),
            progress(9, false, 5, 4),
            progress(0, false, 0, 0),
        ] {
            assert!(!has_finished_walk(&other, &other), "{other:?}");
        }
    }

    #[test]
    fn an_endless_wait_is_recognized() {
        let call = |number: i64, operation: &str, timeout: &str| {
            is_endless_wait(&format!(
                "{number} 0x7f3257d62300 {operation} 0x2 {timeout} 0x0 0x0 0x7f3255248258 0x7f3257e9712b\n"
            ))
        };
        let futex = libc::SYS_futex;
        for operation in ["0x80", "0x0", "0x189", "0x86"] {
            assert!(call(futex, operation, "0x0"), "{operation}");
            assert!(!call(futex, operation, "0x7f3255248200"), "{operation}");
            assert!(!call(libc::SYS_write, operation, "0x0"), "{operation}");
        }
        assert!(!call(futex, "0x81", "0x0"), "it wakes others");
        for other in ["running\n", "", "-1 0x7f32 0x7f33", "202", "202 0x80"] {
            assert!(!is_endless_wait(other), "{other}");
        }
    }

    /// Starts a process that waits without end, like a child that waits for a lock which another thread held at the
    /// fork. Checks that `watch` detects this wait at once.
    #[test]
    #[expect(clippy::zombie_processes, reason = "`Child` waits for it")]
    fn a_child_that_waits_for_a_thread_is_given_up_at_once() {
        const WAITS: &str = "HEAPDIFF_TEST_WAITS";
        if std::env::var_os(WAITS).is_some() {
            // This code runs in the process that is started below, in its main thread or in another thread. In the
            // second case, the main thread waits for that other thread. So the process waits until `watch` ends it.
            loop {
                std::thread::park();
            }
        }
        let name = concat!(
            module_path!(),
            "::a_child_that_waits_for_a_thread_is_given_up_at_once"
        );
        let (_, name) = name.split_once("::").unwrap();
        let waiter = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--test-threads=1"])
            .env(WAITS, "1")
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut child = Child::of(i32::try_from(waiter.id()).unwrap());
        let started = Instant::now();
        let ended = watch(&mut child, None, || {
            let late = || "too late".to_owned();
            (started.elapsed() < STUCK / 2)
                .then_some(())
                .ok_or_else(late)
        });
        assert_eq!(ended, Ended::Locked);
    }

    #[test]
    fn a_sleeping_process_does_not_wait_for_a_thread() {
        let mut sleeper = Command::new("sleep").arg("60").spawn().unwrap();
        let pid = i32::try_from(sleeper.id()).unwrap();
        let call = || fs::read_to_string(format!("/proc/{pid}/syscall"));
        let deadline = Instant::now() + Duration::from_secs(20);
        while call().is_ok_and(|call| call == "running\n") && Instant::now() < deadline {
            sleep(POLL);
        }
        let waits = waits_for_a_thread(pid);
        sleeper.kill().unwrap();
        sleeper.wait().unwrap();
        assert!(!waits && !waits_for_a_thread(-1));
    }

    #[test]
    fn the_state_of_a_process_is_parsed() {
        let own = i32::try_from(std::process::id()).unwrap();
        assert!(State::read_process(own).is_some_and(|state| "RSD".contains(state.letter)));
        assert_eq!(State::read_process(-1), None);
        let stat = "77 (a (b) c) R 1 7 7 0 -1 4194560 9 0 0 0 250 31 0 0 39 19 1 0 5 6 7";
        let state = State {
            letter: 'R',
            parent: 1,
            ticks: 281,
        };
        assert_eq!(State::read(stat), Some(state));
    }

    #[test]
    fn bytes_written_to_a_pipe_are_counted() {
        // The pipe's buffer has room for all of the data, so no reader is needed.
        let script = "head -c 36864 /dev/zero; exec sleep 60";
        let mut child = Command::new("sh")
            .args(["-c", script])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let deadline = Instant::now() + Duration::from_secs(20);
        // `head` is a child of the shell. Once the shell has waited for `head`, the kernel adds the bytes that `head`
        // has written to the bytes of the shell.
        let is_seen = || written_by(pid).is_some_and(|bytes| bytes >= 36_864);
        while !is_seen() && Instant::now() < deadline {
            sleep(POLL);
        }
        let written = written_by(pid);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(written.is_some_and(|bytes| bytes >= 36_864), "{written:?}");
        assert_eq!(written_by(-1), None);
    }

    #[test]
    fn the_file_length_replaces_missing_kernel_counters() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("dump");
        assert_eq!(length_of(&file), None);
        fs::write(&file, "part").unwrap();
        assert_eq!(length_of(&file), Some(4));
    }

    #[test]
    #[expect(clippy::zombie_processes, reason = "`Child` waits for it")]
    fn the_child_is_killed_before_memory_runs_out() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("dump");
        fs::write(&file, "part").unwrap();
        let started = || {
            let sleeper = Command::new("sleep").arg("60").spawn().unwrap();
            Child::of(i32::try_from(sleeper.id()).unwrap())
        };
        // The reported free memory shrinks while the child works, as if other processes used more and more memory.
        let mut left = 3;
        let mut child = started();
        let ended = watch(&mut child, Some(&file), || {
            left -= 1;
            let short = || "the container has 1 byte of memory left".to_owned();
            (left > 0).then_some(()).ok_or_else(short)
        });
        assert_eq!(left, 0, "not at the first look");
        assert!(matches!(ended, Ended::Memory(why) if why.contains("of memory left")));
        let pid = child.pid();
        assert!(State::read_process(pid).is_some());
        drop(child);
        assert_eq!(State::read_process(pid), None, "killed, and waited for");
        // If the dump file was removed, nobody waits for the dump.
        fs::remove_file(&file).unwrap();
        let mut child = started();
        assert_eq!(watch(&mut child, Some(&file), || Ok(())), Ended::Unwanted);
    }

    #[test]
    fn a_child_that_waits_for_a_processor_is_not_stuck() {
        let state = |letter, ticks| State {
            letter,
            parent: 1,
            ticks,
        };
        assert!(!state('R', 281).is_stuck(280), "it hardly ran");
        assert!(state('R', 6300).is_stuck(280), "it ran for a minute");
        assert!(
            state('S', 281).is_stuck(280),
            "it waits for what never comes"
        );
    }
}
