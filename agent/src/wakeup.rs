//! Wakes the agent's threads.

use std::ffi::CStr;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::time::{Duration, Instant};

use crate::jvmti::{Jvmti, Monitor};

/// The name that all monitors (locks) of the agent have in the JVM.
pub(crate) const NAME: &CStr = c"heapdiff agent";

/// Wakes a thread of the agent, or requests that it stops. Uses a raw monitor, because GC callbacks may use raw
/// monitors.
pub(crate) struct Wakeup {
    jvmti: Jvmti,
    monitor: Monitor,
    woken: AtomicBool,
    stopping: AtomicBool,
}

impl Wakeup {
    pub(crate) fn new(jvmti: Jvmti, monitor: Monitor) -> Self {
        Self {
            jvmti,
            monitor,
            woken: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
        }
    }

    /// Wakes the thread, because a GC has ended or a table is full.
    pub(crate) fn wake(&self) {
        // If another thread has already woken the waiting thread, nothing needs to be done.
        if !self.woken.load(Acquire) {
            self.jvmti
                .notify(self.monitor, || self.woken.store(true, Release));
        }
    }

    /// Requests that the thread stops.
    pub(crate) fn stop(&self) {
        self.jvmti
            .notify(self.monitor, || self.stopping.store(true, Release));
    }

    /// Wakes the threads in [`Self::wait_until`], so that they check again.
    pub(crate) fn notify(&self) {
        self.jvmti.notify(self.monitor, || ());
    }

    /// Waits until `done` returns true, but at most for the time `most`. A thread that changes the result of `done`
    /// must call [`Self::notify`].
    pub(crate) fn wait_until(&self, done: impl Fn() -> bool, most: Duration) {
        let end = Instant::now() + most;
        while !done() {
            let left = end.saturating_duration_since(Instant::now());
            let millis = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
            if millis == 0 || self.jvmti.wait(self.monitor, millis, &done).is_err() {
                return;
            }
        }
    }

    /// True if a stop was requested.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Acquire)
    }

    /// Waits until another thread calls [`Self::wake`], but at most for the time `most`. Returns false if a stop was
    /// requested.
    pub(crate) fn wait(&self, most: Duration) -> bool {
        let millis = u64::try_from(most.as_millis()).unwrap_or(u64::MAX).max(1);
        let ready = || self.is_stopping() || self.woken.load(Acquire);
        let waited = self.jvmti.wait(self.monitor, millis, ready);
        self.woken.swap(false, AcqRel);
        waited.is_ok() && !self.is_stopping()
    }

    /// Waits for `time`, even if another thread calls [`Self::wake`]. Returns false if a stop was requested.
    pub(crate) fn rest(&self, time: Duration) -> bool {
        let until = Instant::now() + time;
        while !self.is_stopping() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            let millis = u64::try_from(left.as_millis()).unwrap_or(u64::MAX).max(1);
            let stopping = || self.is_stopping();
            if self.jvmti.wait(self.monitor, millis, stopping).is_err() {
                return false;
            }
        }
        false
    }
}
