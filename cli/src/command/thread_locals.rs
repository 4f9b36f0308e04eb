//! The values of thread locals. A value is stored in the thread that set it, and not in the `ThreadLocal` object.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use heapdiff_diff::quoted;
use heapdiff_model::show::ThreadLocalValues;
use heapdiff_model::sizeof::SizeofClass;
use hprof::{ObjectIndex, Progress, Snapshot};

use super::describe::Mentions;
use crate::failure::{Failure, Result};

/// Maximum number of classes of values that are listed.
const CLASSES: usize = 3;

/// Returns the values that threads store for the thread locals among `objects`; `None` if no object is a thread local.
pub(super) fn values(
    snapshot: &Snapshot,
    dump: &Path,
    selector: &str,
    objects: &[ObjectIndex],
    command: &str,
    progress: &dyn Progress,
) -> Result<Option<ThreadLocalValues>> {
    let locals = objects.iter().copied();
    let locals: Vec<ObjectIndex> = locals.filter(|&o| snapshot.is_thread_local(o)).collect();
    if locals.is_empty() {
        return Ok(None);
    }
    let found = snapshot.thread_local_values(&locals);
    let threads: BTreeSet<ObjectIndex> = found.iter().map(|v| v.thread).collect();
    let values: BTreeSet<ObjectIndex> = found.iter().map(|v| v.value).collect();
    let values: Vec<ObjectIndex> = values.into_iter().collect();
    let retained = snapshot.retained_by_all(&values, progress);
    let retained = retained.map_err(|e| Failure::input(dump, &e))?;
    let mut classes: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for &value in &values {
        let class = classes.entry(snapshot.name(value)).or_default();
        class.0 += 1;
        class.1 += snapshot.shallow_bytes(value);
    }
    let mut classes: Vec<SizeofClass> = classes
        .into_iter()
        .map(|(class, (objects, shallow_bytes))| SizeofClass {
            class,
            objects,
            shallow_bytes,
        })
        .collect();
    classes.sort_by_key(|row| Reverse(row.objects));
    classes.truncate(CLASSES);
    let bytes = |value: ObjectIndex| snapshot.retained_bytes(value).unwrap_or(0);
    let largest = found
        .iter()
        .max_by_key(|v| (bytes(v.value), Reverse(v.thread)));
    let name_of = |thread: ObjectIndex| {
        let threads = snapshot.threads();
        let thread = threads.into_iter().find(|t| t.object == Some(thread));
        thread.and_then(|t| t.name)
    };
    let dump = quoted(&dump.display().to_string());
    let all = quoted(&format!("values of {selector}"));
    Ok(Some(ThreadLocalValues {
        threads: threads.len() as u64,
        objects: values.len() as u64,
        retained_bytes: retained.map_or(0, |r| r.bytes),
        classes,
        largest: largest.and_then(|v| Mentions::new(snapshot, [v.value]).of(v.value)),
        largest_retained_bytes: largest.map(|v| bytes(v.value)),
        largest_thread: largest.and_then(|v| name_of(v.thread)),
        next: if values.is_empty() {
            None
        } else {
            Some(format!("heapdiff {command} {dump} {all}"))
        },
    }))
}
