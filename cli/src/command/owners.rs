//! `heapdiff owners`: memory by package, jar, class loader, thread, bean or tenant.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use heapdiff_diff::samples::AgentObjects;
use heapdiff_diff::{OwnerError, OwnerKind, OwnerSummary, Summary};
use heapdiff_model::owners::OwnersReport;
use heapdiff_model::snapshot::SnapshotInfo;
use heapdiff_report::junit::Gate;
use heapdiff_report::{Format, OwnersView, Report, View, Viewed};
use heapdiff_units::{Size, counted, grouped};
use hprof::Snapshot;

use super::dump_info;
use super::opened::open_after;
use crate::args::input;
use crate::failure::{Failure, Result};
use crate::gates::GrowthLimit;
use crate::job::{Formats, Setup, Task, text_and_json};

/// Maximum number of owners, and of groups of owners that share memory, in text.
const ROWS: usize = 20;
/// Maximum number of owners, and of groups of owners that share memory, in JSON.
pub(super) const JSON_ROWS: usize = 1000;

const HELP: &str = "\
Examples:
  heapdiff owners app.hprof                        # packages, or class loaders if there are several
  heapdiff owners monday.hprof friday.hprof --by jar
  heapdiff owners app.hprof -o owners.html
  heapdiff owners app.hprof --field com.acme.Session.tenant
  heapdiff owners 1.hprof 2.hprof --fail-on-growth 'com.acme.shop=10MiB'

Each reachable byte is counted once. The instances of an owner's classes belong to it. Another
object belongs to an owner if a path leads from the owner's objects to it and passes no other
owner's objects. Objects of several owners are shared. Objects that only GC roots and JDK classes
reach belong to the JVM. All figures add up to the reachable heap.";

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct Owners {
    /// Heap dump (HPROF), gzipped or not; several dumps of one program, oldest first, show which
    /// owner grew
    #[arg(required = true, value_name = "DUMP")]
    #[arg(value_parser = input())]
    dumps: Vec<PathBuf>,
    /// Kind of owners [default: loader if there are two class loaders besides the JDK's, otherwise
    /// package]
    #[arg(long, value_enum, conflicts_with = "field")]
    by: Option<By>,
    /// Number of parts of package names, such as 3 for com.acme.shop [default: the longest names that
    /// give at most 40 owners]
    #[arg(long, value_name = "N", conflicts_with = "field")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    parts: Option<u32>,
    /// Field whose values are the owners, such as a tenant
    #[arg(long, alias = "owner-field", value_name = "CLASS.FIELD")]
    field: Option<Field>,
    /// Exit with 1 if this owner (`*`: any) grew by at least this much: 10MiB, or 10% of the first
    /// heap; may be repeated
    #[arg(long = "fail-on-growth", value_name = "OWNER=SIZE|PERCENT")]
    gates: Vec<OwnerGate>,
}

/// The kind of owners whose memory a comparison shows (`--owners`).
#[derive(Clone, Debug)]
pub(crate) struct OwnersOption(OwnerKind);

impl FromStr for OwnersOption {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let kind = match By::from_str(text, false) {
            Ok(by) => by.kind(None),
            Err(_) if text == "auto" => OwnerKind::Auto,
            Err(_) => {
                let Field(class, field) = text.parse().map_err(|_| {
                    "use auto, package, jar, loader, thread, bean or CLASS.FIELD".to_owned()
                })?;
                OwnerKind::Field(class, field)
            }
        };
        Ok(Self(kind))
    }
}

impl OwnersOption {
    /// Returns the memory of each owner in each dump.
    pub(super) fn read(&self, setup: &Setup, dumps: &[PathBuf]) -> Result<Vec<OwnerSummary>> {
        if let Some(summary) = dumps.iter().find(|dump| Summary::is_file(dump)) {
            let message = format!(
                "--owners needs dumps, but {} is a summary",
                summary.display()
            );
            return Err(Failure::usage(message));
        }
        Ok(summaries(setup, dumps, &self.0)?.1)
    }
}

impl By {
    fn kind(self, parts: Option<usize>) -> OwnerKind {
        match self {
            Self::Package => OwnerKind::Package(parts),
            Self::Jar => OwnerKind::Jar,
            Self::Loader => OwnerKind::Loader,
            Self::Thread => OwnerKind::Thread,
            Self::Bean => OwnerKind::Bean,
        }
    }
}

/// A kind of owners.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum By {
    Package,
    Jar,
    Loader,
    Thread,
    Bean,
}

/// A class and one of its fields.
#[derive(Clone, Debug)]
struct Field(String, String);

impl FromStr for Field {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text.rsplit_once('.') {
            Some((class, field)) if !class.is_empty() && !field.is_empty() => {
                Ok(Self(class.to_owned(), field.to_owned()))
            }
            _ => Err(format!(
                "`{text}` is not a class and a field, such as com.acme.Session.tenant"
            )),
        }
    }
}

/// A condition under which the run fails: the owner grew by at least `limit`.
#[derive(Clone, Debug)]
struct OwnerGate {
    owner: String,
    limit: GrowthLimit,
}

impl FromStr for OwnerGate {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let (owner, limit) = text
            .rsplit_once('=')
            .ok_or_else(|| format!("`{text}` is not OWNER=SIZE, such as com.acme.shop=10MiB"))?;
        Ok(Self {
            owner: owner.to_owned(),
            limit: limit.parse()?,
        })
    }
}

impl Owners {
    fn kind(&self) -> OwnerKind {
        let parts = self.parts.map(|parts| parts as usize);
        match (&self.field, self.by) {
            (Some(Field(class, field)), _) => OwnerKind::Field(class.clone(), field.clone()),
            (None, Some(by)) => by.kind(parts),
            (None, None) if parts.is_some() => OwnerKind::Package(parts),
            (None, None) => OwnerKind::Auto,
        }
    }

    /// Returns the reason why the gates (the conditions under which the run fails) cannot be checked, and a hint for
    /// the user.
    fn undecided(&self, report: &OwnersReport) -> Option<(String, &'static str)> {
        if let Some(dump) = report.snapshots.iter().find(|dump| dump.partial)
            && !self.gates.is_empty()
        {
            let why = format!("{} is damaged, so its figures are too low", dump.path);
            return Some((why, "use complete dumps"));
        }
        let is_known = |gate: &&OwnerGate| {
            gate.owner == "*"
                || report
                    .figures
                    .owners
                    .iter()
                    .any(|row| row.owner == gate.owner)
        };
        let unknown = self.gates.iter().find(|gate| !is_known(gate))?;
        let why = format!("no owner is named {}", unknown.owner);
        Some((why, "use a name that the report shows"))
    }

    /// Returns each gate (a condition under which the run fails), with the reason if its condition is met.
    fn outcomes(&self, report: &OwnersReport) -> Vec<Gate> {
        let first = report.snapshots.first().and_then(|s| s.reachable_bytes);
        let outcome = |gate: &OwnerGate| {
            let limit = gate.limit.bytes(first.unwrap_or(0));
            let name = format!("--fail-on-growth {}={}", gate.owner, Size(limit));
            let mut grown = report.figures.owners.iter().filter_map(|row| {
                let is_meant = gate.owner == row.owner || gate.owner == "*";
                let growth = row.bytes.last()?.saturating_sub(*row.bytes.first()?);
                (is_meant && growth >= limit).then_some((&row.owner, growth))
            });
            let tripped = grown.next().map(|(owner, growth)| {
                let others = match grown.count() {
                    0 => String::new(),
                    count => format!("; {} grew too much", counted(count as u64, "other owner")),
                };
                format!(
                    "--fail-on-growth: {owner} grew by {} ({} bytes; the limit is {}){others}",
                    Size(growth),
                    grouped(growth),
                    grouped(limit)
                )
            });
            Gate { name, tripped }
        };
        self.gates.iter().map(outcome).collect()
    }
}

fn formats(format: Format) -> bool {
    text_and_json(format) || format == Format::Html
}

impl Owners {
    /// Reports the owners of one dump.
    pub(super) fn new(dump: PathBuf) -> Self {
        Self {
            dumps: vec![dump],
            by: None,
            parts: None,
            field: None,
            gates: Vec::new(),
        }
    }
}

impl Task for Owners {
    fn formats() -> Formats {
        formats
    }

    fn check(&self, _: &Setup, _: Format) -> Result<()> {
        if !self.gates.is_empty() && self.dumps.len() < 2 {
            let message = "--fail-on-growth needs two dumps";
            return Err(Failure::usage(message).with_hint("heapdiff owners BEFORE AFTER"));
        }
        if self.parts.is_some() && !matches!(self.by, None | Some(By::Package)) {
            return Err(Failure::usage("--parts is for --by package"));
        }
        Ok(())
    }

    fn run(&self, setup: &Setup) -> Result<Vec<Report>> {
        let (snapshots, summaries) = summaries(setup, &self.dumps, &self.kind())?;
        let mut report = OwnersReport {
            schema: OwnersReport::SCHEMA,
            snapshots,
            figures: OwnerSummary::compared(&summaries),
        };
        let (undecided, outcomes) = (self.undecided(&report), self.outcomes(&report));
        let rows = setup.top.unwrap_or(ROWS);
        let mut more = OwnersView {
            owners: report.figures.owners.clone(),
            rows,
            groups: report.figures.shared.len() as u64,
            outcomes,
            undecided,
        };
        OwnerSummary::limit(&mut more.owners, rows);
        let rows = setup.top.unwrap_or(JSON_ROWS);
        OwnerSummary::limit(&mut report.figures.owners, rows);
        report.figures.shared.truncate(rows);
        Ok(vec![Report::Owners(Box::new(Viewed {
            data: report,
            view: View::default(),
            more,
        }))])
    }
}

/// Computes the memory of each owner in each dump. Each dump is reduced to its summary before the next dump is opened.
pub(super) fn summaries(
    setup: &Setup,
    dumps: &[PathBuf],
    kind: &OwnerKind,
) -> Result<(Vec<SnapshotInfo>, Vec<OwnerSummary>)> {
    let (mut snapshots, mut summaries) = (Vec::new(), Vec::<OwnerSummary>::new());
    let mut previous: Option<Snapshot> = None;
    for dump in dumps {
        let (snapshot, meter) = open_after(previous.take(), setup, dump, true)?;
        let own = AgentObjects::find(&snapshot);
        // For the first dump, `OwnerSummary::new` determines the kind of owners, for example packages. This kind is
        // then used for all dumps.
        let kind = summaries.first().map_or(kind, |first| &first.kind).clone();
        let summary = OwnerSummary::new(&snapshot, &own, &kind, dumps.len() > 1, &meter);
        summaries.push(summary.map_err(|e| failure(dump, e))?);
        snapshots.push(dump_info::of(&snapshot, &own));
        previous = Some(snapshot);
    }
    Ok((snapshots, summaries))
}

fn failure(dump: &std::path::Path, error: OwnerError) -> Failure {
    match error {
        OwnerError::Dump(error) => Failure::input(dump, &error),
        other => Failure::bad_input(format!("{}: {other}", dump.display())),
    }
}
