//! Names out of a trace, as far as they are shown. The page sets them as text and nothing else.

use heapdiff_diff::{frame_text, is_runtime_frame};
use rusqlite::{CachedStatement, Connection, OptionalExtension};

/// Letters of one name that are shown.
pub(crate) const MOST_LETTERS: usize = 400;
/// Frames of one stack; the agent's own limit is below that, and a damaged trace may have a circle.
const MOST_FRAMES: usize = 512;

/// Statements that give names.
pub(crate) struct Names<'c> {
    class: CachedStatement<'c>,
    frame: CachedStatement<'c>,
}

impl<'c> Names<'c> {
    pub(crate) fn new(connection: &'c Connection) -> rusqlite::Result<Self> {
        Ok(Self {
            class: connection
                .prepare_cached(&format!("SELECT substr(name, 1, {MOST_LETTERS}) FROM class WHERE id = ?1"))?,
            frame: connection.prepare_cached(&format!(
                "SELECT s.parent, substr(c.name, 1, {MOST_LETTERS}), substr(f.method, 1, {MOST_LETTERS}), \
                 substr(f.file, 1, {MOST_LETTERS}), f.line \
                 FROM stack s JOIN frame f ON f.id = s.frame JOIN class c ON c.id = f.class \
                 WHERE s.id = ?1"
            ))?,
        })
    }

    /// A class, by its row.
    pub(crate) fn class(&mut self, id: i64) -> rusqlite::Result<String> {
        let name = self.class.query_row([id], |row| row.get(0)).optional()?;
        Ok(name.unwrap_or_else(|| "(unknown class)".to_owned()))
    }

    /// One frame of a stack as reports show it, and the stack that called it.
    pub(crate) fn frame(&mut self, stack: i64) -> rusqlite::Result<Option<(String, Option<i64>)>> {
        let row = self.frame.query_row([stack], |row| {
            let (class, method): (String, String) = (row.get(1)?, row.get(2)?);
            let (file, line): (Option<String>, Option<i64>) = (row.get(3)?, row.get(4)?);
            let text = frame_text(&class, &method, file.as_deref(), line);
            Ok((text, row.get(0)?))
        });
        row.optional()
    }

    /// The frames of a stack, the innermost first.
    pub(crate) fn stack(&mut self, stack: Option<i64>) -> rusqlite::Result<Vec<String>> {
        let mut frames = Vec::new();
        let mut next = stack;
        while let Some(id) = next
            && frames.len() < MOST_FRAMES
        {
            let Some((frame, parent)) = self.frame(id)? else {
                break;
            };
            frames.push(frame);
            next = parent;
        }
        Ok(frames)
    }
}

/// The frame that a stack is known by: the innermost one of the application, else the innermost.
pub(crate) fn known_by(frames: &[String]) -> Option<&String> {
    let own = frames.iter().find(|frame| !is_runtime_frame(frame));
    own.or_else(|| frames.first())
}
