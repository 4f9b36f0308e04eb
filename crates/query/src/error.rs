//! Errors of queries.

use std::time::Duration;

use heapdiff_tables::Error as TableError;

/// The reason why a query has no result.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// SQLite rejects the statement.
    #[error("{message} (line {line}, column {column})")]
    Sql {
        /// SQLite's message.
        message: String,
        /// The line of the mistake, counted from 1.
        line: usize,
        /// The position of the mistake in its line, in characters counted from 1.
        column: usize,
        /// The text of the line that contains the mistake.
        text: String,
        /// A suggestion how to correct the statement, if there is one.
        hint: Option<String>,
    },
    /// The statement is OQL, not SQL.
    #[error("this is OQL, but `heapdiff query` takes SQL")]
    Oql {
        /// The same statement in SQL; `None` if there is no simple translation.
        sql: Option<String>,
    },
    /// The statement does more than read.
    #[error("only SELECT is allowed, because heapdiff never changes a dump")]
    Denied,
    /// The command, such as `.tables`, is unknown.
    #[error("there is no command `{command}`; use .tables, .schema [TABLE] or describe TABLE")]
    Command {
        /// The unknown command.
        command: String,
    },
    /// A command names an unknown table.
    #[error("there is no table `{name}`; the tables are {tables}")]
    Table {
        /// The unknown name.
        name: String,
        /// The known tables.
        tables: String,
    },
    /// A dump cannot have this name.
    #[error("a dump cannot be named `{name}`: {reason}")]
    Name {
        /// The rejected name.
        name: String,
        /// The reason why the name is rejected.
        reason: &'static str,
    },
    /// There are too many dumps.
    #[error("too many dumps: {dumps} were given, but a query reads at most {most}")]
    TooManyDumps {
        /// Number of dumps that the user gave.
        dumps: usize,
        /// Maximum number of dumps in a query.
        most: usize,
    },
    /// The query has several statements or none. The value is `several` or `none`.
    #[error("a query must be exactly one statement, but this query has {0}")]
    Count(&'static str),
    /// The query needs more memory than its limit.
    #[error("the query needs more memory than the limit of {limit} bytes")]
    Memory {
        /// The memory limit, in bytes.
        limit: u64,
    },
    /// The temporary files of the query exceed their limit.
    #[error("the query was stopped: its temporary files exceed {limit} bytes")]
    TemporaryFiles {
        /// The limit for temporary files, in bytes.
        limit: u64,
    },
    /// The query takes longer than its limit.
    #[error("the query was stopped: it ran longer than {} s", limit.as_secs())]
    Time {
        /// The time limit.
        limit: Duration,
    },
    /// The query failed while it ran.
    #[error("{0}")]
    Run(String),
    /// The agent's data in the dump cannot be read.
    #[error("the table `samples` cannot be read: {0}")]
    Samples(String),
    /// The dump could not be read.
    #[error(transparent)]
    Heap(#[from] hprof::Error),
    /// The rows could not be written.
    #[error(transparent)]
    Output(#[from] TableError),
}

/// The result type of the functions in this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;
