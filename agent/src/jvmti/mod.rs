//! JVMTI and JNI: the bottom of the agent. It imports nothing of the agent's other modules.
//!
//! [`Environment`] and [`Jvmti`] wrap the functions of JVMTI, `calls` those of JNI, and `classes` and `versions` what
//! concerns class files and classes. What only one feature needs is in the feature's folder. `entry`, which has what the JVM
//! calls, hands over its functions as [`Called`]. What a call needs to be sound is in the types: a
//! [`Jvmti`] exists only of an environment that is never disposed of, a [`Frame`] only while it is on the
//! stack.

pub(crate) mod calls;
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
use jvmti_sys::{jrawMonitorID, jvmtiEnv, jvmtiEventCallbacks, jvmtiFrameInfo, jvmtiThreadInfo};

use calls::{Any, Class, Env, Local, Ref};
use sys::{Callbacks, Interface, VERSION_11, as_int, capabilities, error, event};

/// A JVMTI environment that is being set up.
///
/// It cannot be copied. Dropping it gives it back to the JVM with all its capabilities; [`Self::keep`]
/// makes it the agent's for as long as the process lives.
#[derive(Debug)]
pub(crate) struct Environment(Jvmti);

/// A JVMTI environment, for as long as the process lives: the agent never disposes of it.
///
/// Outside of this module it comes from [`Environment::keep`] alone, or from `Environment::jvmti` with a promise.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Jvmti(NonNull<jvmtiEnv>);

// SAFETY: a JVMTI environment belongs to no thread; any attached thread may use it.
unsafe impl Send for Jvmti {}
// SAFETY: as above; the JVM does the locking.
unsafe impl Sync for Jvmti {}

/// A JVMTI error, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("JVMTI error {0}")]
pub(crate) struct JvmtiError(pub(crate) c_int);

pub(crate) type Result<T> = std::result::Result<T, JvmtiError>;

/// Functions that the JVM calls.
pub(crate) struct Called {
    /// The callbacks of the environment that samples.
    pub(crate) callbacks: fn() -> Callbacks,
    /// The bodies of the agent's threads.
    pub(crate) thread: fn(Thread) -> as_int::AgentThread,
    /// Counts a panic within a callback.
    pub(crate) fault: fn(),
}

/// Set before the agent does anything else.
static CALLED: OnceLock<Called> = OnceLock::new();

/// Sets what the JVM calls. Only the first call has an effect.
pub(crate) fn set_called(called: Called) {
    let _ = CALLED.set(called);
}

/// Something went wrong in a callback.
fn fault() {
    if let Some(called) = CALLED.get() {
        (called.fault)();
    }
}

/// A text as the JVM writes it: its characters beyond 16 bits are two of three bytes each, and zero is two bytes.
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

/// A frame as the JVM writes it into a buffer: two numbers. The method may be gone since; what asks the JVM
/// about a method takes a [`Frame`].
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

    /// A frame of no method.
    #[cfg(test)]
    pub(crate) fn of(method: usize, location: i64) -> Self {
        Self(jvmtiFrameInfo {
            method: std::ptr::without_provenance_mut(method),
            location,
        })
    }

    /// The method's id. The JVM gives no id to a second method, even after the first's class is unloaded.
    pub(crate) fn method(&self) -> usize {
        self.0.method.addr()
    }

    /// The index of the bytecode; negative for native methods.
    pub(crate) fn location(&self) -> i64 {
        self.0.location
    }
}

/// The frames of the current thread's stack, leaf first, as [`Jvmti::stack`] wrote them into a buffer.
///
/// `'local` is the lifetime of a native call, as in [`Env`]. Until that call returns its callers stay on the
/// stack, so that their methods are valid. The raw pointers within keep it on its thread.
#[derive(Clone, Copy)]
pub(crate) struct Stack<'buffer, 'local> {
    frames: &'buffer [RawFrame],
    call: PhantomData<&'local ()>,
}

/// A frame that is on the current thread's stack until the native call `'local` returns. Its method is valid:
/// no class is unloaded while one of its methods is on a stack.
#[derive(Clone, Copy)]
pub(crate) struct Frame<'local> {
    raw: RawFrame,
    call: PhantomData<&'local ()>,
}

impl<'buffer, 'local> Stack<'buffer, 'local> {
    /// The frames as numbers.
    pub(crate) fn raw(&self) -> &'buffer [RawFrame] {
        self.frames
    }

    /// The first frames, so many at most.
    pub(crate) fn top(self, most: usize) -> Self {
        Self {
            frames: &self.frames[..self.frames.len().min(most)],
            ..self
        }
    }

    /// The frames, leaf first.
    pub(crate) fn frames(&self) -> impl Iterator<Item = Frame<'local>> + use<'buffer, 'local> {
        self.frames.iter().map(|&raw| Frame {
            raw,
            call: PhantomData,
        })
    }
}

impl Frame<'_> {
    /// The frame as numbers.
    pub(crate) fn raw(&self) -> RawFrame {
        self.raw
    }
}

/// What a method's id stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MethodNames {
    pub(crate) name: String,
    pub(crate) file: Option<String>,
    /// First bytecode and line, by first bytecode.
    pub(crate) lines: Box<[(i64, i32)]>,
}

/// The agent's threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Thread {
    /// The one that looks for collected samples.
    Agent,
    /// The one that writes the trace.
    Trace,
    /// The one that ends a count which nobody ends.
    Count,
}

/// A raw monitor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Monitor(NonNull<c_void>);

// SAFETY: a raw monitor is made for use from several threads.
unsafe impl Send for Monitor {}
// SAFETY: as above.
unsafe impl Sync for Monitor {}

/// Casts an entry of the function table to a type with integers in place of enums and calls it.
macro_rules! call {
    ($jvmti:expr, $name:ident $(, $argument:expr)*) => {{
        let jvmti: &$crate::jvmti::Jvmti = &$jvmti;
        match jvmti.table().base.$name {
            // SAFETY: the two types differ in C enums against `int`, which are the same to the
            // C ABI, and in the constness of pointers. The arguments are what the
            // function's specification asks for, as the caller's comment says.
            Some(function) => {
                #[allow(
                    clippy::missing_transmute_annotations,
                    reason = "the source type is the type of this field in the JVMTI function table"
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
    /// An environment for JVMTI 11; else the JVM's answer, which is `JNI_EDETACHED` of a JVM that is not up.
    ///
    /// # Safety
    /// `vm` is the JVM that called, or null.
    // SAFETY: sound under the `# Safety` contract above; each unsafe block below gives its argument.
    pub(crate) unsafe fn of(vm: *mut JavaVM) -> std::result::Result<Self, jint> {
        if vm.is_null() {
            return Err(JNI_ERR);
        }
        let mut env: *mut c_void = null_mut();
        // SAFETY: the JVM that called has a full table; the out parameter is a local pointer.
        let result = unsafe { ((**vm).v1_2.GetEnv)(vm, &raw mut env, VERSION_11) };
        if result != JNI_OK {
            return Err(result);
        }
        // The JVM makes a new one with each call, so that this is the only one that refers to it.
        let env = NonNull::new(env.cast()).ok_or(JNI_ERR)?;
        Ok(Self(Jvmti(env)))
    }

    /// A new one of the JVM that a thread belongs to.
    pub(crate) fn another(env: &Env<'_>) -> Option<Self> {
        let vm = env.vm().ok()?;
        // SAFETY: JNI returned this pointer for the JVM of `env`.
        unsafe { Self::of(vm.as_ptr()) }.ok()
    }

    /// Enables the events that are needed before the program runs. With `at_load`, the JVM has not started yet, so it
    /// reports the end of its start, too. An agent that is attached during a start must not get this event.
    pub(crate) fn arm(&self, at_load: bool) -> Result<()> {
        let called = CALLED.get().ok_or(JvmtiError(error::NULL_POINTER))?;
        self.set_callbacks(&(called.callbacks)())?;
        self.0.set_event(event::VM_DEATH, true)?;
        self.0.set_event(event::VM_INIT, at_load)
    }

    /// The environment, while it is not kept.
    ///
    /// # Safety
    /// The result is not used after the environment is given back.
    // SAFETY: the caller's promise is all that it needs.
    pub(crate) unsafe fn jvmti(&self) -> Jvmti {
        self.0
    }

    /// Keeps the environment for as long as the process lives.
    pub(crate) fn keep(self) -> Jvmti {
        ManuallyDrop::new(self).0
    }

    pub(crate) fn add_capabilities(&self, bits: &[u32]) -> Result<()> {
        let set = capabilities(bits);
        // SAFETY: the pointer is to a full set.
        unsafe { call!(self.0, AddCapabilities, &raw const set) }
    }

    fn set_callbacks(&self, callbacks: &Callbacks) -> Result<()> {
        let size = c_int::try_from(size_of::<Callbacks>()).unwrap_or(0);
        let callbacks = (&raw const *callbacks).cast::<jvmtiEventCallbacks>();
        // SAFETY: the JVM copies as many bytes as are told, all of which are there.
        unsafe { call!(self.0, SetEventCallbacks, callbacks, size) }
    }

    /// The mean bytes between samples, for all threads.
    pub(crate) fn set_interval(&self, bytes: u64) -> Result<()> {
        self.0.set_interval(bytes)
    }

    /// Makes a raw monitor. It is never destroyed, not even with the environment.
    pub(crate) fn monitor(&self, name: &CStr) -> Result<Monitor> {
        let mut monitor: jrawMonitorID = null_mut();
        // SAFETY: the name ends with a zero byte, the out parameter is a local pointer.
        unsafe { call!(self.0, CreateRawMonitor, name.as_ptr(), &raw mut monitor)? };
        NonNull::new(monitor.cast())
            .map_or(Err(JvmtiError(error::NULL_POINTER)), |m| Ok(Monitor(m)))
    }
}

impl Drop for Environment {
    fn drop(&mut self) {
        // SAFETY: the environment is valid, and nobody else has it: an `Environment` is neither copied nor
        // cloned, and its `Jvmti` leaves it in `keep` alone, which drops nothing. Callbacks that may be running
        // do not use the environment that the JVM hands to them.
        let _ = unsafe { call!(self.0, DisposeEnvironment) };
    }
}

impl Jvmti {
    /// The environment as the JVM knows it.
    pub(crate) fn raw(&self) -> *mut jvmtiEnv {
        self.0.as_ptr()
    }

    pub(crate) fn table(&self) -> &Interface {
        // SAFETY: the environment was made for version 11 or later, whose table is as long as
        // `Interface`; it lives as long as the process.
        unsafe { &*(*self.0.as_ptr()).cast::<Interface>() }
    }

    fn set_event(&self, event: c_int, on: bool) -> Result<()> {
        // SAFETY: no thread means all; numbers of events are checked by the JVM.
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

    /// Turns on all that comes while the program runs; class definitions if asked.
    pub(crate) fn enable(&self, classes: bool) -> Result<()> {
        self.set_event(event::GARBAGE_COLLECTION_START, true)?;
        self.set_event(event::GARBAGE_COLLECTION_FINISH, true)?;
        self.set_event(event::CLASS_LOAD, classes)?;
        self.set_event(event::SAMPLED_OBJECT_ALLOC, true)
    }

    /// Turns off all that comes while the program runs.
    pub(crate) fn disable(&self) {
        for event in [
            event::SAMPLED_OBJECT_ALLOC,
            event::CLASS_LOAD,
            event::GARBAGE_COLLECTION_START,
            event::GARBAGE_COLLECTION_FINISH,
        ] {
            // An event that fails was not on.
            let _ = self.set_event(event, false);
        }
    }

    /// The mean bytes between samples, for all threads.
    pub(crate) fn set_interval(&self, bytes: u64) -> Result<()> {
        let bytes = i32::try_from(bytes).unwrap_or(i32::MAX);
        match self.table().set_heap_sampling_interval {
            // SAFETY: the environment is valid.
            Some(set) => check(unsafe { set(self.0.as_ptr(), bytes) }),
            None => Err(JvmtiError(error::NULL_POINTER)),
        }
    }

    /// The current thread's stack, as much of it as the buffer has room for.
    pub(crate) fn stack<'buffer, 'local>(
        &self,
        _: &Env<'local>,
        buffer: &'buffer mut [RawFrame],
    ) -> Result<Stack<'buffer, 'local>> {
        let most = c_int::try_from(buffer.len()).unwrap_or(c_int::MAX);
        let mut count = 0;
        let start = buffer.as_mut_ptr().cast::<jvmtiFrameInfo>();
        // SAFETY: no thread means the current one; the buffer has room for as many frames as told,
        // and `RawFrame` has their layout.
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

    /// The class of a frame's method.
    pub(crate) fn declaring<'local>(
        &self,
        env: &Env<'local>,
        frame: Frame<'_>,
    ) -> Result<Local<'local, Class>> {
        let method: as_int::MethodId = frame.raw.0.method.cast();
        let mut class = null_mut();
        // SAFETY: the frame is on the current thread's stack, as its type says, so its method is valid.
        unsafe { call!(self, GetMethodDeclaringClass, method, &raw mut class)? };
        // SAFETY: a local reference to a class, fresh from the JVM and owned by nobody else.
        let class = unsafe { Local::<Class>::new(env, class) };
        class.ok_or(JvmtiError(error::NULL_POINTER))
    }

    /// Names and lines of a frame's method, which is of this class.
    pub(crate) fn method(&self, class: Ref<'_, Class>, frame: Frame<'_>) -> Result<MethodNames> {
        let method: as_int::MethodId = frame.raw.0.method.cast();
        let mut file = null_mut();
        // SAFETY: the class is valid, the out parameter is a local pointer.
        let has_file = unsafe { call!(self, GetSourceFileName, class.raw(), &raw mut file) };
        // SAFETY: what the JVM has just given; null where it gave nothing.
        let file = has_file.ok().and_then(|()| unsafe { self.text(file) });
        let mut name = null_mut();
        // SAFETY: the frame is on the current thread's stack, so its method is valid; signature and generic signature are not asked for.
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
        // SAFETY: what the JVM has just given.
        let name = unsafe { self.text(name) };
        Ok(MethodNames {
            name: name.unwrap_or_default(),
            file,
            // SAFETY: as above, the method is valid.
            lines: unsafe { self.lines(method) },
        })
    }

    /// # Safety
    /// The method's class is loaded.
    // SAFETY: sound under the `# Safety` contract above; each unsafe block below gives its argument.
    pub(crate) unsafe fn lines(&self, method: as_int::MethodId) -> Box<[(i64, i32)]> {
        let (mut count, mut entries) = (0, null_mut());
        // SAFETY: the method is valid: the caller upholds the `# Safety` contract; the out parameters are a local int and a local pointer.
        let result = unsafe {
            call!(
                self,
                GetLineNumberTable,
                method,
                &raw mut count,
                &raw mut entries
            )
        };
        // Native methods and classes compiled without lines have no table.
        if result.is_err() || entries.is_null() {
            return Box::default();
        }
        let count = usize::try_from(count).unwrap_or(0);
        // SAFETY: the JVM gave a table of so many entries, ours until it is given back below.
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

    /// A class's signature, such as `[Lcom/acme/Foo;`.
    pub(crate) fn class_signature(&self, class: Ref<'_, Class>) -> Result<String> {
        let mut text = null_mut();
        // SAFETY: a reference to a class object; the generic signature is not asked for.
        unsafe {
            call!(
                self,
                GetClassSignature,
                class.raw(),
                &raw mut text,
                null_mut()
            )?
        };
        // SAFETY: what the JVM has just given.
        Ok(unsafe { self.text(text) }.unwrap_or_default())
    }

    /// Whether the boot loader defined a class.
    pub(crate) fn is_boot(&self, env: &Env<'_>, class: Ref<'_, Class>) -> bool {
        let mut loader = null_mut();
        // SAFETY: a reference to a class object; the out parameter is a local pointer.
        let asked = unsafe { call!(self, GetClassLoader, class.raw(), &raw mut loader) };
        let boot = asked.is_ok() && loader.is_null();
        // SAFETY: a local reference, fresh from the JVM and owned by nobody else, or null.
        drop(unsafe { Local::<Any>::new(env, loader) });
        boot
    }

    /// A thread's name; `None` if it has none.
    pub(crate) fn thread_name(&self, env: &Env<'_>, thread: Ref<'_>) -> Option<String> {
        let mut info = jvmtiThreadInfo {
            name: null_mut(),
            priority: 0,
            is_daemon: 0,
            thread_group: null_mut(),
            context_class_loader: null_mut(),
        };
        // SAFETY: a reference to a thread; the pointer is to a full record.
        unsafe { call!(self, GetThreadInfo, thread.raw(), &raw mut info).ok()? };
        for reference in [info.thread_group, info.context_class_loader] {
            // SAFETY: local references, fresh from the JVM and owned by nobody else, or null.
            drop(unsafe { Local::<Any>::new(env, reference) });
        }
        // SAFETY: what the JVM has just given.
        unsafe { self.text(info.name) }
    }

    /// Takes over a text that the JVM allocated.
    ///
    /// # Safety
    /// The text is null, or the JVM has given it to the caller, who does not use it any more.
    // SAFETY: sound under the `# Safety` contract above; each unsafe block below gives its argument.
    pub(crate) unsafe fn text(&self, text: *mut c_char) -> Option<String> {
        if text.is_null() {
            return None;
        }
        // SAFETY: the caller guarantees that the JVM's; it ends its texts, which are modified UTF-8, with a zero byte.
        let owned = modified_utf8(unsafe { CStr::from_ptr(text) }.to_bytes());
        // SAFETY: the caller upholds the `# Safety` contract.
        unsafe { self.deallocate(text.cast()) };
        Some(owned)
    }

    /// Gives back memory that the JVM allocated.
    ///
    /// # Safety
    /// The JVM has given the memory to the caller, who does not use it any more.
    // SAFETY: sound under the `# Safety` contract above; each unsafe block below gives its argument.
    pub(crate) unsafe fn deallocate(&self, memory: *mut u8) {
        // SAFETY: the caller upholds the `# Safety` contract. It cannot fail then.
        let _ = unsafe { call!(self, Deallocate, memory) };
    }

    /// Has the JVM collect garbage, all of it.
    pub(crate) fn collect_garbage(&self) -> Result<()> {
        // SAFETY: it takes no arguments; the environment is valid.
        unsafe { call!(self, ForceGarbageCollection) }
    }

    /// Makes `change` and wakes the threads that wait at the monitor.
    pub(crate) fn notify(&self, monitor: Monitor, change: impl FnOnce()) {
        let raw: jrawMonitorID = monitor.0.as_ptr().cast();
        // SAFETY: the monitor is never destroyed; it is entered and left by this thread.
        unsafe {
            if call!(self, RawMonitorEnter, raw).is_ok() {
                change();
                let _ = call!(self, RawMonitorNotifyAll, raw);
                let _ = call!(self, RawMonitorExit, raw);
            }
        }
    }

    /// Waits until notified or for so long, unless `ready` says that it need not.
    pub(crate) fn wait(
        &self,
        monitor: Monitor,
        millis: u64,
        ready: impl FnOnce() -> bool,
    ) -> Result<()> {
        let raw: jrawMonitorID = monitor.0.as_ptr().cast();
        let millis = i64::try_from(millis).unwrap_or(i64::MAX);
        // SAFETY: as above.
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

    /// Starts a thread of the agent at `place` on a `java.lang.Thread` that has not been started.
    pub(crate) fn run_thread(&self, thread: Ref<'_>, which: Thread, place: usize) -> Result<()> {
        const NORMAL: c_int = 5;
        let called = CALLED.get().ok_or(JvmtiError(error::NULL_POINTER))?;
        let body = (called.thread)(which);
        // SAFETY: a new thread object; the function lives as long as the library, which the JVM
        // does not unload; its argument is a number, which nobody reads through.
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
    fn texts_of_the_jvm() {
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
