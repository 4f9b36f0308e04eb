//! What speaks for or against a suspect: bounds that it has, the fate of its samples, leaks known by name;
//! and the verdict made of it all.

pub(crate) mod bounds;
pub(crate) mod context;
pub(crate) mod detect;
pub(crate) mod survival;
pub(crate) mod usage;
pub(crate) mod verdict;
