//! The JSON reports as plain data.
//!
//! Each module has the structs of one report. Their fields are the keys of the JSON, in the same order. This crate
//! neither reads dumps nor prints reports.

pub mod ages;
pub mod count;
pub mod diff;
pub mod export;
pub mod find;
pub mod heap;
pub mod histo;
pub mod labels;
pub mod owners;
pub mod paths;
pub mod query;
pub mod recording;
pub mod schemas;
pub mod show;
pub mod sites;
pub mod sizeof;
pub mod snapshot;
pub mod threads;
pub mod top;
pub mod trace;
pub mod unreachable;
pub mod waste;
mod words;
