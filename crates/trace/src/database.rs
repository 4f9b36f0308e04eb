//! Opens the trace file, and checks that it is a trace of a version that this program can read.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::place::{disable_index_cow, network};
use crate::room::is_disk_full_at;

/// SQLite application id of a trace: `hdtr`.
pub(crate) const APPLICATION: i32 = 0x6864_7472;
/// Version of the table definitions. Increase the version when a definition changes.
const VERSION: i32 = 3;
/// For each version: the SQL statements that create its tables and columns, in addition to those of the previous
/// version.
const SCHEMA: [&str; 3] = [
    include_str!("schema.sql"),
    include_str!("samples.sql"),
    include_str!("newest.sql"),
];
/// Maximum time to wait while another process writes to the file.
const BUSY: Duration = Duration::from_secs(2);

/// The reason why a trace cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// An error that SQLite reports.
    #[error("{}: {source}", path.display())]
    Sqlite {
        /// Path of the trace.
        path: PathBuf,
        /// The error.
        source: rusqlite::Error,
    },
    /// The file is on a network file system, where SQLite's locks and shared memory do not work.
    #[error(
        "{}: on a network file system ({what}), where a database cannot be shared; use a local folder",
        path.display()
    )]
    Network {
        /// Path of the trace.
        path: PathBuf,
        /// Name of the file system.
        what: &'static str,
    },
    /// The file is on btrfs, and copy-on-write cannot be switched off for the index of the write-ahead log.
    #[error(
        "{}: on btrfs, where a full disk would end the process: {why}; use a folder on another file system",
        path.display()
    )]
    Copied {
        /// Path of the trace.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// The file is a database of another application.
    #[error("{}: not a heapdiff trace (application id {found:#x})", path.display())]
    Foreign {
        /// Path of the file.
        path: PathBuf,
        /// The application id of the file.
        found: i32,
    },
    /// The file is a trace of an unsupported version.
    #[error("{}: the trace has version {found}, but this heapdiff reads versions 1 to {VERSION}", path.display())]
    Version {
        /// Path of the trace.
        path: PathBuf,
        /// The version of the trace's tables.
        found: i32,
    },
    /// A table is missing, or a view or another database object has its name.
    #[error("{}: not a valid trace: its table {table} is missing or has other columns", path.display())]
    Table {
        /// Path of the trace.
        path: PathBuf,
        /// The table's name.
        table: &'static str,
    },
    /// A query was cancelled at its caller's deadline.
    #[error("{}: reading took too long", path.display())]
    Late {
        /// Path of the trace.
        path: PathBuf,
    },
    /// A query was cancelled because it took more steps than a file of this size can need.
    #[error("{}: damaged: reading takes longer than is possible for a file of this size", path.display())]
    Endless {
        /// Path of the trace.
        path: PathBuf,
    },
}

impl TraceError {
    /// Returns true if the disk is full. If SQLite's error code is inconclusive, this tries to write a small file.
    #[must_use]
    pub fn is_disk_full(&self) -> bool {
        matches!(self, Self::Sqlite { path, source } if is_disk_full_at(path, source))
    }

    /// Returns the path if the file is not a database at all, and `None` for other errors.
    #[must_use]
    pub fn not_a_database(&self) -> Option<&Path> {
        match self {
            Self::Sqlite { path, source }
                if source.sqlite_error_code() == Some(ErrorCode::NotADatabase) =>
            {
                Some(path)
            }
            _ => None,
        }
    }
}

/// An open trace.
#[derive(Debug)]
pub struct Database {
    path: PathBuf,
    connection: Connection,
    version: i32,
}

impl Database {
    /// Opens a trace for writing, and creates it if there is no file. A trace of an older version gets the tables of
    /// the current version.
    ///
    /// # Errors
    /// Returns an error if the file cannot be created, is not a trace, or has an unsupported version.
    pub fn create(path: &Path) -> Result<Self, TraceError> {
        let error = |source| TraceError::Sqlite {
            path: path.to_owned(),
            source,
        };
        if let Some(what) = network(path) {
            let path = path.to_owned();
            return Err(TraceError::Network { path, what });
        }
        create_private(path);
        disable_index_cow(path)?;
        let mut connection = Connection::open(path).map_err(error)?;
        connection.busy_timeout(BUSY).map_err(error)?;
        let pages: i64 = connection
            .pragma_query_value(None, "page_count", |row| row.get(0))
            .map_err(error)?;
        if pages == 0 {
            // Set incremental vacuum, so that the file shrinks after rows are deleted. The setting must be made before
            // the first table is created.
            connection
                .pragma_update(None, "auto_vacuum", "incremental")
                .map_err(error)?;
        }
        let made = connection
            .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)
            .and_then(|t| {
                let tables: i64 =
                    t.query_row("SELECT count(*) FROM sqlite_schema", [], |r| r.get(0))?;
                if tables == 0 {
                    t.pragma_update(None, "application_id", APPLICATION)?;
                }
                let number = |name| t.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
                let made = match tables {
                    0 => 0,
                    // A file that is not a trace must not be changed.
                    _ if number("application_id")? != APPLICATION => SCHEMA.len(),
                    _ => {
                        usize::try_from(number("user_version")?).map_or(SCHEMA.len(), |v| v.max(1))
                    }
                };
                for tables in SCHEMA.iter().skip(made) {
                    t.execute_batch(tables)?;
                    t.pragma_update(None, "user_version", VERSION)?;
                }
                t.commit()
            });
        made.map_err(error)?;
        let mut database = Self {
            path: path.to_owned(),
            connection,
            version: VERSION,
        };
        database.version = database.check()?;
        // Set SQLite's WAL mode, so that readers see only complete ticks while a tick is being written. Set the mode
        // only after the check that the file is a trace, because it changes the file.
        let mode = database
            .connection
            .pragma_update(None, "journal_mode", "wal");
        mode.and_then(|()| {
            database
                .connection
                .pragma_update(None, "synchronous", "normal")
        })
        .map_err(error)?;
        Ok(database)
    }

    /// Opens a trace for reading while a JVM may be writing to it.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, is not a trace, or has an unsupported version.
    pub fn open(path: &Path) -> Result<Self, TraceError> {
        // On btrfs, create the index file of the log without copy-on-write, because a writer that starts later uses the
        // same index file. Ignore an error: a reader without write access to the folder creates no index.
        let _ = disable_index_cow(path);
        Self::open_as(path, OpenFlags::SQLITE_OPEN_READ_ONLY, BUSY)
    }

    fn open_as(path: &Path, access: OpenFlags, busy: Duration) -> Result<Self, TraceError> {
        let error = |source| TraceError::Sqlite {
            path: path.to_owned(),
            source,
        };
        let flags = access | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags).map_err(error)?;
        connection.busy_timeout(busy).map_err(error)?;
        let mut database = Self {
            path: path.to_owned(),
            connection,
            version: VERSION,
        };
        database.version = database.check()?;
        Ok(database)
    }

    /// Opens an existing trace to add a row. Waits at most `busy` for other writers.
    pub(crate) fn open_to_add(path: &Path, busy: Duration) -> Result<Self, TraceError> {
        if let Some(what) = network(path) {
            let path = path.to_owned();
            return Err(TraceError::Network { path, what });
        }
        disable_index_cow(path)?;
        Self::open_as(path, OpenFlags::SQLITE_OPEN_READ_WRITE, busy)
    }

    pub(crate) fn error(&self, source: rusqlite::Error) -> TraceError {
        TraceError::Sqlite {
            path: self.path.clone(),
            source,
        }
    }

    /// Returns the connection for calls that change it, such as setting a handler.
    #[must_use]
    pub const fn connection_mut(&mut self) -> &mut Connection {
        &mut self.connection
    }

    /// Checks the application id, and returns the version of the tables.
    fn check(&self) -> Result<i32, TraceError> {
        let pragma = |name| {
            self.connection
                .pragma_query_value(None, name, |row| row.get::<_, i32>(0))
                .map_err(|source| TraceError::Sqlite {
                    path: self.path.clone(),
                    source,
                })
        };
        let found = pragma("application_id")?;
        if found != APPLICATION {
            let path = self.path.clone();
            return Err(TraceError::Foreign { path, found });
        }
        let found = pragma("user_version")?;
        if !(1..=VERSION).contains(&found) {
            let path = self.path.clone();
            return Err(TraceError::Version { path, found });
        }
        Ok(found)
    }

    /// Returns the version of the tables.
    pub(crate) const fn version(&self) -> i32 {
        self.version
    }

    /// Returns the path that the trace was opened with.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the connection, to run any query.
    #[must_use]
    pub fn connection(&self) -> &Connection {
        &self.connection
    }
}

/// Creates the trace if it is missing. Only the owner gets access, because a trace contains command lines and class
/// names, as a heap dump does. SQLite gives the same access rights to the log and its index. An error here is ignored,
/// because SQLite reports it when it opens the file.
pub(crate) fn create_private(path: &Path) {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    drop(options.open(path));
}

/// Adds a note to a run unless the run already has a note with the same text.
pub(crate) fn note_once(
    connection: &Connection,
    run: i64,
    time_ms: i64,
    text: &str,
) -> rusqlite::Result<()> {
    let add = "INSERT INTO note (run, time_ms, text) SELECT ?1, ?2, ?3
               WHERE NOT EXISTS (SELECT 1 FROM note WHERE run = ?1 AND text = ?3)";
    connection
        .prepare_cached(add)?
        .execute(rusqlite::params![run, time_ms, text])?;
    Ok(())
}

/// Returns true if another process has locked the file.
pub(crate) fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked)
    )
}

/// Converts a number for SQLite. Numbers above `i64::MAX` become `i64::MAX`.
pub(crate) fn int(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::{Database, TraceError};

    #[test]
    fn a_trace_is_created_once_and_read_while_it_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.db");
        let first = Database::create(&path).unwrap();
        let add = "INSERT INTO class (name) VALUES ('a')";
        first.connection().execute(add, []).unwrap();
        drop(Database::create(&path).unwrap());
        let reader = Database::open(&path).unwrap();
        let count = |sql| {
            reader
                .connection()
                .query_row(sql, [], |r| r.get::<_, i64>(0))
        };
        assert_eq!(count("SELECT count(*) FROM class"), Ok(1));
        assert!(reader.connection().execute(add, []).is_err());
    }

    #[test]
    fn files_that_are_not_traces_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("other.db");
        let other = rusqlite::Connection::open(&path).unwrap();
        other.execute_batch("CREATE TABLE mine (x)").unwrap();
        drop(other);
        let before = std::fs::read(&path).unwrap();
        assert!(matches!(
            Database::create(&path),
            Err(TraceError::Foreign { .. })
        ));
        assert!(matches!(
            Database::open(&path),
            Err(TraceError::Foreign { .. })
        ));
        assert_eq!(std::fs::read(&path).unwrap(), before);
        let text = folder.path().join("text");
        std::fs::write(&text, "not a database at all, but text").unwrap();
        assert!(matches!(
            Database::create(&text),
            Err(TraceError::Sqlite { .. })
        ));
        let refused = Database::open(&text).unwrap_err();
        assert_eq!(refused.not_a_database(), Some(&*text));
        let missing = Database::open(&folder.path().join("none.db")).unwrap_err();
        assert_eq!(missing.not_a_database(), None);
    }
}
