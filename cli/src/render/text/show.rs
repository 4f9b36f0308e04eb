//! Objects with what they hold.

use std::io::{self, Write};

use super::WIDTH;
use super::snapshot;
use super::table::{printable, shortened};
use crate::report::{ObjectRef, ShowReport, ShownObject, ShownValue};
use crate::size::{Size, counted, grouped};
use crate::style::Style;

pub(crate) fn render(report: &ShowReport, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let snapshot = &report.snapshot;
    let all = snapshot.reachable_bytes.unwrap_or(0) + snapshot.unreachable_bytes.unwrap_or(0);
    snapshot::heading(snapshot, all, style, out)?;
    let selected = &report.selected;
    let shown = report.objects.len() as u64;
    if selected.objects > 1 {
        writeln!(
            out,
            "{} names {}, {}; those that retain most:",
            printable(&report.selector),
            counted(selected.objects, "object"),
            Size(selected.shallow_bytes)
        )?;
    }
    for object in &report.objects {
        writeln!(out)?;
        self::object(object, style, out)?;
    }
    if shown < selected.objects {
        let rest = format!(
            "and {} (--top N shows more)",
            counted(selected.objects - shown, "more object")
        );
        writeln!(out)?;
        writeln!(out, "{}", style.dim(rest))?;
    }
    Ok(())
}

fn object(object: &ShownObject, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let name = format!("{} @ {}", object.class, object.id);
    let name = printable(&name);
    writeln!(out, "{}", style.bold(shortened(&name, WIDTH)))?;
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
        _ => ", garbage: no GC root reaches it".to_owned(),
    };
    line("size", &sizes, style, out)?;
    if let Some(root) = object.root {
        line("root", root, style, out)?;
    }
    if let Some(dominator) = &object.dominator {
        line("held by", &mention(dominator), style, out)?;
    }
    if let Some(text) = &object.text {
        let literal: Vec<char> = format!("{text:?}").chars().collect();
        for (i, part) in literal.chunks(WIDTH - 11).enumerate() {
            let part: String = part.iter().collect();
            line(if i == 0 { "text" } else { "" }, &part, style, out)?;
        }
    }
    if let Some(superclass) = &object.superclass {
        line("extends", &mention(superclass), style, out)?;
    }
    if let Some(loader) = &object.loader {
        line("loader", &mention(loader), style, out)?;
    }
    let width = object.fields.iter().map(|f| f.name.chars().count()).max();
    let width = width.unwrap_or(0).min(30);
    let mut class = object.fields.first().map(|f| &f.class);
    for field in &object.fields {
        if class != Some(&field.class) {
            class = Some(&field.class);
            let inherited = format!("    from {}", field.class);
            writeln!(
                out,
                "{}",
                style.dim(shortened(&printable(&inherited), WIDTH))
            )?;
        }
        let text = format!("    {:<width$}  {}", field.name, value(&field.value));
        writeln!(out, "{}", shortened(&printable(&text), WIDTH))?;
    }
    array(object, out)?;
    referrers(object, style, out)
}

fn array(object: &ShownObject, out: &mut dyn Write) -> io::Result<()> {
    let Some(array) = &object.array else {
        return Ok(());
    };
    let mut row = String::from("   ");
    let mut nulls = 0;
    for (i, element) in array.elements.iter().enumerate() {
        if element.kind == "Object" && element.object.is_none() {
            nulls += 1;
            continue;
        }
        if let Some(literal) = &element.value {
            if row.chars().count() + 1 + literal.chars().count() > WIDTH {
                writeln!(out, "{row}")?;
                row = String::from("   ");
            }
            row.push(' ');
            row += literal;
        } else {
            let text = format!("    [{i}]  {}", value(element));
            writeln!(out, "{}", shortened(&printable(&text), WIDTH))?;
        }
    }
    if !row.trim().is_empty() {
        writeln!(out, "{row}")?;
    }
    if nulls > 0 {
        let of = array.elements.len();
        writeln!(out, "    {nulls} of the first {of} elements are null")?;
    }
    let rest = u64::from(array.length).saturating_sub(array.elements.len() as u64);
    if rest > 0 {
        writeln!(out, "    and {}", counted(rest, "more element"))?;
    }
    Ok(())
}

fn referrers(object: &ShownObject, style: Style, out: &mut dyn Write) -> io::Result<()> {
    if object.referrers.is_empty() {
        return Ok(());
    }
    writeln!(out, "  {}", style.dim("referred to by"))?;
    for referrer in &object.referrers {
        let weak = match referrer.strength {
            "strong" => String::new(),
            kind => format!(", {kind}"),
        };
        // The class of a field's object says less than the field's own name, which comes first.
        let text = format!("    {}{weak}  {}", referrer.via, mention(&referrer.object));
        writeln!(out, "{}", shortened(&printable(&text), WIDTH))?;
    }
    let rest = object.referrer_count - object.referrers.len() as u64;
    if rest > 0 {
        writeln!(out, "    and {}", counted(rest, "more reference"))?;
    }
    Ok(())
}

fn line(label: &str, text: &str, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let text = printable(text);
    let text = shortened(&text, WIDTH - 11);
    writeln!(out, "  {:<7}  {text}", style.dim(label))
}

fn value(value: &ShownValue) -> String {
    match (&value.value, &value.object) {
        (Some(literal), _) => literal.clone(),
        (None, Some(object)) => mention(object),
        (None, None) if value.kind == "Object" => "null".to_owned(),
        (None, None) => "(not in the record)".to_owned(),
    }
}

/// An object in one line: `byte[16] @ 0x7f00`, `java.lang.String @ 0x7f08 "text"`.
pub(super) fn mention(object: &ObjectRef) -> String {
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
