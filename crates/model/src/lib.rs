//! Every JSON report as plain data.
//!
//! Each module has the structs of one report: their fields are the keys of the JSON, in the same order. Nothing here
//! reads a dump or prints a report.

pub mod diff;
pub mod heap;
