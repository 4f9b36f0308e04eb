//! The destination of a dump that heapdiff writes: a file or standard output.

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

use hprof::bytes::GzipBlocks;

use crate::failure::{Failure, Result};
use crate::job::check_file;
use crate::write::{self, Kind};

/// The destination of a dump that heapdiff writes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum DumpFile<'a> {
    Stdout,
    File { path: &'a Path, gzip: bool },
}

impl fmt::Display for DumpFile<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdout => f.write_str("standard output"),
            Self::File { path, .. } => path.display().fmt(f),
        }
    }
}

impl<'a> DumpFile<'a> {
    /// Returns the destination for the value of `-o`: standard output for `-`, otherwise a file, which is compressed if
    /// its name ends in `.gz`.
    pub(crate) fn new(output: &'a Path) -> Result<Self> {
        if output.as_os_str() == "-" {
            return Ok(Self::Stdout);
        }
        check_file(output)?;
        let extension = output.extension();
        let gzip = extension.is_some_and(|e| e.eq_ignore_ascii_case("gz"));
        Ok(Self::File { path: output, gzip })
    }

    /// Returns an error if the destination is a terminal.
    pub(crate) fn check_terminal(&self) -> Result<()> {
        if *self == Self::Stdout && io::stdout().is_terminal() {
            let message = "a dump cannot be written to a terminal";
            return Err(Failure::usage(message).with_hint("write it to a file with -o FILE"));
        }
        Ok(())
    }

    /// Writes a dump. If `write` returns an error, no incomplete file appears under the final name.
    pub(crate) fn write(
        &self,
        kind: Kind,
        write: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<()>,
    ) -> io::Result<()> {
        match self {
            Self::Stdout => {
                let mut out = io::BufWriter::new(io::stdout());
                write(&mut out).and_then(|()| out.flush())
            }
            Self::File { path, gzip: false } => write::replace_file(path, kind, write),
            Self::File { path, gzip: true } => write::replace_file(path, kind, |out| {
                let mut blocks = GzipBlocks::new(out);
                write(&mut blocks)?;
                blocks.finish().map(drop)
            }),
        }
    }
}
