//! Finds virtual threads and reads their stacks. JVMTI's `GetAllStackTraces` does not return these stacks.
//!
//! The JVM has no list of virtual threads. But the JDK's classes store each virtual thread in a thread container. The
//! JVM's own thread dumps (`jcmd Thread.dump_to_file`) also use these containers. With `-Djdk.trackAllThreads=false`,
//! threads that were not started by an executor are in no container.
//!
//! Stacks are read at safepoints, at most [`BATCH`] threads at each safepoint. Outside a safepoint, a carrier thread
//! may mount the virtual thread while its stack is read. JVMTI can prevent the mounting, but only after an expensive
//! change of mode. The new mode applies to all virtual threads until the JVM ends.

use std::collections::HashMap;
use std::ffi::{CStr, c_int};
use std::ptr::{null, null_mut};
use std::time::{Duration, Instant};

use jni_sys::{JNIEnv, jobject, jvalue};
use jvmti_sys::{jvmtiFrameInfo, jvmtiStackInfo};

use super::gather::{DEEPEST, Ids, Methods, delete};
use super::image::Gathered;
use crate::jvmti::calls::Env;
use crate::jvmti::sys::VERSION_21;
use crate::jvmti::{Jvmti, Result, call};

/// Maximum number of virtual threads whose stacks are read.
const MOST: usize = 20_000;
/// Maximum number of threads whose stacks are read at one safepoint.
const BATCH: usize = 64;
/// Maximum total time for reading stacks. The time is checked before each batch of [`BATCH`] threads.
const LONGEST: Duration = Duration::from_secs(2);
/// Maximum number of thread containers.
const CONTAINERS: c_int = 10_000;
/// JVMTI's class status: initialized.
const INITIALIZED: c_int = 4;
/// JVMTI's thread state: alive.
const ALIVE: c_int = 1;

/// A JNI environment. If one of its methods fails, the method clears the pending exception and returns null.
struct Calls(*mut JNIEnv);

impl Calls {
    fn cleared(&self, object: jobject) -> jobject {
        // SAFETY: the environment belongs to the current thread.
        unsafe {
            if ((**self.0).v1_2.ExceptionCheck)(self.0) {
                ((**self.0).v1_2.ExceptionClear)(self.0);
                return null_mut();
            }
        }
        object
    }

    /// Returns a class of the boot loader without initializing it. Its name is given with dots. `FindClass` would
    /// initialize `VirtualThread`, and this would start its carrier threads and helper threads.
    fn uninitialized(&self, name: &CStr) -> jobject {
        let class = self.class(c"java/lang/Class");
        if class.is_null() {
            return class;
        }
        let signature = c"(Ljava/lang/String;ZLjava/lang/ClassLoader;)Ljava/lang/Class;";
        // SAFETY: the environment belongs to the current thread and the strings are NUL-terminated. The method is
        // static, takes these arguments and returns a reference. A null loader is the boot loader.
        unsafe {
            let name = self.cleared(((**self.0).v1_2.NewStringUTF)(self.0, name.as_ptr()));
            let method = ((**self.0).v1_2.GetStaticMethodID)(
                self.0,
                class,
                c"forName".as_ptr(),
                signature.as_ptr(),
            );
            if name.is_null() || method.is_null() {
                return self.cleared(null_mut());
            }
            let arguments = [
                jvalue { l: name },
                jvalue { z: false },
                jvalue { l: null_mut() },
            ];
            self.cleared(((**self.0).v1_2.CallStaticObjectMethodA)(
                self.0,
                class,
                method,
                arguments.as_ptr(),
            ))
        }
    }

    fn class(&self, name: &CStr) -> jobject {
        // SAFETY: the environment belongs to the current thread, the string is NUL-terminated.
        self.cleared(unsafe { ((**self.0).v1_2.FindClass)(self.0, name.as_ptr()) })
    }

    /// Calls a method that takes no arguments and returns an object.
    ///
    /// # Safety
    /// The reference is null or to an object of the class. `signature` has no parameters, and its result is an object.
    // SAFETY: the method is looked up in the class, so the object has it.
    unsafe fn call(&self, object: jobject, class: &CStr, name: &CStr, signature: &CStr) -> jobject {
        let class = self.class(class);
        if object.is_null() || class.is_null() {
            return null_mut();
        }
        // SAFETY: the class is valid, and the strings are NUL-terminated.
        let method = unsafe {
            ((**self.0).v1_2.GetMethodID)(self.0, class, name.as_ptr(), signature.as_ptr())
        };
        if method.is_null() {
            return self.cleared(null_mut());
        }
        // SAFETY: the caller guarantees that the object has this method, which takes no arguments.
        self.cleared(unsafe { ((**self.0).v1_2.CallObjectMethodA)(self.0, object, method, null()) })
    }

    /// Returns the elements of a `java.util.Set` as an array.
    ///
    /// # Safety
    /// The reference is null or to a `java.util.Set`.
    // SAFETY: every `java.util.Set` has this method.
    unsafe fn elements(&self, set: jobject) -> jobject {
        // SAFETY: the caller upholds the `# Safety` contract.
        unsafe { self.call(set, c"java/util/Set", c"toArray", c"()[Ljava/lang/Object;") }
    }

    /// Returns the value of a static reference field.
    fn field(&self, class: &CStr, name: &CStr, signature: &CStr) -> jobject {
        let class = self.class(class);
        if class.is_null() {
            return class;
        }
        // SAFETY: the class is valid, the strings are NUL-terminated, and the field has a reference type.
        unsafe {
            let field = ((**self.0).v1_2.GetStaticFieldID)(
                self.0,
                class,
                name.as_ptr(),
                signature.as_ptr(),
            );
            if field.is_null() {
                self.cleared(null_mut())
            } else {
                self.cleared(((**self.0).v1_2.GetStaticObjectField)(self.0, class, field))
            }
        }
    }

    /// Returns the length of an array; 0 for null.
    ///
    /// # Safety
    /// The reference is null or to an array of references.
    // SAFETY: JNI gets only a valid reference to an array.
    unsafe fn length(&self, array: jobject) -> c_int {
        match array.is_null() {
            true => 0,
            // SAFETY: the caller upholds the `# Safety` contract.
            false => unsafe { ((**self.0).v1_2.GetArrayLength)(self.0, array) },
        }
    }

    /// Returns one element of an array.
    ///
    /// # Safety
    /// The reference is to an array of references with more than `at` elements.
    // SAFETY: JNI gets only a valid reference to an array and an index within it.
    unsafe fn element(&self, array: jobject, at: c_int) -> jobject {
        // SAFETY: the caller upholds the `# Safety` contract.
        self.cleared(unsafe { ((**self.0).v1_2.GetObjectArrayElement)(self.0, array, at) })
    }
}

impl Jvmti {
    /// True if the heap walk reports the stacks of virtual threads. JDK 21 and later report them.
    pub(super) fn reports_virtual_threads(&self) -> bool {
        let mut version = 0;
        // SAFETY: the out parameter is a local int. If the call fails, the version stays 0.
        let _ = unsafe { call!(self, GetVersionNumber, &raw mut version) };
        version >= VERSION_21
    }

    /// Returns arrays that together contain all virtual threads in the JDK's thread containers. Returns no array if the
    /// program has not started a virtual thread.
    ///
    /// This may load classes. The returned references stay valid until the caller's local frame is popped.
    pub(super) fn lists_of_virtual_threads(&self, env: &Env<'_>) -> Vec<jobject> {
        let calls = Calls(env.raw());
        if !self.reports_virtual_threads() {
            return Vec::new();
        }
        let class = calls.uninitialized(c"java.lang.VirtualThread");
        let mut status = 0;
        if class.is_null() {
            return Vec::new();
        }
        // SAFETY: the class is valid; the out parameter is a local int. If the call fails, the status stays 0.
        let _ = unsafe { call!(self, GetClassStatus, class, &raw mut status) };
        if status & INITIALIZED == 0 {
            return Vec::new();
        }
        // Read the field that contains the threads which were not started by an executor.
        let root = c"jdk/internal/vm/ThreadContainers$RootContainer$TrackingRootContainer";
        let set = calls.field(root, c"VTHREADS", c"Ljava/util/Set;");
        // SAFETY: the field has the type `java.util.Set`.
        let mut lists = vec![unsafe { calls.elements(set) }];
        let containers = c"jdk/internal/vm/ThreadContainers";
        let set = calls.field(containers, c"CONTAINER_REGISTRY", c"Ljava/util/Set;");
        // SAFETY: the field has the type `java.util.Set`. Its elements are weak references to containers, which have
        // these methods.
        unsafe {
            let registered = calls.elements(set);
            for at in 0..calls.length(registered).min(CONTAINERS) {
                let weak = calls.element(registered, at);
                let get = (c"get", c"()Ljava/lang/Object;");
                let container = calls.call(weak, c"java/lang/ref/Reference", get.0, get.1);
                let threads = (c"threads", c"()Ljava/util/stream/Stream;");
                let class = c"jdk/internal/vm/ThreadContainer";
                let stream = calls.call(container, class, threads.0, threads.1);
                let array = (c"toArray", c"()[Ljava/lang/Object;");
                lists.push(calls.call(stream, c"java/util/stream/Stream", array.0, array.1));
                for reference in [weak, container, stream] {
                    delete(env, reference);
                }
            }
        }
        lists.retain(|list| !list.is_null());
        lists
    }

    /// Tags virtual threads with ids and reads their stacks. Stops at [`MOST`] threads, or after about [`LONGEST`].
    ///
    /// # Safety
    /// The references are to arrays of references.
    // SAFETY: every element read from the arrays is checked to be a virtual thread before it is used.
    pub(super) unsafe fn virtual_stacks(
        &self,
        env: &Env<'_>,
        lists: &[jobject],
        methods: &mut Methods,
        ids: &mut Ids,
        gathered: &mut Gathered,
    ) -> Result<()> {
        let calls = Calls(env.raw());
        if lists.is_empty() {
            return Ok(());
        }
        let class = calls.class(c"java/lang/VirtualThread");
        if class.is_null() {
            return Ok(());
        }
        // SAFETY: local references to all classes are held, so their methods stay valid.
        unsafe { self.methods_that_unmount(env, methods, ids) };
        let started = Instant::now();
        let mut known = HashMap::new();
        let mut batch = Vec::with_capacity(BATCH);
        for &list in lists {
            // SAFETY: the caller upholds the `# Safety` contract.
            let length = unsafe { calls.length(list) };
            let mut at = 0;
            while at < length {
                if gathered.virtual_threads.len() >= MOST || started.elapsed() > LONGEST {
                    gathered.stacks_left += usize::try_from(length - at).unwrap_or(0);
                    break;
                }
                let room = BATCH.min(MOST - gathered.virtual_threads.len());
                while at < length && batch.len() < room {
                    // SAFETY: `at` is less than the array's length.
                    let thread = unsafe { calls.element(list, at) };
                    at += 1;
                    let raw = env.raw();
                    // SAFETY: both references are valid, or `thread` is null. JNI defines the result for null as true.
                    let is_instance = unsafe { ((**raw).v1_2.IsInstanceOf)(raw, thread, class) };
                    let is_virtual = is_instance && !thread.is_null();
                    if is_virtual {
                        batch.push(thread)
                    } else {
                        delete(env, thread)
                    }
                }
                // SAFETY: the references are to threads.
                let read = unsafe { self.batch(env, &batch, &mut known, methods, ids, gathered) };
                for thread in batch.drain(..) {
                    delete(env, thread);
                }
                read?;
            }
        }
        Ok(())
    }

    /// Looks up the methods that unmount a virtual thread. JVMTI leaves the frames of these methods out of stacks, but
    /// the heap walk reports them.
    ///
    /// # Safety
    /// Local references to all classes in `ids` are held.
    // SAFETY: the methods are those that JVMTI returned for a valid class.
    unsafe fn methods_that_unmount(&self, env: &Env<'_>, methods: &mut Methods, ids: &Ids) {
        let class = Calls(env.raw()).class(c"jdk/internal/vm/Continuation");
        let (mut count, mut list) = (0, null_mut());
        if class.is_null() {
            return;
        }
        // SAFETY: the class is valid; the out parameters are a local int and a local pointer. If the call fails, the
        // int and the pointer stay unchanged.
        let _ = unsafe { call!(self, GetClassMethods, class, &raw mut count, &raw mut list) };
        if !list.is_null() {
            let count = usize::try_from(count).unwrap_or(0);
            // SAFETY: the JVM returned `count` methods, which we own until they are deallocated below.
            for &method in unsafe { std::slice::from_raw_parts(list, count) } {
                let frame = jvmtiFrameInfo {
                    method: method.cast(),
                    location: 0,
                };
                // SAFETY: the caller upholds the `# Safety` contract.
                let _ = unsafe { self.known_method(env, &frame, methods, ids) };
            }
            // SAFETY: the JVM allocated the list for us; nothing refers to it any more.
            unsafe { self.deallocate(list.cast()) };
        }
        delete(env, class);
    }

    /// Reads the stacks of the given threads at one safepoint.
    ///
    /// # Safety
    /// The references are to threads.
    // SAFETY: JVMTI gets only the valid references and pointers to local variables.
    unsafe fn batch(
        &self,
        env: &Env<'_>,
        threads: &[jobject],
        known: &mut HashMap<Vec<(usize, i64)>, usize>,
        methods: &mut Methods,
        ids: &mut Ids,
        gathered: &mut Gathered,
    ) -> Result<()> {
        let Some(&first) = threads.first() else {
            return Ok(());
        };
        // If only one thread is passed, the JVM reads the thread's stack without a safepoint. So pass this thread
        // twice.
        let two = [first; 2];
        let asked = if threads.len() == 1 { &two } else { threads };
        let count = c_int::try_from(asked.len()).unwrap_or(0);
        let mut list: *mut jvmtiStackInfo = null_mut();
        // SAFETY: the caller guarantees valid threads, `asked` has `count` elements, and the out parameter is a local
        // pointer.
        let read = unsafe {
            call!(
                self,
                GetThreadListStackTraces,
                count,
                asked.as_ptr(),
                DEEPEST,
                &raw mut list
            )
        };
        if read.is_err() || list.is_null() {
            gathered.stacks_left += threads.len();
            return Ok(());
        }
        // SAFETY: the JVM returned one stack for each thread, which we own until they are deallocated below.
        let stacks: &[jvmtiStackInfo] = unsafe { std::slice::from_raw_parts(list, asked.len()) };
        for (stack, &thread) in stacks.iter().zip(threads) {
            let count = usize::try_from(stack.frame_count).unwrap_or(0);
            let is_alive = stack.state & ALIVE != 0;
            if is_alive && count > 0 && !stack.frame_buffer.is_null() {
                // SAFETY: the JVM returned `count` frames together with the list, which is deallocated below.
                let frames = unsafe { std::slice::from_raw_parts(stack.frame_buffer, count) };
                let before = ids.next;
                // SAFETY: the caller upholds the `# Safety` contract.
                let id = unsafe { self.assign_id(thread, &mut ids.next)? };
                if id == before {
                    gathered.others.push(id);
                }
                let places = frames.iter().map(|f| (f.method.addr(), f.location));
                let places: Vec<(usize, i64)> = places.collect();
                let at = match known.get(&places) {
                    Some(&at) => at,
                    None => {
                        for frame in frames {
                            // SAFETY: local references to all classes are held, so their methods stay valid.
                            let _ = unsafe { self.known_method(env, frame, methods, ids) };
                        }
                        gathered.stacks.push(places.clone());
                        known.insert(places, gathered.stacks.len() - 1);
                        gathered.stacks.len() - 1
                    }
                };
                gathered.virtual_threads.push((id, at));
            }
        }
        // The thread references in the list are the ones that were passed in, so they are not deleted here.
        // SAFETY: the JVM allocated the list for us; nothing refers to it any more.
        unsafe { self.deallocate(list.cast()) };
        Ok(())
    }
}
