//! Prints objects with their fields, content and referrers.

use heapdiff_model::show::{ObjectRef, ShowReport, ShownObject, ShownValue, ThreadLocalValues};
use heapdiff_units::{Size, counted, grouped};

use super::snapshot;
use crate::document::{Document, Span, WIDTH, bold, dim};
use crate::view::Viewed;

pub(crate) fn build(report: &Viewed<ShowReport>, doc: &mut Document) {
    snapshot::heading(&report.snapshot, doc);
    let selected = &report.selected;
    let shown = report.objects.len() as u64;
    if selected.objects > 1 {
        doc.line(format!(
            "{}: {}, {}; the objects that retain most:",
            report.selector,
            counted(selected.objects, "object"),
            Size(selected.shallow_bytes)
        ));
    }
    for object in &report.objects {
        doc.gap();
        self::object(object, snapshot::unheld_phrase(&report.view), doc);
    }
    doc.add_unlisted_blocks(selected.objects.saturating_sub(shown), "more object");
}

fn object(object: &ShownObject, unheld: &str, doc: &mut Document) {
    doc.one_line(bold(format!("{} @ {}", object.class, object.id)));
    let mut sizes = format!("{} bytes", grouped(object.shallow_bytes));
    sizes += &match (object.retained_bytes, object.retained_objects) {
        (Some(bytes), Some(1)) if bytes == object.shallow_bytes => ", retains only itself".into(),
        (Some(bytes), Some(objects)) => {
            format!(
                ", retains {} bytes in {} objects",
                grouped(bytes),
                grouped(objects)
            )
        }
        _ => format!(", {unheld}"),
    };
    line("size", &sizes, doc);
    if let Some(filler) = filler(object) {
        line("about", filler, doc);
    }
    if let Some(root) = object.root {
        line("root", root, doc);
    }
    if let Some(dominator) = &object.dominator {
        line("held by", &object_line(dominator), doc);
    }
    if let Some(text) = &object.text {
        quoted("text", text, doc);
    }
    if let Some(superclass) = &object.superclass {
        line("extends", &object_line(superclass), doc);
    }
    if let Some(loader) = &object.loader {
        line("loader", &object_line(loader), doc);
    }
    let width = object.fields.iter().map(|f| f.name.chars().count()).max();
    let width = width.unwrap_or(0).min(30);
    let mut class = object.fields.first().map(|f| &f.class);
    for field in &object.fields {
        if class != Some(&field.class) {
            class = Some(&field.class);
            doc.one_line(dim(format!("    inherited from {}", field.class)));
        }
        let value = value(&field.value);
        doc.one_line(format!("    {:<width$}  {value}", field.name));
    }
    array(object, doc);
    contents(object, doc);
    if let Some(values) = &object.thread_local {
        thread_local(values, doc);
    }
    referrers(object, doc);
}

/// Returns a remark if HotSpot may have created the object to fill a gap between other objects. Since JDK 19, some of
/// these filler objects have a class of their own. All other filler objects look like `int[]` arrays of the
/// application.
fn filler(object: &ShownObject) -> Option<&'static str> {
    let is_unreferenced = object.retained_bytes.is_none() && object.referrer_count == 0;
    match &*object.class {
        "jdk.internal.vm.FillerObject" | "jdk.internal.vm.FillerElement[]" => {
            Some("JVM filler: this object fills a gap between other objects")
        }
        "int[]" if is_unreferenced => {
            Some("JVM filler, or an array that is no longer used: no object refers to it")
        }
        _ => None,
    }
}

fn array(object: &ShownObject, doc: &mut Document) {
    let Some(array) = &object.array else {
        return;
    };
    if let Some(text) = &array.decoded
        && array.offset == 0
    {
        return quoted("text", text, doc);
    }
    if let Some(hex) = &array.hex {
        hex_rows(hex, array.offset, doc);
        let rest = u64::from(array.length).saturating_sub(array.offset);
        return more(rest.saturating_sub(hex.len() as u64 / 2), "more byte", doc);
    }
    let shown: Vec<&ShownValue> = array.elements.iter().collect();
    elements(&shown, array.offset, doc);
    let rest = u64::from(array.length).saturating_sub(array.offset);
    more(rest.saturating_sub(shown.len() as u64), "more element", doc);
}

/// Adds a text as a string literal in quotes, on as many lines as it needs.
fn quoted(name: &str, text: &str, doc: &mut Document) {
    let literal: Vec<char> = format!("{text:?}").chars().collect();
    for (i, part) in literal.chunks(WIDTH - 11).enumerate() {
        let part: String = part.iter().collect();
        line(if i == 0 { name } else { "" }, &part, doc);
    }
}

/// Adds rows of 16 bytes. Each row has the index of its first byte, the bytes in hexadecimal, and the bytes as ASCII
/// characters (`.` for other bytes).
fn hex_rows(hex: &str, offset: u64, doc: &mut Document) {
    let bytes: Vec<u8> = (0..hex.len() / 2)
        .filter_map(|at| u8::from_str_radix(hex.get(2 * at..2 * at + 2)?, 16).ok())
        .collect();
    for (row, bytes) in (0..).zip(bytes.chunks(16)) {
        let digits: String = bytes.iter().map(|byte| format!(" {byte:02x}")).collect();
        let text = bytes.iter().map(|&byte| match byte {
            b' '..=b'~' => char::from(byte),
            _ => '.',
        });
        let text: String = text.collect();
        let at = offset + 16 * row;
        doc.line(format!("    {at:08x} {digits:<48}  {text}"));
    }
}

/// Adds the elements of an array. A line contains several primitive values, or one reference. Null references have no
/// line; only their number is shown.
fn elements(elements: &[&ShownValue], offset: u64, doc: &mut Document) {
    let mut row = String::from("   ");
    let mut nulls = 0;
    for (i, element) in (offset..).zip(elements) {
        if element.kind == "Object" && element.object.is_none() {
            nulls += 1;
            continue;
        }
        if let Some(literal) = &element.value {
            if row.chars().count() + 1 + literal.chars().count() > WIDTH {
                doc.line(std::mem::replace(&mut row, "   ".to_owned()));
            }
            row.push(' ');
            row += literal;
        } else {
            doc.one_line(format!("    [{i}]  {}", value(element)));
        }
    }
    if !row.trim().is_empty() {
        doc.line(row);
    }
    if nulls > 0 {
        let of = elements.len();
        let which = if offset == 0 { "the first" } else { "these" };
        doc.line(format!("    {nulls} of {which} {of} elements are null"));
    }
}

fn more(rest: u64, what: &str, doc: &mut Document) {
    if rest > 0 {
        doc.line(format!("    and {}", counted(rest, what)));
    }
}

/// Adds the content of a collection as its users see it, such as its keys and elements.
fn contents(object: &ShownObject, doc: &mut Document) {
    let Some(contents) = &object.contents else {
        return;
    };
    let (size, capacity) = (contents.size, contents.capacity);
    let room = capacity.map_or(String::new(), |c| format!(", room for {}", grouped(c)));
    let count = |what| size.map_or_else(|| "of unknown size".into(), |s| counted(s, what));
    let mut summary = match contents.kind {
        "value" => match contents.entries.first() {
            Some(entry) => value(&entry.value),
            None => "(empty)".to_owned(),
        },
        "buffer" => {
            let number = |n: Option<u64>| n.map_or_else(|| "?".into(), grouped);
            format!(
                "position {}, limit {}, capacity {}",
                number(contents.position),
                number(contents.limit),
                number(capacity)
            )
        }
        "text" => count("character") + &room,
        "map" => count("key") + &capacity.map_or(String::new(), buckets),
        "set" => count("element") + &capacity.map_or(String::new(), buckets),
        _ => count("element") + &room,
    };
    if !contents.whole {
        summary += "; the object is damaged, or the program was changing it";
    }
    line(contents.kind, &summary, doc);
    if let Some(text) = &contents.text {
        let literal: Vec<char> = format!("{text:?}").chars().collect();
        for part in literal.chunks(WIDTH - 4) {
            let part: String = part.iter().collect();
            doc.line(format!("    {part}"));
        }
        return;
    }
    if contents.kind == "value" {
        return;
    }
    let maps = contents
        .entries
        .iter()
        .filter_map(|e| Some((e.key.as_ref()?, &e.value)));
    for (key, held) in maps {
        doc.one_line(format!("    {} -> {}", short(key), value(held)));
    }
    let values = contents.entries.iter().filter(|e| e.key.is_none());
    let values: Vec<&ShownValue> = values.map(|e| &e.value).collect();
    elements(&values, contents.offset, doc);
    let shown = contents
        .offset
        .saturating_add(contents.entries.len() as u64);
    // The dump does not contain the elements of a direct buffer, because they are outside of the heap.
    let known = contents.kind != "buffer" || !contents.entries.is_empty();
    let rest = size
        .filter(|_| known)
        .map_or(0, |s| s.saturating_sub(shown));
    let what = if contents.kind == "map" {
        "more key"
    } else {
        "more element"
    };
    more(rest, what, doc);
}

/// Adds the values that threads store for a ThreadLocal.
fn thread_local(values: &ThreadLocalValues, doc: &mut Document) {
    line("values", &values_of(values), doc);
    for class in &values.classes {
        let objects = grouped(class.objects);
        doc.one_line(format!("    {} x {objects}", class.class));
    }
    if let (Some(largest), true) = (&values.largest, values.objects > 1) {
        let thread = values.largest_thread.as_deref().unwrap_or("(no name)");
        let bytes = values.largest_retained_bytes.unwrap_or(0);
        doc.one_line(format!(
            "    the largest value is {value}, which retains {bytes} in thread {thread:?}",
            value = object_line(largest),
            bytes = Size(bytes)
        ));
    }
    if let Some(next) = &values.next {
        // The command is never cut, so that it can be copied and pasted.
        doc.spans(labelled("next", next.into()));
    }
}

/// Returns the sentence about the values that threads store for a ThreadLocal.
pub(super) fn values_of(values: &ThreadLocalValues) -> String {
    match values.threads {
        0 => "no thread has a value of this ThreadLocal".to_owned(),
        1 => format!(
            "1 thread has a value of this ThreadLocal; the value retains {}",
            Size(values.retained_bytes)
        ),
        threads => format!(
            "{} threads have a value of this ThreadLocal; the values retain {} together",
            grouped(threads),
            Size(values.retained_bytes)
        ),
    }
}

fn buckets(capacity: u64) -> String {
    format!(" in {}", counted(capacity, "bucket"))
}

/// Returns a short text for a key. If the key is a string or a boxed value, the text is its value.
fn short(key: &ShownValue) -> String {
    match &key.object {
        Some(ObjectRef {
            text: Some(text),
            class: Some(class),
            ..
        }) => match &**class {
            "java.lang.String" => format!("{text:?}"),
            _ => text.clone(),
        },
        _ => value(key),
    }
}

fn referrers(object: &ShownObject, doc: &mut Document) {
    if object.referrers.is_empty() {
        return;
    }
    doc.spans(["  ".into(), dim("referred to by")]);
    for referrer in &object.referrers {
        let weak = match referrer.strength {
            "strong" => String::new(),
            kind => format!(", {kind}"),
        };
        // The name of the field is more useful to readers than the class of the object, so it comes first.
        let from = object_line(&referrer.object);
        doc.one_line(format!("    {}{weak}  {from}", referrer.via));
    }
    let rest = object.referrer_count - object.referrers.len() as u64;
    more(rest, "more reference", doc);
}

fn line(label: &str, text: &str, doc: &mut Document) {
    doc.spans(labelled(label, Span::from(text).within(WIDTH - 11)));
}

fn labelled(label: &str, text: Span) -> [Span; 4] {
    let label = dim(format!("{label:<7}"));
    ["  ".into(), label, "  ".into(), text]
}

fn value(value: &ShownValue) -> String {
    match (&value.value, &value.object) {
        (Some(literal), _) => literal.clone(),
        (None, Some(object)) => object_line(object),
        (None, None) if value.kind == "Object" => "null".to_owned(),
        (None, None) => "(missing in the dump)".to_owned(),
    }
}

/// Returns an object in one line: `byte[16] @ 0x7f00`, `java.lang.String @ 0x7f08 "text"`.
pub(super) fn object_line(object: &ObjectRef) -> String {
    let class = object.class.as_deref().unwrap_or("(not in this dump)");
    let class = match object.length {
        Some(length) => class.replacen("[]", &format!("[{length}]"), 1),
        None => class.to_owned(),
    };
    let text = match (&object.text, object.class.as_deref()) {
        (Some(text), Some("java.lang.String")) => format!(" {text:?}"),
        (Some(text), _) => format!(" {text}"),
        (None, _) => String::new(),
    };
    format!("{class} @ {}{text}", object.id)
}

#[cfg(test)]
mod tests {
    use super::super::tests;
    use super::*;
    use crate::report::Report;
    use heapdiff_model::show::{SelectedTotals, ShownArray, ShownContents, ShownReferrer};

    fn object() -> ShownObject {
        ShownObject {
            id: "0x10".to_owned(),
            class: "com.acme.Entry".to_owned(),
            shallow_bytes: 24,
            retained_bytes: Some(24),
            retained_objects: Some(1),
            ..ShownObject::default()
        }
    }

    /// Returns the text of a `heapdiff show` report that lists `object`. The selector matches `objects` objects.
    fn rendered(object: ShownObject, objects: u64) -> String {
        tests::text(&Report::Show(
            ShowReport {
                schema: ShowReport::SCHEMA,
                snapshot: tests::snapshot(),
                selector: "com.acme.Entry".to_owned(),
                selected: SelectedTotals {
                    objects,
                    shallow_bytes: 24 * objects,
                },
                objects: vec![object],
            }
            .into(),
        ))
    }

    const NULL: ShownValue = ShownValue {
        kind: "Object",
        value: None,
        object: None,
    };

    #[test]
    fn the_values_of_a_thread_local_are_shown() {
        let values = |threads: u64| ThreadLocalValues {
            threads,
            objects: threads,
            retained_bytes: threads << 10,
            ..ThreadLocalValues::default()
        };
        let none = "no thread has a value of this ThreadLocal";
        assert_eq!(values_of(&values(0)), none);
        assert_eq!(
            values_of(&values(1)),
            "1 thread has a value of this ThreadLocal; the value retains 1.0 KiB"
        );
        assert_eq!(
            values_of(&values(3)),
            "3 threads have a value of this ThreadLocal; the values retain 3.0 KiB together"
        );
    }

    #[test]
    fn omitted_objects_are_counted() {
        let (one, three) = (rendered(object(), 1), rendered(object(), 3));
        let names = "com.acme.Entry: 3 objects, 72 B; the objects that retain most:\n";
        assert!(three.contains(names), "{three}");
        assert!(three.ends_with("\nand 2 more objects (--top N shows more)\n"));
        assert!(!one.contains("objects that retain most") && !one.contains("--top N shows more"));
    }

    #[test]
    fn the_retained_size_of_an_object_is_shown() {
        let of = |retained: Option<(u64, u64)>| {
            let object = ShownObject {
                retained_bytes: retained.map(|r| r.0),
                retained_objects: retained.map(|r| r.1),
                ..object()
            };
            rendered(object, 1)
        };
        let parts = [
            "24 bytes, retains only itself\n",
            "24 bytes, retains 1,024 bytes in 7 objects\n",
            "24 bytes, unreachable, or reachable only through references excluded by --refs\n",
        ];
        for (at, retained) in [Some((24, 1)), Some((1024, 7)), None]
            .into_iter()
            .enumerate()
        {
            let text = of(retained);
            let said = parts.map(|p| text.contains(p));
            assert_eq!(said, [0, 1, 2].map(|i| i == at), "{text}");
        }
    }

    #[test]
    fn nulls_are_counted_if_there_are_any() {
        let of = |offset: u64, elements: Vec<ShownValue>| {
            let array = ShownArray {
                length: 9,
                elements,
                offset,
                decoded: None,
                hex: None,
            };
            rendered(
                ShownObject {
                    array: Some(array),
                    ..object()
                },
                1,
            )
        };
        let number = || ShownValue {
            kind: "int",
            value: Some("5".to_owned()),
            object: None,
        };
        let first = of(0, vec![NULL, number(), NULL]);
        assert!(
            first.contains("    2 of the first 3 elements are null\n"),
            "{first}"
        );
        assert!(!first.contains("of these"), "{first}");
        let later = of(4, vec![NULL, number()]);
        assert!(
            later.contains("    1 of these 2 elements are null\n"),
            "{later}"
        );
        assert!(!later.contains("of the first"), "{later}");
        let none = of(0, vec![number()]);
        assert!(!none.contains("elements are null"), "{none}");
    }

    #[test]
    fn unreadable_contents_are_reported() {
        let contents = |kind, size, whole| ShownContents {
            kind,
            size,
            capacity: Some(16),
            position: (kind == "buffer").then_some(2),
            limit: (kind == "buffer").then_some(8),
            whole,
            ..ShownContents::default()
        };
        let of = |kind, size, whole| {
            let object = ShownObject {
                contents: Some(contents(kind, size, whole)),
                ..object()
            };
            rendered(object, 1)
        };
        let damaged = "; the object is damaged, or the program was changing it\n";
        assert!(
            of("list", None, false).contains(&format!("of unknown size, room for 16{damaged}"))
        );
        let whole = of("list", Some(0), true);
        assert!(!whole.contains("of unknown size") && !whole.contains("was changing it"));
        let buffer = of("buffer", Some(6), true);
        assert!(
            buffer.contains("position 2, limit 8, capacity 16\n"),
            "{buffer}"
        );
        assert!(!whole.contains("position 2, limit"), "{whole}");
        let cut = ShownValue {
            kind: "int",
            ..NULL
        };
        assert_eq!(value(&cut), "(missing in the dump)");
        assert_eq!(
            value(&NULL),
            "null",
            "and so it is not (missing in the dump)"
        );
    }

    #[test]
    fn fillers_of_the_jvm_are_named() {
        let of = |class: &str, retained, referrer_count| {
            let object = ShownObject {
                class: class.to_owned(),
                retained_bytes: retained,
                retained_objects: retained,
                referrer_count,
                ..object()
            };
            let text = rendered(object, 1);
            let certain =
                text.contains("JVM filler: this object fills a gap between other objects");
            (certain, text.contains("JVM filler, or an array"))
        };
        assert_eq!(of("jdk.internal.vm.FillerObject", None, 0), (true, false));
        assert_eq!(of("int[]", None, 0), (false, true));
        for (class, retained, referrers) in [
            ("int[]", None, 1),
            ("int[]", Some(1), 0),
            ("long[]", None, 0),
        ] {
            assert_eq!(of(class, retained, referrers), (false, false), "{class}");
        }
    }

    #[test]
    fn referrers_are_listed_if_there_are_any() {
        let of = |class: Option<&str>| ObjectRef {
            id: "0x20".to_owned(),
            class: class.map(str::to_owned),
            ..ObjectRef::default()
        };
        assert_eq!(object_line(&of(None)), "(not in this dump) @ 0x20");
        let known = object_line(&of(Some("a.B")));
        assert!(!known.contains("not in this dump"), "{known}");
        let held = ShownObject {
            referrer_count: 1,
            referrers: vec![ShownReferrer {
                via: "a.B.next".to_owned(),
                strength: "strong",
                object: of(Some("a.B")),
            }],
            ..object()
        };
        assert!(rendered(held, 1).ends_with("  referred to by\n    a.B.next  a.B @ 0x20\n"));
        assert!(!rendered(object(), 1).contains("referred to by"));
    }
}
