//! What the agent counted of each class, for `trace top --by class`.

use std::collections::HashMap;

use heapdiff_model::sites::{CountRow, CountedClassRow};
use heapdiff_model::trace::CountedClasses;
use heapdiff_trace::{Candidate, CountedClass, Trace, UNKNOWN_CLASS};

use crate::failure::{Failure, Result};

/// Rows that are kept beyond those that are wanted, until they are sorted.
const SPARE: usize = 4096;

/// Counts of all classes, and of some.
#[derive(Debug)]
pub(super) struct Counts {
    pub(super) all: CountedClasses,
    of: HashMap<String, CountRow>,
}

impl Counts {
    /// Those of a run, with the largest `most` of them and those of some candidates; `None` where its agent counted no
    /// classes.
    pub(super) fn of(
        trace: &Trace,
        run: i64,
        candidates: &[Candidate],
        most: usize,
    ) -> Result<Option<Self>> {
        let classes = candidates.iter().map(|c| c.class.to_string());
        let mut wanted: HashMap<String, Option<CountRow>> = classes.map(|c| (c, None)).collect();
        let mut all = CountedClasses::default();
        let take = |counted: CountedClass| {
            let CountedClass {
                class,
                objects,
                bytes,
            } = counted;
            all.classes += 1;
            all.objects = all.objects.saturating_add(objects);
            all.bytes = all.bytes.saturating_add(bytes);
            if class == UNKNOWN_CLASS {
                all.unknown_objects = all.unknown_objects.saturating_add(objects);
            }
            if let Some(found) = wanted.get_mut(&class) {
                let found = found.get_or_insert_default();
                found.objects = found.objects.saturating_add(objects);
                found.bytes = found.bytes.saturating_add(bytes);
            }
            all.rows.push(CountedClassRow {
                class,
                objects,
                bytes,
            });
            if all.rows.len() > most.saturating_add(SPARE) {
                largest(&mut all.rows, most);
            }
        };
        let read = trace.each_counted_class(run, take);
        read.map_err(|e| Failure::trace(&e))?;
        largest(&mut all.rows, most);
        let of = wanted.into_iter().filter_map(|(c, n)| Some((c, n?)));
        let of = of.collect();
        Ok((all.classes > 0).then_some(Self { all, of }))
    }

    /// The count of a candidate's class.
    pub(super) fn of_class(&self, class: &str) -> Option<CountRow> {
        self.of.get(class).copied()
    }
}

/// Leaves the rows of most bytes, in their order.
fn largest(rows: &mut Vec<CountedClassRow>, most: usize) {
    rows.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.class.cmp(&b.class)));
    rows.truncate(most);
}
