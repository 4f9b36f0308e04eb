//! Pauses after each batch of changed classes. In these pauses the JVM compiles the program's code again.
//!
//! Each batch stops the program for some milliseconds. HotSpot discards the compiled code that contains a method of a
//! changed class. The methods in this code run in the interpreter until they are compiled again.
//!
//! When the first class of a JVM is changed, HotSpot usually discards all compiled code. The exception is a JVM in
//! which an agent was loaded at the start. Only then do the compilers record from the start which code contains which
//! method (`VM_RedefineClasses::flush_dependent_code`).

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Length of a pause, as a multiple of the time of the batch before it. With this factor, batches stop the program for
/// at most a quarter of the time. If a batch takes more than 1.6 seconds, [`MOST`] limits the pause.
const TIMES: u32 = 3;
/// Maximum length of a pause.
const MOST: Duration = Duration::from_secs(5);
/// Interval between checks of the compiler threads.
const LOOK: Duration = Duration::from_millis(50);
/// Limit in percent of one processor. The JIT compilers count as idle if they use less than this percentage.
const CALM: u128 = 20;
/// Number of consecutive checks that must find the JIT compilers idle ([`CALM`]) before the pause after the first batch
/// ends. The first batch has one class. After [`MOST`], this pause ends in any case.
const LOOKS: u32 = 5;

/// True if a class of this JVM has been changed before.
static CHANGED: AtomicBool = AtomicBool::new(false);

/// Returns the number of classes in the next batch. The first batch in a JVM has one class. Each other batch has `size`
/// classes.
pub(super) fn portion(size: usize) -> usize {
    if CHANGED.load(Relaxed) { size } else { 1 }
}

/// Pauses after a batch that took `time`. Calls `look` about every [`LOOK`]. If `look` returns true, the pause ends
/// early.
pub(super) fn pause_after_batch(time: Duration, look: impl Fn() -> bool) {
    let start = Instant::now();
    if CHANGED.swap(true, Relaxed) {
        let rest = (time * TIMES).min(MOST);
        while !look() && start.elapsed() < rest {
            sleep(rest.saturating_sub(start.elapsed()).min(LOOK));
        }
        return;
    }
    let (threads, mut calm) = (compilers(), 0);
    let mut wanted = thread_time(&threads);
    while !look() && calm < LOOKS && start.elapsed() < MOST {
        let begun = Instant::now();
        sleep(LOOK);
        let now = thread_time(&threads);
        let share = now.saturating_sub(wanted).as_nanos() * 100 / begun.elapsed().as_nanos().max(1);
        calm = if share < CALM { calm + 1 } else { 0 };
        wanted = now;
    }
}

/// Returns the ids of the threads of the JIT compilers. Finds them by the beginnings of their names, because the kernel
/// keeps only the first 15 bytes of a name such as `C2 CompilerThread0`.
fn compilers() -> Vec<String> {
    let tasks = fs::read_dir("/proc/self/task");
    let compiles = tasks.into_iter().flatten().flatten().filter(|task| {
        let name = fs::read_to_string(task.path().join("comm"));
        name.is_ok_and(|name| name.contains("CompilerTh"))
    });
    let names = compiles.filter_map(|task| task.file_name().into_string().ok());
    names.collect()
}

/// Returns the total time in which the threads ran or waited for a processor.
fn thread_time(threads: &[String]) -> Duration {
    let time = |thread: &String| -> Option<u64> {
        let text = fs::read_to_string(format!("/proc/self/task/{thread}/schedstat")).ok()?;
        let mut times = text.split_ascii_whitespace();
        let [ran, waited] = [times.next()?, times.next()?];
        Some(ran.parse::<u64>().ok()? + waited.parse::<u64>().ok()?)
    };
    Duration::from_nanos(threads.iter().filter_map(time).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_class_is_changed_alone_and_pauses_scale_with_time() {
        assert_eq!(portion(32), 1);
        pause_after_batch(Duration::ZERO, || true);
        assert_eq!(portion(32), 32);
        let rested = |time, ends: bool| {
            let start = Instant::now();
            pause_after_batch(time, || ends);
            start.elapsed()
        };
        let time = Duration::from_millis(20);
        assert!(rested(time, false) >= time * TIMES);
        assert!(rested(Duration::from_secs(900), true) < MOST);
        // This test process has no JVM compiler threads, so the sum of their times is zero.
        assert_eq!(thread_time(&compilers()), Duration::ZERO);
    }
}
