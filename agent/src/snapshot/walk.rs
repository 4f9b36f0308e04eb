//! The heap walk that forks. `FollowReferences` calls back while all Java threads are stopped at a safepoint. The first
//! callback forks a child. The parent aborts its walk at once; the child continues to walk its copy of the memory and
//! writes the dump.
//!
//! # Restrictions of the child
//!
//! The child has a copy of the JVM's memory, but only one of its threads: the one that walks. So the child must not
//! wait for anything that another thread would have to do.
//!
//! - `malloc` is safe: `fork` takes the locks of `malloc` before it copies the memory, so they are free in the child.
//! - The JVM's tag table is safe: only the walk uses it during a safepoint.
//! - A lock that a compiler thread held at the fork blocks the child forever. One example is the lock of the memory
//!   used for stack walking. The parent's watch detects the endless wait, kills the child and forks again.
//!
//! # How the end of the walk is detected
//!
//! When the walk is over, the child's thread returns into the code of the JVM, which waits for work that never comes.
//! So the child cannot detect the end of the walk, but the parent can. During the walk, the child sleeps only inside
//! callbacks, when it writes. The walk is therefore over if three conditions are true: the kernel reports that the
//! child sleeps, the child is not in a callback, and all objects that were seen have been visited. The parent then
//! sends a signal to the child. The signal handler writes the end of the dump.
//!
//! Some dumps outlive the JVM ([`Completion`]). A child that writes such a dump gets a signal when the JVM ends. From
//! then on, a timer interrupts the child, and the child checks these conditions itself. The child does not sleep during
//! a check. So instead of its state in the kernel, it uses the number of times that it has gone to sleep: an idle child
//! sleeps again after each interruption.

mod signals;

use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::time::{Duration, Instant};

use jni_sys::{jint, jlong, jvalue};

pub(crate) use self::signals::Completion;
use self::signals::{check_end, finish, orphaned};
use super::values::{self, ValueObject};
use super::{Image, Kind, Progress, Reference, Tally, Target, Writer};
use crate::jvmti::sys::{VERSION_17, error};
use crate::jvmti::{Environment, JvmtiError, Result, call};

const VISIT_OBJECTS: jint = 0x100;
const VISIT_ABORT: jint = 0x8000;
/// Maximum run time in seconds of a child. It does not apply to a child that continues to write its dump if the JVM
/// ends ([`Completion`]).
const LONGEST: u32 = 4 * 3600;
/// Maximum time to wait for a killed child to end.
const DYING: Duration = Duration::from_secs(5);
/// Exit codes of the child.
pub(crate) mod end {
    pub(crate) const DONE: i32 = 0;
    pub(crate) const FAILED: i32 = 70;
    pub(crate) const NO_SPACE: i32 = 71;
    pub(crate) const PANICKED: i32 = 72;
    /// HotSpot describes value objects in a way that the agent does not know.
    pub(crate) const VALUES: i32 = 73;
}

/// The child's progress, in memory shared with the parent.
#[repr(C)]
struct Shared {
    callbacks: AtomicU64,
    seen: AtomicU64,
    visited: AtomicU64,
    late: AtomicU64,
    cut: AtomicU64,
    sent: AtomicBool,
    busy: AtomicBool,
    /// True if the file is complete.
    done: AtomicBool,
}

/// The shared memory page that holds a [`Shared`].
struct Page(NonNull<Shared>);

impl Page {
    fn new() -> Option<Self> {
        // SAFETY: this creates a new anonymous mapping. Zeroed memory is a valid `Shared`.
        let page = unsafe {
            libc::mmap(
                null_mut(),
                size_of::<Shared>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if page == libc::MAP_FAILED {
            return None;
        }
        NonNull::new(page.cast()).map(Self)
    }

    fn shared(&self) -> &Shared {
        // SAFETY: the mapping is large enough for a `Shared` and lives as long as `self`.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // SAFETY: `self` owns the mapping, and nothing refers to it any more.
        let _ = unsafe { libc::munmap(self.0.as_ptr().cast(), size_of::<Shared>()) };
    }
}

/// State of the heap walk. The parent uses it until the fork. After the fork, the child uses its copy.
struct Walk {
    writer: Writer<Target>,
    page: Page,
    file: c_int,
    /// Start address and length of each shared mapping of a file to which the JVM writes. The child replaces these
    /// mappings with private copies.
    shared: Vec<(usize, usize)>,
    /// True if the JVM has value objects.
    has_values: bool,
    /// The child's last step, if the child continues to write the dump when the JVM ends. Otherwise `None`.
    completion: Option<Completion>,
    in_child: bool,
    /// Process id of the child, or the error number of the failed fork.
    forked: Option<std::result::Result<c_int, c_int>>,
}

/// The heap walk of this process if this process is the child, otherwise null. The signal handler uses this pointer
/// when it writes the end of the dump.
static CHILD: AtomicPtr<Walk> = AtomicPtr::new(null_mut());

/// A child process that walks the heap.
pub(crate) struct Child {
    pid: c_int,
    page: Page,
    ended: Option<i32>,
}

/// The reason why no child was forked.
#[derive(Debug, Clone, Copy)]
pub(crate) enum NoChild {
    /// Error number of the failed system call.
    Fork(c_int),
    Jvm(JvmtiError),
}

#[repr(C)]
struct Callbacks {
    heap_iteration: Option<unsafe extern "C" fn()>,
    heap_reference: Option<OnReference>,
    primitive_field: Option<OnPrimitive>,
    array_primitive_value: Option<OnArray>,
    string_primitive_value: Option<unsafe extern "C" fn()>,
    reserved: [Option<unsafe extern "C" fn()>; 11],
}

/// Details of a reference: the index of a field or array element, or the stack frame that holds the reference.
#[repr(C)]
union Info {
    index: jint,
    stack: StackInfo,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct StackInfo {
    thread_tag: jlong,
    thread_id: jlong,
    depth: jint,
    method: *const c_void,
    /// Bytecode index in the frame's method. Valid only for Java local variables.
    location: jlong,
}

// SAFETY: these are only function types. Only the JVM calls the functions that have them.
type OnReference = unsafe extern "C" fn(
    jint,
    *const Info,
    jlong,
    jlong,
    jlong,
    *mut jlong,
    *mut jlong,
    jint,
    *mut c_void,
) -> jint;
// SAFETY: this is only a function type. Only the JVM calls the functions that have it.
type OnPrimitive =
    unsafe extern "C" fn(jint, *const Info, jlong, *mut jlong, jvalue, jint, *mut c_void) -> jint;
// SAFETY: this is only a function type. Only the JVM calls the functions that have it.
type OnArray =
    unsafe extern "C" fn(jlong, jlong, *mut jlong, jint, jint, *const c_void, *mut c_void) -> jint;

impl Environment {
    /// True if the heap walk marks visited objects in their headers. Since JDK 17 the JVM uses a separate bitmap.
    pub(crate) fn marks_objects(&self) -> bool {
        let mut version = 0;
        // SAFETY: the out parameter is a local int. If the call fails, the version stays 0.
        let _ = unsafe { call!(self.jvmti(), GetVersionNumber, &raw mut version) };
        version < VERSION_17
    }

    /// Forks at a safepoint. The caller has already written the start of the dump; the child writes the remaining part.
    /// Also returns `image` and `target`, so that another attempt can use them.
    ///
    /// `shared` lists mappings of files that the child must replace with private copies.
    pub(crate) fn fork(
        &self,
        image: Image,
        target: Target,
        shared: Vec<(usize, usize)>,
        completion: Option<&Completion>,
    ) -> std::result::Result<(Child, Image, Target), NoChild> {
        let page = Page::new().ok_or(NoChild::Fork(libc::ENOMEM))?;
        let mut walk = Box::new(Walk {
            file: target.descriptor(),
            writer: Writer::new(image, target),
            page,
            shared,
            has_values: self.has_value_objects(),
            completion: completion.cloned(),
            in_child: false,
            forked: None,
        });
        let callbacks = Callbacks {
            heap_iteration: None,
            heap_reference: Some(on_reference),
            primitive_field: Some(on_primitive),
            array_primitive_value: Some(on_array),
            string_primitive_value: None,
            reserved: [None; 11],
        };
        // SAFETY: without a filter, class and start object, the call walks all reachable objects. `Callbacks` has the
        // layout that JVMTI defines. The callbacks receive the walk, which outlives the call and is not used elsewhere
        // during it.
        let walked: Result<()> = unsafe {
            call!(
                self.jvmti(),
                FollowReferences,
                0,
                null_mut(),
                null_mut(),
                (&raw const callbacks).cast(),
                (&raw mut *walk).cast()
            )
        };
        match (walked, walk.forked) {
            (_, Some(Ok(pid))) => {
                let Walk { writer, page, .. } = *walk;
                let (image, target) = writer.into_parts();
                let ended = None;
                Ok((Child { pid, page, ended }, image, target))
            }
            (_, Some(Err(code))) => Err(NoChild::Fork(code)),
            (Err(failed), None) => Err(NoChild::Jvm(failed)),
            (Ok(()), None) => Err(NoChild::Jvm(JvmtiError(error::NULL_POINTER))),
        }
    }
}

impl Walk {
    /// Forks the child, in the first callback.
    fn fork(&mut self) {
        if self.forked.is_some() {
            return;
        }
        // SAFETY: both calls take no arguments. The module's documentation explains what the child may do after the
        // fork.
        let (parent, pid) = unsafe { (libc::getpid(), libc::fork()) };
        if pid == 0 {
            self.in_child = true;
            self.detach_from_jvm(parent);
            return;
        }
        self.forked = Some(match pid {
            -1 => Err(std::io::Error::last_os_error().raw_os_error().unwrap_or(0)),
            pid => Ok(pid),
        });
    }

    /// Detaches the child from everything that it shares with the JVM: signal handlers, open files and shared mappings.
    fn detach_from_jvm(&mut self, parent: c_int) {
        CHILD.store(&raw mut *self, Release);
        let outlives = self.completion.is_some();
        // SAFETY: these are system calls with numbers and with pointers to local variables and constants. The signal
        // handlers are functions that take an int.
        unsafe {
            if !outlives {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                if libc::getppid() != parent {
                    libc::_exit(end::FAILED);
                }
            }
            for signal in 1..=64 {
                libc::signal(signal, libc::SIG_DFL);
            }
            libc::signal(libc::SIGPIPE, libc::SIG_IGN);
            let handler = finish as extern "C" fn(c_int);
            libc::signal(libc::SIGUSR1, handler as *const () as libc::sighandler_t);
            if outlives {
                for (signal, handler) in [
                    (libc::SIGUSR2, orphaned as extern "C" fn(c_int)),
                    (libc::SIGALRM, check_end),
                ] {
                    libc::signal(signal, handler as *const () as libc::sighandler_t);
                }
                // A terminal or a supervisor may send signals to all processes of the JVM's group.
                libc::setpgid(0, 0);
            }
            let mut none = std::mem::zeroed::<libc::sigset_t>();
            libc::sigemptyset(&raw mut none);
            libc::sigprocmask(libc::SIG_SETMASK, &raw const none, null_mut());
            if outlives {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGUSR2);
                if libc::getppid() != parent {
                    orphaned(0);
                }
            } else {
                libc::alarm(LONGEST);
            }
            // A core limit of one byte prevents a core file. Unlike a limit of 0, it also keeps the kernel from piping
            // a core dump to a crash handler.
            let core = libc::rlimit {
                rlim_cur: 1,
                rlim_max: 1,
            };
            libc::setrlimit(libc::RLIMIT_CORE, &raw const core);
            if !outlives {
                libc::setpriority(libc::PRIO_PROCESS, 0, 19);
            }
            // If memory runs out, the kernel should end this child first, unless the child must finish its dump after
            // the end of the JVM.
            let adjust = match outlives {
                true => -1,
                false => libc::open(c"/proc/self/oom_score_adj".as_ptr(), libc::O_WRONLY),
            };
            if adjust >= 0 {
                libc::write(adjust, c"1000".as_ptr().cast(), 4);
                libc::close(adjust);
            }
            close_files_except(self.file);
            for &(start, length) in &self.shared {
                make_mapping_private(start, length);
            }
        }
    }

    /// Runs the work of one callback in the child. If the work fails, the child ends.
    fn run_callback(&mut self, work: impl FnOnce(&mut Writer<Target>) -> std::io::Result<()>) {
        let shared = self.page.shared();
        shared.busy.store(true, Release);
        let done = catch_unwind(AssertUnwindSafe(|| work(&mut self.writer)));
        let code = match done {
            Ok(Ok(())) => {
                let shared = self.page.shared();
                let tally = self.writer.tally();
                shared.callbacks.fetch_add(1, Relaxed);
                shared.seen.store(tally.seen, Relaxed);
                shared.visited.store(tally.visited, Relaxed);
                shared.late.store(tally.late, Relaxed);
                shared.cut.store(tally.cut, Relaxed);
                shared.sent.store(self.writer.output().has_sent(), Relaxed);
                shared.busy.store(false, Release);
                return;
            }
            Ok(Err(e)) => code_of(&e),
            Err(_) => end::PANICKED,
        };
        // SAFETY: this ends the child without running any code of the JVM.
        unsafe { libc::_exit(code) }
    }
}

fn code_of(error: &std::io::Error) -> c_int {
    match error.raw_os_error() {
        Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG) => end::NO_SPACE,
        _ => end::FAILED,
    }
}

/// Replaces a shared mapping with a private copy. Does nothing if the child did not inherit the mapping.
///
/// # Safety
/// The mapping existed before the fork, and only this thread uses it.
// SAFETY: the mapping is replaced by a mapping of the same size, and nothing else uses the old mapping meanwhile.
unsafe fn make_mapping_private(start: usize, length: usize) {
    let place: *mut u8 = std::ptr::with_exposed_provenance_mut(start);
    // SAFETY: `msync` accepts any address. It returns an error if the range is not mapped, and changes nothing.
    if unsafe { libc::msync(place.cast(), length, libc::MS_ASYNC) } != 0 {
        return;
    }
    // SAFETY: the range is mapped, and the caller guarantees that nothing else uses it. If another process truncates
    // the file meanwhile, the child gets SIGBUS and ends, which harms nobody.
    let content = unsafe { std::slice::from_raw_parts(place, length) }.to_vec();
    // SAFETY: the new mapping replaces the old one and has the same length.
    unsafe {
        let made = libc::mmap(
            place.cast(),
            length,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
            -1,
            0,
        );
        if made == libc::MAP_FAILED {
            libc::_exit(end::FAILED);
        }
        std::ptr::copy_nonoverlapping(content.as_ptr(), place, length);
    }
}

/// Closes all open files except the file `kept`.
///
/// # Safety
/// Nothing uses the other files any more.
// SAFETY: closing a file affects only its users, and the caller guarantees that there are none.
unsafe fn close_files_except(kept: c_int) {
    let close = |from: c_int, to: c_int| {
        if from > to {
            return;
        }
        // SAFETY: the caller upholds the `# Safety` contract.
        if unsafe { libc::syscall(libc::SYS_close_range, from, to, 0) } == 0 {
            return;
        }
        // Kernels before 5.9 do not have `close_range`.
        let mut limit = libc::rlimit {
            rlim_cur: 1 << 16,
            rlim_max: 0,
        };
        // SAFETY: the pointer is to an initialized `rlimit`.
        unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
        let most = c_int::try_from(limit.rlim_cur.min(1 << 20)).unwrap_or(1 << 20);
        for file in from..=to.min(most) {
            // SAFETY: the caller upholds the `# Safety` contract.
            unsafe { libc::close(file) };
        }
    };
    close(0, kept - 1);
    close(kept + 1, c_int::MAX);
}

impl Child {
    /// Returns a child handle for any process, for tests.
    #[cfg(test)]
    pub(crate) fn of(pid: c_int) -> Self {
        Self {
            pid,
            page: Page::new().expect("a page"),
            ended: None,
        }
    }

    pub(crate) fn pid(&self) -> i32 {
        self.pid
    }

    /// Returns the child's progress.
    pub(crate) fn progress(&self) -> Progress {
        let shared = self.page.shared();
        Progress {
            callbacks: shared.callbacks.load(Relaxed),
            sent: shared.sent.load(Relaxed),
            busy: shared.busy.load(Acquire),
            tally: Tally {
                seen: shared.seen.load(Relaxed),
                visited: shared.visited.load(Relaxed),
                late: shared.late.load(Relaxed),
                cut: shared.cut.load(Relaxed),
            },
        }
    }

    /// Returns the exit code if the child has ended, or the negated signal number if a signal ended it.
    pub(crate) fn try_wait(&mut self) -> Option<i32> {
        if self.ended.is_none() {
            let mut status = 0;
            // SAFETY: the out parameter is a local int.
            let waited = unsafe { libc::waitpid(self.pid, &raw mut status, libc::WNOHANG) };
            self.ended = match waited {
                0 => None,
                pid if pid == self.pid && libc::WIFEXITED(status) => {
                    Some(libc::WEXITSTATUS(status))
                }
                pid if pid == self.pid => Some(-libc::WTERMSIG(status)),
                // Either a signal interrupted the call, or the child's status is gone: other code in this process
                // waited for it, or the program ignores SIGCHLD.
                _ => match std::io::Error::last_os_error().raw_os_error() {
                    Some(libc::EINTR) => None,
                    _ if self.page.shared().done.load(Acquire) => Some(end::DONE),
                    _ => Some(end::FAILED),
                },
            };
        }
        self.ended
    }

    /// True if the dump is complete.
    pub(crate) fn is_done(&self) -> bool {
        self.page.shared().done.load(Acquire)
    }

    /// Sends the child the signal that the heap walk is over.
    pub(crate) fn finish(&self) {
        // SAFETY: the child has not been waited for, so no other process has this id.
        unsafe { libc::kill(self.pid, libc::SIGUSR1) };
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.try_wait().is_some() {
            return;
        }
        // SAFETY: the child has not been waited for, so no other process has this id.
        unsafe { libc::kill(self.pid, libc::SIGKILL) };
        // If the child hangs in the kernel, for example on a disk that does not respond, it ends only when the kernel
        // returns.
        let killed = Instant::now();
        while self.try_wait().is_none() && killed.elapsed() < DYING {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

fn id(tag: jlong) -> u64 {
    tag.cast_unsigned()
}

/// Receives one reference from the JVM.
///
/// # Safety
/// Only the JVM calls this function, during the walk.
// SAFETY: the JVM passes the arguments that JVMTI specifies. Each unsafe block's comment names the arguments it needs.
unsafe extern "C" fn on_reference(
    kind: jint,
    info: *const Info,
    class: jlong,
    _: jlong,
    size: jlong,
    tag: *mut jlong,
    from: *mut jlong,
    length: jint,
    walk: *mut c_void,
) -> jint {
    // SAFETY: this is the pointer that was passed to `FollowReferences`, and nothing else uses it meanwhile.
    let walk = unsafe { &mut *walk.cast::<Walk>() };
    if !walk.in_child {
        walk.fork();
        if !walk.in_child {
            return VISIT_ABORT;
        }
    }
    let kind = match kind {
        1 => Kind::Class,
        2 => Kind::Field,
        3 => Kind::Element,
        4 => Kind::Loader,
        5 => Kind::Signers,
        6 => Kind::ProtectionDomain,
        8 => Kind::Static,
        9 => Kind::Constant,
        7 | 10 => Kind::Known,
        21 => Kind::JniGlobal,
        22 => Kind::SystemClass,
        23 => Kind::Monitor,
        24 => Kind::StackLocal,
        25 => Kind::JniLocal,
        26 => Kind::Thread,
        _ => Kind::Other,
    };
    let (mut index, mut thread, mut depth) = (0, 0, 0);
    let (mut method, mut location) = (0, -1);
    if !info.is_null() {
        match kind {
            Kind::StackLocal | Kind::JniLocal => {
                // SAFETY: for these kinds the JVM passes a record that begins with these fields.
                let stack = unsafe { (*info).stack };
                (thread, depth) = (id(stack.thread_tag), stack.depth.cast_unsigned());
                method = stack.method.addr();
                if kind == Kind::StackLocal {
                    location = stack.location;
                }
            }
            // SAFETY: for all kinds except these two, `info` points to an index.
            _ => index = unsafe { (*info).index }.cast_unsigned(),
        }
    }
    let (value, of_value) = if walk.has_values {
        // SAFETY: the JVM passed these arguments to this callback.
        unsafe { values_of(size, tag, from) }
    } else {
        (None, None)
    };
    // SAFETY: the JVM passes a pointer to the tag of the referenced object. The pointer to the referrer's tag is valid
    // or null.
    let (mut number, from) = unsafe { (id(*tag), from.as_ref().copied()) };
    let reference = Reference {
        kind,
        index,
        thread,
        depth,
        method,
        location,
        class: id(class),
        size: id(size),
        length: u32::try_from(length).ok(),
        from: id(from.unwrap_or(0)),
        value,
        of_value,
    };
    walk.run_callback(|writer| writer.reference(&reference, &mut number));
    if value.is_none() {
        // SAFETY: the JVM passed a pointer to the tag of the referenced object. If an object refers to itself, both
        // pointers lead to one tag; `from` was copied before this write.
        unsafe { *tag = number.cast_signed() };
    }
    VISIT_OBJECTS
}

/// Returns the value objects among two objects: the referenced object, and the object from which the reference comes.
/// Ends the child if HotSpot's data about these objects has an unknown layout.
///
/// # Safety
/// The JVM passed the arguments to a callback of a reference.
// SAFETY: the arguments are passed on.
unsafe fn values_of(
    size: jlong,
    tag: *const jlong,
    from: *const jlong,
) -> (Option<ValueObject>, Option<ValueObject>) {
    // SAFETY: the caller upholds the `# Safety` contract.
    let target = unsafe { values::target(tag, size) };
    let referrer = if from.is_null() {
        Some(None)
    } else if from == tag {
        target
    } else {
        // SAFETY: the caller upholds the `# Safety` contract, and the pointer is not null.
        unsafe { values::referrer(from) }
    };
    match target.zip(referrer) {
        Some(both) => both,
        // SAFETY: this ends the child without running any code of the JVM.
        None => unsafe { libc::_exit(end::VALUES) },
    }
}

/// Receives the value of one primitive field from the JVM.
///
/// # Safety
/// Only the JVM calls this function, during the walk.
// SAFETY: the JVM passes the arguments that JVMTI specifies. Each unsafe block's comment names the arguments it needs.
unsafe extern "C" fn on_primitive(
    kind: jint,
    info: *const Info,
    _: jlong,
    tag: *mut jlong,
    value: jvalue,
    value_type: jint,
    walk: *mut c_void,
) -> jint {
    // SAFETY: this is the pointer that was passed to `FollowReferences`, and nothing else uses it meanwhile.
    let walk = unsafe { &mut *walk.cast::<Walk>() };
    if !walk.in_child {
        return VISIT_ABORT;
    }
    // SAFETY: the JVM passes valid pointers to the object's tag and to the field's index, and a value of the type in
    // `value_type`.
    let (object, index, bytes) = unsafe {
        let value: ([u8; 8], usize) = match u8::try_from(value_type).unwrap_or(0) {
            b'Z' | b'B' => ([value.b.to_be_bytes()[0], 0, 0, 0, 0, 0, 0, 0], 1),
            b'C' | b'S' => {
                let [a, b] = value.c.to_be_bytes();
                ([a, b, 0, 0, 0, 0, 0, 0], 2)
            }
            b'I' | b'F' => {
                let [a, b, c, d] = value.i.to_be_bytes();
                ([a, b, c, d, 0, 0, 0, 0], 4)
            }
            _ => (value.j.to_be_bytes(), 8),
        };
        ((*tag), (*info).index.cast_unsigned(), value)
    };
    let (bytes, width) = bytes;
    let type_of = kind_of(value_type);
    walk.run_callback(|writer| {
        writer.primitive(kind == 8, id(object), index, type_of, &bytes[..width])
    });
    VISIT_OBJECTS
}

/// Receives the contents of one primitive array from the JVM.
///
/// # Safety
/// Only the JVM calls this function, during the walk.
// SAFETY: the JVM passes the arguments that JVMTI specifies. Each unsafe block's comment names the arguments it needs.
unsafe extern "C" fn on_array(
    _: jlong,
    _: jlong,
    tag: *mut jlong,
    count: jint,
    element_type: jint,
    elements: *const c_void,
    walk: *mut c_void,
) -> jint {
    // SAFETY: this is the pointer that was passed to `FollowReferences`, and nothing else uses it meanwhile.
    let walk = unsafe { &mut *walk.cast::<Walk>() };
    if !walk.in_child {
        return VISIT_ABORT;
    }
    let kind = kind_of(element_type);
    let width = match kind {
        4 | 8 => 1,
        5 | 9 => 2,
        6 | 10 => 4,
        _ => 8,
    };
    let bytes = usize::try_from(count).unwrap_or(0) * width;
    // SAFETY: the JVM passes pointers to `count` elements of this type and to the array's tag. The elements do not move
    // during the walk.
    let (elements, object) = unsafe {
        let elements = if elements.is_null() {
            &[]
        } else {
            std::slice::from_raw_parts(elements.cast::<u8>(), bytes)
        };
        (elements, *tag)
    };
    walk.run_callback(|writer| writer.array(id(object), kind, elements));
    VISIT_OBJECTS
}

/// Returns HPROF's type number for a JVMTI type character.
fn kind_of(value_type: jint) -> u8 {
    match u8::try_from(value_type).unwrap_or(0) {
        b'Z' => 4,
        b'C' => 5,
        b'F' => 6,
        b'D' => 7,
        b'B' => 8,
        b'S' => 9,
        b'I' => 10,
        _ => 11,
    }
}
