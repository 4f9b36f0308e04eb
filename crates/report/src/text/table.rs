//! Tables: numbers to the right, a name in the last column that takes the room that is left.

use std::borrow::Cow;
use std::io::{self, Write};

pub(crate) use crate::printable::printable;

use super::WIDTH;
use crate::style::Style;

/// How a column is set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Align {
    Left,
    Right,
}

/// Rows under headings. The last column is cut where a line would be too long for the terminal.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<(Cow<'static, str>, Align)>,
    rows: Vec<Vec<String>>,
}

const GAP: usize = 2;

impl Table {
    pub(crate) fn new(columns: &[(&'static str, Align)]) -> Self {
        let columns = columns.iter().map(|&(name, align)| (name.into(), align));
        Self {
            columns: columns.collect(),
            rows: Vec::new(),
        }
    }

    /// A table whose headings are not known beforehand.
    pub(crate) fn named(columns: Vec<(String, Align)>) -> Self {
        let columns = columns
            .into_iter()
            .map(|(name, align)| (name.into(), align));
        Self {
            columns: columns.collect(),
            rows: Vec::new(),
        }
    }

    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    pub(crate) fn print(&self, style: Style, out: &mut dyn Write) -> io::Result<()> {
        let Some(last) = self.columns.len().checked_sub(1) else {
            return Ok(());
        };
        let widths: Vec<usize> = (0..last)
            .map(|c| {
                let cells = self.rows.iter().filter_map(|row| row.get(c));
                let widest = cells.map(|cell| cell.chars().count()).max().unwrap_or(0);
                widest.max(self.columns[c].0.chars().count())
            })
            .collect();
        let used: usize = widths.iter().map(|w| w + GAP).sum::<usize>();
        let room = WIDTH.saturating_sub(used).max(20);
        let heading: Vec<String> = self.columns.iter().map(|c| c.0.to_string()).collect();
        let heading = self.line(&heading, &widths, room, style);
        writeln!(out, "{}", style.dim(heading))?;
        for row in &self.rows {
            writeln!(out, "{}", self.line(row, &widths, room, style))?;
        }
        Ok(())
    }

    fn line(&self, cells: &[String], widths: &[usize], room: usize, style: Style) -> String {
        let mut line = String::new();
        for (i, cell) in cells.iter().enumerate() {
            match (widths.get(i), self.columns[i].1) {
                (Some(&width), Align::Right) => line += &format!("{cell:>width$}"),
                (Some(&width), Align::Left) => line += &format!("{cell:<width$}"),
                (None, _) => line += &style.fitted(&printable(cell), room),
            }
            if i + 1 < cells.len() {
                line += "  ";
            }
        }
        line.truncate(line.trim_end().len());
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_is_too_long() {
        let mut table = Table::new(&[("n", Align::Right), ("class", Align::Left)]);
        table.row(vec!["1".into(), "x".repeat(300)]);
        let mut out = Vec::new();
        table.print(Style::plain().within(WIDTH), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.lines().map(|l| l.chars().count()).max(), Some(WIDTH));
    }
}
