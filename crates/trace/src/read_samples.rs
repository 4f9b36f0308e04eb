//! Single samples, as far as a trace has them.

use std::collections::HashMap;
use std::sync::Arc;

use crate::read::text;
use crate::{Trace, TraceError};

/// Which samples of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Which {
    /// Those that lived at its last tick.
    #[default]
    Live,
    /// Those that were collected last.
    Recent,
    /// A uniform choice of all that were collected.
    Chosen,
}

/// A sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleRow {
    /// Unique in its run, and the same in the JVM's heap dumps.
    pub uid: u64,
    /// Where it was allocated.
    pub site: i64,
    /// The thread that did it, for [`Trace::threads`]; none where that is not known.
    pub thread: Option<i64>,
    /// Bytes of the object.
    pub bytes: u64,
    /// When it was allocated, milliseconds since the run began.
    pub allocated_ms: u64,
    /// When it was found to be collected; none while it lives.
    pub collected_ms: Option<u64>,
}

impl Trace {
    /// Whether the trace has single samples; those of heapdiff's first versions have none.
    #[must_use]
    pub fn has_samples(&self) -> bool {
        self.database().version() > 1
    }

    /// Gives samples of a run, in the order of their uids; none if the trace [has none](Self::has_samples).
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn each_sample(
        &self,
        run: i64,
        which: Which,
        mut take: impl FnMut(SampleRow),
    ) -> Result<(), TraceError> {
        if !self.has_samples() {
            return Ok(());
        }
        let are = match which {
            Which::Live => "collected_ms IS NULL",
            Which::Recent => "recent",
            Which::Chosen => "chosen",
        };
        let sql = format!(
            "SELECT uid, site, thread, bytes, allocated_ms, collected_ms FROM sample WHERE run = ?1 AND {are}
            ORDER BY uid"
        );
        self.each(&sql, [run], |row| {
            let figure = |column| self.figure(row, column);
            let collected = self.id(row, 5).map(|_| figure(5));
            take(SampleRow {
                uid: figure(0),
                site: self.id(row, 1).unwrap_or(0),
                thread: self.id(row, 2),
                bytes: figure(3),
                allocated_ms: figure(4),
                collected_ms: collected.filter(|_| which != Which::Live),
            });
        })
    }

    /// The names of threads of all runs.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn threads(&self) -> Result<HashMap<i64, Arc<str>>, TraceError> {
        if !self.has_samples() {
            return Ok(HashMap::new());
        }
        let rows = self.list("SELECT id, name FROM thread", (), |row| {
            (self.id(row, 0).unwrap_or(0), Arc::from(text(row, 1)))
        })?;
        Ok(rows.into_iter().collect())
    }
}
