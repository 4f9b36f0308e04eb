//! Reports the progress of an analysis.

use crate::error::{Error, Result};

/// A receiver of the progress of an analysis. Methods are called from several threads.
pub trait Progress: Sync {
    /// Called when a phase begins. `total` is in bytes of the dump, or zero if the progress of the phase is not
    /// measured in bytes.
    fn phase(&self, name: &'static str, total: u64);
    /// Called when another part of the current phase is done. `amount` is the size of this part, in the unit of the
    /// phase's total.
    fn advance(&self, amount: u64);
    /// Called between phases and batches. If it returns true, the work is cancelled.
    fn cancelled(&self) -> bool {
        false
    }
    /// Returns an error if the receiver cancels the work.
    ///
    /// # Errors
    /// Returns [`Error::Cancelled`] if [`Progress::cancelled`] returns true.
    fn check_cancelled(&self) -> Result<()> {
        if self.cancelled() {
            Err(Error::Cancelled)
        } else {
            Ok(())
        }
    }
}

/// A progress receiver that does nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn phase(&self, _: &'static str, _: u64) {}
    fn advance(&self, _: u64) {}
}
