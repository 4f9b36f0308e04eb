//! Parts of a run.

/// A part of a run: its start and its end, in milliseconds since the run began. Both are included in the part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Start of the time window. Recorded periods that end before this time are left out.
    pub from_ms: u64,
    /// End of the time window. Recorded periods that end after this time are left out.
    pub to_ms: u64,
}

impl Window {
    /// The whole run.
    pub const ALL: Self = Self {
        from_ms: 0,
        to_ms: u64::MAX,
    };

    /// Returns the SQL condition that limits a query on a run to this window.
    pub(crate) const fn condition(self) -> &'static str {
        match (self.from_ms, self.to_ms) {
            // For the whole run, use no condition. In a damaged trace, times may have any SQL type, so a condition on
            // times would exclude rows.
            (0, u64::MAX) => "",
            _ => " AND uptime_ms >= ?2 AND uptime_ms <= ?3",
        }
    }

    /// Returns the run and the ends of the window, as parameters for a query with the [condition](Self::condition).
    pub(crate) fn values(self, run: i64) -> impl rusqlite::Params {
        let mut values = vec![run];
        if !self.condition().is_empty() {
            let bound = |ms| i64::try_from(ms).unwrap_or(i64::MAX);
            values.extend([bound(self.from_ms), bound(self.to_ms)]);
        }
        rusqlite::params_from_iter(values)
    }
}
