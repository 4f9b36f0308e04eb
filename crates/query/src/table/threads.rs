//! `threads` and `frames`: threads with their stacks.

use std::sync::Arc;

use hprof::answers::{Line, Thread};
use hprof::{ObjectId, ObjectIndex};

use super::objects::class_name;
use super::{Cursor, place};
use crate::error::Result;
use crate::heap::Heap;
use crate::schema::{FRAMES, THREADS};
use crate::value::Value;

mod of_thread {
    use super::{THREADS, place};

    pub(super) const ID: usize = place(THREADS, "id");
    pub(super) const NAME: usize = place(THREADS, "name");
    pub(super) const CLASS: usize = place(THREADS, "class");
    pub(super) const SERIAL: usize = place(THREADS, "thread_serial");
    pub(super) const IS_DAEMON: usize = place(THREADS, "is_daemon");
    pub(super) const IS_VIRTUAL: usize = place(THREADS, "is_virtual");
    pub(super) const PRIORITY: usize = place(THREADS, "priority");
    pub(super) const STATE: usize = place(THREADS, "state");
    pub(super) const LOADER: usize = place(THREADS, "context_loader_id");
    pub(super) const LOADER_CLASS: usize = place(THREADS, "context_loader_class");
    pub(super) const FRAMES: usize = place(THREADS, "frames");
    pub(super) const RETAINED: usize = place(THREADS, "retained_bytes");
}

mod of_frame {
    use super::{FRAMES, place};

    pub(super) const THREAD_ID: usize = place(FRAMES, "thread_id");
    pub(super) const THREAD: usize = place(FRAMES, "thread");
    pub(super) const SERIAL: usize = place(FRAMES, "thread_serial");
    pub(super) const DEPTH: usize = place(FRAMES, "depth");
    pub(super) const CLASS: usize = place(FRAMES, "class");
    pub(super) const METHOD: usize = place(FRAMES, "method");
    pub(super) const FILE: usize = place(FRAMES, "file");
    pub(super) const LINE: usize = place(FRAMES, "line");
    pub(super) const LOCALS: usize = place(FRAMES, "locals");
}

/// Returns, for each thread in order, the id of the object that `object` selects for it. The id is null if no object is
/// selected.
fn ids(heap: &Heap, object: impl Fn(&Thread) -> Option<ObjectIndex>) -> Result<Vec<ObjectId>> {
    let threads = heap.threads();
    let objects: Vec<_> = threads.iter().filter_map(&object).collect();
    let mut ids = heap.ids_of(&objects, true)?.into_iter();
    let id = |t: &Thread| object(t).and_then(|_| ids.next()).unwrap_or_default();
    Ok(threads.iter().map(id).collect())
}

/// A cursor over `threads`.
pub(super) struct Threads {
    heap: Arc<Heap>,
    /// The ids of each thread and of its context class loader.
    ids: Option<Vec<(ObjectId, ObjectId)>>,
    next: usize,
}

impl Threads {
    pub(super) const fn new(heap: Arc<Heap>) -> Self {
        Self {
            heap,
            ids: None,
            next: 0,
        }
    }
}

impl Cursor for Threads {
    fn advance(&mut self) -> Result<bool> {
        if self.ids.is_none() {
            let threads = ids(&self.heap, |thread| thread.object)?;
            let loaders = ids(&self.heap, |thread| thread.context_loader)?;
            self.ids = Some(threads.into_iter().zip(loaders).collect());
        }
        self.next += 1;
        Ok(self.next <= self.heap.threads().len())
    }

    fn cell(&self, column: usize) -> Value<'_> {
        use of_thread as c;
        let at = self.next - 1;
        let thread = &self.heap.threads()[at];
        let snapshot = self.heap.snapshot();
        match column {
            c::ID => Value::id(self.ids.as_ref().map_or(0, |ids| ids[at].0.0)),
            c::NAME => Value::or_null(thread.name.as_deref(), Value::text),
            c::CLASS => Value::or_null(thread.object, |o| Value::text(class_name(&self.heap, o))),
            c::SERIAL => Value::or_null(thread.serial, |s| Value::Int(s.into())),
            c::IS_DAEMON => Value::or_null(thread.daemon, Value::Bool),
            c::IS_VIRTUAL => Value::Bool(thread.is_virtual),
            c::PRIORITY => Value::or_null(thread.priority, |p| Value::Int(p.into())),
            c::STATE => Value::or_null(thread.state, |s| Value::text(s.name())),
            c::LOADER => Value::id(self.ids.as_ref().map_or(0, |ids| ids[at].1.0)),
            c::LOADER_CLASS => Value::or_null(thread.context_loader, |o| {
                Value::text(class_name(&self.heap, o))
            }),
            c::FRAMES => Value::size(thread.frames.len() as u64),
            c::RETAINED => {
                let bytes = thread.object.and_then(|o| snapshot.retained_bytes(o));
                Value::or_null(bytes, Value::size)
            }
            _ => Value::Null,
        }
    }
}

/// A cursor over `frames`.
pub(super) struct Frames {
    heap: Arc<Heap>,
    ids: Option<Vec<ObjectId>>,
    thread: usize,
    /// Index of the stack frame for the next row.
    next: usize,
}

impl Frames {
    pub(super) const fn new(heap: Arc<Heap>) -> Self {
        Self {
            heap,
            ids: None,
            thread: 0,
            next: 0,
        }
    }
}

impl Cursor for Frames {
    fn advance(&mut self) -> Result<bool> {
        if self.ids.is_none() {
            self.ids = Some(ids(&self.heap, |thread| thread.object)?);
        }
        while let Some(thread) = self.heap.threads().get(self.thread) {
            if self.next < thread.frames.len() {
                self.next += 1;
                return Ok(true);
            }
            self.thread += 1;
            self.next = 0;
        }
        Ok(false)
    }

    fn cell(&self, column: usize) -> Value<'_> {
        use of_frame as c;
        let thread = &self.heap.threads()[self.thread];
        let depth = self.next - 1;
        let stack_frame = &thread.frames[depth];
        let frame = &stack_frame.frame;
        match column {
            c::THREAD_ID => Value::id(self.ids.as_ref().map_or(0, |ids| ids[self.thread].0)),
            c::THREAD => Value::or_null(thread.name.as_deref(), Value::text),
            c::SERIAL => Value::or_null(thread.serial, |s| Value::Int(s.into())),
            c::DEPTH => Value::size(depth as u64),
            c::CLASS => Value::text(&frame.class),
            c::METHOD => Value::text(&frame.method),
            c::FILE => Value::or_null(frame.file.as_deref(), Value::text),
            c::LINE => match frame.line {
                Line::Number(line) => Value::Int(line.into()),
                _ => Value::Null,
            },
            c::LOCALS => Value::size(stack_frame.locals.len() as u64),
            _ => Value::Null,
        }
    }
}
