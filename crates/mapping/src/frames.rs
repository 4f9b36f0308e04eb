//! A stack frame, before and after deobfuscation.

use std::borrow::Cow;

/// A stack frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The class that declares the method, as in Java source.
    pub class: Cow<'a, str>,
    /// The method.
    pub method: Cow<'a, str>,
    /// The source file, if known.
    pub file: Option<Cow<'a, str>>,
    /// The line, if known.
    pub line: Option<usize>,
}

impl<'a> Frame<'a> {
    /// Creates a frame with the names of a dump.
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
