//! Detectors of well-known leaks. Each one looks at what grows and at the objects themselves, and says in a
//! sentence what a reader can check in the dump.
//!
//! A detector reads a bounded number of objects, adjacent ones in the file, so that its cost does not grow
//! with the heap.

mod buffers;
mod hash_key;
mod loaders;
mod references;
mod scheduled;
mod threads;
mod waiting;
mod weak_map;

pub(crate) use self::references::are_of_held_objects;
use heapdiff_sites::packages::is_jdk;

use crate::evidence::context::SuspectContext;
use crate::evidence::usage::size;
use crate::sentence::Evidence;
use crate::trie::StepId;

/// Elements of a collection that may be held elsewhere too, while it is still its number that is told.
const BESIDE: u64 = 2;

/// What a detector found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// The detector's name, as programs read it.
    pub(crate) detector: &'static str,
    /// What it is, in the first sentence; then what else the detector found.
    pub(crate) sentences: Vec<Evidence>,
    /// Whether the finding alone proves that the growth will go on.
    pub(crate) is_certain: bool,
}

impl Finding {
    fn new(detector: &'static str, sentence: Evidence) -> Self {
        Self {
            detector,
            sentences: vec![sentence],
            is_certain: false,
        }
    }

    fn certain(mut self) -> Self {
        self.is_certain = true;
        self
    }

    fn and(mut self, sentence: Option<Evidence>) -> Self {
        self.sentences.extend(sentence);
        self
    }
}

type Detector = fn(&SuspectContext<'_>) -> Option<Finding>;

/// The detectors, the most specific first: the first that finds something names the suspect.
const ALL: [Detector; 13] = [
    references::delete_on_exit,
    weak_map::find,
    hash_key::find,
    loaders::find,
    buffers::direct,
    threads::virtual_thread,
    threads::thread_local,
    references::finalizer,
    references::cleaner,
    scheduled::find,
    waiting::listener,
    buffers::slice,
    waiting::queue,
];

/// So many objects are a pile where one dump alone is known.
const PILE: u64 = 8;

/// A step's objects in the first dump and in the last, if there are more in the last: what piles up has to. In one
/// dump alone there have to be many.
fn more(context: &SuspectContext<'_>, step: StepId) -> Option<(u64, u64)> {
    let (first, last) = context.ends(step);
    let is_pile = if context.is_alone() {
        last >= PILE
    } else {
        last > first
    };
    is_pile.then_some((first, last))
}

/// How many elements a collection has, of which so many are below it in the dominator tree. The element at its end can hang
/// elsewhere, as a thread or another field refers to it too: in one dump alone a collection of the runtime says the number.
fn counted(context: &SuspectContext<'_>, collection: StepId, below: u64) -> u64 {
    let step = &context.trie()[collection];
    let is_one = context.is_alone() && step.objects == 1;
    if !is_one || !is_jdk(context.class(collection)) {
        return below;
    }
    let own = step.samples.first().and_then(|&o| size(context, o));
    let own = own.and_then(|own| u64::try_from(own).ok());
    own.filter(|own| (below..=below + BESIDE).contains(own))
        .unwrap_or(below)
}

/// The first detector's finding; `None` where no detector knows the suspect.
pub(crate) fn find(context: &SuspectContext<'_>) -> Option<Finding> {
    ALL.iter().find_map(|detector| detector(context))
}
