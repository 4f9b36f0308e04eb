//! Class files as they are loaded, classes that are loaded already, and threads that start and end.

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

/// Local references beside those to the classes.
const MORE_LOCALS: jint = 64;
/// Class status: initialised.
pub(crate) const INITIALIZED: c_int = 4;

/// What class files become that an environment of JVMTI is shown.
pub(crate) trait ClassFiles {
    /// The environment.
    fn jvmti() -> Option<Jvmti>;
    /// A class file that the JVM is about to parse, if it is to be another. Calls nothing of the JVM's.
    fn rewritten(name: Option<&str>, is_boot: bool, file: &[u8]) -> Option<Vec<u8>>;
    /// A thread of this number begins to run.
    fn thread_starts(_: i64) {}
    /// A thread of this number has run all its Java code.
    fn thread_ended(_: i64) {}
}

/// A class file that is about to be parsed.
///
/// # Safety
/// Only the JVM calls it.
// SAFETY: sound under the `# Safety` contract above; each unsafe block below gives its argument.
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
            // SAFETY: the JVM's text, which ends with a zero byte.
            false => Some(modified_utf8(unsafe { CStr::from_ptr(name) }.to_bytes())),
        };
        // SAFETY: the JVM tells how many bytes there are; they stay until this returns.
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
    // SAFETY: the out parameter is a local pointer. The JVM takes the memory over, and gives it back to the environment.
    let allocated = unsafe { call!(jvmti, Allocate, length.into(), &raw mut memory) };
    if allocated.is_err() || memory.is_null() {
        return;
    }
    // SAFETY: there are as many bytes at both ends; the JVM gave pointers to an int and a pointer.
    unsafe {
        memory.copy_from_nonoverlapping(rewritten.as_ptr(), rewritten.len());
        *new_len = length;
        *new_data = memory;
    }
}

/// A thread that is about to run.
///
/// # Safety
/// Only the JVM calls it.
// SAFETY: sound under the `# Safety` contract above; each unsafe block below gives its argument.
unsafe extern "C" fn thread_start<F: ClassFiles>(
    _: *mut jvmtiEnv,
    env: *mut JNIEnv,
    thread: jobject,
) {
    // SAFETY: the JVM gave both for this call.
    unsafe { with_number::<F>(env, thread, F::thread_starts) };
}

/// A thread that has run all its Java code.
///
/// # Safety
/// Only the JVM calls it.
// SAFETY: sound under the `# Safety` contract above; each unsafe block below gives its argument.
unsafe extern "C" fn thread_end<F: ClassFiles>(
    _: *mut jvmtiEnv,
    env: *mut JNIEnv,
    thread: jobject,
) {
    // SAFETY: the JVM gave both for this call.
    unsafe { with_number::<F>(env, thread, F::thread_ended) };
}

/// # Safety
/// The JVM gave the environment and the reference to a thread for the call that this is within.
// SAFETY: sound under the `# Safety` contract above; each unsafe block below gives its argument.
unsafe fn with_number<F: ClassFiles>(env: *mut JNIEnv, thread: jobject, work: fn(i64)) {
    let all = || {
        // SAFETY: a local reference that the JVM takes back after the event.
        let thread = unsafe { Ref::<Any>::new(thread) }?;
        let (raw, jvmti) = (NonNull::new(env)?, F::jvmti()?);
        // SAFETY: the environment belongs to the current thread, and used here alone.
        let env = unsafe { Env::new(raw, jvmti) };
        work(env.thread_number(thread).ok()?);
        Some(())
    };
    if catch_unwind(AssertUnwindSafe(all)).is_err() {
        super::fault();
    }
}

// SAFETY: the type of a function; only the JVM calls those that have it.
type ThreadEvent = unsafe extern "C" fn(*mut jvmtiEnv, *mut JNIEnv, jobject);

// SAFETY: the type of a function; only the JVM calls those that have it.
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
    /// Has the JVM hand over class files, once that is turned on, and keeps the environment.
    pub(crate) fn for_class_files<F: ClassFiles>(self) -> Result<Jvmti> {
        self.add_capabilities(&[capability::RETRANSFORM_CLASSES])?;
        self.set_callbacks(&Callbacks {
            base: jvmtiEventCallbacks {
                // SAFETY: the types differ in the name of the JNI environment alone, which jvmti-sys takes from an older jni-sys.
                ClassFileLoadHook: unsafe {
                    transmute::<Option<ClassFileHook>, jvmtiEventClassFileLoadHook>(Some(
                        class_file::<F>,
                    ))
                },
                // SAFETY: as above.
                ThreadStart: unsafe {
                    transmute::<Option<ThreadEvent>, jvmtiEventThreadStart>(Some(thread_start::<F>))
                },
                // SAFETY: as above.
                ThreadEnd: unsafe {
                    transmute::<Option<ThreadEvent>, jvmtiEventThreadEnd>(Some(thread_end::<F>))
                },
                ..jvmtiEventCallbacks::default()
            },
            reserved: None,
            sampled_object_alloc: None,
        })?;
        Ok(self.keep())
    }

    /// The bytes of an object.
    pub(crate) fn object_size(&self, object: Ref<'_>) -> Option<i64> {
        self.0.object_size(object)
    }
}

impl Jvmti {
    /// Turns class files on or off.
    pub(crate) fn hook_class_files(&self, on: bool) -> Result<()> {
        self.set_event(event::CLASS_FILE_LOAD_HOOK, on)
    }

    /// Turns threads that begin and end on or off.
    pub(crate) fn hook_threads(&self, on: bool) -> Result<()> {
        self.set_event(event::THREAD_END, on)?;
        self.set_event(event::THREAD_START, on)
    }

    /// The numbers of all threads that live, virtual ones left out.
    pub(crate) fn live_threads(&self, env: &Env<'_>) -> Result<Vec<i64>> {
        let (mut count, mut list) = (0, null_mut());
        // SAFETY: the out parameters are a local int and a local pointer.
        unsafe { call!(self, GetAllThreads, &raw mut count, &raw mut list)? };
        if list.is_null() {
            return Ok(Vec::new());
        }
        // SAFETY: the JVM gave a list of so many local references, ours from now on.
        let threads = unsafe { self.owned::<Any>(env, count, list) };
        let numbers = threads
            .iter()
            .filter_map(|t| env.thread_number(t.get()).ok());
        Ok(numbers.collect())
    }

    /// Classes that are loaded, can be changed and are `wanted` by their signature and whether the boot loader
    /// defined them.
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
                // SAFETY: a reference to a class object, a pointer to a byte.
                unsafe { call!(self, IsModifiableClass, class.raw(), &raw mut changeable)? };
                if changeable != 0 {
                    found.push((signature, class));
                }
            }
        }
        Ok(found)
    }

    /// Classes that are loaded and `wanted` by their signature.
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

    /// All classes that are loaded.
    pub(crate) fn classes<'local>(&self, env: &Env<'local>) -> Result<Vec<Local<'local, Class>>> {
        let (mut count, mut list) = (0, null_mut());
        // SAFETY: the out parameters are a local int and a local pointer.
        unsafe { call!(self, GetLoadedClasses, &raw mut count, &raw mut list)? };
        if list.is_null() {
            return Ok(Vec::new());
        }
        // SAFETY: the JVM gave a list of so many local references, ours from now on.
        Ok(unsafe { self.owned(env, count, list) })
    }

    /// What is in a list that the JVM allocated, which is given back.
    ///
    /// # Safety
    /// The list is the JVM's, of so many local references that nobody else owns.
    // SAFETY: sound under the `# Safety` contract above; each unsafe block below gives its argument.
    unsafe fn owned<'local, K: Kind>(
        &self,
        env: &Env<'local>,
        count: jint,
        list: *mut jobject,
    ) -> Vec<Local<'local, K>> {
        let count = usize::try_from(count).unwrap_or(0);
        // SAFETY: the caller upholds the `# Safety` contract, until it is given back below.
        let objects = unsafe { std::slice::from_raw_parts(list, count) }.to_vec();
        // SAFETY: the JVM allocated the list for us; nothing refers to it any more.
        unsafe { self.deallocate(list.cast()) };
        // What JVMTI gave is not told to JNI, whose checks warn of it.
        let locals = jint::try_from(count)
            .unwrap_or(0)
            .saturating_add(MORE_LOCALS);
        // SAFETY: the environment belongs to the current thread.
        unsafe { jni!(env.raw(), v1_2.EnsureLocalCapacity, locals) };
        // Without room for more the JVM makes some all the same.
        let _ = env.check();
        let owned = objects.into_iter().filter_map(|object| {
            // SAFETY: a local reference, fresh from the JVM and owned by nobody else.
            unsafe { Local::<K>::new(env, object) }
        });
        owned.collect()
    }

    /// Has the JVM hand over the files of these classes again, and take what comes back.
    pub(crate) fn retransform(&self, classes: &[Ref<'_, Class>]) -> Result<()> {
        let raw: Vec<jclass> = classes.iter().map(|class| class.raw()).collect();
        let count = jint::try_from(raw.len()).unwrap_or(0);
        // SAFETY: as many references to classes as told.
        unsafe { call!(self, RetransformClasses, count, raw.as_ptr()) }
    }

    /// The bytes of an object.
    pub(crate) fn object_size(&self, object: Ref<'_>) -> Option<i64> {
        let mut size = 0;
        // SAFETY: a reference to an object, a pointer to a long.
        unsafe { call!(self, GetObjectSize, object.raw(), &raw mut size) }.ok()?;
        Some(size)
    }

    /// The bytes of an object of a class. Where the class is initialised one is made, without a constructor, and let go.
    pub(crate) fn instance_size(&self, env: &Env<'_>, class: Ref<'_, Class>) -> Option<u64> {
        let mut status = 0;
        // SAFETY: a reference to a class object, a pointer to an int.
        unsafe { call!(self, GetClassStatus, class.raw(), &raw mut status) }.ok()?;
        if status & INITIALIZED == 0 {
            return None;
        }
        // SAFETY: the environment belongs to the current thread, the reference is to a class; what comes back is a new local
        // reference or null.
        let made: super::calls::Result<Local<'_>> = unsafe {
            let made = jni!(env.raw(), v1_1.AllocObject, class.raw());
            env.made(made, "an object")
        };
        let size = self.object_size(made.ok()?.get())?;
        u64::try_from(size).ok()
    }
}

impl Env<'_> {
    /// A static number of a class: an `int`, or a `long` that is no larger than one.
    pub(crate) fn static_int(
        &self,
        class: Ref<'_, Class>,
        name: &CStr,
    ) -> super::calls::Result<i32> {
        let unfit = || JniError::Unfit(name.to_string_lossy().into_owned());
        let field = |kind: &CStr| {
            let (name, kind) = (name.as_ptr(), kind.as_ptr());
            // SAFETY: the environment belongs to the current thread, the reference is to a class, the strings are NUL-terminated.
            let field = unsafe { jni!(self.raw(), v1_1.GetStaticFieldID, class.raw(), name, kind) };
            self.check()?;
            NonNull::new(field).ok_or_else(unfit)
        };
        match field(c"I") {
            Ok(field) => {
                let field = field.as_ptr();
                // SAFETY: the field is the class's, and an int, or the JVM would not have found it.
                Ok(unsafe { jni!(self.raw(), v1_1.GetStaticIntField, class.raw(), field) })
            }
            Err(JniError::HeapFull) => Err(JniError::HeapFull),
            Err(_) => {
                let field = field(c"J")?.as_ptr();
                // SAFETY: as above, a long.
                let long = unsafe { jni!(self.raw(), v1_1.GetStaticLongField, class.raw(), field) };
                i32::try_from(long).map_err(|_| unfit())
            }
        }
    }

    /// The number of a thread, by which hooks know it. `Thread.getId` would be the program's to override.
    fn thread_number(&self, thread: Ref<'_>) -> super::calls::Result<i64> {
        let class = self.class(c"java/lang/Thread")?;
        let (name, kind) = (c"tid".as_ptr(), c"J".as_ptr());
        // SAFETY: the environment belongs to the current thread, the reference is to a class, the strings are NUL-terminated.
        let field = unsafe { jni!(self.raw(), v1_1.GetFieldID, class.raw(), name, kind) };
        self.check()?;
        let field = NonNull::new(field).ok_or_else(|| JniError::Unfit("Thread.tid".to_owned()))?;
        // SAFETY: the reference is to a thread, whose class has the field, a long.
        Ok(unsafe { jni!(self.raw(), v1_1.GetLongField, thread.raw(), field.as_ptr()) })
    }

    /// Whether threads that carry virtual ones can be told from these.
    pub(crate) fn knows_carriers(&self) -> bool {
        let method = (c"currentCarrierThread", c"()Ljava/lang/Thread;");
        let class = self.class(c"java/lang/Thread");
        class.is_ok_and(|class| self.static_method(class.get(), method).is_ok())
    }
}
