//! Single objects: their records, fields, strings and references, and selectors that name objects.

pub(crate) mod columns;
pub(crate) mod locals;
pub(crate) mod named;
pub(crate) mod object;
pub(crate) mod printed;
pub(crate) mod reference;
pub(crate) mod select_error;
pub(crate) mod selector;
pub(crate) mod strings;
pub(crate) mod thread_locals;
