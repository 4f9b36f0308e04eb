//! CSV according to RFC 4180, with lines that end in a line feed.

use std::io::Write;

use crate::{Cell, Column, Error, RowWriter, check_width};

/// Writes comma-separated values: a line of column names, then one line for each row. A null is an empty field, and an
/// empty string is `""`.
#[derive(Debug)]
pub struct CsvWriter<W> {
    out: W,
    columns: usize,
    rows: u64,
    line: String,
}

impl<W: Write> CsvWriter<W> {
    /// Starts a file with the line of column names.
    ///
    /// # Errors
    /// Returns an error if the line cannot be written.
    pub fn new(mut out: W, columns: &[Column]) -> Result<Self, Error> {
        let mut line = String::new();
        for (at, column) in columns.iter().enumerate() {
            if at > 0 {
                line.push(',');
            }
            push_text(&mut line, &column.name);
        }
        line.push('\n');
        out.write_all(line.as_bytes())?;
        Ok(Self {
            out,
            columns: columns.len(),
            rows: 0,
            line,
        })
    }

    /// Flushes the rows and returns the output.
    ///
    /// # Errors
    /// Returns an error if the last lines cannot be written.
    pub fn finish(mut self) -> Result<W, Error> {
        self.out.flush()?;
        Ok(self.out)
    }
}

impl<W: Write> RowWriter for CsvWriter<W> {
    fn row(&mut self, cells: &[Cell<'_>]) -> Result<(), Error> {
        use std::fmt::Write as _;
        self.rows += 1;
        check_width(self.rows, cells, self.columns)?;
        self.line.clear();
        for (at, cell) in cells.iter().enumerate() {
            if at > 0 {
                self.line.push(',');
            }
            match cell {
                Cell::Text(text) => push_text(&mut self.line, text),
                // Writing to a string cannot fail.
                other => drop(write!(self.line, "{other}")),
            }
        }
        self.line.push('\n');
        self.out.write_all(self.line.as_bytes())?;
        Ok(())
    }
}

fn push_text(line: &mut String, text: &str) {
    let quoted = text.is_empty()
        || text.contains([',', '"', '\n', '\r'])
        || text.starts_with(' ')
        || text.ends_with(' ');
    if !quoted {
        line.push_str(text);
        return;
    }
    line.push('"');
    for (at, part) in text.split('"').enumerate() {
        if at > 0 {
            line.push_str("\"\"");
        }
        line.push_str(part);
    }
    line.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;

    #[test]
    fn strings_are_quoted_if_necessary() {
        let columns = [Column::new("a,b", Kind::Text), Column::new("n", Kind::Id)];
        let mut csv = CsvWriter::new(Vec::new(), &columns).unwrap();
        csv.row(&[Cell::Text("say \"hi\"\n"), Cell::Id(255)])
            .unwrap();
        csv.row(&[Cell::Text(""), Cell::Null]).unwrap();
        csv.row(&[Cell::Null, Cell::Double(0.5)]).unwrap();
        let wrong = csv.row(&[Cell::Null]).unwrap_err().to_string();
        assert_eq!(wrong, "row 4 has 1 cells, but the table has 2 columns");
        let text = String::from_utf8(csv.finish().unwrap()).unwrap();
        assert_eq!(text, "\"a,b\",n\n\"say \"\"hi\"\"\n\",0xff\n\"\",\n,0.5\n");
    }
}
