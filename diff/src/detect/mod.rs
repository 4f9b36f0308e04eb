//! Leaks that have a name. Each detector looks at what grows and at the objects themselves, and says in a
//! sentence what a reader can check in the dump.
//!
//! A detector reads a bounded number of objects, those that lie together in the file, so that its cost
//! does not grow with the heap.

mod buffers;
mod hash_key;
mod loaders;
mod references;
mod scheduled;
mod threads;
mod waiting;
mod weak_map;

use crate::case::Case;

/// What a detector found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// The detector's name, for programs.
    pub(crate) detector: &'static str,
    /// What it is, first, and then what else it found.
    pub(crate) sentences: Vec<String>,
    /// Whether what was found says by itself that it will go on.
    pub(crate) is_certain: bool,
}

impl Finding {
    fn new(detector: &'static str, sentence: String) -> Self {
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

    fn and(mut self, sentence: Option<String>) -> Self {
        self.sentences.extend(sentence);
        self
    }
}

type Detector = fn(&Case<'_>) -> Option<Finding>;

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

/// What is known of a suspect by name.
pub(crate) fn find(case: &Case<'_>) -> Option<Finding> {
    ALL.iter().find_map(|detector| detector(case))
}
