//! The sentences of reports. There is one enum for each subject. `Display` writes the sentence, without a full stop.

mod evidence;
#[cfg(test)]
mod examples;
mod samples;
#[cfg(test)]
mod tests;
mod values;
mod verdict;
mod warning;
mod waste;

pub(crate) use self::evidence::Evidence;
pub use self::samples::{Alive, First, Loss, Rate, SITES_LEFT_OUT, Samples, Whole};
pub(crate) use self::values::{Change, Names};
pub use self::verdict::{TWO_DUMPS, Verdict};
pub(crate) use self::warning::Warning;
pub use self::waste::Waste;

/// Returns the sentence which says that the number of objects grew, but not the number of their holders.
#[must_use]
pub fn holders_unchanged_sentence() -> String {
    Evidence::MoreHeld { before: 1, now: 1 }.to_string()
}
