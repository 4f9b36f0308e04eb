//! The labels of a trace's live samples, by allocation site.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use heapdiff_diff::samples::ByLabels;
use heapdiff_model::labels::Labels;
use heapdiff_sites::labels;
use heapdiff_trace::read::Run;
use heapdiff_trace::{Trace, TraceError, Which};

/// The estimated bytes that some samples represent, and the number of these samples.
type Represented = (f64, u64);

/// The live samples of a run.
pub(super) struct LiveLabels {
    names: HashMap<i64, Arc<str>>,
    /// The samples by allocation site, and for each site by thread. The maps are sorted, so that sums of bytes do not
    /// depend on a random order.
    sites: BTreeMap<i64, BTreeMap<i64, Represented>>,
    all: ByLabels,
}

impl LiveLabels {
    /// Returns the labels of the samples that were alive at the end of a run, or `None` if none of them has labels.
    pub(super) fn read(trace: &Trace, run: &Run) -> Result<Option<Self>, TraceError> {
        let names = trace.threads()?;
        if !names.values().any(|name| name.contains(labels::SEPARATOR)) {
            return Ok(None);
        }
        let mut sites: BTreeMap<i64, BTreeMap<i64, Represented>> = BTreeMap::new();
        trace.each_sample(run.id, Which::Live, |sample| {
            let site = sites.entry(sample.site).or_default();
            let (bytes, samples) = site.entry(sample.thread.unwrap_or(0)).or_default();
            *bytes += sample.represented_bytes(run);
            *samples += 1;
        })?;
        let mut labels = Self {
            names,
            sites,
            all: ByLabels::default(),
        };
        labels.all = labels.within(labels.sites.keys().copied());
        Ok(Some(labels))
    }

    fn within(&self, sites: impl Iterator<Item = i64>) -> ByLabels {
        let mut within = ByLabels::default();
        for threads in sites.filter_map(|site| self.sites.get(&site)) {
            for (thread, &(bytes, samples)) in threads {
                let name = self.names.get(thread).map_or("", |name| name);
                within.add(name, bytes, samples);
            }
        }
        within
    }

    /// Returns the report on the labels of the live samples of `sites`; `None` if none of these samples has labels.
    pub(super) fn of_sites(&self, sites: &[i64]) -> Option<Labels> {
        self.within(sites.iter().copied()).report(&self.all)
    }
}
