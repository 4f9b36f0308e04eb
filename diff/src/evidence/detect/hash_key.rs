//! Detects keys of hash tables whose fields are equal, although the table treats them as different keys.

use std::collections::HashMap;

use hprof::answers::{Content, Value};
use hprof::{ClassIndex, ObjectIndex, Snapshot};

use super::Finding;
use crate::evidence::context::SuspectContext;
use crate::names;
use crate::sentence::Evidence;
use crate::trie::StepId;

const LOOKED_AT: usize = 2048;
/// Maximum number of characters to compare of each string.
const CHARACTERS: usize = 200;

/// The value of one field of a map's key, in a form that can be compared.
#[derive(Clone, PartialEq, Eq, Hash)]
enum FieldContent {
    Bits(u64),
    Text(String),
    /// An object that is neither a string nor a boxed value. It equals only itself.
    Object(Option<ObjectIndex>),
}

pub(super) fn find(context: &SuspectContext<'_>) -> Option<Finding> {
    let is_entry = |&&s: &&_| is_node(context.class(s));
    let content = context.candidate.content.iter();
    // If there are several hash tables on the path, use the nodes of the innermost one.
    let node = *context.steps.iter().rev().chain(content).find(is_entry)?;
    let EqualKeys {
        checked,
        alike,
        class,
    } = context.fact(
        node,
        |_| equal_keys(context, node),
        |facts| facts.equal_keys.clone(),
    )?;
    let sentence = Evidence::HashKeys {
        checked,
        alike,
        class,
    };
    Some(Finding::new("hash-key", sentence).mark_certain())
}

/// True if objects of a class are nodes of a hash table.
pub(crate) fn is_node(class: &str) -> bool {
    let is_of_table = class.starts_with("java.util.HashMap$")
        || class.starts_with("java.util.LinkedHashMap$")
        || class.starts_with("java.util.concurrent.ConcurrentHashMap$")
        || class == "java.util.Hashtable$Entry";
    is_of_table && !class.ends_with("[]")
}

/// The keys of a hash table that have equal fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EqualKeys {
    /// Number of keys that were compared.
    pub(crate) checked: u64,
    /// Number of keys whose fields equal those of another key.
    pub(crate) alike: u64,
    /// Class of the keys.
    pub(crate) class: String,
}

/// Returns the number of keys with equal fields in the nodes of a hash table. Returns `None` if fewer than half of the
/// keys have the same fields as another key, or if fewer than 16 keys were compared.
pub(crate) fn equal_keys(context: &SuspectContext<'_>, node: StepId) -> Option<EqualKeys> {
    let snapshot = context.dump()?;
    let nodes = context.members(node, LOOKED_AT);
    let (keys, class) = keys(context, snapshot, &nodes)?;
    let parts = parts(snapshot, &keys);
    let mut known: HashMap<&[FieldContent], u64> = HashMap::new();
    for part in &parts {
        *known.entry(part).or_default() += 1;
    }
    let alike: u64 = known.values().filter(|&&n| n > 1).sum();
    let all = parts.len() as u64;
    if all < 16 || alike * 2 < all {
        return None;
    }
    Some(EqualKeys {
        checked: all,
        alike,
        class: snapshot.classes()[class].name.to_string(),
    })
}

/// Finds the most frequent class of keys. Returns the keys of this class, and the class. Returns `None` if the class is
/// not an application class, or has no fields.
fn keys(
    context: &SuspectContext<'_>,
    snapshot: &Snapshot,
    nodes: &[ObjectIndex],
) -> Option<(Vec<ObjectIndex>, ClassIndex)> {
    let mut keys: Vec<ObjectIndex> = context.field(nodes, "key").into_iter().flatten().collect();
    keys.sort_unstable();
    keys.dedup();
    let mut classes: HashMap<ClassIndex, u64> = HashMap::new();
    for &key in &keys {
        if snapshot.represents(key).is_none()
            && let Some(class) = snapshot.class_of(key)
        {
            *classes.entry(class).or_default() += 1;
        }
    }
    let (&class, _) = classes.iter().max_by_key(|&(&c, &n)| (n, c))?;
    let fields = snapshot.classes().chain(class);
    let has_fields = fields
        .into_iter()
        .any(|c| !snapshot.classes()[c].fields.is_empty());
    if names::is_runtime(snapshot, class) || !has_fields {
        return None;
    }
    keys.retain(|&k| snapshot.class_of(k) == Some(class));
    Some((keys, class))
}

/// Returns for each key the contents of its fields.
fn parts(snapshot: &Snapshot, keys: &[ObjectIndex]) -> Vec<Vec<FieldContent>> {
    let records = snapshot.read_all(keys);
    let values: Vec<Vec<Option<Value>>> = records
        .into_iter()
        .flatten()
        .filter_map(|r| match r.content {
            Content::Instance(fields) => Some(fields.iter().map(|f| f.value).collect()),
            _ => None,
        })
        .collect();
    let mut objects: Vec<ObjectIndex> = values
        .iter()
        .flatten()
        .filter_map(|v| v.and_then(Value::object))
        .collect();
    objects.sort_unstable();
    objects.dedup();
    let texts = snapshot.strings(&objects, CHARACTERS);
    let boxed = snapshot.field_values(&objects, ["value"]);
    let known: HashMap<ObjectIndex, FieldContent> = objects
        .iter()
        .zip(texts.into_iter().zip(boxed))
        .map(|(&object, (text, boxed))| {
            let number = boxed
                .and_then(|b| b[0])
                .filter(|_| is_box(snapshot, object))
                .and_then(bits);
            let part = match (text, number) {
                (Some(text), _) => FieldContent::Text(text),
                (None, Some(bits)) => FieldContent::Bits(bits),
                (None, None) => FieldContent::Object(Some(object)),
            };
            (object, part)
        })
        .collect();
    let part = |value: &Option<Value>| match value {
        Some(Value::Object(_, Some(object))) => known[object].clone(),
        Some(value) => bits(*value).map_or(FieldContent::Object(None), FieldContent::Bits),
        None => FieldContent::Object(None),
    };
    values
        .iter()
        .map(|fields| fields.iter().map(part).collect())
        .collect()
}

/// True if an object is a boxed primitive value.
fn is_box(snapshot: &Snapshot, object: ObjectIndex) -> bool {
    const BOXES: [&str; 8] = [
        "Boolean",
        "Character",
        "Byte",
        "Short",
        "Integer",
        "Long",
        "Float",
        "Double",
    ];
    let name = snapshot.name(object);
    let name = name.strip_prefix("java.lang.");
    name.is_some_and(|n| BOXES.contains(&n))
}

fn bits(value: Value) -> Option<u64> {
    match value {
        Value::Object(..) => None,
        Value::Float(v) => Some(u64::from(v.to_bits())),
        Value::Double(v) => Some(v.to_bits()),
        other => other.integer().map(i64::cast_unsigned),
    }
}
