//! Rows as a JSON array of arrays, one row per line.

use std::io::{self, Write};

use crate::{Cell, Error, RowWriter, check_width};

/// Writes rows as a JSON array. Each row is an array of its cells. Ids are written as strings such as `"0x7f00"`.
/// Numbers that are not finite are written as null. The array is a part of a JSON object, which the caller writes to
/// the same output.
#[derive(Debug)]
pub struct JsonRows<W> {
    out: W,
    columns: usize,
    indent: &'static str,
    rows: u64,
}

impl<W: Write> JsonRows<W> {
    /// Starts the array. Each row has a line, which is indented by `indent` and two more spaces.
    ///
    /// # Errors
    /// Returns an error if the output cannot be written.
    pub fn new(mut out: W, columns: usize, indent: &'static str) -> Result<Self, Error> {
        out.write_all(b"[")?;
        Ok(Self {
            out,
            columns,
            indent,
            rows: 0,
        })
    }

    /// Ends the array and returns the output.
    ///
    /// # Errors
    /// Returns an error if the output cannot be written.
    pub fn finish(mut self) -> Result<W, Error> {
        if self.rows > 0 {
            write!(self.out, "\n{}", self.indent)?;
        }
        self.out.write_all(b"]")?;
        Ok(self.out)
    }
}

impl<W: Write> RowWriter for JsonRows<W> {
    fn row(&mut self, cells: &[Cell<'_>]) -> Result<(), Error> {
        self.rows += 1;
        check_width(self.rows, cells, self.columns)?;
        let comma = if self.rows > 1 { "," } else { "" };
        write!(self.out, "{comma}\n{}  [", self.indent)?;
        for (at, &cell) in cells.iter().enumerate() {
            if at > 0 {
                self.out.write_all(b", ")?;
            }
            match cell {
                Cell::Null => self.out.write_all(b"null")?,
                Cell::Double(value) if !value.is_finite() => self.out.write_all(b"null")?,
                Cell::Text(text) => {
                    serde_json::to_writer(&mut self.out, text).map_err(io::Error::from)?;
                }
                Cell::Id(_) => write!(self.out, "\"{cell}\"")?,
                _ => write!(self.out, "{cell}")?,
            }
        }
        self.out.write_all(b"]")?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_json() {
        let mut rows = JsonRows::new(Vec::new(), 2, "").unwrap();
        rows.row(&[Cell::Text("a\"\n\u{1b}"), Cell::Id(16)])
            .unwrap();
        rows.row(&[Cell::Double(1e300), Cell::Double(f64::NAN)])
            .unwrap();
        rows.row(&[Cell::Int(i64::MIN), Cell::Bool(true)]).unwrap();
        let text = String::from_utf8(rows.finish().unwrap()).unwrap();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        let expected =
            serde_json::json!([["a\"\n\u{1b}", "0x10"], [1e300, null], [i64::MIN, true]]);
        assert_eq!(value, expected);
        let empty = JsonRows::new(Vec::new(), 2, "").unwrap().finish().unwrap();
        assert_eq!(empty, b"[]");
    }
}
