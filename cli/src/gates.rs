//! Gates for continuous integration: growth that makes a run end with exit code 1.

use heapdiff_diff::Suspect;
use heapdiff_report::is_grave;
use heapdiff_report::junit::Gate;

use crate::args::{Gates, Job};
use crate::failure::{Exit, Result};
use crate::notes;
use crate::report::{DiffReport, Report};
use crate::size::{Size, grouped};

/// Says which gates tripped, and how the run ends.
pub(crate) fn check(job: &Job, report: &Report) -> Result<Exit> {
    let Report::Diff(diff) = report else {
        return Ok(Exit::Done);
    };
    let tripped: Vec<String> = outcomes(&diff.gates, diff)
        .into_iter()
        .filter_map(|gate| gate.tripped)
        .collect();
    if tripped.is_empty() {
        return Ok(Exit::Done);
    }
    notes::gates(&tripped, &job.setup);
    Ok(Exit::Gate)
}

/// Each gate that was asked for, and why it tripped if it did.
pub(crate) fn outcomes(gates: &Gates, diff: &DiffReport) -> Vec<Gate> {
    let growth = gates.growth.map(|limit| Gate {
        name: format!("--fail-on-growth {}", Size(limit.0)),
        tripped: growth(limit, diff),
    });
    let suspect = gates.suspect.then(|| Gate {
        name: "--fail-on-suspect".to_owned(),
        tripped: suspect(diff),
    });
    growth.into_iter().chain(suspect).collect()
}

/// Whether a gate trips for the sake of one suspect.
pub(crate) fn trips(gates: &Gates, suspect: &Suspect) -> bool {
    let too_much = |limit| reaches(suspect.growth.retained_bytes, limit);
    gates.growth.is_some_and(too_much) || gates.suspect && is_grave(suspect)
}

fn reaches(bytes: i64, limit: Size) -> bool {
    u64::try_from(bytes).is_ok_and(|b| b > 0 && b >= limit.0)
}

/// The heap as a whole first, less what is known to grow; then the suspect that grew most.
fn growth(limit: Size, diff: &DiffReport) -> Option<String> {
    let known: i64 = diff
        .known
        .iter()
        .map(|(suspect, _)| suspect.growth.retained_bytes.max(0))
        .fold(0, i64::saturating_add);
    let heap = match known {
        0 => "the heap",
        _ => "the heap, without known growth,",
    };
    let heap = (
        diff.diff.delta.shallow_bytes.saturating_sub(known),
        heap.to_owned(),
    );
    let suspects =
        suspects(diff).map(|s| (s.growth.retained_bytes, format!("what {} holds", s.holder)));
    let (bytes, what) = std::iter::once(heap)
        .chain(suspects)
        .find(|(bytes, _)| reaches(*bytes, limit))?;
    let grown = bytes.unsigned_abs();
    Some(format!(
        "--fail-on-growth: {what} grew by {} ({} bytes, the limit is {})",
        Size(grown),
        grouped(grown),
        grouped(limit.0)
    ))
}

/// All suspects, listed or not, but those that are known.
fn suspects(diff: &DiffReport) -> impl Iterator<Item = &Suspect> {
    diff.diff.suspects.iter().chain(&diff.more_suspects)
}

/// Caches that fill and programs that warm up do not trip.
fn suspect(diff: &DiffReport) -> Option<String> {
    let count = suspects(diff).filter(|s| is_grave(s)).count();
    let first = suspects(diff).find(|s| is_grave(s))?;
    let more = match count {
        1 => String::new(),
        _ => format!(" and {} more", count - 1),
    };
    Some(format!("--fail-on-suspect: {}{more}", first.holder))
}
