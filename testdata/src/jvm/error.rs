//! Errors of JVMs, worded so that a failed test explains itself.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// The reason why a JVM, a compiler or a diagnostic command failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum JvmError {
    /// The folder lacks `bin/java` or `bin/jcmd`, or its version is unknown.
    NotAJdk(PathBuf),
    /// No JDK of the requested version was found.
    NoJdk(String),
    /// A program could not be started, or its pipes failed.
    Process {
        /// The command line.
        command: String,
        /// The system's error.
        error: io::Error,
    },
    /// A file could not be read or written.
    File {
        /// Path of the file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// A program ended with a failure, or its output reports a failure.
    Failed {
        /// The command line.
        command: String,
        /// The command's standard output and error.
        output: String,
    },
    /// A program ended earlier than expected.
    Ended {
        /// A description of the expected event.
        waiting_for: String,
        /// The exit status, such as `exit status: 1`.
        status: String,
        /// The standard error, and the last lines of standard output.
        output: String,
    },
    /// A program took too long.
    TimedOut {
        /// A description of the expected event.
        waiting_for: String,
        /// The time limit that was exceeded.
        after: Duration,
        /// The output so far.
        output: String,
    },
    /// This JDK is too old for the request.
    Unsupported {
        /// The JDK's major version.
        major: u32,
        /// The missing feature.
        what: &'static str,
    },
}

impl JvmError {
    pub(crate) fn file(path: impl Into<PathBuf>, error: io::Error) -> Self {
        JvmError::File {
            path: path.into(),
            error,
        }
    }
}

impl fmt::Display for JvmError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JvmError::NotAJdk(path) => write!(out, "{} is not a JDK", path.display()),
            JvmError::NoJdk(wanted) => write!(out, "no JDK found: {wanted}"),
            JvmError::Process { command, error } => write!(out, "cannot run {command}: {error}"),
            JvmError::File { path, error } => write!(out, "{}: {error}", path.display()),
            JvmError::Failed { command, output } => {
                write!(out, "{command} failed:\n{}", output.trim_end())
            }
            JvmError::Ended {
                waiting_for,
                status,
                output,
            } => {
                write!(
                    out,
                    "the program ended before {waiting_for} ({status}):\n{}",
                    output.trim_end()
                )
            }
            JvmError::TimedOut {
                waiting_for,
                after,
                output,
            } => {
                write!(
                    out,
                    "still no {waiting_for} after {after:?}:\n{}",
                    output.trim_end()
                )
            }
            JvmError::Unsupported { major, what } => write!(out, "JDK {major} has no {what}"),
        }
    }
}

impl std::error::Error for JvmError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            JvmError::Process { error, .. } | JvmError::File { error, .. } => Some(error),
            _ => None,
        }
    }
}
