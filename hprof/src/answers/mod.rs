//! What can be asked of an analysed dump.

pub(crate) mod contents;
pub(crate) mod deep;
pub(crate) mod histogram;
pub(crate) mod jvm;
pub(crate) mod objects;
pub(crate) mod paths;
pub(crate) mod retained_set;
pub(crate) mod stream;
pub(crate) mod threads;
pub(crate) mod waste;
