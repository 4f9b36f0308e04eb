//! Allocation sites found in a dump. They come from samples that the agent stored in the heap, or from the stack traces
//! that some programs write into the dump with each object.
//!
//! Both sources give the same model: live [`Sample`]s, each with its object, its site and its weight.

mod agent;
mod allocated_at;
mod allocations;
mod at_sites;
pub(crate) mod attribution;
pub(crate) mod counting;
pub(crate) mod frame_kind;
pub(crate) mod frames;
mod kept;
mod labels;
mod lines;
mod originals;
pub(crate) mod place;
pub(crate) mod population;
mod sites;
mod traces;

use heapdiff_sites::{Counter, Sampling, Strategy, Weight};
use heapdiff_units::Size;
use hprof::{ObjectIndex, Snapshot};

use crate::sentence::{self, Loss};

pub use crate::agent_objects::{AgentObjects, is_agent_class};
pub use allocations::{Allocations, FORGOTTEN, NotCounted, StackAllocations};
pub use at_sites::AtSites;
pub use labels::{ByLabels, labels_of_thread};
pub use lines::Disagreement;
pub use originals::OriginalNames;
pub use sites::{SiteId, Sites};

/// A live object whose allocation site is known.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Object that was sampled.
    pub object: ObjectIndex,
    /// Number of the sample. It is unique in one JVM and the same in all dumps of the JVM. Later samples have higher
    /// numbers. 0 if the dump has no numbers of samples.
    pub uid: u64,
    /// Size of the object when it was allocated, in bytes.
    pub size: u64,
    /// Stack that allocated the object. If the object is a class, the stack that defined the class.
    pub site: SiteId,
    /// Class of the object, an index into [`Samples::names`].
    pub class: u32,
    /// Thread that allocated the object, an index into [`Samples::names`]; 0 if unknown.
    pub thread: u32,
    /// Time of the allocation, in milliseconds from the agent's start; 0 if unknown.
    pub time_ms: u32,
    /// True if the object is a class. `site` is then the stack that defined it.
    pub is_definition: bool,
    /// Numbers of objects and bytes that the sample represents.
    pub weight: Weight,
    /// Class of the object, as an index into [`Samples::counted`]. `u32::MAX` if the class is not counted there.
    pub(crate) counted: u32,
}

/// A sample whose object was collected.
#[derive(Clone, Copy, Debug)]
pub struct Collected {
    /// See [`Sample::uid`].
    pub uid: u64,
    /// See [`Sample::size`].
    pub size: u64,
    /// See [`Sample::site`].
    pub site: SiteId,
    /// See [`Sample::class`].
    pub class: u32,
    /// See [`Sample::thread`].
    pub thread: u32,
    /// Time of the allocation, in milliseconds from the agent's start.
    pub time_ms: u32,
    /// Time at which the agent noticed that the object had been collected.
    pub died_ms: u32,
    /// True if the sample is one of the most recently collected ones.
    pub recent: bool,
    /// True if the sample is in the uniform random choice of all collected samples.
    pub chosen: bool,
    /// See [`Sample::is_definition`].
    pub is_definition: bool,
}

/// The source of allocation sites.
#[derive(Clone, Debug)]
pub enum Origin {
    /// Samples of the agent.
    Agent(Box<Agent>),
    /// The dump itself names the stack trace of each object, so all figures are exact.
    Traces,
}

/// The agent's settings and counters.
#[derive(Clone, Debug)]
pub struct Agent {
    /// The sampling settings at the time of the dump.
    pub sampling: Sampling,
    /// The sampling settings at the agent's start. When its table is full, the agent samples more coarsely.
    pub first: Sampling,
    /// Time at which the agent started, in milliseconds since 1970.
    pub started_ms: u64,
    /// Process ID of the JVM.
    pub pid: u64,
    /// Maximum number of frames of a stack.
    pub depth: u64,
    /// Highest `uid` that the agent had assigned when the dump was taken.
    pub last_uid: u64,
    /// True if the JVM is known to be older than JDK 25. Such JVMs take too few samples of large objects.
    pub is_before_25: bool,
    /// The agent's counters, by [`Counter::index`].
    counters: Vec<u64>,
    /// Heap usage of the agent's objects.
    pub cost: Cost,
}

impl Agent {
    /// Returns the value of one of the agent's counters.
    #[must_use]
    pub fn counter(&self, counter: Counter) -> u64 {
        self.counters.get(counter.index()).copied().unwrap_or(0)
    }

    /// Returns the sampling settings with which the totals of stacks were counted. If the agent tracks only some
    /// samples, the totals count all samples taken with the settings at the agent's start.
    pub(crate) fn counted(&self) -> Sampling {
        match self.counter(Counter::FewFollowed) {
            0 => self.sampling,
            _ => self.first,
        }
    }

    /// Returns the bytes represented by samples that the agent could not store, since its start.
    #[must_use]
    pub fn lost_bytes(&self) -> u64 {
        self.counter(Counter::DroppedBytes)
    }

    /// Returns how many bytes of lost samples may be missing in the totals of stacks.
    ///
    /// If the agent tracks only some samples, the totals also count the samples that were lost because the agent's
    /// table was full. So if this is the only reason for lost samples, the result is 0.
    pub(crate) fn uncounted_bytes(&self) -> u64 {
        let uncounted = [Counter::DroppedFailed, Counter::DroppedPending];
        let counts_full = self.counter(Counter::FewFollowed) > 0;
        if counts_full && uncounted.iter().all(|&c| self.counter(c) == 0) {
            0
        } else {
            self.lost_bytes()
        }
    }

    /// Returns the reasons why the bytes of stacks are uncertain, in one sentence.
    fn doubts(&self) -> Option<String> {
        let mut doubts = Vec::new();
        if self.sampling.strategy == Strategy::Time {
            doubts.push(sentence::Samples::ByTime);
        }
        let full = match self.counter(Counter::FewFollowed) {
            0 => Loss::TableFull,
            _ => Loss::TrackedFull,
        };
        let reasons = [
            (Counter::DroppedFull, full),
            (Counter::DroppedFailed, Loss::HeapFull),
            (Counter::DroppedPending, Loss::Exception),
        ];
        let reasons = reasons.map(|(counter, why)| (self.counter(counter), why));
        let reasons: Vec<_> = reasons.into_iter().filter(|r| r.0 > 0).collect();
        if !reasons.is_empty() {
            let size = Size(self.lost_bytes());
            doubts.push(sentence::Samples::AgentLost { size, reasons });
        }
        if self.counter(Counter::Faults) > 0 {
            doubts.push(sentence::Samples::AgentFailed);
        }
        let doubts: Vec<String> = doubts.iter().map(ToString::to_string).collect();
        (!doubts.is_empty()).then(|| doubts.join("; "))
    }
}

/// The agent's count of the objects of one class. It includes all objects allocated since the agent's start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassCount {
    /// Name of the class.
    pub class: String,
    /// Number of objects, dead or alive.
    pub objects: u64,
    /// Bytes of these objects.
    pub bytes: u64,
}

/// Heap usage of the agent's objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Number of all Java objects of the agent.
    pub objects: u64,
    /// Bytes of these objects.
    pub bytes: u64,
    /// Bytes of the agent's objects that represent samples.
    pub sample_bytes: u64,
    /// Number of the agent's objects that represent samples, including samples of collected objects.
    pub samples: u64,
    /// Bytes of the site table.
    pub site_bytes: u64,
    /// Stacks in the site table.
    pub sites: u64,
}

/// The allocation sites of a dump.
#[derive(Clone, Debug)]
pub struct Samples {
    /// Source of the sites.
    pub origin: Origin,
    /// Samples whose object is reachable, sorted by uid.
    pub live: Vec<Sample>,
    /// Samples of garbage-collected objects that the agent still remembers: the most recently collected samples, and
    /// samples that were selected at random from all. Each sample is listed once. The list is sorted by uid.
    pub collected: Vec<Collected>,
    /// The stacks.
    pub sites: Sites,
    /// Number and bytes of the samples taken at each site since the agent's start, by [`SiteId`].
    pub totals: Vec<(u64, u64)>,
    /// Bytes that the samples of each site represented when they were taken, by [`SiteId`]. Empty if the agent does not
    /// report them.
    pub allocated: Vec<u64>,
    /// For each site, by [`SiteId`]: the class of its last sample, as an index into [`Self::names`]; 0 if the class is
    /// unknown. The list is empty if all samples are tracked.
    pub(crate) site_classes: Vec<u32>,
    /// Allocations of each class, by name. `None` if the agent did not count them, or if [`Self::with_all_sites`] was
    /// not used to read them.
    pub classes: Option<Vec<ClassCount>>,
    /// Allocations at each line of code. `None` if the agent did not count them, or if [`Self::with_all_sites`] was not
    /// used to read them.
    pub at_sites: Option<AtSites>,
    /// The agent's counts for the classes of live samples.
    pub(crate) counting: Option<counting::Counting>,
    /// Names of classes, and of threads with their labels ([`heapdiff_sites::labels`]). The first name is empty and
    /// means unknown.
    pub names: Vec<String>,
    /// For each class with live samples: how many of its reachable objects have which size. Empty if the dump has a
    /// sample for every object.
    pub(crate) counted: Vec<population::CountedClass>,
    /// Number of samples that were left out because the agent was still writing them when the dump was taken.
    pub unfinished: u64,
    /// Number of samples that were left out because their object is unreachable.
    pub unreachable: u64,
}

impl Samples {
    /// Returns the samples of a dump, or `None` if it has none. If something is wrong with the samples, also returns a
    /// sentence about it.
    ///
    /// Cost: without samples, a search in the classes of the dump. With samples, a pass over the pieces of the file
    /// (about a megabyte each) that contain them, and about 100 bytes of memory per sample.
    #[must_use]
    pub fn from_snapshot(
        snapshot: &Snapshot,
        agent_objects: &AgentObjects,
    ) -> (Option<Self>, Option<String>) {
        Self::read(snapshot, agent_objects, agent::Which::Remembered)
    }

    /// Reads the same as [`Self::from_snapshot`]. In addition, reads the agent's counts for sites and classes that have
    /// no sample any more.
    #[must_use]
    pub fn with_all_sites(
        snapshot: &Snapshot,
        agent_objects: &AgentObjects,
    ) -> (Option<Self>, Option<String>) {
        Self::read(snapshot, agent_objects, agent::Which::All)
    }

    fn read(
        snapshot: &Snapshot,
        agent_objects: &AgentObjects,
        which: agent::Which,
    ) -> (Option<Self>, Option<String>) {
        match agent::read(snapshot, agent_objects, which) {
            Ok(Some(samples)) => {
                let note = samples.agent().and_then(Agent::doubts);
                (Some(samples), note)
            }
            Ok(None) => (traces::read(snapshot), None),
            Err(fault) => {
                let why = fault.to_string();
                let note = sentence::Samples::Unreadable { why }.to_string();
                (traces::read(snapshot), Some(note))
            }
        }
    }

    /// Returns the description of the agent that wrote the samples. Returns `None` if the stacks are from the dump's
    /// own stack traces.
    #[must_use]
    pub fn agent(&self) -> Option<&Agent> {
        match &self.origin {
            Origin::Agent(agent) => Some(agent),
            Origin::Traces => None,
        }
    }

    /// Returns the name of a class or a thread.
    #[must_use]
    pub fn name(&self, number: u32) -> &str {
        self.names.get(number as usize).map_or("", |n| n)
    }
}

/// Interns names. Number 0 is the empty name.
#[derive(Debug)]
struct NameTable {
    names: Vec<String>,
    index: std::collections::HashMap<String, u32>,
}

impl NameTable {
    fn new() -> Self {
        Self {
            names: vec![String::new()],
            index: [(String::new(), 0)].into(),
        }
    }

    fn number(&mut self, name: &str) -> u32 {
        if let Some(&number) = self.index.get(name) {
            return number;
        }
        let number = u32::try_from(self.names.len()).unwrap_or(0);
        self.names.push(name.to_owned());
        self.index.insert(name.to_owned(), number);
        number
    }
}

/// Returns the weight of a sample that represents only itself: one object.
#[allow(clippy::cast_precision_loss, reason = "an estimate")]
const fn exact(objects: u64, bytes: u64) -> Weight {
    Weight::exact(objects as f64, bytes as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(strategy: Strategy, counts: &[(Counter, u64)]) -> Agent {
        let sampling = Sampling {
            strategy,
            interval: 1024,
            rate: 1,
        };
        let mut counters = vec![0; Counter::ALL.len()];
        for &(counter, count) in counts {
            counters[counter.index()] = count;
        }
        Agent {
            sampling,
            first: sampling,
            started_ms: 0,
            pid: 1,
            depth: 64,
            last_uid: 0,
            is_before_25: false,
            counters,
            cost: Cost::default(),
        }
    }

    fn doubts(strategy: Strategy, counts: &[(Counter, u64)]) -> Option<String> {
        agent(strategy, counts).doubts()
    }

    #[test]
    fn samples_that_were_not_tracked_are_counted() {
        let uncounted = |counts: &[(Counter, u64)]| {
            let lost = [
                &[(Counter::DroppedFull, 7), (Counter::DroppedBytes, 70)],
                counts,
            ]
            .concat();
            agent(Strategy::Bytes, &lost).uncounted_bytes()
        };
        let few = (Counter::FewFollowed, 1);
        assert_eq!(uncounted(&[]), 70);
        assert_eq!(uncounted(&[few]), 0);
        for counter in [Counter::DroppedFailed, Counter::DroppedPending] {
            assert_eq!(uncounted(&[few, (counter, 1)]), 70, "up to all of it");
        }
    }

    #[test]
    fn each_doubt_about_samples_is_reported() {
        assert_eq!(doubts(Strategy::Bytes, &[(Counter::Events, 9)]), None);
        let told = |counts: &[(Counter, u64)]| doubts(Strategy::Bytes, counts).unwrap();
        let by_time = doubts(Strategy::Time, &[]).unwrap();
        assert!(by_time.starts_with("samples were taken at time intervals"));
        let lost = |why| {
            format!(
                "the agent lost samples that represent up to 70 B: 7 because {why}; bytes by stack may be too low by this amount"
            )
        };
        for (counter, why) in [
            (Counter::DroppedFull, "its table was full (max_samples)"),
            (Counter::DroppedFailed, "the heap had no room for them"),
            (
                Counter::DroppedPending,
                "the thread was throwing an exception",
            ),
        ] {
            assert_eq!(
                told(&[(counter, 7), (Counter::DroppedBytes, 70)]),
                lost(why)
            );
        }
        let few = (Counter::FewFollowed, 1);
        assert_eq!(doubts(Strategy::Bytes, &[few]), None);
        assert_eq!(
            told(&[few, (Counter::DroppedFull, 7), (Counter::DroppedBytes, 70)]),
            lost("there was no room to track them")
        );
        assert_eq!(
            told(&[(Counter::Faults, 1)]),
            "the agent failed and may have stopped sampling: see the JVM's standard error"
        );
        assert!(!told(&[(Counter::Faults, 1)]).contains("taken at time"));
    }
}
