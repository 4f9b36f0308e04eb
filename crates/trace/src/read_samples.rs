//! Reads individual samples, if a trace has them.

use std::collections::HashMap;
use std::sync::Arc;

use heapdiff_sites::{Sampling, Strategy};

use crate::read::{Run, text};
use crate::{Trace, TraceError};

/// A selection of a run's samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Which {
    /// Samples whose objects were alive at the end of the last recorded period of the run.
    #[default]
    Live,
    /// The most recently collected samples.
    Recent,
    /// A uniform random selection from all samples whose objects were collected.
    Chosen,
}

/// A sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleRow {
    /// Id of the sample, unique in its run. The JVM's heap dumps contain the same id.
    pub uid: u64,
    /// Row id of the sample's allocation site.
    pub site: i64,
    /// Id of the allocating thread, to look up in [`Trace::threads`]. `None` if unknown.
    pub thread: Option<i64>,
    /// Bytes of the object.
    pub bytes: u64,
    /// Allocation time, in milliseconds since the run began.
    pub allocated_ms: u64,
    /// When the object was found dead, in milliseconds since the run began. `None` while it is alive.
    pub collected_ms: Option<u64>,
}

impl SampleRow {
    /// Returns the bytes that the sample represents. If the strategy is not `bytes`, all samples of a class have the
    /// same probability, so these are the bytes of the object.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "an estimate")]
    pub fn represented_bytes(&self, run: &Run) -> f64 {
        let sampling = Sampling {
            strategy: Strategy::Bytes,
            interval: run.interval_bytes,
            rate: 0,
        };
        let weight = (run.strategy == "bytes").then(|| sampling.weight(self.bytes));
        weight
            .flatten()
            .map_or(self.bytes as f64, |weight| weight.bytes)
    }
}

impl Trace {
    /// Returns true if the schema version of the trace has the table for individual samples. Traces of version 1 have
    /// no such table.
    #[must_use]
    pub fn has_samples(&self) -> bool {
        self.database().version() > 1
    }

    /// Passes the selected samples of a run to a callback, in the order of their uids. Does nothing for a trace
    /// [without samples](Self::has_samples).
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
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

    /// Returns the names of the threads of all runs, by thread id.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
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
