//! Takes a dump before the JVM dies: if the heap or the container's memory is nearly full, or if the JVM throws
//! `OutOfMemoryError`.
//!
//! The guard's thread checks the container's memory several times a second. The trace's thread reports the heap that
//! each major GC leaves in use. If a limit is reached, the guard acts in two steps:
//!
//! - It makes the trace's thread write its new data, so that the stacks are on disk.
//! - It forks a child, which writes the dump. The child continues if the JVM ends meanwhile.

mod files;
mod pressure;

use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{AcqRel, Acquire, Release},
};
use std::time::{Duration, Instant};

use heapdiff_units::{Size, Span};

use self::files::{Files, Names};
use self::pressure::{Pressure, Slope};
use crate::jvm_stats::{heap_of, largest_heap};
use crate::jvmti::Environment;
use crate::jvmti::calls::{Env, Global};
use crate::log::{Level, print_line};
use crate::options::GuardOptions;
use crate::snapshot::{self, Kept, Place, Prepared, Wanted};
use crate::wakeup::Wakeup;

/// Interval between two checks of the heap's and the container's memory.
const CHECK: Duration = Duration::from_millis(100);
/// Minimum time between two attempts to take a dump for the same cause. A nearly full heap and an `OutOfMemoryError`
/// count as one cause.
const PAUSE: Duration = Duration::from_secs(3600);
/// The guard takes no dump if the container's memory will be full in less than this time at its current growth, because
/// the dump might not be complete by then.
const LEAST_LEFT: Duration = Duration::from_secs(10);
/// Maximum time to wait until the trace's thread has written its new data (a tick).
const TICK: Duration = Duration::from_secs(2);
/// Maximum time for which a thread that throws `OutOfMemoryError` waits until the child is forked. Without the wait,
/// the JVM could end before the fork.
const THROWING: Duration = Duration::from_secs(5);

/// State that the guard's thread shares with other threads.
pub(crate) struct Guard {
    pub(crate) wakeup: Wakeup,
    /// Bytes in use after the last major GC; 0 before the first major GC.
    floor: AtomicU64,
    /// True from an `OutOfMemoryError` until the guard has seen it.
    exhausted: AtomicBool,
    /// True while the guard would take a dump at an `OutOfMemoryError`. Two conditions apply: the option `guard` limits
    /// the heap, and the last attempt for the heap is at least [`PAUSE`] ago. A fork sets this flag to false, so that
    /// the waiting thread continues.
    armed: AtomicBool,
    /// True from the decision to take a dump until the child is forked.
    acting: AtomicBool,
}

/// The result of an attempt to write new data (a tick) to the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TickResult {
    Written,
    Failed,
    /// The attempt to write to the trace took longer than [`TICK`].
    Late,
}

impl std::fmt::Display for TickResult {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Written => f.write_str("the trace is written"),
            Self::Failed => f.write_str("the trace could not be written"),
            Self::Late => write!(f, "the trace was not written within {}", Span(TICK)),
        }
    }
}

/// The reason why the guard takes a dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    /// The JVM throws `OutOfMemoryError`.
    Exhausted,
    /// The heap is nearly full after a major GC.
    Heap { used: u64, most: u64 },
    /// The container's memory is nearly full.
    Container { used: u64, most: u64 },
}

impl std::fmt::Display for Cause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let share = |used: u64, most: u64| used.saturating_mul(100) / most.max(1);
        match *self {
            Self::Exhausted => f.write_str("the JVM throws OutOfMemoryError"),
            Self::Heap { used, most } => write!(
                f,
                "a full GC left {} % of the heap in use ({} of {})",
                share(used, most),
                Size(used),
                Size(most)
            ),
            Self::Container { used, most } => write!(
                f,
                "{} % of the container's memory is in use ({} of {})",
                share(used, most),
                Size(used),
                Size(most)
            ),
        }
    }
}

impl Guard {
    pub(crate) fn new(wakeup: Wakeup) -> Self {
        Self {
            wakeup,
            floor: AtomicU64::new(0),
            exhausted: AtomicBool::new(false),
            armed: AtomicBool::new(false),
            acting: AtomicBool::new(false),
        }
    }

    /// Records the bytes that a major GC left in use.
    pub(crate) fn after_major_gc(&self, used: u64) {
        self.floor.store(used, Release);
        self.wakeup.wake();
    }

    /// Called by the thread that is about to throw `OutOfMemoryError`. Waits until the guard has forked the child, but
    /// at most [`THROWING`].
    pub(crate) fn exhausted(&self) {
        if !self.armed.load(Acquire) {
            return;
        }
        self.exhausted.store(true, Release);
        self.wakeup.wake();
        let is_handled = || !self.armed.load(Acquire) || self.wakeup.is_stopping();
        self.wakeup.wait_until(is_handled, THROWING);
    }

    /// Called when the JVM is about to end. If the guard has decided to take a dump, waits until the child is forked,
    /// but at most [`THROWING`].
    pub(crate) fn before_end(&self) {
        self.wakeup
            .wait_until(|| !self.acting.load(Acquire), THROWING);
        self.wakeup.stop();
    }

    fn after_fork(&self) {
        self.armed.store(false, Release);
        self.acting.store(false, Release);
        self.wakeup.notify();
    }
}

/// The data that the guard's thread works with.
pub(crate) struct Guarding<'a> {
    pub(crate) guard: &'a Guard,
    pub(crate) options: &'a GuardOptions,
    pub(crate) runtime: &'a Global,
    /// Makes the trace's thread try to write its new data (a tick) at once. Waits for this attempt, but at most for the
    /// given time.
    pub(crate) write_tick: &'a dyn Fn(Duration) -> TickResult,
    /// Called before each fork.
    pub(crate) before_fork: &'a dyn Fn(),
}

/// For each cause, the time of the guard's last attempt to take a dump.
#[derive(Default)]
struct Last {
    heap: Option<Instant>,
    container: Option<Instant>,
}

impl Last {
    /// Returns true if the guard may take a dump for this cause now. If so, also records `now` as the time of the last
    /// attempt.
    fn may_act(&mut self, cause: Cause, now: Instant) -> bool {
        let last = match cause {
            Cause::Exhausted | Cause::Heap { .. } => &mut self.heap,
            Cause::Container { .. } => &mut self.container,
        };
        let is_due = Self::is_due(*last, now);
        if is_due {
            *last = Some(now);
        }
        is_due
    }

    fn is_due(last: Option<Instant>, now: Instant) -> bool {
        last.is_none_or(|at| now.duration_since(at) >= PAUSE)
    }
}

impl Guarding<'_> {
    /// Runs until the agent stops.
    pub(crate) fn run(&self, env: &Env<'_>) {
        let most = match largest_heap(env, self.runtime.get()) {
            Ok(most) => most,
            Err(why) => {
                print_line(
                    Level::Error,
                    format_args!("no guard: the size of the heap is unknown ({why})"),
                );
                return;
            }
        };
        let files = Files::new(self.options, most);
        let prepared = self.announce(env, &files);
        let mut last = Last::default();
        let mut pressure = Pressure::default();
        let mut slope = Slope::default();
        loop {
            let now = Instant::now();
            let is_armed = self.options.heap.is_some() && Last::is_due(last.heap, now);
            self.guard.armed.store(is_armed, Release);
            if !self.guard.wakeup.wait(CHECK) {
                return;
            }
            let container = self
                .options
                .container
                .and_then(|_| pressure::group_memory());
            if let Some(memory) = &container {
                slope.add(now, memory.used);
            }
            let Some(cause) = self.cause(most, container, &mut pressure) else {
                continue;
            };
            if last.may_act(cause, now) {
                self.guard.acting.store(true, Release);
                let left = match cause {
                    Cause::Container { used, most } => slope.time_to(used, most),
                    _ => None,
                };
                self.act(env, &files, prepared.as_ref(), cause, left);
                self.guard.after_fork();
            }
        }
    }

    /// Prints what the guard will do, and prepares the JVM for dumps. Returns `None` if no dumps are possible.
    fn announce(&self, env: &Env<'_>, files: &Files) -> Option<Prepared> {
        let limits = [
            self.options.heap.map(|share| format!("heap {share} %")),
            self.options
                .container
                .map(|share| format!("container {share} %")),
        ];
        let limits: Vec<String> = limits.into_iter().flatten().collect();
        let folder = self.options.folder.display();
        print_line(
            Level::Info,
            format_args!("guard on ({}), files in {folder}", limits.join(", ")),
        );
        if self.options.container.is_some() && pressure::group_memory().is_none() {
            print_line(
                Level::Warn,
                "guard: this process has no container with a memory limit, so guard-container has no effect",
            );
        }
        if let Err(why) = files.check() {
            print_line(Level::Warn, format_args!("guard: {why}"));
        }
        if let Some(pipe) = &self.options.pipe {
            match files::check_pipe(pipe) {
                Ok(()) => print_line(
                    Level::Info,
                    format_args!("guard: dumps go to {}", pipe.display()),
                ),
                Err(why) => print_line(Level::Warn, format_args!("guard: {why}")),
            }
        }
        let prepared = Environment::another(env)
            .map_err(|why| why.to_string())
            .and_then(|environment| snapshot::prepare(&environment, env).map_err(|(_, why)| why));
        match prepared {
            Ok(prepared) => Some(prepared),
            Err(why) => {
                print_line(
                    Level::Error,
                    format_args!("guard: no dumps, only the trace: {why}"),
                );
                None
            }
        }
    }

    /// Returns the reason to take a dump now, or `None` if there is no reason.
    fn cause(
        &self,
        most: u64,
        container: Option<pressure::Memory>,
        pressure: &mut Pressure,
    ) -> Option<Cause> {
        if self.guard.exhausted.swap(false, AcqRel) {
            return Some(Cause::Exhausted);
        }
        let used = self.guard.floor.load(Acquire);
        if let Some(share) = self.options.heap
            && is_reached(used, most, share)
        {
            return Some(Cause::Heap { used, most });
        }
        let (memory, share) = container.zip(self.options.container)?;
        let is_short = pressure.is_short(&memory, share);
        let cause = Cause::Container {
            used: memory.used,
            most: memory.limit,
        };
        (is_reached(memory.used, memory.limit, share) || is_short).then_some(cause)
    }

    /// Makes the trace's thread write its new data. Then takes a dump, unless the memory would be full too soon
    /// ([`LEAST_LEFT`]).
    fn act(
        &self,
        env: &Env<'_>,
        files: &Files,
        prepared: Option<&Prepared>,
        cause: Cause,
        left: Option<Duration>,
    ) {
        let started = Instant::now();
        let trace = (self.write_tick)(TICK);
        let Some(prepared) = prepared else {
            print_line(Level::Warn, format_args!("guard: {cause}; {trace}"));
            return;
        };
        if trace != TickResult::Written {
            print_line(Level::Warn, format_args!("guard: {trace}"));
        }
        if let Some(left) = left
            && left < LEAST_LEFT
        {
            let left = Span(left);
            print_line(
                Level::Error,
                format_args!(
                    "guard: {cause}; {trace}; no dump: at the current rate the memory is full in {left}, and a dump needs up to {}",
                    Span(LEAST_LEFT)
                ),
            );
            return;
        }
        if let Err(why) = self.dump(env, files, prepared, cause, started) {
            print_line(Level::Error, format_args!("guard: {cause}; no dump: {why}"));
        }
    }

    /// Takes a dump. Returns an error if the dump cannot be started.
    fn dump(
        &self,
        env: &Env<'_>,
        files: &Files,
        prepared: &Prepared,
        cause: Cause,
        started: Instant,
    ) -> Result<(), String> {
        let (names, pipe);
        let (place, path) = if let Some(path) = &self.options.pipe {
            pipe = files::open_pipe(path)?;
            (Place::Pipe(&pipe), path)
        } else {
            let used = heap_of(env, self.runtime.get()).map_or(0, |(used, _)| used);
            names = files.make_room(used, cause.word())?;
            let Names { part, last } = &names;
            (Place::File { part, last }, last)
        };
        let environment = Environment::another(env).map_err(|e| e.to_string())?;
        let path = path.display();
        print_line(Level::Warn, format_args!("guard: {cause}; writing {path}"));
        (self.before_fork)();
        let kept = Kept {
            place,
            prepared,
            forked: &|| self.guard.after_fork(),
            outlasts_memory: matches!(cause, Cause::Container { .. }),
        };
        let code = snapshot::take(&environment, env, Wanted::Kept(kept));
        if code == heapdiff_sites::attach::DONE {
            let size = match place {
                Place::File { last, .. } => std::fs::metadata(last).ok(),
                Place::Pipe(_) => None,
            };
            let size = size.map_or_else(String::new, |data| format!(" ({})", Size(data.len())));
            let taken = Span(started.elapsed());
            print_line(
                Level::Info,
                format_args!("guard: wrote {path}{size} in {taken}"),
            );
        }
        Ok(())
    }
}

impl Cause {
    /// Returns the word for this cause in the file name of the dump.
    fn word(self) -> &'static str {
        match self {
            Self::Exhausted | Self::Heap { .. } => "heap",
            Self::Container { .. } => "container",
        }
    }
}

fn is_reached(used: u64, most: u64, share: u64) -> bool {
    used > 0 && u128::from(used) * 100 >= u128::from(most) * u128::from(share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_reached_at_its_share() {
        assert!(is_reached(90, 100, 90) && is_reached(91, 100, 90));
        assert!(!is_reached(89, 100, 90) && !is_reached(0, 0, 90));
        assert!(is_reached(u64::MAX, u64::MAX, 99), "no overflow");
    }

    #[test]
    fn the_guard_acts_once_an_hour_for_each_cause() {
        let mut last = Last::default();
        let heap = Cause::Heap { used: 9, most: 10 };
        let container = Cause::Container { used: 9, most: 10 };
        let start = Instant::now();
        assert!(last.may_act(heap, start));
        assert!(
            !last.may_act(Cause::Exhausted, start + PAUSE / 2),
            "one cause"
        );
        assert!(last.may_act(container, start));
        assert!(last.may_act(Cause::Exhausted, start + PAUSE));
    }

    #[test]
    fn causes_state_their_figures() {
        let heap = Cause::Heap {
            used: 120 << 20,
            most: 128 << 20,
        };
        assert_eq!(
            heap.to_string(),
            "a full GC left 93 % of the heap in use (120.0 MiB of 128.0 MiB)"
        );
    }
}
