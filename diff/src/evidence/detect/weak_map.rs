//! Detects weak maps whose values keep their own keys alive.

use std::collections::{BTreeMap, BTreeSet};

use hprof::answers::{Content, Value};
use hprof::{ObjectIndex, Snapshot};

use super::Finding;
use crate::evidence::context::SuspectContext;
use crate::sentence::Evidence;
use crate::trie::StepId;

/// The class of the entries of a weak map.
pub(crate) const ENTRY: &str = "java.util.WeakHashMap$Entry";
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
    let is_entry = |&s: &_| context.class(s) == ENTRY;
    let content = context.candidate.content.iter().copied();
    let entry = context.steps[at + 1..]
        .iter()
        .copied()
        .chain(content)
        .find(is_entry)?;
    let [referring, checked] = context.fact(
        entry,
        |_| self_holding_values(context, entry),
        |facts| facts.self_holding,
    )?;
    let sentence = Evidence::WeakMapValues { referring, checked };
    Some(Finding::new("weak-map", sentence).mark_certain())
}

/// Returns the number of entries of a weak map whose values hold their own key, and the number of entries that were
/// read. Returns `None` if fewer than half of the entries hold their own key.
pub(crate) fn self_holding_values(context: &SuspectContext<'_>, entry: StepId) -> Option<[u64; 2]> {
    let snapshot = context.dump()?;
    let entries = context.members(entry, ENTRIES);
    let keys = context.field(&entries, "referent");
    let values = context.field(&entries, "value");
    // A map from each value to its key.
    let pairs: BTreeMap<ObjectIndex, ObjectIndex> = values
        .into_iter()
        .zip(keys)
        .filter_map(|(value, key)| Some((value?, key?)))
        .collect();
    let hold = count_self_holding(snapshot, &pairs);
    if hold * 2 < pairs.len() || hold == 0 {
        return None;
    }
    Some([hold as u64, pairs.len() as u64])
}

/// Returns the number of values from which strong references lead to their own key.
fn count_self_holding(snapshot: &Snapshot, pairs: &BTreeMap<ObjectIndex, ObjectIndex>) -> usize {
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
        let records = snapshot.read_all(&objects);
        let mut next: Vec<(ObjectIndex, ObjectIndex)> = Vec::new();
        for (&(value, _), record) in level.iter().zip(records) {
            let Some(record) = record else { continue };
            next.extend(strong(snapshot, &record.content).map(|target| (value, target)));
        }
        next.truncate(OBJECTS);
        level = next;
    }
    hold.len()
}

/// Returns the objects that an object refers to strongly. Class objects are left out.
fn strong<'a>(
    snapshot: &'a Snapshot,
    content: &'a Content<'_>,
) -> impl Iterator<Item = ObjectIndex> + 'a {
    let classes = snapshot.classes();
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
        .filter(|&o| snapshot.represents(o).is_none())
}
