//! The walk that forks: `FollowReferences` calls back while all threads stand at a safepoint, and the first call makes a
//! child. The parent ends its walk at once; the child goes on walking its copy of the memory, and writes.
//!
//! **What the child may not do.** It has the JVM's memory, and of its threads only the one that walks. So it may wait for
//! nothing that another thread would have to do. Memory is taken from `malloc`, whose locks `fork` holds while
//! it copies, so that they are free in the child; the JVM's own table of tags is used by the walk alone while threads stand.
//! What may still block it is a lock of the JVM's that a compiler thread held at the fork, such as that of the memory in which
//! stacks are walked: the parent's watch sees that it waits for what nobody can give back, kills it, and forks again.
//!
//! **The end of the walk.** The walk returns into the JVM's own thread, which then waits for work that never
//! comes, so the child cannot know; the parent does. The child's thread sleeps in no part of the walk but in a
//! callback, when it writes. So when the kernel says that it sleeps, it is in no callback, and all that was seen was visited,
//! the walk is over; the parent sends a signal, whose handler writes the end.

use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::time::{Duration, Instant};

use jni_sys::{jint, jlong, jvalue};

use super::{Image, Kind, Progress, Reference, Tally, Target, Writer};
use crate::jvmti::sys::{VERSION_17, error};
use crate::jvmti::{Environment, JvmtiError, Result, call};

const VISIT_OBJECTS: jint = 0x100;
const VISIT_ABORT: jint = 0x8000;
/// The most seconds that a child may take.
const LONGEST: u32 = 4 * 3600;
/// How long a child that was killed is waited for.
const DYING: Duration = Duration::from_secs(5);
/// How the child ends.
pub(crate) mod end {
    pub(crate) const DONE: i32 = 0;
    pub(crate) const FAILED: i32 = 70;
    pub(crate) const NO_SPACE: i32 = 71;
    pub(crate) const PANICKED: i32 = 72;
}

/// What the child tells the parent, in memory that both see.
#[repr(C)]
struct Shared {
    callbacks: AtomicU64,
    seen: AtomicU64,
    visited: AtomicU64,
    late: AtomicU64,
    cut: AtomicU64,
    sent: AtomicBool,
    busy: AtomicBool,
    /// Whether the file is whole.
    done: AtomicBool,
}

/// The page with it.
struct Page(NonNull<Shared>);

impl Page {
    fn new() -> Option<Self> {
        // SAFETY: a new mapping, of no file; zeroed memory is a `Shared`.
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
        // SAFETY: the mapping lives as long as this, and is as long as a `Shared`.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // SAFETY: the mapping is this one's, and nothing refers to it any more.
        let _ = unsafe { libc::munmap(self.0.as_ptr().cast(), size_of::<Shared>()) };
    }
}

/// The walk, in the parent until it has forked, then in the child.
struct Walk {
    writer: Writer<Target>,
    page: Page,
    file: c_int,
    /// Mappings of files that the JVM writes to.
    shared: Vec<(usize, usize)>,
    in_child: bool,
    /// The child, or the error of the fork.
    forked: Option<std::result::Result<c_int, c_int>>,
}

/// The child's walk, for the handler of the signal that ends it.
static CHILD: AtomicPtr<Walk> = AtomicPtr::new(null_mut());

/// A child that walks.
pub(crate) struct Child {
    pid: c_int,
    page: Page,
    ended: Option<i32>,
}

/// Why there is no child.
#[derive(Debug, Clone, Copy)]
pub(crate) enum NoChild {
    /// The system's error.
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

/// What a reference is by: a field's or an element's number, or what a stack holds it.
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
    /// Only for local variables of Java.
    location: jlong,
}

// SAFETY: types of functions; only the JVM calls those that have them.
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
// SAFETY: as above.
type OnPrimitive =
    unsafe extern "C" fn(jint, *const Info, jlong, *mut jlong, jvalue, jint, *mut c_void) -> jint;
// SAFETY: as above.
type OnArray =
    unsafe extern "C" fn(jlong, jlong, *mut jlong, jint, jint, *const c_void, *mut c_void) -> jint;

impl Environment {
    /// Whether the walk marks in the headers of objects what it has visited. From JDK 17 on it has a table for that.
    pub(crate) fn marks_objects(&self) -> bool {
        let mut version = 0;
        // SAFETY: the pointer is to an int. Where it fails the version stays 0.
        let _ = unsafe { call!(self.jvmti(), GetVersionNumber, &raw mut version) };
        version < VERSION_17
    }

    /// Forks at a safepoint. The start of a file is written; the child writes the rest. With the child come image and
    /// target, for another try.
    ///
    /// `shared` are mappings of files of which the child is to have copies of its own.
    pub(crate) fn fork(
        &self,
        image: Image,
        target: Target,
        shared: Vec<(usize, usize)>,
    ) -> std::result::Result<(Child, Image, Target), NoChild> {
        let page = Page::new().ok_or(NoChild::Fork(libc::ENOMEM))?;
        let mut walk = Box::new(Walk {
            file: target.descriptor(),
            writer: Writer::new(image, target),
            page,
            shared,
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
        // SAFETY: no filter, no class, no object: all that is reachable. The callbacks are as JVMTI lays them out, and
        // get the walk, which outlives the call and which nothing else uses meanwhile.
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
    /// Makes the child, in the first callback.
    fn fork(&mut self) {
        if self.forked.is_some() {
            return;
        }
        // SAFETY: no arguments. What the child may do afterwards is said above.
        let (parent, pid) = unsafe { (libc::getpid(), libc::fork()) };
        if pid == 0 {
            self.in_child = true;
            self.alone(parent);
            return;
        }
        self.forked = Some(match pid {
            -1 => Err(std::io::Error::last_os_error().raw_os_error().unwrap_or(0)),
            pid => Ok(pid),
        });
    }

    /// The child leaves everything behind that it shares with the JVM.
    fn alone(&mut self, parent: c_int) {
        CHILD.store(&raw mut *self, Release);
        // SAFETY: system calls with numbers and pointers to what is on the stack; the handler is a function that
        // takes a number.
        unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            if libc::getppid() != parent {
                libc::_exit(end::FAILED);
            }
            for signal in 1..=64 {
                libc::signal(signal, libc::SIG_DFL);
            }
            libc::signal(libc::SIGPIPE, libc::SIG_IGN);
            let handler = finish as extern "C" fn(c_int);
            libc::signal(libc::SIGUSR1, handler as *const () as libc::sighandler_t);
            let mut none = std::mem::zeroed::<libc::sigset_t>();
            libc::sigemptyset(&raw mut none);
            libc::sigprocmask(libc::SIG_SETMASK, &raw const none, null_mut());
            libc::alarm(LONGEST);
            // One byte: no core file, and nothing for a program that takes cores from a pipe.
            let core = libc::rlimit {
                rlim_cur: 1,
                rlim_max: 1,
            };
            libc::setrlimit(libc::RLIMIT_CORE, &raw const core);
            libc::setpriority(libc::PRIO_PROCESS, 0, 19);
            let adjust = libc::open(c"/proc/self/oom_score_adj".as_ptr(), libc::O_WRONLY);
            if adjust >= 0 {
                libc::write(adjust, c"1000".as_ptr().cast(), 4);
                libc::close(adjust);
            }
            close_all_but(self.file);
            for &(start, length) in &self.shared {
                own_copy(start, length);
            }
        }
    }

    /// Runs a callback's work in the child; ends it where that fails.
    fn tell(&mut self, work: impl FnOnce(&mut Writer<Target>) -> std::io::Result<()>) {
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
        // SAFETY: ends the child, and nothing of the JVM's runs.
        unsafe { libc::_exit(code) }
    }
}

fn code_of(error: &std::io::Error) -> c_int {
    match error.raw_os_error() {
        Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG) => end::NO_SPACE,
        _ => end::FAILED,
    }
}

/// Puts a copy in place of a mapping that others see; does nothing where it was not inherited.
///
/// # Safety
/// The mapping was there before the fork, and only this thread may use it.
// SAFETY: what is unsafe in it says so where it stands.
unsafe fn own_copy(start: usize, length: usize) {
    let place: *mut u8 = std::ptr::with_exposed_provenance_mut(start);
    // SAFETY: any address may be asked for; what is not mapped is an error, and nothing is changed.
    if unsafe { libc::msync(place.cast(), length, libc::MS_ASYNC) } != 0 {
        return;
    }
    // SAFETY: it is mapped, and by the caller's promise nothing else uses it. A file that was cut meanwhile ends the child, and harms nobody.
    let content = unsafe { std::slice::from_raw_parts(place, length) }.to_vec();
    // SAFETY: the new mapping takes the place of the old one, of the same length.
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

/// Closes all files but one.
///
/// # Safety
/// Nothing uses the others any more.
// SAFETY: what is unsafe in it says so where it stands.
unsafe fn close_all_but(kept: c_int) {
    let close = |from: c_int, to: c_int| {
        if from > to {
            return;
        }
        // SAFETY: by the caller's promise.
        if unsafe { libc::syscall(libc::SYS_close_range, from, to, 0) } == 0 {
            return;
        }
        // Kernels before 5.9 have no such call.
        let mut limit = libc::rlimit {
            rlim_cur: 1 << 16,
            rlim_max: 0,
        };
        // SAFETY: the pointer is to a full record.
        unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
        let most = c_int::try_from(limit.rlim_cur.min(1 << 20)).unwrap_or(1 << 20);
        for file in from..=to.min(most) {
            // SAFETY: by the caller's promise.
            unsafe { libc::close(file) };
        }
    };
    close(0, kept - 1);
    close(kept + 1, c_int::MAX);
}

/// The parent says that the walk is over.
extern "C" fn finish(_: c_int) {
    let walk = CHILD.load(Acquire);
    if walk.is_null() {
        return;
    }
    // SAFETY: the walk lives as long as the child, which has this one thread: it sleeps, and is in no callback,
    // as is looked at first.
    let walk = unsafe { &mut *walk };
    if walk.page.shared().busy.load(Acquire) {
        return;
    }
    let finished = catch_unwind(AssertUnwindSafe(|| walk.writer.finish()));
    let code = match finished {
        Ok(Ok(())) => {
            walk.page.shared().done.store(true, Release);
            end::DONE
        }
        Ok(Err(e)) => code_of(&e),
        Err(_) => end::PANICKED,
    };
    // SAFETY: ends the child, and nothing of the JVM's runs.
    unsafe { libc::_exit(code) }
}

impl Child {
    /// A process that walks nowhere.
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

    /// How far it is.
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

    /// How it ended, if it has: its exit code, or the number of the signal, negative.
    pub(crate) fn ended(&mut self) -> Option<i32> {
        if self.ended.is_none() {
            let mut status = 0;
            // SAFETY: the pointer is to an int.
            let waited = unsafe { libc::waitpid(self.pid, &raw mut status, libc::WNOHANG) };
            self.ended = match waited {
                0 => None,
                pid if pid == self.pid && libc::WIFEXITED(status) => {
                    Some(libc::WEXITSTATUS(status))
                }
                pid if pid == self.pid => Some(-libc::WTERMSIG(status)),
                // An interruption; or somebody else in the process waited for it, or nobody is to, since the program
                // ignores SIGCHLD.
                _ => match std::io::Error::last_os_error().raw_os_error() {
                    Some(libc::EINTR) => None,
                    _ if self.page.shared().done.load(Acquire) => Some(end::DONE),
                    _ => Some(end::FAILED),
                },
            };
        }
        self.ended
    }

    /// Tells the child that the walk is over.
    pub(crate) fn finish(&self) {
        // SAFETY: a child of ours that has not been waited for: the id is no other's.
        unsafe { libc::kill(self.pid, libc::SIGUSR1) };
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.ended().is_some() {
            return;
        }
        // SAFETY: a child of ours that has not been waited for: the id is no other's.
        unsafe { libc::kill(self.pid, libc::SIGKILL) };
        // One that hangs in the kernel, for a disk that does not answer, ends when it can.
        let killed = Instant::now();
        while self.ended().is_none() && killed.elapsed() < DYING {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

fn id(tag: jlong) -> u64 {
    tag.cast_unsigned()
}

/// # Safety
/// Only the JVM calls it, while it walks.
// SAFETY: what is unsafe in it says so where it stands.
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
    // SAFETY: what was given to the walk; nothing else uses it meanwhile.
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
                // SAFETY: for these kinds the JVM gives a record that begins so.
                let stack = unsafe { (*info).stack };
                (thread, depth) = (id(stack.thread_tag), stack.depth.cast_unsigned());
                method = stack.method.addr();
                if kind == Kind::StackLocal {
                    location = stack.location;
                }
            }
            // SAFETY: for the others it gives a number.
            _ => index = unsafe { (*info).index }.cast_unsigned(),
        }
    }
    // SAFETY: the JVM gives a pointer to the tag of what is referred to, and of what refers to it or null.
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
    };
    walk.tell(|writer| writer.reference(&reference, &mut number));
    // SAFETY: as above. An object that refers to itself has one tag, to which both lead; that was read.
    unsafe { *tag = number.cast_signed() };
    VISIT_OBJECTS
}

/// # Safety
/// Only the JVM calls it, while it walks.
// SAFETY: what is unsafe in it says so where it stands.
unsafe extern "C" fn on_primitive(
    kind: jint,
    info: *const Info,
    _: jlong,
    tag: *mut jlong,
    value: jvalue,
    value_type: jint,
    walk: *mut c_void,
) -> jint {
    // SAFETY: what was given to the walk; nothing else uses it meanwhile.
    let walk = unsafe { &mut *walk.cast::<Walk>() };
    if !walk.in_child {
        return VISIT_ABORT;
    }
    // SAFETY: the JVM gives the object's tag, the field's number and a value of the type that it names.
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
    walk.tell(|writer| writer.primitive(kind == 8, id(object), index, type_of, &bytes[..width]));
    VISIT_OBJECTS
}

/// # Safety
/// Only the JVM calls it, while it walks.
// SAFETY: what is unsafe in it says so where it stands.
unsafe extern "C" fn on_array(
    _: jlong,
    _: jlong,
    tag: *mut jlong,
    count: jint,
    element_type: jint,
    elements: *const c_void,
    walk: *mut c_void,
) -> jint {
    // SAFETY: what was given to the walk; nothing else uses it meanwhile.
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
    // SAFETY: the JVM gives a pointer to so many elements of this type, which stay where they are while it walks, and
    // the array's tag.
    let (elements, object) = unsafe {
        let elements = if elements.is_null() {
            &[]
        } else {
            std::slice::from_raw_parts(elements.cast::<u8>(), bytes)
        };
        (elements, *tag)
    };
    walk.tell(|writer| writer.array(id(object), kind, elements));
    VISIT_OBJECTS
}

/// HPROF's number of a primitive type, from JVMTI's.
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
