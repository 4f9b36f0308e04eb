//! Colours of text, and names cut to the width of a terminal.

use std::borrow::Cow;
use std::fmt;

use heapdiff_diff::Frames;

use crate::document::{Tone, WIDTH};
use crate::printable::shorten_middle;

/// Minimum width of a shortened name, in columns.
const LEAST: usize = 20;

/// The style of text: with or without colours, and with names that are whole or cut to the width of a terminal.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    on: bool,
    columns: Option<usize>,
    frames: Option<Frames>,
    internals: bool,
}

impl Style {
    /// Returns a style with colours, for a terminal.
    #[must_use]
    pub const fn coloured() -> Self {
        Self {
            on: true,
            columns: None,
            frames: None,
            internals: false,
        }
    }

    /// Returns a style without colours, for a file.
    #[must_use]
    pub const fn plain() -> Self {
        Self {
            on: false,
            columns: None,
            frames: None,
            internals: false,
        }
    }

    /// Returns the style for a terminal with this number of columns. Only this style cuts names. Without it, names stay
    /// whole, so that users can copy and paste them.
    #[must_use]
    pub const fn within(self, columns: usize) -> Self {
        Self {
            columns: Some(columns),
            ..self
        }
    }

    /// Returns the style with the frames that the user chose to see. `None` means that the user made no choice.
    #[must_use]
    pub const fn with_frames(self, frames: Option<Frames>) -> Self {
        Self { frames, ..self }
    }

    /// Returns the style with or without internals: the object layout, and the agent's own memory.
    #[must_use]
    pub const fn with_internals(self, internals: bool) -> Self {
        Self { internals, ..self }
    }

    /// True if internals are shown.
    pub(crate) const fn shows_internals(self) -> bool {
        self.internals
    }

    /// Returns which frames of a stack to show. If the user has made a choice, returns this choice. Otherwise a verbose
    /// report shows all frames, and other reports show at most `limit` lines, with folded frames.
    pub(crate) fn frames(self, verbose: bool, limit: usize) -> Frames {
        self.frames.unwrap_or(if verbose {
            Frames::All
        } else {
            Frames::Folded(limit)
        })
    }

    /// Removes the middle of a text that does not fit. `room` is the space for the text if the terminal has [`WIDTH`]
    /// columns. In a wider or narrower terminal, the space is larger or smaller by the same number of columns.
    pub(crate) fn shorten_to_fit(self, text: &str, room: usize) -> Cow<'_, str> {
        match self.columns {
            Some(columns) => {
                let here = (room + columns).saturating_sub(WIDTH);
                shorten_middle(text, here.max(LEAST.min(room)))
            }
            None => text.into(),
        }
    }

    /// Colours an error or a growth.
    #[must_use]
    pub fn red<T: fmt::Display>(self, text: T) -> Painted<T> {
        self.toned(Tone::Red, text)
    }

    /// Colours a warning.
    #[must_use]
    pub fn yellow<T: fmt::Display>(self, text: T) -> Painted<T> {
        self.toned(Tone::Yellow, text)
    }

    /// Colours a text by its tone.
    pub(crate) fn toned<T: fmt::Display>(self, tone: Tone, text: T) -> Painted<T> {
        let code = match tone {
            Tone::Plain => None,
            Tone::Bold => Some("1"),
            Tone::Dim => Some("2"),
            Tone::Red => Some("1;31"),
            Tone::Yellow => Some("1;33"),
        };
        let code = code.filter(|_| self.on);
        Painted { code, text }
    }
}

/// A text with a colour. Its colour codes do not count as columns when the text is padded or aligned.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_only_for_a_terminal_that_is_too_narrow() {
        let name = "com.acme.shop.registry.SessionRegistryWithALongName";
        let fitted = |style: Style| style.shorten_to_fit(name, 40).into_owned();
        assert_eq!(fitted(Style::plain()), name);
        assert_eq!(fitted(Style::coloured().within(WIDTH + 12)), name);
        assert_eq!(fitted(Style::plain().within(WIDTH)).chars().count(), 40);
        assert_eq!(fitted(Style::plain().within(70)).chars().count(), LEAST);
    }
}
