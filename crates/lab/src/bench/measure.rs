//! Runs one process and measures its time and memory.

use std::fmt;
use std::fs;
use std::process::{Child, Command, ExitStatus};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::run::command_text;

/// Time between two checks whether the process has ended. The measured elapsed time is too long by at most this amount.
const TICK: Duration = Duration::from_millis(1);
/// Number of checks between two samples of the process's memory.
const SAMPLE_EVERY: u32 = 5;

/// Time and memory of a process. Memory is in bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Measurement {
    /// Elapsed time.
    pub(crate) wall: Duration,
    /// User and system time of all threads.
    pub(crate) cpu: Duration,
    /// Maximum of the anonymous memory (heap and stacks) in all samples.
    pub(crate) anonymous: u64,
    /// Maximum of the file-backed memory in all samples. This memory consists of mapped pages, which the kernel can
    /// drop.
    pub(crate) file_backed: u64,
    /// Maximum resident memory, anonymous and file-backed together: the kernel's high-water mark (`VmHWM`), read with
    /// the last sample.
    pub(crate) peak: u64,
}

impl Measurement {
    /// Adds the measurement of a process that ran after this one: sums the times, and keeps the larger value of each
    /// memory figure.
    pub(super) fn add(&mut self, next: &Self) {
        self.wall += next.wall;
        self.cpu += next.cpu;
        self.anonymous = self.anonymous.max(next.anonymous);
        self.file_backed = self.file_backed.max(next.file_backed);
        self.peak = self.peak.max(next.peak);
    }

    fn sample(&mut self, pid: u32) {
        // The file is missing if the process has ended, or if the system has no /proc.
        let Ok(status) = fs::read_to_string(format!("/proc/{pid}/status")) else {
            return;
        };
        for line in status.lines() {
            let slot = match line.split_once(':').map(|(key, _)| key) {
                Some("RssAnon") => &mut self.anonymous,
                Some("RssFile") => &mut self.file_backed,
                Some("VmHWM") => &mut self.peak,
                _ => continue,
            };
            let kilobytes = line
                .split_whitespace()
                .nth(1)
                .and_then(|n| n.parse::<u64>().ok());
            *slot = (*slot).max(kilobytes.unwrap_or(0) * 1024);
        }
    }
}

impl fmt::Display for Measurement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:.2} s, {:.2} s CPU, {} MB anonymous, {} MB file-backed, {} MB peak",
            self.wall.as_secs_f64(),
            self.cpu.as_secs_f64(),
            self.anonymous / 1_000_000,
            self.file_backed / 1_000_000,
            self.peak / 1_000_000,
        )
    }
}

/// Kills and reaps the process when dropped, unless the process is known to have ended.
struct Guard {
    child: Child,
    reaped: bool,
}

impl Drop for Guard {
    fn drop(&mut self) {
        if !self.reaped {
            // Ignore the error, because the process may just have ended.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Runs a command until it ends. If the command exceeds the time limit, kills it and returns an error.
pub(crate) fn measure(command: &mut Command, limit: Duration) -> Result<(ExitStatus, Measurement)> {
    // Processes are measured one after the other, so the processor time that is added from now on belongs to this
    // process.
    let cpu_before = children_cpu()?;
    let start = Instant::now();
    let child = command
        .spawn()
        .with_context(|| format!("cannot start {}", command_text(command)))?;
    let mut guard = Guard {
        child,
        reaped: false,
    };
    let pid = guard.child.id();
    let mut measured = Measurement::default();
    for tick in 0u32.. {
        if let Some(status) = guard
            .child
            .try_wait()
            .context("cannot wait for a process")?
        {
            guard.reaped = true;
            measured.wall = start.elapsed();
            measured.cpu = children_cpu()?.saturating_sub(cpu_before);
            return Ok((status, measured));
        }
        if start.elapsed() > limit {
            bail!("the process was ended after {} s", limit.as_secs());
        }
        if tick % SAMPLE_EVERY == 0 {
            measured.sample(pid);
        }
        sleep(TICK);
    }
    bail!("the process was ended after {} s", limit.as_secs())
}

/// Returns the processor time of all children that have ended and were reaped.
#[cfg(unix)]
fn children_cpu() -> Result<Duration> {
    use nix::sys::resource::{UsageWho, getrusage};
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).context("cannot read CPU times")?;
    Ok([usage.user_time(), usage.system_time()]
        .into_iter()
        .map(|time| {
            let seconds = u64::try_from(time.tv_sec()).unwrap_or(0);
            let micros = u64::try_from(time.tv_usec()).unwrap_or(0);
            Duration::from_secs(seconds) + Duration::from_micros(micros)
        })
        .sum())
}

#[cfg(not(unix))]
fn children_cpu() -> Result<Duration> {
    bail!("processor time can be measured only on Unix")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_measured() {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 0.1; exit 3"]);
        let (status, measured) =
            measure(&mut command, Duration::from_secs(20)).expect("sh is there");
        assert_eq!(status.code(), Some(3));
        assert!(measured.wall >= Duration::from_millis(100));
        assert!(measured.peak > 100_000);
    }

    #[test]
    fn a_process_that_hangs_is_ended() {
        let mut command = Command::new("sleep");
        command.arg("60");
        let start = Instant::now();
        let error = measure(&mut command, Duration::from_millis(50)).expect_err("too slow");
        assert!(error.to_string().starts_with("the process was ended after"));
        assert!(start.elapsed() < Duration::from_secs(10));
    }
}
