//! Values of fields, text of strings, and values of boxes and primitives.

use hprof::answers::{Content, Value};
use hprof::{ObjectIndex, Snapshot};

/// Maximum number of characters of a name that is read from the heap.
pub(crate) const NAME: usize = 200;

/// Returns, for each object, the object in one of its fields.
pub(crate) fn objects(
    snapshot: &Snapshot,
    from: &[ObjectIndex],
    field: &str,
) -> Vec<Option<ObjectIndex>> {
    let values = snapshot.field_values(from, [field]).into_iter();
    values.map(|value| value?[0]?.object()).collect()
}

/// Returns, for each object, the text in one of its string fields, truncated to [`NAME`] characters.
pub(crate) fn strings(
    snapshot: &Snapshot,
    from: &[ObjectIndex],
    field: &str,
) -> Vec<Option<String>> {
    let found = objects(snapshot, from, field);
    let known: Vec<ObjectIndex> = found.iter().flatten().copied().collect();
    let mut texts = snapshot.strings(&known, NAME).into_iter();
    let texts = found
        .iter()
        .map(|object| object.and_then(|_| texts.next().flatten()));
    texts.collect()
}

/// Returns the text of each object that is a string or a boxed primitive, and `None` for other objects. Strings are
/// truncated to `limit` characters.
///
/// Cost: that of [`Snapshot::strings`], and of [`Snapshot::read_all`] for boxes.
#[must_use]
pub fn texts(snapshot: &Snapshot, objects: &[ObjectIndex], limit: usize) -> Vec<Option<String>> {
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

/// Returns a primitive value as in Java source, without a suffix; `None` for references.
#[must_use]
pub fn literal(value: Value) -> Option<String> {
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
    use hprof::ObjectId;

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
