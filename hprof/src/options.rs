//! The options of an analysis.

use std::sync::Arc;

use crate::NameMapping;
use crate::dominators::thresholds::Thresholds;

/// The reference objects (`java.lang.ref`) that retain their referents.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Refs {
    /// No reference object retains its referent.
    Strong,
    /// Soft references retain objects that no strong path reaches. Finalizers retain objects that neither strong nor
    /// soft paths reach. Weak and phantom references never retain their referents.
    #[default]
    Soft,
    /// All reference objects retain their referents, like ordinary fields.
    All,
}

/// Options for the analysis of a dump.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// The reference objects that retain their referents.
    pub refs: Refs,
    /// True if [`Snapshot::holders`](crate::Snapshot::holders) will be called. Its result is then recorded while the
    /// references are in memory. This takes two bytes for each object, and saves a second pass over the file.
    pub holders: bool,
    /// The index of the dump, if a file has several dumps. 0 is the first.
    pub dump: usize,
    /// The names that classes, fields and methods had before a shrinker shortened them. Results contain these names.
    /// The index does not depend on the mapping.
    pub mapping: Option<Arc<dyn NameMapping>>,
    /// Maximum number of bytes of anonymous memory for the large arrays. Arrays that exceed this limit are in temporary
    /// files.
    pub max_memory: Option<u64>,
    /// The sizes at which the dominator computation switches algorithms. Results do not depend on them.
    pub(crate) thresholds: Thresholds,
}

#[cfg(feature = "fuzzing")]
impl Options {
    /// Sets the sizes at which the dominator computation switches algorithms.
    #[doc(hidden)]
    pub fn set_thresholds(&mut self, thresholds: Thresholds) {
        self.thresholds = thresholds;
    }
}
