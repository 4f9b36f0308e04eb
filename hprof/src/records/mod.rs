//! The records of a dump: the header and the rare ones parsed, where everything is, classes, and the walk
//! over object records.

pub(crate) mod classes;
pub(crate) mod outline;
pub(crate) mod record;
pub(crate) mod walk;
