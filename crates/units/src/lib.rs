//! Parses and formats sizes, time spans and numbers for users.
//!
//! Sizes and time spans on the command line, in agent options and in files are parsed only here. So a text has the same
//! meaning everywhere: `1MB` is 10^6 bytes, `1MiB` and `1m` are 2^20. All costs are linear in the length of the text.
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "tests"))]

mod number;
mod size;
mod span;

pub use number::{Probability, counted, grouped, percent, signed};
pub use size::{Size, SizeError, signed_size};
pub use span::{Span, SpanError, later};
