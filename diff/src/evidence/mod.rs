//! Evidence for or against a suspect (bounds, survival of samples, known leak patterns, usage), and the verdict.

pub(crate) mod bounds;
pub(crate) mod context;
pub(crate) mod detect;
pub(crate) mod survival;
pub(crate) mod usage;
pub(crate) mod verdict;
