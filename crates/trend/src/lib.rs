//! Analyzes a series of figures over time: its trend, its slope with a confidence interval, and the start of its
//! growth.
//!
//! Comparisons of dumps (with a few figures) and traces (with many figures) both use this crate. It is separate so that
//! neither of them depends on the other.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod onset;
mod reach;
mod series;
mod slope;

pub use onset::onset;
pub use reach::{Outlook, Reach, Rise, Rising};
pub use series::{Course, Trend, last_step_percent};
pub use slope::{LEAST_POINTS, Slope, Z95};
