//! The file: who made it, and whether this program can read it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

/// Marks an SQLite file as a trace: `hdtr`.
const APPLICATION: i32 = 0x6864_7472;
/// Changes with the tables.
const VERSION: i32 = 1;
const SCHEMA: &str = include_str!("schema.sql");
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
    /// A database of something else.
    #[error("{}: not a heapdiff trace (application id {found:#x})", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What it says it is.
        found: i32,
    },
    /// Tables of another version.
    #[error("{}: a trace of version {found}; this heapdiff reads version {VERSION}", path.display())]
    Version {
        /// The trace.
        path: PathBuf,
        /// Its version.
        found: i32,
    },
}

/// An open trace.
#[derive(Debug)]
pub struct Database {
    path: PathBuf,
    connection: Connection,
}

impl Database {
    /// Opens a trace to write to; makes it where there is none.
    ///
    /// # Errors
    /// The file cannot be made, is no trace, or one of another version.
    pub fn create(path: &Path) -> Result<Self, TraceError> {
        let error = |source| TraceError::Sqlite {
            path: path.to_owned(),
            source,
        };
        let mut connection = Connection::open(path).map_err(error)?;
        connection.busy_timeout(BUSY).map_err(error)?;
        let made = connection
            .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)
            .and_then(|t| {
                let tables: i64 =
                    t.query_row("SELECT count(*) FROM sqlite_schema", [], |r| r.get(0))?;
                if tables == 0 {
                    t.pragma_update(None, "application_id", APPLICATION)?;
                    t.pragma_update(None, "user_version", VERSION)?;
                    t.execute_batch(SCHEMA)?;
                }
                t.commit()
            });
        made.map_err(error)?;
        let database = Self {
            path: path.to_owned(),
            connection,
        };
        database.check()?;
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
    /// The file cannot be read, is no trace, or one of another version.
    pub fn open(path: &Path) -> Result<Self, TraceError> {
        let error = |source| TraceError::Sqlite {
            path: path.to_owned(),
            source,
        };
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags).map_err(error)?;
        connection.busy_timeout(BUSY).map_err(error)?;
        let database = Self {
            path: path.to_owned(),
            connection,
        };
        database.check()?;
        Ok(database)
    }

    fn check(&self) -> Result<(), TraceError> {
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
        if found != VERSION {
            let path = self.path.clone();
            return Err(TraceError::Version { path, found });
        }
        Ok(())
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
        assert!(Database::open(&folder.path().join("none.db")).is_err());
    }
}
