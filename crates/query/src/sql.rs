//! Runs one SQL statement.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use heapdiff_tables::{Cell, Kind, Outcome, ResultColumn, Sink};
use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, Statement};

use crate::bounds::{self, Stop, Watchdog};
use crate::describe;
use crate::dumps::{Dumps, MAIN, check_names};
use crate::error::{Error, Result};
use crate::fields::{FieldKinds, field_columns};
use crate::functions;
use crate::heap::Heap;
use crate::schema::{Table, kind_from_declaration};
use crate::{oql, sums, vtab};

/// Maximum number of bytes of a string or row that a query creates.
const LENGTH: i32 = 64 << 20;

/// The limits of a query.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// Maximum number of rows.
    pub rows: Option<u64>,
    /// Maximum number of bytes of memory that SQLite uses to sort and group, in addition to the dump's memory. SQLite
    /// prefers temporary files to memory.
    pub memory: Option<u64>,
    /// Maximum duration.
    pub time: Option<Duration>,
    /// Maximum number of bytes of SQLite's temporary files in this process. `None` means 1 GiB. On a system that does
    /// not list open files, SQLite sorts in memory. Then the limit of SQLite's memory is `memory`, or this value if
    /// `memory` is `None`.
    pub temporary_files: Option<u64>,
    /// A function that returns true if the query was cancelled. Another thread calls it every 20 ms.
    pub is_given_up: Option<fn() -> bool>,
}

impl Limits {
    pub(crate) fn temporary_files(self) -> u64 {
        self.temporary_files.unwrap_or(bounds::TEMPORARY_FILES)
    }
}

/// Checks a statement over one dump. The dump itself is not needed, so mistakes can be reported before the dump is
/// read.
///
/// # Errors
/// Returns an error if the statement is not a single SELECT over known tables and columns.
pub fn check(sql: &str) -> Result<Vec<ResultColumn>> {
    check_for_dumps(&[], sql)
}

/// Checks a statement over dumps with the given names. The dumps themselves are not needed.
///
/// # Errors
/// Returns the errors of [`check`], and an error if a dump's name is invalid.
pub fn check_for_dumps(names: &[String], sql: &str) -> Result<Vec<ResultColumn>> {
    check_names(names)?;
    let kinds = FieldKinds::default();
    let connection = connect((names, None), &kinds, &[], Limits::default(), &Stop::NEVER)?;
    let statement = describe::statement(sql, names)?;
    let prepared = |sql: &str| prepare(&connection, sql, Limits::default(), names);
    match prepared(&statement) {
        Ok(statement) => Ok(columns_of(&statement)),
        Err(error) => Err(match oql::read(sql) {
            Some(oql) => Error::Oql {
                sql: oql.sql.filter(|sql| prepared(sql).is_ok()),
            },
            None => error,
        }),
    }
}

/// Runs a statement over a dump. Passes each row to `sink` as soon as SQLite returns it. With `ORDER BY`, this may be
/// after SQLite has found all rows.
///
/// # Errors
/// Returns the errors of [`check`], and an error if the statement fails while it runs.
pub fn run(heap: &Arc<Heap>, sql: &str, limits: Limits, sink: &mut dyn Sink) -> Result<Outcome> {
    run_on_dumps(&Dumps::one(heap.clone()), sql, limits, sink)
}

/// Runs a statement over dumps.
///
/// # Errors
/// Returns the errors of [`check_for_dumps`], and an error if the statement fails while it runs.
pub fn run_on_dumps(
    dumps: &Dumps,
    sql: &str,
    limits: Limits,
    sink: &mut dyn Sink,
) -> Result<Outcome> {
    let sql = &*describe::statement(sql, dumps.names())?;
    let faster = sums::from_sums(sql);
    let unlisted: &[Table] = match faster {
        Some(_) => &[Table::ObjectSums],
        None => &[],
    };
    let stop = Stop::new();
    let kinds = FieldKinds::default();
    let own = (dumps.names(), Some(dumps));
    let connection = connect(own, &kinds, unlisted, limits, &stop)?;
    let _watchdog = Watchdog::start(connection.get_interrupt_handle(), stop.clone(), limits)?;
    let reason = |e| stop.error(limits).unwrap_or(e);
    let failed = |e| reason(from_sqlite_error(e, sql, limits));
    let mut statement = prepare(&connection, sql, limits, dumps.names()).map_err(reason)?;
    let columns = columns_of(&statement);
    // If the statement sums over `objects`, run a statement over `object_sums` instead, which has the same result and
    // is faster.
    if let Some(faster) = &faster {
        statement = prepare(&connection, faster, limits, dumps.names()).map_err(reason)?;
    }
    let fields = field_columns(sql, columns.len());
    sink.columns(&columns)?;
    let mut rows = statement.query([]).map_err(failed)?;
    let mut count = 0;
    while let Some(row) = rows.next().map_err(failed)? {
        if limits.rows.is_some_and(|most| count >= most) {
            return Ok(Outcome {
                rows: count,
                more: true,
            });
        }
        let blobs: Vec<Option<String>> = (0..columns.len())
            .map(|at| match row.get_ref(at) {
                Ok(ValueRef::Blob(bytes)) => Some(in_hex(bytes)),
                _ => None,
            })
            .collect();
        let mut cells = Vec::with_capacity(columns.len());
        for (at, column) in columns.iter().enumerate() {
            let value = row.get_ref(at).map_err(failed)?;
            let is_id = |id: i64, field: &str| kinds.is_id(field, || dumps.have(id));
            let kind = match (value, &fields[at]) {
                (ValueRef::Integer(id), Some(field)) if is_id(id, field) => Some(Kind::Id),
                _ => column.kind,
            };
            cells.push(match &blobs[at] {
                Some(hex) => Cell::Text(hex),
                None => cell(value, kind),
            });
        }
        sink.row(&cells)?;
        count += 1;
    }
    Ok(Outcome {
        rows: count,
        more: false,
    })
}

fn in_hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut hex, byte| {
        // Writing to a string does not fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

fn cell(value: ValueRef<'_>, kind: Option<Kind>) -> Cell<'_> {
    match value {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(value) => match kind {
            Some(Kind::Id) => Cell::Id(value.cast_unsigned()),
            Some(Kind::Bool) => Cell::Bool(value != 0),
            _ => Cell::Int(value),
        },
        ValueRef::Real(value) => Cell::Double(value),
        ValueRef::Text(text) | ValueRef::Blob(text) => {
            // All strings in tables are UTF-8. Only strings that the query itself creates from bytes may be invalid
            // UTF-8.
            std::str::from_utf8(text).map_or(Cell::Null, Cell::Text)
        }
    }
}

fn columns_of(statement: &Statement<'_>) -> Vec<ResultColumn> {
    let columns = statement.columns();
    columns
        .map(|column| ResultColumn {
            name: column.name().to_owned(),
            kind: column.decl_type().and_then(kind_from_declaration),
        })
        .collect()
}

/// Returns a connection to an in-memory database with one schema per dump. The schemas store no data: their virtual
/// tables and the SQL functions read the dumps. If `dumps` is `None`, the tables have no rows.
fn connect(
    (names, dumps): (&[String], Option<&Dumps>),
    kinds: &FieldKinds,
    unlisted: &[Table],
    limits: Limits,
    stop: &Stop,
) -> Result<Connection> {
    let failed = |e| from_sqlite_error(e, "", limits);
    let mut connection = Connection::open_in_memory().map_err(failed)?;
    for name in names {
        // A name is one word, see `check_names`, so it needs no quotes.
        let attach = format!("ATTACH ':memory:' AS {name}");
        connection.execute(&attach, []).map_err(failed)?;
    }
    let schemas = if names.is_empty() {
        vec![MAIN]
    } else {
        names.iter().map(String::as_str).collect()
    };
    for (at, schema) in schemas.into_iter().enumerate() {
        if let Some(heap) = dumps.and_then(|dumps| dumps.heap(at)) {
            vtab::create(&connection, schema, (heap, stop), unlisted).map_err(failed)?;
            continue;
        }
        for table in Table::ALL {
            let declaration = table.declaration(&format!("{schema}.{}", table.name()));
            connection.execute(&declaration, []).map_err(failed)?;
        }
    }
    functions::add(&connection, dumps, kinds).map_err(failed)?;
    let mut memory = limits.memory;
    if !bounds::can_watch_files() {
        // This system does not list open files, so the size of temporary files cannot be limited. So SQLite sorts in
        // memory.
        connection
            .execute_batch("PRAGMA temp_store = MEMORY")
            .map_err(failed)?;
        memory = memory.or(Some(limits.temporary_files()));
    }
    if let Some(memory) = memory {
        let memory = i64::try_from(memory).unwrap_or(i64::MAX);
        let set = connection.query_row(&format!("PRAGMA hard_heap_limit={memory}"), [], |_| Ok(()));
        set.map_err(failed)?;
    }
    protect(&mut connection).map_err(failed)?;
    Ok(connection)
}

/// Restricts a connection to reading.
fn protect(connection: &mut Connection) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    // Make SQLite treat a word in double quotes always as a column name, as in standard SQL. By default, SQLite treats
    // a misspelled name in double quotes as a string.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DML, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DDL, false)?;
    connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, LENGTH)?;
    connection.set_limit(Limit::SQLITE_LIMIT_SQL_LENGTH, 1 << 20)?;
    connection.authorizer(Some(|context: AuthContext<'_>| match context.action {
        // Also forbid pragmas that are read as tables, such as `pragma_table_info`.
        AuthAction::Read { table_name, .. } if table_name.starts_with("pragma_") => {
            Authorization::Deny
        }
        AuthAction::Select | AuthAction::Read { .. } | AuthAction::Recursive => {
            Authorization::Allow
        }
        AuthAction::Function { function_name } if function_name != "load_extension" => {
            Authorization::Allow
        }
        _ => Authorization::Deny,
    }))
}

fn prepare<'c>(
    connection: &'c Connection,
    sql: &str,
    limits: Limits,
    names: &[String],
) -> Result<Statement<'c>> {
    let statement = connection.prepare(sql).map_err(|e| {
        let mut error = from_sqlite_error(e, sql, limits);
        if let Error::Sql {
            message,
            hint: Some(hint),
            ..
        } = &mut error
            && message.starts_with("no such table")
            && !names.is_empty()
        {
            hint.push_str(&format!("; dumps: {}", names.join(", ")));
        }
        error
    })?;
    if statement.column_count() == 0 {
        return Err(Error::Count("none"));
    }
    if !statement.readonly() {
        return Err(Error::Denied);
    }
    Ok(statement)
}

/// Converts an error of SQLite to an error that helps the author of the statement.
fn from_sqlite_error(error: rusqlite::Error, sql: &str, limits: Limits) -> Error {
    use rusqlite::Error as E;
    let code = error.sqlite_error_code();
    if code == Some(ErrorCode::AuthorizationForStatementDenied) {
        return Error::Denied;
    }
    if code == Some(ErrorCode::OutOfMemory) {
        return Error::Memory {
            limit: limits.memory.unwrap_or(limits.temporary_files()),
        };
    }
    match error {
        E::SqlInputError { msg, .. } if msg.ends_with("may not be modified") => Error::Denied,
        E::SqlInputError { msg, offset, .. } => {
            syntax_error(msg, usize::try_from(offset).unwrap_or(0), sql)
        }
        E::MultipleStatement => Error::Count("several"),
        E::SqliteFailure(_, Some(message)) if message.ends_with("may not be modified") => {
            Error::Denied
        }
        // SQLite does not report the position of an unknown table.
        E::SqliteFailure(_, Some(message)) => match message.strip_prefix("no such table: ") {
            Some(name) => {
                let at = sql.find(name).unwrap_or(0);
                syntax_error(message, at, sql)
            }
            None => Error::Run(message),
        },
        other => Error::Run(other.to_string()),
    }
}

/// Returns the error for a mistake at a byte offset of the statement.
fn syntax_error(message: String, at: usize, sql: &str) -> Error {
    let before = String::from_utf8_lossy(&sql.as_bytes()[..at.min(sql.len())]);
    let line = before.matches('\n').count();
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    Error::Sql {
        hint: hint(&message, sql),
        message,
        line: line + 1,
        column: before[start..].chars().count() + 1,
        text: sql.lines().nth(line).unwrap_or_default().to_owned(),
    }
}

/// If SQLite's message is about an unknown table or column, returns a hint that lists the existing tables or columns.
fn hint(message: &str, sql: &str) -> Option<String> {
    if message.starts_with("no such table") {
        let names: Vec<&str> = Table::ALL.iter().map(|t| t.name()).collect();
        return Some(format!("tables: {}", names.join(", ")));
    }
    let name = message.strip_prefix("no such column: ")?;
    let words = || sql.split(|c: char| !c.is_alphanumeric() && c != '_');
    let mut lines: Vec<String> = Table::ALL
        .iter()
        .filter(|table| words().any(|word| word.eq_ignore_ascii_case(table.name())))
        .map(|table| {
            let columns: Vec<&str> = table.column_names().collect();
            format!("columns of {}: {}", table.name(), columns.join(", "))
        })
        .collect();
    if name.starts_with('"') {
        lines.insert(
            0,
            "strings need single quotes: 'java.lang.String'".to_owned(),
        );
    }
    Some(lines.join("; "))
}
