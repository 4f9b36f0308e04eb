//! Threads: their names, their stacks, and the objects on their stacks.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::answers::objects::object::{Body, Value};
use crate::ids::{ClassIndex, NONE, ObjectIndex};
use crate::records::classes::{self, Classes};
use crate::records::outline::TraceAt;
use crate::records::record::{self, Kind};
use crate::records::walk::RootKind;
use crate::snapshot::Snapshot;

/// Maximum number of characters of a thread's name.
const NAME: usize = 200;

/// The line of a method that a frame is executing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Line {
    /// The number of a line in the source file.
    Number(u32),
    /// The dump does not contain the line number of the frame.
    Unknown,
    /// The frame executes compiled code.
    Compiled,
    /// The frame executes a native method.
    Native,
}

/// A frame of a stack.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Frame {
    /// The name of the class, as in Java source.
    pub class: String,
    /// The name of the method.
    pub method: String,
    /// The source file, if known.
    pub file: Option<String>,
    /// The line that the frame is executing.
    pub line: Line,
}

impl std::fmt::Display for Frame {
    /// Formats the frame as in a Java stack trace: `com.acme.Foo.add(Foo.java:42)`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}{}", self.class, self.method, self.place())
    }
}

impl Frame {
    /// Returns the source file and line of the frame, as in a Java stack trace: `(Foo.java:42)`.
    pub(crate) fn place(&self) -> String {
        match (&self.file, self.line) {
            (_, Line::Native) => "(Native Method)".to_owned(),
            (Some(file), Line::Number(line)) => format!("({file}:{line})"),
            (Some(file), Line::Compiled) => format!("({file}, compiled)"),
            (Some(file), Line::Unknown) => format!("({file})"),
            (None, Line::Number(line)) => format!("(line {line})"),
            (None, _) => "(Unknown Source)".to_owned(),
        }
    }
}

/// An object that a thread's stack holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Local {
    /// The object.
    pub object: ObjectIndex,
    /// The kind of root: a local variable of Java or of native code, or another root of the thread.
    pub kind: RootKind,
}

/// A frame and the objects that its variables hold.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct StackFrame {
    /// The frame.
    pub frame: Frame,
    /// The objects that the frame's local variables hold, without duplicates, in the order of the dump.
    pub locals: Vec<Local>,
}

/// A thread.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Thread {
    /// The thread's serial number in the dump. `None` for virtual threads that are not GC roots.
    pub serial: Option<u32>,
    /// The thread object. `None` if the dump does not contain it.
    pub object: Option<ObjectIndex>,
    /// The name of the thread.
    pub name: Option<String>,
    /// True for a daemon thread. `None` if the thread object does not show it.
    pub daemon: Option<bool>,
    /// True for a virtual thread.
    pub is_virtual: bool,
    /// The priority, from 1 to 10. `None` if the thread object does not show it.
    pub priority: Option<i32>,
    /// The state. `None` for virtual threads, and if the thread object does not show it.
    pub state: Option<ThreadState>,
    /// The context class loader.
    pub context_loader: Option<ObjectIndex>,
    /// The stack of the thread, innermost frame first.
    pub frames: Vec<StackFrame>,
    /// Objects that the thread's stack holds outside of the listed frames.
    pub other_locals: Vec<Local>,
}

/// The state of a thread, as in `java.lang.Thread.State`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ThreadState {
    /// Not started.
    New,
    /// Runs, or waits for the operating system.
    Runnable,
    /// Waits for a monitor.
    Blocked,
    /// Waits for another thread, without a time limit.
    Waiting,
    /// Waits with a time limit.
    TimedWaiting,
    /// Ended.
    Terminated,
}

impl ThreadState {
    /// Decodes the field `threadStatus`. Its bits are those of `JVMTI_THREAD_STATE`.
    const fn from_status(status: i64) -> Self {
        match status {
            s if s & 0x4 != 0 => Self::Runnable,
            s if s & 0x400 != 0 => Self::Blocked,
            s if s & 0x10 != 0 => Self::Waiting,
            s if s & 0x20 != 0 => Self::TimedWaiting,
            s if s & 0x2 != 0 => Self::Terminated,
            s if s & 0x1 == 0 => Self::New,
            _ => Self::Runnable,
        }
    }

    /// Returns the name as in Java: `TIMED_WAITING`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::New => "NEW",
            Self::Runnable => "RUNNABLE",
            Self::Blocked => "BLOCKED",
            Self::Waiting => "WAITING",
            Self::TimedWaiting => "TIMED_WAITING",
            Self::Terminated => "TERMINATED",
        }
    }
}

/// Names of threads that the JVM hides from Java programs.
pub(crate) const HIDDEN: [&str; 5] = [
    "Service Thread",
    "Monitor Deflation Thread",
    "Sweeper thread",
    "StringDedupProcessor",
    "StringDedupThread",
];

/// Looks up the frames of stack traces by serial number.
#[derive(Debug)]
pub struct Traces<'a> {
    snapshot: &'a Snapshot,
    /// The id of each class's name, indexed by the serial number of the class.
    classes: HashMap<u32, u64>,
}

impl Traces<'_> {
    /// Returns the frames of a stack trace, innermost first. Empty if the dump has no trace with this serial number.
    #[must_use]
    pub fn frames(&self, serial: u32) -> Vec<Frame> {
        let frames = self.dumped_frames(serial).into_iter();
        frames.flat_map(|frame| self.originals(frame)).collect()
    }

    /// Returns the frames as they are in the dump, with the names that an obfuscator may have changed.
    fn dumped_frames(&self, serial: u32) -> Vec<Frame> {
        let dump = &self.snapshot.dump;
        let id_size = dump.header.id_size;
        let Some(trace) = dump.outline.traces.get(&serial) else {
            return Vec::new();
        };
        let end = trace.offset + trace.frames as usize * id_size;
        let ids = dump.source.get(trace.offset..end).unwrap_or(&[]);
        ids.chunks_exact(id_size)
            .map(|id| id.iter().fold(0, |v, &b| v << 8 | u64::from(b)))
            .filter_map(|id| Some(self.frame(dump.outline.frames.get(&id)?)))
            .collect()
    }

    /// Returns the frames that an obfuscator turned into this frame by renaming or inlining methods. Returns the frame
    /// itself if there is no mapping for it.
    fn originals(&self, frame: Frame) -> Vec<Frame> {
        let mapping = self.snapshot.mapping();
        let originals = mapping.and_then(|mapping| mapping.frames(&frame));
        originals.unwrap_or_else(|| vec![frame])
    }

    /// Replaces a frame by its original frames (see [`Traces::originals`]). The outermost original frame gets the local
    /// variables of `frame`.
    fn with_locals(&self, frame: StackFrame) -> Vec<StackFrame> {
        let originals = self.originals(frame.frame).into_iter();
        let mut frames: Vec<StackFrame> = originals
            .map(|frame| StackFrame {
                frame,
                locals: Vec::new(),
            })
            .collect();
        if let Some(outermost) = frames.last_mut() {
            outermost.locals = frame.locals;
        }
        frames
    }

    fn frame(&self, frame: &record::FrameRecord) -> Frame {
        let dump = &self.snapshot.dump;
        let text = |id: u64| dump.outline.name(&dump.source, id);
        let class = self.classes.get(&frame.class_serial).and_then(|&n| text(n));
        let line = match frame.line {
            n if n > 0 => Line::Number(n.unsigned_abs()),
            -2 => Line::Compiled,
            -3 => Line::Native,
            _ => Line::Unknown,
        };
        Frame {
            class: class.map_or_else(
                || "(unknown class)".to_owned(),
                |raw| classes::java_name(&raw).0,
            ),
            method: text(frame.method)
                .map_or_else(|| "(unknown method)".to_owned(), |t| t.into_owned()),
            file: text(frame.source)
                .filter(|t| !t.is_empty())
                .map(|t| t.into_owned()),
            line,
        }
    }
}

/// The fields of a thread object.
#[derive(Default)]
struct Details {
    name: Option<ObjectIndex>,
    daemon: Option<bool>,
    is_virtual: bool,
    priority: Option<i32>,
    state: Option<ThreadState>,
    context_loader: Option<ObjectIndex>,
}

impl Snapshot {
    /// Returns the dump's stack traces.
    #[must_use]
    pub fn traces(&self) -> Traces<'_> {
        let loads = self.dump.outline.loads.iter();
        Traces {
            snapshot: self,
            classes: loads.map(|l| (l.serial, l.name)).collect(),
        }
    }

    /// Returns the objects whose allocation site is in the dump, in order, each with the serial number of the stack
    /// trace. Dumps of JDK 8's `-agentlib:hprof` have allocation sites.
    pub fn allocation_traces(&self) -> impl ExactSizeIterator<Item = (ObjectIndex, u32)> + '_ {
        self.sites
            .iter()
            .map(|&(o, serial)| (ObjectIndex(o), serial))
    }

    /// Returns all threads, in the order of the dump's roots. Virtual threads that are not GC roots come last.
    ///
    /// Cost: a walk over each piece of the file (about a megabyte) that contains a thread or its name.
    #[must_use]
    pub fn threads(&self) -> Vec<Thread> {
        let traces = self.traces();
        let mut threads: Vec<Thread> = Vec::new();
        let mut by_serial: BTreeMap<u32, usize> = BTreeMap::new();
        for root in self.roots.iter().filter(|r| r.kind == RootKind::Thread) {
            if by_serial.contains_key(&root.thread) {
                continue;
            }
            by_serial.insert(root.thread, threads.len());
            threads.push(Thread {
                serial: Some(root.thread),
                object: self.find(root.id),
                name: None,
                daemon: None,
                is_virtual: false,
                priority: None,
                state: None,
                context_loader: None,
                frames: Vec::new(),
                other_locals: Vec::new(),
            });
        }
        let rooted = threads.len();
        self.add_unrooted(&mut threads);
        self.add_details(&mut threads);
        let stacks = self.stacks(&threads[..rooted], &by_serial);
        for (thread, trace) in threads.iter_mut().zip(stacks) {
            let frames = trace.map(|trace| traces.dumped_frames(trace));
            let frames = frames
                .unwrap_or_default()
                .into_iter()
                .map(|frame| StackFrame {
                    frame,
                    locals: Vec::new(),
                });
            thread.frames = frames.collect();
        }
        self.add_locals(&mut threads, &by_serial);
        if self.mapping().is_some() {
            for thread in &mut threads {
                let frames = std::mem::take(&mut thread.frames).into_iter();
                thread.frames = frames.flat_map(|frame| traces.with_locals(frame)).collect();
            }
        }
        threads
    }

    /// Returns for each of `threads`, which are GC roots, the serial number of its stack trace.
    fn stacks(&self, threads: &[Thread], by_serial: &BTreeMap<u32, usize>) -> Vec<Option<u32>> {
        let traces = &self.dump.outline.traces;
        let mut named = vec![0; threads.len()];
        for root in self
            .roots
            .iter()
            .filter(|r| r.kind == RootKind::Thread)
            .rev()
        {
            if let Some(&at) = by_serial.get(&root.thread) {
                named[at] = u32::try_from(root.frame).unwrap_or(0);
            }
        }
        if let Some(stacks) = self.stacks_of_jhsdb(threads, &named) {
            return stacks;
        }
        let own = named.iter().zip(threads).map(|(trace, thread)| {
            let known = traces.contains_key(trace);
            known
                .then_some(*trace)
                .or_else(|| self.trace_of(thread.serial?))
        });
        own.collect()
    }

    /// Returns the stack traces of a dump that the serviceability agent wrote (`jhsdb jmap --binaryheap`). `None` for
    /// other dumps.
    ///
    /// In such a dump, all thread roots refer to the same trace, which belongs to no thread and has no frames. The
    /// other traces come in the order of the threads, numbered from 1. A thread that is hidden from Java programs can
    /// lack a trace. Such a thread has no number. If the number of traces is neither the number of all threads nor the
    /// number of threads that are not hidden, no thread gets frames.
    fn stacks_of_jhsdb(&self, threads: &[Thread], named: &[u32]) -> Option<Vec<Option<u32>>> {
        let traces = &self.dump.outline.traces;
        let (&dummy, others) = named.split_first()?;
        let is_dummy = |t: &TraceAt| t.frames == 0 && t.thread_serial == 0;
        if others.iter().any(|&t| t != dummy) || !traces.get(&dummy).is_some_and(is_dummy) {
            return None;
        }
        let own = traces.iter().filter(|(_, t)| t.thread_serial != 0);
        let by_thread: BTreeMap<u32, u32> = own.map(|(&s, t)| (t.thread_serial, s)).collect();
        let is_hidden = |thread: &Thread| {
            let name = thread.name.as_deref().unwrap_or_default();
            let compiles =
                name.starts_with("C1 CompilerThread") || name.starts_with("C2 CompilerThread");
            compiles || HIDDEN.contains(&name)
        };
        let seen = threads.iter().filter(|t| !is_hidden(t)).count();
        let hides = match by_thread.len() {
            all if all == threads.len() => false,
            some if some == seen => true,
            _ => return Some(vec![None; threads.len()]),
        };
        let mut next = by_thread.into_values();
        let stacks = threads.iter().map(|thread| {
            if hides && is_hidden(thread) {
                None
            } else {
                next.next()
            }
        });
        Some(stacks.collect())
    }

    /// Returns the lowest serial number of a stack trace that belongs to the thread and has frames.
    fn trace_of(&self, thread: u32) -> Option<u32> {
        let traces = self.dump.outline.traces.iter();
        let own = traces.filter(|(_, t)| t.thread_serial == thread && t.frames > 0);
        own.map(|(&serial, _)| serial).min()
    }

    fn add_locals(&self, threads: &mut [Thread], by_serial: &BTreeMap<u32, usize>) {
        let mut seen = BTreeSet::new();
        for root in self.roots.iter().filter(|r| r.kind.belongs_to_thread()) {
            let thread = by_serial.get(&root.thread);
            let (Some(&at), Some(object)) = (thread, self.find(root.id)) else {
                continue;
            };
            if !seen.insert((at, root.frame, object)) {
                continue;
            }
            let thread = &mut threads[at];
            let frame = usize::try_from(root.frame).ok();
            let locals = match frame.and_then(|f| thread.frames.get_mut(f)) {
                Some(frame) => &mut frame.locals,
                None => &mut thread.other_locals,
            };
            let kind = root.kind;
            locals.push(Local { object, kind });
        }
    }

    /// Adds the virtual threads that are not GC roots. In dumps of older JVMs, virtual threads that are not mounted on
    /// a carrier thread are not GC roots.
    fn add_unrooted(&self, threads: &mut Vec<Thread>) {
        let classes = self.classes();
        let is_virtual = |&(c, _): &(ClassIndex, _)| is_virtual(classes, c);
        let classes: Vec<ClassIndex> = classes.iter().filter(is_virtual).map(|c| c.0).collect();
        if classes.is_empty() {
            return;
        }
        let known: BTreeSet<ObjectIndex> = threads.iter().filter_map(|t| t.object).collect();
        let others = self.instances(&classes).into_iter();
        threads.extend(others.filter(|o| !known.contains(o)).map(|object| Thread {
            serial: None,
            object: Some(object),
            name: None,
            daemon: None,
            is_virtual: true,
            priority: None,
            state: None,
            context_loader: None,
            frames: Vec::new(),
            other_locals: Vec::new(),
        }));
    }

    fn add_details(&self, threads: &mut [Thread]) {
        let none = ObjectIndex(NONE);
        let objects: Vec<ObjectIndex> = threads.iter().map(|t| t.object.unwrap_or(none)).collect();
        let raws = self.records_of(&objects);
        let object = |v: Option<Value>| v.and_then(Value::object).unwrap_or(none);
        // Since JDK 19, some data of a thread is in another object, to which the field `holder` refers.
        let holders: Vec<ObjectIndex> = raws
            .iter()
            .map(|raw| object(raw.and_then(|r| self.field_in(&r, "holder"))))
            .collect();
        let holders = self.records_of(&holders);
        let mut details = Vec::with_capacity(threads.len());
        for ((&thread, raw), holder) in objects.iter().zip(&raws).zip(&holders) {
            let Some(raw) = raw else {
                details.push(Details::default());
                continue;
            };
            let class = self.class_of(thread);
            let is_virtual = class.is_some_and(|c| is_virtual(self.classes(), c));
            let number = |name| {
                let value = self.field_in(raw, name);
                let value = value.or_else(|| self.field_in(holder.as_ref()?, name));
                value.and_then(Value::integer)
            };
            details.push(Details {
                name: self.field_in(raw, "name").and_then(Value::object),
                daemon: number("daemon")
                    .map(|d| d != 0)
                    .or(is_virtual.then_some(true)),
                is_virtual,
                priority: number("priority").and_then(|p| i32::try_from(p).ok()),
                state: number("threadStatus").map(ThreadState::from_status),
                context_loader: self
                    .field_in(raw, "contextClassLoader")
                    .and_then(Value::object),
            });
        }
        let names: Vec<ObjectIndex> = details.iter().map(|d| d.name.unwrap_or(none)).collect();
        let texts = self.strings(&names, NAME);
        let chars = self.char_names(&names);
        for (((thread, d), text), chars) in threads.iter_mut().zip(details).zip(texts).zip(chars) {
            thread.name = text.or(chars);
            thread.daemon = d.daemon;
            thread.is_virtual |= d.is_virtual;
            thread.priority = d.priority;
            // A virtual thread inherits `threadStatus`, but does not use it.
            thread.state = d.state.filter(|_| !thread.is_virtual);
            thread.context_loader = d.context_loader;
        }
    }

    /// Returns the names that are arrays of characters. In old JDKs, the name of a thread is a `char[]`, not a string.
    fn char_names(&self, names: &[ObjectIndex]) -> Vec<Option<String>> {
        let is_array = |o: &ObjectIndex| {
            u64::from(o.0) < self.object_count()
                && self.class_of(*o) == Some(ClassIndex(self.classes().primitive_array(Kind::Char)))
        };
        if !names.iter().any(is_array) {
            return vec![None; names.len()];
        }
        let text =
            |raw: Option<_>| match raw.map(|r: crate::answers::objects::object::Raw<'_>| r.body) {
                Some(Body::Primitives(Kind::Char, _, bytes)) => {
                    let units = bytes.chunks_exact(2).take(NAME);
                    let units: Vec<u16> = units.map(|b| u16::from_be_bytes([b[0], b[1]])).collect();
                    Some(String::from_utf16_lossy(&units))
                }
                _ => None,
            };
        self.records_of(names).into_iter().map(text).collect()
    }
}

/// True if instances of a class are virtual threads.
fn is_virtual(classes: &Classes, class: ClassIndex) -> bool {
    classes.chain(class).any(|c| {
        let class = &classes[c];
        class.loader.is_null() && &*class.name == "java.lang.BaseVirtualThread"
    })
}
