//! All reports in all formats: text, JSON, web page, flame graph, profile, Markdown, JUnit results, metrics and rows.
//!
//! [`Report`] contains the data of one report. The JSON report contains the same data. The options of the output are in
//! a [`View`], which is stored with the data. [`render()`] writes the report in a [`Format`].
//!
//! This crate is separate from the command line because it needs neither a dump nor arguments. A renderer takes a
//! report, or the [`Stacks`] of allocated objects. For the same input it always writes the same bytes.
//!
//! Names come from a heap, so they are untrusted. Each renderer escapes them as its format requires.
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod bounded;
pub mod collapsed;
mod coverage;
mod document;
mod explained;
mod findings;
mod format;
mod github;
pub mod html;
mod json;
pub mod junit;
mod kept;
pub mod markdown;
pub mod openmetrics;
mod outlook;
pub mod pprof;
mod printable;
mod render;
mod report;
pub mod rows;
mod sarif;
mod stacks;
mod style;
pub mod svg;
#[cfg(feature = "synthetic")]
#[doc(hidden)]
pub mod synthetic;
mod tables;
mod text;
mod times;
mod unreachable;
mod view;

use heapdiff_diff::sentence::Samples;
use heapdiff_diff::{Headline, Suspect, Verdict};
use heapdiff_model::diff;
use heapdiff_units::Size;

pub use format::Format;
pub use printable::{printable, shorten_middle};
pub use render::render;
pub use report::{Condition, Report, growth};
pub use rows::PendingQuery;
pub use stacks::{Live, Names, StackLine, Stacks};
pub use style::{Painted, Style};
pub use text::age;
pub use times::{span, utc};
pub use view::{
    DiffReport, DiffView, DumpReport, FlameView, HeapView, OwnersReportView, OwnersView,
    RecordingView, SitesView, SizeofView, TraceTopView, View, Viewed, WasteView,
};

/// The warning if gates (conditions under which the run fails) could not be checked.
pub const UNDECIDED: &str = "gates were not checked, because the dumps cannot be compared (--allow-partial checks the gates anyway)";

/// Returns the word for the verdict on a suspect.
#[must_use]
pub fn verdict(suspect: &Suspect) -> &'static str {
    match suspect.verdict {
        // One dump shows only that the suspect's content is large. That is no evidence of a leak.
        _ if suspect.is_from_single_dump() => "large",
        Verdict::Leak => "leak",
        Verdict::Growth => "growth",
        Verdict::Cache => "cache",
        Verdict::Warmup => "warm-up",
    }
}

/// Maximum number of suspects for which a report begins with a headline.
pub(crate) const HEADLINES: usize = 3;

/// Returns the first suspects of a report, each with its headline: the sentence that answers the user's question.
pub(crate) fn headlines(report: &diff::Report) -> impl Iterator<Item = (&Suspect, Headline)> {
    let first = report.suspects.iter().take(HEADLINES);
    first.map(|suspect| {
        let headline = Headline::new(suspect, report.delta.shallow_bytes);
        (suspect, headline)
    })
}

/// Returns the phrase that says which part of the bytes was allocated through a frame. `stacks` is the total number of
/// stacks.
#[must_use]
pub fn share(through: &heapdiff_diff::Through, stacks: usize) -> String {
    let (permille, of) = (through.permille, stacks);
    Samples::Through {
        permille,
        stacks: through.stacks,
        of,
    }
    .to_string()
}

/// Returns the figures of all dumps, joined by arrows.
pub(crate) fn series(figures: &[u64], arrow: &str, text: impl Fn(u64) -> String) -> String {
    let figures: Vec<String> = figures.iter().map(|&n| text(n)).collect();
    figures.join(arrow)
}

/// Returns a number of bytes with its unit.
pub(crate) fn size(bytes: u64) -> String {
    Size(bytes).to_string()
}

/// Returns the sentence with a capital letter at its start and a full stop at its end.
pub(crate) fn capitalized(sentence: &str) -> String {
    let mut letters = sentence.chars();
    let first = letters.next().map(|c| c.to_ascii_uppercase());
    format!("{}{}.", first.unwrap_or_default(), letters.as_str())
}

/// Returns the paths of the compared dumps in one line.
#[must_use]
pub fn dumps(report: &heapdiff_diff::Report) -> String {
    let paths: Vec<_> = report
        .snapshots
        .iter()
        .map(|s| printable(&s.path))
        .collect();
    paths.join(" to ")
}

#[cfg(test)]
pub(crate) mod tests {
    pub(crate) use crate::synthetic::{allocated, stack, suspect};
    use heapdiff_model::diff::Report;
    use heapdiff_model::heap::HeapReport;

    use crate::view::{DiffReport, DumpReport};

    /// Returns the comparison `diff` as a report without gates (conditions under which the run fails). No suspect is
    /// left out.
    pub(crate) fn diff_report(diff: Report) -> DiffReport {
        diff.into()
    }

    /// Returns the view of a report of one dump. No suspect is left out.
    pub(crate) fn heap_report(heap: HeapReport) -> DumpReport {
        let mut report: DumpReport = heap.into();
        report.more.left_out = Some(false);
        report
    }
}
