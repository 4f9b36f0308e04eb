//! Sizes, spans of time and numbers as users write and read them.
//!
//! Whatever of heapdiff reads a size or a span of time, on the command line, in the agent's options or in a
//! file, reads it here, so that the same text means the same everywhere: `1MB` is 10^6 bytes, `1MiB` and `1m`
//! are 2^20. Nothing here costs more than its text is long.
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "tests"))]

mod number;
mod size;
mod span;

pub use number::{counted, grouped, percent, signed};
pub use size::{Size, SizeError, signed_size};
pub use span::{Span, SpanError, later};
