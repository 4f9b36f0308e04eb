//! Threads and stack traces.

use super::format::Root;
use super::heap::{ClassId, HeapBuilder, Obj};
use super::value::{Ref, Value};

/// A frame of a stack trace.
#[derive(Debug, Clone)]
pub struct Frame {
    /// The class of the method.
    pub class: ClassId,
    /// The method's name.
    pub method: String,
    /// The method's signature, such as `(I)V`.
    pub signature: String,
    /// The source file.
    pub source: Option<String>,
    /// The line number; 0 for no line, -1 unknown, -2 compiled, -3 native.
    pub line: i32,
}

impl Frame {
    /// Creates a frame of a method with the signature `()V`. The frame's source file is named after the outermost
    /// class: `a.B$C` -> `B.java`.
    pub fn new(heap: &HeapBuilder, class: ClassId, method: &str, line: i32) -> Self {
        let name = heap.class_name(class);
        let simple = name.rsplit('.').next().unwrap_or(name);
        let outer = simple.split('$').next().unwrap_or(simple);
        Self {
            class,
            method: method.to_owned(),
            signature: "()V".to_owned(),
            source: Some(format!("{outer}.java")),
            line,
        }
    }
}

/// A thread of the heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thread {
    /// The `java.lang.Thread` object.
    pub object: Obj,
    /// The thread's serial number, for roots.
    pub serial: u32,
    /// The serial number of the thread's stack trace.
    pub trace: u32,
}

#[derive(Debug)]
pub(super) struct TraceEntry {
    pub(super) thread: u32,
    pub(super) frames: Vec<Frame>,
}

impl HeapBuilder {
    /// Adds a stack trace, whose frames are listed innermost first. Returns its serial number, which is at least 2
    /// because 1 is the empty trace. Thread serial 0 means no thread.
    pub fn add_stack_trace(&mut self, thread: u32, frames: &[Frame]) -> u32 {
        self.traces.push(TraceEntry {
            thread,
            frames: frames.to_vec(),
        });
        self.traces.len() as u32 + 1
    }

    /// Adds a thread: its name, its `java.lang.Thread`, a ROOT_THREAD_OBJECT and its stack trace (innermost frame
    /// first).
    pub fn add_thread(&mut self, name: &str, frames: &[Frame]) -> Thread {
        let class = self.boot().thread;
        self.add_thread_of(class, name, frames)
    }

    /// Adds a thread whose object is an instance of `class`, a subclass of `Thread`.
    pub fn add_thread_of(&mut self, class: ClassId, name: &str, frames: &[Frame]) -> Thread {
        let boot = self.boot();
        let group = match self.group {
            Some(group) => group,
            None => {
                let name = self.add_string("main");
                let group = self.add_instance(boot.thread_group, &[Value::NULL, name.into()]);
                *self.group.insert(group)
            }
        };
        let name = self.add_string(name);
        let object = self.add_instance(class, &[]);
        self.threads += 1;
        let serial = self.threads;
        self.set_field(object, "name", name);
        self.set_field(object, "priority", 5);
        self.set_field(object, "group", group);
        self.set_field(object, "tid", i64::from(serial));
        let trace = self.add_stack_trace(serial, frames);
        self.add_root(
            Root::ThreadObject {
                thread: serial,
                trace,
            },
            object,
        );
        Thread {
            object,
            serial,
            trace,
        }
    }

    /// Makes the target a local variable in a frame of a thread, with a root sub-record. Frame 0 is the innermost
    /// frame.
    pub fn add_local(&mut self, thread: Thread, frame: i32, target: impl Into<Ref>) {
        let root = Root::JavaFrame {
            thread: thread.serial,
            frame,
        };
        self.add_root(root, target);
    }
}
