//! Detects weak maps whose values keep their own keys alive.

use std::collections::{BTreeMap, BTreeSet};

use hprof::ObjectIndex;
use hprof::answers::{Content, Value};

use super::Finding;
use crate::evidence::context::SuspectContext;
use crate::sentence::Evidence;

const ENTRIES: usize = 64;
/// Maximum number of references to follow from a value to its key, and maximum number of objects to visit in the
/// searches of all values together.
const DEPTH: usize = 6;
const OBJECTS: usize = 1 << 13;
/// Maximum number of elements to follow of one array.
const ELEMENTS: u32 = 64;

pub(super) fn find(context: &SuspectContext<'_>) -> Option<Finding> {
    let table = context.first_via(|v| v == "java.util.WeakHashMap.table")?;
    let at = context.steps.iter().position(|&s| s == table)?;
    let is_entry = |&s: &_| context.class(s) == "java.util.WeakHashMap$Entry";
    let content = context.candidate.content.iter().copied();
    let entry = context.steps[at + 1..]
        .iter()
        .copied()
        .chain(content)
        .find(is_entry)?;
    let entries = context.members(entry, ENTRIES);
    let keys = context.field(&entries, "referent");
    let values = context.field(&entries, "value");
    // A map from each value to its key.
    let pairs: BTreeMap<ObjectIndex, ObjectIndex> = values
        .into_iter()
        .zip(keys)
        .filter_map(|(value, key)| Some((value?, key?)))
        .collect();
    let hold = count_self_holding(context, &pairs);
    if hold * 2 < pairs.len() || hold == 0 {
        return None;
    }
    let sentence = Evidence::WeakMapValues {
        referring: hold as u64,
        checked: pairs.len() as u64,
    };
    Some(Finding::new("weak-map", sentence).mark_certain())
}

/// Returns the number of values from which strong references lead to their own key.
fn count_self_holding(
    context: &SuspectContext<'_>,
    pairs: &BTreeMap<ObjectIndex, ObjectIndex>,
) -> usize {
    // The search from all values of the map runs level by level, so that objects that are adjacent in the file are read
    // together.
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
        let records = context.snapshot.read_all(&objects);
        let mut next: Vec<(ObjectIndex, ObjectIndex)> = Vec::new();
        for (&(value, _), record) in level.iter().zip(records) {
            let Some(record) = record else { continue };
            next.extend(strong(context, &record.content).map(|target| (value, target)));
        }
        next.truncate(OBJECTS);
        level = next;
    }
    hold.len()
}

/// Returns the objects that an object refers to strongly. Class objects are left out.
fn strong<'a>(
    context: &'a SuspectContext<'_>,
    content: &'a Content<'_>,
) -> impl Iterator<Item = ObjectIndex> + 'a {
    let classes = context.snapshot.classes();
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
        .filter(|&o| context.snapshot.represents(o).is_none())
}
