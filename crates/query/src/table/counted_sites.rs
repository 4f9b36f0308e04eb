//! `counted_sites`: allocations by line of code, as the agent counts them with `count=on`.

use std::sync::Arc;

use super::{Cursor, place};
use crate::error::Result;
use crate::heap::Heap;
use crate::schema::COUNTED_SITES;
use crate::value::Value;

const CLASS: usize = place(COUNTED_SITES, "class");
const METHOD: usize = place(COUNTED_SITES, "method");
const LINE: usize = place(COUNTED_SITES, "line");
const ALLOCATED: usize = place(COUNTED_SITES, "allocated");
const OBJECTS: usize = place(COUNTED_SITES, "objects");
const BYTES: usize = place(COUNTED_SITES, "bytes");
const UNTIL: usize = place(COUNTED_SITES, "counted_until_ms");

/// A cursor over `counted_sites`, most bytes first.
pub(super) struct CountedSites {
    heap: Arc<Heap>,
    next: usize,
}

impl CountedSites {
    pub(super) fn new(heap: Arc<Heap>) -> Self {
        Self { heap, next: 0 }
    }
}

impl Cursor for CountedSites {
    fn advance(&mut self) -> Result<bool> {
        self.next += 1;
        let all = self.heap.at_sites()?;
        Ok(all.is_some_and(|all| all.sites.len() >= self.next))
    }

    fn cell(&self, column: usize) -> Value<'_> {
        let Ok(Some(all)) = self.heap.at_sites() else {
            return Value::Null;
        };
        let Some(row) = self.next.checked_sub(1).and_then(|at| all.sites.get(at)) else {
            return Value::Null;
        };
        match column {
            CLASS => Value::text(&row.class),
            METHOD => Value::text(&row.method),
            LINE => row.line.map_or(Value::Null, |line| Value::Int(line.into())),
            ALLOCATED => Value::text(&row.allocated),
            OBJECTS => Value::size(row.objects),
            BYTES => row.bytes.map_or(Value::Null, Value::size),
            UNTIL => Value::size(all.at_ms),
            _ => Value::Null,
        }
    }
}
