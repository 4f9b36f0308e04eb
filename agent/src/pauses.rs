//! Records GC pauses in the GC's callbacks.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use crate::jvmti::perf::{Counter, Perf, TEXT};

/// Maximum number of pauses that are stored until the trace's thread takes them.
const MOST: usize = 1024;
/// The text that the JVM reports as the cause while no GC runs.
const NO_CAUSE: &[u8] = b"No GC";

/// One GC pause.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pause {
    pub(crate) start: Instant,
    pub(crate) end: Instant,
    cause: [u8; TEXT],
}

impl Pause {
    #[cfg(test)]
    pub(crate) fn new(start: Instant, end: Instant) -> Self {
        let cause = [0; TEXT];
        Self { start, end, cause }
    }

    pub(crate) fn length(&self) -> Duration {
        self.end.saturating_duration_since(self.start)
    }

    /// Returns the cause as the JVM describes it. The string is empty if the JVM has no performance counters.
    pub(crate) fn cause(&self) -> String {
        text(&self.cause)
    }
}

fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// The performance counters that contain the cause of the current and of the last GC.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Causes {
    pub(crate) perf: Perf,
    pub(crate) now: Option<Counter>,
    pub(crate) last: Option<Counter>,
}

impl Causes {
    fn bytes(&self) -> [u8; TEXT] {
        let read = |counter: Option<Counter>| counter.map(|c| self.perf.text(c));
        match read(self.now) {
            Some(text) if text[0] != 0 && !text.starts_with(NO_CAUSE) => text,
            // Some collectors clear the current cause before they report the end of a GC. Then use the cause of the
            // last GC.
            _ => read(self.last)
                .filter(|text| !text.starts_with(NO_CAUSE))
                .unwrap_or([0; TEXT]),
        }
    }

    /// Returns the cause of the current GC. If there is no current cause, returns the cause of the last GC.
    pub(crate) fn cause(&self) -> String {
        text(&self.bytes())
    }
}

#[derive(Default)]
struct State {
    begun: Option<Instant>,
    done: VecDeque<Pause>,
    missed: u64,
}

/// The pauses that the trace's thread has not taken yet.
///
/// The GC's thread holds the lock at a safepoint, for a few instructions. Other threads hold the lock only in native
/// code, and a safepoint does not stop threads in native code. So the GC never waits for a stopped thread.
pub(crate) struct Pauses {
    state: Mutex<State>,
    pub(crate) causes: OnceLock<Causes>,
}

impl Pauses {
    pub(crate) fn new() -> Self {
        let state = State {
            done: VecDeque::with_capacity(MOST),
            ..State::default()
        };
        Self {
            state: Mutex::new(state),
            causes: OnceLock::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn begin(&self) {
        self.state().begun = Some(Instant::now());
    }

    pub(crate) fn end(&self) {
        let end = Instant::now();
        let cause = self.causes.get().map_or([0; TEXT], Causes::bytes);
        let mut state = self.state();
        let start = state.begun.take().unwrap_or(end);
        if state.done.len() >= MOST {
            state.missed += 1;
            return;
        }
        state.done.push_back(Pause { start, end, cause });
    }

    /// Removes and returns the stored pauses. Also returns the number of pauses that were dropped since the last call
    /// because [`MOST`] pauses were stored.
    pub(crate) fn take(&self) -> (Vec<Pause>, u64) {
        let mut state = self.state();
        let missed = std::mem::take(&mut state.missed);
        (state.done.drain(..).collect(), missed)
    }
}
