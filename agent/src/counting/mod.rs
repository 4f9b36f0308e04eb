//! Allocations counted, every one: calls of hooks are put before them in the classes' code, and taken out again.
//!
//! A class file is rewritten as the JVM loads it ([`rewritten`]); classes that are loaded already are handed over again, some at a
//! time. The hooks (`hooks`) add to counters outside of the Java heap (`cells`), of which each site has its own (`table`). A
//! count is what was added between two moments. In the end the classes are handed over once more, and stay as they were.
//!
//! What is counted is executed bytecode: also allocations that the compiler then removes, since it finds that nothing outside
//! of a method sees the object. What calls allocate without bytecode is told to a hook after them (`calls`), and counted by
//! site and class (`returned`). Not counted is what JNI and the JVM itself make, and what is made in hidden classes, whose files
//! the JVM shows to no agent: behind a constructor's handle, `Foo::new`. Nor are some that intrinsics make: compiled code that takes
//! the place of a method of the JDK's, and of its bytecode with the counters.

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
use heapdiff_sites::types::{of_class, of_signature};
use heapdiff_sites::{CountedSite, Counts, attach};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::debugger;
use crate::jvmti::calls::{Class, Env, JniError, Local};
use crate::jvmti::classes::ClassFiles;
use crate::jvmti::sys::error;
use crate::jvmti::{Environment, Jvmti, JvmtiError, Thread, memory_file, modified_utf8, structs};
use crate::log::{say, say_panics};
use cells::Cells;
use layout::Layout;
pub(crate) use lines::Lines;
pub(crate) use plan::Asked;
use plan::Plan;
use portions::{Portions, by_halves};
use progress::Progress;
pub(crate) use standing::{InHeap, fall, stand};
use table::Table;

/// How often is told how far that is.
const TOLD: Duration = Duration::from_secs(2);
/// When a count that nobody ended is ended, after its time.
const GRACE: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(100);
/// In a round's place: that its count is over.
const OVER: usize = 0;
/// Looks for classes that were being loaded while those before them were restored.
const LATE: u32 = 3;

/// The action on classes, as the JVM's standard error names it.
const PUT: &str = "inserting counters into classes";
const TAKE_OUT: &str = "removing counters from classes";

/// What the counters do.
mod state {
    pub(super) const IDLE: u8 = 0;
    /// Somebody begins or ends a count.
    pub(super) const CHANGING: u8 = 1;
    pub(super) const COUNTING: u8 = 2;
}

/// Returns the classes in the stacks of samples; `None` if the agent does not sample.
type Sampled<'a> = &'a dyn Fn() -> Option<FxHashSet<String>>;

/// All that counting has, from the first time on.
struct Engine {
    jvmti: Jvmti,
    cells: &'static Cells,
    layout: Layout,
    /// Whether hooks can tell the class of what a call returns.
    by_class: bool,
    table: Mutex<Table>,
    /// What is counted; `None` if nothing is.
    plan: Mutex<Option<Arc<Plan>>>,
    begun: Mutex<Option<Begun>>,
    /// What was counted last, until somebody has read it or counts anew.
    result: Mutex<Option<File>>,
}

/// What tells a site as it is shown: its class, its method, the class of what it allocates; its line; whether that is no array.
type Place = ([Arc<str>; 3], Option<u16>, bool);

/// The counters at the start.
struct Begun {
    at: Instant,
    counters: Vec<[u64; 2]>,
}

static ENGINE: OnceLock<Engine> = OnceLock::new();
static CELLS: OnceLock<Cells> = OnceLock::new();
static STATE: AtomicU8 = AtomicU8::new(state::IDLE);
static ROUND: AtomicU64 = AtomicU64::new(0);

/// The JVMTI environment that hands over class files.
pub(crate) fn jvmti() -> Option<Jvmti> {
    ENGINE.get().map(|engine| engine.jvmti)
}

/// True if the classes hold counters.
pub(crate) fn is_on() -> bool {
    STATE.load(Acquire) == state::COUNTING || standing::STANDS.load(Acquire)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Goes from one state to another; `false` if it is in none of both.
fn moves(from: u8, to: u8) -> bool {
    STATE.compare_exchange(from, to, AcqRel, Acquire).is_ok()
}

/// Does what was asked for. Returns one of [`attach`]'s codes.
pub(crate) fn ask(
    environment: Environment,
    env: &Env<'_>,
    asked: &Asked<'_>,
    sampled: Sampled<'_>,
) -> i32 {
    say_panics();
    if let Some(code) = standing::ask(env, asked, sampled) {
        return code;
    }
    let done = match asked {
        Asked::Classes(_) if STATE.load(Acquire) != state::IDLE && !debugger::is_attached() => {
            return attach::COUNTS_ALREADY;
        }
        Asked::Classes(options) => match changed_by(environment, env, options, sampled) {
            Ok(classes) => {
                let most = i32::MAX - attach::CLASSES;
                return attach::CLASSES + i32::try_from(classes).unwrap_or(most).min(most);
            }
            Err(why) => Err(why),
        },
        Asked::Begin(options) => match planned(options, sampled) {
            Ok(plan) if moves(state::IDLE, state::CHANGING) => {
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
            Some(engine) if moves(state::COUNTING, state::CHANGING) => {
                let shown = engine.shown(env, token);
                if engine.leave(env, &Progress::new(Some(token))) {
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
            say(format_args!("cannot count: {why}"));
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

/// Returns why the JVM does not take a changed class, in words.
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

/// Reads the options, and takes the classes of sampled stacks from the agent if only these are wanted.
fn planned(options: &str, sampled: Sampled<'_>) -> Result<Plan, Failed> {
    let mut plan = Plan::parse(options).map_err(|why| (attach::BAD_OPTIONS, why))?;
    if plan.sampled {
        plan.only = Some(sampled().ok_or((
            attach::NO_SAMPLES,
            "the agent does not sample in this JVM".to_owned(),
        ))?);
    }
    Ok(plan)
}

/// Returns how many of the classes that are loaded a count with these options changes.
fn changed_by(
    environment: Environment,
    env: &Env<'_>,
    options: &str,
    sampled: Sampled<'_>,
) -> Result<usize, Failed> {
    let plan = planned(options, sampled)?;
    let wanted = engine(environment, env)?.wanted(env, &plan);
    Ok(wanted.map_err(failed)?.len())
}

/// Returns the engine, which the first call makes.
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

/// Has a thread end the count if nobody does.
fn watched(env: &Env<'_>) -> Result<(), Failed> {
    let Some(engine) = ENGINE.get() else {
        return Ok(());
    };
    let round = usize::try_from(ROUND.load(Acquire)).unwrap_or(0);
    let started = engine.run_watch(env, round);
    if started.is_err() && moves(state::COUNTING, state::CHANGING) {
        engine.take_out(env, &Progress::new(None));
        STATE.store(state::IDLE, Release);
    }
    started
}

/// Ends the count of this round when its time is long over; of [`OVER`], when no debugger is attached any more.
pub(crate) fn watch(env: &Env<'_>, round: usize) {
    let Some(engine) = ENGINE.get() else {
        return;
    };
    if round == OVER {
        return engine.leave_later(env);
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
    if is_on() && moves(state::COUNTING, state::CHANGING) {
        say(
            "count: the time is over, but heapdiff did not read the counts; the agent removes the counters now",
        );
        engine.leave(env, &Progress::new(None));
    }
}

/// The class files of what is counted.
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
            cells.give(number);
        }
    }

    fn thread_ended(number: i64) {
        if let Some(cells) = CELLS.get() {
            cells.take_back(|thread| thread == number);
        }
    }
}

/// A class file that the JVM is about to parse, rewritten if it is to be counted. Calls nothing of the JVM's.
fn rewritten(name: Option<&str>, is_boot: bool, file: &[u8]) -> Option<Vec<u8>> {
    let engine = ENGINE.get()?;
    let plan = locked(&engine.plan).clone()?;
    if name.is_some_and(|name| !plan.wants(name, is_boot)) {
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

/// Gives the sites of a class their numbers.
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
            .get_or_insert_with(|| plan.wants(&modified_utf8(class.as_bytes()), is_boot))
    }

    fn told(&mut self, call: &Call<'_>) -> Option<Told> {
        calls::told(call, self.engine.by_class)
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
        let layout = Layout::of(&environment, env).map_err(in_heap)?;
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
            say(
                "count: objects created by reflection and clone are not counted, because this JVM does not give access to the class of an object",
            );
        }
        let carriers = env.knows_carriers();
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

    /// Puts hooks into all classes that are wanted, and remembers what the counters say then.
    fn begin(&self, env: &Env<'_>, plan: Plan) -> Result<(), Failed> {
        drop(locked(&self.result).take());
        locked(&self.table).begin();
        let plan = Arc::new(plan);
        if debugger::is_attached() && !self.wanted(env, &plan).map_err(failed)?.is_empty() {
            return debugged();
        }
        *locked(&self.plan) = Some(Arc::clone(&plan));
        // Threads without counters of their own share some: it costs more.
        let _ = self.give_stripes(env);
        let classes = self
            .jvmti
            .hook_class_files(true)
            .and_then(|()| self.wanted(env, &plan));
        let progress = Progress::new(plan.token.as_deref());
        let put = match &classes {
            Ok(classes) => self.hand_over(classes, PUT, &progress),
            Err(why) => Err(failed(why)),
        };
        if let Err(why) = put {
            self.take_out(env, &Progress::new(None));
            return Err(why);
        }
        let counters = self.counters(env);
        *locked(&self.begun) = Some(Begun {
            at: Instant::now(),
            counters,
        });
        Ok(())
    }

    /// The classes that are loaded and that a plan wants.
    fn wanted<'local>(
        &self,
        env: &Env<'local>,
        plan: &Plan,
    ) -> crate::jvmti::Result<Vec<(String, Local<'local, Class>)>> {
        self.jvmti.changeable(env, |signature, is_boot| {
            let name = signature
                .strip_prefix('L')
                .and_then(|s| s.strip_suffix(';'));
            name.is_some_and(|name| plan.wants(name, is_boot))
        })
    }

    /// Gives the threads that live, and those that start from now on, counters of their own.
    fn give_stripes(&self, env: &Env<'_>) -> crate::jvmti::Result<()> {
        let known = self.cells.threads();
        self.jvmti.hook_threads(true)?;
        let live = self.jvmti.live_threads(env)?;
        // Some ended between two counts, when nobody looked.
        let over = |thread: i64| known.contains(&thread) && !live.contains(&thread);
        self.cells.take_back(over);
        live.into_iter().for_each(|thread| self.cells.give(thread));
        Ok(())
    }

    /// Retransforms classes, a portion at a time, with rests in between. Fails if whoever counts ends it.
    fn hand_over(
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
            self.hand_over_portion(portion);
            let time = started.elapsed();
            portions.took(time);
            let done = classes.len() - left.len();
            progress.reached(done, classes.len());
            if told.elapsed() >= TOLD {
                told = Instant::now();
                say(format_args!("count: {what}: {done} of {}", classes.len()));
            }
            if !left.is_empty() {
                rests::rest(time, || {
                    progress.beat();
                    progress.is_ended()
                });
            }
            if progress.is_ended() {
                return Err((attach::COUNT_ENDED, "the user ended the count".to_owned()));
            }
        }
        Ok(())
    }

    /// Retransforms one portion of classes. Reports each class that the JVM refuses.
    fn hand_over_portion(&self, portion: &[(String, Local<'_, Class>)]) {
        let ask = |classes: &[(String, Local<'_, Class>)]| {
            let references: Vec<_> = classes.iter().map(|(_, class)| class.get()).collect();
            self.jvmti.retransform(&references)
        };
        by_halves(portion, ask, |(signature, _), why| {
            let refused = format!("{}: {}", of_signature(signature), words(why));
            locked(&self.table).refused.add(refused);
        });
    }

    /// Ends the count: takes the hooks out or, where a debugger is attached, leaves that to a thread that waits until it disconnects.
    /// Whether they are out.
    fn leave(&self, env: &Env<'_>, progress: &Progress) -> bool {
        *locked(&self.plan) = None;
        let is_bare = locked(&self.table).changed.is_empty();
        if is_bare || !debugger::is_attached() {
            self.take_out(env, progress);
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
        say(format_args!(
            "{attached}; the counters stay in the classes {until}"
        ));
        false
    }

    /// Takes the hooks out as soon as no debugger is attached.
    fn leave_later(&self, env: &Env<'_>) {
        while debugger::is_attached() {
            sleep(LOOK);
        }
        self.take_out(env, &Progress::new(None));
        STATE.store(state::IDLE, Release);
        say(
            "count: the debugger has disconnected, so the agent removed the counters from the classes",
        );
    }

    /// Starts the thread that watches a round.
    fn run_watch(&self, env: &Env<'_>, round: usize) -> Result<(), Failed> {
        let thread = env.thread("heapdiff count").map_err(in_heap)?;
        let run = self.jvmti.run_thread(thread.get(), Thread::Count, round);
        run.map_err(failed)
    }

    /// Takes the hooks out of all classes that have them.
    fn take_out(&self, env: &Env<'_>, progress: &Progress) {
        *locked(&self.plan) = None;
        *locked(&self.begun) = None;
        // A class whose file was rewritten before that may not be among those that are loaded yet.
        let mut restored: FxHashMap<String, usize> = FxHashMap::default();
        for look in 0..LATE {
            if look > 0 {
                sleep(LOOK);
            }
            let changed = locked(&self.table).changed.clone();
            let found = self.jvmti.changeable(env, |name, _| changed.contains(name));
            let Ok(mut found) = found else {
                say(
                    "count: the counters stay in the classes, because the JVM did not return the list of its classes",
                );
                break;
            };
            let mut counts: FxHashMap<String, usize> = FxHashMap::default();
            for (name, _) in &found {
                *counts.entry(name.clone()).or_default() += 1;
            }
            found.retain(|(name, _)| restored.get(name) != counts.get(name));
            // Nobody may end this.
            let _ = self.hand_over(&found, TAKE_OUT, progress);
            restored = counts;
        }
        // An event that cannot be turned off was not on.
        let _ = self.jvmti.hook_threads(false);
        if self.jvmti.hook_class_files(false).is_err() {
            say(
                "count: the JVM still sends class files to the agent, but the agent does not change them",
            );
        }
    }

    /// Shows what was counted, in a file in memory.
    fn shown(&self, env: &Env<'_>, token: &str) -> Result<(), Failed> {
        let begun = locked(&self.begun).take();
        let begun = begun.ok_or_else(|| failed("no count was started"))?;
        self.show(&self.counts(env, &begun), token)
    }

    fn show(&self, counts: &Counts, token: &str) -> Result<(), Failed> {
        let mut file = memory_file(&attach::count_sign(token)).map_err(failed)?;
        file.write_all(&counts.encode()).map_err(failed)?;
        *locked(&self.result) = Some(file);
        Ok(())
    }

    /// What was counted since then, the sites with most bytes first.
    fn counts(&self, env: &Env<'_>, Begun { at, counters }: &Begun) -> Counts {
        let now = self.counters(env);
        let millis = u64::try_from(at.elapsed().as_millis()).unwrap_or(u64::MAX);
        let jdk = locked(&self.plan).as_ref().is_some_and(|plan| plan.jdk);
        // By class, method, line and class of what is allocated: objects, and bytes of arrays.
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

    /// Bytes of an object of each of these classes, where the JVM tells them and classes of one name agree.
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
