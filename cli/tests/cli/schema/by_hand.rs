//! Compares two versions of the JSON schemas for reports: old schemas that were written by hand, and current schemas
//! that are generated. Both must accept and reject the same reports. Keys that are only in the generated schemas are
//! not compared.

use std::collections::BTreeSet;
use std::io::Read;

use flate2::read::GzDecoder;
use jsonschema::Validator;
use serde_json::{Value, json};

/// The schemas that were written by hand, by the name of their report.
const BY_HAND: &[u8] = include_bytes!("by-hand.json.gz");

/// Differences that are allowed between the two schemas. Each entry has the name of the report, the beginning of the
/// path, and the reason.
const DIFFERENCES: [(&str, &str, &str); 2] = [
    (
        "heap",
        "/suspects/*/stacks/*/sampled",
        "the schema by hand did not describe this key, so it accepted any value",
    ),
    (
        "sites",
        "/frames/*/(new key)",
        "later versions may add keys, but the schema by hand rejected them here",
    ),
];

/// Maximum number of elements of an array that the test changes.
const ELEMENTS: usize = 3;

fn by_hand() -> Value {
    let mut text = String::new();
    let mut decoder = GzDecoder::new(BY_HAND);
    decoder.read_to_string(&mut text).expect("gzip");
    serde_json::from_str(&text).expect("JSON")
}

/// The generated schema of a report, and the one that was written by hand.
struct Both {
    name: String,
    by_hand: Validator,
    generated: Validator,
}

impl Both {
    fn of(name: &str) -> Self {
        let validator = |schema: &Value| jsonschema::validator_for(schema).expect("a valid schema");
        let by_hand = &by_hand()[name];
        let mut known = BTreeSet::new();
        add_keys(by_hand, &mut known);
        let mut generated = super::schema(name);
        keep_keys(&mut generated, &known);
        Self {
            name: name.to_owned(),
            by_hand: validator(by_hand),
            generated: validator(&generated),
        }
    }

    /// Checks that both schemas accept, or that both reject, a report that was changed at a path.
    fn agree(&self, report: &Value, path: &str, change: &str) {
        let (old, new) = (
            self.by_hand.is_valid(report),
            self.generated.is_valid(report),
        );
        let is_known =
            |(name, begin, _): &&(&str, &str, &str)| *name == self.name && path.starts_with(begin);
        if old == new || DIFFERENCES.iter().any(|known| is_known(&known)) {
            return;
        }
        let faults = |of: &Validator| {
            let faults = of
                .iter_errors(report)
                .map(|e| format!("{}: {e}", e.instance_path()));
            faults.collect::<Vec<_>>()
        };
        panic!(
            "{}, {path} {change}: by hand {:?}, generated {:?}",
            self.name,
            faults(&self.by_hand),
            faults(&self.generated)
        );
    }
}

/// Adds to `keys` all keys that a schema describes.
fn add_keys(schema: &Value, keys: &mut BTreeSet<String>) {
    if let Some(Value::Object(properties)) = schema.get("properties") {
        keys.extend(properties.keys().cloned());
    }
    match schema {
        Value::Object(map) => map.values().for_each(|below| add_keys(below, keys)),
        Value::Array(list) => list.iter().for_each(|below| add_keys(below, keys)),
        _ => {}
    }
}

/// Removes keys of later versions from a schema.
fn keep_keys(schema: &mut Value, known: &BTreeSet<String>) {
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.retain(|key, _| known.contains(key));
    }
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.retain(|key| key.as_str().is_none_or(|key| known.contains(key)));
    }
    match schema {
        Value::Object(map) => map.values_mut().for_each(|below| keep_keys(below, known)),
        Value::Array(list) => list.iter_mut().for_each(|below| keep_keys(below, known)),
        _ => {}
    }
}

/// Checks that both schemas accept a report, and that they agree on each changed version of the report. Reports that
/// are newer than the schemas written by hand have only a generated schema.
pub(super) fn agree(name: &str, report: &Value) {
    if by_hand().get(name).is_none() {
        return;
    }
    let both = Both::of(name);
    let mut report = report.clone();
    shorten(&mut report);
    assert!(both.by_hand.is_valid(&report), "{name}");
    assert!(both.generated.is_valid(&report), "{name}");
    let mut places = Vec::new();
    let mut seen = BTreeSet::new();
    visit(&report, ("", ""), &mut |pointer, path| {
        if seen.insert(path.to_owned()) {
            places.push((pointer.to_owned(), path.to_owned()));
        }
    });
    for (pointer, path) in &places {
        let value = report.pointer(pointer).cloned().unwrap_or_default();
        let mut change = |new: Value| {
            if let Some(place) = report.pointer_mut(pointer) {
                let told = new.to_string();
                *place = new;
                both.agree(&report, path, &format!("is {told:.60}"));
            }
        };
        others(&value).into_iter().for_each(&mut change);
        change(value.clone());
        remove_keys(&both, &mut report, (pointer, path));
    }
}

/// Changes the keys of an object in a report: removes each key in turn, and adds an unknown key. After each change,
/// checks that the schema written by hand and the generated one both accept or both reject the report.
fn remove_keys(both: &Both, report: &mut Value, (pointer, path): (&str, &str)) {
    let Some(Value::Object(whole)) = report.pointer(pointer).cloned() else {
        return;
    };
    let mut change = |object: serde_json::Map<String, Value>, path: &str, what: &str| {
        if let Some(place) = report.pointer_mut(pointer) {
            *place = object.into();
            both.agree(report, path, what);
        }
    };
    for key in whole.keys() {
        let mut object = whole.clone();
        object.remove(key);
        change(object, &format!("{path}/{key}"), "removed");
    }
    let mut object = whole.clone();
    object.insert("another".to_owned(), json!(1));
    change(object, &format!("{path}/(new key)"), "added");
    change(whole, path, "as it was");
}

/// Returns values with which the test replaces `value`.
fn others(value: &Value) -> Vec<Value> {
    let mut others = vec![
        Value::Null,
        json!(true),
        json!(-1),
        json!(0),
        json!(1),
        json!(4),
        json!(1.5),
        json!(1001),
        json!(""),
        json!("another word"),
        json!("0x1f"),
        json!([]),
        json!([1]),
        json!(["word"]),
        json!({}),
    ];
    if let Value::Array(list) = value {
        others.push(list.iter().take(1).cloned().collect());
        let many = list
            .iter()
            .cycle()
            .take(if list.is_empty() { 0 } else { 100 });
        others.push(many.cloned().collect());
    }
    others
}

/// Shortens the arrays of a report to at most [`ELEMENTS`] elements. The test changes every value in turn and checks
/// the whole report each time, so long arrays would make it slow.
fn shorten(value: &mut Value) {
    match value {
        Value::Array(list) => {
            list.truncate(ELEMENTS);
            list.iter_mut().for_each(shorten);
        }
        Value::Object(map) => map.values_mut().for_each(shorten),
        _ => {}
    }
}

/// Calls `each` for every value, with its JSON pointer and its path. Paths do not contain the numbers of array
/// elements.
fn visit(value: &Value, (pointer, path): (&str, &str), each: &mut dyn FnMut(&str, &str)) {
    each(pointer, path);
    match value {
        Value::Array(list) => {
            for (at, value) in list.iter().enumerate() {
                visit(
                    value,
                    (&format!("{pointer}/{at}"), &format!("{path}/*")),
                    each,
                );
            }
        }
        Value::Object(map) => {
            for (key, value) in map {
                visit(
                    value,
                    (&format!("{pointer}/{key}"), &format!("{path}/{key}")),
                    each,
                );
            }
        }
        _ => {}
    }
}

/// Returns an example of a report, with every key of a schema.
fn example(root: &Value, schema: &Value) -> Value {
    if let Some(Value::String(name)) = schema.get("$ref") {
        let of = root.pointer(name.trim_start_matches('#'));
        return example(root, of.expect("a definition"));
    }
    if let Some(Value::Array(any)) = schema.get("anyOf") {
        return example(root, any.last().expect("a schema"));
    }
    if let Some(value) = schema.get("const") {
        return value.clone();
    }
    if let Some(Value::Array(words)) = schema.get("enum") {
        let word = words.iter().find(|word| !word.is_null());
        return word.cloned().unwrap_or_default();
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) => kinds[0].as_str(),
        kind => kind.as_str(),
    };
    match kind {
        Some("object") => {
            let keys = schema["properties"].as_object().expect("keys").iter();
            keys.map(|(key, schema)| (key.clone(), example(root, schema)))
                .collect()
        }
        Some("array") => {
            let least = schema["minItems"].as_u64().unwrap_or(1).max(1);
            (0..least)
                .map(|_| example(root, &schema["items"]))
                .collect()
        }
        Some("string") => json!("0x1"),
        Some("boolean") => json!(true),
        _ => schema.get("minimum").cloned().unwrap_or(json!(1)),
    }
}

#[test]
fn schemas_agree_on_reports_with_every_key() {
    let all = by_hand();
    let all = all.as_object().expect("schemas");
    assert_eq!(all.len(), 17);
    for (name, schema) in all {
        agree(name, &example(schema, schema));
    }
}
