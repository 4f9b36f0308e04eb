//! The sentences of reports, one enum per subject. `Display` writes the sentence, without a full stop.

mod evidence;
#[cfg(test)]
mod tests;
mod values;
mod verdict;
mod warning;
mod waste;

pub(crate) use self::evidence::Evidence;
pub(crate) use self::values::{Change, Names};
pub use self::verdict::{TWO_DUMPS, Verdict};
pub(crate) use self::warning::Warning;
pub use self::waste::Waste;
