//! Old ticks made fewer, so that a trace stays small.

use crate::write::Writer;

impl Writer {
    /// What is due at this uptime.
    pub(crate) fn tend(&mut self, uptime_ms: i64) -> rusqlite::Result<()> {
        self.tended_ms = uptime_ms;
        Ok(())
    }
}
