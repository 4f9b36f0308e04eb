//! From reports to text, one file per format.

mod growth;
mod json;
pub(crate) mod query;
mod text;

use std::io::{self, Write};

use crate::format::Format;
use crate::report::Report;
use crate::style::Style;

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
        _ => match report {
            Report::Diff(report) => growth::render(format, report, out),
            Report::Sites(report) => growth::sites(format, report, out),
            Report::Recording(report) => growth::recording(format, report, out),
            _ => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "this report cannot be written in this format",
            )),
        },
    }
}
