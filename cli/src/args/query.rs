//! What `heapdiff query` and `heapdiff export` are asked.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use heapdiff_query::{Limits, Table};
use heapdiff_report::{Format, printable};
use hprof::bytes::dump_of;

use super::common::{CommonArgs, ReportArgs, input};
use super::labels::label;
use crate::failure::{Failure, Result, plain, quoted};
use crate::job::{ExportJob, Setup, Task, names_of};

/// Rows that text and JSON show, where the user does not say.
const ROWS: [u64; 2] = [100, 10_000];
/// The most bytes of a query in a file.
const LONGEST: usize = 1 << 20;

const QUERY_HELP: &str = "\
Tables: objects, classes, refs, roots, strings, threads, frames, samples, allocated, counted_sites.
Instead of a SELECT, `.tables`, `.schema [TABLE]` or `describe TABLE` shows the tables and their
columns. docs/query.md has the functions and more examples. Object ids are written 0x7f0012345678.
In a SELECT, two dumps have the names `before` and `after`; more dumps have the names `dump1`,
`dump2`, ...";

#[derive(Debug, Args)]
#[command(
    after_help = QUERY_HELP,
    override_usage = "heapdiff query [OPTIONS] <DUMP>... <SQL>"
)]
pub(super) struct QueryArgs {
    /// Heap dumps (HPROF, gzipped or not), then one SELECT in the SQL of SQLite; `-` reads it from
    /// standard input
    #[arg(value_name = "DUMP... SQL", required_unless_present = "named")]
    inputs: Vec<OsString>,
    /// Read the SELECT from a file
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Dump to query, and the name that the SELECT uses for it; may be repeated
    #[arg(long = "as", value_name = "NAME=DUMP", value_parser = named)]
    named: Vec<(String, PathBuf)>,
    /// Maximum number of rows [default: 100 in text, 10000 in JSON, all in CSV and Parquet]
    #[arg(long, value_name = "N")]
    max_rows: Option<u64>,
    #[command(flatten)]
    common: CommonArgs,
}

impl QueryArgs {
    pub(super) fn task(self) -> Result<(Setup, Task)> {
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
        Ok((setup, Task::query(dumps, names, sql, limits)?))
    }
}

/// Where a statement comes from.
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
                (name, File::open(&path).and_then(bounded))
            }
            Self::StandardInput => ("standard input".to_owned(), bounded(io::stdin().lock())),
        };
        let text = text.map_err(|e| {
            Failure::usage(format!("cannot read the query from {name}: {}", plain(&e)))
        })?;
        if text.len() > LONGEST {
            let message = format!("the query from {name} is longer than {LONGEST} bytes");
            return Err(Failure::usage(message));
        }
        String::from_utf8(text)
            .map_err(|_| Failure::usage(format!("the query from {name} is not UTF-8")))
    }
}

/// Not more than is needed to see that it is too long.
fn bounded(from: impl Read) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    from.take(LONGEST as u64 + 1).read_to_end(&mut text)?;
    Ok(text)
}

/// True for a SELECT in place of a dump.
pub(super) fn is_statement(argument: &Path) -> bool {
    let text = argument.to_str().unwrap_or_default().trim_start();
    let first = text.split(|c: char| !c.is_ascii_alphabetic()).next();
    let begins = ["select", "with", "describe", "values"];
    let begins = first.is_some_and(|first| begins.iter().any(|b| b.eq_ignore_ascii_case(first)));
    begins && text.contains(char::is_whitespace) && !argument.exists()
}

/// The command for a SELECT over dumps.
pub(super) fn command(dumps: &str, sql: &Path) -> String {
    let sql = printable(&sql.to_string_lossy()).into_owned();
    format!("use: heapdiff query {dumps} {}", quoted(&sql))
}

/// The dumps among the arguments, and where the statement is: the last argument, unless it is in a file, or the last
/// argument is a file itself and the statement comes from standard input.
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

/// All dumps with their names; one alone has none unless it is given.
fn named_dumps(
    paths: Vec<PathBuf>,
    named: Vec<(String, PathBuf)>,
) -> Result<(Vec<PathBuf>, Vec<String>)> {
    if paths.is_empty() && named.is_empty() {
        return Err(Failure::usage("no dump was given"));
    }
    let mut names = names_of(paths.len(), named.len());
    let mut dumps: Vec<PathBuf> = paths.iter().map(|path| dump_of(path)).collect();
    for (name, dump) in named {
        names.push(name);
        dumps.push(dump_of(&dump));
    }
    Ok((dumps, names))
}

fn named(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, dump)) if !name.is_empty() && !dump.is_empty() => {
            Ok((name.to_owned(), PathBuf::from(dump)))
        }
        _ => Err(format!("`{text}` is not NAME=DUMP")),
    }
}

const EXPORT_HELP: &str = "\
Writes objects.parquet, classes.parquet, ... (docs/query.md has the columns). Each file appears only
when it is complete. The metadata of each file contains the version of heapdiff, the path, time and
JVM of the dump, and the labels.";

#[derive(Debug, Args)]
#[command(after_help = EXPORT_HELP)]
pub(super) struct ExportArgs {
    /// Heap dump (HPROF), gzipped or not
    #[arg(value_parser = input())]
    dump: PathBuf,
    /// Folder to write to; created if missing
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// Export only these tables: objects, classes, refs, roots, strings, threads, frames, samples,
    /// allocated, counted_sites [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = table)]
    tables: Vec<Table>,
    /// Label for the metadata of the files, such as service=shop or host=web-3; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = label)]
    label: Vec<(String, String)>,
    #[command(flatten)]
    report: ReportArgs,
}

impl ExportArgs {
    pub(super) fn task(self) -> Result<(Setup, Task)> {
        let format = match self.report.format() {
            None => Format::Parquet,
            Some(format @ (Format::Parquet | Format::Csv)) => format,
            Some(other) => {
                let message = format!("`heapdiff export` cannot write the format {}", other.name());
                return Err(
                    Failure::usage(message).with_hint("use --format parquet or --format csv")
                );
            }
        };
        if self.output.exists() && !self.output.is_dir() {
            let message = format!("-o {}: this is not a folder", self.output.display());
            return Err(Failure::usage(message));
        }
        let mut setup = self.report.setup(None)?;
        // What is told of the export.
        setup.output.format = Format::Text;
        let tables = if self.tables.is_empty() {
            Table::ALL.to_vec()
        } else {
            let mut tables = Table::ALL.to_vec();
            tables.retain(|table| self.tables.contains(table));
            tables
        };
        let job = ExportJob {
            folder: self.output,
            tables,
            labels: self.label,
            format,
        };
        let task = Task::Export {
            dump: self.dump,
            job,
        };
        Ok((setup, task))
    }
}

fn table(name: &str) -> Result<Table, String> {
    Table::by_name(name.trim()).ok_or_else(|| {
        let names: Vec<&str> = Table::ALL.iter().map(|t| t.name()).collect();
        format!(
            "there is no table `{name}`; the tables are {}",
            names.join(", ")
        )
    })
}
