//! Counters, as hooks raise them: outside of the Java heap, two for each site, once for each stripe of threads.
//!
//! Threads of one stripe share counters, and add to them in one step, so that nothing is lost; threads of others do not touch
//! their lines of memory. Memory is given back to nobody: code that calls hooks may be running for ever. It is used as sites
//! come, page by page.

use super::returned::Returned;
use crate::jvmti::counting::Shared;

/// Sites at most. What is beyond is not counted, and told.
pub(crate) const MOST_SITES: usize = 1 << 16;
/// Stripes, a power of two.
pub(crate) const STRIPES: i64 = 16;
/// Bytes of a counter.
pub(crate) const CELL: i64 = 8;
/// Bytes of a site's counters in a stripe: by its number in the hooks, without the last four bits.
const SITE: usize = 16;
/// From a stripe's start to the next, not a power of two: counters of a site would share the few places that a cache has for
/// addresses that are so far apart.
pub(crate) const STRIPE_BYTES: i64 = ((MOST_SITES * SITE) + 4096 + 64) as i64;

/// Counters.
pub(crate) struct Cells {
    own: Shared,
    /// What calls returned.
    pub(crate) returned: Returned,
}

impl Cells {
    /// All of them, at zero; `None` if there is no memory.
    pub(crate) fn new() -> Option<Self> {
        let bytes = usize::try_from(STRIPES * STRIPE_BYTES).ok()?;
        Some(Self {
            own: Shared::new(bytes / 8)?,
            returned: Returned::new()?,
        })
    }

    /// Where they are.
    pub(crate) fn start(&self) -> i64 {
        self.own.address()
    }

    /// What the hooks have counted of the first `sites`: allocations, and bytes of arrays.
    pub(crate) fn read(&self, sites: usize) -> Vec<[u64; 2]> {
        let stripe = usize::try_from(STRIPE_BYTES).unwrap_or(0) / 8;
        let stripes = usize::try_from(STRIPES).unwrap_or(0);
        let sum = |at: usize| {
            let of = |i| self.own.get(i * stripe + at);
            (0..stripes).fold(0_u64, |sum, i| sum.wrapping_add(of(i)))
        };
        (0..sites)
            .map(|site| [sum(2 * site), sum(2 * site + 1)])
            .collect()
    }
}
