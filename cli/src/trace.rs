//! What is done with traces that ends in no report: exporting them, and removing what is old.

mod export;
mod expunge;
mod slices;

pub(crate) use export::{Export, ExportFormat, export};
pub(crate) use expunge::{Expunge, expunge};
