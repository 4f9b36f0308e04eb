//! The lines that say which dump a report is of.

use std::io::{self, Write};

use heapdiff_units::{Size, grouped};

use super::WIDTH;
use super::table::{printable, shortened};
use crate::model::SnapshotInfo;
use crate::style::Style;

/// Two lines: the file and its totals, then the layout that sizes rest on.
pub(crate) fn heading(
    snapshot: &SnapshotInfo,
    shallow_bytes: u64,
    style: Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut totals = format!(
        "{} objects, {}",
        grouped(snapshot.objects),
        Size(shallow_bytes)
    );
    if let (Some(reachable), Some(garbage)) = (snapshot.reachable_bytes, snapshot.unreachable_bytes)
    {
        totals += &format!(": {} reachable, {} garbage", Size(reachable), Size(garbage));
    }
    let room = WIDTH.saturating_sub(totals.chars().count() + 2).max(20);
    let path = printable(&snapshot.path);
    let path = shortened(&path, room);
    writeln!(out, "{}  {totals}", style.bold(path))?;
    let layout = &snapshot.layout;
    let line = layout_line(
        snapshot.jvm.as_deref(),
        &layout.source,
        [layout.reference, layout.header, layout.align],
    );
    writeln!(out, "{}", style.dim(line))
}

/// The JVM, and what sizes rest on: bytes of a reference, of a header, and the alignment.
pub(crate) fn layout_line(
    jvm: Option<&str>,
    source: &str,
    [reference, header, align]: [u32; 3],
) -> String {
    let jvm = jvm.map(|version| format!("JVM {}; ", printable(version)));
    let basis = match source {
        "addresses" => "sizes from addresses",
        _ => "sizes from a model",
    };
    let line = format!(
        "{}{basis}: references {reference}, headers {header}, alignment {align} bytes",
        jvm.unwrap_or_default()
    );
    shortened(&line, WIDTH).into_owned()
}
