//! Counts every allocation. At the start of a count, the agent inserts calls into the code of classes, and it removes
//! them at the end of the count. Before each allocation, the inserted code calls a method of the agent. This method is
//! a hook.
//!
//! 1. If a class is not loaded yet, its class file is rewritten when the JVM loads it ([`rewritten`]).
//! 2. If a class is loaded already, the JVM passes its class file to the agent again ("retransformation"). This is done
//!    in batches.
//! 3. The hooks (`hooks`) add to counters outside of the Java heap (`cells`). Each site has its own counters (`table`).
//! 4. The result is the difference between two readings of the counters.
//! 5. At the end of the count, all changed classes are retransformed to their original form.
//!
//! Each execution of allocation bytecode is counted. This includes allocations that the JIT compiler removes because
//! the object does not escape. Some calls allocate without such bytecode. A hook follows these calls (`calls`), and the
//! returned objects are counted by site and class (`returned`).
//!
//! Not counted:
//!
//! - objects created by JNI and by the JVM itself,
//! - objects created in hidden classes, because the JVM does not show their class files to agents (for the constructor
//!   reference `Foo::new`, for example, a hidden class creates the objects),
//! - some objects created by intrinsics. An intrinsic is compiled code that replaces a JDK method, including the
//!   counters in the method's bytecode.

mod calls;
mod cells;
#[allow(unsafe_code)]
mod class;
mod counters;
mod hooks;
mod layout;
mod lines;
mod plan;
mod portions;
mod progress;
mod rests;
mod returned;
mod standing;
mod table;

use std::fs::File;
use std::io::Write;
use std::sync::atomic::{
    AtomicU8, AtomicU64, Ordering::AcqRel, Ordering::Acquire, Ordering::Release,
};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use heapdiff_bytecode::{Call, Name, Site, Sites, Told, rewrite};
use heapdiff_sites::types::{name_from_signature, of_class};
use heapdiff_sites::{CountedSite, Counts, attach};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::debugger;
use crate::jvmti::calls::{Class, Env, JniError, Local};
use crate::jvmti::classes::ClassFiles;
use crate::jvmti::sys::error;
use crate::jvmti::{Environment, Jvmti, JvmtiError, Thread, memory_file, modified_utf8, structs};
use crate::log::{Level, print_line, set_panic_hook};
use cells::Cells;
use layout::Layout;
pub(crate) use lines::Lines;
pub(crate) use plan::Asked;
use plan::Plan;
use portions::{Portions, bisect_failures};
use progress::Progress;
pub(crate) use standing::{InHeap, start_standing, stop_standing};
use table::Table;

/// Interval between progress messages.
const TOLD: Duration = Duration::from_secs(2);
/// Time that the agent waits after the planned end of a count. If nobody has ended the count by then, the agent ends
/// the count.
const GRACE: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(100);
/// [`watch`] gets this value instead of a count's number if no count runs, but a debugger prevents the removal of the
/// hooks. Then the thread only waits until it can remove these hooks from the classes.
const OVER: usize = 0;
/// Number of passes over the loaded classes when the hooks are removed. Later passes restore classes that were just
/// being loaded during the first pass.
const LATE: u32 = 3;

/// Descriptions of the agent's current step in progress messages.
const PUT: &str = "inserting counters into classes";
const TAKE_OUT: &str = "removing counters from classes";

/// States of the counting in this JVM.
mod state {
    pub(super) const IDLE: u8 = 0;
    /// A count is being started or ended.
    pub(super) const CHANGING: u8 = 1;
    pub(super) const COUNTING: u8 = 2;
}

/// A function that returns the names of classes in the stacks of samples. It returns `None` if the agent does not
/// sample.
type Sampled<'a> = &'a dyn Fn() -> Option<FxHashSet<String>>;

/// The data for counting in this JVM. It is created for the first count and used for all later counts.
struct Engine {
    jvmti: Jvmti,
    cells: &'static Cells,
    layout: Layout,
    /// True if hooks can determine the class of an object that a call returns.
    by_class: bool,
    table: Mutex<Table>,
    /// The options of the current count; `None` if nothing is counted.
    plan: Mutex<Option<Arc<Plan>>>,
    begun: Mutex<Option<Begun>>,
    /// The file with the result of the last count. It is dropped when somebody has read the result, or when the next
    /// count starts.
    result: Mutex<Option<File>>,
}

/// Key of a line in the result. The three names are those of the class, the method and the allocated class. The number
/// is the line in the source. The flag is true if the allocated class is not an array.
type Place = ([Arc<str>; 3], Option<u16>, bool);

/// The time when a count began, and the readings of the counters at that time.
struct Begun {
    at: Instant,
    counters: Vec<[u64; 2]>,
}

static ENGINE: OnceLock<Engine> = OnceLock::new();
static CELLS: OnceLock<Cells> = OnceLock::new();
static STATE: AtomicU8 = AtomicU8::new(state::IDLE);
static ROUND: AtomicU64 = AtomicU64::new(0);

/// Returns the JVMTI environment that receives class files.
pub(crate) fn jvmti() -> Option<Jvmti> {
    ENGINE.get().map(|engine| engine.jvmti)
}

/// True while a count runs. If only a debugger delays the removal of the hooks, returns false.
pub(crate) fn has_hooks() -> bool {
    STATE.load(Acquire) == state::COUNTING || standing::STANDS.load(Acquire)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Changes the state from `from` to `to`. Returns false if the state is not `from`.
fn transition(from: u8, to: u8) -> bool {
    STATE.compare_exchange(from, to, AcqRel, Acquire).is_ok()
}

/// Handles a request and returns one of [`attach`]'s codes.
pub(crate) fn handle_request(
    environment: Environment,
    env: &Env<'_>,
    asked: &Asked<'_>,
    sampled: Sampled<'_>,
) -> i32 {
    set_panic_hook();
    if let Some(code) = standing::handle_count_request(env, asked, sampled) {
        return code;
    }
    let done = match asked {
        Asked::Classes(_) if STATE.load(Acquire) != state::IDLE && !debugger::is_attached() => {
            return attach::COUNTS_ALREADY;
        }
        Asked::Classes(options) => {
            match count_rewritten_classes(environment, env, options, sampled) {
                Ok(classes) => {
                    let most = i32::MAX - attach::CLASSES;
                    return attach::CLASSES + i32::try_from(classes).unwrap_or(most).min(most);
                }
                Err(why) => Err(why),
            }
        }
        Asked::Begin(options) => match parse_plan(options, sampled) {
            Ok(plan) if transition(state::IDLE, state::CHANGING) => {
                let begun = begin(environment, env, plan);
                let next = match begun {
                    Ok(()) => state::COUNTING,
                    Err(_) => state::IDLE,
                };
                STATE.store(next, Release);
                begun.and_then(|()| watched(env))
            }
            Ok(_) if debugger::is_attached() => debugged(),
            Ok(_) => return attach::COUNTS_ALREADY,
            Err(why) => Err(why),
        },
        Asked::End(token) => match ENGINE.get() {
            Some(engine) if transition(state::COUNTING, state::CHANGING) => {
                let shown = engine.publish_result(env, token);
                if engine.end_count(env, &Progress::new(Some(token))) {
                    shown
                } else {
                    return shown.map_or_else(|(code, _)| code, |()| attach::DEBUGGED);
                }
            }
            _ => return attach::COUNTS_NOT,
        },
    };
    match done {
        Ok(()) => attach::DONE,
        Err((code, why)) => {
            print_line(Level::Error, format_args!("cannot count: {why}"));
            code
        }
    }
}

type Failed = (i32, String);

fn failed(why: impl ToString) -> Failed {
    (attach::FAILED, why.to_string())
}

fn in_heap(why: JniError) -> Failed {
    let code = match why {
        JniError::HeapFull => attach::HEAP_FULL,
        _ => attach::FAILED,
    };
    (code, why.to_string())
}

/// Returns a description of why the JVM rejected a changed class.
fn words(why: JvmtiError) -> &'static str {
    match why.0 {
        error::INVALID_CLASS => "the JVM cannot link the class",
        error::FAILS_VERIFICATION => "the JVM's verifier rejects the class with counters",
        error::UNMODIFIABLE_CLASS => "the JVM does not let agents change the class",
        _ => "the JVM rejects the class with counters",
    }
}

fn debugged() -> Result<(), Failed> {
    Err((attach::DEBUGGED, debugger::ATTACHED.to_owned()))
}

/// Parses the options into a [`Plan`], which describes what is counted. If the plan is limited to classes in sampled
/// stacks, gets these classes from the agent.
fn parse_plan(options: &str, sampled: Sampled<'_>) -> Result<Plan, Failed> {
    let mut plan = Plan::parse(options).map_err(|why| (attach::BAD_OPTIONS, why))?;
    if plan.sampled {
        plan.only = Some(sampled().ok_or((
            attach::NO_SAMPLES,
            "the agent does not sample in this JVM".to_owned(),
        ))?);
    }
    Ok(plan)
}

/// Returns the number of loaded classes that would be rewritten if counting started with these options.
fn count_rewritten_classes(
    environment: Environment,
    env: &Env<'_>,
    options: &str,
    sampled: Sampled<'_>,
) -> Result<usize, Failed> {
    let plan = parse_plan(options, sampled)?;
    let wanted = engine(environment, env)?.classes_in_plan(env, &plan);
    Ok(wanted.map_err(failed)?.len())
}

/// Returns the data for counting in this JVM. The first call creates this data.
fn engine(environment: Environment, env: &Env<'_>) -> Result<&'static Engine, Failed> {
    match ENGINE.get() {
        Some(engine) => Ok(engine),
        None => {
            let made = Engine::new(environment, env)?;
            Ok(ENGINE.get_or_init(|| made))
        }
    }
}

fn begin(environment: Environment, env: &Env<'_>, plan: Plan) -> Result<(), Failed> {
    let engine = engine(environment, env)?;
    ROUND.fetch_add(1, AcqRel);
    engine.begin(env, plan)
}

/// Starts a thread that ends the count, if nobody else has ended the count in time; see [`watch`].
fn watched(env: &Env<'_>) -> Result<(), Failed> {
    let Some(engine) = ENGINE.get() else {
        return Ok(());
    };
    let round = usize::try_from(ROUND.load(Acquire)).unwrap_or(0);
    let started = engine.run_watch(env, round);
    if started.is_err() && transition(state::COUNTING, state::CHANGING) {
        engine.remove_hooks(env, &Progress::new(None));
        STATE.store(state::IDLE, Release);
    }
    started
}

/// The body of the thread that watches a count of allocations. `round` is the number of this count. If nobody has ended
/// the count within [`GRACE`] after its planned end, the thread ends it.
///
/// If `round` is [`OVER`], the thread watches no count. It waits until the debugger disconnects and then removes the
/// hooks from the classes.
pub(crate) fn watch(env: &Env<'_>, round: usize) {
    let Some(engine) = ENGINE.get() else {
        return;
    };
    if round == OVER {
        return engine.remove_hooks_later(env);
    }
    let is_on = || {
        let now = usize::try_from(ROUND.load(Acquire)).unwrap_or(0);
        STATE.load(Acquire) == state::COUNTING && now == round
    };
    let time = locked(&engine.plan).as_ref().map(|plan| plan.time + GRACE);
    let (Some(time), since) = (time, Instant::now()) else {
        return;
    };
    while is_on() && since.elapsed() < time {
        sleep(LOOK);
    }
    if is_on() && transition(state::COUNTING, state::CHANGING) {
        print_line(
            Level::Warn,
            "count: the time is over, but heapdiff did not read the counts; the agent removes the counters now",
        );
        engine.end_count(env, &Progress::new(None));
    }
}

/// Receives class files for counting.
enum Counted {}

impl ClassFiles for Counted {
    fn jvmti() -> Option<Jvmti> {
        jvmti()
    }

    fn rewritten(name: Option<&str>, is_boot: bool, file: &[u8]) -> Option<Vec<u8>> {
        rewritten(name, is_boot, file)
    }

    fn thread_starts(number: i64) {
        if let Some(cells) = CELLS.get() {
            cells.assign_stripe(number);
        }
    }

    fn thread_ended(number: i64) {
        if let Some(cells) = CELLS.get() {
            cells.free_stripes(|thread| thread == number);
        }
    }
}

/// Returns the class file with hooks, or `None` if the class is not counted. The JVM is about to parse the file, so
/// this function must not call the JVM.
fn rewritten(name: Option<&str>, is_boot: bool, file: &[u8]) -> Option<Vec<u8>> {
    let engine = ENGINE.get()?;
    let plan = locked(&engine.plan).clone()?;
    if name.is_some_and(|name| !plan.counts_class(name, is_boot)) {
        return None;
    }
    let mut numbering = Numbering {
        engine,
        plan: &plan,
        is_boot,
        wanted: None,
    };
    match rewrite(file, &hooks::HOOKS, &mut numbering) {
        Ok(rewritten) => {
            locked(&engine.table).rewritten(&rewritten);
            rewritten.bytes
        }
        Err(why) => {
            let name = of_class(name.unwrap_or("a class without a name"));
            locked(&engine.table).refused.add(format!("{name}: {why}"));
            None
        }
    }
}

/// Gives numbers to the allocation sites of one class.
struct Numbering<'e> {
    engine: &'e Engine,
    plan: &'e Plan,
    is_boot: bool,
    wanted: Option<bool>,
}

impl Sites for Numbering<'_> {
    fn wants(&mut self, class: Name<'_>, _: Name<'_>, _: Name<'_>) -> bool {
        let (plan, is_boot) = (self.plan, self.is_boot);
        *self
            .wanted
            .get_or_insert_with(|| plan.counts_class(&modified_utf8(class.as_bytes()), is_boot))
    }

    fn hook_after(&mut self, call: &Call<'_>) -> Option<Told> {
        calls::hook_after(call, self.engine.by_class)
    }

    fn number(&mut self, class: Name<'_>, site: &Site<'_>) -> Option<i32> {
        if self.is_boot && calls::is_counted_by_callers(class, site) {
            return None;
        }
        let number = locked(&self.engine.table).number(class.as_bytes(), site)?;
        self.engine.layout.number(number, site.kind, &site.class)
    }
}

impl Engine {
    fn new(environment: Environment, env: &Env<'_>) -> Result<Self, Failed> {
        let layout = Layout::from_jvm(&environment, env).map_err(in_heap)?;
        let cells = match CELLS.get() {
            Some(cells) => cells,
            None => {
                let made = Cells::new()
                    .ok_or_else(|| failed("there is not enough memory for the counters"))?;
                CELLS.get_or_init(|| made)
            }
        };
        let klass = structs::klass_offset();
        if klass.is_none() {
            print_line(
                Level::Warn,
                "count: objects created by reflection and clone are not counted, because this JVM does not give access to the class of an object",
            );
        }
        let carriers = env.has_carrier_method();
        let class = hooks::bytes(&layout, cells, klass.unwrap_or(0), carriers).map_err(failed)?;
        env.define_hooks(&class).map_err(in_heap)?;
        Ok(Self {
            jvmti: environment.for_class_files::<Counted>().map_err(failed)?,
            cells,
            layout,
            by_class: klass.is_some(),
            table: Mutex::default(),
            plan: Mutex::default(),
            begun: Mutex::default(),
            result: Mutex::default(),
        })
    }

    /// Inserts hooks into all classes that are to be counted. Then reads the counters: these values mark the start of
    /// the count.
    fn begin(&self, env: &Env<'_>, plan: Plan) -> Result<(), Failed> {
        drop(locked(&self.result).take());
        locked(&self.table).begin();
        let plan = Arc::new(plan);
        if debugger::is_attached() && !self.classes_in_plan(env, &plan).map_err(failed)?.is_empty()
        {
            return debugged();
        }
        *locked(&self.plan) = Some(Arc::clone(&plan));
        // If threads get no private counters (stripes), all threads share counters, which makes hooks slower.
        let _ = self.assign_stripes(env);
        let classes = self
            .jvmti
            .hook_class_files(true)
            .and_then(|()| self.classes_in_plan(env, &plan));
        let progress = Progress::new(plan.token.as_deref());
        let put = match &classes {
            Ok(classes) => self.retransform_in_batches(classes, PUT, &progress),
            Err(why) => Err(failed(why)),
        };
        if let Err(why) = put {
            self.remove_hooks(env, &Progress::new(None));
            return Err(why);
        }
        let counters = self.counters(env);
        *locked(&self.begun) = Some(Begun {
            at: Instant::now(),
            counters,
        });
        Ok(())
    }

    /// Returns the loaded classes in which allocations would be counted with the options `plan`.
    fn classes_in_plan<'local>(
        &self,
        env: &Env<'local>,
        plan: &Plan,
    ) -> crate::jvmti::Result<Vec<(String, Local<'local, Class>)>> {
        self.jvmti.changeable(env, |signature, is_boot| {
            let name = signature
                .strip_prefix('L')
                .and_then(|s| s.strip_suffix(';'));
            name.is_some_and(|name| plan.counts_class(name, is_boot))
        })
    }

    /// Assigns stripes (private counters) to the live threads. Also enables the events for threads that start and end,
    /// so that threads that start later get stripes, too.
    fn assign_stripes(&self, env: &Env<'_>) -> crate::jvmti::Result<()> {
        let known = self.cells.threads();
        self.jvmti.hook_threads(true)?;
        let live = self.jvmti.live_threads(env)?;
        // While no count runs, the JVM does not report to the agent that threads end. So free the private counters
        // (stripes) of threads that have ended since the last count.
        let over = |thread: i64| known.contains(&thread) && !live.contains(&thread);
        self.cells.free_stripes(over);
        live.into_iter()
            .for_each(|thread| self.cells.assign_stripe(thread));
        Ok(())
    }

    /// Retransforms classes in batches, with pauses in between. Fails if the user ends the count.
    fn retransform_in_batches(
        &self,
        classes: &[(String, Local<'_, Class>)],
        what: &str,
        progress: &Progress,
    ) -> Result<(), Failed> {
        let (mut told, mut portions) = (Instant::now(), Portions::new());
        let mut left = classes;
        while !left.is_empty() {
            let size = if classes.len() > portions.size() {
                rests::portion(portions.size())
            } else {
                portions.size()
            };
            let (portion, others) = left.split_at(size.min(left.len()));
            left = others;
            let started = Instant::now();
            self.retransform_batch(portion);
            let time = started.elapsed();
            portions.adapt_size(time);
            let done = classes.len() - left.len();
            progress.report_done(done, classes.len());
            if told.elapsed() >= TOLD {
                told = Instant::now();
                print_line(
                    Level::Info,
                    format_args!("count: {what}: {done} of {} done", classes.len()),
                );
            }
            if !left.is_empty() {
                rests::pause_after_batch(time, || {
                    progress.heartbeat();
                    progress.is_ended()
                });
            }
            if progress.is_ended() {
                return Err((attach::COUNT_ENDED, "the user ended the count".to_owned()));
            }
        }
        Ok(())
    }

    /// Retransforms one batch of classes. Records each class that the JVM rejects.
    fn retransform_batch(&self, portion: &[(String, Local<'_, Class>)]) {
        let ask = |classes: &[(String, Local<'_, Class>)]| {
            let references: Vec<_> = classes.iter().map(|(_, class)| class.get()).collect();
            self.jvmti.retransform(&references)
        };
        bisect_failures(portion, ask, |(signature, _), why| {
            let refused = format!("{}: {}", name_from_signature(signature), words(why));
            locked(&self.table).refused.add(refused);
        });
    }

    /// Ends the count and removes the hooks. If a debugger is attached and classes have hooks, starts a thread that
    /// waits until the debugger disconnects and then removes the hooks. Returns true if the hooks have been removed.
    fn end_count(&self, env: &Env<'_>, progress: &Progress) -> bool {
        *locked(&self.plan) = None;
        let is_bare = locked(&self.table).changed.is_empty();
        if is_bare || !debugger::is_attached() {
            self.remove_hooks(env, progress);
            STATE.store(state::IDLE, Release);
            return true;
        }
        let attached = debugger::ATTACHED;
        let until = match self.run_watch(env, OVER) {
            Ok(()) => "until the debugger disconnects",
            Err(_) => {
                STATE.store(state::IDLE, Release);
                "until the next count ends"
            }
        };
        print_line(
            Level::Warn,
            format_args!("{attached}; the counters stay in the classes {until}"),
        );
        false
    }

    /// Waits until no debugger is attached and then removes the hooks.
    fn remove_hooks_later(&self, env: &Env<'_>) {
        while debugger::is_attached() {
            sleep(LOOK);
        }
        self.remove_hooks(env, &Progress::new(None));
        STATE.store(state::IDLE, Release);
        print_line(
            Level::Info,
            "count: the debugger has disconnected, so the agent removed the counters from the classes",
        );
    }

    /// Starts a thread that runs [`watch`] for the count with the number `round`.
    fn run_watch(&self, env: &Env<'_>, round: usize) -> Result<(), Failed> {
        let thread = env.thread("heapdiff count").map_err(in_heap)?;
        let run = self.jvmti.run_thread(thread.get(), Thread::Count, round);
        run.map_err(failed)
    }

    /// Removes the hooks from all classes that have them.
    fn remove_hooks(&self, env: &Env<'_>, progress: &Progress) {
        *locked(&self.plan) = None;
        *locked(&self.begun) = None;
        // If the file of a class was rewritten a moment ago, the class may not be in the JVM's list of loaded classes
        // yet. So search the list several times.
        let mut restored: FxHashMap<String, usize> = FxHashMap::default();
        for look in 0..LATE {
            if look > 0 {
                sleep(LOOK);
            }
            let changed = locked(&self.table).changed.clone();
            let found = self.jvmti.changeable(env, |name, _| changed.contains(name));
            let Ok(mut found) = found else {
                print_line(
                    Level::Warn,
                    "count: the counters stay in the classes, because the JVM did not return the list of its classes",
                );
                break;
            };
            let mut counts: FxHashMap<String, usize> = FxHashMap::default();
            for (name, _) in &found {
                *counts.entry(name.clone()).or_default() += 1;
            }
            found.retain(|(name, _)| restored.get(name) != counts.get(name));
            // If the user ends the count early, the hooks must still be removed. So ignore the error.
            let _ = self.retransform_in_batches(&found, TAKE_OUT, progress);
            restored = counts;
        }
        // Disabling an event fails only if it was not enabled, so ignore the error.
        let _ = self.jvmti.hook_threads(false);
        if self.jvmti.hook_class_files(false).is_err() {
            print_line(
                Level::Warn,
                "count: the JVM still sends class files to the agent, but the agent does not change them",
            );
        }
    }

    /// Publishes the result in a file in memory.
    fn publish_result(&self, env: &Env<'_>, token: &str) -> Result<(), Failed> {
        let begun = locked(&self.begun).take();
        let begun = begun.ok_or_else(|| failed("no count was started"))?;
        self.publish_counts(&self.counts(env, &begun), token)
    }

    fn publish_counts(&self, counts: &Counts, token: &str) -> Result<(), Failed> {
        let mut file = memory_file(&attach::counts_file_name(token)).map_err(failed)?;
        file.write_all(&counts.encode()).map_err(failed)?;
        *locked(&self.result) = Some(file);
        Ok(())
    }

    /// Returns the counts since `begun`. The sites with the largest counts come first.
    fn counts(&self, env: &Env<'_>, Begun { at, counters }: &Begun) -> Counts {
        let now = self.counters(env);
        let millis = u64::try_from(at.elapsed().as_millis()).unwrap_or(u64::MAX);
        let jdk = locked(&self.plan).as_ref().is_some_and(|plan| plan.jdk);
        // For each line of the result: number of objects, and bytes of arrays.
        let mut sums: FxHashMap<Place, [u64; 2]> = FxHashMap::default();
        {
            let table = locked(&self.table);
            for (number, now) in now.iter().enumerate() {
                let before = counters.get(number).copied().unwrap_or_default();
                let change = [0, 1].map(|i| now[i].wrapping_sub(before[i]));
                if change[0] == 0 {
                    continue;
                }
                if let Some((site, names)) = table.site(number) {
                    let sum = sums.entry((names, site.line, site.is_object)).or_default();
                    *sum = [0, 1].map(|i| sum[i].saturating_add(change[i]));
                }
            }
        }
        let objects = sums.keys().filter(|key| key.2);
        let sizes = self.sizes(env, objects.map(|key| Arc::clone(&key.0[2])));
        let site = |((names, line, is_object), [objects, bytes]): (Place, [u64; 2])| {
            let [class, method, allocated] = names;
            CountedSite {
                bytes: if is_object {
                    match sizes.get(&*allocated) {
                        Some(Some(size)) => Some(size.saturating_mul(objects)),
                        _ => None,
                    }
                } else {
                    Some(bytes)
                },
                class: of_class(&class),
                method: method.to_string(),
                line: line.map(u32::from),
                allocated: of_class(&allocated),
                objects,
            }
        };
        let mut sites: Vec<CountedSite> = sums.into_iter().map(site).collect();
        let order = |s: &CountedSite| (std::cmp::Reverse((s.bytes, s.objects)), s.line);
        sites.sort_by(|a, b| {
            let names = |s: &CountedSite| [s.class.clone(), s.method.clone(), s.allocated.clone()];
            order(a)
                .cmp(&order(b))
                .then_with(|| names(a).cmp(&names(b)))
        });
        let table = locked(&self.table);
        Counts {
            millis,
            classes: table.classes,
            jdk,
            uncounted: table.uncounted,
            left_alone: table.left_alone.count,
            refused: table.refused.count,
            left_alone_names: table.left_alone.names.clone(),
            refused_names: table.refused.names.clone(),
            sites,
        }
    }

    /// Returns the size of an object by class name. The size is `None` if classes of this name have different sizes.
    /// Classes whose size the JVM does not report are left out.
    fn sizes(
        &self,
        env: &Env<'_>,
        names: impl Iterator<Item = Arc<str>>,
    ) -> FxHashMap<Arc<str>, Option<u64>> {
        let mut sizes: FxHashMap<Arc<str>, Option<u64>> = FxHashMap::default();
        let wanted: FxHashMap<String, Arc<str>> =
            names.map(|name| (format!("L{name};"), name)).collect();
        let found = self
            .jvmti
            .loaded(env, |signature| wanted.contains_key(signature));
        for (signature, class) in found.unwrap_or_default() {
            let (Some(size), Some(name)) = (
                self.jvmti.instance_size(env, class.get()),
                wanted.get(&signature),
            ) else {
                continue;
            };
            let known = sizes.entry(Arc::clone(name)).or_insert(Some(size));
            if *known != Some(size) {
                *known = None;
            }
        }
        sizes
    }
}
