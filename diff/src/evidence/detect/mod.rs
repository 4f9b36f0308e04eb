//! Detectors of known leak patterns. Each detector inspects the growing trie nodes and their objects. It returns
//! sentences with facts that readers can check in the dump.
//!
//! A detector reads a limited number of objects that are adjacent in the file, so its cost does not grow with the heap.

mod buffers;
mod hash_key;
mod loaders;
mod references;
mod scheduled;
mod threads;
mod waiting;
mod weak_map;

pub(crate) use self::buffers::{Slices, may_be_view, slices};
pub(crate) use self::hash_key::{EqualKeys, equal_keys, is_node};
pub(crate) use self::references::{are_held_elsewhere, have_held_referents, keeps_referent};
pub(crate) use self::scheduled::{cancelled_tasks, is_task};
pub(crate) use self::waiting::{is_linked_queue, may_be_linked_queue};
pub(crate) use self::weak_map::{ENTRY as WEAK_MAP_ENTRY, self_holding_values};
use heapdiff_sites::packages::is_jdk;

use crate::evidence::context::SuspectContext;
use crate::evidence::usage::size;
use crate::sentence::Evidence;
use crate::trie::StepId;

/// Maximum difference between the number of elements that a collection stores in a field and the number found in the
/// dominator tree. If the difference is larger, the stored number is not used.
const BESIDE: u64 = 2;

/// The result of a detector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// Name of the detector in machine-readable reports.
    pub(crate) detector: &'static str,
    /// The first sentence names the pattern. The other sentences add details.
    pub(crate) sentences: Vec<Evidence>,
    /// True if the finding alone proves that the growth will go on.
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

    fn mark_certain(mut self) -> Self {
        self.is_certain = true;
        self
    }

    fn with_evidence(mut self, sentence: Option<Evidence>) -> Self {
        self.sentences.extend(sentence);
        self
    }
}

type Detector = fn(&SuspectContext<'_>) -> Option<Finding>;

/// The detectors, the most specific first. Only the first detector that matches a suspect is used.
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

/// Minimum number of objects for which a detector reports a pattern in a single dump.
const PILE: u64 = 8;

/// Returns the number of a trie node's objects in the first dump and in the last, or `None` if it did not grow. In a
/// single dump, the number must be at least [`PILE`].
fn more(context: &SuspectContext<'_>, step: StepId) -> Option<(u64, u64)> {
    let (first, last) = context.ends(step);
    let is_pile = if context.is_alone() {
        last >= PILE
    } else {
        last > first
    };
    is_pile.then_some((first, last))
}

/// Returns the number of elements of a collection. `below` is the number of elements that were found below the
/// collection in the dominator tree.
///
/// This number may be too small: if another field or a thread also refers to an element, the collection does not
/// dominate the element. So in a single dump, the size of a JDK collection is read from its field. This size is
/// returned if it is larger than `below` by at most [`BESIDE`]. Otherwise, returns `below`.
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

/// Returns the finding of the first detector that recognizes the suspect; `None` if no detector does.
pub(crate) fn find(context: &SuspectContext<'_>) -> Option<Finding> {
    ALL.iter().find_map(|detector| detector(context))
}
