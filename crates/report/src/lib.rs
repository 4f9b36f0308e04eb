//! Reports of growth in the formats that other programs show: web page, flame graph, profile, Markdown,
//! JUnit results.
//!
//! A crate of its own because nothing here needs a dump or a command line: each renderer takes a
//! [`Report`], or the [`Stacks`] of what was allocated, and gives the same
//! bytes whenever it gets the same. Names come from a heap, which anybody may have written; each renderer
//! escapes them as its format wants.
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod collapsed;
pub mod html;
pub mod junit;
pub mod markdown;
pub mod pprof;
mod stacks;
pub mod svg;
#[cfg(feature = "synthetic")]
#[doc(hidden)]
pub mod synthetic;
pub mod text;

use heapdiff_diff::{Report, Suspect, Verdict};

pub use stacks::{Live, Names, StackLine, Stacks, focused};

/// What a suspect is taken for, as people read it.
#[must_use]
pub fn verdict(suspect: &Suspect) -> &'static str {
    match suspect.verdict {
        Verdict::Leak => "leak",
        Verdict::Growth => "growth",
        Verdict::Cache => "cache",
        Verdict::Warmup => "warm-up",
    }
}

/// The dumps that were compared, in one line.
#[must_use]
pub fn dumps(report: &Report) -> String {
    let paths: Vec<_> = report
        .snapshots
        .iter()
        .map(|s| text::printable(&s.path))
        .collect();
    paths.join(" to ")
}

#[cfg(test)]
pub(crate) mod tests {
    pub(crate) use crate::synthetic::{allocated, stack, suspect};
}
