//! Colours, when the stream shows them.

use std::fmt;
use std::io::IsTerminal;

use clap::ValueEnum;

// Doc comments on the values would blow `--help` up to a page for each option.
/// When to use colours or show progress; by itself, on a terminal.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub(crate) enum When {
    #[default]
    Auto,
    Always,
    Never,
}

/// Paints words, or leaves them as they are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    on: bool,
}

impl Style {
    /// `Auto` means colours on a terminal that can show them, unless `NO_COLOR` is set.
    pub(crate) fn new(when: When, stream: &impl IsTerminal) -> Self {
        let on = match when {
            When::Always => true,
            When::Never => false,
            When::Auto => {
                let refused = |name, bad: fn(&std::ffi::OsStr) -> bool| {
                    std::env::var_os(name).is_some_and(|value| bad(&value))
                };
                stream.is_terminal()
                    && !refused("NO_COLOR", |value| !value.is_empty())
                    && !refused("TERM", |value| value == "dumb")
            }
        };
        Self { on }
    }

    /// No colours, as in a file.
    pub(crate) const fn plain() -> Self {
        Self { on: false }
    }

    /// Headings and what a line is about.
    pub(crate) fn bold<T: fmt::Display>(self, text: T) -> Painted<T> {
        self.paint("1", text)
    }

    /// What matters less.
    pub(crate) fn dim<T: fmt::Display>(self, text: T) -> Painted<T> {
        self.paint("2", text)
    }

    /// What went wrong, or grew.
    pub(crate) fn red<T: fmt::Display>(self, text: T) -> Painted<T> {
        self.paint("1;31", text)
    }

    /// What may be wrong.
    pub(crate) fn yellow<T: fmt::Display>(self, text: T) -> Painted<T> {
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
pub(crate) struct Painted<T> {
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
