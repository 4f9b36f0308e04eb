//! The room that a comment has, and what of a report is left out for it.

/// Characters that a comment on GitHub may have, with some to spare.
pub(crate) const MOST: usize = 65_000;
/// Where what stands before the suspects ends.
pub(crate) const HEAD: usize = 12_000;
/// Where the table of suspects ends.
pub(crate) const TABLE: usize = 30_000;
/// Where the details of suspects end.
pub(crate) const DETAILS: usize = 50_000;

/// A text that becomes no longer than it may.
#[derive(Debug, Default)]
pub(crate) struct Comment(pub(crate) String);

impl Comment {
    /// Adds a part for each item as long as the text ends before `end`; what comes after the first that does not fit is left
    /// out, too, and counted.
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

    /// Writes the text without empty lines at its end.
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
