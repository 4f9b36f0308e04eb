//! The exact counts of each class, for `trace top --by class`.

use std::collections::HashMap;

use heapdiff_model::sites::{CountRow, CountedClassRow};
use heapdiff_model::trace::CountedClasses;
use heapdiff_trace::{Candidate, CountedClass, Trace, UNKNOWN_CLASS};

use crate::failure::{Failure, Result};

/// Number of rows that are stored in addition to the requested rows. The larger this number is, the less often the rows
/// are sorted and truncated.
const SPARE: usize = 4096;

/// The counts of all classes together, and the counts of single classes.
#[derive(Debug)]
pub(super) struct Counts {
    pub(super) all: CountedClasses,
    of: HashMap<String, CountRow>,
}

impl Counts {
    /// Reads the counts of a run. Keeps the counts of the `most` classes with the most bytes, and of the classes of
    /// `candidates` (possible leaks). Returns `None` if the agent counted no classes.
    pub(super) fn read(
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

    /// Returns the count of the class of a possible leak.
    pub(super) fn of_class(&self, class: &str) -> Option<CountRow> {
        self.of.get(class).copied()
    }
}

/// Sorts rows by bytes, largest first, and keeps the first `most` rows.
fn largest(rows: &mut Vec<CountedClassRow>, most: usize) {
    rows.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.class.cmp(&b.class)));
    rows.truncate(most);
}
