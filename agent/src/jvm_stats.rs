//! The JVM's own figures: heap, metaspace, classes, collections.
//!
//! The heap's figures are those of `java.lang.Runtime`, which every JVM has and which are of this moment. The rest
//! comes from the management beans; an image without `java.management` has its performance counters and
//! the collector's pauses instead. The beans are asked without their server, which is not started.

use std::time::{Duration, Instant};

use heapdiff_trace::NewCollection;
use jni::errors::Result;
use jni::objects::{Global, JObject, JObjectArray, JString};
use jni::{Env, JValue, jni_sig, jni_str};

use crate::jvmti::perf::{Counter, Perf};
use crate::pauses::{Causes, Pause, Pauses};

/// Beans of one kind at most.
const MOST_BEANS: i32 = 32;
const G1_CONCURRENT: &str = "G1 Concurrent GC";
/// The time after which a pause that no bean has claimed is taken to belong to no bean.
const UNCLAIMED: Duration = Duration::from_millis(500);
/// How exact the collector's times are, in milliseconds as they are.
const NEAR: Duration = Duration::from_millis(5);
/// How late the end of a collection can be seen.
const FAR: Duration = Duration::from_millis(400);

/// Figures of one moment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Figures {
    pub(crate) heap_used: u64,
    pub(crate) heap_committed: u64,
    pub(crate) metaspace_used: u64,
    pub(crate) metaspace_committed: u64,
    pub(crate) loaded_classes: u64,
}

struct Collector {
    bean: Global<JObject<'static>>,
    name: String,
    /// Collections so far.
    count: u64,
    /// Milliseconds that they took, for beans that count pauses.
    time: u64,
}

struct Beans {
    metaspace: Option<Global<JObject<'static>>>,
    classes: Global<JObject<'static>>,
    collectors: Vec<Collector>,
    heap_pools: Vec<Global<JString<'static>>>,
    clock: Clock,
    /// Milliseconds of pauses since the last cycle.
    paused: u64,
}

/// Lays the collector's clock, which begins when the JVM is half up, beside ours. The least time that was seen between
/// the end of a collection and the look at it is taken for none, until a pause tells better.
#[derive(Clone, Copy, Debug, Default)]
struct Clock {
    /// Our time at which the collector's was 0, if all looks came at once.
    zero: Option<Instant>,
    /// Whether a pause has said so.
    exact: bool,
}

impl Clock {
    /// A collection that ended at `end_ms` of the collector's clock was seen now.
    fn seen(&mut self, end_ms: u64, now: Instant) {
        let Some(zero) = now.checked_sub(Duration::from_millis(end_ms)) else {
            return;
        };
        if !self.exact && self.zero.is_none_or(|before| zero < before) {
            self.zero = Some(zero);
        }
    }

    fn at(&self, ms: u64, now: Instant) -> Instant {
        let at = self
            .zero
            .and_then(|zero| zero.checked_add(Duration::from_millis(ms)));
        at.unwrap_or(now).min(now)
    }

    /// How far a pause of this collection can be from where it is looked for.
    fn slack(&self) -> Duration {
        if self.exact { NEAR } else { FAR }
    }

    /// A collection that ended at `end_ms` was this pause.
    fn was(&mut self, end_ms: u64, pause: &Pause) {
        if let Some(zero) = pause.end.checked_sub(Duration::from_millis(end_ms)) {
            self.zero = Some(zero);
            self.exact = true;
        }
    }
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

/// Asks the JVM for its figures and its collections.
pub(crate) struct JvmStats {
    runtime: Global<JObject<'static>>,
    beans: Option<Beans>,
    counters: Option<PerfCounters>,
    /// Pauses that no bean has claimed yet.
    pauses: Vec<Pause>,
    last: Figures,
    /// Collections that cannot be described, because others followed before they were seen.
    pub(crate) unseen: u64,
}

fn long(env: &mut Env<'_>, object: &JObject<'_>, name: &str) -> Result<i64> {
    let name = jni::strings::JNIString::from(name);
    env.call_method(object, &name, jni_sig!("()J"), &[])?.j()
}

fn text(env: &mut Env<'_>, object: &JObject<'_>, name: &str) -> Result<String> {
    let name = jni::strings::JNIString::from(name);
    let answer = env
        .call_method(object, &name, jni_sig!("()Ljava/lang/String;"), &[])?
        .l()?;
    let answer = env.cast_local::<JString>(answer)?;
    answer.try_to_string(env)
}

fn unsigned(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

/// Bytes of the heap used and committed, by `java.lang.Runtime`.
pub(crate) fn heap_of(env: &mut Env<'_>, runtime: &JObject<'_>) -> Result<(u64, u64)> {
    let committed = long(env, runtime, "totalMemory")?;
    let free = long(env, runtime, "freeMemory")?;
    Ok((unsigned(committed - free), unsigned(committed)))
}

impl JvmStats {
    /// `young`: the JVM has just come up, and what its beans have counted is counted here too.
    pub(crate) fn new(env: &mut Env<'_>, pauses: &Pauses, young: bool) -> Result<Self> {
        let runtime = env
            .call_static_method(
                jni_str!("java/lang/Runtime"),
                jni_str!("getRuntime"),
                jni_sig!("()Ljava/lang/Runtime;"),
                &[],
            )?
            .l()?;
        let runtime = env.new_global_ref(runtime)?;
        let counters = Perf::of_this_jvm(env).map(|perf| {
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
        });
        let mut beans = env.with_local_frame(64, Beans::find);
        if let (Ok(beans), true) = (&mut beans, young) {
            for collector in &mut beans.collectors {
                (collector.count, collector.time) = (0, 0);
            }
        }
        if !young {
            pauses.take();
        }
        let beans = beans.map_err(|_: jni::errors::Error| env.exception_clear());
        Ok(Self {
            runtime,
            beans: beans.ok(),
            counters,
            pauses: Vec::new(),
            last: Figures::default(),
            unseen: 0,
        })
    }

    /// Whether the management beans are there.
    pub(crate) fn has_beans(&self) -> bool {
        self.beans.is_some()
    }

    /// The present figures, or the last ones where memory is too short to ask. Figures that the JVM does not have are 0.
    pub(crate) fn figures(&mut self, env: &mut Env<'_>) -> Figures {
        let asked = env.with_local_frame(32, |env| -> Result<Figures> { self.ask(env) });
        match asked {
            Ok(figures) => self.last = figures,
            Err(_) => env.exception_clear(),
        }
        self.last
    }

    fn ask(&self, env: &mut Env<'_>) -> Result<Figures> {
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
                let usage = usage_of(env, pool)?;
                figures.metaspace_used = unsigned(long(env, &usage, "getUsed")?);
                figures.metaspace_committed = unsigned(long(env, &usage, "getCommitted")?);
            }
            let name = jni_str!("getLoadedClassCount");
            let count = env.call_method(&*beans.classes, name, jni_sig!("()I"), &[])?;
            figures.loaded_classes = unsigned(count.i()?.into());
        }
        Ok(figures)
    }

    /// Bytes used and committed.
    fn heap(&self, env: &mut Env<'_>) -> Result<(u64, u64)> {
        heap_of(env, &self.runtime)
    }

    /// Collections since the last look.
    pub(crate) fn collections(
        &mut self,
        env: &mut Env<'_>,
        pauses: &Pauses,
        clock: &impl Fn(Instant) -> (i64, i64),
    ) -> Vec<NewCollection> {
        let (new, missed) = pauses.take();
        self.pauses.extend(new);
        self.unseen += missed;
        let seen = env.with_local_frame(64, |env| self.look(env, pauses, clock));
        seen.unwrap_or_else(|_: jni::errors::Error| {
            env.exception_clear();
            Vec::new()
        })
    }

    fn look(
        &mut self,
        env: &mut Env<'_>,
        pauses: &Pauses,
        clock: &impl Fn(Instant) -> (i64, i64),
    ) -> Result<Vec<NewCollection>> {
        let mut seen = Vec::new();
        let mut cause = None;
        if let Some(beans) = &mut self.beans {
            beans.pause_time(env)?;
            for at in 0..beans.collectors.len() {
                let Some((missed, gc)) = beans.news(env, at)? else {
                    continue;
                };
                let cycle = beans.collectors[at].name.ends_with("Cycles");
                let claimed = claim(&mut self.pauses, &gc, cycle, beans.clock.slack());
                let mut end = gc.end;
                if let ([pause], false) = (&claimed[..], cycle) {
                    beans.clock.was(gc.end_ms, pause);
                    end = pause.end;
                }
                let pause_us = match (claimed.is_empty(), cycle) {
                    (false, _) => claimed.iter().map(micros).sum(),
                    (true, true) => std::mem::take(&mut beans.paused) * 1000,
                    (true, false) => micros_between(gc.start, gc.end),
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
                // Those that came too fast: of them only the pause is known.
                self.unseen += missed;
                let lost = (0..missed).map(|_| {
                    let pause = (!self.pauses.is_empty()).then(|| self.pauses.remove(0));
                    let end = pause.map_or(gc.start, |p| p.end);
                    row(
                        clock(end),
                        name,
                        pause.map_or_else(|| cause.clone(), |p| p.cause()),
                        pause.as_ref().map_or(0, micros),
                        (gc.before, gc.before),
                    )
                });
                seen.extend(lost);
                seen.push(row(
                    clock(end),
                    name,
                    cause.clone(),
                    pause_us,
                    (gc.before, gc.after),
                ));
            }
        }
        self.unclaimed(env, clock, &mut seen)?;
        seen.sort_by_key(|c| c.uptime_ms);
        Ok(seen)
    }

    /// Pauses of no bean: G1's remark and cleanup before JDK 20, and all where there are no beans.
    fn unclaimed(
        &mut self,
        env: &mut Env<'_>,
        clock: &impl Fn(Instant) -> (i64, i64),
        seen: &mut Vec<NewCollection>,
    ) -> Result<()> {
        let old = |pause: &Pause| self.beans.is_none() || pause.end.elapsed() >= UNCLAIMED;
        let (old, young): (Vec<Pause>, Vec<Pause>) = self.pauses.drain(..).partition(old);
        self.pauses = young;
        if old.is_empty() {
            return Ok(());
        }
        let name = match &self.beans {
            None => "",
            Some(beans) if beans.lacks_concurrent() => G1_CONCURRENT,
            // Of a collection that its bean counts when the whole of it is done.
            Some(_) => return Ok(()),
        };
        let before = self.last.heap_used;
        let after = self.heap(env)?.0;
        for pause in old {
            let figures = if self.beans.is_none() {
                (before, after)
            } else {
                (after, after)
            };
            seen.push(row(
                clock(pause.end),
                name,
                pause.cause(),
                micros(&pause),
                figures,
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
    let full = [
        "System.gc()",
        "Heap Dump Initiated GC",
        "Heap Inspection Initiated GC",
    ];
    NewCollection {
        time_ms,
        uptime_ms,
        collector: collector.to_owned(),
        major: if collector.is_empty() {
            full.contains(&&*cause)
        } else {
            is_major(collector)
        },
        cause,
        pause_us,
        before_bytes,
        after_bytes,
    }
}

/// Whether a collector looks at the whole heap; G1's marking does. By the names that its bean may have.
fn is_major(collector: &str) -> bool {
    let minor = ["Copy", "ParNew", "PS Scavenge"];
    !(minor.contains(&collector) || collector.contains("Young") || collector.contains("Minor"))
}

fn micros(pause: &Pause) -> u64 {
    micros_between(pause.start, pause.end)
}

fn micros_between(start: Instant, end: Instant) -> u64 {
    let micros = end.saturating_duration_since(start).as_micros();
    u64::try_from(micros).unwrap_or(u64::MAX)
}

/// Takes out the pauses of a collection: all within the time of a cycle, else the one that lasted as long.
fn claim(pauses: &mut Vec<Pause>, gc: &LastGc, cycle: bool, slack: Duration) -> Vec<Pause> {
    let near = |p: &Pause| p.end + slack >= gc.start && p.start <= gc.end + slack;
    if cycle {
        let (claimed, left) = pauses.drain(..).partition(near);
        *pauses = left;
        return claimed;
    }
    let lasted = gc.end.saturating_duration_since(gc.start);
    let differs = |p: &Pause| p.end.saturating_duration_since(p.start).abs_diff(lasted);
    let far = |p: &Pause| {
        let late = p.end.saturating_duration_since(gc.end);
        late.max(gc.end.saturating_duration_since(p.end))
    };
    let best = pauses
        .iter()
        .enumerate()
        .filter(|(_, p)| near(p) && differs(p) <= NEAR + lasted / 4)
        .min_by_key(|(_, p)| far(p) + differs(p));
    match best.map(|(at, _)| at) {
        Some(at) => vec![pauses.remove(at)],
        None => Vec::new(),
    }
}

struct LastGc {
    start: Instant,
    end: Instant,
    /// By the collector's clock.
    end_ms: u64,
    before: u64,
    after: u64,
}

fn usage_of<'local>(env: &mut Env<'local>, pool: &JObject<'_>) -> Result<JObject<'local>> {
    let signature = jni_sig!("()Ljava/lang/management/MemoryUsage;");
    env.call_method(pool, jni_str!("getUsage"), signature, &[])?
        .l()
}

fn items<'local>(env: &mut Env<'local>, list: &JObject<'_>) -> Result<Vec<JObject<'local>>> {
    let size = env.call_method(list, jni_str!("size"), jni_sig!("()I"), &[])?;
    let get = jni_sig!("(I)Ljava/lang/Object;");
    (0..size.i()?.min(MOST_BEANS))
        .map(|at| {
            env.call_method(list, jni_str!("get"), &get, &[JValue::Int(at)])?
                .l()
        })
        .collect()
}

impl Beans {
    fn find(env: &mut Env<'_>) -> Result<Self> {
        let factory = env.find_class(jni_str!("java/lang/management/ManagementFactory"))?;
        let list = jni_sig!("()Ljava/util/List;");
        let name = jni_str!("getMemoryPoolMXBeans");
        let pools = env.call_static_method(&factory, name, &list, &[])?.l()?;
        let (mut metaspace, mut heap_pools) = (None, Vec::new());
        for pool in items(env, &pools)? {
            let kind = jni_sig!("()Ljava/lang/management/MemoryType;");
            let kind = env
                .call_method(&pool, jni_str!("getType"), kind, &[])?
                .l()?;
            let kind = text(env, &kind, "name")?;
            let name = text(env, &pool, "getName")?;
            if kind == "HEAP" {
                let name = env.new_string(&name)?;
                heap_pools.push(env.new_global_ref(name)?);
            }
            if name == "Metaspace" {
                metaspace = Some(env.new_global_ref(pool)?);
            }
        }
        let name = jni_str!("getGarbageCollectorMXBeans");
        let beans = env.call_static_method(&factory, name, &list, &[])?.l()?;
        let mut collectors = Vec::new();
        for bean in items(env, &beans)? {
            collectors.push(Collector {
                name: text(env, &bean, "getName")?,
                count: unsigned(long(env, &bean, "getCollectionCount")?),
                time: unsigned(long(env, &bean, "getCollectionTime")?),
                bean: env.new_global_ref(bean)?,
            });
        }
        let signature = jni_sig!("()Ljava/lang/management/ClassLoadingMXBean;");
        let name = jni_str!("getClassLoadingMXBean");
        let classes = env
            .call_static_method(&factory, name, signature, &[])?
            .l()?;
        let classes = env.new_global_ref(classes)?;
        Ok(Self {
            metaspace,
            classes,
            collectors,
            heap_pools,
            clock: Clock::default(),
            paused: 0,
        })
    }

    fn lacks_concurrent(&self) -> bool {
        let has = |name: &str| self.collectors.iter().any(|c| c.name == name);
        has("G1 Young Generation") && !has(G1_CONCURRENT)
    }

    /// Adds what pauses took since the last look, by the beans that count pauses of cycles.
    fn pause_time(&mut self, env: &mut Env<'_>) -> Result<()> {
        for collector in &mut self.collectors {
            if collector.name.ends_with("Pauses") {
                let time = unsigned(long(env, &collector.bean, "getCollectionTime")?);
                self.paused += time.saturating_sub(collector.time);
                collector.time = time;
            }
        }
        Ok(())
    }

    /// The last collection of a bean, if it is new, and how many came before it unseen. Pauses of a cycle are
    /// no collections.
    fn news(&mut self, env: &mut Env<'_>, at: usize) -> Result<Option<(u64, LastGc)>> {
        let collector = &mut self.collectors[at];
        if collector.name.ends_with("Pauses") {
            return Ok(None);
        }
        let count = unsigned(long(env, &collector.bean, "getCollectionCount")?);
        if count <= collector.count {
            return Ok(None);
        }
        let missed = count - collector.count - 1;
        collector.count = count;
        let signature = jni_sig!("()Lcom/sun/management/GcInfo;");
        let name = jni_str!("getLastGcInfo");
        let info = env.call_method(&*collector.bean, name, signature, &[]);
        let info = info.and_then(|info| info.l());
        let now = Instant::now();
        // Without jdk.management, or before the first is complete.
        let info = match info {
            Ok(info) if !info.is_null() => info,
            _ => {
                env.exception_clear();
                let unknown = LastGc {
                    start: now,
                    end: now,
                    end_ms: 0,
                    before: 0,
                    after: 0,
                };
                return Ok(Some((missed, unknown)));
            }
        };
        let start_ms = unsigned(long(env, &info, "getStartTime")?);
        let end_ms = unsigned(long(env, &info, "getEndTime")?);
        self.clock.seen(end_ms, now);
        let last = LastGc {
            start: self.clock.at(start_ms, now),
            end: self.clock.at(end_ms, now),
            end_ms,
            before: self.sum(env, &info, "getMemoryUsageBeforeGc")?,
            after: self.sum(env, &info, "getMemoryUsageAfterGc")?,
        };
        Ok(Some((missed, last)))
    }

    /// Bytes used in all pools of the heap.
    fn sum(&self, env: &mut Env<'_>, info: &JObject<'_>, name: &str) -> Result<u64> {
        let name = jni::strings::JNIString::from(name);
        let map = env
            .call_method(info, &name, jni_sig!("()Ljava/util/Map;"), &[])?
            .l()?;
        let mut sum = 0;
        for pool in &self.heap_pools {
            let get = jni_sig!("(Ljava/lang/Object;)Ljava/lang/Object;");
            let key = JValue::Object(pool);
            let usage = env.call_method(&map, jni_str!("get"), get, &[key])?.l()?;
            if !usage.is_null() {
                sum += unsigned(long(env, &usage, "getUsed")?);
            }
            env.delete_local_ref(usage);
        }
        Ok(sum)
    }
}

/// The JVM's own arguments and its program, as it tells them.
pub(crate) struct Invocation {
    pub(crate) jvm: String,
    pub(crate) command: String,
    pub(crate) flags: String,
}

impl Invocation {
    pub(crate) fn of_this_jvm(env: &mut Env<'_>) -> Self {
        let property = |key: &str| {
            let found = env.with_local_frame(8, |env| property(env, key));
            found.unwrap_or_else(|_: jni::errors::Error| {
                env.exception_clear();
                String::new()
            })
        };
        let (name, version) = (property("java.vm.name"), property("java.vm.version"));
        let command = property("sun.java.command");
        let flags = env.with_local_frame(8, flags);
        Self {
            jvm: format!("{name} {version}").trim().to_owned(),
            command,
            flags: flags.unwrap_or_else(|_: jni::errors::Error| {
                env.exception_clear();
                String::new()
            }),
        }
    }
}

fn property(env: &mut Env<'_>, key: &str) -> Result<String> {
    let key = env.new_string(key)?;
    let value = env
        .call_static_method(
            jni_str!("java/lang/System"),
            jni_str!("getProperty"),
            jni_sig!("(Ljava/lang/String;)Ljava/lang/String;"),
            &[JValue::Object(&key)],
        )?
        .l()?;
    if value.is_null() {
        return Ok(String::new());
    }
    env.cast_local::<JString>(value)?.try_to_string(env)
}

fn flags(env: &mut Env<'_>) -> Result<String> {
    let array = env
        .call_static_method(
            jni_str!("jdk/internal/misc/VM"),
            jni_str!("getRuntimeArguments"),
            jni_sig!("()[Ljava/lang/String;"),
            &[],
        )?
        .l()?;
    let array = env.cast_local::<JObjectArray>(array)?;
    let mut all = String::new();
    for at in 0..array.len(env)? {
        let flag = array.get_element(env, at)?;
        let flag = env.cast_local::<JString>(flag)?;
        if at > 0 {
            all.push(' ');
        }
        all.push_str(&flag.try_to_string(env)?);
        env.delete_local_ref(flag);
    }
    Ok(all)
}
