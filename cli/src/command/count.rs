//! `heapdiff count`: what a running JVM allocates, by site.

use heapdiff_model::count::{CountMissed, CountReport, CountSite, CountTotals};

use crate::capture;
use crate::failure::Result;
use crate::job::{Count, Setup};
use crate::mapping::originals;

/// Sites that text lists.
const ROWS: usize = 20;

pub(crate) fn run(setup: &Setup, job: &Count) -> Result<CountReport> {
    let (process, mut counts) = capture::count(job, setup.progress)?;
    if let Some(names) = originals(setup.analysis.mapping.as_ref()) {
        counts.rename(&*names);
    }
    let mut totals = CountTotals::default();
    for site in &counts.sites {
        totals.sites += 1;
        totals.objects = totals.objects.saturating_add(site.objects);
        totals.bytes = totals.bytes.saturating_add(site.bytes.unwrap_or(0));
        totals.sites_without_bytes += u64::from(site.bytes.is_none());
    }
    let rows = counts.sites.into_iter().take(setup.rows(ROWS));
    let row = |site: heapdiff_sites::CountedSite| CountSite {
        class: site.class,
        method: site.method,
        line: site.line,
        allocated: site.allocated,
        objects: site.objects,
        bytes: site.bytes,
    };
    Ok(CountReport {
        schema: CountReport::SCHEMA,
        process,
        millis: counts.millis,
        jdk: counts.jdk,
        only_sampled: job.sampled,
        classes: counts.classes,
        totals,
        sites: rows.map(row).collect(),
        missed: CountMissed {
            sites: counts.uncounted,
            methods: counts.left_alone,
            method_names: counts.left_alone_names,
            classes: counts.refused,
            class_names: counts.refused_names,
        },
    })
}
