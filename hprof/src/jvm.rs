//! What the heap says of its JVM: the system properties are objects like any other.

use crate::ids::ObjectIndex;
use crate::object::{Content, Record, Value};
use crate::snapshot::Snapshot;

/// Entries looked at; a JVM has some hundred system properties.
const ENTRIES: usize = 1 << 14;
/// Characters read of a key or value.
const TEXT: usize = 256;

impl Snapshot {
    /// The JVM's version: its system property `java.vm.version`.
    #[must_use]
    pub fn jvm(&self) -> Option<String> {
        self.system_property("java.vm.version")
    }

    /// A system property, from `java.lang.System.props`.
    ///
    /// Cost: reads a few hundred objects.
    #[must_use]
    pub fn system_property(&self, key: &str) -> Option<String> {
        let system = *self.classes().by_name("java.lang.System").first()?;
        let properties = object(self.static_value(system, "props")?)?;
        let properties = self.read(properties).ok()?;
        // Since JDK 9 properties are kept in a map of their own, before in the table inherited.
        let table = match field(&properties, "map") {
            Some(map) => field(&self.read(map).ok()?, "table")?,
            None => field(&properties, "table")?,
        };
        let table = self.read(table).ok()?;
        let Content::Array(buckets) = &table.content else {
            return None;
        };
        let mut entries: Vec<ObjectIndex> = buckets
            .elements(0..ENTRIES as u32)
            .filter_map(object)
            .collect();
        let mut seen = 0;
        while !entries.is_empty() && seen < ENTRIES {
            seen += entries.len();
            let records: Vec<Record<'_>> = self.read_all(&entries).into_iter().flatten().collect();
            for entry in &records {
                let name = field(entry, "key").and_then(|k| self.string(k, TEXT));
                if name.is_some_and(|n| n == key) {
                    let value = field(entry, "val").or_else(|| field(entry, "value"))?;
                    return self.string(value, TEXT);
                }
            }
            // Entries of one bucket are a list; a large one is a tree with its first entry.
            entries = records
                .iter()
                .filter_map(|e| field(e, "next").or_else(|| field(e, "first")))
                .collect();
        }
        None
    }
}

fn object(value: Value) -> Option<ObjectIndex> {
    match value {
        Value::Object(_, target) => target,
        _ => None,
    }
}

fn field(record: &Record<'_>, name: &str) -> Option<ObjectIndex> {
    let Content::Instance(fields) = &record.content else {
        return None;
    };
    fields
        .iter()
        .find(|f| f.name == name)
        .and_then(|f| object(f.value?))
}
