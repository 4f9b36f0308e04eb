//! `heapdiff find`: finds strings and arrays by their content.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use heapdiff_diff::samples::AgentObjects;
use heapdiff_diff::{ContentPattern, find_contents, holding_fields};
use heapdiff_model::find::{FindReport, FoundHolder, FoundObject};
use heapdiff_report::{Format, Report};

use super::dump_info;
use super::opened::open;
use crate::args::input;
use crate::failure::{Failure, Result};
use crate::job::{Formats, Setup, Task, text_and_json};

/// Maximum number of listed fields, and maximum number of listed objects.
const ROWS: usize = 20;

const HELP: &str = "\
Examples:
  heapdiff find app.hprof 'order 4711'      # strings and arrays that contain a text
  heapdiff find app.hprof '/sess-[0-9]+/'   # a regular expression
  heapdiff find app.hprof hex:89504e47      # bytes in byte[]";

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct Find {
    /// Heap dump (HPROF), gzipped or not
    #[arg(value_parser = input())]
    dump: PathBuf,
    /// Text, regular expression between slashes, or bytes in hexadecimal
    #[arg(value_name = "TEXT|/REGEX/|hex:BYTES", allow_hyphen_values = true)]
    pattern: ContentPattern,
}

impl Task for Find {
    fn formats() -> Formats {
        |format: Format| text_and_json(format)
    }

    fn run(&self, setup: &Setup) -> Result<Vec<Report>> {
        let (snapshot, meter) = open(setup, &self.dump)?;
        let own = AgentObjects::find(&snapshot);
        let objects = find_contents(&snapshot, &own, &self.pattern, &meter);
        let fields = holding_fields(&snapshot, &objects, &meter)
            .map_err(|e| Failure::input(&self.dump, &e))?;
        let mut holders: BTreeMap<&Option<String>, FoundHolder> = BTreeMap::new();
        let mut bytes = 0;
        for (object, field) in objects.iter().zip(&fields) {
            let size = snapshot.shallow_bytes(*object);
            bytes += size;
            let row = holders.entry(field).or_insert_with(|| FoundHolder {
                field: field.clone(),
                ..FoundHolder::default()
            });
            row.objects += 1;
            row.shallow_bytes += size;
        }
        let mut holders: Vec<FoundHolder> = holders.into_values().collect();
        holders.sort_by_key(|row| Reverse(row.objects));
        let holder_count = holders.len() as u64;
        let rows = setup.top.unwrap_or(ROWS);
        holders.truncate(rows);
        let unreachable = objects
            .iter()
            .filter(|o| !snapshot.tree().is_reachable(**o));
        let unreachable = unreachable.count() as u64;
        let listed = &objects[..rows.min(objects.len())];
        let rows = listed.iter().zip(snapshot.ids(listed)).zip(fields);
        let matches = rows.map(|((&object, id), field)| {
            let found = self.pattern.first_match(&snapshot, object);
            let (offset, excerpt) = found.unwrap_or_default();
            FoundObject {
                id: id.unwrap_or_default().to_string(),
                class: snapshot.name(object),
                shallow_bytes: snapshot.shallow_bytes(object),
                offset,
                excerpt,
                field,
            }
        });
        Ok(vec![Report::Find(FindReport {
            schema: FindReport::SCHEMA,
            snapshot: dump_info::of(&snapshot, &own),
            pattern: self.pattern.as_str().to_owned(),
            objects: objects.len() as u64,
            shallow_bytes: bytes,
            unreachable,
            matches: matches.collect(),
            holders,
            holder_count,
        })])
    }
}
