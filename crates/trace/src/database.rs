//! The file: whether it is a trace, of which version, and whether this program can read it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::room::lacks_room;

/// Marks an SQLite file as a trace: `hdtr`.
const APPLICATION: i32 = 0x6864_7472;
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
    #[error("{}: a trace of version {found}; this heapdiff reads versions 1 to {VERSION}", path.display())]
    Version {
        /// The trace.
        path: PathBuf,
        /// Its version.
        found: i32,
    },
    /// Something else in a table's place.
    #[error("{}: its table {table} is missing or not like that of a trace", path.display())]
    Table {
        /// The trace.
        path: PathBuf,
        /// The table's name.
        table: &'static str,
    },
    /// A query that took longer than its caller would wait.
    #[error("{}: it took too long to read", path.display())]
    Late {
        /// The trace.
        path: PathBuf,
    },
    /// A query that does not come to an end.
    #[error("{}: damaged: reading it takes longer than a file of its size can need", path.display())]
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

/// The network file system that a file is, or would be, on.
///
/// The index of the write-ahead log is memory that writers and readers share by mapping the file `-shm`. Over a
/// network that does not work, and a mapped page that goes away ends the process. On a local disk SQLite
/// has reserved each page before it is mapped, so that only truncating that file can do such harm; a file system that
/// copies what is written to needs room for each page anew ([`index_in_place`]).
#[cfg(target_os = "linux")]
fn network(path: &Path) -> Option<&'static str> {
    network_name(kind(path)?)
}

/// The number of the file system that a file is, or would be, on.
#[cfg(target_os = "linux")]
#[allow(clippy::useless_conversion, reason = "of 32 bits on 32-bit machines")]
fn kind(path: &Path) -> Option<i64> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty());
    let place = rustix::fs::statfs(path)
        .or_else(|_| rustix::fs::statfs(folder.unwrap_or_else(|| Path::new("."))));
    Some(place.ok()?.f_type.into())
}

/// Has the mapped index of the log written in place on btrfs, which copies what is written to: a full disk, or a quota
/// that is used up, would end the process at the next write to a mapped page. That is to be asked for while the file is empty.
///
/// # Errors
/// Where the file is on btrfs, and it is not to be had.
#[cfg(target_os = "linux")]
fn index_in_place(path: &Path) -> Result<(), TraceError> {
    const BTRFS: i64 = 0x9123_683e;
    match kind(path) {
        Some(kind) if kind & 0xffff_ffff == BTRFS => {
            write_in_place(&index(path)).map_err(|why| TraceError::Copied {
                path: path.to_owned(),
                why,
            })
        }
        _ => Ok(()),
    }
}

#[cfg(not(target_os = "linux"))]
fn index_in_place(_: &Path) -> Result<(), TraceError> {
    Ok(())
}

/// The file that SQLite maps.
#[cfg(target_os = "linux")]
fn index(path: &Path) -> PathBuf {
    let mut index = path.as_os_str().to_owned();
    index.push("-shm");
    index.into()
}

/// Makes a file, if it is not there, that is not copied as it is written to.
#[cfg(target_os = "linux")]
fn write_in_place(path: &Path) -> Result<(), String> {
    use rustix::fs::{IFlags, Mode, OFlags};
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)
        .map_err(|error| format!("{}: {error}", path.display()))?;
    let has = rustix::fs::ioctl_getflags(&file).unwrap_or(IFlags::empty());
    if has.contains(IFlags::NOCOW) {
        return Ok(());
    }
    let is_empty = rustix::fs::fstat(&file).is_ok_and(|stat| stat.st_size == 0);
    match is_empty {
        true => rustix::fs::ioctl_setflags(&file, has | IFlags::NOCOW)
            .map_err(|error| format!("{} cannot be written in place: {error}", path.display())),
        false => Err(format!("another program has made {}", path.display())),
    }
}

#[cfg(not(target_os = "linux"))]
fn network(_: &Path) -> Option<&'static str> {
    None
}

/// By the numbers of linux/magic.h.
#[cfg(target_os = "linux")]
fn network_name(kind: i64) -> Option<&'static str> {
    // Some are given as negative numbers on 32-bit machines.
    Some(match kind & 0xffff_ffff {
        0x6969 => "NFS",
        0x517b | 0xfe53_4d42 | 0xff53_4d42 => "SMB",
        0x5346_414f | 0x6b41_4653 => "AFS",
        0x00c3_6400 => "Ceph",
        0x0102_1997 => "9p",
        0x6573_5546 => "FUSE",
        0x7375_7245 => "Coda",
        0x0bd0_0bd0 => "Lustre",
        0x4750_4653 => "GPFS",
        _ => return None,
    })
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
    #[cfg(target_os = "linux")]
    fn network_file_systems_are_told_from_local_ones() {
        use super::{network, network_name};
        assert_eq!(network(&std::env::temp_dir().join("t.db")), None);
        assert_eq!(network(std::path::Path::new("/proc/none/t.db")), None);
        assert_eq!(network_name(0x6969), Some("NFS"));
        let negative = i64::from(i32::from_ne_bytes(0xff53_4d42_u32.to_ne_bytes()));
        assert_eq!(network_name(negative), Some("SMB"));
        // ext4, tmpfs, overlay, xfs, btrfs, zfs.
        for local in [
            0xef53,
            0x0102_1994,
            0x794c_7630,
            0x5846_5342,
            0x9123_683e,
            0x2fc1_2fc1,
        ] {
            assert_eq!(network_name(local), None);
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_mapped_index_is_written_in_place_or_refused() {
        use super::{index, index_in_place, write_in_place};
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.db");
        let index = index(&path);
        assert_eq!(index, folder.path().join("t.db-shm"));
        // Asked for on btrfs alone: the file is made there, and nowhere else.
        assert_eq!(
            index_in_place(&path).is_ok() && index.exists(),
            super::kind(&path).map(|kind| kind & 0xffff_ffff) == Some(0x9123_683e)
        );
        let is_marked = |path| {
            let file = std::fs::File::open(path).unwrap();
            rustix::fs::ioctl_getflags(&file)
                .is_ok_and(|flags| flags.contains(rustix::fs::IFlags::NOCOW))
        };
        let other = folder.path().join("other");
        assert_eq!(write_in_place(&other).is_ok(), is_marked(&other));
        let copied = folder.path().join("copied");
        std::fs::write(&copied, "an index").unwrap();
        if !is_marked(&copied) {
            assert!(
                write_in_place(&copied)
                    .unwrap_err()
                    .contains("another program has made")
            );
        }
        assert_eq!(std::fs::read(&copied).unwrap(), b"an index");
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&other, &link).unwrap();
        assert!(write_in_place(&link).is_err());
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
