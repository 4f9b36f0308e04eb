//! Commands on traces that end in no report: export, import of recordings, removal of what is old.

mod export;
mod expunge;
mod import;
mod slices;

pub(crate) use export::export;
pub(crate) use expunge::expunge;
pub(crate) use import::import;
