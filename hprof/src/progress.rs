//! How far the work has come, for whoever shows it.

use crate::error::{Error, Result};

/// Told what the analysis is doing. Methods are called from several threads.
pub trait Progress: Sync {
    /// A phase begins; `total` is in bytes of the dump, or zero when it has no such measure.
    fn phase(&self, name: &'static str, total: u64);
    /// Another part of the phase is done, in the measure of the phase's total.
    fn advance(&self, amount: u64);
    /// Asked between phases and batches: `true` gives the work up.
    fn cancelled(&self) -> bool {
        false
    }
    /// The same as an error, for work that ends with one.
    ///
    /// # Errors
    /// [`Error::Cancelled`].
    fn go_on(&self) -> Result<()> {
        if self.cancelled() {
            Err(Error::Cancelled)
        } else {
            Ok(())
        }
    }
}

/// A progress that nobody is shown.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn phase(&self, _: &'static str, _: u64) {}
    fn advance(&self, _: u64) {}
}
