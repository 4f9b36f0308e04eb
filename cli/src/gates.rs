//! Gates for continuous integration: growth that makes a run end with exit code 1.

use heapdiff_diff::{Suspect, Verdict};

use crate::args::{Gates, Job, Task};
use crate::failure::{Exit, Result};
use crate::notes;
use crate::report::{DiffReport, Report};
use crate::size::{Size, grouped};

/// Says which gates tripped, and how the run ends.
pub(crate) fn check(job: &Job, report: &Report) -> Result<Exit> {
    let (Task::Diff { gates, .. } | Task::Hunt { gates, .. }, Report::Diff(diff)) =
        (&job.task, report)
    else {
        return Ok(Exit::Done);
    };
    let tripped: Vec<String> = [growth(gates, diff), suspect(gates, diff)]
        .into_iter()
        .flatten()
        .collect();
    if tripped.is_empty() {
        return Ok(Exit::Done);
    }
    notes::gates(&tripped, &job.setup);
    Ok(Exit::Gate)
}

/// The heap as a whole first, then the suspect that grew most.
fn growth(gates: &Gates, diff: &DiffReport) -> Option<String> {
    let limit = gates.growth?;
    let heap = (diff.diff.delta.shallow_bytes, "the heap".to_owned());
    let suspects =
        suspects(diff).map(|s| (s.growth.retained_bytes, format!("what {} holds", s.holder)));
    let (bytes, what) = std::iter::once(heap)
        .chain(suspects)
        .find(|(bytes, _)| u64::try_from(*bytes).is_ok_and(|b| b > 0 && b >= limit.0))?;
    let grown = bytes.unsigned_abs();
    Some(format!(
        "--fail-on-growth: {what} grew by {} ({} bytes, the limit is {})",
        Size(grown),
        grouped(grown),
        grouped(limit.0)
    ))
}

/// All suspects, listed or not.
fn suspects(diff: &DiffReport) -> impl Iterator<Item = &Suspect> {
    diff.diff.suspects.iter().chain(&diff.more_suspects)
}

/// Caches that fill and programs that warm up do not trip.
fn suspect(gates: &Gates, diff: &DiffReport) -> Option<String> {
    let grave = |verdict| matches!(verdict, Verdict::Leak | Verdict::Growth);
    let count = suspects(diff).filter(|s| grave(s.verdict)).count();
    let first = suspects(diff).find(|s| grave(s.verdict))?;
    gates.suspect.then(|| {
        let more = match count {
            1 => String::new(),
            _ => format!(" and {} more", count - 1),
        };
        format!("--fail-on-suspect: {}{more}", first.holder)
    })
}
