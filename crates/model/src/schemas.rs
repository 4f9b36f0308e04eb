//! The JSON schemas of the reports, generated from the structs.
//!
//! Doc comments of the structs become descriptions in the schemas. Some keys are in every report of this version, but
//! not in reports of earlier versions. The fields of such keys have `extend("optional" = true)`, so that the schemas do
//! not require them.

use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use schemars::{JsonSchema, Schema};

/// Returns the schema of each report, with the name of its file without `.schema.json`.
#[must_use]
pub fn all() -> Vec<(&'static str, Schema)> {
    vec![
        schema::<crate::sites::AllocatedReport>("allocated"),
        schema::<crate::count::CountReport>("count"),
        schema::<crate::diff::Report>("diff"),
        schema::<crate::heap::HeapReport>("heap"),
        schema::<crate::find::FindReport>("find"),
        schema::<crate::histo::HistoReport>("histo"),
        schema::<crate::owners::OwnersReport>("owners"),
        schema::<crate::paths::PathsReport>("paths"),
        schema::<crate::query::QueryReport>("query"),
        schema::<crate::recording::RecordingReport>("recording"),
        schema::<crate::show::ShowReport>("show"),
        schema::<crate::sites::SitesReport>("sites"),
        schema::<crate::sizeof::SizeofReport>("sizeof"),
        schema::<crate::threads::ThreadsReport>("threads"),
        schema::<crate::top::TopReport>("top"),
        schema::<crate::ages::TraceAgesReport>("trace-ages"),
        schema::<crate::trace::TraceInfoReport>("trace-info"),
        schema::<crate::trace::TraceSamplesReport>("trace-samples"),
        schema::<crate::trace::TraceTopReport>("trace-top"),
        schema::<crate::waste::WasteReport>("waste"),
    ]
}

/// Returns the schema of one report. Its title is the value that the key `schema` has in the report.
fn schema<T: JsonSchema>(name: &'static str) -> (&'static str, Schema) {
    // The schema describes the JSON as it is written: a key without a value is null, unless its field has an attribute
    // that leaves the key out.
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut schema = settings
        .with_transform(Plain)
        .into_generator()
        .into_root_schema_for::<T>();
    let title = format!("heapdiff.{name}/1");
    let properties = schema.get_mut("properties").and_then(|p| p.as_object_mut());
    if let Some(key) = properties.and_then(|p| p.get_mut("schema")?.as_object_mut()) {
        key.remove("type");
        key.insert("const".to_owned(), title.clone().into());
    }
    schema.insert("title".to_owned(), title.into());
    (name, schema)
}

/// Makes schemas independent of Rust. Removes the formats of integers and the line ends in descriptions, and removes
/// optional keys from the required keys.
#[derive(Clone)]
struct Plain;

impl Transform for Plain {
    fn transform(&mut self, schema: &mut Schema) {
        schema.remove("format");
        if let Some(text) = schema.get("description").and_then(|d| d.as_str()) {
            let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
            schema.insert("description".to_owned(), line.into());
        }
        let mut optional = Vec::new();
        if let Some(properties) = schema.get_mut("properties").and_then(|p| p.as_object_mut()) {
            for (name, property) in properties {
                let marked = property.as_object_mut().and_then(|p| p.remove("optional"));
                optional.extend(marked.map(|_| name.clone()));
            }
        }
        if let Some(required) = schema.get_mut("required").and_then(|r| r.as_array_mut()) {
            required.retain(|name| !optional.iter().any(|o| name == o));
        }
        transform_subschemas(self, schema);
    }
}
