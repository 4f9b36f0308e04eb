//! Copies a trace into a single file, for example to send it to another machine.

use std::path::Path;
use std::sync::atomic::Ordering;

use rusqlite::Connection;
use rusqlite::config::DbConfig;

use crate::database::create_private;
use crate::{Trace, TraceError};

impl Trace {
    /// Writes a copy of the trace to a new file, which is complete without a `-wal` or `-shm` file. The copy contains
    /// no arguments of the program and the JVM, because arguments often contain passwords.
    ///
    /// # Errors
    /// Returns an error if the trace cannot be read, or if the new file exists or cannot be written.
    pub fn copy_without_arguments(&self, to: &Path) -> Result<(), TraceError> {
        let failed = |source| TraceError::Sqlite {
            path: to.to_owned(),
            source,
        };
        let name = to.to_str();
        let name = name.ok_or_else(|| failed(rusqlite::Error::InvalidPath(to.to_owned())))?;
        self.steps.store(0, Ordering::Relaxed);
        // SQLite accepts an existing file that is empty.
        create_private(to);
        self.database()
            .connection()
            .execute("VACUUM INTO ?1", [name])
            .map_err(|e| self.error(e))?;
        without_arguments(to).map_err(failed)
    }
}

/// Keeps only the first word of each command, which is the main class or the jar.
fn without_arguments(file: &Path) -> rusqlite::Result<()> {
    let connection = Connection::open(file)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    // `journal_mode = off`: the copy must be one file without a log. `secure_delete`: SQLite overwrites the old flags
    // and arguments in the file when the update removes them.
    connection.execute_batch(
        "PRAGMA journal_mode = off; PRAGMA secure_delete = on; PRAGMA trusted_schema = off;
        UPDATE run SET flags = '', command = substr(command, 1, instr(command || ' ', ' ') - 1);",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Limits, NewRun, NewTick, Writer};

    #[test]
    fn a_copy_is_one_file_without_arguments() {
        let folder = tempfile::tempdir().unwrap();
        let (path, copy) = (folder.path().join("t.db"), folder.path().join("copy.db"));
        let run = NewRun {
            command: "com.acme.Main --password hidden1".into(),
            flags: "-Xmx1g -Dpassword=hidden2".into(),
            heap_limit: Some(1 << 30),
            ..NewRun::default()
        };
        let mut writer = Writer::create(&path, &run, Limits::default()).unwrap();
        writer.tick(&(), &(), |_| NewTick::default()).unwrap();
        let trace = Trace::open(&path).unwrap();
        trace.copy_without_arguments(&copy).unwrap();
        assert!(trace.copy_without_arguments(&copy).is_err(), "it exists");

        let content = std::fs::read(&copy).unwrap();
        assert!(!content.windows(6).any(|bytes| bytes == b"hidden"));
        let alone = folder.path().join("alone");
        std::fs::create_dir(&alone).unwrap();
        std::fs::rename(&copy, alone.join("t.db")).unwrap();
        let copied = Trace::open(&alone.join("t.db")).unwrap();
        let run = copied.runs().unwrap().remove(0);
        assert_eq!(run.command, "com.acme.Main");
        assert_eq!(copied.heap_limit(&run).unwrap().unwrap().bytes, 1 << 30);
        assert_eq!(copied.ticks(run.id).unwrap().len(), 1);
        drop(copied);
        assert_eq!(std::fs::read_dir(&alone).unwrap().count(), 1);
    }
}
