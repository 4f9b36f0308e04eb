//! Facts about the JVM that wrote the dump, read from the objects that store the JVM's system properties.

use crate::answers::objects::object::{Content, Record, Value};
use crate::error::Warning;
use crate::flaw::Flaw;
use crate::ids::ObjectIndex;
use crate::sizes::layout::LayoutSource;
use crate::snapshot::Snapshot;

/// Maximum number of system properties to read. A JVM has about a hundred of them.
const ENTRIES: usize = 1 << 14;
/// Maximum number of characters that are read of a property's key.
const KEY: usize = 256;
/// Maximum number of characters that are read of a property's value. The value of `sun.java.command` has all arguments
/// of the program.
const VALUE: usize = 1 << 16;
/// The properties that identify the JVM and its object layout.
pub(crate) const PROPERTIES: [&str; 4] = [
    VERSION,
    "java.vm.compressedOopsMode",
    "java.vm.name",
    "java.specification.version",
];
const VERSION: &str = "java.vm.version";
/// The first JDK version in which every HotSpot build with compressed references sets `java.vm.compressedOopsMode`.
const TELLS_COMPRESSION: u32 = 11;

impl Snapshot {
    /// Returns the JVM's version, from its system property `java.vm.version`.
    ///
    /// Cost: as [`Snapshot::system_properties`], on the first call.
    #[must_use]
    pub fn jvm(&self) -> Option<String> {
        let read = || self.system_properties([VERSION])[0].take();
        self.derived.jvm.get_or_init(read).clone()
    }

    /// Returns the values of the system properties `keys`, read from `java.lang.System.props`. `None` if a property is
    /// not set or cannot be read.
    ///
    /// Cost: reads the few hundred strings of the properties.
    #[must_use]
    pub fn system_properties<const N: usize>(&self, keys: [&str; N]) -> [Option<String>; N] {
        let mut found = [const { None }; N];
        let mut entries = self.property_entries().unwrap_or_default();
        let mut seen = 0;
        while !entries.is_empty() && seen < ENTRIES {
            seen += entries.len();
            let records: Vec<Record<'_>> = self.read_all(&entries).into_iter().flatten().collect();
            let named = |e: &Record<'_>| Some((field(e, "key")?, value(e)?));
            let (names, values): (Vec<ObjectIndex>, Vec<ObjectIndex>) =
                records.iter().filter_map(named).unzip();
            let texts = self.strings(&names, KEY);
            for (found, key) in found.iter_mut().zip(keys) {
                let at = texts.iter().position(|t| t.as_deref() == Some(key));
                if let (None, Some(at)) = (&found, at) {
                    *found = self.string(values[at], VALUE);
                }
            }
            // The entries of a bucket form a list. A large bucket is a tree object that refers to its first entry.
            entries = records
                .iter()
                .filter_map(|e| field(e, "next").or_else(|| field(e, "first")))
                .collect();
        }
        found
    }

    /// Returns the first entry of each bucket of the hash table with the system properties.
    fn property_entries(&self) -> Option<Vec<ObjectIndex>> {
        let system = *self.classes().by_name("java.lang.System").first()?;
        let properties = self.read(object(self.static_value(system, "props")?)?);
        let properties = properties.ok()?;
        // Since JDK 9, `Properties` stores its entries in a separate map. Before JDK 9, the entries are in the
        // inherited hash table.
        let table = match field(&properties, "map") {
            Some(map) => field(&self.read(map).ok()?, "table")?,
            None => field(&properties, "table")?,
        };
        let table = self.read(table).ok()?;
        let Content::Array(buckets) = &table.content else {
            return None;
        };
        let buckets = buckets.elements(0..ENTRIES as u32);
        Some(buckets.filter_map(object).collect())
    }

    /// Returns a warning if the JVM's system properties contradict the inferred layout ([`Snapshot::layout`]) about
    /// compressed references. Object sizes depend on the layout, so they might be wrong. No objects are missing.
    ///
    /// Cost: as [`Snapshot::system_properties`].
    #[must_use]
    pub fn layout_doubt(&self) -> Option<Warning> {
        self.derived.doubt.get_or_init(|| self.doubt()).clone()
    }

    fn doubt(&self) -> Option<Warning> {
        if self.header().id_size != 8 {
            return None;
        }
        let [_, mode, name, version] = self.system_properties(PROPERTIES);
        // HotSpot sets `java.vm.compressedOopsMode` if references are compressed. Since JDK 11, all builds of HotSpot
        // do so. Other JVMs never set the property.
        if mode.is_none() {
            let hotspot = name.is_some_and(|n| n.contains("HotSpot") || n.contains("OpenJDK"));
            let major = version.and_then(|v| v.parse::<u32>().ok());
            if !hotspot || major.is_none_or(|v| v < TELLS_COMPRESSION) {
                return None;
            }
        }
        let layout = self.layout();
        let stated = if mode.is_some() { 4 } else { 8 };
        (layout.reference != stated).then(|| {
            Warning::new(&Flaw::OtherLayout {
                mode,
                is_measured: layout.source == LayoutSource::Addresses,
                reference: layout.reference,
            })
        })
    }
}

/// Returns the value of an entry of a `ConcurrentHashMap` (field `val`) or of a `Hashtable` (field `value`).
fn value(entry: &Record<'_>) -> Option<ObjectIndex> {
    field(entry, "val").or_else(|| field(entry, "value"))
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
