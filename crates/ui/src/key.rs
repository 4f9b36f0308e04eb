//! The key by which pages identify a run.

use std::str::FromStr;

/// The key of a run: the index of its trace, and the number of the run in the trace. Written as `0.1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    pub(crate) trace: usize,
    pub(crate) run: i64,
}

impl FromStr for Key {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (trace, run) = text.split_once('.').ok_or(())?;
        Ok(Self {
            trace: trace.parse().map_err(|_| ())?,
            run: run.parse().map_err(|_| ())?,
        })
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.trace, self.run)
    }
}
