//! Allocation sites found in a dump: samples that the agent left there, or the stack traces that some
//! producers write with each object.
//!
//! Both give one model: live [`Sample`]s, each with its object, its site and its weight.

mod agent;
mod allocated_at;
mod allocations;
mod at_sites;
pub(crate) mod attribution;
pub(crate) mod counting;
pub(crate) mod frame_kind;
pub(crate) mod frames;
mod kept;
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
pub use lines::Disagreement;
pub use originals::OriginalNames;
pub use sites::{SiteId, Sites};

/// A live object whose allocation site is known.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// The object.
    pub object: ObjectIndex,
    /// Unique in one JVM, ascending, the same in each of its dumps; 0 where dumps have none.
    pub uid: u64,
    /// Bytes as allocated.
    pub size: u64,
    /// Where it was allocated; for a class, where it was defined.
    pub site: SiteId,
    /// The class, among [`Samples::names`].
    pub class: u32,
    /// The allocating thread, among [`Samples::names`]; 0: unknown.
    pub thread: u32,
    /// When it was allocated, in milliseconds from the agent's start; 0 where that is unknown.
    pub time_ms: u32,
    /// Whether the object is a class, and the site the stack that defined it.
    pub is_definition: bool,
    /// The objects and bytes that it stands for.
    pub weight: Weight,
    /// Its class as the dump counts it, among the classes of [`Samples`]; `u32::MAX` where it is none of them.
    pub(crate) counted: u32,
}

/// A sample whose object was collected.
#[derive(Clone, Copy, Debug)]
pub struct Collected {
    /// As [`Sample::uid`].
    pub uid: u64,
    /// As [`Sample::size`].
    pub size: u64,
    /// As [`Sample::site`].
    pub site: SiteId,
    /// As [`Sample::class`].
    pub class: u32,
    /// As [`Sample::thread`].
    pub thread: u32,
    /// When it was allocated, in milliseconds from the agent's start.
    pub time_ms: u32,
    /// When the agent found it collected.
    pub died_ms: u32,
    /// Whether it is one of the last that were collected.
    pub recent: bool,
    /// Whether it is in the uniform choice of all that were collected.
    pub chosen: bool,
    /// As [`Sample::is_definition`].
    pub is_definition: bool,
}

/// Where allocation sites come from.
#[derive(Clone, Debug)]
pub enum Origin {
    /// Samples of the agent.
    Agent(Box<Agent>),
    /// The dump names the stack trace of each object: the figures are exact.
    Traces,
}

/// The agent's settings and counters.
#[derive(Clone, Debug)]
pub struct Agent {
    /// How samples are chosen.
    pub sampling: Sampling,
    /// How samples were chosen at the start: the agent samples less once its table is full.
    pub first: Sampling,
    /// When it started, in milliseconds since 1970.
    pub started_ms: u64,
    /// The JVM's process.
    pub pid: u64,
    /// The most frames of a stack.
    pub depth: u64,
    /// The highest uid given when the dump was taken.
    pub last_uid: u64,
    /// Whether the JVM is known to be one before 25, which samples large objects too rarely.
    pub is_before_25: bool,
    /// Its counters, each at its index.
    counters: Vec<u64>,
    /// The heap that its objects take.
    pub cost: Cost,
}

impl Agent {
    /// The value of one of the agent's counters.
    #[must_use]
    pub fn counter(&self, counter: Counter) -> u64 {
        self.counters.get(counter.index()).copied().unwrap_or(0)
    }

    /// How the samples were taken that stacks' totals count: where few are followed, all that were taken at first.
    pub(crate) fn counted(&self) -> Sampling {
        match self.counter(Counter::FewFollowed) {
            0 => self.sampling,
            _ => self.first,
        }
    }

    /// Bytes that samples stood for which the agent could not keep, since its start.
    #[must_use]
    pub fn lost_bytes(&self) -> u64 {
        self.counter(Counter::DroppedBytes)
    }

    /// Those of them, at most, that stacks' totals do not count: where few samples are followed, one that has no room is counted.
    pub(crate) fn uncounted_bytes(&self) -> u64 {
        let uncounted = [Counter::DroppedFailed, Counter::DroppedPending];
        let counts_full = self.counter(Counter::FewFollowed) > 0;
        if counts_full && uncounted.iter().all(|&c| self.counter(c) == 0) {
            0
        } else {
            self.lost_bytes()
        }
    }

    /// Returns the reasons why bytes by stack are uncertain, as one sentence.
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

/// All objects of a class that were allocated since the agent's start, as it counted them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassCount {
    /// The class.
    pub class: String,
    /// Objects, dead or alive.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// The agent's objects in the heap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// All of the agent's objects.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes of the objects that stand for samples.
    pub sample_bytes: u64,
    /// The number of those objects, with those whose sample is dead.
    pub samples: u64,
    /// Bytes of the site table.
    pub site_bytes: u64,
    /// Stacks in the site table.
    pub sites: u64,
}

/// The allocation sites of a dump.
#[derive(Clone, Debug)]
pub struct Samples {
    /// Where they come from.
    pub origin: Origin,
    /// Samples whose object is reachable, in the order of their uids.
    pub live: Vec<Sample>,
    /// Samples whose object was collected, as far as the agent remembers them: the last ones and a uniform
    /// choice of all, each once, in the order of their uids.
    pub collected: Vec<Collected>,
    /// The stacks.
    pub sites: Sites,
    /// Samples taken at each site since the start, and their bytes; by [`SiteId`].
    pub totals: Vec<(u64, u64)>,
    /// Bytes that these stood for when they were taken, by [`SiteId`]; empty where the agent does not tell.
    pub allocated: Vec<u64>,
    /// The class of the last sample of each site, among [`Self::names`], by [`SiteId`]; 0: unknown. Empty where all samples are followed.
    pub(crate) site_classes: Vec<u32>,
    /// What was allocated of each class, by name; `None` where the agent did not count it, or it was not read
    /// ([`Self::with_all_sites`]).
    pub classes: Option<Vec<ClassCount>>,
    /// What was allocated at each line of code; `None` where the agent did not count it, or it was not read ([`Self::with_all_sites`]).
    pub at_sites: Option<AtSites>,
    /// What the agent counted of the classes of live samples.
    pub(crate) counting: Option<counting::Counting>,
    /// Names of classes and threads; the first is empty.
    pub names: Vec<String>,
    /// The classes of live samples with all their reachable objects by size; empty where every object is a sample.
    pub(crate) counted: Vec<population::CountedClass>,
    /// Samples left out because the dump was taken while they were being made.
    pub unfinished: u64,
    /// Samples left out because no GC root reaches their object.
    pub unreachable: u64,
}

impl Samples {
    /// The samples of a dump, `None` where it has none, and a sentence that says what is wrong with them.
    ///
    /// Cost: without samples a look at the dump's classes; else a walk over the pieces of the file with
    /// samples, and some 100 bytes for each sample.
    #[must_use]
    pub fn of(snapshot: &Snapshot, agent_objects: &AgentObjects) -> (Option<Self>, Option<String>) {
        Self::read(snapshot, agent_objects, agent::Which::Remembered)
    }

    /// As [`Self::of`], with what the agent counted at sites and of classes of which no sample is left.
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

    /// The agent; `None` where the dump itself names the stacks.
    #[must_use]
    pub fn agent(&self) -> Option<&Agent> {
        match &self.origin {
            Origin::Agent(agent) => Some(agent),
            Origin::Traces => None,
        }
    }

    /// A name of a class or a thread.
    #[must_use]
    pub fn name(&self, number: u32) -> &str {
        self.names.get(number as usize).map_or("", |n| n)
    }
}

/// Interns names; 0 is no name.
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

/// The weight of an object that stands for itself only.
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
    fn what_had_no_room_to_be_followed_is_counted() {
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
    fn each_doubt_about_samples_is_told_where_there_is_one() {
        assert_eq!(doubts(Strategy::Bytes, &[(Counter::Events, 9)]), None);
        let told = |counts: &[(Counter, u64)]| doubts(Strategy::Bytes, counts).unwrap();
        let by_time = doubts(Strategy::Time, &[]).unwrap();
        assert!(by_time.starts_with("samples were taken by time"));
        let lost = |why| {
            format!(
                "the agent lost samples of up to 70 B: 7 because {why}; bytes by stack may be too low by this amount"
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
        assert!(!told(&[(Counter::Faults, 1)]).contains("taken by time"));
    }
}
