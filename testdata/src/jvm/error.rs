//! What can go wrong with a JVM, told so that the failed test explains itself.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Why a JVM, a compiler or a diagnostic command did not do its work.
#[derive(Debug)]
#[non_exhaustive]
pub enum JvmError {
    /// The folder has no `bin/java` and `bin/jcmd`, or does not tell its version.
    NotAJdk(PathBuf),
    /// No JDK of the wanted version was found.
    NoJdk(String),
    /// A program could not be started, or its pipes failed.
    Process {
        /// What was being run.
        command: String,
        /// What the system said.
        error: io::Error,
    },
    /// A file could not be read or written.
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// A program ended with a failure, or its output says that it failed.
    Failed {
        /// What was being run.
        command: String,
        /// Its standard output and error.
        output: String,
    },
    /// A program ended although more was expected of it.
    Ended {
        /// What was being waited for.
        waiting_for: String,
        /// How it ended, such as `exit status: 1`.
        status: String,
        /// What the program wrote to standard error, and the last lines of its standard output.
        output: String,
    },
    /// A program took too long.
    TimedOut {
        /// What was being waited for.
        waiting_for: String,
        /// How long.
        after: Duration,
        /// What the program wrote so far.
        output: String,
    },
    /// This JDK is too old for what was asked.
    Unsupported {
        /// The JDK's major version.
        major: u32,
        /// What it cannot do.
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
                    "no {waiting_for} within {after:?}:\n{}",
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
