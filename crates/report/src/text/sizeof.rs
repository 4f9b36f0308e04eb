//! Prints sizes of objects. Explains why the size of a set is not the sum of the sizes of its objects.

use std::cmp::Ordering;

use heapdiff_model::sizeof::{SizeofLine, SizeofOptions, SizeofReport, SizeofSet};
use heapdiff_units::{counted, grouped, percent};

use super::histo::more_classes_with;
use super::show;
use super::snapshot;
use crate::document::Column::{Figure, Name};
use crate::document::{Document, Span, WIDTH};
use crate::view::{SizeofView, Viewed};

pub(crate) fn build(report: &Viewed<SizeofReport, SizeofView>, doc: &mut Document) {
    snapshot::heading(&report.snapshot, doc);
    let set = &report.set;
    let named = counted(set.objects, "object");
    let selectors = Span::from(report.selectors.join(", "));
    let selectors = selectors.within(WIDTH - named.len() - 2);
    doc.spans([selectors, format!(": {named}").into()]);
    doc.gap();
    sizes(set, snapshot::unheld_phrase(&report.view), doc);
    if set.objects > 1 {
        doc.gap();
        sums(set, doc);
        class_table(set, doc);
    }
    if let Some(values) = &report.thread_local {
        let next = values
            .next
            .as_ref()
            .map_or(String::new(), |next| format!(": {next}"));
        doc.gap();
        doc.line(show::values_of(values) + &next);
    }
    if let Some(flyweights) = &report.flyweights {
        doc.gap();
        doc.line(format!(
            "not counted, because they are shared: {} enum constants, {} cached boxes, {} string constants",
            grouped(flyweights.enum_constants),
            grouped(flyweights.cached_boxes),
            grouped(flyweights.interned_strings)
        ));
        doc.line("strings that the program interned are counted, because a dump does not show which strings are interned");
    }
    if let Some(finals) = &report.finals {
        doc.gap();
        let fields = skipped_fields(&report.options);
        match finals.unknown_classes {
            0 => doc.line(format!("{fields} are skipped")),
            classes => doc.spans(except(fields, classes, &finals.unknown)),
        }
    }
    if set.objects > 1 {
        doc.gap();
        objects(report, doc);
    }
    if let Some(lines) = &report.tree {
        doc.gap();
        tree(lines, report.set.deep_bytes, doc);
    }
    if report.more.shows_classes {
        doc.gap();
        classes(report, doc);
    }
}

/// Returns the fields that deep sizes do not follow, in words.
fn skipped_fields(options: &SizeofOptions) -> &'static str {
    match (options.skip_final, options.skip_transient) {
        (true, true) => "final and transient fields",
        (false, true) => "transient fields",
        _ => "final fields",
    }
}

/// Returns the sentence that `fields` (final or transient fields) are skipped, except in some classes. It is not known
/// which fields of these classes are final or transient. The sentence contains the number of these classes and the name
/// of the first one.
fn except(fields: &str, count: u64, names: &[String]) -> [Span; 3] {
    let classes = counted(count, "class");
    let sentence = format!("{fields} are skipped, except the {fields} of {classes} (");
    let first = Span::from(names.first().map_or("", |name| name)).within(40);
    let more = if count > 1 { ", …)" } else { ")" };
    [sentence.into(), first, more.into()]
}

/// Adds the shallow, deep and retained size, each with its meaning.
fn sizes(set: &SizeofSet, unheld: &str, doc: &mut Document) {
    let one = set.objects == 1;
    let mut rows = Vec::new();
    let mut row = |name: &str, bytes: u64, objects: u64, what: &str| {
        let (bytes, objects) = (grouped(bytes), grouped(objects));
        rows.push(vec![name.to_owned(), bytes, objects, what.to_owned()]);
    };
    let itself = if one {
        "the object itself"
    } else {
        "the objects themselves"
    };
    row("shallow", set.shallow_bytes, set.objects, itself);
    let reached = if one {
        "this object and all objects reachable from it"
    } else {
        "these objects and all objects reachable from them, each counted once"
    };
    row("deep", set.deep_bytes, set.deep_objects, reached);
    if let (Some(bytes), Some(objects)) = (set.retained_bytes, set.retained_objects) {
        let freed = if one {
            "memory that would be freed if this object were removed"
        } else {
            "memory that would be freed if all these objects were removed"
        };
        row("retained", bytes, objects, freed);
    }
    let columns = [
        ("", Name),
        ("bytes", Figure),
        ("objects", Figure),
        ("", Name),
    ];
    doc.table(&columns, rows.into_iter());
    if set.retained_bytes.is_none() {
        doc.line(format!("retained: nothing ({unheld})"));
    }
}

/// Explains why class tables of other reports show another number of retained bytes for these objects.
fn class_table(set: &SizeofSet, doc: &mut Document) {
    let bytes = set.class_table_bytes;
    if let Some(bytes) = bytes.filter(|&b| set.retained_bytes.is_some_and(|r| r != b)) {
        doc.line(format!(
            "The class table of a report shows {} retained bytes for this class. This is a lower bound:",
            grouped(bytes)
        ));
        doc.line("the sum over the instances that no other instance retains.");
    }
}

/// Explains why the sizes of the objects do not add up to the sizes of the set.
fn sums(set: &SizeofSet, doc: &mut Document) {
    match set.sum_deep_bytes {
        Some(sum) if sum == set.deep_bytes => {
            doc.line("The deep sizes of these objects add up to the total above: no two objects reach the same object.");
        }
        Some(sum) => {
            let (all, more) = (grouped(sum), grouped(sum.saturating_sub(set.deep_bytes)));
            doc.line(format!("The deep sizes of these objects add up to {all} bytes, {more} more than the total above:"));
            doc.line("an object that several of these objects reach counts once in the total, and once in each size.");
        }
        None => {
            let measured = counted(set.measured, "object");
            doc.line(format!(
                "Deep sizes were measured only for the {measured} that retain most:"
            ));
            doc.line("these objects share so many objects that measuring all of them would take too long.");
        }
    }
    let Some(retained) = set.retained_bytes else {
        return;
    };
    let sum = set.sum_retained_bytes;
    let (less_or_more, why) = match sum.cmp(&retained) {
        Ordering::Equal => {
            return doc.line("The retained sizes of these objects add up to the total above.");
        }
        Ordering::Less => (
            "less",
            "several of these objects together hold some objects that no single one of them holds alone.",
        ),
        Ordering::Greater => (
            "more",
            "if one of these objects retains another one, the bytes of the other one are counted twice.",
        ),
    };
    let (sum, apart) = (grouped(sum), grouped(sum.abs_diff(retained)));
    doc.line(format!("The retained sizes of these objects add up to {sum} bytes, {apart} {less_or_more} than the total above:"));
    doc.line(why);
}

fn objects(report: &SizeofReport, doc: &mut Document) {
    if report.objects.is_empty() {
        return;
    }
    let columns = [
        ("deep bytes", Figure),
        ("objects", Figure),
        ("shallow", Figure),
        ("retained", Figure),
        ("id", Name),
        ("class", Name),
    ];
    let rows = report.objects.iter().map(|object| {
        vec![
            grouped(object.deep_bytes),
            grouped(object.deep_objects),
            grouped(object.shallow_bytes),
            object.retained_bytes.map_or("-".to_owned(), grouped),
            object.id.clone(),
            object.class.clone(),
        ]
    });
    doc.table(&columns, rows);
    let more = report.set.objects - report.objects.len() as u64;
    doc.add_unlisted_count(more, "more object");
}

/// Adds the deep size by field, as a tree. The size of a line includes descendants that have no line.
fn tree(lines: &[SizeofLine], all: u64, doc: &mut Document) {
    let mut rows = Vec::new();
    // The lines whose descendants are not all written yet. After the last descendant, the number of hidden lines is
    // written. If several lines are finished at once, the deepest is handled first.
    let mut hidden: Vec<&SizeofLine> = Vec::new();
    for at in 0..=lines.len() {
        let depth = lines.get(at).map_or(0, |line| line.depth);
        while let Some(above) = hidden.pop_if(|above| above.depth >= depth) {
            if above.hidden_lines > 0 {
                let indent = "  ".repeat(above.depth as usize + 1);
                rows.push(vec![
                    grouped(above.hidden_bytes),
                    percent(above.hidden_bytes, all),
                    String::new(),
                    format!(
                        "{indent}{} (--top N shows more)",
                        counted(above.hidden_lines, "more field")
                    ),
                ]);
            }
        }
        let Some(line) = lines.get(at) else {
            break;
        };
        rows.push(vec![
            grouped(line.deep_bytes),
            percent(line.deep_bytes, all),
            grouped(line.objects),
            place(line),
        ]);
        hidden.push(line);
    }
    let columns = [
        ("deep bytes", Figure),
        ("share", Figure),
        ("objects", Figure),
        ("field", Name),
    ];
    doc.table(&columns, rows.into_iter());
}

/// Returns the field and the class of a line, indented by the depth of the line.
fn place(line: &SizeofLine) -> String {
    let class = line.class.as_deref().unwrap_or(match line.objects {
        0 => "(nothing)",
        _ => "(several classes)",
    });
    let indent = "  ".repeat(line.depth as usize);
    match line.via.as_deref() {
        None => class.to_owned(),
        Some(via) => match via.rsplit_once('.') {
            Some((_, field)) => format!("{indent}.{field} = {class}"),
            None => format!("{indent}{via} = {class}"),
        },
    }
}

fn classes(report: &Viewed<SizeofReport, SizeofView>, doc: &mut Document) {
    if report.by_class.is_empty() {
        return;
    }
    let columns = [
        ("bytes", Figure),
        ("share", Figure),
        ("objects", Figure),
        ("class", Name),
    ];
    let rows = report.by_class.iter().map(|row| {
        vec![
            grouped(row.shallow_bytes),
            percent(row.shallow_bytes, report.set.deep_bytes),
            grouped(row.objects),
            row.class.clone(),
        ]
    });
    doc.table(&columns, rows);
    let (classes, objects, bytes) = report.more.more_classes;
    if classes > 0 {
        more_classes_with(classes, objects, bytes, doc);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests;
    use super::*;
    use crate::report::Report;

    use heapdiff_model::sizeof::{SizeofClass, SizeofFinals, SizeofFlyweights, SizeofObject};

    /// Returns a report about a set of `objects` objects. One object is listed. It retains 200 of the 300 bytes that
    /// the set reaches.
    fn report(objects: u64) -> Viewed<SizeofReport, SizeofView> {
        SizeofReport {
            schema: SizeofReport::SCHEMA,
            snapshot: tests::snapshot(),
            selectors: vec!["com.acme.Entry".to_owned()],
            options: SizeofOptions {
                refs: "soft",
                ..SizeofOptions::default()
            },
            objects: vec![SizeofObject {
                id: "0x10".to_owned(),
                class: "com.acme.Entry".to_owned(),
                shallow_bytes: 24,
                deep_bytes: 300,
                deep_objects: 3,
                retained_bytes: Some(200),
                retained_objects: Some(2),
            }],
            set: SizeofSet {
                objects,
                shallow_bytes: 24 * objects,
                deep_bytes: 300,
                deep_objects: 3,
                retained_bytes: Some(200),
                retained_objects: Some(2),
                measured: objects,
                sum_deep_bytes: Some(300),
                sum_retained_bytes: 200,
                class_table_bytes: None,
            },
            ..SizeofReport::default()
        }
        .into()
    }

    fn rendered(report: Viewed<SizeofReport, SizeofView>) -> String {
        tests::text(&Report::Sizeof(Box::new(report)))
    }

    #[test]
    fn sizes_are_explained_for_one_and_several_objects() {
        let single = [
            " the object itself\n",
            " this object and all objects reachable from it\n",
            " memory that would be freed if this object were removed\n",
        ];
        let plural = [
            " the objects themselves\n",
            " these objects and all objects reachable from them, each counted once\n",
            " memory that would be freed if all these objects were removed\n",
        ];
        let (one, two) = (rendered(report(1)), rendered(report(2)));
        assert!(
            single.iter().all(|s| one.contains(s) && !two.contains(s)),
            "{one}"
        );
        assert!(
            plural.iter().all(|s| two.contains(s) && !one.contains(s)),
            "{two}"
        );
        let mut garbage = report(1);
        garbage.set.retained_bytes = None;
        let garbage = rendered(garbage);
        let nothing = "retained: nothing (unreachable, or reachable only through references excluded by --refs)\n";
        assert!(garbage.contains(nothing) && !one.contains("retained: nothing"));
    }

    #[test]
    fn sums_are_explained() {
        let mut in_table = report(2);
        in_table.set.class_table_bytes = Some(150);
        let line = "The class table of a report shows 150 retained bytes for this class. This is a lower bound:\n";
        assert!(rendered(in_table).contains(line));
        assert!(!rendered(report(2)).contains("The class table of a report"));
        let of = |deep: Option<u64>, retained: u64| {
            let mut report = report(2);
            report.set.sum_deep_bytes = deep;
            report.set.sum_retained_bytes = retained;
            rendered(report)
        };
        let deep = [
            "The deep sizes of these objects add up to the total above: no two objects reach the same object.\n",
            "The deep sizes of these objects add up to 400 bytes, 100 more than the total above:\n\
             an object that several of these objects reach counts once in the total, and once in each size.\n",
            "Deep sizes were measured only for the 2 objects that retain most:\n\
             these objects share so many objects that measuring all of them would take too long.\n",
        ];
        for (at, sum) in [Some(300), Some(400), None].into_iter().enumerate() {
            let text = of(sum, 200);
            assert_eq!(
                deep.map(|d| text.contains(d)),
                [0, 1, 2].map(|i| i == at),
                "{text}"
            );
        }
        let retained = [
            "The retained sizes of these objects add up to the total above.\n",
            "The retained sizes of these objects add up to 150 bytes, 50 less than the total above:\n\
             several of these objects together hold some objects that no single one of them holds alone.\n",
            "The retained sizes of these objects add up to 250 bytes, 50 more than the total above:\n\
             if one of these objects retains another one, the bytes of the other one are counted twice.\n",
        ];
        for (at, sum) in [200, 150, 250].into_iter().enumerate() {
            let text = of(Some(300), sum);
            assert_eq!(
                retained.map(|r| text.contains(r)),
                [0, 1, 2].map(|i| i == at),
                "{text}"
            );
        }
    }

    #[test]
    fn objects_excluded_from_sizes_are_reported() {
        let plain = rendered(report(1));
        let mut shared = report(1);
        shared.flyweights = Some(SizeofFlyweights {
            enum_constants: 3,
            cached_boxes: 4,
            interned_strings: 5,
        });
        let shared = rendered(shared);
        let left = "not counted, because they are shared: 3 enum constants, 4 cached boxes, 5 string constants\n\
                    strings that the program interned are counted, because a dump does not show which strings are interned\n";
        assert!(shared.contains(left), "{shared}");
        assert!(!plain.contains("not counted") && !plain.contains("interned strings"));
        let of = |unknown: &[&str]| {
            let mut report = report(1);
            report.finals = Some(SizeofFinals {
                unknown_classes: unknown.len() as u64,
                unknown: unknown.iter().map(|&u| u.to_owned()).collect(),
            });
            rendered(report)
        };
        assert!(of(&[]).contains("\nfinal fields are skipped\n"));
        let but = "\nfinal fields are skipped, except the final fields of 2 classes (a.B, …)\n";
        assert!(of(&["a.B", "a.C"]).contains(but) && !of(&[]).contains("except"));
        assert!(!plain.contains("final fields are skipped"));
        let noun = |skip_final, skip_transient| {
            skipped_fields(&SizeofOptions {
                skip_final,
                skip_transient,
                ..SizeofOptions::default()
            })
        };
        assert_eq!(noun(false, true), "transient fields");
        assert_eq!(noun(true, true), "final and transient fields");
    }

    #[test]
    fn omitted_objects_and_classes_are_counted() {
        let of = |objects: u64, classes: u64| {
            let mut report = report(objects);
            report.more.shows_classes = true;
            report.by_class = vec![SizeofClass {
                class: "byte[]".to_owned(),
                objects: 3,
                shallow_bytes: 300,
            }];
            report.more.more_classes = (classes, 8, 1024);
            rendered(report)
        };
        let objects = "and 2 more objects (--top N shows more)\n";
        assert!(of(3, 0).contains(objects) && !of(2, 0).contains(objects));
        let classes = "and 2 more classes with 8 objects, 1.0 KiB (--top N shows more)\n";
        assert!(of(1, 2).ends_with(classes) && !of(1, 0).contains("more classes"));
        assert!(
            of(1, 1).ends_with("and 1 more class with 8 objects, 1.0 KiB (--top N shows more)\n")
        );
        assert!(!of(1, 0).contains("--top N shows more"));
    }
}
