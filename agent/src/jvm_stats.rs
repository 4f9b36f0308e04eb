//! Reads the JVM's statistics about heap, metaspace, classes and GCs.
//!
//! Heap sizes come from `java.lang.Runtime`, which every JVM has and which reports current values. The other statistics
//! come from the management beans. In a Java image without the module `java.management`, they come from performance
//! counters and GC pauses. The beans are called directly, so no management server is started.

use std::ffi::CStr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use heapdiff_trace::NewCollection;

use crate::gc_match::{Clock, LastGc};
use crate::jvmti::calls::{Any, Class, Env, Global, Local, Ref, Result, Text, Texts, Value};
use crate::jvmti::perf::{Counter, Perf};
use crate::pauses::{Causes, Pause, Pauses};

/// Maximum number of beans of one kind.
const MOST_BEANS: i32 = 32;
/// Number of free bytes that the heap must have before the agent looks up the management beans.
const ROOM: u64 = 2 << 20;
const G1_CONCURRENT: &str = "G1 Concurrent GC";
/// Maximum time from a pause until a management bean reports the GC to which the pause belongs. After this time, the
/// agent assumes that no bean will report this GC.
const UNCLAIMED: Duration = Duration::from_millis(500);
/// The JVM's statistics at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Figures {
    pub(crate) heap_used: u64,
    pub(crate) heap_committed: u64,
    pub(crate) metaspace_used: u64,
    pub(crate) metaspace_committed: u64,
    pub(crate) loaded_classes: u64,
}

struct Collector {
    bean: Global,
    name: String,
    /// Number of GCs so far.
    count: u64,
    /// For beans that count pauses: the value of `getCollectionTime` at the last reading, in milliseconds.
    time: u64,
}

struct Beans {
    metaspace: Option<Global>,
    classes: Global,
    collectors: Vec<Collector>,
    heap_pools: Vec<Global<Text>>,
    clock: Clock,
    /// Total time of the pauses since the last cycle of a concurrent collector, in milliseconds.
    paused: u64,
}

struct PerfCounters {
    perf: Perf,
    metaspace_used: Option<Counter>,
    metaspace_committed: Option<Counter>,
    loaded: Option<Counter>,
    shared: Option<Counter>,
    unloaded: Option<Counter>,
    shared_unloaded: Option<Counter>,
}

/// Reads the JVM's statistics and GCs.
pub(crate) struct JvmStats {
    runtime: Arc<Global>,
    /// True if the JVM has just been initialized. Then the first reading also records the GCs that the beans counted
    /// before this reading.
    young: bool,
    /// True once the management beans and performance counters were looked up.
    asked: bool,
    /// True if the lookup of the beans and counters was postponed, because the heap was nearly full.
    put_off: bool,
    beans: Option<Beans>,
    counters: Option<PerfCounters>,
    /// Pauses for which no management bean has reported a GC yet.
    pauses: Vec<Pause>,
    /// Pauses recorded before the management beans were looked up. No bean will report the GCs of these pauses.
    early: Vec<Pause>,
    last: Figures,
    /// Number of GCs without details: before the agent read the details from the bean, the next GC had ended. Dropped
    /// pauses are counted here, too.
    pub(crate) unseen: u64,
}

fn unsigned(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

/// Returns the `java.lang.Runtime` object of the JVM.
pub(crate) fn runtime<'local>(env: &Env<'local>) -> Result<Local<'local>> {
    let class = env.class(c"java/lang/Runtime")?;
    let named = (c"getRuntime", c"()Ljava/lang/Runtime;");
    env.call_static_non_null(class.get(), named, &[])
}

/// Returns the used and committed bytes of the heap.
pub(crate) fn heap_of(env: &Env<'_>, runtime: Ref<'_>) -> Result<(u64, u64)> {
    let committed = env.ask_long(runtime, c"totalMemory")?;
    let free = env.ask_long(runtime, c"freeMemory")?;
    Ok((unsigned(committed - free), unsigned(committed)))
}

/// Returns the maximum size of the heap in bytes.
pub(crate) fn largest_heap(env: &Env<'_>, runtime: Ref<'_>) -> Result<u64> {
    Ok(unsigned(env.ask_long(runtime, c"maxMemory")?))
}

impl JvmStats {
    /// Creates a reader of the JVM's statistics. `young` is true if the JVM has just been initialized. If it is false,
    /// the pauses of earlier GCs are discarded.
    pub(crate) fn new(runtime: Arc<Global>, pauses: &Pauses, young: bool) -> Self {
        if !young {
            pauses.take();
        }
        Self {
            runtime,
            young,
            asked: false,
            put_off: false,
            beans: None,
            counters: None,
            pauses: Vec::new(),
            early: Vec::new(),
            last: Figures::default(),
            unseen: 0,
        }
    }

    /// Looks up the management beans and performance counters, once. Returns:
    ///
    /// - `Some(Ok(()))` if the beans exist,
    /// - `Some(Err(_))` with the reason if they do not exist,
    /// - `None` if the lookup was done before or is postponed.
    ///
    /// The lookup initializes classes. If the heap gets full during an initialization, the class stays unusable, also
    /// for the program. So the lookup is postponed until the heap has at least [`ROOM`] bytes free.
    pub(crate) fn look_up_beans(&mut self, env: &Env<'_>, pauses: &Pauses) -> Option<Result<()>> {
        if self.asked || !self.has_room(env) {
            // If the lookup is postponed, the agent knows only the pauses of the GCs that end before the lookup.
            self.young = false;
            self.put_off |= !self.asked;
            return None;
        }
        self.asked = true;
        self.counters = Self::counters(env, pauses);
        let mut beans = match Beans::find(env) {
            Ok(beans) => beans,
            Err(why) => return Some(Err(why)),
        };
        if self.young {
            for collector in &mut beans.collectors {
                (collector.count, collector.time) = (0, 0);
            }
        } else {
            // The beans report only GCs that end after this moment. So no bean will report the GCs whose pauses were
            // recorded until now. If the lookup of the beans was postponed, keep these pauses. If the agent was
            // attached just now, drop them.
            let (early, missed) = pauses.take();
            if self.put_off {
                self.early = early;
                self.unseen += missed;
            }
        }
        self.beans = Some(beans);
        Some(Ok(()))
    }

    fn has_room(&self, env: &Env<'_>) -> bool {
        let most = env.ask_long(self.runtime.get(), c"maxMemory");
        let free = most.and_then(|most| {
            let (used, _) = self.heap(env)?;
            Ok(unsigned(most).saturating_sub(used))
        });
        free.is_ok_and(|free| free >= ROOM)
    }

    fn counters(env: &Env<'_>, pauses: &Pauses) -> Option<PerfCounters> {
        Perf::open(env).map(|perf| {
            let [now, last] = perf.find(["sun.gc.cause", "sun.gc.lastCause"]);
            let _ = pauses.causes.set(Causes { perf, now, last });
            let [used, committed, loaded, shared, unloaded, shared_unloaded] = perf.find([
                "sun.gc.metaspace.used",
                "sun.gc.metaspace.capacity",
                "java.cls.loadedClasses",
                "java.cls.sharedLoadedClasses",
                "java.cls.unloadedClasses",
                "java.cls.sharedUnloadedClasses",
            ]);
            PerfCounters {
                perf,
                metaspace_used: used,
                metaspace_committed: committed,
                loaded,
                shared,
                unloaded,
                shared_unloaded,
            }
        })
    }

    /// Returns the current statistics. If they cannot be read, for example because the heap is full, returns the
    /// previous statistics. Values that the JVM does not provide are 0.
    pub(crate) fn figures(&mut self, env: &Env<'_>) -> Figures {
        if let Ok(figures) = self.query(env) {
            self.last = figures;
        }
        self.last
    }

    fn query(&self, env: &Env<'_>) -> Result<Figures> {
        let (used, committed) = self.heap(env)?;
        let mut figures = Figures {
            heap_used: used,
            heap_committed: committed,
            ..Figures::default()
        };
        if let Some(counters) = &self.counters {
            let read = |counter: Option<Counter>| counter.map_or(0, |c| counters.perf.number(c));
            figures.metaspace_used = read(counters.metaspace_used);
            figures.metaspace_committed = read(counters.metaspace_committed);
            figures.loaded_classes = (read(counters.loaded) + read(counters.shared))
                .saturating_sub(read(counters.unloaded) + read(counters.shared_unloaded));
        }
        if let Some(beans) = &self.beans {
            if let Some(pool) = &beans.metaspace {
                let named = (c"getUsage", c"()Ljava/lang/management/MemoryUsage;");
                let usage = env.call_non_null::<Any>(pool.get(), named, &[])?;
                figures.metaspace_used = unsigned(env.ask_long(usage.get(), c"getUsed")?);
                figures.metaspace_committed = unsigned(env.ask_long(usage.get(), c"getCommitted")?);
            }
            let count = env.ask_int(beans.classes.get(), c"getLoadedClassCount")?;
            figures.loaded_classes = unsigned(count.into());
        }
        Ok(figures)
    }

    /// Returns the used and committed bytes of the heap.
    fn heap(&self, env: &Env<'_>) -> Result<(u64, u64)> {
        heap_of(env, self.runtime.get())
    }

    /// Returns the GCs since the last call. `clock` converts a time to wall-clock time and uptime in milliseconds.
    pub(crate) fn collections(
        &mut self,
        env: &Env<'_>,
        pauses: &Pauses,
        clock: &impl Fn(Instant) -> (i64, i64),
    ) -> Vec<NewCollection> {
        let (new, missed) = pauses.take();
        self.pauses.extend(new);
        self.unseen += missed;
        self.read_collections(env, pauses, clock)
            .unwrap_or_default()
    }

    fn read_collections(
        &mut self,
        env: &Env<'_>,
        pauses: &Pauses,
        clock: &impl Fn(Instant) -> (i64, i64),
    ) -> Result<Vec<NewCollection>> {
        let mut seen = Vec::new();
        let mut cause = None;
        // GCs for which a bean has only increased its number of GCs, without details. After the loop, each of them gets
        // a pause that no other GC has taken, if one is left.
        let mut lost = Vec::new();
        if let Some(beans) = &mut self.beans {
            beans.pause_time(env)?;
            for at in 0..beans.collectors.len() {
                let Some((missed, gc)) = beans.take_last_gc(env, at)? else {
                    continue;
                };
                // Take the pauses again: the GC may have ended after the pauses were taken for the first time.
                let (new, dropped) = pauses.take();
                self.pauses.extend(new);
                self.unseen += dropped;
                let cycle = beans.collectors[at].name.ends_with("Cycles");
                let claimed = beans.clock.take_pauses(&gc, cycle, &mut self.pauses);
                let end = match &claimed[..] {
                    [pause] if !cycle => pause.end,
                    _ => gc.end,
                };
                let pause_us = match (claimed.is_empty(), cycle) {
                    (false, _) => claimed.iter().map(|p| micros(p.length())).sum(),
                    (true, true) => std::mem::take(&mut beans.paused) * 1000,
                    (true, false) => micros(gc.end.saturating_duration_since(gc.start)),
                };
                let cause = match claimed.first() {
                    Some(pause) => pause.cause(),
                    None => cause
                        .get_or_insert_with(|| {
                            pauses.causes.get().map_or_else(String::new, Causes::cause)
                        })
                        .clone(),
                };
                let name = &beans.collectors[at].name;
                // These GCs ended before `gc`, the last GC of this collector. They were not seen before `gc` ended, so
                // only their pauses are known.
                self.unseen += missed;
                lost.push((missed, name.clone(), cause.clone(), gc.start, gc.before));
                seen.push(row(
                    clock(end),
                    name,
                    cause,
                    pause_us,
                    (gc.before, gc.after),
                ));
            }
        }
        for (missed, name, cause, before, used) in lost {
            for _ in 0..missed {
                let pause = take_earlier(&mut self.pauses, before, is_major(&name));
                seen.push(row(
                    clock(pause.map_or(before, |p| p.end)),
                    &name,
                    pause.map_or_else(|| cause.clone(), |p| p.cause()),
                    pause.map_or(0, |p| micros(p.length())),
                    (used, used),
                ));
            }
        }
        self.add_unclaimed_pauses(env, clock, &mut seen)?;
        seen.sort_by_key(|c| c.uptime_ms);
        Ok(seen)
    }

    /// Adds pauses for which no bean reports a GC: G1's remark and cleanup before JDK 20, and all pauses if there are
    /// no beans.
    fn add_unclaimed_pauses(
        &mut self,
        env: &Env<'_>,
        clock: &impl Fn(Instant) -> (i64, i64),
        seen: &mut Vec<NewCollection>,
    ) -> Result<()> {
        let old = |pause: &Pause| self.beans.is_none() || pause.end.elapsed() >= UNCLAIMED;
        let (old, young): (Vec<Pause>, Vec<Pause>) = self.pauses.drain(..).partition(old);
        self.pauses = young;
        let early = std::mem::take(&mut self.early);
        let (unnamed, marking) = match &self.beans {
            None => (old, Vec::new()),
            Some(beans) if beans.lacks_concurrent() => (early, old),
            // Drop the other pauses. They belong to a cycle of a concurrent collector. The cycle's bean will count
            // these pauses when the cycle is complete.
            Some(_) => (early, Vec::new()),
        };
        if unnamed.is_empty() && marking.is_empty() {
            return Ok(());
        }
        let before = self.last.heap_used;
        let after = self.heap(env)?.0;
        let unnamed = unnamed.into_iter().map(|pause| ("", before, pause));
        let marking = marking
            .into_iter()
            .map(|pause| (G1_CONCURRENT, after, pause));
        for (name, before, pause) in unnamed.chain(marking) {
            seen.push(row(
                clock(pause.end),
                name,
                pause.cause(),
                micros(pause.length()),
                (before, after),
            ));
        }
        self.last.heap_used = after;
        Ok(())
    }
}

fn row(
    (time_ms, uptime_ms): (i64, i64),
    collector: &str,
    cause: String,
    pause_us: u64,
    (before_bytes, after_bytes): (u64, u64),
) -> NewCollection {
    NewCollection {
        time_ms,
        uptime_ms,
        collector: collector.to_owned(),
        major: if collector.is_empty() {
            is_full(&cause)
        } else {
            is_major(collector)
        },
        cause,
        pause_us,
        before_bytes,
        after_bytes,
    }
}

/// True if each GC with this cause processes the whole heap.
fn is_full(cause: &str) -> bool {
    [
        "System.gc()",
        "Heap Dump Initiated GC",
        "Heap Inspection Initiated GC",
    ]
    .contains(&cause)
}

/// Removes and returns the pause that probably belongs to an unseen GC. This GC ended before `before`, and `major` is
/// true if it processed the whole heap. Chooses the first of these that exists:
///
/// - the first pause that ended before `before` and whose cause fits `major`,
/// - the first pause that ended before `before`,
/// - the first pause.
fn take_earlier(pauses: &mut Vec<Pause>, before: Instant, major: bool) -> Option<Pause> {
    let place = |fits: &dyn Fn(&Pause) -> bool| {
        let mut all = pauses.iter();
        all.position(|p| p.end <= before && fits(p))
    };
    let place = place(&|p| is_full(&p.cause()) == major)
        .or_else(|| place(&|_| true))
        .or((!pauses.is_empty()).then_some(0));
    place.map(|at| pauses.remove(at))
}

/// True if a collector with this bean name processes the whole heap. G1's concurrent marking counts as such a
/// collector.
fn is_major(collector: &str) -> bool {
    let minor = ["Copy", "ParNew", "PS Scavenge"];
    !(minor.contains(&collector) || collector.contains("Young") || collector.contains("Minor"))
}

fn micros(time: Duration) -> u64 {
    time.as_micros().try_into().unwrap_or(u64::MAX)
}

/// Calls `item` for the items of a list, in order, but for at most [`MOST_BEANS`] items.
fn for_each_item(
    env: &Env<'_>,
    list: Ref<'_>,
    mut item: impl FnMut(Ref<'_>) -> Result<()>,
) -> Result<()> {
    let get = (c"get", c"(I)Ljava/lang/Object;");
    for at in 0..env.ask_int(list, c"size")?.min(MOST_BEANS) {
        let next = env.call_non_null::<Any>(list, get, &[Value::Int(at)])?;
        item(next.get())?;
    }
    Ok(())
}

impl Beans {
    fn find(env: &Env<'_>) -> Result<Self> {
        let factory = env.class(c"java/lang/management/ManagementFactory")?;
        let all = |name| {
            let named = (name, c"()Ljava/util/List;");
            env.call_static_non_null::<Any>(factory.get(), named, &[])
        };
        let (mut metaspace, mut heap_pools) = (None, Vec::new());
        let pools = all(c"getMemoryPoolMXBeans")?;
        for_each_item(env, pools.get(), |pool| {
            let named = (c"getType", c"()Ljava/lang/management/MemoryType;");
            let kind = env.call_non_null::<Any>(pool, named, &[])?;
            let kind = env.call_string(kind.get(), c"name")?;
            let name = env.call_string(pool, c"getName")?;
            if kind == "HEAP" {
                heap_pools.push(env.text(&name)?.new_global_ref(env)?);
            }
            if name == "Metaspace" {
                metaspace = Some(pool.new_global_ref(env)?);
            }
            Ok(())
        })?;
        let mut collectors = Vec::new();
        let beans = all(c"getGarbageCollectorMXBeans")?;
        for_each_item(env, beans.get(), |bean| {
            collectors.push(Collector {
                name: env.call_string(bean, c"getName")?,
                count: unsigned(env.ask_long(bean, c"getCollectionCount")?),
                time: unsigned(env.ask_long(bean, c"getCollectionTime")?),
                bean: bean.new_global_ref(env)?,
            });
            Ok(())
        })?;
        let named = (
            c"getClassLoadingMXBean",
            c"()Ljava/lang/management/ClassLoadingMXBean;",
        );
        let classes = env.call_static_non_null::<Any>(factory.get(), named, &[])?;
        Ok(Self {
            metaspace,
            classes: classes.new_global_ref(env)?,
            collectors,
            heap_pools,
            clock: Self::clock(env, factory.get())?,
            paused: 0,
        })
    }

    /// Creates the GC's clock from the JVM's start time.
    fn clock(env: &Env<'_>, factory: Ref<'_, Class>) -> Result<Clock> {
        let named = (
            c"getRuntimeMXBean",
            c"()Ljava/lang/management/RuntimeMXBean;",
        );
        let bean = env.call_static_non_null::<Any>(factory, named, &[])?;
        let start_ms = unsigned(env.ask_long(bean.get(), c"getStartTime")?);
        let since_start = SystemTime::now()
            .duration_since(UNIX_EPOCH + Duration::from_millis(start_ms))
            .unwrap_or_default();
        Ok(Clock::new(since_start, Instant::now()))
    }

    fn lacks_concurrent(&self) -> bool {
        let has = |name: &str| self.collectors.iter().any(|c| c.name == name);
        has("G1 Young Generation") && !has(G1_CONCURRENT)
    }

    /// Reads the beans that count the pauses of concurrent cycles. Adds the time of the pauses since the last call to
    /// `self.paused`, in milliseconds.
    fn pause_time(&mut self, env: &Env<'_>) -> Result<()> {
        for collector in &mut self.collectors {
            if collector.name.ends_with("Pauses") {
                let time = unsigned(env.ask_long(collector.bean.get(), c"getCollectionTime")?);
                self.paused += time.saturating_sub(collector.time);
                collector.time = time;
            }
        }
        Ok(())
    }

    /// Returns the last GC that a bean has counted, and the number of earlier GCs that it has counted since the last
    /// call. Returns `None` if the bean has counted no GC since the last call. Also returns `None` for a bean that
    /// counts the pauses of concurrent cycles, because such a pause is only a part of a GC.
    fn take_last_gc(&mut self, env: &Env<'_>, at: usize) -> Result<Option<(u64, LastGc)>> {
        let collector = &mut self.collectors[at];
        if collector.name.ends_with("Pauses") {
            return Ok(None);
        }
        let count = unsigned(env.ask_long(collector.bean.get(), c"getCollectionCount")?);
        if count <= collector.count {
            return Ok(None);
        }
        let missed = count - collector.count - 1;
        collector.count = count;
        let named = (c"getLastGcInfo", c"()Lcom/sun/management/GcInfo;");
        let info = env.call_object::<Any>(collector.bean.get(), named, &[]);
        let now = Instant::now();
        // Either the module `jdk.management` is missing, or the first GC is not complete yet.
        let info = match info {
            Ok(Some(info)) => info,
            _ => {
                let unknown = LastGc {
                    start: now,
                    end: now,
                    end_ms: None,
                    before: 0,
                    after: 0,
                };
                return Ok(Some((missed, unknown)));
            }
        };
        let start_ms = unsigned(env.ask_long(info.get(), c"getStartTime")?);
        let end_ms = unsigned(env.ask_long(info.get(), c"getEndTime")?);
        self.clock.record_gc_end(end_ms, now);
        let last = LastGc {
            start: self.clock.at(start_ms, now),
            end: self.clock.at(end_ms, now),
            end_ms: Some(end_ms),
            before: self.sum(env, info.get(), c"getMemoryUsageBeforeGc")?,
            after: self.sum(env, info.get(), c"getMemoryUsageAfterGc")?,
        };
        Ok(Some((missed, last)))
    }

    /// Returns the used bytes of all heap pools. `name` is the method of `GcInfo` that returns the usage of the pools.
    fn sum(&self, env: &Env<'_>, info: Ref<'_>, name: &CStr) -> Result<u64> {
        let map = env.call_non_null::<Any>(info, (name, c"()Ljava/util/Map;"), &[])?;
        let get = (c"get", c"(Ljava/lang/Object;)Ljava/lang/Object;");
        let mut sum = 0;
        for pool in &self.heap_pools {
            let key = Value::Text(pool.get());
            if let Some(usage) = env.call_object::<Any>(map.get(), get, &[key])? {
                sum += unsigned(env.ask_long(usage.get(), c"getUsed")?);
            }
        }
        Ok(sum)
    }
}

/// The JVM's version, arguments and main class.
pub(crate) struct Invocation {
    pub(crate) jvm: String,
    pub(crate) command: String,
    pub(crate) flags: String,
}

impl Invocation {
    /// Reads the JVM's version, arguments and main class. Values that cannot be read are empty.
    pub(crate) fn current(env: &Env<'_>) -> Self {
        let property = |key| property(env, key).unwrap_or_default();
        let (name, version) = (property("java.vm.name"), property("java.vm.version"));
        Self {
            jvm: format!("{name} {version}").trim().to_owned(),
            command: property("sun.java.command"),
            flags: flags(env).unwrap_or_default(),
        }
    }
}

fn property(env: &Env<'_>, key: &str) -> Result<String> {
    let system = env.class(c"java/lang/System")?;
    let key = env.text(key)?;
    let named = (c"getProperty", c"(Ljava/lang/String;)Ljava/lang/String;");
    let value = env.call_static_object::<Text>(system.get(), named, &[Value::Text(key.get())])?;
    value.map_or(Ok(String::new()), |value| value.get().read(env))
}

fn flags(env: &Env<'_>) -> Result<String> {
    let class = env.class(c"jdk/internal/misc/VM")?;
    let named = (c"getRuntimeArguments", c"()[Ljava/lang/String;");
    let flags = env.call_static_non_null::<Texts>(class.get(), named, &[])?;
    Ok(flags.get().read(env)?.join(" "))
}
