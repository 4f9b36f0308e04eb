//! Writes the report as JSON, without changes.

use std::io::{self, Write};

use crate::report::Report;

pub(crate) fn render(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, report)?;
    out.write_all(b"\n")
}
