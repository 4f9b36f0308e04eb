//! Implements `.tables`, `.schema [TABLE]` and `describe TABLE`. Each command becomes a SELECT with constant rows.

use std::borrow::Cow;

use crate::error::{Error, Result};
use crate::schema::Table;

/// Translates a command to a SELECT. Returns any other statement unchanged.
///
/// # Errors
/// Returns an error if the command or the table is unknown.
pub(crate) fn statement<'s>(sql: &'s str, names: &[String]) -> Result<Cow<'s, str>> {
    let command = sql.trim().trim_end_matches(';').trim_end();
    let words: Vec<&str> = command.split_whitespace().collect();
    let unknown = || Error::Command {
        command: command.to_owned(),
    };
    Ok(Cow::Owned(match *words.as_slice() {
        [first, ..] if first.eq_ignore_ascii_case("describe") => match words[1..] {
            [name] => columns(&[table(name, names)?]),
            _ => return Err(unknown()),
        },
        [".tables"] => tables(names),
        [".schema"] => columns(&all(names)),
        [".schema", name] => columns(&[table(name, names)?]),
        [first, ..] if first.starts_with('.') => return Err(unknown()),
        _ => return Ok(Cow::Borrowed(sql)),
    }))
}

/// Returns all tables, each with the name that queries use for it. If the dumps have names (`names`), the name of a
/// table includes the name of its dump.
fn all(names: &[String]) -> Vec<(String, Table)> {
    let own = |table: Table| (table.name().to_owned(), table);
    if names.is_empty() {
        return Table::ALL.into_iter().map(own).collect();
    }
    let of_dump =
        |name: &String| Table::ALL.map(|table| (format!("{name}.{}", table.name()), table));
    names.iter().flat_map(of_dump).collect()
}

fn table(name: &str, names: &[String]) -> Result<(String, Table)> {
    // A table name without the name of a dump refers to the first dump.
    let found = all(names).into_iter().chain(all(&[]));
    let mut found = found.filter(|(known, _)| known.eq_ignore_ascii_case(name));
    found.next().ok_or_else(|| {
        let known: Vec<String> = all(names).into_iter().map(|t| t.0).collect();
        Error::Table {
            name: name.to_owned(),
            tables: known.join(", "),
        }
    })
}

fn tables(names: &[String]) -> String {
    let rows = all(names)
        .into_iter()
        .map(|(name, table)| vec![name, table.description().to_owned()]);
    values(&["table", "rows"], rows)
}

fn columns(tables: &[(String, Table)]) -> String {
    let rows = tables.iter().flat_map(|(name, table)| {
        table.definition().iter().map(move |(column, kind, what)| {
            [name, *column, kind.name(), *what]
                .map(str::to_owned)
                .to_vec()
        })
    });
    values(&["table", "column", "type", "what"], rows)
}

/// Returns a SELECT whose result has the given columns and rows.
fn values(columns: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let columns = columns.iter().enumerate();
    let columns: Vec<String> = columns
        .map(|(at, name)| format!("column{} AS \"{name}\"", at + 1))
        .collect();
    let quoted = |text: &String| format!("'{}'", text.replace('\'', "''"));
    let rows: Vec<String> = rows
        .map(|row| {
            format!(
                "({})",
                row.iter().map(quoted).collect::<Vec<_>>().join(", ")
            )
        })
        .collect();
    format!(
        "SELECT {} FROM (VALUES {})",
        columns.join(", "),
        rows.join(", ")
    )
}
