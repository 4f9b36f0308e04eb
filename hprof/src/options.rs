//! What an analysis is told.

use std::sync::Arc;

use crate::NameMapping;
use crate::dominators::thresholds::Thresholds;

/// Which reference objects (`java.lang.ref`) retain their referent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Refs {
    /// No reference object retains its referent.
    Strong,
    /// Soft references, then finalizers, for what no stronger path reaches; weak and phantom
    /// references never.
    #[default]
    Soft,
    /// All of them, like ordinary fields.
    All,
}

/// How to analyse a dump.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// Which reference objects retain their referent.
    pub refs: Refs,
    /// Whether [`Snapshot::holders`](crate::Snapshot::holders) will be asked: what it answers is then noted while the
    /// references are at hand, for two bytes an object, and needs no second reading of the file.
    pub holders: bool,
    /// Which of several dumps that one file holds, one after the other: 0 is the first.
    pub dump: usize,
    /// The names that classes, fields and methods had before they were shortened: what is answered has these. An index
    /// is the same with and without.
    pub mapping: Option<Arc<dyn NameMapping>>,
    /// Bytes of anonymous memory for the large arrays; beyond it they live in temporary files.
    pub max_memory: Option<u64>,
    /// From what sizes on dominators are found in other ways: answers do not depend on it.
    pub(crate) thresholds: Thresholds,
}

#[cfg(feature = "fuzzing")]
impl Options {
    /// Sets from what sizes on dominators are found in other ways.
    #[doc(hidden)]
    pub fn set_thresholds(&mut self, thresholds: Thresholds) {
        self.thresholds = thresholds;
    }
}
