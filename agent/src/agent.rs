//! The agent's global state, and its work in the JVM's callbacks and in its own threads.
//!
//! Each attach with new options creates a new [`Agent`]. Earlier agents keep only their options and monitors. Their
//! sampling state is dropped when they are detached and their last callback has returned.

use std::ops::Deref;
use std::process;
use std::sync::atomic::{
    AtomicBool, AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use heapdiff_sites::{Counter, FORMAT, statics};
use rustc_hash::FxHashSet;

use crate::collected::{CollectedRefs, CollectedSamples};
use crate::counters::Counters;
use crate::counting;
use crate::giving_up::GivingUp;
use crate::ground::{Ground, Threads};
use crate::guard::{Guard, Guarding, TickResult};
use crate::jvmti::calls::{Class, Env, Local, Ref};
use crate::jvmti::{Jvmti, Monitor, Thread};
use crate::ledger::Ledger;
use crate::lent::{Lent, Loan};
use crate::log::{Level, print_line};
use crate::options::{Options, ReaperChoice};
use crate::pauses::Pauses;
use crate::reaper::{Found, Work};
use crate::sample_ref::{Reaper, RefClass, Static};
use crate::sampler::Sampler;
use crate::stacks::Stacks;
use crate::strategy::ActiveStrategy;
use crate::tracer::Tracing;
use crate::unproven::{Looks, initial_tracking};
use crate::usage;
use crate::wakeup::Wakeup;

mod control;

pub(crate) use control::{load, load_and_start, start_with_jvm, stop};

/// Maximum time to wait for one of the agent's threads at a detach or at the end of the JVM. For example, the trace's
/// thread writes the last data to the trace in this time.
const LAST_TICK: Duration = Duration::from_secs(2);
/// Number of internal errors after which the agent stops.
pub(crate) const MAX_FAULTS: u64 = 3;

/// Maximum number of attaches in one JVM.
const MOST_ATTACHED: usize = 100;

struct Agent {
    jvmti: Jvmti,
    options: Options,
    wakeup: Wakeup,
    trace: Option<Trace>,
    guard: Option<Guard>,
    /// The sampling state. It is empty before sampling starts and after a detach.
    running: Lent<Running>,
    /// True once the agent's thread was started.
    begun: AtomicBool,
    /// True once the agent's thread has ended.
    ended: AtomicBool,
    /// Index of this agent in `AGENTS`.
    place: usize,
}

/// State that the trace's thread shares with other threads.
struct Trace {
    wakeup: Wakeup,
    pauses: Pauses,
    /// True once the trace's thread was started.
    begun: AtomicBool,
    done: AtomicBool,
    /// True while a request to write new data (a tick) to the trace is pending: the trace's thread has not yet tried to
    /// write this data.
    tick: AtomicBool,
    /// True if the last requested write to the trace succeeded.
    has_written: AtomicBool,
}

struct Running {
    sampler: Sampler,
    collected: CollectedRefs,
    found: Found,
    started_ms: i64,
    at_startup: bool,
}

/// The agents of all attaches. The last agent in the array is the current one.
static AGENTS: [OnceLock<Agent>; MOST_ATTACHED] = [const { OnceLock::new() }; MOST_ATTACHED];
static ATTACHED: AtomicUsize = AtomicUsize::new(0);
/// The Java class of samples, `heapdiff.SampleRef`. All agents share this class.
static REFS: OnceLock<Arc<RefClass>> = OnceLock::new();
static COUNTERS: Counters = Counters::new();
/// True once a GC that the agent requested took too long. After that, no agent in this JVM requests a GC.
static COLLECTS_SLOWLY: AtomicBool = AtomicBool::new(false);
/// True from the moment when the agent stops until another attach starts the agent again.
static OFF: AtomicBool = AtomicBool::new(false);
static GIVING_UP: GivingUp = GivingUp::new();

fn agent() -> Option<&'static Agent> {
    let last = ATTACHED.load(Acquire).checked_sub(1)?;
    AGENTS.get(last)?.get()
}

/// Returns the JVMTI environment that samples. All agents share it.
pub(crate) fn jvmti() -> Option<Jvmti> {
    agent().map(|agent| agent.jvmti)
}

/// Returns the agent with index `place` in `AGENTS`, even if a later attach has replaced it as the current agent.
fn agent_at(place: usize) -> Option<&'static Agent> {
    AGENTS.get(place)?.get()
}

/// Makes `agent` the current agent. Returns `None` if the JVM already had the maximum number of attaches.
fn set_current(mut agent: Agent) -> Option<&'static Agent> {
    let place = ATTACHED.load(Acquire);
    agent.place = place;
    let free = AGENTS.get(place)?;
    free.set(agent).ok()?;
    ATTACHED.store(place + 1, Release);
    free.get()
}

/// Counts an internal error. The JVM continues. After [`MAX_FAULTS`] errors the agent stops. This function may be
/// called in any callback, because it uses only raw monitors of JVMTI.
pub(crate) fn fault() {
    COUNTERS.count(Counter::Faults);
    if COUNTERS.get(Counter::Faults) >= MAX_FAULTS && GIVING_UP.give_up() {
        OFF.store(true, Relaxed);
        print_line(
            Level::Error,
            "stopped after repeated internal errors; please report this",
        );
        if let Some(agent) = agent() {
            agent.wakeup.stop();
            if let Some(trace) = &agent.trace {
                trace.wakeup.stop();
            }
            if let Some(guard) = &agent.guard {
                guard.wakeup.stop();
            }
        }
    }
}

/// Called when the JVM has sampled an allocation.
pub(crate) fn sampled(
    env: &Env<'_>,
    thread: Ref<'_>,
    object: Option<Ref<'_>>,
    class: Ref<'_, Class>,
    size: i64,
) {
    let Some(agent) = agent() else {
        return;
    };
    if let Some(sampler) = sampler()
        && !sampler.sampled(env, &COUNTERS, (thread, object, class), size)
    {
        agent.wakeup.wake();
    }
}

/// Called when the JVM has defined a class.
pub(crate) fn class_loaded(env: &Env<'_>, thread: Ref<'_>, class: Ref<'_, Class>) {
    if let Some(sampler) = sampler() {
        sampler.class_loaded(env, &COUNTERS, thread, class);
    }
}

/// The sampler while a callback borrows it. The sampler is not dropped as long as any callback borrows it.
pub(crate) struct Sampling(Loan<Running>);

impl Deref for Sampling {
    type Target = Sampler;

    fn deref(&self) -> &Sampler {
        &self.0.sampler
    }
}

/// Returns the sampler, or `None` if the agent does not sample.
pub(crate) fn sampler() -> Option<Sampling> {
    if OFF.load(Relaxed) {
        return None;
    }
    agent()?.running.borrow().map(Sampling)
}

/// Returns the names of classes in the stacks of samples, or `None` if the agent does not sample.
pub(crate) fn sampled_classes() -> Option<FxHashSet<String>> {
    sampler().map(|sampler| sampler.stacks.classes())
}

/// Updates the allocation counts in the heap. Called before a forked child writes a dump, so that the dump has current
/// counts.
pub(crate) fn before_fork(env: &Env<'_>) {
    if let Some(sampler) = sampler()
        && let Some(counted) = &sampler.counted
    {
        counted.copy(env);
    }
}

/// Called when a GC begins.
pub(crate) fn collecting() {
    if GIVING_UP.is_requested() {
        return;
    }
    if let Some(trace) = agent().and_then(|agent| agent.trace.as_ref()) {
        trace.pauses.begin();
    }
}

/// Called when a GC has ended.
pub(crate) fn collected() {
    if GIVING_UP.is_requested() {
        return;
    }
    COUNTERS.count(Counter::Collections);
    if let Some(agent) = agent() {
        agent.wakeup.wake();
        if let Some(trace) = &agent.trace {
            trace.pauses.end();
            trace.wakeup.wake();
        }
    }
}

/// The body of the thread that finds the samples whose objects were garbage-collected. Runs until the agent is stopped
/// or gives up. After a panic, the caller may call this function again.
pub(crate) fn run(env: &Env<'_>, place: usize) {
    if let Some((agent, running)) = agent_at(place).and_then(|a| Some((a, a.running.borrow()?))) {
        agent.run(env, &running);
    }
}

impl Agent {
    fn run(&self, env: &Env<'_>, running: &Running) {
        let delay = Duration::from_secs(self.options.delay);
        if !delay.is_zero() {
            let left = delay.saturating_sub(running.sampler.started.elapsed());
            if !self.wakeup.rest(left) {
                return;
            }
            if let Err(failed) = self.enable() {
                print_line(
                    Level::Error,
                    format_args!(
                        "sampling could not start after the delay (agent option `delay`): {failed}"
                    ),
                );
                return;
            }
            // If a stop was requested during the delay, `detach` may have disabled the events before this thread
            // enabled the events above. So disable the events again.
            if self.wakeup.is_stopping() {
                self.jvmti.disable();
                return;
            }
        }
        self.work(running).run(env);
    }
}

/// Called when the thread that runs [`run`] ends. Disables the events if the agent has given up.
pub(crate) fn on_thread_end(place: usize) {
    if let Some(agent) = agent_at(place) {
        if GIVING_UP.take_events() {
            agent.jvmti.disable();
        }
        agent.ended.store(true, Release);
        agent.wakeup.notify();
    }
}

/// The body of the trace's thread.
pub(crate) fn trace(env: &Env<'_>, place: usize) {
    let Some(agent) = agent_at(place) else {
        return;
    };
    if let Some(running) = agent.running.borrow()
        && let Some(tracing) = agent.tracing(&running)
    {
        tracing.run(env);
    }
}

/// The body of the guard's thread. The guard takes dumps before the JVM dies.
pub(crate) fn guard(env: &Env<'_>, place: usize) {
    let Some(agent) = agent_at(place) else {
        return;
    };
    if let Some(running) = agent.running.borrow()
        && let Some(guard) = &agent.guard
        && let Some(options) = &agent.options.guard
    {
        let write_tick = |most| {
            agent
                .trace
                .as_ref()
                .map_or(TickResult::Failed, |trace| trace.write_tick(most))
        };
        let guarding = Guarding {
            guard,
            options,
            runtime: &running.sampler.runtime,
            write_tick: &write_tick,
            before_fork: &|| before_fork(env),
        };
        guarding.run(env);
    }
}

/// Called when a thread is about to throw `OutOfMemoryError`.
pub(crate) fn exhausted() {
    if let Some(guard) = agent().and_then(|agent| agent.guard.as_ref()) {
        guard.exhausted();
    }
}

impl Trace {
    fn new(wakeup: Wakeup) -> Self {
        Self {
            wakeup,
            pauses: Pauses::new(),
            begun: AtomicBool::new(false),
            done: AtomicBool::new(false),
            tick: AtomicBool::new(false),
            has_written: AtomicBool::new(false),
        }
    }

    /// Makes the trace's thread try to write its new data (a tick) at once. Waits for this attempt, but at most for the
    /// time `most`.
    fn write_tick(&self, most: Duration) -> TickResult {
        self.has_written.store(false, Release);
        self.tick.store(true, Release);
        self.wakeup.wake();
        let is_over = || !self.tick.load(Acquire) || self.done.load(Acquire);
        self.wakeup.wait_until(is_over, most);
        if self.has_written.load(Acquire) {
            TickResult::Written
        } else if is_over() {
            TickResult::Failed
        } else {
            TickResult::Late
        }
    }
}

impl Agent {
    fn new(jvmti: Jvmti, options: Options, [own, of_trace, of_guard]: [Monitor; 3]) -> Self {
        Self {
            jvmti,
            wakeup: Wakeup::new(jvmti, own),
            trace: options
                .trace
                .is_some()
                .then(|| Trace::new(Wakeup::new(jvmti, of_trace))),
            guard: options
                .guard
                .is_some()
                .then(|| Guard::new(Wakeup::new(jvmti, of_guard))),
            options,
            running: Lent::new(),
            begun: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            place: 0,
        }
    }

    /// True if the agent's thread has ended or was never started.
    fn has_ended(&self) -> bool {
        !self.begun.load(Acquire) || self.ended.load(Acquire)
    }

    /// Stops sampling for good, ends the trace, and releases the samples of live objects. Tables, stacks and collected
    /// samples stay in the heap until the next attach. Readers of dumps ignore this data, because the agent sets the
    /// field `format` to 0.
    fn detach(&self, env: &Env<'_>) {
        OFF.store(true, Relaxed);
        usage::stop_counting(env);
        // Request the stop before the events are disabled. If the option `delay` is set, the agent's thread may be
        // about to enable the events. The thread then sees this request and disables the events again.
        self.wakeup.stop();
        if let Some(guard) = &self.guard {
            guard.wakeup.stop();
        }
        self.jvmti.disable();
        let Some(running) = self.running.borrow() else {
            counting::stop_standing(env);
            // The thread of an earlier attach may still run.
            self.wakeup.wait_until(|| self.has_ended(), LAST_TICK);
            return;
        };
        let sampler = &running.sampler;
        // With the format 0, readers of dumps ignore the agent's other data in the heap.
        let _ = sampler.refs.set(env, statics::FORMAT, Static::Int(0));
        if let Some(trace) = &self.trace {
            trace.wakeup.stop();
            let done = || !trace.begun.load(Acquire) || trace.done.load(Acquire);
            trace.wakeup.wait_until(done, LAST_TICK);
        }
        // Stop counting only now, so that the last data in the trace contains all counts.
        counting::stop_standing(env);
        self.wakeup.wait_until(|| self.has_ended(), LAST_TICK);
        match sampler.unproven {
            Some(_) => sampler.samples.clear_all_references(env),
            None => sampler.samples.clear_all(env),
        }
        sampler.classes.clear_all(env);
        self.running.stop_lending();
    }

    fn tracing<'a>(&'a self, running: &'a Running) -> Option<Tracing<'a>> {
        let trace = self.trace.as_ref()?;
        Some(Tracing {
            options: &self.options,
            trace: self.options.trace.as_ref()?,
            sampler: &running.sampler,
            ledger: running.sampler.ledger.as_ref()?,
            counters: &COUNTERS,
            wakeup: &trace.wakeup,
            pauses: &trace.pauses,
            started_ms: running.started_ms,
            at_startup: running.at_startup,
            done: &trace.done,
            tick_now: &trace.tick,
            has_written: &trace.has_written,
            guard: self.guard.as_ref(),
        })
    }

    fn work<'a>(&'a self, running: &'a Running) -> Work<'a> {
        Work {
            jvmti: self.jvmti,
            sampler: &running.sampler,
            collected: &running.collected,
            found: &running.found,
            counters: &COUNTERS,
            wakeup: &self.wakeup,
            dropped: AtomicU64::new(0),
            collecting: AtomicU64::new(0),
            collects_slowly: &COLLECTS_SLOWLY,
            looks: Looks::default(),
        }
    }

    fn enable(&self) -> crate::jvmti::Result<()> {
        self.jvmti.enable(self.options.classes)
    }

    fn start(
        &self,
        env: &Env<'_>,
        ground: Ground<'_>,
        at_startup: bool,
    ) -> std::result::Result<(), String> {
        let (running, (thread, of_trace, of_guard)) = self
            .running(env, ground, at_startup)
            .map_err(|error| error.to_string())?;
        self.running.lend(running);
        if let Some(guard) = &self.options.guard {
            // The trace's file may be in this folder. If the folder cannot be created, the guard and the trace report
            // the error.
            let _ = std::fs::create_dir_all(&guard.folder);
        }
        self.start_thread(&thread, Thread::Agent)?;
        self.begun.store(true, Release);
        if let (Some(trace), Some(thread)) = (&self.trace, of_trace) {
            self.start_thread(&thread, Thread::Trace)?;
            trace.begun.store(true, Release);
        }
        let text = |error: crate::jvmti::JvmtiError| error.to_string();
        if let (Some(guard), Some(thread)) = (&self.options.guard, of_guard) {
            if guard.heap.is_some() {
                self.jvmti.enable_exhaustion().map_err(text)?;
            }
            self.start_thread(&thread, Thread::Guard)?;
        }
        if self.options.delay == 0 {
            self.enable().map_err(text)?;
            if at_startup {
                COUNTERS.count(Counter::FromStart);
            }
        }
        // This thread's TLAB was allocated before sampling began, so the JVM takes no samples of objects in this TLAB.
        // Only a GC retires the TLAB. Right after the JVM's start, a GC takes a few milliseconds. Request it only with
        // interval 0, where every allocation should be sampled.
        if at_startup && self.options.sampling.interval == 0 {
            self.jvmti.collect_garbage().map_err(text)?;
        }
        counting::start_standing(env, &self.options);
        let sampler = sampler();
        usage::start_counting(env, &self.options, sampler.as_ref().map(|s| &*s.refs));
        Ok(())
    }

    fn start_thread(&self, thread: &Local<'_>, which: Thread) -> std::result::Result<(), String> {
        let started = self.jvmti.run_thread(thread.get(), which, self.place);
        started.map_err(|error| error.to_string())
    }

    /// Creates the sampling state from the Java objects in `ground`. Sets the static fields of the sample class to
    /// these objects, so that dumps contain the agent's data. Also returns the agent's Java threads, which are not
    /// started yet.
    fn running<'local>(
        &self,
        env: &Env<'_>,
        ground: Ground<'local>,
        at_startup: bool,
    ) -> crate::jvmti::calls::Result<(Running, Threads<'local>)> {
        let options = &self.options;
        let since_epoch = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let started_ms = i64::try_from(since_epoch.as_millis()).unwrap_or(0);
        let naming = (options.depth, options.verbosity, options.filter.clone());
        let sampler = Sampler {
            stacks: Stacks::new(env, self.jvmti, naming, ground.blobs),
            samples: ground.samples,
            classes: ground.classes,
            totals: ground.totals,
            allocated: ground.allocated,
            class_totals: ground.class_totals,
            site_types: ground.site_types,
            strategy: ActiveStrategy::new(options.sampling, ground.seed),
            unproven: ground.unproven,
            ledger: options
                .trace
                .as_ref()
                .map(|_| Ledger::new(options.sampling)),
            collected: CollectedSamples::new(
                options.trace.as_ref().map_or(0, |_| options.garbage),
                ground.seed.rotate_left(32),
            ),
            counted: ground.counted,
            first: options.sampling,
            filtered: !options.filter.is_open(),
            uids: AtomicU64::new(0),
            started: Instant::now(),
            shown: ground.shown,
            runtime: ground.runtime,
            number: ATTACHED.load(Acquire),
            refs: ground.refs,
        };
        let mut sampling = options.sampling;
        if sampler.unproven.is_some() {
            let times;
            (times, sampling) = initial_tracking(options);
            sampler.strategy.follow(sampling);
            COUNTERS.add(Counter::Thinnings, times);
            COUNTERS.count(Counter::FewFollowed);
        }
        let mut fields = ground.fields;
        for (name, value) in [
            (statics::STARTED, started_ms),
            (statics::PID, process::id().into()),
            (statics::INTERVAL, sampling.interval.cast_signed()),
            (statics::RATE, sampling.rate.cast_signed()),
            (
                statics::FIRST_INTERVAL,
                options.sampling.interval.cast_signed(),
            ),
            (statics::FIRST_RATE, options.sampling.rate.cast_signed()),
        ] {
            fields.long(name, value);
        }
        let depth = i32::try_from(options.depth).unwrap_or(i32::MAX);
        fields.int(statics::STRATEGY, options.sampling.strategy.code());
        fields.int(statics::DEPTH, depth);
        fields.int(statics::VERBOSITY, options.verbosity.code());
        // Set the field `format` last. A set `format` shows readers of a dump that the agent's data in the Java heap is
        // complete. If the agent only writes a trace, do not set `format`, so that readers of dumps ignore this data.
        // The agent then uses the references in the heap only to find collected objects.
        if options.embed {
            fields.int(statics::FORMAT, FORMAT);
        }
        fields.set(env, &sampler.refs)?;
        let running = Running {
            sampler,
            collected: ground.collected,
            found: ground.found,
            started_ms,
            at_startup,
        };
        Ok((running, ground.threads))
    }
}

/// Returns the Java class `heapdiff.SampleRef`, whose objects refer to the sampled objects. The first agent in a JVM
/// defines this class, and later agents use it, too.
fn refs(env: &Env<'_>, options: &Options) -> crate::jvmti::calls::Result<Arc<RefClass>> {
    let chosen = match options.reaper {
        ReaperChoice::Auto => None,
        ReaperChoice::Scan => Some(Reaper::Scan),
        ReaperChoice::Queue => Some(Reaper::Queue),
    };
    if let Some(refs) = REFS.get() {
        if chosen.is_some_and(|chosen| chosen != refs.reaper()) {
            print_line(
                Level::Warn,
                "the option `reaper` cannot change in a running JVM; the agent keeps the first value",
            );
        }
        return Ok(Arc::clone(refs));
    }
    let reaper = match chosen {
        Some(chosen) => chosen,
        None => Reaper::for_jvm(env)?,
    };
    let refs = Arc::new(RefClass::define(env, reaper)?);
    Ok(Arc::clone(REFS.get_or_init(|| refs)))
}
