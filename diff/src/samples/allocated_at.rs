//! Allocation sites of a class between two dumps, from the agent's counts. If the agent tracks only few samples, a leak
//! may have no tracked sample. The counts are then the only information about its stacks.

use std::cmp::Reverse;

use heapdiff_model::diff::AllocatedAt;

use super::attribution::Attribution;
use super::{Samples, SiteId};

/// Maximum number of stacks to report.
const STACKS: usize = 10;

impl Attribution {
    /// Returns the allocations of a class since the `first` dump of the same JVM, by stack, sorted by bytes,
    /// descending. Returns at most [`STACKS`] stacks. All samples of a stack count for the class of its last sample.
    /// The list is empty if the agent tracks all samples, or if the dumps are of two JVMs.
    pub(crate) fn allocated_at(&self, class: &str, first: &Self) -> Vec<AllocatedAt> {
        match self.same_jvm(first) {
            Some(_) => self.samples.allocated_since(&first.samples, class),
            None => Vec::new(),
        }
    }
}

impl Samples {
    fn allocated_since(&self, first: &Self, class: &str) -> Vec<AllocatedAt> {
        let sites = (0..).map(SiteId).zip(&self.site_classes);
        let of_class = sites.filter(|&(_, &of)| of != 0 && self.name(of) == class);
        let mut found: Vec<AllocatedAt> = of_class
            .filter_map(|(site, _)| {
                let before = first.sites.find(self.sites.frames(site));
                let before = before.map_or((0, 0), |site| first.counted_at(site));
                let now = self.counted_at(site);
                let samples = now.0.saturating_sub(before.0);
                (samples > 0).then(|| AllocatedAt {
                    frames: self.sites.frames(site).map(str::to_owned).collect(),
                    samples,
                    estimated_bytes: now.1.saturating_sub(before.1),
                })
            })
            .collect();
        found.sort_by(|a, b| {
            let key = |at: &AllocatedAt| Reverse((at.estimated_bytes, at.samples));
            key(a).cmp(&key(b)).then_with(|| a.frames.cmp(&b.frames))
        });
        found.truncate(STACKS);
        found
    }

    /// Returns two totals of a site since the agent's start: the number of samples, and the bytes that they
    /// represented.
    fn counted_at(&self, site: SiteId) -> (u64, u64) {
        let at = site.0 as usize;
        let samples = self.totals.get(at).map_or(0, |t| t.0);
        (samples, self.allocated.get(at).copied().unwrap_or(0))
    }
}
