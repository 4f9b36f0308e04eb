//! `roots`: the GC roots that the dump lists. One object can have several GC roots.

use std::sync::Arc;

use super::objects::class_name;
use super::{Cursor, place};
use crate::error::Result;
use crate::heap::Heap;
use crate::schema::ROOTS;
use crate::value::Value;

const ID: usize = place(ROOTS, "id");
const CLASS: usize = place(ROOTS, "class");
const KIND: usize = place(ROOTS, "kind");
const THREAD: usize = place(ROOTS, "thread_serial");
const DEPTH: usize = place(ROOTS, "depth");
const RETAINED: usize = place(ROOTS, "retained_bytes");

/// A cursor over `roots`.
pub(super) struct Roots {
    heap: Arc<Heap>,
    /// Index of the GC root from which `advance` looks for the next row.
    next: usize,
}

impl Roots {
    pub(super) const fn new(heap: Arc<Heap>) -> Self {
        Self { heap, next: 0 }
    }
}

impl Cursor for Roots {
    fn advance(&mut self) -> Result<bool> {
        let roots = self.heap.snapshot().gc_roots();
        while let Some(root) = roots.get(self.next) {
            self.next += 1;
            let object = self.heap.snapshot().find(root.id);
            if !object.is_some_and(|o| self.heap.own().contains(o)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn cell(&self, column: usize) -> Value<'_> {
        use hprof::records::RootKind::{JavaFrame, JniLocal, Thread};
        let snapshot = self.heap.snapshot();
        let root = &snapshot.gc_roots()[self.next - 1];
        let object = snapshot.find(root.id);
        match column {
            ID => Value::id(root.id.0),
            CLASS => Value::or_null(object, |o| Value::text(class_name(&self.heap, o))),
            KIND => Value::text(root.kind.name()),
            THREAD if root.kind.belongs_to_thread() || root.kind == Thread => {
                Value::Int(root.thread.into())
            }
            DEPTH if matches!(root.kind, JavaFrame | JniLocal) && root.frame >= 0 => {
                Value::Int(root.frame.into())
            }
            RETAINED => {
                let bytes = object.and_then(|o| snapshot.retained_bytes(o));
                Value::or_null(bytes, Value::size)
            }
            _ => Value::Null,
        }
    }
}
