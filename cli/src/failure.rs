//! How a run ends: exit codes, and error messages on standard error.

use std::fmt;
use std::io::ErrorKind;
use std::path::Path;

use heapdiff_report::printable;

/// Exit codes of the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Exit {
    /// The report was written.
    Done = 0,
    /// The report was written, and the condition of a gate (such as `--fail-on-growth`) is met.
    Gate = 1,
    /// The user made a mistake in an option, in a selector, or in the choice of the output file.
    Usage = 2,
    /// An input cannot be read, is damaged under `--strict`, or lacks data that a requested gate needs.
    Input = 3,
}

const MORE_MEMORY: &str = if cfg!(windows) {
    "set TMP to a folder on a larger disk, or limit the memory with --max-memory SIZE"
} else {
    "set TMPDIR to a folder on a larger disk, or limit the memory with --max-memory SIZE"
};

/// The reason why there is no report.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    pub(crate) message: String,
    /// Advice for the user.
    pub(crate) hint: Option<String>,
}

pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

impl Failure {
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self {
            exit: Exit::Usage,
            message: message.into(),
            hint: None,
        }
    }

    /// The failure for an input that cannot be read, or that lacks data that a gate needs.
    pub(crate) fn bad_input(message: impl Into<String>) -> Self {
        Self {
            exit: Exit::Input,
            ..Self::usage(message)
        }
    }

    /// The failure for a dump that cannot be read.
    pub(crate) fn input(path: &Path, error: &hprof::Error) -> Self {
        let (message, hint) = match error {
            hprof::Error::Io { path, source } => (
                format!("{}: {}", path.display(), system_message(source)),
                None,
            ),
            hprof::Error::NotADump(_) => (
                format!("{}: {error}", path.display()),
                Some(if is_recording(path) {
                    OF_RECORDINGS
                } else if is_trace(path) {
                    "this is a trace; use `heapdiff trace top TRACE` or `heapdiff ui TRACE`"
                } else {
                    "take a dump with: jcmd PID GC.heap_dump FILE"
                }),
            ),
            hprof::Error::Memory { .. } => {
                (format!("{}: {error}", path.display()), Some(MORE_MEMORY))
            }
            hprof::Error::Changed { .. } => return Self::changed(error),
            hprof::Error::NoHeap { .. } => (
                format!("{}: {error}", path.display()),
                Some("take the dump again with: jcmd PID GC.heap_dump FILE"),
            ),
            _ => (format!("{}: {error}", path.display()), None),
        };
        Self {
            hint: hint.map(str::to_owned),
            ..Self::bad_input(message)
        }
    }

    /// The failure for a complete dump that has no objects.
    pub(crate) fn no_objects(path: &Path) -> Self {
        let path = path.display();
        Self::bad_input(format!(
            "{path}: the dump has classes but no objects (`jhsdb jmap` writes such dumps of some JVMs with ZGC or Shenandoah)"
        ))
        .with_hint("take the dump again with: jcmd PID GC.heap_dump FILE")
    }

    /// The failure for a dump or an index that changed or became unreadable while it was being read.
    pub(crate) fn changed(error: &hprof::Error) -> Self {
        Self::bad_input(error.to_string())
            .with_hint("there is no report; run heapdiff again when no program writes to the file")
    }

    /// The failure for a trace that cannot be read.
    pub(crate) fn trace(error: &heapdiff_trace::TraceError) -> Self {
        let failure = Self::bad_input(error.to_string());
        match error.not_a_database() {
            Some(path) if is_recording(path) => failure.with_hint(OF_RECORDINGS),
            Some(_) => failure.with_hint("to write a trace, run `heapdiff attach PID trace=FILE`; for a heap dump, run `heapdiff sites DUMP`"),
            None => failure,
        }
    }

    /// The failure for a query with an error. The message is for the author of the query.
    pub(crate) fn query(dump: &Path, error: heapdiff_query::Error) -> Self {
        use heapdiff_query::Error;
        let usage = |message: String| Self::usage(printable(&message));
        match error {
            Error::Sql {
                ref text,
                column,
                ref hint,
                ..
            } => {
                let mark = " ".repeat(column - 1);
                let mut lines = format!("{}\n          {mark}^", printable(text));
                if let Some(hint) = hint {
                    lines.push_str("\n          ");
                    lines.push_str(&printable(hint));
                }
                usage(error.to_string()).with_hint(lines)
            }
            Error::Oql { ref sql } => {
                let hint = match sql {
                    Some(sql) => format!(
                        "a similar query in SQL: heapdiff query {} {}",
                        quoted(&printable(&dump.display().to_string())),
                        quoted(&printable(sql))
                    ),
                    None => "for example: select * from objects where class = 'com.acme.Foo'; docs/query.md shows \
                             more OQL queries in SQL"
                        .to_owned(),
                };
                usage(error.to_string()).with_hint(hint)
            }
            Error::Heap(error) => Self::input(dump, &error),
            Error::Memory { .. } => usage(error.to_string())
                .with_hint("allow more memory with --max-memory SIZE, or select fewer rows"),
            Error::Output(error) => Self::usage(error.to_string()),
            other => usage(other.to_string()),
        }
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// Hint if a file of another kind is expected, but the user named a JFR recording.
const OF_RECORDINGS: &str =
    "this is a JFR recording; use `heapdiff sites FILE` or `heapdiff trace import FILE -o T.db`";

fn is_recording(path: &Path) -> bool {
    heapdiff_jfr::is_recording(path).unwrap_or(false)
}

fn is_trace(path: &Path) -> bool {
    heapdiff_trace::is_trace(path).unwrap_or(false)
}

/// Quotes an argument for a shell: in double quotes, or in single quotes if the argument contains a character with a
/// meaning in double quotes.
pub(crate) fn quoted(text: &str) -> String {
    if text.contains(['"', '$', '`', '\\', '!']) {
        format!("'{}'", text.replace('\'', "'\\''"))
    } else {
        format!("\"{text}\"")
    }
}

/// Returns the system's message for an error, without the suffix " (os error 2)" that Rust adds.
pub(crate) fn system_message(error: &std::io::Error) -> String {
    if let Some(text) = common_message(error) {
        return text.to_owned();
    }
    let text = error.to_string();
    match text.find(" (os error ") {
        Some(at) => text[..at].to_owned(),
        None => text,
    }
}

/// On Windows, returns the text that Unix has for a common error, so that reports and messages are the same on every
/// system.
fn common_message(error: &std::io::Error) -> Option<&'static str> {
    error.raw_os_error().filter(|_| cfg!(windows))?;
    Some(match error.kind() {
        ErrorKind::NotFound => "No such file or directory",
        ErrorKind::PermissionDenied => "Permission denied",
        ErrorKind::AlreadyExists => "File exists",
        ErrorKind::NotADirectory => "Not a directory",
        ErrorKind::IsADirectory => "Is a directory",
        ErrorKind::DirectoryNotEmpty => "Directory not empty",
        ErrorKind::StorageFull => "No space left on device",
        ErrorKind::ConnectionRefused => "Connection refused",
        _ => return None,
    })
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
