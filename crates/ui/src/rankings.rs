//! Caches answers, because a page repeats its request after each change of a trace, and ranking a long trace takes
//! time. A ranking is reused until ten times its computing time has passed. Only the selection and the order of lines
//! can be out of date: the figures of the lines are always read again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use heapdiff_trace::{Ranking, Window};

use crate::by::By;

/// How long an answer is valid, as a multiple of the time to compute it.
const HOLDS: u32 = 10;
/// Maximum number of cached answers of one kind for a trace, shared by all pages.
const MOST: usize = 16;
/// Tolerance for the end of a time window, because the agent's writes can be late or cover long periods. A cached
/// answer is reused for a window that ends later. The difference may be at most the time since the computation plus
/// this tolerance.
const STEP: Duration = Duration::from_secs(2);

/// The cached rankings of one trace, by run.
pub(crate) type Rankings = Cached<(i64, By), Ranking>;

/// Cached answers to requests for windows.
#[derive(Debug)]
pub(crate) struct Cached<K, T>(Vec<CachedAnswer<K, T>>);

#[derive(Debug)]
struct CachedAnswer<K, T> {
    of: K,
    window: Window,
    at: Instant,
    until: Instant,
    answer: Arc<T>,
}

impl<K, T> Default for Cached<K, T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: PartialEq, T> Cached<K, T> {
    /// Returns the answer for a window: a valid cached one, or a new one from `make`.
    pub(crate) fn of<E>(
        &mut self,
        of: K,
        window: Window,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<Arc<T>, E> {
        let begun = Instant::now();
        self.0.retain(|told| begun < told.until);
        let same = |told: &&CachedAnswer<K, T>| told.of == of && told.follows(window, begun);
        if let Some(told) = self.0.iter().find(same) {
            return Ok(Arc::clone(&told.answer));
        }
        let answer = Arc::new(make()?);
        let done = Instant::now();
        if self.0.len() >= MOST {
            self.0.remove(0);
        }
        self.0.push(CachedAnswer {
            of,
            window,
            at: begun,
            until: done + (done - begun) * HOLDS,
            answer: Arc::clone(&answer),
        });
        Ok(answer)
    }
}

impl<K, T> CachedAnswer<K, T> {
    /// Returns true if the answer can be used for `window`. The window of the answer must have the same length or the
    /// same start. `window` must not end earlier than the window of the answer. It may end later, by at most the time
    /// since the computation plus [`STEP`].
    fn follows(&self, window: Window, now: Instant) -> bool {
        let moved = window.to_ms.checked_sub(self.window.to_ms);
        let passed = (now.saturating_duration_since(self.at) + STEP).as_millis();
        let length = |w: Window| w.to_ms.saturating_sub(w.from_ms);
        moved.is_some_and(|ms| u128::from(ms) <= passed)
            && (window.from_ms == self.window.from_ms || length(window) == length(self.window))
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::time::Duration;

    use heapdiff_trace::synthetic::{Scene, write};
    use heapdiff_trace::{Timeline, Trace, Window};

    use super::{By, Rankings};

    #[test]
    fn slow_rankings_are_reused_for_a_while() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.db");
        write(&path, &Scene::default()).unwrap();
        let trace = Trace::open(&path).unwrap();
        let run = trace.runs().unwrap().remove(0);
        let timeline = Timeline::of(&trace, &run, Window::ALL).unwrap();
        // Compute the ranking before the calls of `ask`, so that only the delay `ms` determines how long each answer
        // takes.
        let ranking = By::Stack.rank(&trace, &timeline).unwrap();
        let mut rankings = Rankings::default();
        let mut made = 0;
        let mut ask = |run_id, by, from_ms, to_ms, ms| {
            let window = Window { from_ms, to_ms };
            let ranking = rankings.of((run_id, by), window, || {
                made += 1;
                std::thread::sleep(Duration::from_millis(ms));
                Ok::<_, Infallible>(ranking.clone())
            });
            let Ok(_) = ranking;
            made
        };
        // Computing this answer takes a second, so it is valid for ten seconds. The test takes less time.
        assert_eq!(ask(1, By::Class, 0, 60_000, 1000), 1);
        assert_eq!(ask(1, By::Class, 0, 60_000, 0), 1);
        assert_eq!(ask(1, By::Class, 0, 61_000, 0), 1, "it goes on");
        assert_eq!(ask(1, By::Class, 1000, 61_000, 0), 1, "it moves on");
        assert_eq!(ask(1, By::Class, 0, 90_000, 0), 2, "another time");
        assert_eq!(ask(1, By::Class, 20_000, 60_000, 0), 3, "another part");
        assert_eq!(ask(1, By::Stack, 0, 60_000, 0), 4);
        assert_eq!(ask(2, By::Class, 0, 60_000, 0), 5);
        // An answer is valid for [`HOLDS`] times as long as its computation took. This answer was computed in almost no
        // time, so it is no longer valid.
        std::thread::sleep(Duration::from_millis(500));
        assert_eq!(ask(2, By::Class, 0, 60_000, 0), 6);
    }
}
