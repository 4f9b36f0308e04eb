//! Virtual threads and their stacks, which `GetAllStackTraces` leaves out.
//!
//! The JVM has no list of virtual threads. The JDK has: each one is in a thread container, as the JVM's own thread dumps
//! (`jcmd Thread.dump_to_file`) use them. With `-Djdk.trackAllThreads=false` threads that no executor started are in none.
//!
//! Stacks are read at safepoints, a few threads at each. Outside of a safepoint a carrier may mount the thread while its
//! stack is read: JVMTI prevents that only after a costly switch in all virtual threads, which lasts as long as the JVM.

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

/// Maximum number of threads whose stacks are read.
const MOST: usize = 20_000;
/// Maximum number of threads whose stacks are read at one safepoint.
const BATCH: usize = 64;
/// How long stacks are read in all.
const LONGEST: Duration = Duration::from_secs(2);
/// Maximum number of thread containers.
const CONTAINERS: c_int = 10_000;
/// Class status: initialized.
const INITIALIZED: c_int = 4;
/// Thread state: alive.
const ALIVE: c_int = 1;

/// JNI calls of which a failure returns null and leaves no exception.
struct Calls(*mut JNIEnv);

impl Calls {
    fn cleared(&self, object: jobject) -> jobject {
        // SAFETY: the environment is the current thread's.
        unsafe {
            if ((**self.0).v1_2.ExceptionCheck)(self.0) {
                ((**self.0).v1_2.ExceptionClear)(self.0);
                return null_mut();
            }
        }
        object
    }

    /// A class of the boot loader, by its name with dots. `FindClass` would initialize the class: that of virtual threads
    /// starts the threads that run them.
    fn uninitialized(&self, name: &CStr) -> jobject {
        let class = self.class(c"java/lang/Class");
        if class.is_null() {
            return class;
        }
        let signature = c"(Ljava/lang/String;ZLjava/lang/ClassLoader;)Ljava/lang/Class;";
        // SAFETY: the environment is the current thread's, the texts end with a zero byte, the method is static, takes these
        // arguments and returns a reference. Null is the boot loader.
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
        // SAFETY: the environment is the current thread's, the text ends with a zero byte.
        self.cleared(unsafe { ((**self.0).v1_2.FindClass)(self.0, name.as_ptr()) })
    }

    /// Calls a method without arguments that returns an object.
    ///
    /// # Safety
    /// The reference is null or to an object of the class.
    // SAFETY: what is unsafe in it says so where it stands.
    unsafe fn call(&self, object: jobject, class: &CStr, name: &CStr, signature: &CStr) -> jobject {
        let class = self.class(class);
        if object.is_null() || class.is_null() {
            return null_mut();
        }
        // SAFETY: the class is valid, and the texts end with a zero byte.
        let method = unsafe {
            ((**self.0).v1_2.GetMethodID)(self.0, class, name.as_ptr(), signature.as_ptr())
        };
        if method.is_null() {
            return self.cleared(null_mut());
        }
        // SAFETY: by the caller's promise the object has the method, which takes no arguments.
        self.cleared(unsafe { ((**self.0).v1_2.CallObjectMethodA)(self.0, object, method, null()) })
    }

    /// The elements of a `java.util.Set`, as an array.
    ///
    /// # Safety
    /// The reference is null or to such an object.
    // SAFETY: what is unsafe in it says so where it stands.
    unsafe fn elements(&self, set: jobject) -> jobject {
        // SAFETY: by the caller's promise.
        unsafe { self.call(set, c"java/util/Set", c"toArray", c"()[Ljava/lang/Object;") }
    }

    /// The value of a static field.
    fn field(&self, class: &CStr, name: &CStr, signature: &CStr) -> jobject {
        let class = self.class(class);
        if class.is_null() {
            return class;
        }
        // SAFETY: the class is valid, the texts end with a zero byte, and the field is one of references.
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

    /// # Safety
    /// The reference is null or to an array of references.
    // SAFETY: what is unsafe in it says so where it stands.
    unsafe fn length(&self, array: jobject) -> c_int {
        match array.is_null() {
            true => 0,
            // SAFETY: by the caller's promise.
            false => unsafe { ((**self.0).v1_2.GetArrayLength)(self.0, array) },
        }
    }

    /// # Safety
    /// The reference is to an array of references with more elements.
    // SAFETY: what is unsafe in it says so where it stands.
    unsafe fn element(&self, array: jobject, at: c_int) -> jobject {
        // SAFETY: by the caller's promise.
        self.cleared(unsafe { ((**self.0).v1_2.GetObjectArrayElement)(self.0, array, at) })
    }
}

impl Jvmti {
    /// True if the walk reports the stacks of virtual threads: JDK 21 and later.
    pub(super) fn reports_virtual_threads(&self) -> bool {
        let mut version = 0;
        // SAFETY: the pointer is to an int. If it fails the version stays 0.
        let _ = unsafe { call!(self, GetVersionNumber, &raw mut version) };
        version >= VERSION_21
    }

    /// Arrays with all virtual threads in the JDK's thread containers; none if the program has not started any.
    ///
    /// Classes may be loaded meanwhile. The references stay until the caller's frame of references goes.
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
        // SAFETY: the class is valid; the pointer is to an int. If it fails the status stays 0.
        let _ = unsafe { call!(self, GetClassStatus, class, &raw mut status) };
        if status & INITIALIZED == 0 {
            return Vec::new();
        }
        // Threads that no executor started.
        let root = c"jdk/internal/vm/ThreadContainers$RootContainer$TrackingRootContainer";
        let set = calls.field(root, c"VTHREADS", c"Ljava/util/Set;");
        // SAFETY: the field's type is the interface.
        let mut lists = vec![unsafe { calls.elements(set) }];
        let containers = c"jdk/internal/vm/ThreadContainers";
        let set = calls.field(containers, c"CONTAINER_REGISTRY", c"Ljava/util/Set;");
        // SAFETY: the field's type is the interface; its elements are weak references to containers, which have these methods.
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

    /// Gives virtual threads ids and reads their stacks: of [`MOST`] threads at most, for [`LONGEST`] at most.
    ///
    /// # Safety
    /// The references are to arrays of references.
    // SAFETY: what is unsafe in it says so where it stands.
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
        // SAFETY: all classes are held, and their methods with them.
        unsafe { self.methods_that_unmount(env, methods, ids) };
        let started = Instant::now();
        let mut known = HashMap::new();
        let mut batch = Vec::with_capacity(BATCH);
        for &list in lists {
            // SAFETY: by the caller's promise.
            let length = unsafe { calls.length(list) };
            let mut at = 0;
            while at < length {
                if gathered.virtual_threads.len() >= MOST || started.elapsed() > LONGEST {
                    gathered.stacks_left += usize::try_from(length - at).unwrap_or(0);
                    break;
                }
                while at < length && batch.len() < BATCH {
                    // SAFETY: the array has more elements.
                    let thread = unsafe { calls.element(list, at) };
                    at += 1;
                    let raw = env.raw();
                    // SAFETY: valid references, or null, of which this is true for each class.
                    let is_instance = unsafe { ((**raw).v1_2.IsInstanceOf)(raw, thread, class) };
                    let is_virtual = is_instance && !thread.is_null();
                    if is_virtual {
                        batch.push(thread)
                    } else {
                        delete(env, thread)
                    }
                }
                // SAFETY: valid references to threads.
                let read = unsafe { self.batch(env, &batch, &mut known, methods, ids, gathered) };
                for thread in batch.drain(..) {
                    delete(env, thread);
                }
                read?;
            }
        }
        Ok(())
    }

    /// Looks up the methods that unmount a thread, which JVMTI leaves out of stacks.
    ///
    /// # Safety
    /// All classes that are known by their ids are held.
    // SAFETY: what is unsafe in it says so where it stands.
    unsafe fn methods_that_unmount(&self, env: &Env<'_>, methods: &mut Methods, ids: &Ids) {
        let class = Calls(env.raw()).class(c"jdk/internal/vm/Continuation");
        let (mut count, mut list) = (0, null_mut());
        if class.is_null() {
            return;
        }
        // SAFETY: the class is valid, the pointers are to an int and a pointer. If it fails they stay as they are.
        let _ = unsafe { call!(self, GetClassMethods, class, &raw mut count, &raw mut list) };
        if !list.is_null() {
            let count = usize::try_from(count).unwrap_or(0);
            // SAFETY: the JVM gave as many methods, ours until they are given back below.
            for &method in unsafe { std::slice::from_raw_parts(list, count) } {
                let frame = jvmtiFrameInfo {
                    method: method.cast(),
                    location: 0,
                };
                // SAFETY: by the caller's promise.
                let _ = unsafe { self.known_method(env, &frame, methods, ids) };
            }
            // SAFETY: the JVM allocated the list for us; nothing refers to it any more.
            unsafe { self.deallocate(list.cast()) };
        }
        delete(env, class);
    }

    /// Reads the stacks of some threads at one safepoint.
    ///
    /// # Safety
    /// The references are to threads.
    // SAFETY: what is unsafe in it says so where it stands.
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
        // The stack of one thread alone would be read without a safepoint.
        let two = [first; 2];
        let asked = if threads.len() == 1 { &two } else { threads };
        let count = c_int::try_from(asked.len()).unwrap_or(0);
        let mut list: *mut jvmtiStackInfo = null_mut();
        // SAFETY: by the caller's promise; there are as many threads as told, and the pointer is to a pointer.
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
            return Ok(());
        }
        // SAFETY: the JVM gave a stack for each thread, ours until it is given back below.
        let stacks: &[jvmtiStackInfo] = unsafe { std::slice::from_raw_parts(list, asked.len()) };
        for (stack, &thread) in stacks.iter().zip(threads) {
            let count = usize::try_from(stack.frame_count).unwrap_or(0);
            let is_alive = stack.state & ALIVE != 0;
            if is_alive && count > 0 && !stack.frame_buffer.is_null() {
                // SAFETY: the JVM gave `count` frames with the list, which is freed below.
                let frames = unsafe { std::slice::from_raw_parts(stack.frame_buffer, count) };
                let before = ids.next;
                // SAFETY: by the caller's promise.
                let id = unsafe { self.give_id(thread, &mut ids.next)? };
                if id == before {
                    gathered.others.push(id);
                }
                let places = frames.iter().map(|f| (f.method.addr(), f.location));
                let places: Vec<(usize, i64)> = places.collect();
                let at = match known.get(&places) {
                    Some(&at) => at,
                    None => {
                        for frame in frames {
                            // SAFETY: all classes are held, and their methods with them.
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
        // The references in it are those that were passed.
        // SAFETY: the JVM allocated the list for us; nothing refers to it any more.
        unsafe { self.deallocate(list.cast()) };
        Ok(())
    }
}
