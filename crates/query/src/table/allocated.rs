//! `allocated`: all allocations of each class, as the agent counts them with `strategy=class`.

use std::sync::Arc;

use super::{Cursor, place};
use crate::error::Result;
use crate::heap::Heap;
use crate::schema::ALLOCATED;
use crate::value::Value;

const CLASS: usize = place(ALLOCATED, "class");
const OBJECTS: usize = place(ALLOCATED, "objects");
const BYTES: usize = place(ALLOCATED, "bytes");

/// A cursor over `allocated`, sorted by class name.
pub(super) struct AllocatedClasses {
    heap: Arc<Heap>,
    next: usize,
}

impl AllocatedClasses {
    pub(super) fn new(heap: Arc<Heap>) -> Self {
        Self { heap, next: 0 }
    }
}

impl Cursor for AllocatedClasses {
    fn advance(&mut self) -> Result<bool> {
        self.next += 1;
        Ok(self.heap.class_counts()?.len() >= self.next)
    }

    fn cell(&self, column: usize) -> Value<'_> {
        let counts = self.heap.class_counts().unwrap_or_default();
        let Some(row) = self.next.checked_sub(1).and_then(|at| counts.get(at)) else {
            return Value::Null;
        };
        match column {
            CLASS => Value::text(&row.class),
            OBJECTS => Value::size(row.objects),
            BYTES => Value::size(row.bytes),
            _ => Value::Null,
        }
    }
}
