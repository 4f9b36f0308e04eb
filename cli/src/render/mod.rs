//! From reports to text, one file per format.

mod json;
mod text;

use std::io::{self, Write};

use clap::ValueEnum;

use crate::report::Report;
use crate::style::Style;

/// How a report is written: for people, at most 100 columns wide, or for programs, exact and stable.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub(crate) enum Format {
    #[default]
    Text,
    Json,
}

impl Format {
    /// The name on the command line.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
        }
    }

    /// The extension of a file in this format.
    pub(crate) const fn extension(self) -> &'static str {
        match self {
            Self::Text => "txt",
            Self::Json => self.name(),
        }
    }
}

/// Writes a report.
pub(crate) fn render(
    format: Format,
    report: &Report,
    style: Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    match format {
        Format::Text => text::render(report, style, out),
        Format::Json => json::render(report, out),
    }
}
