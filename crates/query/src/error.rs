//! What can be wrong with a query.

use std::time::Duration;

use heapdiff_tables::Error as TableError;

/// Why a query has no result.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// SQLite does not understand it.
    #[error("{message} (line {line}, column {column})")]
    Sql {
        /// What SQLite says.
        message: String,
        /// Where, from one.
        line: usize,
        /// Where in the line, in characters from one.
        column: usize,
        /// The line.
        text: String,
        /// What might have been meant.
        hint: Option<String>,
    },
    /// A statement in OQL.
    #[error("this is OQL, but `heapdiff query` takes SQL")]
    Oql {
        /// The same in SQL, if it has a simple form.
        sql: Option<String>,
    },
    /// It would do something else than read.
    #[error("only SELECT is allowed, because heapdiff never changes a dump")]
    Denied,
    /// It is a command that is none.
    #[error("there is no command `{command}`; use .tables, .schema [TABLE] or describe TABLE")]
    Command {
        /// What was written.
        command: String,
    },
    /// A command names a table that there is not.
    #[error("there is no table `{name}`; the tables are {tables}")]
    Table {
        /// What was written.
        name: String,
        /// Those that there are.
        tables: String,
    },
    /// A dump cannot have this name.
    #[error("a dump cannot be named `{name}`: {reason}")]
    Name {
        /// The name.
        name: String,
        /// Why not.
        reason: &'static str,
    },
    /// Too many dumps.
    #[error("too many dumps: {dumps} were given, but a query reads at most {most}")]
    TooManyDumps {
        /// How many there are.
        dumps: usize,
        /// How many there can be.
        most: usize,
    },
    /// Several statements, or none.
    #[error("a query must be exactly one statement, but this query has {0}")]
    Count(&'static str),
    /// It needs more memory than it may have.
    #[error("the query needs more memory than the limit of {limit} bytes")]
    Memory {
        /// The limit.
        limit: u64,
    },
    /// Its temporary files exceed their limit.
    #[error("the query was stopped: its temporary files exceed {limit} bytes")]
    TemporaryFiles {
        /// Maximum number of bytes.
        limit: u64,
    },
    /// It takes longer than it may.
    #[error("the query was stopped: it ran longer than {} s", limit.as_secs())]
    Time {
        /// The limit.
        limit: Duration,
    },
    /// It failed while it ran.
    #[error("{0}")]
    Run(String),
    /// What the agent left in the dump cannot be read.
    #[error("the table samples cannot be read: {0}")]
    Samples(String),
    /// The dump could not be asked.
    #[error(transparent)]
    Heap(#[from] hprof::Error),
    /// The rows could not be written.
    #[error(transparent)]
    Output(#[from] TableError),
}

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;
