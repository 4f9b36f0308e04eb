//! What a series of figures does over time: its trend, its slope with an interval, when its growth
//! began.
//!
//! A crate of its own because diffs of dumps ask it of a few figures and traces of many, and
//! neither needs the other.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod onset;
mod series;
mod slope;

pub use onset::onset;
pub use series::{Course, Trend, last_step_percent};
pub use slope::{LEAST_POINTS, Slope, Z95};
