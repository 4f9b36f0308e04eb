//! `heapdiff query`: runs SQL over a dump.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use heapdiff_diff::quoted as shell_quoted;
use heapdiff_model::query::{QueriedDump, QueryHead};
use heapdiff_query::{Dumps, Heap, Limits, Outcome, Sink};
use heapdiff_report::rows::{RowError, RowSource};
use heapdiff_report::{Format, PendingQuery, Report, printable};
use hprof::Progress;
use hprof::bytes::dump_of;

use super::dump_info;
use super::opened::open;
use crate::args::{CommonArgs, SetupArgs, listing};
use crate::failure::{Failure, Result, quoted, system_message};
use crate::job::{Formats, Job, Setup, Task, text_and_json};
use crate::messages;

/// Default number of rows in text and in JSON.
const ROWS: [u64; 2] = [100, 10_000];
/// Maximum number of bytes of a query in a file.
const LONGEST: usize = 1 << 20;

const HELP: &str = "\
Examples:
  # the 10 classes with the most objects
  heapdiff query a.hprof \"select class, objects from classes order by objects desc limit 10\"
  # all references to an object, as CSV
  heapdiff query a.hprof \"select * from refs where target_id = 0x7f0012345678\" -o refs.csv
  # list the tables (`.schema objects` lists columns)
  heapdiff query a.hprof .tables

Tables: objects, classes, refs, roots, strings, threads, frames, samples, allocated, counted_sites.
Instead of a SELECT, `.tables`, `.schema [TABLE]` or `describe TABLE` shows the tables and their
columns. docs/query.md has the functions and more examples. Object ids are written 0x7f0012345678.
In a SELECT, two dumps have the names `before` and `after`; more dumps have the names `dump1`,
`dump2`, ...";

fn formats(format: Format) -> bool {
    text_and_json(format) || format.has_only_rows()
}

#[derive(Debug, Args)]
#[command(
    after_help = HELP,
    mut_arg("format", listing(formats)),
    override_usage = "heapdiff query [OPTIONS] <DUMP>... <SQL>"
)]
pub(crate) struct QueryArgs {
    /// Heap dumps (HPROF, gzipped or not), then one SELECT in the SQL of SQLite; `-` reads it from
    /// standard input
    #[arg(value_name = "DUMP... SQL", required_unless_present = "named")]
    inputs: Vec<OsString>,
    /// Read the SELECT from a file
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Dump to query, and the name that the SELECT uses for it; may be repeated
    #[arg(long = "as", value_name = "NAME=DUMP", value_parser = parse_named_dump)]
    named: Vec<(String, PathBuf)>,
    /// Maximum number of rows [default: 100 in text, 10000 in JSON, all in CSV and Parquet]
    #[arg(long, value_name = "N")]
    max_rows: Option<u64>,
    #[command(flatten)]
    common: CommonArgs,
}

impl QueryArgs {
    pub(crate) fn job(self) -> Result<Job> {
        let (paths, source) = split(self.inputs, self.file, !self.named.is_empty())?;
        let (dumps, names) = named_dumps(paths, self.named)?;
        let setup = self.common.setup()?;
        let format = setup.output.format;
        if format == Format::Parquet && setup.output.file.is_none() {
            let message = "Parquet cannot be written to standard output";
            return Err(Failure::usage(message).with_hint("add -o FILE.parquet"));
        }
        let sql = source.read()?;
        let top = setup.top.map(|top| top as u64);
        let rows = self.max_rows.or(top).or(match format {
            Format::Text => Some(ROWS[0]),
            Format::Json => Some(ROWS[1]),
            _ => None,
        });
        let limits = Limits {
            rows,
            memory: setup.analysis.max_memory,
            time: None,
            temporary_files: None,
            is_given_up: None,
        };
        Job::new(setup, Query::new(dumps, names, sql, limits)?)
    }
}

/// One SELECT over dumps.
#[derive(Debug)]
pub(crate) struct Query {
    dumps: Vec<PathBuf>,
    /// A name for each dump. Empty if there is a single dump without a name.
    names: Vec<String>,
    sql: String,
    limits: Limits,
}

impl Query {
    /// Checks the statement. A mistake is reported before the dumps are read, which may take a while.
    pub(crate) fn new(
        dumps: Vec<PathBuf>,
        names: Vec<String>,
        sql: String,
        limits: Limits,
    ) -> Result<Self> {
        let Some(first) = dumps.first() else {
            return Err(Failure::usage("no dump was given"));
        };
        heapdiff_query::check_for_dumps(&names, &sql).map_err(|e| Failure::query(first, e))?;
        Ok(Self {
            dumps,
            names,
            sql,
            limits,
        })
    }
}

impl Task for Query {
    fn formats() -> Formats {
        formats
    }

    /// Reads the dumps. The query runs only when its rows are written, so the rows need not be stored.
    fn run(&self, setup: &Setup) -> Result<Vec<Report>> {
        if sums_retained_bytes(&self.sql) && !setup.progress.quiet {
            let dump = shell_quoted(&self.dumps[0].display().to_string());
            messages::warn(&format!(
                "sum(retained_bytes) counts an object once for each selected object that dominates it, so the sum may exceed the heap; use sum(shallow_bytes), or for memory by owner: heapdiff owners {dump}"
            ));
        }
        if let Some(id) = heapdiff_query::quoted_id(&self.sql)
            && !setup.progress.quiet
        {
            messages::warn(&format!(
                "'{id}' is a string, and ids are numbers, so they are never equal; write an id without quotes: {id}"
            ));
        }
        if let Some((first, other)) = self.only_first_dump()
            && !setup.progress.quiet
        {
            messages::warn(&format!(
                "the SELECT names no dump, so it reads only {first}; {other}.objects reads another dump"
            ));
        }
        // All dumps are open at the same time, so each of them gets an equal part of the allowed memory.
        let mut setup = setup.clone();
        let parts = self.dumps.len().max(1) as u64;
        setup.analysis.max_memory = setup.analysis.max_memory.map(|memory| memory / parts);
        let mut heaps = Vec::with_capacity(self.dumps.len());
        for path in &self.dumps {
            let (opened, meter) = open(&setup, path)?;
            meter.phase("preparing the query", 0);
            heaps.push(Arc::new(Heap::new(Arc::clone(&opened.snapshot))));
        }
        let Some(first) = heaps.first().cloned() else {
            return Err(Failure::usage("no dump was given"));
        };
        let info = |heap: &Heap| dump_info::of(heap.snapshot(), heap.own());
        let queried = |(name, heap): (&String, &Arc<Heap>)| QueriedDump {
            name: name.clone(),
            snapshot: info(heap),
        };
        let dumps = self.names.iter().zip(&heaps).map(queried).collect();
        let snapshot = info(&first);
        let over = if self.names.is_empty() {
            Dumps::one(first)
        } else {
            Dumps::named(self.names.iter().cloned().zip(heaps).collect())
                .map_err(|e| Failure::query(&self.dumps[0], e))?
        };
        Ok(vec![Report::Query(Box::new(PendingQuery {
            head: QueryHead {
                schema: QueryHead::SCHEMA,
                snapshot,
                dumps,
                sql: self.sql.clone(),
            },
            max_rows: self.limits.rows,
            rows: Box::new(Rows {
                dumps: over,
                sql: self.sql.clone(),
                limits: self.limits,
            }),
        }))])
    }
}

impl Query {
    /// If the statement names none of several dumps, it reads only the first dump. In this case, returns the path of
    /// the first dump and the name of the second dump. Otherwise returns `None`.
    fn only_first_dump(&self) -> Option<(String, &str)> {
        let [_, other, ..] = &self.names[..] else {
            return None;
        };
        let sql = self.sql.to_lowercase();
        let is_used = |name: &String| {
            let name = name.to_lowercase();
            sql.contains(&format!("{name}.")) || sql.contains(&format!("'{name}'"))
        };
        let reads = sql.contains("from") && !self.names.iter().any(is_used);
        reads.then(|| (self.dumps[0].display().to_string(), &**other))
    }
}

/// True if a statement adds up the retained bytes of objects or classes that may dominate each other, so that bytes are
/// counted several times. Sums over the table `strings` are allowed, because strings dominate only their arrays.
fn sums_retained_bytes(sql: &str) -> bool {
    const RETAINED: &str = "retained_bytes";
    let sql: String = sql.split_whitespace().collect::<String>().to_lowercase();
    if sql.contains("fromstrings") {
        return false;
    }
    let sums = ["sum(", "total("].into_iter();
    let arguments: Vec<&str> = sums
        .flat_map(|call| sql.match_indices(call))
        .map(|(at, call)| argument(&sql[at + call.len()..]))
        .collect();
    let is_selected_inside = sql.match_indices("(select").any(|(at, _)| {
        let inner = argument(&sql[at + 1..]);
        inner.contains(RETAINED)
    });
    arguments.iter().any(|sum| sum.contains(RETAINED))
        || !arguments.is_empty() && is_selected_inside
}

/// `text` begins just after an opening parenthesis. Returns the part of `text` before the matching closing parenthesis.
fn argument(text: &str) -> &str {
    let mut open = 1;
    let end = text.find(|c| {
        open += match c {
            '(' => 1,
            ')' => -1,
            _ => 0,
        };
        open == 0
    });
    &text[..end.unwrap_or(text.len())]
}

/// A query that runs when its rows are written.
#[derive(Debug)]
struct Rows {
    dumps: Dumps,
    sql: String,
    limits: Limits,
}

impl RowSource for Rows {
    fn write_to(&self, sink: &mut dyn Sink) -> Result<Outcome, RowError> {
        Ok(heapdiff_query::run_on_dumps(
            &self.dumps,
            &self.sql,
            self.limits,
            sink,
        )?)
    }
}

/// The source of a statement: an argument, a file or standard input.
enum Source {
    Argument(String),
    File(PathBuf),
    StandardInput,
}

impl Source {
    fn read(self) -> Result<String> {
        let (name, text) = match self {
            Self::Argument(sql) => return Ok(sql),
            Self::File(path) => {
                let name = path.display().to_string();
                (name, File::open(&path).and_then(read_limited))
            }
            Self::StandardInput => (
                "standard input".to_owned(),
                read_limited(io::stdin().lock()),
            ),
        };
        let text = text.map_err(|e| {
            Failure::usage(format!(
                "cannot read the query from {name}: {}",
                system_message(&e)
            ))
        })?;
        if text.len() > LONGEST {
            let message = format!("the query from {name} is longer than {LONGEST} bytes");
            return Err(Failure::usage(message));
        }
        String::from_utf8(text)
            .map_err(|_| Failure::usage(format!("the query from {name} is not UTF-8")))
    }
}

/// Reads at most one byte more than the limit. This byte shows that a statement is too long.
fn read_limited(from: impl Read) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    from.take(LONGEST as u64 + 1).read_to_end(&mut text)?;
    Ok(text)
}

/// True if the argument is an SQL statement, although a dump file is expected in its place.
pub(super) fn is_statement(argument: &Path) -> bool {
    let text = argument.to_str().unwrap_or_default().trim_start();
    let first = text.split(|c: char| !c.is_ascii_alphabetic()).next();
    let begins = ["select", "with", "describe", "values"];
    let begins = first.is_some_and(|first| begins.iter().any(|b| b.eq_ignore_ascii_case(first)));
    begins && text.contains(char::is_whitespace) && !argument.exists()
}

/// Returns a hint with the command that runs the SELECT `sql` on `dumps`.
pub(super) fn command(dumps: &str, sql: &Path) -> String {
    let sql = printable(&sql.to_string_lossy()).into_owned();
    format!("use: heapdiff query {dumps} {}", quoted(&sql))
}

/// Separates the dumps from the statement. The statement is the last argument, with two exceptions. If `--file` is
/// given, the statement comes from that file. If the last argument is `-` or an existing file, the statement comes from
/// standard input.
fn split(
    inputs: Vec<OsString>,
    file: Option<PathBuf>,
    has_named: bool,
) -> Result<(Vec<PathBuf>, Source)> {
    let mut paths: Vec<PathBuf> = inputs.into_iter().map(PathBuf::from).collect();
    if let Some(file) = file {
        let source = if file.as_os_str() == "-" {
            Source::StandardInput
        } else {
            Source::File(file)
        };
        return Ok((paths, source));
    }
    match &paths[..] {
        [only] if only.as_os_str() == "-" && !has_named => {
            let message =
                "no dump was given: here `-` means that the SELECT comes from standard input";
            return Err(Failure::usage(message).with_hint("usage: heapdiff query DUMP -"));
        }
        [sql, dumps @ ..] if !has_named && is_statement(sql) => {
            let dumps: Vec<String> = dumps.iter().map(|d| d.display().to_string()).collect();
            return Err(if dumps.is_empty() {
                Failure::usage("no dump was given").with_hint(command("DUMP", sql))
            } else {
                Failure::usage("the SELECT must come after the dumps")
                    .with_hint(command(&dumps.join(" "), sql))
            });
        }
        _ => {}
    }
    let is_sql = |last: &PathBuf| (paths.len() > 1 || has_named) && !last.is_file();
    if paths.last().is_some_and(|last| last.as_os_str() == "-") && (paths.len() > 1 || has_named) {
        paths.pop();
        return Ok((paths, Source::StandardInput));
    }
    if paths.last().is_some_and(is_sql)
        && let Some(last) = paths.pop()
    {
        let sql = last.into_os_string().into_string();
        let sql = sql.map_err(|_| Failure::usage("the query is not UTF-8"))?;
        return Ok((paths, Source::Argument(sql)));
    }
    if io::stdin().is_terminal() {
        let hint = "usage: heapdiff query DUMP 'SELECT ...', or with -f FILE";
        return Err(Failure::usage("no SELECT was given").with_hint(hint));
    }
    Ok((paths, Source::StandardInput))
}

/// Returns all dumps with their names. If there is a single dump, it has a name only if the user gives one.
fn named_dumps(
    paths: Vec<PathBuf>,
    named: Vec<(String, PathBuf)>,
) -> Result<(Vec<PathBuf>, Vec<String>)> {
    if paths.is_empty() && named.is_empty() {
        return Err(Failure::usage("no dump was given"));
    }
    let mut names = default_names(paths.len(), named.len());
    let mut dumps: Vec<PathBuf> = paths.iter().map(|path| dump_of(path)).collect();
    for (name, dump) in named {
        names.push(name);
        dumps.push(dump_of(&dump));
    }
    Ok((dumps, names))
}

fn parse_named_dump(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, dump)) if !name.is_empty() && !dump.is_empty() => {
            Ok((name.to_owned(), PathBuf::from(dump)))
        }
        _ => Err(format!("`{text}` is not NAME=DUMP")),
    }
}

/// Returns default names for `dumps` dumps without a name. `named` is the number of dumps that have a name from the
/// user. If there is only one dump in total, it needs no name.
pub(crate) fn default_names(dumps: usize, named: usize) -> Vec<String> {
    match (dumps, named) {
        (1, 0) => Vec::new(),
        (2, 0) => ["before", "after"].map(str::to_owned).to_vec(),
        (n, _) => (1..=n).map(|n| format!("dump{n}")).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_retained_bytes_are_recognized() {
        for sql in [
            "SELECT loader, sum(retained_bytes) FROM classes GROUP BY loader",
            "select Sum( o.retained_bytes ) from objects o",
            "select total(retained_bytes) from objects",
            "select sum(cast(retained_bytes as real) * 2) from objects",
            "select sum(r) from (select retained_bytes r from objects)",
            "select sum(retained_bytes) from objects where class = 'com.acme.Node'",
        ] {
            assert!(sums_retained_bytes(sql), "{sql}");
        }
        for sql in [
            "SELECT sum(shallow_bytes), max(retained_bytes) FROM objects",
            "SELECT retained_bytes FROM classes",
            "select max(r) from (select retained_bytes r from objects)",
            "select sum(shallow_bytes) from objects where retained_bytes > 9",
            "select sum(retained_bytes), value from strings group by value",
        ] {
            assert!(!sums_retained_bytes(sql), "{sql}");
        }
    }
}
