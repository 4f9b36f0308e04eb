//! Single objects: where their records are, their fields, texts and references; selectors that name them.

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
