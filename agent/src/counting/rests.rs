//! Rests between two portions of classes, in which the program catches up.
//!
//! Each portion stops the program for some milliseconds, and HotSpot discards the compiled code that contains a method of a changed
//! class. The methods run in the interpreter until they are compiled again.
//!
//! HotSpot discards all compiled code when the first class of a JVM is changed, unless an agent was loaded at the start of the JVM:
//! only then the compilers record from the start which code contains which method (`VM_RedefineClasses::flush_dependent_code`).

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A rest takes as many times what the portion before it took: the program is stopped for at most a quarter of the time.
const TIMES: u32 = 3;
/// Maximum time of a rest.
const MOST: Duration = Duration::from_secs(5);
/// How often is looked at the compilers.
const LOOK: Duration = Duration::from_millis(50);
/// Compilers that want less than this part of one processor have caught up, in percent.
const CALM: u128 = 20;
/// Number of checks that have to find the compilers idle before the rest after the first class ends.
const LOOKS: u32 = 5;

/// True if a class of this JVM was changed before.
static CHANGED: AtomicBool = AtomicBool::new(false);

/// Returns the number of classes of a portion: one if it is the first of the JVM, else `size`.
pub(super) fn portion(size: usize) -> usize {
    if CHANGED.load(Relaxed) { size } else { 1 }
}

/// Rests after a portion that took this time. Calls `look` from time to time, which returns true to end the rest.
pub(super) fn rest(time: Duration, look: impl Fn() -> bool) {
    let start = Instant::now();
    if CHANGED.swap(true, Relaxed) {
        let rest = (time * TIMES).min(MOST);
        while !look() && start.elapsed() < rest {
            sleep(rest.saturating_sub(start.elapsed()).min(LOOK));
        }
        return;
    }
    let (threads, mut calm) = (compilers(), 0);
    let mut wanted = wanted_by(&threads);
    while !look() && calm < LOOKS && start.elapsed() < MOST {
        let begun = Instant::now();
        sleep(LOOK);
        let now = wanted_by(&threads);
        let share = now.saturating_sub(wanted).as_nanos() * 100 / begun.elapsed().as_nanos().max(1);
        calm = if share < CALM { calm + 1 } else { 0 };
        wanted = now;
    }
}

/// The threads that compile, by id: the kernel keeps 15 bytes of `C2 CompilerThread0`.
fn compilers() -> Vec<String> {
    let tasks = fs::read_dir("/proc/self/task");
    let compiles = tasks.into_iter().flatten().flatten().filter(|task| {
        let name = fs::read_to_string(task.path().join("comm"));
        name.is_ok_and(|name| name.contains("CompilerTh"))
    });
    let names = compiles.filter_map(|task| task.file_name().into_string().ok());
    names.collect()
}

/// The time in which threads ran, or waited for a processor.
fn wanted_by(threads: &[String]) -> Duration {
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
    fn the_first_class_is_changed_alone_and_rests_follow_the_time() {
        assert_eq!(portion(32), 1);
        rest(Duration::ZERO, || true);
        assert_eq!(portion(32), 32);
        let rested = |time, ends: bool| {
            let start = Instant::now();
            rest(time, || ends);
            start.elapsed()
        };
        let time = Duration::from_millis(20);
        assert!(rested(time, false) >= time * TIMES);
        assert!(rested(Duration::from_secs(900), true) < MOST);
        // No thread here has the name of a JVM's.
        assert_eq!(wanted_by(&compilers()), Duration::ZERO);
    }
}
