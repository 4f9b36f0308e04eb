//! `heapdiff count`: counts the allocations of a running JVM by allocation site.

use clap::Args;
use heapdiff_model::count::{CountMissed, CountReport, CountSite, CountTotals};
use heapdiff_report::Report;
use heapdiff_sites::CountedSite;

use crate::capture::{self, CountRequest, JvmArgs};
use crate::failure::Result;
use crate::job::{Setup, Task};
use crate::mapping::originals;

/// Maximum number of sites in the text report.
const ROWS: usize = 20;

const HELP: &str = "\
Examples:
  # count all allocations for one minute
  heapdiff count 4711 --for 1m
  # count in matching classes only, also in JDK classes
  heapdiff count 4711 --include '^com\\.acme\\.' --jdk

The agent inserts counters into all loaded classes and into classes loaded later, and removes the
counters at the end: a few classes at a time, with pauses. The program is slower until the count
ends. The program is slowest just after the agent has changed the first class: HotSpot then discards
all compiled code, unless an agent was loaded at the start of the JVM (-agentpath).
--sampled-classes changes fewer classes. It needs samples: run `heapdiff attach` some minutes
before.

Every executed allocation is counted, even if the JIT removes the allocation. Allocations by clone,
reflection, array copies and lambdas are counted at the line that calls them. Not counted:
allocations by JNI, by constructor references (Foo::new) and by the JVM itself. A method that is
running when the count begins is counted from its next call.
With --jdk some counts are lower bounds, because the JIT replaces some JDK methods with intrinsics.";

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct Count {
    #[command(flatten)]
    jvm: JvmArgs,
    #[command(flatten)]
    count: CountRequest,
    /// Maximum number of sites to list [default: 20; all in JSON]
    #[arg(long, value_name = "N", help_heading = "Output")]
    top: Option<usize>,
}

impl Task for Count {
    fn run(&self, setup: &Setup) -> Result<Vec<Report>> {
        let (process, mut counts) = capture::count(&self.jvm, &self.count, setup.progress)?;
        if let Some(names) = originals(setup.analysis.mapping.as_ref()) {
            counts.rename(&*names);
        }
        let totals = totals(&counts.sites);
        let rows = counts.sites.iter();
        let rows = rows.take(self.top.unwrap_or(setup.rows(ROWS)));
        Ok(vec![Report::Count(CountReport {
            schema: CountReport::SCHEMA,
            process,
            millis: counts.millis,
            jdk: counts.jdk,
            only_sampled: self.count.sampled,
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
        })])
    }
}

/// Returns the sums of the counts over the given sites.
pub(super) fn totals<'a>(sites: impl IntoIterator<Item = &'a CountedSite>) -> CountTotals {
    let mut totals = CountTotals::default();
    for site in sites {
        totals.sites += 1;
        totals.objects = totals.objects.saturating_add(site.objects);
        totals.bytes = totals.bytes.saturating_add(site.bytes.unwrap_or(0));
        totals.sites_without_bytes += u64::from(site.bytes.is_none());
    }
    totals
}

pub(super) fn row(site: &CountedSite) -> CountSite {
    CountSite {
        class: site.class.clone(),
        method: site.method.clone(),
        line: site.line,
        allocated: site.allocated.clone(),
        objects: site.objects,
        bytes: site.bytes,
    }
}
