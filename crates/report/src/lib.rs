//! All reports, as data and in every format: text, JSON, web page, flame graph, profile, Markdown, JUnit results,
//! metrics, rows.
//!
//! [`Report`] is the data of one report, which is also its JSON, with a [`View`] where a printer has options.
//! [`render()`] writes it in a [`Format`]. It is a separate crate, because nothing here needs a dump or a command line: each
//! renderer takes a report, or the [`Stacks`] of what was allocated, and gives the same bytes whenever it gets the same.
//! Names come from a heap, which anybody may have written; each renderer escapes them as its format wants.
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
mod openmetrics;
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
mod view;

use heapdiff_diff::sentence::Samples;
use heapdiff_diff::{Headline, Suspect, Verdict};
use heapdiff_model::diff;
use heapdiff_units::Size;

pub use format::Format;
pub use printable::{printable, shortened};
pub use render::render;
pub use report::{Condition, Report, growth};
pub use rows::PendingQuery;
pub use stacks::{Live, Names, StackLine, Stacks};
pub use style::{Painted, Style};
pub use times::{span, utc};
pub use view::{
    DiffReport, DiffView, DumpReport, FlameView, HeapView, RecordingView, SitesView, SizeofView,
    TraceTopView, View, Viewed, WasteView,
};

/// What a report says where gates were asked for and do not decide.
pub const UNDECIDED: &str = "gates were not checked, because the dumps cannot be compared (--allow-partial checks the gates anyway)";

/// What a suspect is taken for, as people read it.
#[must_use]
pub fn verdict(suspect: &Suspect) -> &'static str {
    match suspect.verdict {
        // What is large in one dump need not leak.
        _ if suspect.is_of_one_dump() => "large",
        Verdict::Leak => "leak",
        Verdict::Growth => "growth",
        Verdict::Cache => "cache",
        Verdict::Warmup => "warm-up",
    }
}

/// Maximum number of suspects that have a headline.
pub(crate) const HEADLINES: usize = 3;

/// Returns the answer: the first suspects with their headlines.
pub(crate) fn headlines(report: &diff::Report) -> impl Iterator<Item = (&Suspect, Headline)> {
    let first = report.suspects.iter().take(HEADLINES);
    first.map(|suspect| {
        let headline = Headline::new(suspect, report.delta.shallow_bytes);
        (suspect, headline)
    })
}

/// Returns the part that was allocated through a frame. `stacks` is the number of all stacks.
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

/// Returns the figures of all dumps, with an arrow between two of them.
pub(crate) fn series(figures: &[u64], arrow: &str, text: impl Fn(u64) -> String) -> String {
    let figures: Vec<String> = figures.iter().map(|&n| text(n)).collect();
    figures.join(arrow)
}

/// Returns a number of bytes with its unit.
pub(crate) fn size(bytes: u64) -> String {
    Size(bytes).to_string()
}

/// Returns a sentence with a capital letter and a full stop.
pub(crate) fn capitalized(sentence: &str) -> String {
    let mut letters = sentence.chars();
    let first = letters.next().map(|c| c.to_ascii_uppercase());
    format!("{}{}.", first.unwrap_or_default(), letters.as_str())
}

/// The dumps that were compared, in one line.
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

    /// A comparison without gates, shown whole.
    pub(crate) fn diff_report(diff: Report) -> DiffReport {
        diff.into()
    }

    /// One dump, shown whole.
    pub(crate) fn heap_report(heap: HeapReport) -> DumpReport {
        let mut report: DumpReport = heap.into();
        report.more.left_out = Some(false);
        report
    }
}
