//! Wraps JVMTI and JNI. This is the lowest layer of the agent, so it imports nothing from the agent's other modules.
//!
//! [`Environment`] and [`Jvmti`] wrap the functions of JVMTI, and `calls` wraps the functions of JNI. `classes` and
//! `versions` handle class files and classes. Functions that only one feature needs are in that feature's folder.
//! `entry` contains the functions that the JVM calls, and registers them here as [`Called`].
//!
//! The types express the conditions under which a call is sound. A [`Jvmti`] exists only for an environment that is
//! never disposed of. A [`Frame`] exists only while its method is on the stack.

pub(crate) mod calls;
pub(crate) mod labels;
mod memory;
pub(crate) mod perf;
pub(crate) mod structs;
pub(crate) mod versions;
pub(crate) use memory::{Shared, memory_file, wide_pipe};
pub(crate) mod sys;

use std::ffi::{CStr, c_char, c_int, c_void};
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ptr::{NonNull, null_mut, without_provenance};
use std::sync::OnceLock;

use jni_sys::{JNI_ERR, JNI_OK, JavaVM, jint};
use jvmti_sys::{
    jrawMonitorID, jvmtiCapabilities, jvmtiEnv, jvmtiEventCallbacks, jvmtiFrameInfo,
    jvmtiThreadInfo,
};

use calls::{Any, Class, Env, Local, Ref};
use labels::Native;
use sys::{
    Callbacks, Interface, VERSION_11, as_int, capabilities, capability, error, event,
    has_capability,
};

/// A JVMTI environment that is being set up.
///
/// The value cannot be copied. Dropping it disposes of the environment and releases its capabilities.
/// [`Self::into_permanent`] keeps the environment as long as the process lives.
#[derive(Debug)]
pub(crate) struct Environment(Jvmti);

/// A JVMTI environment that is never disposed of.
///
/// Code outside of this module gets a `Jvmti` only from [`Environment::into_permanent`], or from the unsafe
/// `Environment::jvmti`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Jvmti(NonNull<jvmtiEnv>);

// SAFETY: a JVMTI environment belongs to no particular thread; any attached thread may use it.
unsafe impl Send for Jvmti {}
// SAFETY: any attached thread may use a JVMTI environment; the JVM does its own locking.
unsafe impl Sync for Jvmti {}

/// A JVMTI error, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("JVMTI error {0}")]
pub(crate) struct JvmtiError(pub(crate) c_int);

pub(crate) type Result<T> = std::result::Result<T, JvmtiError>;

/// Functions that the JVM calls, registered by `entry`.
pub(crate) struct Called {
    /// Returns the callbacks of the JVMTI environment that samples.
    pub(crate) callbacks: fn() -> Callbacks,
    /// Returns the function that a thread of the agent runs.
    pub(crate) thread: fn(Thread) -> as_int::AgentThread,
    /// Returns the native methods of the class `heapdiff.Labels`.
    pub(crate) labels: fn() -> [Native; 3],
    /// Counts a panic in a callback.
    pub(crate) fault: fn(),
}

/// The functions that the JVM calls. They are registered before the agent does anything else.
static CALLED: OnceLock<Called> = OnceLock::new();

/// Registers the functions that the JVM calls. Only the first call has an effect.
pub(crate) fn set_called(called: Called) {
    let _ = CALLED.set(called);
}

/// Defines the class `heapdiff.Labels`, whose methods read and set the labels of threads.
pub(crate) fn define_labels(env: &Env<'_>, bytes: &[u8]) -> calls::Result<()> {
    let natives = CALLED.get().map(|called| (called.labels)());
    env.define_labels(bytes, natives.as_ref().map_or(&[], |natives| natives))
}

/// Counts a panic in a callback.
fn fault() {
    if let Some(called) = CALLED.get() {
        (called.fault)();
    }
}

/// Decodes the JVM's modified UTF-8. A character above U+FFFF is stored as two surrogates of three bytes each, and NUL
/// is stored as two bytes. Invalid bytes become U+FFFD.
pub(crate) fn modified_utf8(bytes: &[u8]) -> String {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return text.to_owned();
    }
    let mut units = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let [first, after @ ..] = rest {
        let low = |byte: &u8| u16::from(byte & 0x3f);
        let (unit, left) = match (first, after) {
            (0..0x80, _) => (u16::from(*first), after),
            (0xc0..0xe0, [a, left @ ..]) => (u16::from(first & 0x1f) << 6 | low(a), left),
            (0xe0..0xf0, [a, b, left @ ..]) => {
                (u16::from(first & 0xf) << 12 | low(a) << 6 | low(b), left)
            }
            _ => (0xfffd, after),
        };
        units.push(unit);
        rest = left;
    }
    String::from_utf16_lossy(&units)
}

pub(crate) fn check(code: c_int) -> Result<()> {
    if code == 0 {
        Ok(())
    } else {
        Err(JvmtiError(code))
    }
}

/// A stack frame in the form in which JVMTI writes it: two numbers. The class of the frame's method may have been
/// unloaded meanwhile. So functions that pass a method to the JVM take a [`Frame`] instead.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct RawFrame(jvmtiFrameInfo);

impl PartialEq for RawFrame {
    fn eq(&self, other: &Self) -> bool {
        (self.method(), self.location()) == (other.method(), other.location())
    }
}

impl RawFrame {
    pub(crate) const EMPTY: Self = Self(jvmtiFrameInfo {
        method: null_mut(),
        location: 0,
    });

    /// Creates a frame from two arbitrary numbers, for tests.
    #[cfg(test)]
    pub(crate) fn of(method: usize, location: i64) -> Self {
        Self(jvmtiFrameInfo {
            method: std::ptr::without_provenance_mut(method),
            location,
        })
    }

    /// Returns the method's id. The JVM never reuses an id, even after the class is unloaded.
    pub(crate) fn method(&self) -> usize {
        self.0.method.addr()
    }

    /// Returns the bytecode index; negative for native methods.
    pub(crate) fn location(&self) -> i64 {
        self.0.location
    }
}

/// The stack of the current thread, innermost frame first, in the buffer that [`Jvmti::stack`] filled.
///
/// `'local` is the lifetime of a native call. Until this call returns, its callers stay on the stack, so their methods
/// are valid. The raw pointers in this type keep a value on its thread.
#[derive(Clone, Copy)]
pub(crate) struct Stack<'buffer, 'local> {
    frames: &'buffer [RawFrame],
    call: PhantomData<&'local ()>,
}

/// A frame that stays on the current thread's stack until the native call `'local` returns. Its method is valid,
/// because no class is unloaded while one of its methods is on a stack.
#[derive(Clone, Copy)]
pub(crate) struct Frame<'local> {
    raw: RawFrame,
    call: PhantomData<&'local ()>,
}

impl<'buffer, 'local> Stack<'buffer, 'local> {
    /// Returns the frames in JVMTI's form, as numbers.
    pub(crate) fn raw(&self) -> &'buffer [RawFrame] {
        self.frames
    }

    /// Returns the innermost frames, at most `most` of them.
    pub(crate) fn top(self, most: usize) -> Self {
        Self {
            frames: &self.frames[..self.frames.len().min(most)],
            ..self
        }
    }

    /// Iterates over the frames, innermost first.
    pub(crate) fn frames(&self) -> impl Iterator<Item = Frame<'local>> + use<'buffer, 'local> {
        self.frames.iter().map(|&raw| Frame {
            raw,
            call: PhantomData,
        })
    }
}

impl Frame<'_> {
    /// Returns the frame in JVMTI's form, as numbers.
    pub(crate) fn raw(&self) -> RawFrame {
        self.raw
    }
}

/// Name, source file and line table of a method.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MethodNames {
    pub(crate) name: String,
    pub(crate) file: Option<String>,
    /// Line table: pairs of the bytecode index where a line begins and the line number, in ascending order.
    pub(crate) lines: Box<[(i64, i32)]>,
}

/// The agent's threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Thread {
    /// Finds samples whose objects were collected.
    Agent,
    /// Writes the trace.
    Trace,
    /// Takes dumps before the JVM dies.
    Guard,
    /// Ends an allocation count that nobody else has ended.
    Count,
}

/// A JVMTI raw monitor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Monitor(NonNull<c_void>);

// SAFETY: raw monitors are made for use by several threads.
unsafe impl Send for Monitor {}
// SAFETY: raw monitors are made for use by several threads.
unsafe impl Sync for Monitor {}

/// Calls a function of the JVMTI table, after casting it to a type with integers in place of enums.
macro_rules! call {
    ($jvmti:expr, $name:ident $(, $argument:expr)*) => {{
        let jvmti: &$crate::jvmti::Jvmti = &$jvmti;
        match jvmti.table().base.$name {
            // SAFETY: the two types differ in two ways: C enums, which have the same ABI as `int`, are replaced by
            // `int`, and some pointers are const. The comment at each use argues that the arguments satisfy the
            // function's specification.
            Some(function) => {
                #[allow(
                    clippy::missing_transmute_annotations,
                    reason = "the function has the type that the JVMTI function table gives this field"
                )]
                let function = std::mem::transmute::<_, $crate::jvmti::sys::as_int::$name>(function);
                $crate::jvmti::check(function(jvmti.raw() $(, $argument)*))
            }
            None => Err($crate::jvmti::JvmtiError(
                $crate::jvmti::sys::error::NULL_POINTER,
            )),
        }
    }};
}

pub(crate) use call;

pub(crate) mod classes;

impl Environment {
    /// Returns a new environment for JVMTI 11, or JNI's error code. The code is `JNI_EDETACHED` if the JVM is not
    /// initialized yet.
    ///
    /// # Safety
    /// `vm` is a pointer to the running JVM, or null.
    // SAFETY: the JVM gets only a pointer to a local variable, and returns a new environment.
    pub(crate) unsafe fn of(vm: *mut JavaVM) -> std::result::Result<Self, jint> {
        if vm.is_null() {
            return Err(JNI_ERR);
        }
        let mut env: *mut c_void = null_mut();
        // SAFETY: a running JVM has a complete function table; the out parameter is a local pointer.
        let result = unsafe { ((**vm).v1_2.GetEnv)(vm, &raw mut env, VERSION_11) };
        if result != JNI_OK {
            return Err(result);
        }
        // Each call creates a new JVMTI environment, so no other code refers to the environment that this call created.
        let env = NonNull::new(env.cast()).ok_or(JNI_ERR)?;
        Ok(Self(Jvmti(env)))
    }

    /// Creates another environment for the JVM of the current thread.
    pub(crate) fn create_another(env: &Env<'_>) -> Option<Self> {
        let vm = env.vm().ok()?;
        // SAFETY: JNI returned this pointer for the JVM of `env`.
        unsafe { Self::of(vm.as_ptr()) }.ok()
    }

    /// Enables the events that are needed before the program runs. If `at_load` is true, the JVM is not initialized
    /// yet, and the event for the end of its initialization is enabled, too. An agent that is attached during the
    /// initialization must not get this event.
    pub(crate) fn arm(&self, at_load: bool) -> Result<()> {
        let called = CALLED.get().ok_or(JvmtiError(error::NULL_POINTER))?;
        self.set_callbacks(&(called.callbacks)())?;
        self.0.set_event(event::VM_DEATH, true)?;
        self.0.set_event(event::VM_INIT, at_load)
    }

    /// Returns the environment as a [`Jvmti`], although it may still be disposed of.
    ///
    /// # Safety
    /// The result is not used after `self` is dropped.
    // SAFETY: the function only copies a pointer; the contract above makes later use of it sound.
    pub(crate) unsafe fn jvmti(&self) -> Jvmti {
        self.0
    }

    /// Keeps the JVMTI environment until the process ends.
    pub(crate) fn into_permanent(self) -> Jvmti {
        ManuallyDrop::new(self).0
    }

    pub(crate) fn add_capabilities(&self, bits: &[u32]) -> Result<()> {
        let set = capabilities(bits);
        // SAFETY: the pointer is to a complete capability set.
        unsafe { call!(self.0, AddCapabilities, &raw const set) }
    }

    /// True if the JVM has value objects: JDK 28 with preview features.
    pub(crate) fn has_value_objects(&self) -> bool {
        let mut set = jvmtiCapabilities::default();
        // SAFETY: the out parameter is a local capability set. If the call fails, the set stays empty.
        let _ = unsafe { call!(self.0, GetPotentialCapabilities, &raw mut set) };
        has_capability(&set, capability::VALUE_OBJECTS)
    }

    /// Requests the capabilities that sampling needs. If the JVM has value objects, it then also samples value objects.
    pub(crate) fn add_sampling_capabilities(&self) -> Result<()> {
        let mut wanted = vec![
            capability::SAMPLED_OBJECT_ALLOC_EVENTS,
            capability::GARBAGE_COLLECTION_EVENTS,
            capability::SOURCE_FILE_NAME,
            capability::LINE_NUMBERS,
        ];
        if self.has_value_objects() {
            wanted.push(capability::VALUE_OBJECTS);
        }
        self.add_capabilities(&wanted)
    }

    fn set_callbacks(&self, callbacks: &Callbacks) -> Result<()> {
        let size = c_int::try_from(size_of::<Callbacks>()).unwrap_or(0);
        let callbacks = (&raw const *callbacks).cast::<jvmtiEventCallbacks>();
        // SAFETY: the JVM copies `size` bytes, which is the size of the structure.
        unsafe { call!(self.0, SetEventCallbacks, callbacks, size) }
    }

    /// Sets the mean number of bytes between samples, for all threads.
    pub(crate) fn set_interval(&self, bytes: u64) -> Result<()> {
        self.0.set_interval(bytes)
    }

    /// Returns a new environment of the JVM in which this thread runs.
    pub(crate) fn another(env: &Env<'_>) -> calls::Result<Self> {
        let vm = env.vm()?;
        // SAFETY: JNI returned this pointer to the running JVM.
        let made = unsafe { Self::of(vm.as_ptr()) };
        made.map_err(|_| calls::JniError::Unfit("the JVM".to_owned()))
    }

    /// Creates a raw monitor. It is never destroyed, even if the environment is disposed of.
    pub(crate) fn monitor(&self, name: &CStr) -> Result<Monitor> {
        let mut monitor: jrawMonitorID = null_mut();
        // SAFETY: the name is NUL-terminated; the out parameter is a local pointer.
        unsafe { call!(self.0, CreateRawMonitor, name.as_ptr(), &raw mut monitor)? };
        NonNull::new(monitor.cast())
            .map_or(Err(JvmtiError(error::NULL_POINTER)), |m| Ok(Monitor(m)))
    }
}

impl Drop for Environment {
    fn drop(&mut self) {
        // SAFETY: the environment is valid and nobody else has it. An `Environment` cannot be copied or cloned. Only
        // `into_permanent` moves the `Jvmti` out of an `Environment`, and then this `drop` does not run. Callbacks that
        // may be running do not use the environment that the JVM passes to them.
        let _ = unsafe { call!(self.0, DisposeEnvironment) };
    }
}

impl Jvmti {
    /// True if the JVM samples value objects, too.
    pub(crate) fn samples_value_objects(self) -> bool {
        let mut set = jvmtiCapabilities::default();
        // SAFETY: the out parameter is a local capability set. If the call fails, the set stays empty.
        let _ = unsafe { call!(self, GetCapabilities, &raw mut set) };
        has_capability(&set, capability::VALUE_OBJECTS)
    }

    /// Returns the raw pointer to the JVMTI environment.
    pub(crate) fn raw(&self) -> *mut jvmtiEnv {
        self.0.as_ptr()
    }

    pub(crate) fn table(&self) -> &Interface {
        // SAFETY: the environment was created for JVMTI 11 or later, whose table has at least the size of `Interface`.
        // The environment lives as long as the process.
        unsafe { &*(*self.0.as_ptr()).cast::<Interface>() }
    }

    fn set_event(&self, event: c_int, on: bool) -> Result<()> {
        // SAFETY: a null thread means all threads; the JVM checks the number of the event.
        unsafe {
            call!(
                self,
                SetEventNotificationMode,
                c_int::from(on),
                event,
                null_mut()
            )
        }
    }

    /// Enables the event that a thread is about to throw `OutOfMemoryError`.
    pub(crate) fn enable_exhaustion(&self) -> Result<()> {
        let set = capabilities(&[capability::RESOURCE_EXHAUSTION_HEAP_EVENTS]);
        // SAFETY: the pointer is to a complete capability set.
        unsafe { call!(self, AddCapabilities, &raw const set)? };
        self.set_event(event::RESOURCE_EXHAUSTED, true)
    }

    /// Enables the events that occur while the program runs. The event for class loading is enabled only if `classes`
    /// is true.
    pub(crate) fn enable(&self, classes: bool) -> Result<()> {
        self.set_event(event::GARBAGE_COLLECTION_START, true)?;
        self.set_event(event::GARBAGE_COLLECTION_FINISH, true)?;
        self.set_event(event::CLASS_LOAD, classes)?;
        self.set_event(event::SAMPLED_OBJECT_ALLOC, true)
    }

    /// Disables the events that occur while the program runs.
    pub(crate) fn disable(&self) {
        for event in [
            event::SAMPLED_OBJECT_ALLOC,
            event::CLASS_LOAD,
            event::GARBAGE_COLLECTION_START,
            event::GARBAGE_COLLECTION_FINISH,
            event::RESOURCE_EXHAUSTED,
        ] {
            // Disabling an event fails only if it was not enabled, so ignore the error.
            let _ = self.set_event(event, false);
        }
    }

    /// Sets the mean number of bytes between samples, for all threads.
    pub(crate) fn set_interval(&self, bytes: u64) -> Result<()> {
        let bytes = i32::try_from(bytes).unwrap_or(i32::MAX);
        match self.table().set_heap_sampling_interval {
            // SAFETY: the environment is valid.
            Some(set) => check(unsafe { set(self.0.as_ptr(), bytes) }),
            None => Err(JvmtiError(error::NULL_POINTER)),
        }
    }

    /// Reads the innermost frames of the current thread's stack: as many as fit into `buffer`.
    pub(crate) fn stack<'buffer, 'local>(
        &self,
        _: &Env<'local>,
        buffer: &'buffer mut [RawFrame],
    ) -> Result<Stack<'buffer, 'local>> {
        let most = c_int::try_from(buffer.len()).unwrap_or(c_int::MAX);
        let mut count = 0;
        let start = buffer.as_mut_ptr().cast::<jvmtiFrameInfo>();
        // SAFETY: a null thread means the current one. The buffer has room for `most` frames, and `RawFrame` has the
        // layout of the JVM's frames.
        unsafe {
            call!(
                self,
                GetStackTrace,
                null_mut(),
                0,
                most,
                start,
                &raw mut count
            )?
        };
        let count = usize::try_from(count).unwrap_or(0).min(buffer.len());
        Ok(Stack {
            frames: &buffer[..count],
            call: PhantomData,
        })
    }

    /// Returns the class that declares a frame's method.
    pub(crate) fn declaring<'local>(
        &self,
        env: &Env<'local>,
        frame: Frame<'_>,
    ) -> Result<Local<'local, Class>> {
        let method: as_int::MethodId = frame.raw.0.method.cast();
        let mut class = null_mut();
        // SAFETY: the frame's type guarantees that it is on the current thread's stack, so its method is valid.
        unsafe { call!(self, GetMethodDeclaringClass, method, &raw mut class)? };
        // SAFETY: the JVM has just returned this local reference to a class, and nothing else owns it.
        let class = unsafe { Local::<Class>::new(env, class) };
        class.ok_or(JvmtiError(error::NULL_POINTER))
    }

    /// Returns name, source file and lines of a frame's method. `class` is the class that declares the method.
    pub(crate) fn method(&self, class: Ref<'_, Class>, frame: Frame<'_>) -> Result<MethodNames> {
        let method: as_int::MethodId = frame.raw.0.method.cast();
        let mut file = null_mut();
        // SAFETY: the class is valid; the out parameter is a local pointer.
        let has_file = unsafe { call!(self, GetSourceFileName, class.raw(), &raw mut file) };
        // SAFETY: the JVM has just returned the string, or it is null.
        let file = has_file.ok().and_then(|()| unsafe { self.text(file) });
        let mut name = null_mut();
        // SAFETY: the frame is on the current thread's stack, so its method is valid. The two signatures are not
        // requested.
        unsafe {
            call!(
                self,
                GetMethodName,
                method,
                &raw mut name,
                null_mut(),
                null_mut()
            )?
        };
        // SAFETY: the JVM has just returned the string.
        let name = unsafe { self.text(name) };
        Ok(MethodNames {
            name: name.unwrap_or_default(),
            file,
            // SAFETY: the frame is on the current thread's stack, so its method is valid.
            lines: unsafe { self.lines(method) },
        })
    }

    /// Returns a method's line table, sorted by bytecode index.
    ///
    /// # Safety
    /// The method's class is loaded.
    // SAFETY: JVMTI gets only the valid method and pointers to local variables.
    pub(crate) unsafe fn lines(&self, method: as_int::MethodId) -> Box<[(i64, i32)]> {
        let (mut count, mut entries) = (0, null_mut());
        // SAFETY: the caller guarantees a valid method; the out parameters are a local int and a local pointer.
        let result = unsafe {
            call!(
                self,
                GetLineNumberTable,
                method,
                &raw mut count,
                &raw mut entries
            )
        };
        // Native methods and classes compiled without line numbers have no table.
        if result.is_err() || entries.is_null() {
            return Box::default();
        }
        let count = usize::try_from(count).unwrap_or(0);
        // SAFETY: the JVM returned a table of `count` entries, which we own until it is deallocated below.
        let table = unsafe { std::slice::from_raw_parts(entries, count) };
        let mut lines: Vec<(i64, i32)> = table
            .iter()
            .map(|entry| (entry.start_location, entry.line_number))
            .collect();
        // SAFETY: the JVM allocated the table for us; nothing refers to it any more.
        unsafe { self.deallocate(entries.cast()) };
        lines.sort_unstable();
        lines.into()
    }

    /// Returns a class's signature, such as `[Lcom/acme/Foo;`.
    pub(crate) fn class_signature(&self, class: Ref<'_, Class>) -> Result<String> {
        let mut text = null_mut();
        // SAFETY: the reference is to a class object; the generic signature is not requested.
        unsafe {
            call!(
                self,
                GetClassSignature,
                class.raw(),
                &raw mut text,
                null_mut()
            )?
        };
        // SAFETY: the JVM has just returned the string.
        Ok(unsafe { self.text(text) }.unwrap_or_default())
    }

    /// True if the boot loader defined the class.
    pub(crate) fn is_boot(&self, env: &Env<'_>, class: Ref<'_, Class>) -> bool {
        let mut loader = null_mut();
        // SAFETY: the reference is to a class object; the out parameter is a local pointer.
        let asked = unsafe { call!(self, GetClassLoader, class.raw(), &raw mut loader) };
        let boot = asked.is_ok() && loader.is_null();
        // SAFETY: the JVM has just returned this local reference and nothing else owns it, or it is null.
        drop(unsafe { Local::<Any>::new(env, loader) });
        boot
    }

    /// Returns a thread's name, or `None` if the thread has no name.
    pub(crate) fn thread_name(&self, env: &Env<'_>, thread: Ref<'_>) -> Option<String> {
        let mut info = jvmtiThreadInfo {
            name: null_mut(),
            priority: 0,
            is_daemon: 0,
            thread_group: null_mut(),
            context_class_loader: null_mut(),
        };
        // SAFETY: the reference is to a thread; the pointer is to a complete record.
        unsafe { call!(self, GetThreadInfo, thread.raw(), &raw mut info).ok()? };
        for reference in [info.thread_group, info.context_class_loader] {
            // SAFETY: the JVM has just returned these local references and nothing else owns them, or they are null.
            drop(unsafe { Local::<Any>::new(env, reference) });
        }
        // SAFETY: the JVM has just returned the string.
        unsafe { self.text(info.name) }
    }

    /// Copies a string that the JVM allocated, and frees the original.
    ///
    /// # Safety
    /// The string is null, or it comes from a JVM function and the caller does not use it any more.
    // SAFETY: the string is read before it is freed, and freed once.
    pub(crate) unsafe fn text(&self, text: *mut c_char) -> Option<String> {
        if text.is_null() {
            return None;
        }
        // SAFETY: the caller guarantees that the string is from the JVM, whose strings are NUL-terminated modified
        // UTF-8.
        let owned = modified_utf8(unsafe { CStr::from_ptr(text) }.to_bytes());
        // SAFETY: the caller upholds the `# Safety` contract.
        unsafe { self.deallocate(text.cast()) };
        Some(owned)
    }

    /// Frees memory that the JVM allocated.
    ///
    /// # Safety
    /// The memory comes from a JVM function, and the caller does not use it any more.
    // SAFETY: the memory is freed once, as the contract above allows.
    pub(crate) unsafe fn deallocate(&self, memory: *mut u8) {
        // SAFETY: the caller upholds the `# Safety` contract. Then the call cannot fail.
        let _ = unsafe { call!(self, Deallocate, memory) };
    }

    /// Requests a full GC.
    pub(crate) fn collect_garbage(&self) -> Result<()> {
        // SAFETY: the function takes no arguments, and the environment is valid.
        unsafe { call!(self, ForceGarbageCollection) }
    }

    /// Runs `change` while holding the monitor, and wakes the threads that wait for it.
    pub(crate) fn notify(&self, monitor: Monitor, change: impl FnOnce()) {
        let raw: jrawMonitorID = monitor.0.as_ptr().cast();
        // SAFETY: the monitor is never destroyed; this thread enters and leaves it.
        unsafe {
            if call!(self, RawMonitorEnter, raw).is_ok() {
                change();
                let _ = call!(self, RawMonitorNotifyAll, raw);
                let _ = call!(self, RawMonitorExit, raw);
            }
        }
    }

    /// Waits until another thread calls [`Self::notify`], but at most `millis` milliseconds. Returns at once if `ready`
    /// returns true.
    pub(crate) fn wait(
        &self,
        monitor: Monitor,
        millis: u64,
        ready: impl FnOnce() -> bool,
    ) -> Result<()> {
        let raw: jrawMonitorID = monitor.0.as_ptr().cast();
        let millis = i64::try_from(millis).unwrap_or(i64::MAX);
        // SAFETY: the monitor is never destroyed; this thread enters and leaves it.
        unsafe {
            call!(self, RawMonitorEnter, raw)?;
            let waited = if ready() {
                Ok(())
            } else {
                call!(self, RawMonitorWait, raw, millis)
            };
            call!(self, RawMonitorExit, raw)?;
            waited
        }
    }

    /// Runs a thread of the agent on a `java.lang.Thread` that has not been started. `place` is passed to the function
    /// that the thread runs.
    pub(crate) fn run_thread(&self, thread: Ref<'_>, which: Thread, place: usize) -> Result<()> {
        const NORMAL: c_int = 5;
        let called = CALLED.get().ok_or(JvmtiError(error::NULL_POINTER))?;
        let body = (called.thread)(which);
        // SAFETY: the thread object is new. The function lives as long as the library, which the JVM does not unload.
        // The argument is a number that is never dereferenced.
        unsafe {
            call!(
                self,
                RunAgentThread,
                thread.raw(),
                Some(body),
                without_provenance(place),
                NORMAL
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::modified_utf8;

    #[test]
    fn modified_utf8_is_decoded() {
        assert_eq!(
            modified_utf8("Größe.täglich €".as_bytes()),
            "Größe.täglich €"
        );
        assert_eq!(modified_utf8(b"a\xc0\x80b"), "a\0b");
        let face = b"\xed\xa0\xbd\xed\xb8\x80!";
        assert_eq!(modified_utf8(face), "\u{1f600}!");
        assert_eq!(modified_utf8(b"\xed\xa0\xbd"), "\u{fffd}");
        assert_eq!(modified_utf8(b"\xff\xe2\x82"), "\u{fffd}\u{fffd}\u{fffd}");
    }
}
