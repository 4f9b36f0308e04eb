//! Detects that the container runs short of memory, and estimates when its memory is full.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

pub(super) use crate::cgroup::{Memory, memory as group_memory};

/// A limit in percent. Memory is scarce if all tasks waited for memory in at least this percentage of the last ten
/// seconds.
const STALLED: f64 = 10.0;
/// A distance in percentage points. If the percentage of memory in use is below the guard's limit by more than this
/// distance, the kernel's signs of scarce memory are ignored. These signs are a reached limit and tasks that wait for
/// memory. If they were not ignored, a full file cache would look like scarce memory.
const BELOW: u64 = 10;
/// The time span over which the growth of the memory in use is measured.
const SPAN: Duration = Duration::from_secs(10);
/// The growth of the memory in use is measured between two readings. This is the minimum time between them.
const STEP: Duration = Duration::from_millis(500);

/// Signs from the kernel that memory is scarce.
#[derive(Debug, Default)]
pub(super) struct Pressure {
    limit_hits: Option<u64>,
}

impl Pressure {
    /// Returns true if memory is scarce. Signs of scarce memory are: the container's memory limit was reached since the
    /// last call, or tasks wait for memory ([`STALLED`]). `share` is the guard's limit in percent. Returns false in any
    /// case if the percentage of memory in use is more than [`BELOW`] percentage points below `share`.
    pub(super) fn is_short(&mut self, memory: &Memory, share: u64) -> bool {
        let before = self.limit_hits.replace(memory.limit_hits);
        let is_near = super::is_reached(memory.used, memory.limit, share.saturating_sub(BELOW));
        let was_reached = before.is_some_and(|before| memory.limit_hits > before);
        is_near && (was_reached || memory.stalled >= STALLED)
    }
}

/// Readings of the memory in use over the last seconds.
#[derive(Debug, Default)]
pub(super) struct Slope(VecDeque<(Instant, u64)>);

impl Slope {
    pub(super) fn add(&mut self, now: Instant, used: u64) {
        if self
            .0
            .back()
            .is_some_and(|&(at, _)| now.duration_since(at) < STEP)
        {
            return;
        }
        self.0.push_back((now, used));
        while self
            .0
            .front()
            .is_some_and(|&(at, _)| now.duration_since(at) > SPAN)
        {
            self.0.pop_front();
        }
    }

    /// Returns the time until `most` bytes are in use, if the memory in use continues to grow as in these readings.
    /// Returns `None` if the memory in use does not grow.
    pub(super) fn time_to(&self, used: u64, most: u64) -> Option<Duration> {
        let (&(first, from), &(last, to)) = (self.0.front()?, self.0.back()?);
        let millis = u64::try_from(last.duration_since(first).as_millis()).ok()?;
        let grown = to
            .checked_sub(from)
            .filter(|&grown| grown > 0 && millis > 0)?;
        let left = u128::from(most.saturating_sub(used)) * u128::from(millis) / u128::from(grown);
        Some(Duration::from_millis(
            u64::try_from(left).unwrap_or(u64::MAX),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(used: u64, limit_hits: u64, stalled: f64) -> Memory {
        Memory {
            used,
            limit: 1000,
            limit_hits,
            stalled,
        }
    }

    #[test]
    fn reached_limits_and_stalls_are_signs_of_short_memory() {
        let mut pressure = Pressure::default();
        assert!(
            !pressure.is_short(&memory(850, 5, 0.0), 90),
            "hits before the start"
        );
        assert!(!pressure.is_short(&memory(850, 5, 0.0), 90));
        assert!(pressure.is_short(&memory(850, 6, 0.0), 90));
        assert!(!pressure.is_short(&memory(850, 6, 9.9), 90));
        assert!(pressure.is_short(&memory(850, 6, 10.0), 90));
        assert!(
            !pressure.is_short(&memory(500, 9, 50.0), 90),
            "the file cache was full"
        );
    }

    #[test]
    fn the_slope_gives_the_time_that_is_left() {
        let mut slope = Slope::default();
        let start = Instant::now();
        assert_eq!(slope.time_to(1, 2), None);
        for second in 0..30 {
            slope.add(start + Duration::from_secs(second), second * 10);
        }
        assert!(slope.0.len() <= 11, "only the last seconds");
        assert_eq!(slope.time_to(290, 390), Some(Duration::from_secs(10)));
        let mut level = Slope::default();
        level.add(start, 10);
        level.add(start + STEP, 10);
        assert_eq!(level.time_to(10, 20), None);
    }
}
