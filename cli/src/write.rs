//! Writes a report to standard output or to a file. The file appears only when it is complete.

use std::fmt::Display;
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

use heapdiff_query::Error as QueryError;
use heapdiff_report::rows::{self, RowError};
use heapdiff_report::{Format, PendingQuery, Report, Style};
use heapdiff_tables::Error as TableError;

use crate::failure::{Failure, Result, system_message};
use crate::inputs;
use crate::interrupt::{UNFINISHED, Unfinished};
use crate::job::{Output, folder_of};
use crate::overwrite;
use crate::style::When;

/// Writes a report to its output. It is not an error if the reader stops reading (`| head`).
pub(crate) fn report(output: &Output, report: &Report) -> Result<()> {
    inputs::exit_if_changed();
    if let Report::Query(query) = report {
        // A query computes its rows only while they are written.
        let written = found_rows(output, query);
        inputs::exit_if_changed();
        return written;
    }
    put(output, &mut |style, out| {
        heapdiff_report::render(output.format, report, style, out)
    })
}

/// Runs a query, and writes each row as soon as it is found.
fn found_rows(output: &Output, query: &PendingQuery) -> Result<()> {
    let mut failure = None;
    let mut kept = |result: Result<(), RowError>| {
        result.map_err(|error| match query_error(error) {
            QueryError::Output(TableError::Io(e)) => e,
            other => {
                failure = Some(other);
                io::Error::other("the query failed")
            }
        })
    };
    let written = match (&output.file, output.format) {
        (Some(path), Format::Parquet) => replace(path, |out| kept(rows::parquet(query, out)))
            .map_err(|e| failed(path.display(), &e)),
        _ => {
            let terminal = output.file.is_none() && io::stdout().is_terminal();
            put(output, &mut |style, out| {
                kept(rows::render(output.format, query, style, terminal, out))
            })
        }
    };
    match failure {
        Some(error) => Err(Failure::query(Path::new(&query.head.snapshot.path), error)),
        None => written,
    }
}

/// The failure for a query whose rows cannot be computed.
pub(crate) fn no_rows(query: &PendingQuery, error: RowError) -> Failure {
    Failure::query(Path::new(&query.head.snapshot.path), query_error(error))
}

/// Returns the cause of an error about the rows of a query: an error in the query or in the writer.
fn query_error(error: RowError) -> QueryError {
    let output = |error| QueryError::Output(error);
    match error.downcast::<QueryError>() {
        Ok(error) => *error,
        Err(error) => match error.downcast::<TableError>() {
            Ok(error) => output(*error),
            Err(other) => output(TableError::Io(io::Error::other(other))),
        },
    }
}

/// Writes to the destination of an output.
fn put(
    output: &Output,
    render: &mut dyn FnMut(Style, &mut dyn Write) -> io::Result<()>,
) -> Result<()> {
    match &output.file {
        None => {
            let stdout = io::stdout();
            if output.format == Format::Pprof && stdout.is_terminal() {
                let message = "a profile cannot be written to a terminal";
                return Err(
                    Failure::usage(message).with_hint("write it to a file with -o FILE.pb.gz")
                );
            }
            let style = output.style(output.color.style(&stdout));
            let style = if stdout.is_terminal() {
                style.within(columns(&stdout))
            } else {
                style
            };
            let mut out = io::BufWriter::new(stdout.lock());
            let done = render(style, &mut out).and_then(|()| out.flush());
            match done {
                Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
                Err(e) => Err(failed("standard output", &e)),
                Ok(()) => Ok(()),
            }
        }
        Some(path) => {
            let style = match output.color {
                When::Always => When::Always.style(&io::stdout()),
                _ => Style::plain(),
            };
            let style = output.style(style);
            replace(path, |out| render(style, out)).map_err(|e| failed(path.display(), &e))
        }
    }
}

/// Returns the width of the terminal of standard output in columns, or [`USUAL_COLUMNS`] if it is unknown.
fn columns(stdout: &io::Stdout) -> usize {
    let size = terminal_size::terminal_size_of(stdout);
    size.map_or(USUAL_COLUMNS, |(width, _)| width.0.into())
}

/// Width in columns of a terminal that does not report it.
const USUAL_COLUMNS: usize = 100;

pub(crate) fn failed(what: impl Display, error: &io::Error) -> Failure {
    Failure::usage(format!("cannot write {what}: {}", system_message(error)))
}

/// Writes a temporary file beside `path` and renames it, so that nobody can read an incomplete report. A special file
/// (a pipe, `/dev/null`) is written directly, without a temporary file.
pub(crate) fn replace(
    path: &Path,
    write: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<()>,
) -> io::Result<()> {
    replace_file(path, Kind::Report, write)
}

/// The kind of a file that heapdiff writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A file that can be made again. It has the permissions that any new file gets. If it replaces a file, it has the
    /// permissions of that file.
    Report,
    /// A heap dump with all contents. Like a dump of a JVM, it can be read only by its owner, even if it replaces a
    /// file that others could read. Users may delete the original dump once this file has its final name. So the
    /// content is written to the disk before the file gets this name.
    Dump,
}

/// Writes a file like [`replace`]. `kind` determines who may read the file.
pub(crate) fn replace_file(
    path: &Path,
    kind: Kind,
    write: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<()>,
) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|meta| !meta.is_file()) {
        let mut out = io::BufWriter::new(fs::OpenOptions::new().write(true).open(path)?);
        return write(&mut out).and_then(|()| out.flush());
    }
    if let Some(refusal) = overwrite::refusal(path) {
        return Err(refusal.into());
    }
    // If `path` is a link, its target is replaced and the link stays.
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let (unfinished, mut file) = Unfinished::new(|| {
        create_temporary(path, kind).map(|file| (file.path().to_path_buf(), file))
    })?;
    let mut out = io::BufWriter::new(file.as_file_mut());
    let written = write(&mut out).and_then(|()| out.flush());
    drop(out);
    written?;
    if kind == Kind::Dump {
        file.as_file().sync_all()?;
    } else if let Ok(meta) = fs::metadata(path) {
        file.as_file().set_permissions(meta.permissions())?;
    }
    // If a dump changed while it was read, the report is wrong. End the run here, before the file gets its final name.
    inputs::exit_if_changed();
    unfinished.finish(|_| file.persist(path).map_err(|e| e.error))?;
    Ok(())
}

/// Creates a file beside `path`.
fn create_temporary(path: &Path, kind: Kind) -> io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(UNFINISHED);
    // By default, only its owner can read a temporary file. A report gets the permissions of any new file.
    #[cfg(unix)]
    if kind == Kind::Report {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    #[cfg(not(unix))]
    let _ = kind;
    let file = builder.tempfile_in(folder_of(path))?;
    // Lock the file. From the lock, the command `index clean` recognizes that the file is still being written.
    let _ = file.as_file().try_lock();
    Ok(file)
}

/// Writes text to standard output.
pub(crate) fn print(text: &str) -> Result<()> {
    write_out(text.as_bytes())
}

pub(crate) fn write_out(bytes: &[u8]) -> Result<()> {
    match io::stdout().lock().write_all(bytes) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => Err(failed("standard output", &e)),
        _ => Ok(()),
    }
}
