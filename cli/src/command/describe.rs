//! Short descriptions of objects. All commands use them for the objects that they mention.

use std::collections::HashMap;

use heapdiff_diff::values::texts;
use heapdiff_model::show::{ObjectRef, SelectedTotals};
use hprof::answers::Value;
use hprof::{ObjectId, ObjectIndex, Snapshot};

/// Maximum number of characters of a string in a description.
const MENTIONED: usize = 80;

/// Descriptions of several objects. They are looked up together, because each lookup reads a part of the dump file.
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

    /// Returns the description of an object; `None` if the object was not given to [`Self::new`].
    pub(super) fn of(&self, object: ObjectIndex) -> Option<ObjectRef> {
        self.by_object.get(&object).cloned()
    }

    /// Returns the description of the object that a reference points to; `None` if the reference is null.
    pub(super) fn describe_value(&self, value: Value) -> Option<ObjectRef> {
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

/// Returns the number and size of all selected objects.
pub(super) fn totals(snapshot: &Snapshot, objects: &[ObjectIndex]) -> SelectedTotals {
    SelectedTotals {
        objects: objects.len() as u64,
        shallow_bytes: objects.iter().map(|&o| snapshot.shallow_bytes(o)).sum(),
    }
}
