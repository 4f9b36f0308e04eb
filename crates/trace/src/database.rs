//! The file: whether it is a trace, of which version, and whether this program can read it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::place::{index_in_place, network};
use crate::room::lacks_room;

/// Marks an SQLite file as a trace: `hdtr`.
pub(crate) const APPLICATION: i32 = 0x6864_7472;
/// Changes with the tables.
const VERSION: i32 = 3;
/// What each version has added to the one before.
const SCHEMA: [&str; 3] = [
    include_str!("schema.sql"),
    include_str!("samples.sql"),
    include_str!("newest.sql"),
];
/// How long to wait for another process that writes to the file.
const BUSY: Duration = Duration::from_secs(2);

/// Why a trace cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// SQLite's word.
    #[error("{}: {source}", path.display())]
    Sqlite {
        /// The trace.
        path: PathBuf,
        /// What SQLite says.
        source: rusqlite::Error,
    },
    /// A file that other machines may see: what keeps writers and readers apart does not work there.
    #[error(
        "{}: on a network file system ({what}), where a database cannot be shared; use a local folder",
        path.display()
    )]
    Network {
        /// The trace.
        path: PathBuf,
        /// Of which kind.
        what: &'static str,
    },
    /// A file system that copies what is written to, where the index of the log is not to be written in place.
    #[error(
        "{}: on btrfs, where a full disk would end the process: {why}; use a folder on another file system",
        path.display()
    )]
    Copied {
        /// The trace.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// A database of something else.
    #[error("{}: not a heapdiff trace (application id {found:#x})", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What it says it is.
        found: i32,
    },
    /// Tables of another version.
    #[error("{}: the trace has version {found}, but this heapdiff reads versions 1 to {VERSION}", path.display())]
    Version {
        /// The trace.
        path: PathBuf,
        /// Its version.
        found: i32,
    },
    /// Something else in a table's place.
    #[error("{}: not a valid trace: its table {table} is missing or has other columns", path.display())]
    Table {
        /// The trace.
        path: PathBuf,
        /// The table's name.
        table: &'static str,
    },
    /// A query that took longer than its caller would wait.
    #[error("{}: reading took too long", path.display())]
    Late {
        /// The trace.
        path: PathBuf,
    },
    /// A query that does not come to an end.
    #[error("{}: damaged: reading takes longer than is possible for a file of this size", path.display())]
    Endless {
        /// The trace.
        path: PathBuf,
    },
}

impl TraceError {
    /// Whether the disk had no room. Where SQLite's word does not tell, the disk is asked now, with a small file.
    #[must_use]
    pub fn lacks_room(&self) -> bool {
        matches!(self, Self::Sqlite { path, source } if lacks_room(path, source))
    }

    /// The file, where it is no database at all.
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
    /// Opens a trace to write to, and makes it where there is no file. A trace of an older version gets the tables of
    /// this one.
    ///
    /// # Errors
    /// The file cannot be made, is not a trace, or is one of another version.
    pub fn create(path: &Path) -> Result<Self, TraceError> {
        let error = |source| TraceError::Sqlite {
            path: path.to_owned(),
            source,
        };
        if let Some(what) = network(path) {
            let path = path.to_owned();
            return Err(TraceError::Network { path, what });
        }
        make_private(path);
        index_in_place(path)?;
        let mut connection = Connection::open(path).map_err(error)?;
        connection.busy_timeout(BUSY).map_err(error)?;
        let pages: i64 = connection
            .pragma_query_value(None, "page_count", |row| row.get(0))
            .map_err(error)?;
        if pages == 0 {
            // So that what is dropped makes the file smaller. It takes effect with the first table.
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
                    // A file that is not a trace stays as it is.
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
        // Readers see whole ticks while one is written. Only after the check: it changes the file.
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

    /// Opens a trace to read, whether one is writing to it or not.
    ///
    /// # Errors
    /// The file cannot be read, is not a trace, or is one of another version.
    pub fn open(path: &Path) -> Result<Self, TraceError> {
        // A writer that comes later shares the index. One who may not write here makes none.
        let _ = index_in_place(path);
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

    /// Opens a trace that is there to add a row to it; waits for others no longer than this.
    pub(crate) fn open_to_add(path: &Path, busy: Duration) -> Result<Self, TraceError> {
        if let Some(what) = network(path) {
            let path = path.to_owned();
            return Err(TraceError::Network { path, what });
        }
        index_in_place(path)?;
        Self::open_as(path, OpenFlags::SQLITE_OPEN_READ_WRITE, busy)
    }

    pub(crate) fn error(&self, source: rusqlite::Error) -> TraceError {
        TraceError::Sqlite {
            path: self.path.clone(),
            source,
        }
    }

    /// The connection, for what changes it: handlers, say.
    #[must_use]
    pub const fn connection_mut(&mut self) -> &mut Connection {
        &mut self.connection
    }

    /// The version of its tables.
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

    /// The version of its tables.
    pub(crate) const fn version(&self) -> i32 {
        self.version
    }

    /// The path it was opened with.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The connection, for queries of any kind.
    #[must_use]
    pub fn connection(&self) -> &Connection {
        &self.connection
    }
}

/// Makes the file, if it is not there, for its owner alone: command lines and names of classes are in it, as in a
/// heap dump. SQLite gives the same rights to the files that it puts beside it, and tells what cannot be made.
fn make_private(path: &Path) {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    drop(options.open(path));
}

/// Adds a note to a run that does not have it yet.
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

/// Whether another process has locked the file.
pub(crate) fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked)
    )
}

/// A number as SQLite takes it; what is too large becomes the largest.
pub(crate) fn int(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::{Database, TraceError};

    #[test]
    fn a_trace_is_made_once_and_read_beside_its_writer() {
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
    fn what_is_no_trace_is_refused() {
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
