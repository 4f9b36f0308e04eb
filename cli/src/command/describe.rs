//! Objects in a few words: what every command says of an object that it mentions.

use std::collections::HashMap;

use heapdiff_diff::values::texts;
use heapdiff_model::show::{ObjectRef, SelectedTotals};
use hprof::answers::Value;
use hprof::{ObjectId, ObjectIndex, Snapshot};

/// The most characters of a string that a mention shows.
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

/// All objects that a selector names.
pub(super) fn totals(snapshot: &Snapshot, objects: &[ObjectIndex]) -> SelectedTotals {
    SelectedTotals {
        objects: objects.len() as u64,
        shallow_bytes: objects.iter().map(|&o| snapshot.shallow_bytes(o)).sum(),
    }
}
