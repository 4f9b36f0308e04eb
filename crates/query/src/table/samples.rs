//! `samples`: the agent's samples.

use std::borrow::Cow;
use std::sync::Arc;

use heapdiff_diff::samples::{self, Collected, Sample, SiteId};
use hprof::{ObjectId, ObjectIndex};

use super::{Ask, Cursor, place};
use crate::error::Result;
use crate::heap::Heap;
use crate::schema::SAMPLES;
use crate::value::Value;

const UID: usize = place(SAMPLES, "uid");
const ID: usize = place(SAMPLES, "id");
const CLASS: usize = place(SAMPLES, "class");
const BYTES: usize = place(SAMPLES, "bytes");
const THREAD: usize = place(SAMPLES, "thread");
const ALLOCATED: usize = place(SAMPLES, "allocated_ms");
const COLLECTED: usize = place(SAMPLES, "collected_ms");
const RECENT: usize = place(SAMPLES, "recent");
const CHOSEN: usize = place(SAMPLES, "chosen");
const IS_DEFINITION: usize = place(SAMPLES, "is_definition");
const FRAME: usize = place(SAMPLES, "frame");
const STACK: usize = place(SAMPLES, "stack");
const LABELS: usize = place(SAMPLES, "labels");

/// Maximum number of live samples whose object ids are looked up one by one. For more samples, the ids of all objects
/// in the dump are read.
const FEW: usize = 1 << 9;

/// Returns the estimated cost and number of rows of the table `samples`. They are assumptions, because the number of
/// samples is unknown until all samples are read.
pub(super) fn cost(heap: &Heap) -> (f64, u64) {
    if heap.own().is_empty() {
        (1.0, 1)
    } else {
        (10_000.0, 10_000)
    }
}

/// A cursor over `samples`. Samples of live objects come first, then samples of objects that the GC freed.
pub(super) struct Samples {
    heap: Arc<Heap>,
    /// Ids of the live samples. `None` before the first row; empty if the query does not read ids.
    ids: Option<Vec<ObjectId>>,
    with_ids: bool,
    next: usize,
}

/// The sample of one row.
enum SampleRow<'a> {
    Live(&'a Sample, ObjectId),
    Collected(&'a Collected),
}

impl Samples {
    pub(super) fn new(heap: Arc<Heap>, ask: &Ask) -> Self {
        Self {
            heap,
            ids: None,
            with_ids: ask.uses(ID),
            next: 0,
        }
    }

    fn loaded_samples(&self) -> Result<Option<&samples::Samples>> {
        self.heap.samples()
    }

    fn row<'a>(&self, samples: &'a samples::Samples) -> Option<SampleRow<'a>> {
        let at = self.next.checked_sub(1)?;
        match samples.live.get(at) {
            Some(sample) => {
                let id = self.ids.as_ref().and_then(|ids| ids.get(at));
                Some(SampleRow::Live(sample, id.copied().unwrap_or_default()))
            }
            None => {
                let collected = samples.collected.get(at - samples.live.len());
                collected.map(SampleRow::Collected)
            }
        }
    }
}

impl Cursor for Samples {
    fn advance(&mut self) -> Result<bool> {
        if self.ids.is_none() {
            let live = match self.loaded_samples()? {
                Some(samples) if self.with_ids => samples.live.iter().map(|s| s.object).collect(),
                _ => Vec::<ObjectIndex>::new(),
            };
            self.ids = Some(self.heap.ids_of(&live, live.len() <= FEW)?);
        }
        self.next += 1;
        Ok(match self.loaded_samples()? {
            Some(samples) => self.row(samples).is_some(),
            None => false,
        })
    }

    fn cell(&self, column: usize) -> Value<'_> {
        let Ok(Some(samples)) = self.loaded_samples() else {
            return Value::Null;
        };
        let Some(row) = self.row(samples) else {
            return Value::Null;
        };
        let (uid, class, size, thread, time, site, is_definition) = match row {
            SampleRow::Live(s, _) => (
                s.uid,
                s.class,
                s.size,
                s.thread,
                s.time_ms,
                s.site,
                s.is_definition,
            ),
            SampleRow::Collected(c) => (
                c.uid,
                c.class,
                c.size,
                c.thread,
                c.time_ms,
                c.site,
                c.is_definition,
            ),
        };
        let collected = match row {
            SampleRow::Live(..) => None,
            SampleRow::Collected(c) => Some(c),
        };
        match column {
            UID => Value::size(uid),
            ID => match row {
                SampleRow::Live(_, id) => Value::id(id.0),
                SampleRow::Collected(_) => Value::Null,
            },
            CLASS => Value::text(samples.name(class)),
            BYTES => Value::size(size),
            THREAD => match samples.thread_name(thread) {
                "" => Value::Null,
                name => Value::text(name),
            },
            ALLOCATED => Value::Int(time.into()),
            COLLECTED => Value::or_null(collected, |c| Value::Int(c.died_ms.into())),
            RECENT => Value::Bool(collected.is_some_and(|c| c.recent)),
            CHOSEN => Value::Bool(collected.is_some_and(|c| c.chosen)),
            IS_DEFINITION => Value::Bool(is_definition),
            FRAME => Value::or_null(samples.sites.frames(site).next(), Value::text),
            LABELS => Value::or_null(samples.label_text(thread), |s| Value::Text(Cow::Owned(s))),
            STACK => Value::or_null(stack(samples, site), |s| Value::Text(Cow::Owned(s))),
            _ => Value::Null,
        }
    }
}

/// Returns the frames of an allocation site, innermost first, or `None` if it has no frames.
fn stack(samples: &samples::Samples, site: SiteId) -> Option<String> {
    let frames: Vec<&str> = samples.sites.frames(site).collect();
    (!frames.is_empty()).then(|| frames.join("; "))
}
