//! Limits the size of a comment on a pull request: parts of the report that do not fit are left out.

/// Maximum length of a comment in bytes. GitHub allows somewhat more.
pub(crate) const MOST: usize = 65_000;
/// Position in the comment, in bytes, before which warnings must end.
pub(crate) const HEAD: usize = 12_000;
/// Position in the comment, in bytes, before which the table of suspects must end.
pub(crate) const TABLE: usize = 30_000;
/// Position in the comment, in bytes, before which the details of suspects must end.
pub(crate) const DETAILS: usize = 50_000;

/// The text of a comment, with a maximum length.
#[derive(Debug, Default)]
pub(crate) struct Comment(pub(crate) String);

impl Comment {
    /// Adds a part for each item, in order. Stops before the first part that would end at or after the position `end`.
    /// Returns the number of omitted items.
    pub(crate) fn add_all<T>(
        &mut self,
        end: usize,
        mut items: impl Iterator<Item = T>,
        part: impl Fn(T) -> String,
    ) -> u64 {
        while let Some(item) = items.next() {
            let part = part(item);
            if self.0.len() + part.len() >= end {
                return 1 + items.count() as u64;
            }
            self.0 += &part;
        }
        0
    }

    /// Writes the text. Empty lines at its end are removed.
    pub(crate) fn write(mut self, out: &mut dyn std::io::Write) -> std::io::Result<()> {
        while self.0.ends_with("\n\n") {
            self.0.pop();
        }
        out.write_all(self.0.as_bytes())
    }
}

impl std::fmt::Write for Comment {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0.push_str(text);
        Ok(())
    }
}
