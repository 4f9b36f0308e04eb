//! Matches GC pauses, which the agent measures, with GCs, which the JVM's management beans report.

use std::time::{Duration, Instant};

use crate::pauses::Pause;

/// Maximum difference between the times of a GC, which its bean reports, and the times of the GC's pause, which the
/// agent measures. The times differ, because a bean reports whole milliseconds. This limit applies if the offset
/// between the GC's clock and the agent's clock is exact ([`Clock`]).
const NEAR: Duration = Duration::from_millis(5);
/// Maximum difference between the times of a GC and of its pause if the offset between the GC's clock and the agent's
/// clock is only an estimate.
const FAR: Duration = Duration::from_millis(400);

/// A GC that a bean reports.
pub(crate) struct LastGc {
    pub(crate) start: Instant,
    pub(crate) end: Instant,
    /// End on the GC's clock, in milliseconds. `None` if the bean reports no times.
    pub(crate) end_ms: Option<u64>,
    pub(crate) before: u64,
    pub(crate) after: u64,
}

/// Converts times of the GC's clock to the agent's clock. The GC's clock starts when the JVM's initialization ends. The
/// JVM reports this moment as its start time.
///
/// At first, the offset between the two clocks is computed from this start time. This offset is wrong if the system's
/// clock was changed since then. Once a pause has been matched with a GC, the offset is exact.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// The time on the agent's clock when the GC's clock was 0.
    zero: Option<Instant>,
    /// True if the offset between the two clocks is exact, because a pause was matched with its GC.
    exact: bool,
}

impl Clock {
    /// Creates a clock. `since_start` is the time from the JVM's start time until `now`.
    pub(crate) fn new(since_start: Duration, now: Instant) -> Self {
        Self {
            zero: now.checked_sub(since_start),
            exact: false,
        }
    }

    /// Records that a GC was seen at the time `now`. `end_ms` is the end of this GC on the GC's clock.
    pub(crate) fn record_gc_end(&mut self, end_ms: u64, now: Instant) {
        let Some(zero) = now.checked_sub(Duration::from_millis(end_ms)) else {
            return;
        };
        if !self.exact && self.zero.is_none_or(|before| zero < before) {
            self.zero = Some(zero);
        }
    }

    pub(crate) fn at(&self, ms: u64, now: Instant) -> Instant {
        let at = self
            .zero
            .and_then(|zero| zero.checked_add(Duration::from_millis(ms)));
        at.unwrap_or(now).min(now)
    }

    /// Removes and returns the pauses that belong to a GC:
    ///
    /// - If the GC is the cycle of a concurrent collector (`cycle`): all pauses during the cycle.
    /// - If the bean reports no times for the GC: the first pause.
    /// - Otherwise: the pause that fits the times of the GC best, if any pause is near the GC.
    pub(crate) fn take_pauses(
        &mut self,
        gc: &LastGc,
        cycle: bool,
        pauses: &mut Vec<Pause>,
    ) -> Vec<Pause> {
        let slack = if self.exact { NEAR } else { FAR };
        let near = |p: &Pause| p.end + slack >= gc.start && p.start <= gc.end + slack;
        if cycle {
            let (claimed, left) = pauses.drain(..).partition(near);
            *pauses = left;
            return claimed;
        }
        let Some(end_ms) = gc.end_ms else {
            return pauses.drain(..pauses.len().min(1)).collect();
        };
        let lasted = gc.end.saturating_duration_since(gc.start);
        let differs = |p: &Pause| p.length().abs_diff(lasted);
        let far = |p: &Pause| {
            let late = p.end.saturating_duration_since(gc.end);
            late.max(gc.end.saturating_duration_since(p.end))
        };
        // Returns the part of the GC's time that is outside of the pause. Normally, the pause of a GC begins before the
        // GC and ends after the GC. On a busy machine, the pause may begin much earlier or end much later.
        let outside = |p: &Pause| {
            p.start.saturating_duration_since(gc.start) + gc.end.saturating_duration_since(p.end)
        };
        let best = pauses
            .iter()
            .enumerate()
            .filter(|(_, p)| near(p))
            .min_by_key(|(_, p)| 2 * outside(p) + far(p) + differs(p));
        let Some((at, _)) = best else {
            return Vec::new();
        };
        let pause = pauses.remove(at);
        // On a busy machine, the GC's thread may wait between the moments at which the bean and the agent read their
        // clocks. The offset between the two clocks cannot be computed from such a pause.
        if differs(&pause) <= NEAR {
            self.set_offset(end_ms, &pause);
        }
        vec![pause]
    }

    /// Computes and stores the exact offset between the GC's clock and the agent's clock. `pause` belongs to a GC that
    /// ended at `end_ms` on the GC's clock.
    fn set_offset(&mut self, end_ms: u64, pause: &Pause) {
        if let Some(zero) = pause.end.checked_sub(Duration::from_millis(end_ms)) {
            self.zero = Some(zero);
            self.exact = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// Returns a GC that a bean reports from `start` to `end`, in milliseconds on the GC's clock. The agent has seen
    /// this GC at the time `now`.
    fn gc(clock: &mut Clock, start: u64, end: u64, now: Instant) -> LastGc {
        clock.record_gc_end(end, now);
        LastGc {
            start: clock.at(start, now),
            end: clock.at(end, now),
            end_ms: Some(end),
            before: 0,
            after: 0,
        }
    }

    #[test]
    fn a_gc_that_is_seen_late_has_its_pause() {
        let zero = Instant::now();
        let mut clock = Clock::new(ms(200), zero + ms(230));
        let mut pauses = vec![Pause::new(zero + ms(100), zero + ms(115))];
        let late = gc(&mut clock, 100, 115, zero + ms(900));
        assert_eq!(clock.take_pauses(&late, false, &mut pauses).len(), 1);
        assert!(pauses.is_empty());
    }

    #[test]
    fn a_pause_longer_than_its_gc_belongs_to_it() {
        let zero = Instant::now();
        let mut clock = Clock::new(ms(200), zero + ms(200));
        let mut pauses = vec![Pause::new(zero + ms(100), zero + ms(110))];
        let first = gc(&mut clock, 100, 110, zero + ms(200));
        assert_eq!(clock.take_pauses(&first, false, &mut pauses).len(), 1);
        assert!(clock.exact);
        // The thread of the GC waited for 80 ms before the pause ended.
        pauses.push(Pause::new(zero + ms(300), zero + ms(384)));
        pauses.push(Pause::new(zero + ms(386), zero + ms(390)));
        let long = gc(&mut clock, 300, 304, zero + ms(400));
        let claimed = clock.take_pauses(&long, false, &mut pauses);
        assert_eq!(claimed[0].start, zero + ms(300));
        assert_eq!(clock.at(0, zero + ms(400)), zero);
        let second = gc(&mut clock, 386, 390, zero + ms(400));
        assert_eq!(clock.take_pauses(&second, false, &mut pauses).len(), 1);
        assert!(pauses.is_empty());
    }

    #[test]
    fn the_pause_that_contains_a_gc_belongs_to_it() {
        let zero = Instant::now();
        let mut clock = Clock::new(ms(0), zero);
        // The first pause contains the GC. The GC's thread then waited for 60 ms before this pause ended. The second
        // pause is as long as the GC, but begins after the GC.
        let mut pauses = vec![
            Pause::new(zero + ms(100), zero + ms(164)),
            Pause::new(zero + ms(166), zero + ms(170)),
        ];
        let first = gc(&mut clock, 100, 104, zero + ms(200));
        let claimed = clock.take_pauses(&first, false, &mut pauses);
        assert_eq!(claimed[0].start, zero + ms(100));
    }

    #[test]
    fn a_bean_without_times_has_the_first_pause() {
        let zero = Instant::now();
        let mut clock = Clock::new(ms(0), zero);
        let mut pauses = vec![
            Pause::new(zero, zero + ms(20)),
            Pause::new(zero + ms(30), zero + ms(50)),
        ];
        let mut unknown = gc(&mut clock, 0, 0, zero + ms(60));
        unknown.end_ms = None;
        let claimed = clock.take_pauses(&unknown, false, &mut pauses);
        assert_eq!((claimed[0].start, pauses.len()), (zero, 1));
    }
}
