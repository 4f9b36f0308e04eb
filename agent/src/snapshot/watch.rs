//! The parent's watch over the child: it tells when the walk is over, and ends a child that is stuck or takes memory
//! that is needed.

use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::{Progress, room};
use crate::jvmti::walk::Child;

const POLL: Duration = Duration::from_millis(10);
/// How long a child may do nothing.
const STUCK: Duration = Duration::from_secs(60);
/// How often memory is looked at.
const MEMORY: Duration = Duration::from_millis(20);

/// How a child ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// Its exit code, or the number of the signal that ended it, negative.
    Code(i32),
    Stuck,
    Memory(String),
    /// Its file was removed: nobody waits for it any more.
    Unwanted,
}

/// Waits until the child has ended. Where this ends it, it is killed when it is dropped.
pub(super) fn watch(child: &mut Child, file: &Path) -> Ended {
    let mut moved = Instant::now();
    let mut looked = Instant::now();
    let mut last = child.progress();
    let mut length = 0;
    loop {
        if let Some(code) = child.ended() {
            return Ended::Code(code);
        }
        let before = child.progress();
        let sleeps = state_of(child.pid()) == Some('S');
        let after = child.progress();
        if sleeps && is_over(&before, &after) {
            child.finish();
        }
        if after != last {
            (moved, last) = (Instant::now(), after);
        } else if moved.elapsed() > STUCK {
            return Ended::Stuck;
        }
        if looked.elapsed() > MEMORY {
            looked = Instant::now();
            if let Err(why) = room::still_enough() {
                return Ended::Memory(why);
            }
            let Ok(now) = fs::symlink_metadata(file).map(|file| file.len()) else {
                return Ended::Unwanted;
            };
            // A large array is written within one callback.
            if now != length {
                (moved, length) = (Instant::now(), now);
            }
        }
        sleep(POLL);
    }
}

/// Whether a child that slept between two looks has walked to the end: it is in no callback, and all that was seen was
/// visited.
fn is_over(before: &Progress, after: &Progress) -> bool {
    let tally = &after.tally;
    before == after && !after.busy && after.callbacks > 0 && tally.seen == tally.visited
}

/// The state of a process as the kernel tells it: `S` sleeps until something wakes it.
fn state_of(pid: i32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before it may have blanks and brackets.
    stat.rsplit_once(") ")?.1.chars().next()
}

#[cfg(test)]
mod tests {
    use super::super::Tally;
    use super::*;

    #[test]
    fn the_end_needs_rest_and_completeness() {
        let progress = |callbacks, busy, seen, visited| Progress {
            callbacks,
            busy,
            tally: Tally {
                seen,
                visited,
                ..Tally::default()
            },
        };
        let done = progress(9, false, 5, 5);
        assert!(is_over(&done, &done));
        assert!(!is_over(&progress(8, false, 5, 5), &done), "it moved");
        for other in [
            progress(9, true, 5, 5),
            progress(9, false, 5, 4),
            progress(0, false, 0, 0),
        ] {
            assert!(!is_over(&other, &other), "{other:?}");
        }
    }

    #[test]
    fn the_state_of_a_process() {
        let own = i32::try_from(std::process::id()).unwrap();
        assert!(state_of(own).is_some_and(|state| "RSD".contains(state)));
        assert_eq!(state_of(-1), None);
    }
}
