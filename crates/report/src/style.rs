//! Colours in text.

use std::fmt;

/// Colours words, or leaves them as they are.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    on: bool,
}

impl Style {
    /// Colours for a terminal.
    #[must_use]
    pub const fn coloured() -> Self {
        Self { on: true }
    }

    /// No colours, as in a file.
    #[must_use]
    pub const fn plain() -> Self {
        Self { on: false }
    }

    /// Headings and what a line is about.
    #[must_use]
    pub fn bold<T: fmt::Display>(self, text: T) -> Painted<T> {
        self.paint("1", text)
    }

    /// What matters less.
    #[must_use]
    pub fn dim<T: fmt::Display>(self, text: T) -> Painted<T> {
        self.paint("2", text)
    }

    /// What went wrong, or grew.
    #[must_use]
    pub fn red<T: fmt::Display>(self, text: T) -> Painted<T> {
        self.paint("1;31", text)
    }

    /// What may be wrong.
    #[must_use]
    pub fn yellow<T: fmt::Display>(self, text: T) -> Painted<T> {
        self.paint("1;33", text)
    }

    fn paint<T: fmt::Display>(self, code: &'static str, text: T) -> Painted<T> {
        Painted {
            code: self.on.then_some(code),
            text,
        }
    }
}

/// A text in a colour. Width and alignment apply to the text alone.
#[derive(Debug)]
pub struct Painted<T> {
    code: Option<&'static str>,
    text: T,
}

impl<T: fmt::Display> fmt::Display for Painted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code {
            Some(code) => {
                write!(f, "\x1b[{code}m")?;
                self.text.fmt(f)?;
                f.write_str("\x1b[0m")
            }
            None => self.text.fmt(f),
        }
    }
}
