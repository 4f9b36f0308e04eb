//! Keys of hash tables that are equal in all their fields and yet different keys.

use std::collections::HashMap;

use hprof::{ClassIndex, Content, ObjectIndex, Value};

use super::Finding;
use crate::case::Case;
use crate::names;
use crate::size::grouped;

const LOOKED_AT: usize = 2048;
/// Characters of a string that are compared.
const CHARACTERS: usize = 200;

/// A key's field as it is compared.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Part {
    Bits(u64),
    Text(String),
    /// Another object: the same one only.
    Object(Option<ObjectIndex>),
}

pub(super) fn find(case: &Case<'_>) -> Option<Finding> {
    let is_node = |class: &str| {
        class.starts_with("java.util.HashMap$")
            || class.starts_with("java.util.LinkedHashMap$")
            || class.starts_with("java.util.concurrent.ConcurrentHashMap$")
            || class == "java.util.Hashtable$Entry"
    };
    let is_entry = |&&s: &&_| is_node(case.class(s)) && !case.class(s).ends_with("[]");
    let content = case.candidate.content.iter();
    // The innermost table's.
    let node = *case.steps.iter().rev().chain(content).find(is_entry)?;
    let nodes = case.members(node, LOOKED_AT);
    let (keys, class) = keys(case, &nodes)?;
    let parts = parts(case, &keys);
    let mut known: HashMap<&[Part], u64> = HashMap::new();
    for part in &parts {
        *known.entry(part).or_default() += 1;
    }
    let alike: u64 = known.values().filter(|&&n| n > 1).sum();
    let all = parts.len() as u64;
    if all < 16 || alike * 2 < all {
        return None;
    }
    let name = &case.snapshot.classes()[class].name;
    let sentence = format!(
        "hash keys without equals: of {} keys of class {name} looked at, {} have the same fields as another",
        grouped(all),
        grouped(alike)
    );
    Some(Finding::new("hash-key", sentence).certain())
}

/// The keys of these nodes, of the class that most of them have, if it is the application's.
fn keys(case: &Case<'_>, nodes: &[ObjectIndex]) -> Option<(Vec<ObjectIndex>, ClassIndex)> {
    let mut keys: Vec<ObjectIndex> = case.field(nodes, "key").into_iter().flatten().collect();
    keys.sort_unstable();
    keys.dedup();
    let mut classes: HashMap<ClassIndex, u64> = HashMap::new();
    for &key in &keys {
        if case.snapshot.represents(key).is_none()
            && let Some(class) = case.snapshot.class_of(key)
        {
            *classes.entry(class).or_default() += 1;
        }
    }
    let (&class, _) = classes.iter().max_by_key(|&(&c, &n)| (n, c))?;
    let fields = case.snapshot.classes().chain(class);
    let has_fields = fields
        .into_iter()
        .any(|c| !case.snapshot.classes()[c].fields.is_empty());
    if names::is_runtime(case.snapshot, class) || !has_fields {
        return None;
    }
    keys.retain(|&k| case.snapshot.class_of(k) == Some(class));
    Some((keys, class))
}

/// What each key is made of.
fn parts(case: &Case<'_>, keys: &[ObjectIndex]) -> Vec<Vec<Part>> {
    let records = case.snapshot.read_all(keys);
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
    let texts = case.snapshot.strings(&objects, CHARACTERS);
    let boxed = case.snapshot.field_values(&objects, ["value"]);
    let known: HashMap<ObjectIndex, Part> = objects
        .iter()
        .zip(texts.into_iter().zip(boxed))
        .map(|(&object, (text, boxed))| {
            let number = boxed
                .and_then(|b| b[0])
                .filter(|_| is_box(case, object))
                .and_then(bits);
            let part = match (text, number) {
                (Some(text), _) => Part::Text(text),
                (None, Some(bits)) => Part::Bits(bits),
                (None, None) => Part::Object(Some(object)),
            };
            (object, part)
        })
        .collect();
    let part = |value: &Option<Value>| match value {
        Some(Value::Object(_, Some(object))) => known[object].clone(),
        Some(value) => bits(*value).map_or(Part::Object(None), Part::Bits),
        None => Part::Object(None),
    };
    values
        .iter()
        .map(|fields| fields.iter().map(part).collect())
        .collect()
}

/// Whether an object is a boxed primitive value.
fn is_box(case: &Case<'_>, object: ObjectIndex) -> bool {
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
    let name = case.snapshot.name(object);
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
