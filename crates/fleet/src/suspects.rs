//! Adds the suspects of a diff report.

use std::path::Path;

use heapdiff_tables::{Cell, Column, Kind};
use serde::Deserialize;

use crate::files::{DAY_MS, Partition, Table, hash};
use crate::{Added, FleetError, Labels};

/// The name of the schema with its major version.
const SCHEMA: &str = "heapdiff.diff/1";

// Those parts of a `heapdiff.diff/1` report that the table contains.

#[derive(Deserialize)]
struct Report {
    schema: String,
    snapshots: Vec<Snapshot>,
    suspects: Vec<Suspect>,
}

#[derive(Deserialize)]
struct Snapshot {
    path: String,
    taken_ms: u64,
    jvm: Option<String>,
    reachable_bytes: Option<u64>,
}

#[derive(Deserialize)]
struct Suspect {
    rank: i64,
    verdict: String,
    reasons: Vec<String>,
    root: String,
    holder: Option<String>,
    path: Vec<String>,
    class: String,
    growth: Growth,
    stacks: Vec<Stack>,
}

#[derive(Deserialize)]
struct Growth {
    objects: i64,
    shallow_bytes: i64,
    retained_bytes: i64,
}

#[derive(Deserialize)]
struct Stack {
    frames: Vec<String>,
    estimated_bytes: i64,
}

fn columns() -> Vec<Column> {
    let text = |name| Column::new(name, Kind::Text);
    let int = |name| Column::new(name, Kind::Int);
    vec![
        text("report"),
        text("jvm"),
        int("snapshots"),
        int("from_ms"),
        int("taken_ms"),
        int("reachable_bytes"),
        int("rank"),
        text("verdict"),
        text("holder"),
        text("class"),
        text("root"),
        text("path"),
        text("reasons"),
        int("growth_objects"),
        int("growth_shallow_bytes"),
        int("growth_retained_bytes"),
        text("stack"),
        int("stack_bytes"),
    ]
}

/// Adds the suspects of a report to the table `suspects` in the folder `fleet`.
pub(crate) fn add(
    input: &Path,
    text: &[u8],
    fleet: &Path,
    labels: &Labels,
) -> Result<Added, FleetError> {
    let foreign = |why: String| FleetError::Foreign {
        path: input.to_owned(),
        why,
    };
    let report: Report = serde_json::from_slice(text).map_err(|e| foreign(format!(" ({e})")))?;
    if report.schema != SCHEMA {
        return Err(foreign(format!(" (its schema is {:?})", report.schema)));
    }
    let (Some(first), Some(last)) = (report.snapshots.first(), report.snapshots.last()) else {
        return Err(foreign(" (it contains no dumps)".to_owned()));
    };
    // A report has no id, so the file is named after a hash of the report's dumps.
    let times: Vec<String> = report
        .snapshots
        .iter()
        .flat_map(|s| [s.path.clone(), s.taken_ms.to_string()])
        .collect();
    let name = hash(&times.iter().map(String::as_str).collect::<Vec<_>>());
    let partition = Partition::new(labels, "", "", last.taken_ms / DAY_MS);
    let mut table = Table::begin(fleet, "suspects", &partition, &name, &columns())?;
    let whole = |figure: u64| Cell::Int(i64::try_from(figure).unwrap_or(i64::MAX));
    for suspect in &report.suspects {
        let path = suspect.path.join(" ");
        let reasons = suspect.reasons.join("\n");
        let stack = suspect.stacks.first();
        // Frames are stored root first, as in the `sites` table.
        let frames = stack.map(|s| s.frames.iter().rev().cloned().collect::<Vec<_>>().join(";"));
        table.row(&[
            Cell::Text(&name),
            optional(last.jvm.as_deref()),
            whole(report.snapshots.len() as u64),
            whole(first.taken_ms),
            whole(last.taken_ms),
            last.reachable_bytes.map_or(Cell::Null, whole),
            Cell::Int(suspect.rank),
            Cell::Text(&suspect.verdict),
            optional(suspect.holder.as_deref()),
            Cell::Text(&suspect.class),
            Cell::Text(&suspect.root),
            Cell::Text(&path),
            Cell::Text(&reasons),
            Cell::Int(suspect.growth.objects),
            Cell::Int(suspect.growth.shallow_bytes),
            Cell::Int(suspect.growth.retained_bytes),
            optional(frames.as_deref()),
            stack.map_or(Cell::Null, |s| Cell::Int(s.estimated_bytes)),
        ])?;
    }
    let (file, rows) = table.finish()?;
    Ok(Added {
        rows,
        files: vec![file],
        odd: 0,
    })
}

fn optional(text: Option<&str>) -> Cell<'_> {
    text.map_or(Cell::Null, Cell::Text)
}
