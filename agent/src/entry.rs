//! The functions that the JVM calls. This module imports other modules of the agent, and no module imports this one.
//! Each function calls safe code and catches every panic.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_void};
use std::mem::transmute;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{NonNull, null_mut};

use jni_sys::{
    JNI_EDETACHED, JNI_EVERSION, JNI_OK, JNI_VERSION_1_8, JNIEnv, JavaVM, jclass, jint, jlong,
    jobject, jstring,
};
use jvmti_sys::{
    jvmtiEnv, jvmtiEventCallbacks, jvmtiEventClassLoad, jvmtiEventResourceExhausted,
    jvmtiEventVMDeath, jvmtiEventVMInit,
};

use crate::jvmti::calls::{Any, Class, Env, Ref, Text};
use crate::jvmti::labels::Native;
use crate::jvmti::sys::{Callbacks, as_int};
use crate::jvmti::{Called, Environment, Jvmti, Thread, set_called};
use crate::labels::LABELS;
use crate::{agent, counting, own_file, snapshot};

thread_local! {
    /// True while code of the agent runs on this thread. Allocations by this code are not sampled.
    static BUSY: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work`, unless code of the agent already runs on this thread or the thread is ending.
fn without_reentry(work: impl FnOnce()) {
    if BUSY.try_with(|busy| busy.replace(true)) != Ok(false) {
        return;
    }
    if catch_unwind(AssertUnwindSafe(work)).is_err() {
        agent::fault();
    }
    let _ = BUSY.try_with(|busy| busy.set(false));
}

/// Runs `work` with the JNI environment of this thread.
///
/// # Safety
/// `raw` is the environment of the current thread, or null. The JVMTI environment is not disposed of meanwhile.
// SAFETY: the environment is used only during the call of `work`, on this thread.
unsafe fn with_env(raw: *mut JNIEnv, jvmti: Jvmti, work: impl for<'a> FnOnce(&Env<'a>)) {
    if let Some(raw) = NonNull::new(raw) {
        // SAFETY: the caller upholds the `# Safety` contract. The `Env` lives no longer than the call of `work`.
        work(&unsafe { Env::new(raw, jvmti) });
    }
}

/// Runs `work` with the JNI environment of this thread and the agent's JVMTI environment. The JVMTI environment that
/// the JVM passes to a callback is not used, because another thread may dispose of it.
///
/// # Safety
/// `raw` is the environment of the current thread, or null.
// SAFETY: the environment is used only during the call of `work`, and the agent's JVMTI environment is never disposed
// of.
unsafe fn with_agent(raw: *mut JNIEnv, work: impl for<'a> FnOnce(&Env<'a>)) {
    if let Some(jvmti) = agent::jvmti() {
        // SAFETY: the caller upholds the `# Safety` contract. The agent never disposes of a JVMTI environment that it
        // has kept.
        unsafe { with_env(raw, jvmti, work) };
    }
}

/// JVMTI callback: the JVM has sampled an allocation. `object` is null if it is a value object.
///
/// # Safety
/// Only the JVM calls this function.
// SAFETY: the JVM passes the arguments that JVMTI specifies. Each unsafe block's comment names the arguments it needs.
unsafe extern "C" fn sampled_object_alloc(
    _: *mut jvmtiEnv,
    env: *mut JNIEnv,
    thread: jobject,
    object: jobject,
    class: jclass,
    size: jlong,
) {
    without_reentry(|| {
        // SAFETY: the JVM passed this environment for the current thread.
        unsafe {
            with_agent(env, |env| {
                // SAFETY: these are local references that stay valid during the event.
                let (thread, object, class) = (
                    Ref::<Any>::new(thread),
                    Ref::<Any>::new(object),
                    Ref::<Class>::new(class),
                );
                if let (Some(thread), Some(class)) = (thread, class) {
                    agent::sampled(env, thread, object, class, size);
                }
            });
        }
    });
}

/// JVMTI callback: a class was loaded.
///
/// # Safety
/// Only the JVM calls this function.
// SAFETY: the JVM passes the arguments that JVMTI specifies. Each unsafe block's comment names the arguments it needs.
unsafe extern "C" fn class_load(
    _: *mut jvmtiEnv,
    env: *mut JNIEnv,
    thread: jobject,
    class: jclass,
) {
    without_reentry(|| {
        // SAFETY: the JVM passed this environment for the current thread.
        unsafe {
            with_agent(env, |env| {
                // SAFETY: these are local references that stay valid during the event.
                let (thread, class) = (Ref::<Any>::new(thread), Ref::<Class>::new(class));
                if let (Some(thread), Some(class)) = (thread, class) {
                    agent::class_loaded(env, thread, class);
                }
            });
        }
    });
}

/// Runs `work` at the start or the end of a GC. In these callbacks JVMTI forbids JNI, and allows only raw monitors and
/// a few other functions. `agent::fault` complies with this, too.
fn in_gc(place: u8, work: fn()) {
    let result = catch_unwind(|| {
        provoked::panic(place);
        work();
    });
    if result.is_err() {
        agent::fault();
    }
}

/// JVMTI callback: a GC begins.
///
/// # Safety
/// Only the JVM calls this function.
// SAFETY: the body contains no unsafe code. The function is unsafe only to match the JVM's callback type.
unsafe extern "C" fn garbage_collection_start(_: *mut jvmtiEnv) {
    in_gc(provoked::GC_START, agent::collecting);
}

/// JVMTI callback: a GC has ended.
///
/// # Safety
/// Only the JVM calls this function.
// SAFETY: the body contains no unsafe code. The function is unsafe only to match the JVM's callback type.
unsafe extern "C" fn garbage_collection_finish(_: *mut jvmtiEnv) {
    in_gc(provoked::GC_FINISH, agent::collected);
}

/// JVMTI callback: the JVM is initialized.
///
/// # Safety
/// Only the JVM calls this function.
// SAFETY: the JVM passes the arguments that JVMTI specifies. Each unsafe block's comment names the arguments it needs.
unsafe extern "C" fn vm_init(_: *mut jvmtiEnv, env: *mut JNIEnv, _: jobject) {
    without_reentry(|| {
        // SAFETY: the JVM passed this environment for the current thread.
        unsafe { with_agent(env, agent::start_with_jvm) };
    });
}

/// JVMTI callback: the JVM is about to end.
///
/// # Safety
/// Only the JVM calls this function.
// SAFETY: the JVM passes the arguments that JVMTI specifies. Each unsafe block's comment names the arguments it needs.
unsafe extern "C" fn vm_death(_: *mut jvmtiEnv, env: *mut JNIEnv) {
    without_reentry(|| {
        // SAFETY: the JVM passed this environment for the current thread.
        unsafe { with_agent(env, agent::stop) };
    });
}

/// The body of the agent's thread. After a panic it runs again, but at most [`agent::MAX_FAULTS`] times in total.
///
/// # Safety
/// Only the JVM calls this function.
// SAFETY: the JVM passes the arguments that JVMTI specifies. Each unsafe block's comment names the arguments it needs.
unsafe extern "C" fn agent_thread(_: *mut jvmtiEnv, env: *mut JNIEnv, place: *mut c_void) {
    for _ in 0..agent::MAX_FAULTS {
        let mut ended = false;
        without_reentry(|| {
            // SAFETY: the JVM passed this environment for the current thread.
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
    without_reentry(|| agent::on_thread_end(place.addr()));
}

/// The body of the trace's thread.
///
/// # Safety
/// Only the JVM calls this function.
// SAFETY: the JVM passes the arguments that JVMTI specifies. Each unsafe block's comment names the arguments it needs.
unsafe extern "C" fn trace_thread(_: *mut jvmtiEnv, env: *mut JNIEnv, place: *mut c_void) {
    without_reentry(|| {
        // SAFETY: the JVM passed this environment for the current thread.
        unsafe { with_agent(env, |env| agent::trace(env, place.addr())) };
    });
}

/// The body of the guard's thread.
///
/// # Safety
/// Only the JVM calls this function.
// SAFETY: the JVM passes the arguments that JVMTI specifies. Each unsafe block's comment names the arguments it needs.
unsafe extern "C" fn guard_thread(_: *mut jvmtiEnv, env: *mut JNIEnv, place: *mut c_void) {
    without_reentry(|| {
        // SAFETY: the JVM passed this environment for the current thread.
        unsafe { with_agent(env, |env| agent::guard(env, place.addr())) };
    });
}

/// JVMTI callback: a thread is about to throw `OutOfMemoryError`.
///
/// # Safety
/// Only the JVM calls this function.
// SAFETY: the body contains no unsafe code. The function is unsafe only to match the JVM's callback type.
unsafe extern "C" fn resource_exhausted(
    _: *mut jvmtiEnv,
    _: *mut JNIEnv,
    flags: jint,
    _: *const c_void,
    _: *const c_char,
) {
    /// JVMTI's flag for the case that no thread could be created. A heap dump would not show the reason for this
    /// failure, so no dump is taken.
    const THREADS: jint = 4;
    if flags & THREADS == 0 {
        without_reentry(agent::exhausted);
    }
}

/// The body of the thread that ends an allocation count if nobody else has ended it in time.
///
/// # Safety
/// Only the JVM calls this function.
// SAFETY: the JVM passes the arguments that JVMTI specifies. Each unsafe block's comment names the arguments it needs.
unsafe extern "C" fn count_thread(_: *mut jvmtiEnv, env: *mut JNIEnv, round: *mut c_void) {
    without_reentry(|| {
        if let Some(jvmti) = counting::jvmti() {
            // SAFETY: the JVM passed this environment for the current thread. The agent never disposes of a JVMTI
            // environment that it has kept.
            unsafe { with_env(env, jvmti, |env| counting::watch(env, round.addr())) };
        }
    });
}

/// Runs `work` with the id of the current thread. Called in a native method of the class `heapdiff.Labels`.
///
/// # Safety
/// The JVM passed `env` and `thread` to a native method on the current thread.
// SAFETY: the environment and the reference are used only during this call.
unsafe fn with_thread(env: *mut JNIEnv, thread: jobject, work: impl FnOnce(&Env<'_>, u64)) {
    without_reentry(|| {
        // SAFETY: the caller upholds the `# Safety` contract.
        unsafe {
            with_agent(env, |env| {
                // SAFETY: the JVM passed this reference. The native method has a parameter of type `Thread`.
                if let Some(thread) = Ref::<Any>::new(thread) {
                    work(env, env.thread_id(thread));
                }
            });
        }
    });
}

/// Native method `heapdiff.Labels.get`.
///
/// # Safety
/// Only the JVM calls this function.
// SAFETY: the JVM passes the arguments that the method's signature specifies.
unsafe extern "system" fn labels_get(env: *mut JNIEnv, _: jclass, thread: jobject) -> jint {
    let mut labels = 0;
    // SAFETY: the JVM passed these arguments.
    unsafe { with_thread(env, thread, |_, id| labels = LABELS.get(id)) };
    labels.cast_signed()
}

/// Native method `heapdiff.Labels.set`.
///
/// # Safety
/// Only the JVM calls this function.
// SAFETY: the JVM passes the arguments that the method's signature specifies.
unsafe extern "system" fn labels_set(env: *mut JNIEnv, _: jclass, thread: jobject, labels: jint) {
    // SAFETY: the JVM passed these arguments.
    unsafe { with_thread(env, thread, |_, id| LABELS.set(id, labels.cast_unsigned())) };
}

/// Native method `heapdiff.Labels.add`.
///
/// # Safety
/// Only the JVM calls this function.
// SAFETY: the JVM passes the arguments that the method's signature specifies.
unsafe extern "system" fn labels_add(
    env: *mut JNIEnv,
    _: jclass,
    outer: jint,
    more: jstring,
) -> jint {
    let mut labels = outer;
    without_reentry(|| {
        // SAFETY: the JVM passed this environment for the current thread.
        unsafe {
            with_agent(env, |env| {
                // SAFETY: the JVM passed this reference. The method has a parameter of type `String`.
                let more = Ref::<Text>::new(more).and_then(|more| more.read(env).ok());
                if let Some(more) = more {
                    labels = LABELS.add(outer.cast_unsigned(), &more).cast_signed();
                }
            });
        }
    });
    labels
}

/// Returns the native methods of the class `heapdiff.Labels`.
fn natives() -> [Native; 3] {
    [
        Native {
            name: c"get",
            signature: c"(Ljava/lang/Thread;)I",
            function: labels_get as *mut c_void,
        },
        Native {
            name: c"set",
            signature: c"(Ljava/lang/Thread;I)V",
            function: labels_set as *mut c_void,
        },
        Native {
            name: c"add",
            signature: c"(ILjava/lang/String;)I",
            function: labels_add as *mut c_void,
        },
    ]
}

// SAFETY: these are only function types. Only the JVM calls the functions that have them.
type WithEnv = unsafe extern "C" fn(*mut jvmtiEnv, *mut JNIEnv);
// SAFETY: this is only a function type. Only the JVM calls the functions that have it.
type WithThread = unsafe extern "C" fn(*mut jvmtiEnv, *mut JNIEnv, jobject);
// SAFETY: this is only a function type. Only the JVM calls the functions that have it.
type Exhausted =
    unsafe extern "C" fn(*mut jvmtiEnv, *mut JNIEnv, jint, *const c_void, *const c_char);
// SAFETY: this is only a function type. Only the JVM calls the functions that have it.
type WithClass = unsafe extern "C" fn(*mut jvmtiEnv, *mut JNIEnv, jobject, jclass);

/// Returns the callbacks of the JVMTI environment that samples allocations.
fn callbacks() -> Callbacks {
    Callbacks {
        base: jvmtiEventCallbacks {
            // SAFETY: the two function types differ only in the Rust type for the JNI environment. jvmti-sys uses the
            // type of an older version of jni-sys.
            VMInit: unsafe { transmute::<Option<WithThread>, jvmtiEventVMInit>(Some(vm_init)) },
            // SAFETY: the two function types differ only in the Rust type for the JNI environment.
            VMDeath: unsafe { transmute::<Option<WithEnv>, jvmtiEventVMDeath>(Some(vm_death)) },
            // SAFETY: the two function types differ only in the Rust type for the JNI environment.
            ClassLoad: unsafe {
                transmute::<Option<WithClass>, jvmtiEventClassLoad>(Some(class_load))
            },
            // SAFETY: the two function types differ only in the Rust type for the JNI environment.
            ResourceExhausted: unsafe {
                transmute::<Option<Exhausted>, jvmtiEventResourceExhausted>(Some(
                    resource_exhausted,
                ))
            },
            GarbageCollectionStart: Some(garbage_collection_start),
            GarbageCollectionFinish: Some(garbage_collection_finish),
            ..jvmtiEventCallbacks::default()
        },
        reserved: None,
        sampled_object_alloc: Some(sampled_object_alloc),
    }
}

/// Returns the function that a thread of the agent runs.
fn body(thread: Thread) -> as_int::AgentThread {
    match thread {
        Thread::Agent => agent_thread,
        Thread::Trace => trace_thread,
        Thread::Guard => guard_thread,
        Thread::Count => count_thread,
    }
}

/// The functions that the JVM calls, in the form in which the module `jvmti` registers them.
const CALLED: Called = Called {
    callbacks,
    thread: body,
    labels: natives,
    fault: agent::fault,
};

/// Returns the option string. Invalid UTF-8 is replaced.
///
/// # Safety
/// `options` is null or a NUL-terminated string.
// SAFETY: the string is read only if it is not null.
unsafe fn text_of(options: *const c_char) -> String {
    if options.is_null() {
        return String::new();
    }
    // SAFETY: the caller upholds the `# Safety` contract.
    unsafe { CStr::from_ptr(options) }
        .to_string_lossy()
        .into_owned()
}

/// Called by the JVM for `-agentpath`, before the JVM is initialized.
///
/// # Safety
/// Only the JVM calls this function.
// SAFETY: the JVM looks this function up by its name, and no other function has this name.
#[unsafe(no_mangle)]
// SAFETY: the JVM passes the arguments that JVMTI specifies. Each unsafe block's comment names the arguments it needs.
pub(crate) unsafe extern "system" fn Agent_OnLoad(
    vm: *mut JavaVM,
    options: *mut c_char,
    _: *mut c_void,
) -> jint {
    // SAFETY: the JVM passed these pointers.
    let (environment, options) = unsafe { (Environment::of(vm), text_of(options)) };
    set_called(CALLED);
    own_file::keep_open();
    provoked::prepare();
    // Any other result would end the JVM, so this returns JNI_OK even if the agent cannot be loaded.
    if catch_unwind(AssertUnwindSafe(|| agent::load(environment.ok(), &options))).is_err() {
        agent::fault();
    }
    JNI_OK
}

/// Called by the JVM when a client attaches and requests that the JVM loads the agent.
///
/// # Safety
/// Only the JVM calls this function.
// SAFETY: the JVM looks this function up by its name, and no other function has this name.
#[unsafe(no_mangle)]
// SAFETY: the JVM passes the arguments that JVMTI specifies. Each unsafe block's comment names the arguments it needs.
pub(crate) unsafe extern "system" fn Agent_OnAttach(
    vm: *mut JavaVM,
    options: *mut c_char,
    _: *mut c_void,
) -> jint {
    // SAFETY: the JVM passed these pointers.
    let (environment, options) = unsafe { (Environment::of(vm), text_of(options)) };
    set_called(CALLED);
    let mut result = heapdiff_sites::attach::FAILED;
    without_reentry(|| {
        own_file::keep_open();
        // This second environment reads class names of exceptions. The first environment cannot do this, because it may
        // be disposed of before this function returns.
        // SAFETY: the JVM passed this pointer.
        let naming = unsafe { Environment::of(vm) };
        let (environment, naming) = match (environment, naming) {
            (Ok(environment), Ok(naming)) => (environment, naming),
            // The JVM is not initialized yet, so it has no environment.
            (Err(JNI_EDETACHED), _) => {
                result = heapdiff_sites::attach::NOT_UP;
                return;
            }
            // JDK 10 and earlier do not have JVMTI 11.
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
        // SAFETY: `vm` is the running JVM, which has a complete function table. `vm` is not null, because `environment`
        // came from it.
        let got = unsafe { ((**vm).v1_2.GetEnv)(vm, &raw mut env, JNI_VERSION_1_8) };
        if got == JNI_OK {
            let wanted = snapshot::Wanted::parse(&options);
            let attach = |env: &Env<'_>| {
                result = match wanted {
                    Some(wanted) => {
                        agent::before_fork(env);
                        snapshot::take(&environment, env, wanted)
                    }
                    None => match counting::Asked::parse(&options) {
                        Some(asked) => counting::handle_request(
                            environment,
                            env,
                            &asked,
                            &agent::sampled_classes,
                        ),
                        None => agent::load_and_start(env, environment, &options),
                    },
                }
            };
            // SAFETY: the environment belongs to this thread. `naming` is disposed of only afterwards.
            unsafe { with_env(env.cast(), naming.jvmti(), attach) };
        }
        drop(naming);
    });
    result
}

/// Called when the JVM ends. Other threads may still be in callbacks, so nothing is freed.
///
/// # Safety
/// Only the JVM calls this function.
// SAFETY: the JVM looks this function up by its name, and no other function has this name.
#[unsafe(no_mangle)]
// SAFETY: the body is empty. The function is unsafe only to match the JVM's type.
pub(crate) unsafe extern "system" fn Agent_OnUnload(_: *mut JavaVM) {}

/// Panics that a test requests through an environment variable. The code is part of every build, because tests run the
/// library that users run. The code costs one comparison in each GC callback.
mod provoked {
    use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

    /// The environment variable with which a test selects the GC callback in which the agent panics.
    const VARIABLE: &str = "HEAPDIFF_AGENT_PANIC";
    pub(super) const GC_START: u8 = 1;
    pub(super) const GC_FINISH: u8 = 2;
    static WHERE: AtomicU8 = AtomicU8::new(0);

    /// Reads the variable when the agent is loaded. GC callbacks only read the stored value, because they must not
    /// wait.
    pub(super) fn prepare() {
        let place = match std::env::var(VARIABLE).as_deref() {
            Ok("gc-start") => GC_START,
            Ok("gc-finish") => GC_FINISH,
            _ => 0,
        };
        WHERE.store(place, Relaxed);
    }

    /// Panics if a test has requested a panic in the GC callback `here`.
    pub(super) fn panic(here: u8) {
        assert!(WHERE.load(Relaxed) != here, "provoked by {VARIABLE}");
    }
}
