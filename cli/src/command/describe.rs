//! Objects in a few words: what every command says of an object that it mentions.

use std::collections::HashMap;

use hprof::{Content, ObjectId, ObjectIndex, Snapshot, Value};

use crate::report::ObjectRef;

/// Characters of a string that a mention shows.
const MENTIONED: usize = 80;

/// Mentions of objects, looked up together: each costs a walk over a piece of the file.
pub(super) struct Mentions {
    by_object: HashMap<ObjectIndex, ObjectRef>,
}

impl Mentions {
    pub(super) fn new(snapshot: &Snapshot, objects: impl IntoIterator<Item = ObjectIndex>) -> Self {
        let mut objects: Vec<ObjectIndex> = objects.into_iter().collect();
        objects.sort_unstable();
        objects.dedup();
        let texts = texts(snapshot, &objects, MENTIONED);
        let ids = snapshot.ids(&objects);
        let by_object = objects
            .iter()
            .zip(ids)
            .zip(texts)
            .map(|((&object, id), text)| {
                let mention = ObjectRef {
                    id: id.unwrap_or_default().to_string(),
                    class: Some(snapshot.name(object)),
                    length: snapshot.array_length(object),
                    text,
                };
                (object, mention)
            })
            .collect();
        Self { by_object }
    }

    /// A mention of an object that was looked up.
    pub(super) fn of(&self, object: ObjectIndex) -> Option<ObjectRef> {
        self.by_object.get(&object).cloned()
    }

    /// What a reference leads to; `None` when it is null.
    pub(super) fn of_value(&self, value: Value) -> Option<ObjectRef> {
        match value {
            Value::Object(ObjectId::NULL, _) => None,
            Value::Object(_, Some(object)) => self.of(object),
            Value::Object(id, None) => Some(ObjectRef {
                id: id.to_string(),
                class: None,
                length: None,
                text: None,
            }),
            _ => None,
        }
    }
}

/// The text of strings and the values of boxed values; `None` for other objects.
pub(super) fn texts(
    snapshot: &Snapshot,
    objects: &[ObjectIndex],
    limit: usize,
) -> Vec<Option<String>> {
    let mut texts = snapshot.strings(objects, limit);
    let boxes: Vec<usize> = (0..objects.len())
        .filter(|&i| texts[i].is_none() && is_box(snapshot, objects[i]))
        .collect();
    let wanted: Vec<ObjectIndex> = boxes.iter().map(|&i| objects[i]).collect();
    for (i, record) in boxes.into_iter().zip(snapshot.read_all(&wanted)) {
        if let Some(Content::Instance(fields)) = record.map(|r| r.content) {
            let value = fields.iter().find(|f| f.name == "value");
            texts[i] = value.and_then(|f| f.value).and_then(literal);
        }
    }
    texts
}

fn is_box(snapshot: &Snapshot, object: ObjectIndex) -> bool {
    const BOXES: [&str; 8] = [
        "Boolean",
        "Byte",
        "Character",
        "Double",
        "Float",
        "Integer",
        "Long",
        "Short",
    ];
    let class = snapshot.class_of(object).map(|c| &snapshot.classes()[c]);
    class.is_some_and(|class| {
        let simple = class.name.strip_prefix("java.lang.");
        class.loader.is_null() && simple.is_some_and(|name| BOXES.contains(&name))
    })
}

/// A primitive value as in Java source, without a suffix; `None` for references.
pub(super) fn literal(value: Value) -> Option<String> {
    Some(match value {
        Value::Object(..) => return None,
        Value::Boolean(v) => v.to_string(),
        Value::Char(unit) => match char::from_u32(u32::from(unit)) {
            Some(c) if !c.is_control() && c != '\'' && c != '\\' => format!("'{c}'"),
            _ => format!("'\\u{unit:04x}'"),
        },
        Value::Float(v) => format!("{v:?}"),
        Value::Double(v) => format!("{v:?}"),
        Value::Byte(v) => v.to_string(),
        Value::Short(v) => v.to_string(),
        Value::Int(v) => v.to_string(),
        Value::Long(v) => v.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_read_as_in_java() {
        let shown = |value| literal(value).unwrap();
        assert_eq!(shown(Value::Char(u16::from(b'a'))), "'a'");
        assert_eq!(shown(Value::Char(0)), "'\\u0000'");
        assert_eq!(shown(Value::Char(0xd800)), "'\\ud800'");
        assert_eq!(shown(Value::Double(1.0)), "1.0");
        assert_eq!(shown(Value::Float(f32::NAN)), "NaN");
        assert_eq!(shown(Value::Byte(-1)), "-1");
        assert_eq!(literal(Value::Object(ObjectId(8), None)), None);
    }
}
