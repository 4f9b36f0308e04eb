//! Weak maps whose values keep their own keys.

use std::collections::{BTreeMap, BTreeSet};

use hprof::{Content, ObjectIndex, Value};

use super::Finding;
use crate::case::Case;
use crate::size::grouped;

const ENTRIES: usize = 64;
/// Steps from a value on which its key is looked for, and objects.
const DEPTH: usize = 6;
const OBJECTS: usize = 1 << 13;
/// Elements looked at of one array.
const ELEMENTS: u32 = 64;

pub(super) fn find(case: &Case<'_>) -> Option<Finding> {
    let table = case.held_via(|v| v == "java.util.WeakHashMap.table")?;
    let at = case.steps.iter().position(|&s| s == table)?;
    let is_entry = |&s: &_| case.class(s) == "java.util.WeakHashMap$Entry";
    let content = case.candidate.content.iter().copied();
    let entry = case.steps[at + 1..]
        .iter()
        .copied()
        .chain(content)
        .find(is_entry)?;
    let entries = case.members(entry, ENTRIES);
    let keys = case.field(&entries, "referent");
    let values = case.field(&entries, "value");
    // Where each value's own key is.
    let pairs: BTreeMap<ObjectIndex, ObjectIndex> = values
        .into_iter()
        .zip(keys)
        .filter_map(|(value, key)| Some((value?, key?)))
        .collect();
    let hold = pairs_that_hold(case, &pairs);
    if hold * 2 < pairs.len() || hold == 0 {
        return None;
    }
    let sentence = format!(
        "a WeakHashMap whose values refer to their keys, so no entry ever goes ({} of {} entries looked at)",
        grouped(hold as u64),
        grouped(pairs.len() as u64)
    );
    Some(Finding::new("weak-map", sentence).certain())
}

/// How many values reach their own key by strong references.
fn pairs_that_hold(case: &Case<'_>, pairs: &BTreeMap<ObjectIndex, ObjectIndex>) -> usize {
    // All searches at once, level by level, so that what lies together is read together.
    let mut seen: BTreeSet<(ObjectIndex, ObjectIndex)> = BTreeSet::new();
    let mut level: Vec<(ObjectIndex, ObjectIndex)> = pairs.iter().map(|(&v, _)| (v, v)).collect();
    let mut hold: BTreeSet<ObjectIndex> = BTreeSet::new();
    for _ in 0..DEPTH {
        for &(value, at) in &level {
            if pairs.get(&value) == Some(&at) {
                hold.insert(value);
            }
        }
        level.retain(|&(value, at)| !hold.contains(&value) && seen.insert((value, at)));
        if level.is_empty() || seen.len() > OBJECTS {
            break;
        }
        let objects: Vec<ObjectIndex> = level.iter().map(|l| l.1).collect();
        let records = case.snapshot.read_all(&objects);
        let mut next: Vec<(ObjectIndex, ObjectIndex)> = Vec::new();
        for (&(value, _), record) in level.iter().zip(records) {
            let Some(record) = record else { continue };
            next.extend(strong(case, &record.content).map(|target| (value, target)));
        }
        next.truncate(OBJECTS);
        level = next;
    }
    hold.len()
}

/// What an object refers to strongly, classes excepted.
fn strong<'a>(
    case: &'a Case<'_>,
    content: &'a Content<'_>,
) -> impl Iterator<Item = ObjectIndex> + 'a {
    let classes = case.snapshot.classes();
    let (fields, array) = match content {
        Content::Instance(fields) => (Some(fields), None),
        Content::Array(array) => (None, Some(array)),
        Content::Class(_) => (None, None),
    };
    let fields = fields.into_iter().flatten().filter(move |f| {
        f.name != "referent" || &*classes[f.class].name != "java.lang.ref.Reference"
    });
    let fields = fields.filter_map(|f| f.value.and_then(Value::object));
    let elements = array
        .into_iter()
        .flat_map(|a| a.elements(0..ELEMENTS))
        .filter_map(Value::object);
    fields
        .chain(elements)
        .filter(|&o| case.snapshot.represents(o).is_none())
}
