//! A frame of a stack, before and after.

use std::borrow::Cow;

/// A frame of a stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The class that declares the method, as in Java source.
    pub class: Cow<'a, str>,
    /// The method.
    pub method: Cow<'a, str>,
    /// The source file, where known.
    pub file: Option<Cow<'a, str>>,
    /// The line, where known.
    pub line: Option<usize>,
}

impl<'a> Frame<'a> {
    /// A frame as a dump has it.
    #[must_use]
    pub fn new(
        class: &'a str,
        method: &'a str,
        file: Option<&'a str>,
        line: Option<usize>,
    ) -> Self {
        Self {
            class: class.into(),
            method: method.into(),
            file: file.map(Cow::Borrowed),
            line,
        }
    }
}
