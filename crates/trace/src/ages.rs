//! Ages of sampled objects: the number of GCs that they survived, and the time that they lived.

use std::collections::{BTreeSet, HashMap};

use crate::read::{Collection, Run};
use crate::read_samples::Which;
use crate::{Trace, TraceError};

/// The number of GCs that an object survived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SurvivedGcs {
    /// Number of GCs of the whole heap.
    pub full: u64,
    /// Number of GCs that did not collect the whole heap.
    pub young: u64,
}

impl SurvivedGcs {
    /// Returns the number of full and young GCs together.
    #[must_use]
    pub const fn all(self) -> u64 {
        self.full.saturating_add(self.young)
    }
}

/// The age of a sampled object.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ObjectAge {
    /// The GCs that the object survived.
    pub gcs: SurvivedGcs,
    /// Milliseconds from the allocation to the end of the run's last tick, or until the agent found the object dead.
    pub ms: u64,
    /// Bytes that the sample represents. Only the proportions of these numbers are exact.
    pub weight: f64,
}

/// The ages of the sampled objects of the requested sites.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SiteAges {
    /// Objects that were live at the end of the run's last tick.
    pub live: Vec<ObjectAge>,
    /// Freed objects: a uniform random choice of all freed samples of the run.
    pub freed: Vec<ObjectAge>,
}

/// A summary of the ages of several objects. Medians and other quantiles are weighted by bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AgeSummary {
    /// Number of samples.
    pub samples: u64,
    /// Number of different values of [`SurvivedGcs::all`] ("surviving generations" in other profilers).
    pub generations: u64,
    /// Median of the number of survived GCs.
    pub median_gcs: SurvivedGcs,
    /// Maximum of the number of survived GCs.
    pub most_gcs: SurvivedGcs,
    /// Median of [`ObjectAge::ms`].
    pub median_ms: u64,
    /// 95th percentile of [`ObjectAge::ms`].
    pub p95_ms: u64,
    /// Maximum of [`ObjectAge::ms`].
    pub most_ms: u64,
}

/// Groups of ages for [`survived_shares`]: the minimum and maximum number of survived GCs. The last group has no
/// maximum.
pub const AGE_GROUPS: [(u64, Option<u64>); 6] = [
    (0, Some(0)),
    (1, Some(1)),
    (2, Some(3)),
    (4, Some(7)),
    (8, Some(15)),
    (16, None),
];

/// Groups the objects by the number of GCs that they survived. Returns the part of the objects' bytes in each of
/// [`AGE_GROUPS`]. The parts add up to 1, or to 0 if there are no objects.
#[must_use]
pub fn survived_shares(ages: &[ObjectAge]) -> [f64; AGE_GROUPS.len()] {
    let mut shares = [0.0; AGE_GROUPS.len()];
    for age in ages {
        let group = AGE_GROUPS.partition_point(|&(from, _)| from <= age.gcs.all());
        shares[group.saturating_sub(1)] += age.weight;
    }
    let all: f64 = shares.iter().sum();
    if all > 0.0 {
        shares.map(|share| share / all)
    } else {
        shares
    }
}

impl AgeSummary {
    /// Returns the summary of `ages`, or `None` if `ages` is empty.
    #[must_use]
    pub fn new(ages: &[ObjectAge]) -> Option<Self> {
        let generations: BTreeSet<u64> = ages.iter().map(|age| age.gcs.all()).collect();
        let by_gcs = |age: &&ObjectAge| (age.gcs.all(), age.gcs.full);
        let by_time = |age: &&ObjectAge| (age.ms, 0);
        Some(Self {
            samples: ages.len() as u64,
            generations: generations.len() as u64,
            median_gcs: quantile(ages, 0.5, by_gcs)?.gcs,
            most_gcs: ages.iter().max_by_key(by_gcs)?.gcs,
            median_ms: quantile(ages, 0.5, by_time)?.ms,
            p95_ms: quantile(ages, 0.95, by_time)?.ms,
            most_ms: ages.iter().max_by_key(by_time)?.ms,
        })
    }
}

/// Sorts the ages by `key`, and returns their weighted quantile `part` (0.5 is the median). This is the first age at
/// which the sum of weights reaches `part` of the total weight.
fn quantile(
    ages: &[ObjectAge],
    part: f64,
    key: impl Fn(&&ObjectAge) -> (u64, u64),
) -> Option<&ObjectAge> {
    let mut sorted: Vec<&ObjectAge> = ages.iter().collect();
    sorted.sort_by_key(|age| key(age));
    let mut left = sorted.iter().map(|age| age.weight).sum::<f64>() * part;
    let reaches = |age: &&&ObjectAge| {
        left -= age.weight;
        left <= 0.0
    };
    sorted.iter().find(reaches).or(sorted.last()).copied()
}

/// The times at which the GCs of a run ended.
struct Ends {
    /// All GCs in order: the end in milliseconds since the run began, and the number of full GCs before it.
    all: Vec<(u64, u64)>,
    full: u64,
}

impl Ends {
    fn new(mut collections: Vec<Collection>) -> Self {
        collections.sort_by_key(|gc| gc.uptime_ms);
        let mut full = 0;
        let end = |gc: &Collection| {
            let before = full;
            full += u64::from(gc.major);
            (gc.uptime_ms, before)
        };
        let all = collections.iter().map(end).collect();
        Self { all, full }
    }

    /// Returns the number of GCs that ended at `ms` or before.
    fn until(&self, ms: u64) -> usize {
        self.all.partition_point(|&(end, _)| end <= ms)
    }

    fn between(&self, from: usize, to: usize) -> SurvivedGcs {
        let full_before = |at: usize| self.all.get(at).map_or(self.full, |&(_, full)| full);
        let full = full_before(to).saturating_sub(full_before(from));
        let all = to.saturating_sub(from) as u64;
        SurvivedGcs {
            full,
            young: all.saturating_sub(full),
        }
    }

    /// Returns the number of GCs from the allocation of a live object to the end of the run.
    fn survived_alive(&self, allocated_ms: u64) -> SurvivedGcs {
        self.between(self.until(allocated_ms), self.all.len())
    }

    /// Returns the number of GCs that a freed object survived. The last GC before the agent found the object dead is
    /// not counted, because this GC freed the object.
    fn survived(&self, allocated_ms: u64, freed_ms: u64) -> SurvivedGcs {
        let from = self.until(allocated_ms);
        let freed_by = self.until(freed_ms).saturating_sub(1);
        self.between(from, freed_by.max(from))
    }
}

/// The ages of a run's samples, by the row id of their site.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ages {
    /// Number of GCs in the run.
    pub gcs: SurvivedGcs,
    sites: HashMap<i64, SiteAges>,
}

impl Ages {
    /// Reads the ages of a run's samples.
    ///
    /// If old GCs were deleted from the trace, the ages of older objects are lower bounds. The agent waits at least 20
    /// ms between two searches for dead samples. If several GCs end between two searches, the age of a freed object is
    /// an upper bound.
    ///
    /// Cost: time linear in the number of samples, and logarithmic in the number of GCs.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn new(trace: &Trace, run: &Run) -> Result<Self, TraceError> {
        let ends = Ends::new(trace.collections(run.id)?);
        let end_ms = trace.ticks(run.id)?.last().map_or(0, |t| t.uptime_ms);
        let mut sites: HashMap<i64, SiteAges> = HashMap::new();
        for which in [Which::Live, Which::Chosen] {
            trace.each_sample(run.id, which, |sample| {
                let ages = sites.entry(sample.site).or_default();
                let (list, gcs, end_ms) = match sample.collected_ms {
                    Some(ms) => (&mut ages.freed, ends.survived(sample.allocated_ms, ms), ms),
                    None => (
                        &mut ages.live,
                        ends.survived_alive(sample.allocated_ms),
                        end_ms,
                    ),
                };
                list.push(ObjectAge {
                    gcs,
                    ms: end_ms.saturating_sub(sample.allocated_ms),
                    weight: sample.represented_bytes(run),
                });
            })?;
        }
        let gcs = ends.between(0, ends.all.len());
        Ok(Self { gcs, sites })
    }

    /// Returns the ages of the samples of the given sites (row ids).
    #[must_use]
    pub fn at(&self, sites: impl IntoIterator<Item = i64>) -> SiteAges {
        let mut all = SiteAges::default();
        for site in sites.into_iter().filter_map(|site| self.sites.get(&site)) {
            all.live.extend(&site.live);
            all.freed.extend(&site.freed);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::{Scene, write};

    fn gcs(full: u64, young: u64) -> SurvivedGcs {
        SurvivedGcs { full, young }
    }

    fn ages(list: &[(u64, u64, f64)]) -> Vec<ObjectAge> {
        let age = |&(young, ms, weight): &(u64, u64, f64)| ObjectAge {
            gcs: gcs(0, young),
            ms,
            weight,
        };
        list.iter().map(age).collect()
    }

    /// Returns the GCs of a run with young GCs at 100 and 300 ms and a full GC at 200 ms.
    fn ends() -> Ends {
        let gc = |(uptime_ms, major): (u64, bool)| Collection {
            time_ms: 0,
            uptime_ms,
            collector: String::new(),
            major,
            cause: String::new(),
            pause_us: 0,
            before_bytes: 0,
            after_bytes: 0,
        };
        let all = [(100, false), (300, false), (200, true)];
        Ends::new(all.into_iter().map(gc).collect())
    }

    #[test]
    fn gcs_are_counted_by_kind() {
        let ends = ends();
        let alive = [0, 100, 150, 200, 300].map(|ms| ends.survived_alive(ms));
        let expected = [gcs(1, 2), gcs(1, 1), gcs(1, 1), gcs(0, 1), gcs(0, 0)];
        assert_eq!(alive, expected);
        let freed = [(0, 110), (0, 210), (0, 310), (150, 210), (150, 310)];
        let freed = freed.map(|(from, to)| ends.survived(from, to));
        let expected = [gcs(0, 0), gcs(0, 1), gcs(1, 1), gcs(0, 0), gcs(1, 0)];
        assert_eq!(freed, expected);
        // The trace may lack the GC that freed the object. If it contains no GC between allocation and death, the
        // result is 0.
        assert_eq!(ends.survived(110, 120), gcs(0, 0));
        assert_eq!(ends.survived(400, 310), gcs(0, 0));
    }

    #[test]
    fn quantiles_are_weighted_by_bytes() {
        assert_eq!(AgeSummary::new(&[]), None);
        assert_eq!(survived_shares(&[]), [0.0; 6]);
        let ages = ages(&[(5, 50, 1.0), (0, 10, 6.0), (0, 20, 2.0), (3, 90, 1.0)]);
        let summary = AgeSummary::new(&ages).unwrap();
        assert_eq!((summary.samples, summary.generations), (4, 3));
        assert_eq!(
            (summary.median_gcs, summary.most_gcs),
            (gcs(0, 0), gcs(0, 5))
        );
        let times = (summary.median_ms, summary.p95_ms, summary.most_ms);
        assert_eq!(times, (10, 90, 90));
        assert_eq!(survived_shares(&ages), [0.8, 0.0, 0.1, 0.1, 0.0, 0.0]);
    }

    #[test]
    fn a_trace_has_the_ages_of_its_samples() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.db");
        write(&path, &Scene::default()).unwrap();
        let trace = Trace::open(&path).unwrap();
        let run = trace.runs().unwrap().remove(0);
        let all = Ages::new(&trace, &run).unwrap();
        assert_eq!(all.gcs, gcs(12, 48));
        let site = |class: &str| {
            let sites = trace.sites().unwrap().into_iter();
            let sites = sites.filter(|site| &*site.class == class);
            all.at(sites.map(|site| site.id))
        };
        // In this run, tables are loaded from start to end, and there is a GC every two seconds.
        let tables = AgeSummary::new(&site("com.acme.Tax").live).unwrap();
        assert_eq!((tables.generations, tables.most_gcs), (60, gcs(12, 48)));
        let strings = site("java.lang.String");
        assert_eq!(strings.freed.len(), 16);
        assert_eq!(survived_shares(&strings.freed)[0], 1.0);
        assert_eq!(all.at([12345]), SiteAges::default());
    }
}
