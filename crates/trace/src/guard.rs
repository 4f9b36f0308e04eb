//! Protects a process from malicious traces.

use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OptionalExtension};

/// Maximum total time that the SQL statements of a side writer take. A side writer is a process other than the agent
/// that adds rows.
const LONGEST: Duration = Duration::from_millis(200);
/// Number of steps of SQLite's virtual machine between two checks of the time.
const STRIDE: i32 = 1000;

/// All tables of a trace, each with the first schema version that contains the table.
const TABLES: [(&str, i32); 13] = [
    ("run", 1),
    ("class", 1),
    ("frame", 1),
    ("stack", 1),
    ("site", 1),
    ("tick", 1),
    ("site_tick", 1),
    ("collection", 1),
    ("class_tick", 1),
    ("dump", 1),
    ("note", 1),
    ("thread", 2),
    ("sample", 2),
];

/// Secures a connection for writing, so that a malicious file can neither harm this process nor make other processes
/// wait long for the file. Returns the first table that is not an ordinary table.
pub(crate) fn secure_connection(
    connection: &mut Connection,
    version: i32,
) -> rusqlite::Result<Option<&'static str>> {
    let end = Instant::now() + LONGEST;
    connection.progress_handler(STRIDE, Some(move || Instant::now() > end))?;
    connection.pragma_update(None, "trusted_schema", false)?;
    for (setting, on) in [
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false),
        (DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true),
    ] {
        connection.set_db_config(setting, on)?;
    }
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    connection.pragma_update(None, "synchronous", "normal")?;
    connection.pragma_update(None, "mmap_size", 0)?;
    not_a_table(connection, version)
}

/// Returns true if the object with this name is an ordinary table, or `None` if there is no such object.
pub(crate) fn is_table(connection: &Connection, name: &str) -> rusqlite::Result<Option<bool>> {
    let sql = "SELECT type FROM pragma_table_list WHERE schema = 'main' AND name = ?1";
    let found = connection.prepare_cached(sql)?.query_row([name], |row| {
        Ok(row.get_ref(0)?.as_str().is_ok_and(|kind| kind == "table"))
    });
    found.optional()
}

/// Returns the first table that is not an ordinary table. Reading a view or a virtual table could run SQL that
/// the file's author chose.
pub(crate) fn not_a_table(
    connection: &Connection,
    version: i32,
) -> rusqlite::Result<Option<&'static str>> {
    let sql = "SELECT count(*) FROM pragma_table_list WHERE schema = 'main' AND name = ?1 AND type = 'table'";
    let mut query = connection.prepare(sql)?;
    for (table, _) in TABLES.into_iter().filter(|(_, since)| *since <= version) {
        let ordinary: i64 = query.query_row([table], |row| row.get(0))?;
        if ordinary != 1 {
            return Ok(Some(table));
        }
    }
    Ok(None)
}
