//! Where a report goes: standard output, or a file that appears whole or not at all.

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use clap_complete::Shell;
use heapdiff_query::Error as QueryError;
use heapdiff_tables::Error as TableError;

use crate::command::query::of_query;
use crate::failure::{Exit, Failure, Result, plain};
use crate::interrupt::Unfinished;
use crate::render::{self, Format};
use crate::report::{QueryReport, Report};
use crate::style::{Style, When};

/// What to write, and where.
#[derive(Clone, Debug)]
pub(crate) struct Output {
    pub(crate) format: Format,
    /// Standard output when there is none.
    pub(crate) file: Option<PathBuf>,
    pub(crate) color: When,
}

impl Output {
    /// Takes the format from the file's extension where it is not given, and refuses files that
    /// cannot be meant.
    pub(crate) fn new(
        format: Option<Format>,
        file: Option<PathBuf>,
        color: When,
        inputs: &[PathBuf],
    ) -> Result<Self> {
        let Some(path) = &file else {
            return Ok(Self {
                format: format.unwrap_or_default(),
                file,
                color,
            });
        };
        if path.is_dir() {
            let message = format!("-o {}: is a directory", path.display());
            return Err(Failure::usage(message).with_hint("name the file to write"));
        }
        if let Some(input) = inputs.iter().find(|input| same_file(input, path)) {
            let message = format!(
                "-o {} would overwrite the dump {}",
                path.display(),
                input.display()
            );
            return Err(Failure::usage(message));
        }
        if !folder_of(path).is_dir() {
            let message = format!(
                "-o {}: there is no folder {}",
                path.display(),
                folder_of(path).display()
            );
            return Err(Failure::usage(message));
        }
        let format = match format {
            Some(format) => format,
            None => format_of(path)?,
        };
        Ok(Self {
            format,
            file,
            color,
        })
    }

    /// Renders the report. A reader that stops reading (`| head`) is no failure.
    pub(crate) fn write(&self, report: &Report) -> Result<()> {
        if let Report::Query(query) = report {
            return self.write_rows(query);
        }
        self.put(&mut |style, out| render::render(self.format, report, style, out))
    }

    /// Runs a query and writes its rows as they are found.
    fn write_rows(&self, query: &QueryReport) -> Result<()> {
        let mut failure = None;
        let mut kept = |result: Result<(), QueryError>| {
            result.map_err(|error| match error {
                QueryError::Output(TableError::Io(e)) => e,
                other => {
                    failure = Some(other);
                    io::Error::other("the query failed")
                }
            })
        };
        let written = match (&self.file, self.format) {
            (Some(path), Format::Parquet) => {
                replace(path, |out| kept(render::query::parquet(query, out)))
                    .map_err(|e| failed(&path.display().to_string(), &e))
            }
            _ => {
                let terminal = self.file.is_none() && io::stdout().is_terminal();
                self.put(&mut |style, out| {
                    kept(render::query::render(
                        self.format,
                        query,
                        style,
                        terminal,
                        out,
                    ))
                })
            }
        };
        match failure {
            Some(error) => Err(of_query(&query.dump, error)),
            None => written,
        }
    }

    /// Writes to where the output goes.
    fn put(&self, render: &mut dyn FnMut(Style, &mut dyn Write) -> io::Result<()>) -> Result<()> {
        match &self.file {
            None => {
                let stdout = io::stdout();
                if self.format == Format::Pprof && stdout.is_terminal() {
                    let message = "a profile is no text, and standard output is a terminal";
                    return Err(Failure::usage(message).with_hint("write it with -o FILE.pb.gz"));
                }
                let style = Style::new(self.color, &stdout);
                let mut out = io::BufWriter::new(stdout.lock());
                let done = render(style, &mut out).and_then(|()| out.flush());
                match done {
                    Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
                    Err(e) => Err(failed("standard output", &e)),
                    Ok(()) => Ok(()),
                }
            }
            Some(path) => {
                let style = match self.color {
                    When::Always => Style::new(When::Always, &io::stdout()),
                    _ => Style::plain(),
                };
                replace(path, |out| render(style, out))
                    .map_err(|e| failed(&path.display().to_string(), &e))
            }
        }
    }
}

pub(crate) fn failed(what: &str, error: &io::Error) -> Failure {
    Failure {
        exit: Exit::Usage,
        message: format!("cannot write {what}: {}", plain(error)),
        hint: None,
    }
}

fn format_of(path: &Path) -> Result<Format> {
    let name = path
        .file_name()
        .and_then(|n| n.to_str())
        .unwrap_or_default();
    let name = name.to_ascii_lowercase();
    let has = |extension: &str| {
        let stem = name.strip_suffix(extension);
        stem.is_some_and(|stem| stem.ends_with('.'))
    };
    let mut formats = Format::value_variants().iter().copied();
    let found = formats.find(|format| format.extensions().iter().any(|e| has(e)));
    found.ok_or_else(|| {
        let message = format!("-o {}: the extension names no format", path.display());
        let names: Vec<&str> = Format::value_variants().iter().map(|f| f.name()).collect();
        Failure::usage(message).with_hint(format!("give one with --format {}", names.join("|")))
    })
}

/// The folder that a file is in.
fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

fn same_file(a: &Path, b: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        if let (Ok(a), Ok(b)) = (fs::metadata(a), fs::metadata(b)) {
            return (a.dev(), a.ino()) == (b.dev(), b.ino());
        }
    }
    match (fs::canonicalize(a), fs::canonicalize(b)) {
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    }
}

/// Writes beside the file and renames, so that nobody sees half a report. What is no ordinary file
/// (a pipe, `/dev/null`) is written to as it is.
pub(crate) fn replace(
    path: &Path,
    write: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<()>,
) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|meta| !meta.is_file()) {
        let mut out = io::BufWriter::new(fs::OpenOptions::new().write(true).open(path)?);
        return write(&mut out).and_then(|()| out.flush());
    }
    // A link stays a link: the file that it leads to is replaced.
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let (unfinished, mut file) =
        Unfinished::new(|| temporary(path).map(|file| (file.path().to_path_buf(), file)))?;
    let mut out = io::BufWriter::new(file.as_file_mut());
    let written = write(&mut out).and_then(|()| out.flush());
    drop(out);
    written?;
    if let Ok(meta) = fs::metadata(path) {
        file.as_file().set_permissions(meta.permissions())?;
    }
    unfinished.finish(|_| file.persist(path).map_err(|e| e.error))?;
    Ok(())
}

/// A file beside `path`, with the permissions of any new file.
fn temporary(path: &Path) -> io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".heapdiff-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(folder_of(path))
}

/// Writes a completion script to standard output.
pub(crate) fn completions(shell: Shell, command_line: &mut clap::Command) -> Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(shell, command_line, "heapdiff", &mut script);
    write_out(&script)?;
    Ok(Exit::Done)
}

/// Writes text to standard output.
pub(crate) fn print(text: &str) -> Result<()> {
    write_out(text.as_bytes())
}

fn write_out(bytes: &[u8]) -> Result<()> {
    match io::stdout().lock().write_all(bytes) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => Err(failed("standard output", &e)),
        _ => Ok(()),
    }
}
