//! `refs`: every reference from one object to another.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use hprof::answers::{Link, Links, Via};
use hprof::records::Reference;
use hprof::{ObjectId, ObjectIndex};
use rayon::prelude::*;

use super::objects::class_name;
use super::{Ask, Cursor, LISTED, place};
use crate::bounds::Stop;
use crate::error::Result;
use crate::filter::{ClassSet, Op};
use crate::heap::Heap;
use crate::schema::REFS;
use crate::value::Value;

const SOURCE: usize = place(REFS, "source_id");
const SOURCE_CLASS: usize = place(REFS, "source_class");
const KIND: usize = place(REFS, "kind");
const VIA: usize = place(REFS, "via");
const POSITION: usize = place(REFS, "position");
const STRENGTH: usize = place(REFS, "strength");
const TARGET: usize = place(REFS, "target_id");
const TARGET_CLASS: usize = place(REFS, "target_class");

/// Maximum number of references to read at once from one part of the dump file.
const BATCH: usize = 1 << 16;
/// Number of file parts that are read in parallel: [`FIRST`] at first. The number doubles each time, up to [`MOST`].
const FIRST: usize = 1;
const MOST: usize = 16;

pub(super) fn accepts(column: usize, op: Op) -> bool {
    match column {
        SOURCE | TARGET => op.is_for_ids(),
        SOURCE_CLASS | TARGET_CLASS => op.is_for_names(),
        _ => false,
    }
}

#[allow(clippy::cast_precision_loss, reason = "an estimate")]
pub(super) fn cost(heap: &Heap, ask: &Ask) -> (f64, u64) {
    let all = heap.snapshot().object_count();
    match ask.id_lookup_op(SOURCE) {
        // The cost is high, because the whole file part that contains the object is read unless it is cached.
        Some(Op::In) => return (500.0 * LISTED as f64, 4 * LISTED),
        Some(_) => return (500.0, 4),
        None => {}
    }
    let pass = all as f64 * 4.0;
    match ask.id_lookup_op(TARGET) {
        Some(Op::In) => return (pass, 4 * LISTED),
        Some(_) => return (pass, 4),
        None => {}
    }
    let mut rows = all * 3;
    for c in &ask.constraints {
        let set = ClassSet::from_names(heap, c.op, &c.value);
        rows = rows.min(set.map_or(all / 10, |s| s.instances(heap) * 3));
    }
    (pass + rows as f64 * 2.0, rows)
}

/// The conditions on sources and targets of references. The query needs only references that meet these conditions.
struct WantedRefs {
    source: Option<ClassSet>,
    target: Option<ClassSet>,
    /// The allowed target ids, in ascending order.
    target_ids: Option<Vec<ObjectId>>,
}

impl WantedRefs {
    fn has(&self, heap: &Heap, link: &Link) -> bool {
        let is = |set: &Option<ClassSet>, object: Option<ObjectIndex>| {
            set.as_ref()
                .is_none_or(|set| object.is_some_and(|o| set.has_object(heap, o)))
        };
        self.target_ids
            .as_ref()
            .is_none_or(|ids| ids.binary_search(&link.id).is_ok())
            && is(&self.source, Some(link.from))
            && is(&self.target, link.to)
            && heap.is_link_visible(link)
    }
}

/// A cursor over `refs`.
pub(super) struct Refs {
    heap: Arc<Heap>,
    stop: Stop,
    wanted: WantedRefs,
    /// Objects whose references the cursor has not looked up yet.
    sources: VecDeque<ObjectIndex>,
    /// File parts that are not read completely, each with the number of its references that were already read. These
    /// references are skipped when the part is read again.
    todo: VecDeque<(u32, u64)>,
    step: usize,
    batch: Vec<Link>,
    at: usize,
    /// The kind of the current reference, if the query reads it.
    via: Option<(Via, Reference)>,
    with_via: bool,
}

impl Refs {
    pub(super) fn new(heap: Arc<Heap>, ask: &Ask) -> Self {
        let mut target_ids = ask.ids(TARGET);
        if let Some(ids) = &mut target_ids {
            ids.sort_unstable();
        }
        let mut wanted = WantedRefs {
            source: None,
            target: None,
            target_ids,
        };
        for c in &ask.constraints {
            match c.column {
                SOURCE_CLASS => {
                    let set = ClassSet::from_names(&heap, c.op, &c.value);
                    ClassSet::intersect(&mut wanted.source, set);
                }
                TARGET_CLASS => {
                    let set = ClassSet::from_names(&heap, c.op, &c.value);
                    ClassSet::intersect(&mut wanted.target, set);
                }
                _ => {}
            }
        }
        let (mut todo, mut batch, mut sources) = (VecDeque::new(), Vec::new(), VecDeque::new());
        if ask.matches_nothing() {
            // Source and target of a reference are never null, so no reference matches a comparison with null.
        } else if let Some(ids) = ask.ids(SOURCE) {
            let mut found: Vec<_> = ids
                .into_iter()
                .filter_map(|id| heap.snapshot().find(id))
                .collect();
            // Sort the objects, so that objects in the same file part are adjacent and the part is read only once.
            found.sort_unstable();
            found.dedup();
            sources.extend(found);
        } else {
            todo.extend((0..heap.snapshot().parts().count()).map(|part| (part, 0)));
            let unwritten = heap.unwritten().iter();
            batch.extend(unwritten.filter(|l| wanted.has(&heap, l)).copied());
        }
        Self {
            heap,
            stop: ask.stop.clone(),
            wanted,
            sources,
            todo,
            step: FIRST,
            batch,
            // The cursor is before the first row.
            at: usize::MAX,
            via: None,
            with_via: [KIND, VIA, POSITION, STRENGTH].iter().any(|&c| ask.uses(c)),
        }
    }

    /// Reads the next file parts, several in parallel.
    fn read(&mut self) {
        let step = self.step.min(self.todo.len());
        self.step = (self.step * 2).min(MOST);
        let parts: Vec<(u32, u64)> = self.todo.drain(..step).collect();
        let (heap, wanted) = (&self.heap, &self.wanted);
        let read: Vec<(u32, Links)> = parts
            .into_par_iter()
            .map(|(part, skip)| {
                let has = |link: &Link| wanted.has(heap, link);
                (part, heap.snapshot().parts().links(part, skip, BATCH, &has))
            })
            .collect();
        self.batch.clear();
        let more = read.iter().rev();
        for (part, next) in more.filter_map(|(part, links)| Some((*part, links.next?))) {
            self.todo.push_front((part, next));
        }
        self.batch
            .extend(read.into_iter().flat_map(|(_, links)| links.list));
    }
}

impl Cursor for Refs {
    fn advance(&mut self) -> Result<bool> {
        self.at = self.at.wrapping_add(1);
        while self.at >= self.batch.len() {
            self.stop.check()?;
            if let Some(source) = self.sources.pop_front() {
                let (heap, wanted) = (&self.heap, &self.wanted);
                self.batch = heap.links_of(source);
                self.batch.retain(|link| wanted.has(heap, link));
            } else if self.todo.is_empty() {
                return Ok(false);
            } else {
                self.read();
            }
            self.at = 0;
        }
        if self.with_via {
            self.via = Some(self.heap.snapshot().parts().via(&self.batch[self.at]));
        }
        Ok(true)
    }

    fn cell(&self, column: usize) -> Value<'_> {
        let link = &self.batch[self.at];
        let Some((via, strength)) = self.via.or(match column {
            SOURCE | SOURCE_CLASS | TARGET | TARGET_CLASS => Some((Via::Class, Reference::No)),
            _ => None,
        }) else {
            return Value::Null;
        };
        match column {
            SOURCE => Value::id(link.from_id.0),
            SOURCE_CLASS => Value::text(class_name(&self.heap, link.from)),
            KIND => Value::text(kind(via)),
            VIA => match via {
                Via::Field(..) | Via::Static(..) => {
                    Value::Text(Cow::Owned(self.heap.snapshot().via_name(via)))
                }
                _ => Value::Null,
            },
            POSITION => match via {
                Via::Element(index) => Value::Int(index.into()),
                Via::Local(frame) => Value::or_null(frame, |f| Value::Int(f.into())),
                _ => Value::Null,
            },
            STRENGTH => Value::text(strength.strength()),
            TARGET => Value::id(link.id.0),
            TARGET_CLASS => Value::or_null(link.to, |to| Value::text(class_name(&self.heap, to))),
            _ => Value::Null,
        }
    }

    /// References have no numbers. So the row id of a reference is a hash of the two object ids and the kind of the
    /// reference.
    fn rowid(&self) -> Option<i64> {
        let link = self.batch.get(self.at)?;
        let (via, _) = self
            .via
            .unwrap_or_else(|| self.heap.snapshot().parts().via(link));
        let mut hasher = DefaultHasher::new();
        (link.from.0, link.id.0, via).hash(&mut hasher);
        Some(hasher.finish().cast_signed())
    }
}

/// Returns the name of a kind of reference, which is one word.
const fn kind(via: Via) -> &'static str {
    match via {
        Via::Field(..) => "field",
        Via::Static(..) => "static",
        Via::Element(_) | Via::Elements => "element",
        Via::Class => "class",
        Via::Superclass => "superclass",
        Via::Loader => "loader",
        Via::ClassPart => "class part",
        Via::Loads => "loads",
        Via::Local(_) => "local",
    }
}
