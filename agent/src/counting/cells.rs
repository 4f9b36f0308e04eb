//! Counters, as hooks raise them: outside of the Java heap, two for each site, once for each stripe of threads.
//!
//! A JVM's first threads have a stripe each, where an addition is a read and a write: nobody else writes there, since no thread gets
//! a number that another one had. Later ones, virtual ones mostly, share [`STRIPES`] and add in one step, so that nothing is lost;
//! threads of other stripes do not touch their lines of memory. Memory is given back to nobody: code that calls hooks may be running for ever. It is used as sites
//! come, page by page.

use super::returned::Returned;
use crate::jvmti::counting::Shared;

/// Sites at most. What is beyond is not counted, and told.
pub(crate) const MOST_SITES: usize = 1 << 16;
/// Stripes that threads share, a power of two.
pub(crate) const STRIPES: i64 = 16;
/// How many of a JVM's first threads have one each, as a power of two.
pub(crate) const OWN_BITS: u8 = 7;
/// All stripes: those that are shared come first.
const ALL: usize = STRIPES as usize + (1 << OWN_BITS);
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
        let bytes = ALL * usize::try_from(STRIPE_BYTES).ok()?;
        Some(Self {
            own: Shared::new(bytes / 8)?,
            returned: Returned::new()?,
        })
    }

    /// Where they are.
    pub(crate) fn start(&self) -> i64 {
        self.own.address()
    }

    /// Where those of the first thread are that has some to itself.
    pub(crate) fn own_start(&self) -> i64 {
        self.start() + STRIPES * STRIPE_BYTES
    }

    /// What the hooks have counted of the first `sites`: allocations, and bytes of arrays.
    pub(crate) fn read(&self, sites: usize) -> Vec<[u64; 2]> {
        let stripe = usize::try_from(STRIPE_BYTES).unwrap_or(0) / 8;
        let mut sums = vec![[0_u64; 2]; sites];
        for start in (0..ALL).map(|i| i * stripe) {
            for (site, sum) in sums.iter_mut().enumerate() {
                let more = [0, 1].map(|i| self.own.get(start + 2 * site + i));
                *sum = [0, 1].map(|i| sum[i].wrapping_add(more[i]));
            }
        }
        sums
    }
}
