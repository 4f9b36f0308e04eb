//! `heapdiff show`: shows objects with their fields, elements and referrers.

use std::ops::Range;
use std::path::{Path, PathBuf};

use clap::Args;
use heapdiff_diff::values::{literal, texts};
use heapdiff_model::show::{
    ShowReport, ShownArray, ShownContents, ShownEntry, ShownField, ShownObject, ShownReferrer,
    ShownValue,
};
use heapdiff_report::{Report, Viewed};
use hprof::answers::{
    ArrayView, Content, Contents, ContentsKind, FieldValue, Record, Referrer, Referrers, Selector,
    Value,
};
use hprof::records::Kind;
use hprof::{ObjectId, ObjectIndex, Progress, Snapshot};
use rayon::prelude::*;

use super::describe::{Mentions, totals};
use super::opened::{open, select};
use super::top::Best;
use super::{dump_info, thread_locals};
use crate::args::{SELECTOR_HELP, input};
use crate::failure::{Failure, Result};
use crate::job::{Setup, Task};
use crate::write;

/// Maximum number of objects that are shown. If the selector names values of a field, only the largest value is shown.
const OBJECTS: usize = 3;
const ELEMENTS: usize = 20;
/// Number of bytes of a `byte[]` that are shown in hexadecimal, unless `--top` sets another number.
const HEX: u64 = 128;
/// Maximum number of characters of a selected string.
const TEXT: usize = 2000;

const EXAMPLES: &str = "\
Examples:
  heapdiff show app.hprof 0x7f0012345678            # one object, its fields and referrers
  heapdiff show app.hprof com.acme.Session --top 5  # the 5 Session objects that retain the most
  heapdiff show app.hprof 0x7f0012345678 --save image.png\n\n";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES.to_owned() + SELECTOR_HELP)]
pub(crate) struct Show {
    /// Heap dump (HPROF), gzipped or not
    #[arg(value_parser = input())]
    dump: PathBuf,
    /// Objects to analyze (see SELECTOR below)
    selector: Selector,
    /// Index of the first element to show of arrays and collections (--top sets how many)
    #[arg(long, value_name = "N", default_value_t, hide_default_value = true)]
    offset: u64,
    /// Save the content of the selected array of primitive values, or the text of the string
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
}

impl Task for Show {
    fn run(&self, setup: &Setup) -> Result<Vec<Report>> {
        let (snapshot, meter) = open(setup, &self.dump)?;
        meter.phase("reading the selected objects", 0);
        let selection = select(&snapshot, &self.dump, &self.selector)?;
        if let Some(file) = &self.save {
            self.save(&snapshot, &selection.objects, file)?;
        }
        let selected = totals(&snapshot, &selection.objects);
        let most = if selection.are_values { 1 } else { OBJECTS };
        let mut best = Best::new(setup.top.unwrap_or(most));
        for &object in &selection.objects {
            let bytes = snapshot.retained_bytes(object);
            let bytes = bytes.unwrap_or_else(|| snapshot.shallow_bytes(object));
            if best.would_keep(bytes) {
                best.push(bytes, object);
            }
        }
        let shown = best.into_sorted();
        let elements = u64::try_from(setup.top.unwrap_or(ELEMENTS)).unwrap_or(u64::MAX);
        let elements = self.offset..self.offset.saturating_add(elements);
        let mut objects = show_all(&snapshot, &shown, &elements, selection.hidden());
        for (&object, row) in shown.iter().zip(&mut objects) {
            // The name of the object in suggested commands. If the selector selects only this object, this is the
            // selector, otherwise the address of the object.
            let name = match selection.objects.len() {
                1 => self.selector.to_string(),
                _ => row.id.clone(),
            };
            row.thread_local =
                thread_locals::values(&snapshot, &self.dump, &name, &[object], "show", &meter)?;
        }
        let report = ShowReport {
            schema: ShowReport::SCHEMA,
            snapshot: dump_info::of(&snapshot, &selection.own),
            selector: self.selector.to_string(),
            selected,
            objects,
        };
        Ok(vec![Report::Show(Viewed {
            data: report,
            view: setup.view(&snapshot),
            more: (),
        })])
    }
}

impl Show {
    /// Shows objects, with the elements from `offset` on.
    pub(super) fn new(dump: PathBuf, selector: Selector, offset: u64) -> Self {
        Self {
            dump,
            selector,
            offset,
            save: None,
        }
    }

    /// Writes the content of an array or a string to a file.
    fn save(&self, snapshot: &Snapshot, objects: &[ObjectIndex], file: &Path) -> Result<()> {
        let [object] = objects[..] else {
            let count = objects.len();
            let message = format!(
                "--save needs one object, but {} selects {count}",
                self.selector
            );
            return Err(Failure::usage(message).with_hint("select an id, such as 0x7f0012345678"));
        };
        let record = snapshot
            .read(object)
            .map_err(|e| Failure::input(&self.dump, &e))?;
        let text = snapshot.string(object, usize::MAX);
        let bytes = match (&record.content, &text) {
            (Content::Array(array), _) if array.kind != Kind::Object => array.bytes(),
            (_, Some(text)) => text.as_bytes(),
            _ => {
                let message = "--save is for arrays of primitive values and strings";
                let class = snapshot.name(object);
                return Err(Failure::usage(format!("{message}, not for {class}")));
            }
        };
        write::replace_file(file, write::Kind::Dump, |out| out.write_all(bytes))
            .map_err(|e| write::failed(file.display(), &e))
    }
}

/// Returns the row of each object. A row shows the elements in the range `elements`. The length of this range is also
/// the maximum number of referrers in a row. The row shows no referrers in `hidden`.
fn show_all(
    snapshot: &Snapshot,
    objects: &[ObjectIndex],
    elements: &Range<u64>,
    hidden: &[ObjectIndex],
) -> Vec<ShownObject> {
    let records: Vec<Record<'_>> = snapshot.read_all(objects).into_iter().flatten().collect();
    let limit = usize::try_from(elements.end - elements.start).unwrap_or(usize::MAX);
    let read: Vec<ObjectIndex> = records.iter().map(|r| r.object).collect();
    let referrers: Vec<Referrers> = snapshot.referrers(&read, limit, hidden);
    let referring = referrers.iter().flat_map(|r| r.list.iter().map(|r| r.from));
    let contents: Vec<Option<Contents>> = read
        .par_iter()
        .map(|&object| contents(snapshot, object, elements))
        .collect();
    let mentioned = records.iter().flat_map(|record| {
        let dominator = dominator(snapshot, record.object);
        let held = values(&record.content, elements).into_iter();
        held.filter_map(Value::object).chain(dominator)
    });
    let entries = contents.iter().flatten().flat_map(|c| &c.entries);
    let entries = entries.flat_map(|e| e.key.into_iter().chain([e.value]));
    let mentioned = mentioned.chain(entries.filter_map(Value::object));
    let mentions = Mentions::new(snapshot, mentioned.chain(referring));
    let texts = texts(snapshot, &read, TEXT);
    let shown =
        |(((record, text), referrers), contents): (Read<'_>, Option<Contents>)| ShownObject {
            id: record.id.to_string(),
            class: snapshot.name(record.object),
            shallow_bytes: snapshot.shallow_bytes(record.object),
            retained_bytes: snapshot.retained_bytes(record.object),
            retained_objects: snapshot.retained_objects(record.object),
            root: snapshot.tree().root_kind(record.object).map(|k| k.name()),
            dominator: dominator(snapshot, record.object).and_then(|d| mentions.of(d)),
            superclass: match &record.content {
                Content::Class(class) => class.superclass.and_then(|s| mentions.of(s)),
                _ => None,
            },
            loader: match &record.content {
                Content::Class(class) => mentions.describe_value(class.loader),
                _ => None,
            },
            text,
            fields: fields(snapshot, &record.content, &mentions),
            array: match &record.content {
                Content::Array(array) => Some(ShownArray {
                    length: array.len,
                    elements: array
                        .elements(places(elements))
                        .map(|v| shown_value(Some(v), &mentions))
                        .collect(),
                    offset: elements.start,
                    decoded: array.text(TEXT),
                    hex: hex(array, elements),
                }),
                _ => None,
            },
            referrer_count: referrers.total,
            referrers: referrers
                .list
                .iter()
                .filter_map(|r| shown_referrer(snapshot, r, &mentions))
                .collect(),
            contents: contents.map(|c| shown_contents(c, &mentions)),
            thread_local: None,
        };
    records
        .iter()
        .zip(texts)
        .zip(&referrers)
        .zip(contents)
        .map(shown)
        .collect()
}

/// The data of a shown object: its record, its text if it is a string, and its referrers.
type Read<'a> = ((&'a Record<'a>, Option<String>), &'a Referrers);

/// Returns the contents of a collection, or the beginning of a string.
fn contents(snapshot: &Snapshot, object: ObjectIndex, elements: &Range<u64>) -> Option<Contents> {
    let contents = snapshot.contents(object, elements.clone())?;
    match contents.kind {
        ContentsKind::Text => snapshot.contents(object, 0..TEXT as u64),
        _ => Some(contents),
    }
}

fn shown_contents(contents: Contents, mentions: &Mentions) -> ShownContents {
    let entry = |entry: hprof::answers::Entry| ShownEntry {
        key: entry.key.map(|key| shown_value(Some(key), mentions)),
        value: shown_value(Some(entry.value), mentions),
    };
    ShownContents {
        kind: contents.kind.name(),
        size: contents.size,
        capacity: contents.capacity,
        position: contents.bounds.map(|b| b.position),
        limit: contents.bounds.map(|b| b.limit),
        text: contents.text,
        offset: contents.first,
        entries: contents.entries.into_iter().map(entry).collect(),
        whole: contents.whole,
    }
}

/// Returns the bytes of a `byte[]` in hexadecimal; `None` if the array is empty, contains text, or is not a `byte[]`.
fn hex(array: &ArrayView<'_>, elements: &Range<u64>) -> Option<String> {
    if array.kind != Kind::Byte || array.is_empty() || array.text(TEXT).is_some() {
        return None;
    }
    let bytes = array.bytes();
    let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
    // One line shows 16 bytes, so the default number of elements would fill only two lines.
    let count = match elements.end - elements.start {
        count if count == ELEMENTS as u64 => HEX,
        count => count,
    };
    let end = place(elements.start.saturating_add(count));
    let bytes = &bytes[place(elements.start)..end];
    Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Converts a range to array indexes. Numbers larger than `u32::MAX` become `u32::MAX`.
fn places(elements: &Range<u64>) -> Range<u32> {
    let place = |at: u64| u32::try_from(at).unwrap_or(u32::MAX);
    place(elements.start)..place(elements.end)
}

fn shown_referrer(
    snapshot: &Snapshot,
    referrer: &Referrer,
    mentions: &Mentions,
) -> Option<ShownReferrer> {
    Some(ShownReferrer {
        via: snapshot.via_name(referrer.via),
        strength: referrer.strength.strength(),
        object: mentions.of(referrer.from)?,
    })
}

/// Returns the immediate dominator of an object.
fn dominator(snapshot: &Snapshot, object: ObjectIndex) -> Option<ObjectIndex> {
    let tree = snapshot.tree();
    tree.dominator(object).and_then(|node| tree.object(node))
}

/// Returns all values that are shown for an object.
fn values(content: &Content<'_>, elements: &Range<u64>) -> Vec<Value> {
    let fields = |fields: &[FieldValue<'_>]| -> Vec<Value> {
        fields.iter().filter_map(|f| f.value).collect()
    };
    match content {
        Content::Instance(list) => fields(list),
        Content::Class(class) => {
            let superclass = class
                .superclass
                .map(|s| Value::Object(ObjectId::NULL, Some(s)));
            let parts = superclass.into_iter().chain([class.loader]);
            fields(&class.statics).into_iter().chain(parts).collect()
        }
        Content::Array(array) => array.elements(places(elements)).collect(),
    }
}

fn fields(snapshot: &Snapshot, content: &Content<'_>, mentions: &Mentions) -> Vec<ShownField> {
    let list = match content {
        Content::Instance(fields) => fields,
        Content::Class(class) => &class.statics,
        Content::Array(_) => return Vec::new(),
    };
    // Names with `<` are not declared fields, but references that the JVM adds to classes.
    let own = list.iter().filter(|field| !field.name.starts_with('<'));
    own.map(|field| {
        let classes = snapshot.classes();
        let declared = &classes[field.class];
        let kind = match content {
            Content::Class(_) => declared
                .statics
                .get(usize::from(field.place))
                .map(|s| s.kind),
            _ => declared
                .fields
                .get(usize::from(field.place))
                .map(|f| f.kind),
        };
        ShownField {
            name: field.name.to_owned(),
            class: declared.name.to_string(),
            value: ShownValue {
                kind: kind.map_or("Object", |k| k.java_name()),
                ..shown_value(field.value, mentions)
            },
        }
    })
    .collect()
}

fn shown_value(value: Option<Value>, mentions: &Mentions) -> ShownValue {
    ShownValue {
        kind: value.map_or("Object", |v| v.kind().java_name()),
        value: value.and_then(literal),
        object: value.and_then(|v| mentions.describe_value(v)),
    }
}
