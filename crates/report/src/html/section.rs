//! A table on a page, under a title.

use crate::document::{Column, Table};

/// A table on the page.
pub(super) struct Section {
    pub(super) id: &'static str,
    /// The name in the navigation.
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    /// The heading of each column, and true if the column contains text instead of figures.
    pub(super) headings: Vec<(String, bool)>,
    pub(super) rows: Vec<Vec<Cell>>,
}

/// A cell of an HTML table: its text, and the tags around the text.
pub(super) struct Cell {
    pub(super) open: String,
    pub(super) text: String,
    pub(super) close: String,
}

impl Section {
    pub(super) fn new(id: &'static str, name: &'static str, table: Table) -> Self {
        let is_text = |kind: Column| kind != Column::Figure;
        // In each row of the table, the cell in the first column with text is the heading of the row.
        let subject = table.columns.iter().position(|c| is_text(c.1));
        let cell = |(at, text): (usize, &String)| {
            let kind = table.columns[at].1;
            let (open, close) = match kind {
                Column::Figure | Column::Word => ("", ""),
                Column::Name => ("<code class=\"name\">", "</code>"),
                Column::Text | Column::Cut(_) => ("<bdi>", "</bdi>"),
            };
            let (start, end) = match kind {
                Column::Figure => ("<td>", "</td>"),
                _ if Some(at) == subject => ("<th scope=\"row\" class=\"text\">", "</th>"),
                _ => ("<td class=\"text\">", "</td>"),
            };
            Cell {
                open: format!("{start}{open}"),
                text: super::text(text),
                close: format!("{close}{end}"),
            }
        };
        let rows = table.rows.iter();
        let headings = table.columns.iter();
        Self {
            id,
            name,
            title: table.title,
            headings: headings.map(|c| (c.0.to_string(), is_text(c.1))).collect(),
            rows: rows
                .map(|row| row.iter().enumerate().map(cell).collect())
                .collect(),
        }
    }
}
