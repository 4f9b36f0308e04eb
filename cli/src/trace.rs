//! What is done with traces that ends in no report: exporting them, importing recordings, and removing what is old.

mod export;
mod expunge;
mod import;
mod slices;

pub(crate) use export::export;
pub(crate) use expunge::expunge;
pub(crate) use import::import;
