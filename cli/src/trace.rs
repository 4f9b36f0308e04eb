//! What is done with traces that ends in no report: exporting them, importing recordings, and removing what is old.

mod export;
mod expunge;
mod import;
mod slices;

pub(crate) use export::{Export, ExportFormat, export};
pub(crate) use expunge::{Expunge, expunge};
pub(crate) use import::{Import, import};
