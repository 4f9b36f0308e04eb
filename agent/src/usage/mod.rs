//! Counts how JDK collections are used (`usage=on`): for each watched collection, the elements that are put, removed
//! and read. A collection is watched if it is large (256 elements, `LARGE` in the hooks' class) and was first seen at
//! least a second ago.
//!
//! Hooks (`hook`) are called at the entry of the collections' methods (`points`). For each watched collection there is
//! an instance of the hooks' class. This instance contains the counters and is a weak reference to the collection. So
//! each dump contains the current counts without any copying. A reader of the dump matches the counts with the
//! collections that grew.

#[allow(unsafe_code)]
mod class;
mod collections;
mod concurrent;
pub(crate) mod hook;
mod points;

use std::borrow::Cow;
use std::sync::atomic::{
    AtomicBool, AtomicU64, Ordering::AcqRel, Ordering::Acquire, Ordering::Release,
};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use heapdiff_bytecode::{Entered, Error, Name, enter, within};
use heapdiff_sites::statics;
use heapdiff_sites::types::of_class;
use heapdiff_units::Span;
use rustc_hash::FxHashSet;

use crate::debugger;
use crate::jvmti::calls::{Class, Env, Global, JniError, Local, Objects};
use crate::jvmti::classes::ClassFiles;
use crate::jvmti::{Environment, Jvmti, modified_utf8};
use crate::log::{Level, print_line};
use crate::options::Options;
use crate::sample_ref::{RefClass, Static};
use points::{Needed, Watched};

/// State that is created on first use and never dropped.
struct Engine {
    jvmti: Jvmti,
    /// The array of watched collections, in the Java heap.
    table: Global<Objects>,
    /// Names of the classes that can be counted: this JVM has all fields and methods that the hooks of these classes
    /// use.
    fit: FxHashSet<&'static str>,
}

static ENGINE: OnceLock<Engine> = OnceLock::new();
/// True while the use of collections is counted. The agent then inserts hooks into class files.
static ON: AtomicBool = AtomicBool::new(false);
/// Number of class files that got hooks since the last call of `begin`.
static CHANGED: AtomicU64 = AtomicU64::new(0);
/// Classes and methods that could not be changed, each with the reason.
static REFUSED: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn refused() -> MutexGuard<'static, Vec<String>> {
    REFUSED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Receives the class files of JDK collections.
pub(crate) enum Collections {}

impl ClassFiles for Collections {
    fn jvmti() -> Option<Jvmti> {
        ENGINE.get().map(|engine| engine.jvmti)
    }

    fn rewritten(name: Option<&str>, is_boot: bool, file: &[u8]) -> Option<Vec<u8>> {
        let engine = ENGINE.get().filter(|_| is_boot && ON.load(Acquire))?;
        let watched = points::of(name?)?;
        if !engine.fit.contains(watched.class) {
            return None;
        }
        let told = |why: &dyn std::fmt::Display| {
            refused().push(format!("{}: {why}", of_class(watched.class)));
        };
        let file = match insert_hooks_within(watched, file) {
            Ok(Some(new)) => Cow::Owned(new),
            Ok(None) => Cow::Borrowed(file),
            Err(why) => {
                told(&why);
                return None;
            }
        };
        match insert_entry_hooks(watched, &file) {
            Ok(entered) => {
                note(watched, &entered);
                let new = entered.bytes.or(match file {
                    Cow::Owned(new) => Some(new),
                    Cow::Borrowed(_) => None,
                });
                CHANGED.fetch_add(u64::from(new.is_some()), AcqRel);
                new
            }
            Err(why) => {
                told(&why);
                None
            }
        }
    }
}

/// Inserts calls of hooks inside methods. Returns `None` if the class needs no such calls.
fn insert_hooks_within(watched: &Watched, file: &[u8]) -> Result<Option<Vec<u8>>, String> {
    if watched.steps.is_empty() {
        return Ok(None);
    }
    let mut found = vec![false; watched.steps.len()];
    let stepped = within(file, |step| {
        let (at, entry) = watched.step(step)?;
        if let Some(found) = found.get_mut(at) {
            *found = true;
        }
        Some(entry)
    });
    let stepped = stepped.map_err(|why| why.to_string())?;
    if let Some(missing) = found.iter().position(|found| !found) {
        return Err(format!(
            "the agent does not know this version of the method: it contains no {:?}",
            watched.steps[missing]
        ));
    }
    // If only some methods of a class got hooks, the counts would be wrong for the whole collection. So the class gets
    // no hooks.
    if let Some(left) = stepped.left_alone.first() {
        let method = modified_utf8(left.method.as_bytes());
        return Err(format!("{method}: {}", left.reason));
    }
    Ok(stepped.bytes)
}

/// Inserts calls of hooks at the entry of methods.
fn insert_entry_hooks<'a>(watched: &Watched, file: &'a [u8]) -> Result<Entered<'a>, Error> {
    let named = |name: Name<'_>, descriptor: Name<'_>| {
        let [name, descriptor] = [name, descriptor].map(|n| modified_utf8(n.as_bytes()));
        (name, descriptor)
    };
    let mut all = Vec::new();
    enter(file, |name, descriptor| {
        all.push(named(name, descriptor));
        None
    })?;
    enter(file, |name, descriptor| {
        watched.entry(&named(name, descriptor), &all)
    })
}

/// Records the methods that could not be changed.
fn note(watched: &Watched, entered: &Entered<'_>) {
    for left in &entered.left_alone {
        let method = modified_utf8(left.method.as_bytes());
        let class = of_class(watched.class);
        refused().push(format!("{class}.{method}: {}", left.reason));
    }
}

/// Starts counting if the options request it. If counting cannot start, the agent samples without counting.
pub(crate) fn start_counting(env: &Env<'_>, options: &Options, refs: Option<&RefClass>) {
    if !options.usage {
        return;
    }
    let start = Instant::now();
    match begin(env, refs) {
        Ok(()) => {
            let (classes, span) = (CHANGED.load(Acquire), Span(start.elapsed()));
            print_line(
                Level::Info,
                format_args!(
                    "usage: counting puts, removals and reads in {classes} JDK collection classes; setup took {span}"
                ),
            );
            for refused in refused().drain(..) {
                print_line(
                    Level::Warn,
                    format_args!("usage: cannot count puts, removals and reads in {refused}"),
                );
            }
        }
        Err(why) => {
            ON.store(false, Release);
            print_line(
                Level::Error,
                format_args!("the use of collections is not recorded: {why}"),
            );
        }
    }
}

fn begin(env: &Env<'_>, refs: Option<&RefClass>) -> Result<(), String> {
    let engine = match ENGINE.get() {
        Some(engine) => engine,
        None => {
            let made = Engine::new(env)?;
            ENGINE.get_or_init(|| made)
        }
    };
    let refs = refs.ok_or("the agent has stopped")?;
    let table = Static::Objects(engine.table.get());
    let shown = refs.set(env, statics::USAGE, table);
    shown.map_err(|why| why.to_string())?;
    CHANGED.store(0, Release);
    refused().clear();
    ON.store(true, Release);
    engine.retransform_collections(env)
}

/// Stops counting and removes the hooks.
pub(crate) fn stop_counting(env: &Env<'_>) {
    if !ON.swap(false, AcqRel) {
        return;
    }
    let Some(engine) = ENGINE.get() else { return };
    if let Err(why) = engine.retransform_collections(env) {
        print_line(
            Level::Warn,
            format_args!("usage: the counting code stays in JDK classes: {why}"),
        );
    }
    for place in 0..=hook::PLACES {
        // A method that still runs its old code with a hook may store an entry after this line. The entry is a weak
        // reference, so it does not keep the collection alive.
        let _ = engine.table.get().put(env, place, None);
    }
}

impl Engine {
    fn new(env: &Env<'_>) -> Result<Self, String> {
        let text = |why: JniError| why.to_string();
        let class = env
            .usage_class(&hook::bytes(jvm(env).map_err(text)?).map_err(|why| why.to_string())?)
            .map_err(text)?;
        let table = env.usage_table(class.get()).map_err(text)?;
        for name in collections::CALLERS {
            // Load the class. If this JDK does not have it, nothing needs to be loaded.
            drop(class_named(env, name));
        }
        let mut fit = FxHashSet::default();
        for watched in collections::ALL {
            match has_hook_targets(env, watched) {
                Ok(true) => _ = fit.insert(watched.class),
                Ok(false) => {}
                Err(JniError::HeapFull) => return Err(JniError::HeapFull.to_string()),
                Err(_) => {}
            }
        }
        let environment = Environment::create_another(env).ok_or("this JVM has no JVMTI 11")?;
        Ok(Self {
            jvmti: environment
                .for_class_files::<Collections>()
                .map_err(|why| why.to_string())?,
            table,
            fit,
        })
    }

    /// Retransforms the collections' classes, with or without hooks.
    fn retransform_collections(&self, env: &Env<'_>) -> Result<(), String> {
        if debugger::is_attached() {
            return Err(debugger::ATTACHED.to_owned());
        }
        let on = ON.load(Acquire);
        let text = |why: crate::jvmti::JvmtiError| why.to_string();
        self.jvmti.hook_class_files(true).map_err(text)?;
        let found = self.jvmti.changeable(env, |signature, is_boot| {
            let name = signature
                .strip_prefix('L')
                .and_then(|s| s.strip_suffix(';'));
            is_boot && name.is_some_and(|name| self.fit.contains(name))
        });
        let found = found.map_err(text)?;
        let classes: Vec<_> = found.iter().map(|(_, class)| class.get()).collect();
        let handed = self.jvmti.retransform(&classes).map_err(text);
        if !on {
            self.jvmti.hook_class_files(false).map_err(text)?;
        }
        handed
    }
}

fn class_named<'local>(
    env: &Env<'local>,
    name: &str,
) -> crate::jvmti::calls::Result<Local<'local, Class>> {
    let name = std::ffi::CString::new(name).map_err(|_| JniError::Unfit(name.to_owned()))?;
    env.class(&name)
}

/// True if the JVM has the class, and all fields and methods that its hooks use.
fn has_hook_targets(env: &Env<'_>, watched: &Watched) -> crate::jvmti::calls::Result<bool> {
    let class = |name| class_named(env, name);
    class(watched.class)?;
    for needed in watched.needed() {
        let there = match needed {
            Needed::Field([of, name, kind]) => env.has_field(class(of)?.get(), name, kind)?,
            Needed::Method([of, name, kind]) => env.has(class(of)?.get(), name, kind)?,
        };
        if !there {
            return Ok(false);
        }
    }
    Ok(true)
}

fn jvm(env: &Env<'_>) -> crate::jvmti::calls::Result<hook::Jvm> {
    let class = env.class(c"jdk/internal/misc/Unsafe")?;
    let reference = env.class(c"java/lang/ref/Reference")?;
    let exchange = "(Ljava/lang/Object;JLjava/lang/Object;Ljava/lang/Object;)Z";
    let is_new = env.has(class.get(), "compareAndSetReference", exchange)?;
    Ok(hook::Jvm {
        longs: env.static_int(class.get(), c"ARRAY_LONG_BASE_OFFSET")?,
        objects: env.static_int(class.get(), c"ARRAY_OBJECT_BASE_OFFSET")?,
        scale: env.static_int(class.get(), c"ARRAY_OBJECT_INDEX_SCALE")?,
        refers_to: env.has(reference.get(), "refersTo", "(Ljava/lang/Object;)Z")?,
        exchange: if is_new {
            "compareAndSetReference"
        } else {
            "compareAndSetObject"
        },
    })
}
