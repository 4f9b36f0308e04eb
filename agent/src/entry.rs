//! The functions that the JVM calls. This module imports the others, and no module imports it. Each function calls safe
//! code and catches every panic.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_void};
use std::mem::transmute;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{NonNull, null_mut};

use jni_sys::{
    JNI_EDETACHED, JNI_EVERSION, JNI_OK, JNI_VERSION_1_8, JNIEnv, JavaVM, jclass, jint, jlong,
    jobject,
};
use jvmti_sys::{
    jvmtiEnv, jvmtiEventCallbacks, jvmtiEventClassLoad, jvmtiEventVMDeath, jvmtiEventVMInit,
};

use crate::jvmti::calls::{Any, Class, Env, Ref};
use crate::jvmti::sys::{Callbacks, as_int};
use crate::jvmti::{Called, Environment, Jvmti, Thread, set_called};
use crate::{agent, counting, snapshot};

thread_local! {
    /// Set while the agent is at work on this thread: what it allocates itself is not sampled.
    static BUSY: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work` unless the agent is at work on this thread already, or the thread is ending.
fn alone(work: impl FnOnce()) {
    if BUSY.try_with(|busy| busy.replace(true)) != Ok(false) {
        return;
    }
    if catch_unwind(AssertUnwindSafe(work)).is_err() {
        agent::fault();
    }
    let _ = BUSY.try_with(|busy| busy.set(false));
}

/// Runs `work` with the JNI environment that the JVM gave.
///
/// # Safety
/// `raw` is the environment of the current thread, or null; the JVMTI environment is not disposed of meanwhile.
// SAFETY: sound under the `# Safety` contract above; each unsafe block below gives its argument.
unsafe fn with_env(raw: *mut JNIEnv, jvmti: Jvmti, work: impl for<'a> FnOnce(&Env<'a>)) {
    if let Some(raw) = NonNull::new(raw) {
        // SAFETY: the caller upholds the `# Safety` contract. It lasts no longer than the call of `work`.
        work(&unsafe { Env::new(raw, jvmti) });
    }
}

/// As [`with_env`], with the agent's JVMTI environment: the one that the JVM hands to a callback may be disposed of by
/// another thread.
///
/// # Safety
/// `raw` is the environment of the current thread, or null.
// SAFETY: sound under the `# Safety` contract above; each unsafe block below gives its argument.
unsafe fn with_agent(raw: *mut JNIEnv, work: impl for<'a> FnOnce(&Env<'a>)) {
    if let Some(jvmti) = agent::jvmti() {
        // SAFETY: the caller upholds the `# Safety` contract; the agent disposes of no environment.
        unsafe { with_env(raw, jvmti, work) };
    }
}

/// # Safety
/// Only the JVM calls it.
// SAFETY: sound under the `# Safety` contract above; each unsafe block below gives its argument.
unsafe extern "C" fn sampled_object_alloc(
    _: *mut jvmtiEnv,
    env: *mut JNIEnv,
    thread: jobject,
    object: jobject,
    class: jclass,
    size: jlong,
) {
    alone(|| {
        // SAFETY: the environment is the one that the JVM gave for this thread.
        unsafe {
            with_agent(env, |env| {
                // SAFETY: local references that the JVM gave and takes back after the event.
                let (thread, object, class) = (
                    Ref::<Any>::new(thread),
                    Ref::<Any>::new(object),
                    Ref::<Class>::new(class),
                );
                if let (Some(thread), Some(object), Some(class)) = (thread, object, class) {
                    agent::sampled(env, thread, object, class, size);
                }
            });
        }
    });
}

/// # Safety
/// Only the JVM calls it.
// SAFETY: sound under the `# Safety` contract above; each unsafe block below gives its argument.
unsafe extern "C" fn class_load(
    _: *mut jvmtiEnv,
    env: *mut JNIEnv,
    thread: jobject,
    class: jclass,
) {
    alone(|| {
        // SAFETY: the environment is the one that the JVM gave for this thread.
        unsafe {
            with_agent(env, |env| {
                // SAFETY: local references that the JVM gave and takes back after the event.
                let (thread, class) = (Ref::<Any>::new(thread), Ref::<Class>::new(class));
                if let (Some(thread), Some(class)) = (thread, class) {
                    agent::class_loaded(env, thread, class);
                }
            });
        }
    });
}

/// Runs `work` at the start or the end of a GC. JVMTI allows no JNI there, and of its own functions only raw monitors, which
/// holds for `agent::fault`, too.
fn in_gc(place: u8, work: fn()) {
    let result = catch_unwind(|| {
        provoked::panic(place);
        work();
    });
    if result.is_err() {
        agent::fault();
    }
}

/// # Safety
/// Only the JVM calls it.
// SAFETY: nothing in it is unsafe; the JVM's type of callbacks is.
unsafe extern "C" fn garbage_collection_start(_: *mut jvmtiEnv) {
    in_gc(provoked::GC_START, agent::collecting);
}

/// # Safety
/// Only the JVM calls it.
// SAFETY: as above.
unsafe extern "C" fn garbage_collection_finish(_: *mut jvmtiEnv) {
    in_gc(provoked::GC_FINISH, agent::collected);
}

/// # Safety
/// Only the JVM calls it.
// SAFETY: sound under the `# Safety` contract above; each unsafe block below gives its argument.
unsafe extern "C" fn vm_init(_: *mut jvmtiEnv, env: *mut JNIEnv, _: jobject) {
    alone(|| {
        // SAFETY: the environment is the one that the JVM gave for this thread.
        unsafe { with_agent(env, agent::start_with_jvm) };
    });
}

/// # Safety
/// Only the JVM calls it.
// SAFETY: sound under the `# Safety` contract above; each unsafe block below gives its argument.
unsafe extern "C" fn vm_death(_: *mut jvmtiEnv, env: *mut JNIEnv) {
    alone(|| {
        // SAFETY: the environment is the one that the JVM gave for this thread.
        unsafe { with_agent(env, agent::stop) };
    });
}

/// The body of the agent's thread. Each turn that ends in a panic is a fault, so that there are no more turns
/// than faults.
///
/// # Safety
/// Only the JVM calls it.
// SAFETY: sound under the `# Safety` contract above; each unsafe block below gives its argument.
unsafe extern "C" fn agent_thread(_: *mut jvmtiEnv, env: *mut JNIEnv, place: *mut c_void) {
    for _ in 0..agent::MAX_FAULTS {
        let mut ended = false;
        alone(|| {
            // SAFETY: the environment is the one that the JVM gave for this thread.
            unsafe {
                with_agent(env, |env| {
                    agent::run(env, place.addr());
                    ended = true;
                });
            }
        });
        if ended {
            break;
        }
    }
    alone(|| agent::ran(place.addr()));
}

/// The body of the trace's thread.
///
/// # Safety
/// Only the JVM calls it.
// SAFETY: sound under the `# Safety` contract above; each unsafe block below gives its argument.
unsafe extern "C" fn trace_thread(_: *mut jvmtiEnv, env: *mut JNIEnv, place: *mut c_void) {
    alone(|| {
        // SAFETY: the environment is the one that the JVM gave for this thread.
        unsafe { with_agent(env, |env| agent::trace(env, place.addr())) };
    });
}

/// The body of the thread that ends a count which nobody ends.
///
/// # Safety
/// Only the JVM calls it.
// SAFETY: sound under the `# Safety` contract above; each unsafe block below gives its argument.
unsafe extern "C" fn count_thread(_: *mut jvmtiEnv, env: *mut JNIEnv, round: *mut c_void) {
    alone(|| {
        if let Some(jvmti) = counting::jvmti() {
            // SAFETY: the environment is the one that the JVM gave for this thread; the agent disposes of no environment that it
            // has kept.
            unsafe { with_env(env, jvmti, |env| counting::watch(env, round.addr())) };
        }
    });
}

// SAFETY: the type of a function; only the JVM calls those that have it.
type WithEnv = unsafe extern "C" fn(*mut jvmtiEnv, *mut JNIEnv);
// SAFETY: as above.
type WithThread = unsafe extern "C" fn(*mut jvmtiEnv, *mut JNIEnv, jobject);
// SAFETY: as above.
type WithClass = unsafe extern "C" fn(*mut jvmtiEnv, *mut JNIEnv, jobject, jclass);

/// The callbacks of the environment that samples.
fn callbacks() -> Callbacks {
    Callbacks {
        base: jvmtiEventCallbacks {
            // SAFETY: the types differ in the name of the JNI environment alone, which jvmti-sys
            // takes from an older jni-sys.
            VMInit: unsafe { transmute::<Option<WithThread>, jvmtiEventVMInit>(Some(vm_init)) },
            // SAFETY: as above.
            VMDeath: unsafe { transmute::<Option<WithEnv>, jvmtiEventVMDeath>(Some(vm_death)) },
            // SAFETY: as above.
            ClassLoad: unsafe {
                transmute::<Option<WithClass>, jvmtiEventClassLoad>(Some(class_load))
            },
            GarbageCollectionStart: Some(garbage_collection_start),
            GarbageCollectionFinish: Some(garbage_collection_finish),
            ..jvmtiEventCallbacks::default()
        },
        reserved: None,
        sampled_object_alloc: Some(sampled_object_alloc),
    }
}

/// The body of a thread of the agent.
fn body(thread: Thread) -> as_int::AgentThread {
    match thread {
        Thread::Agent => agent_thread,
        Thread::Trace => trace_thread,
        Thread::Count => count_thread,
    }
}

/// Functions that the JVM calls, for the modules below.
const CALLED: Called = Called {
    callbacks,
    thread: body,
    fault: agent::fault,
};

/// The option text; what is not UTF-8 in it is replaced.
///
/// # Safety
/// `options` is null or a text that ends with a zero byte.
// SAFETY: sound under the `# Safety` contract above; each unsafe block below gives its argument.
unsafe fn text_of(options: *const c_char) -> String {
    if options.is_null() {
        return String::new();
    }
    // SAFETY: the caller upholds the `# Safety` contract.
    unsafe { CStr::from_ptr(options) }
        .to_string_lossy()
        .into_owned()
}

/// Called before the JVM is up, for `-agentpath`.
///
/// # Safety
/// Only the JVM calls it.
// SAFETY: no other function has this name: the JVM looks for it.
#[unsafe(no_mangle)]
// SAFETY: sound under the `# Safety` contract above; each unsafe block below gives its argument.
pub(crate) unsafe extern "system" fn Agent_OnLoad(
    vm: *mut JavaVM,
    options: *mut c_char,
    _: *mut c_void,
) -> jint {
    // SAFETY: what the JVM hands over.
    let (environment, options) = unsafe { (Environment::of(vm), text_of(options)) };
    set_called(CALLED);
    provoked::prepare();
    // Any other answer ends the JVM, so a failure to load answers the same.
    if catch_unwind(AssertUnwindSafe(|| agent::load(environment.ok(), &options))).is_err() {
        agent::fault();
    }
    JNI_OK
}

/// Called in a running JVM that was asked to load the agent.
///
/// # Safety
/// Only the JVM calls it.
// SAFETY: no other function has this name: the JVM looks for it.
#[unsafe(no_mangle)]
// SAFETY: sound under the `# Safety` contract above; each unsafe block below gives its argument.
pub(crate) unsafe extern "system" fn Agent_OnAttach(
    vm: *mut JavaVM,
    options: *mut c_char,
    _: *mut c_void,
) -> jint {
    // SAFETY: what the JVM hands over.
    let (environment, options) = unsafe { (Environment::of(vm), text_of(options)) };
    set_called(CALLED);
    let mut result = heapdiff_sites::attach::FAILED;
    alone(|| {
        // One more, for the names of exceptions: the first may be given back before this returns.
        // SAFETY: what the JVM hands over.
        let naming = unsafe { Environment::of(vm) };
        let (environment, naming) = match (environment, naming) {
            (Ok(environment), Ok(naming)) => (environment, naming),
            // Asked early enough, it has no environments to give.
            (Err(JNI_EDETACHED), _) => {
                result = heapdiff_sites::attach::NOT_UP;
                return;
            }
            // JDK 10 and earlier have no JVMTI of version 11.
            (Err(JNI_EVERSION), _) => {
                result = heapdiff_sites::attach::TOO_OLD;
                return;
            }
            _ => {
                result = agent::load(None, &options);
                return;
            }
        };
        let mut env: *mut c_void = null_mut();
        // SAFETY: the JVM that called has a full table; it is not null, for the environment came from it.
        let got = unsafe { ((**vm).v1_2.GetEnv)(vm, &raw mut env, JNI_VERSION_1_8) };
        if got == JNI_OK {
            let wanted = snapshot::Wanted::of(&options);
            let attach = |env: &Env<'_>| {
                result = match wanted {
                    Some(wanted) => {
                        agent::before_fork(env);
                        snapshot::take(&environment, env, wanted)
                    }
                    None => match counting::Asked::of(&options) {
                        Some(asked) => {
                            counting::ask(environment, env, &asked, &agent::sampled_classes)
                        }
                        None => agent::load_and_start(env, environment, &options),
                    },
                }
            };
            // SAFETY: the environment belongs to this thread; the other is disposed of after this.
            unsafe { with_env(env.cast(), naming.jvmti(), attach) };
        }
        drop(naming);
    });
    result
}

/// Called when the JVM ends. Threads may still be in callbacks, so nothing is torn down.
///
/// # Safety
/// Only the JVM calls it.
// SAFETY: no other function has this name: the JVM looks for it.
#[unsafe(no_mangle)]
// SAFETY: sound under the `# Safety` contract above; each unsafe block below gives its argument.
pub(crate) unsafe extern "system" fn Agent_OnUnload(_: *mut JavaVM) {}

/// Panics that a test asks for, by an environment variable. They are in every build, since tests run what users run:
/// without the variable a collection costs one comparison more.
mod provoked {
    use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

    /// The environment variable that says where to panic.
    const VARIABLE: &str = "HEAPDIFF_AGENT_PANIC";
    pub(super) const GC_START: u8 = 1;
    pub(super) const GC_FINISH: u8 = 2;
    static WHERE: AtomicU8 = AtomicU8::new(0);

    /// Reads the variable. Called while the agent is loaded, for a callback of the collector may not wait.
    pub(super) fn prepare() {
        let place = match std::env::var(VARIABLE).as_deref() {
            Ok("gc-start") => GC_START,
            Ok("gc-finish") => GC_FINISH,
            _ => 0,
        };
        WHERE.store(place, Relaxed);
    }

    /// Panics if a test asks for it here.
    pub(super) fn panic(here: u8) {
        assert!(WHERE.load(Relaxed) != here, "provoked by {VARIABLE}");
    }
}
