//! Receives class files as they are loaded, lists loaded classes, and receives events about threads that start and end.

use std::ffi::{CStr, c_char, c_int, c_uchar};
use std::mem::transmute;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{NonNull, null_mut};

use jni_sys::{JNIEnv, jclass, jint, jobject};
use jvmti_sys::{
    jvmtiEnv, jvmtiEventCallbacks, jvmtiEventClassFileLoadHook, jvmtiEventThreadEnd,
    jvmtiEventThreadStart,
};

use super::calls::{Any, Class, Env, JniError, Kind, Local, Ref, jni};
use super::sys::{Callbacks, capability, event};
use super::{Environment, Jvmti, Result, modified_utf8};

/// Number of JNI local references to reserve in addition to one for each class.
const MORE_LOCALS: jint = 64;
/// JVMTI's status flag of an initialized class.
pub(crate) const INITIALIZED: c_int = 4;

/// An object that receives the class files and thread events of one JVMTI environment.
pub(crate) trait ClassFiles {
    /// Returns the JVMTI environment that sends the class files and events.
    fn jvmti() -> Option<Jvmti>;
    /// Returns the class file that the JVM shall use in place of `file`, or `None` to keep `file`. The JVM calls this
    /// function when it is about to parse the file. So the function must not call the JVM.
    fn rewritten(name: Option<&str>, is_boot: bool, file: &[u8]) -> Option<Vec<u8>>;
    /// Called when the thread with this number begins to run.
    fn thread_starts(_: i64) {}
    /// Called when the thread with this number has run all its Java code.
    fn thread_ended(_: i64) {}
}

/// JVMTI callback for a class file that is about to be parsed.
///
/// # Safety
/// Only the JVM calls this function.
// SAFETY: the JVM passes the arguments that JVMTI specifies. Each unsafe block's comment names the arguments it needs.
unsafe extern "C" fn class_file<F: ClassFiles>(
    _: *mut jvmtiEnv,
    _: *mut JNIEnv,
    _: jclass,
    loader: jobject,
    name: *const c_char,
    _: jobject,
    len: jint,
    data: *const c_uchar,
    new_len: *mut jint,
    new_data: *mut *mut c_uchar,
) {
    let rewritten = || {
        let len = usize::try_from(len).ok()?;
        if data.is_null() {
            return None;
        }
        let name = match name.is_null() {
            true => None,
            // SAFETY: the name is a NUL-terminated string of the JVM.
            false => Some(modified_utf8(unsafe { CStr::from_ptr(name) }.to_bytes())),
        };
        // SAFETY: `data` points to `len` bytes that stay valid until this function returns.
        let bytes = unsafe { std::slice::from_raw_parts(data, len) };
        F::rewritten(name.as_deref(), loader.is_null(), bytes)
    };
    let rewritten = match catch_unwind(AssertUnwindSafe(rewritten)) {
        Ok(rewritten) => rewritten,
        Err(_) => {
            super::fault();
            None
        }
    };
    let (Some(rewritten), Some(jvmti)) = (rewritten, F::jvmti()) else {
        return;
    };
    let Ok(length) = jint::try_from(rewritten.len()) else {
        return;
    };
    let mut memory: *mut u8 = null_mut();
    // SAFETY: the out parameter is a local pointer. The JVM takes ownership of the memory and frees it.
    let allocated = unsafe { call!(jvmti, Allocate, length.into(), &raw mut memory) };
    if allocated.is_err() || memory.is_null() {
        return;
    }
    // SAFETY: both buffers have `rewritten.len()` bytes; the JVM passed valid pointers to an int and a pointer.
    unsafe {
        memory.copy_from_nonoverlapping(rewritten.as_ptr(), rewritten.len());
        *new_len = length;
        *new_data = memory;
    }
}

/// JVMTI callback for a thread that is about to run.
///
/// # Safety
/// Only the JVM calls this function.
// SAFETY: the JVM passes the arguments that JVMTI specifies. Each unsafe block's comment names the arguments it needs.
unsafe extern "C" fn thread_start<F: ClassFiles>(
    _: *mut jvmtiEnv,
    env: *mut JNIEnv,
    thread: jobject,
) {
    // SAFETY: the JVM passed both arguments for this call.
    unsafe { with_number::<F>(env, thread, F::thread_starts) };
}

/// JVMTI callback for a thread that has run all its Java code.
///
/// # Safety
/// Only the JVM calls this function.
// SAFETY: the JVM passes the arguments that JVMTI specifies. Each unsafe block's comment names the arguments it needs.
unsafe extern "C" fn thread_end<F: ClassFiles>(
    _: *mut jvmtiEnv,
    env: *mut JNIEnv,
    thread: jobject,
) {
    // SAFETY: the JVM passed both arguments for this call.
    unsafe { with_number::<F>(env, thread, F::thread_ended) };
}

/// Calls `work` with the number of a thread.
///
/// # Safety
/// The JVM passed the environment and the thread reference to the current native call.
// SAFETY: both arguments are used only during this call, on the thread that they belong to.
unsafe fn with_number<F: ClassFiles>(env: *mut JNIEnv, thread: jobject, work: fn(i64)) {
    let all = || {
        // SAFETY: this is a local reference that stays valid during the event.
        let thread = unsafe { Ref::<Any>::new(thread) }?;
        let (raw, jvmti) = (NonNull::new(env)?, F::jvmti()?);
        // SAFETY: the environment belongs to the current thread, and is used only here.
        let env = unsafe { Env::new(raw, jvmti) };
        work(env.thread_number(thread).ok()?);
        Some(())
    };
    if catch_unwind(AssertUnwindSafe(all)).is_err() {
        super::fault();
    }
}

// SAFETY: this is only a function type. Only the JVM calls the functions that have it.
type ThreadEvent = unsafe extern "C" fn(*mut jvmtiEnv, *mut JNIEnv, jobject);

// SAFETY: this is only a function type. Only the JVM calls the functions that have it.
type ClassFileHook = unsafe extern "C" fn(
    *mut jvmtiEnv,
    *mut JNIEnv,
    jclass,
    jobject,
    *const c_char,
    jobject,
    jint,
    *const c_uchar,
    *mut jint,
    *mut *mut c_uchar,
);

impl Environment {
    /// Keeps the environment as long as the process lives, and prepares it to receive class files. It receives class
    /// files after [`Jvmti::hook_class_files`] has enabled the event.
    pub(crate) fn for_class_files<F: ClassFiles>(self) -> Result<Jvmti> {
        self.add_capabilities(&[capability::RETRANSFORM_CLASSES])?;
        self.set_callbacks(&Callbacks {
            base: jvmtiEventCallbacks {
                // SAFETY: the types differ only in the name of the JNI environment, which jvmti-sys takes from an older
                // jni-sys.
                ClassFileLoadHook: unsafe {
                    transmute::<Option<ClassFileHook>, jvmtiEventClassFileLoadHook>(Some(
                        class_file::<F>,
                    ))
                },
                // SAFETY: the types differ only in the name of the JNI environment, which jvmti-sys takes from an older
                // jni-sys.
                ThreadStart: unsafe {
                    transmute::<Option<ThreadEvent>, jvmtiEventThreadStart>(Some(thread_start::<F>))
                },
                // SAFETY: the types differ only in the name of the JNI environment, which jvmti-sys takes from an older
                // jni-sys.
                ThreadEnd: unsafe {
                    transmute::<Option<ThreadEvent>, jvmtiEventThreadEnd>(Some(thread_end::<F>))
                },
                ..jvmtiEventCallbacks::default()
            },
            reserved: None,
            sampled_object_alloc: None,
        })?;
        Ok(self.into_permanent())
    }

    /// Returns the size of an object in bytes.
    pub(crate) fn object_size(&self, object: Ref<'_>) -> Option<i64> {
        self.0.object_size(object)
    }
}

impl Jvmti {
    /// Enables or disables the event for class files.
    pub(crate) fn hook_class_files(&self, on: bool) -> Result<()> {
        self.set_event(event::CLASS_FILE_LOAD_HOOK, on)
    }

    /// Enables or disables the events for threads that start and end.
    pub(crate) fn hook_threads(&self, on: bool) -> Result<()> {
        self.set_event(event::THREAD_END, on)?;
        self.set_event(event::THREAD_START, on)
    }

    /// Returns the numbers of all live platform threads.
    pub(crate) fn live_threads(&self, env: &Env<'_>) -> Result<Vec<i64>> {
        let (mut count, mut list) = (0, null_mut());
        // SAFETY: the out parameters are a local int and a local pointer.
        unsafe { call!(self, GetAllThreads, &raw mut count, &raw mut list)? };
        if list.is_null() {
            return Ok(Vec::new());
        }
        // SAFETY: the JVM returned a list of `count` local references, which we own.
        let threads = unsafe { self.take_reference_list::<Any>(env, count, list) };
        let numbers = threads
            .iter()
            .filter_map(|t| env.thread_number(t.get()).ok());
        Ok(numbers.collect())
    }

    /// Returns the loaded classes that agents can change and for which `wanted` returns true. The arguments of `wanted`
    /// are the class's signature, and true if the boot loader defined the class.
    pub(crate) fn changeable<'local>(
        &self,
        env: &Env<'local>,
        mut wanted: impl FnMut(&str, bool) -> bool,
    ) -> Result<Vec<(String, Local<'local, Class>)>> {
        let mut found = Vec::new();
        for class in self.classes(env)? {
            let signature = self.class_signature(class.get())?;
            if signature.starts_with('L') && wanted(&signature, self.is_boot(env, class.get())) {
                let mut changeable = 0;
                // SAFETY: the reference is to a class object; the out parameter is a local byte.
                unsafe { call!(self, IsModifiableClass, class.raw(), &raw mut changeable)? };
                if changeable != 0 {
                    found.push((signature, class));
                }
            }
        }
        Ok(found)
    }

    /// Returns the loaded classes for whose signature `wanted` returns true.
    pub(crate) fn loaded<'local>(
        &self,
        env: &Env<'local>,
        mut wanted: impl FnMut(&str) -> bool,
    ) -> Result<Vec<(String, Local<'local, Class>)>> {
        let mut found = Vec::new();
        for class in self.classes(env)? {
            let signature = self.class_signature(class.get())?;
            if wanted(&signature) {
                found.push((signature, class));
            }
        }
        Ok(found)
    }

    /// Returns all loaded classes.
    pub(crate) fn classes<'local>(&self, env: &Env<'local>) -> Result<Vec<Local<'local, Class>>> {
        let (mut count, mut list) = (0, null_mut());
        // SAFETY: the out parameters are a local int and a local pointer.
        unsafe { call!(self, GetLoadedClasses, &raw mut count, &raw mut list)? };
        if list.is_null() {
            return Ok(Vec::new());
        }
        // SAFETY: the JVM returned a list of `count` local references, which we own.
        Ok(unsafe { self.take_reference_list(env, count, list) })
    }

    /// Takes over the references in a list that the JVM allocated, and frees the list.
    ///
    /// # Safety
    /// The JVM allocated the list. It contains `count` local references that nobody else owns.
    // SAFETY: each reference gets exactly one owner, and the list is freed once.
    unsafe fn take_reference_list<'local, K: Kind>(
        &self,
        env: &Env<'local>,
        count: jint,
        list: *mut jobject,
    ) -> Vec<Local<'local, K>> {
        let count = usize::try_from(count).unwrap_or(0);
        // SAFETY: the caller guarantees a list of `count` references. It is deallocated below.
        let objects = unsafe { std::slice::from_raw_parts(list, count) }.to_vec();
        // SAFETY: the JVM allocated the list for us; nothing refers to it any more.
        unsafe { self.deallocate(list.cast()) };
        // Reserve room for the references. JNI does not know that JVMTI created them, so `-Xcheck:jni` would warn about
        // too many references.
        let locals = jint::try_from(count)
            .unwrap_or(0)
            .saturating_add(MORE_LOCALS);
        // SAFETY: the environment belongs to the current thread.
        unsafe { jni!(env.raw(), v1_2.EnsureLocalCapacity, locals) };
        // Ignore the error: if no room was reserved for the local references, the JVM creates them anyway.
        let _ = env.check();
        let owned = objects.into_iter().filter_map(|object| {
            // SAFETY: the JVM has just returned this local reference, and nothing else owns it.
            unsafe { Local::<K>::new(env, object) }
        });
        owned.collect()
    }

    /// Retransforms classes: the JVM passes their class files to the callback [`ClassFiles::rewritten`] again, and uses
    /// the returned class files.
    pub(crate) fn retransform(&self, classes: &[Ref<'_, Class>]) -> Result<()> {
        let raw: Vec<jclass> = classes.iter().map(|class| class.raw()).collect();
        let count = jint::try_from(raw.len()).unwrap_or(0);
        // SAFETY: the array contains `count` valid references to classes.
        unsafe { call!(self, RetransformClasses, count, raw.as_ptr()) }
    }

    /// Returns the size of an object in bytes.
    pub(crate) fn object_size(&self, object: Ref<'_>) -> Option<i64> {
        let mut size = 0;
        // SAFETY: the reference is valid; the out parameter is a local long.
        unsafe { call!(self, GetObjectSize, object.raw(), &raw mut size) }.ok()?;
        Some(size)
    }

    /// Returns the size in bytes of an instance of a class, or `None` if the class is not initialized. Allocates an
    /// instance without calling a constructor, measures it, and drops it.
    pub(crate) fn instance_size(&self, env: &Env<'_>, class: Ref<'_, Class>) -> Option<u64> {
        let mut status = 0;
        // SAFETY: the reference is to a class object; the out parameter is a local int.
        unsafe { call!(self, GetClassStatus, class.raw(), &raw mut status) }.ok()?;
        if status & INITIALIZED == 0 {
            return None;
        }
        // SAFETY: the environment belongs to the current thread, and the reference is to a class. The result is a new
        // local reference or null.
        let made: super::calls::Result<Local<'_>> = unsafe {
            let made = jni!(env.raw(), v1_1.AllocObject, class.raw());
            env.take_non_null(made, "an object")
        };
        let size = self.object_size(made.ok()?.get())?;
        u64::try_from(size).ok()
    }
}

impl Env<'_> {
    /// Returns the value of a static field. The field is an `int`, or a `long` whose value fits into an `i32`.
    pub(crate) fn static_int(
        &self,
        class: Ref<'_, Class>,
        name: &CStr,
    ) -> super::calls::Result<i32> {
        let unfit = || JniError::Unfit(name.to_string_lossy().into_owned());
        let field = |kind: &CStr| {
            let (name, kind) = (name.as_ptr(), kind.as_ptr());
            // SAFETY: the environment belongs to the current thread, the reference is to a class, and the strings are
            // NUL-terminated.
            let field = unsafe { jni!(self.raw(), v1_1.GetStaticFieldID, class.raw(), name, kind) };
            self.check()?;
            NonNull::new(field).ok_or_else(unfit)
        };
        match field(c"I") {
            Ok(field) => {
                let field = field.as_ptr();
                // SAFETY: the JVM found the field in this class with the type `int`.
                Ok(unsafe { jni!(self.raw(), v1_1.GetStaticIntField, class.raw(), field) })
            }
            Err(JniError::HeapFull) => Err(JniError::HeapFull),
            Err(_) => {
                let field = field(c"J")?.as_ptr();
                // SAFETY: the JVM found the field in this class with the type `long`.
                let long = unsafe { jni!(self.raw(), v1_1.GetStaticLongField, class.raw(), field) };
                i32::try_from(long).map_err(|_| unfit())
            }
        }
    }

    /// Returns the number of a thread, by which the hooks for counting identify the thread. Reads the number from the
    /// thread's field, because the program may override `Thread.getId`.
    fn thread_number(&self, thread: Ref<'_>) -> super::calls::Result<i64> {
        let class = self.class(c"java/lang/Thread")?;
        let (name, kind) = (c"tid".as_ptr(), c"J".as_ptr());
        // SAFETY: the environment belongs to the current thread, the reference is to a class, and the strings are
        // NUL-terminated.
        let field = unsafe { jni!(self.raw(), v1_1.GetFieldID, class.raw(), name, kind) };
        self.check()?;
        let field = NonNull::new(field).ok_or_else(|| JniError::Unfit("Thread.tid".to_owned()))?;
        // SAFETY: the reference is to a thread, whose class has this field of type `long`.
        Ok(unsafe { jni!(self.raw(), v1_1.GetLongField, thread.raw(), field.as_ptr()) })
    }

    /// True if the JDK has a method that returns the carrier of the current virtual thread.
    pub(crate) fn has_carrier_method(&self) -> bool {
        let method = (c"currentCarrierThread", c"()Ljava/lang/Thread;");
        let class = self.class(c"java/lang/Thread");
        class.is_ok_and(|class| self.static_method(class.get(), method).is_ok())
    }
}
