//! Colours of text, if the stream can show them.

use std::io::IsTerminal;

use clap::ValueEnum;
use heapdiff_report::Style;

/// When to use colours or to show progress. `Auto` means only if the output is a terminal.
// The values have no doc comments, because these would make the help of each option with these values a page long.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub(crate) enum When {
    #[default]
    Auto,
    Always,
    Never,
}

/// True if terminals of this system can show colours. Consoles of Windows show colours only if the program requests it.
fn can_show_colours() -> bool {
    #[cfg(windows)]
    return anstyle_query::windows::enable_ansi_colors().unwrap_or(true);
    #[cfg(not(windows))]
    true
}

impl When {
    /// Returns the style of text for a stream. `Auto` means colours on a terminal that can show them, unless `NO_COLOR`
    /// is set.
    pub(crate) fn style(self, stream: &impl IsTerminal) -> Style {
        let is_on = match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto => {
                let refused = |name, bad: fn(&std::ffi::OsStr) -> bool| {
                    std::env::var_os(name).is_some_and(|value| bad(&value))
                };
                stream.is_terminal()
                    && can_show_colours()
                    && !refused("NO_COLOR", |value| !value.is_empty())
                    && !refused("TERM", |value| value == "dumb")
            }
        };
        if is_on {
            Style::coloured()
        } else {
            Style::plain()
        }
    }
}
