//! Figures that a summary stores in addition to the trie, because they can only be computed while the dump is open.

use std::collections::{BTreeMap, BTreeSet};

use hprof::answers::{Holders, Value};
use hprof::{ClassIndex, ObjectIndex, Snapshot};

use crate::names;
use crate::trie::locate::Locator;
use crate::trie::{StepId, Trie};

/// Number of objects to read in one batch.
const BATCH: usize = 1 << 16;

/// Figures of one dump that are neither in its class totals nor in its trie.
#[derive(Clone, Debug, Default)]
pub(crate) struct DumpStats {
    /// Number of reachable class objects.
    pub(crate) classes: u64,
    /// Maps the name of a class to the number of loaders that define a class of this name. Only classes with more than
    /// one loader are included. Hidden and generated classes are left out, because one loader may have many of them.
    pub(crate) defined_by: BTreeMap<String, u64>,
    /// Direct buffers and the memory outside of the heap that they own. The key is the deepest trie node that contains
    /// the buffers.
    pub(crate) off_heap: BTreeMap<StepId, OffHeap>,
}

/// Number and memory of direct buffers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OffHeap {
    /// Number of buffers.
    pub(crate) buffers: u64,
    /// Sum of their capacities in bytes.
    pub(crate) bytes: u64,
}

impl DumpStats {
    /// Collects the figures of an open dump.
    ///
    /// Cost: one visit to each class. If there are direct buffers, also checks the class of each object and reads the
    /// buffers from the file.
    pub(crate) fn new(snapshot: &Snapshot, holders: &Holders, trie: &Trie) -> Self {
        let mut stats = Self {
            off_heap: off_heap(snapshot, holders, trie),
            ..Self::default()
        };
        let mut loaders: BTreeMap<&str, BTreeSet<u64>> = BTreeMap::new();
        let classes = snapshot.classes();
        for (i, class) in classes.iter().take(classes.dumped()) {
            if !snapshot.tree().is_reachable(ObjectIndex(i.0)) {
                continue;
            }
            stats.classes += 1;
            let counts = !class.loader.is_null() && !names::is_generated(&class.name);
            if counts && class.element.is_none() {
                loaders
                    .entry(&class.name)
                    .or_default()
                    .insert(class.loader.0);
            }
        }
        let several = loaders.into_iter().filter(|(_, l)| l.len() > 1);
        stats.defined_by = several
            .map(|(name, l)| (name.to_owned(), l.len() as u64))
            .collect();
        stats
    }

    /// Returns the number of loaders that define a class of this name.
    pub(crate) fn loaders_of(&self, class: &str) -> u64 {
        self.defined_by.get(class).copied().unwrap_or(1)
    }
}

/// Returns the class of direct buffers and its subclasses.
pub(crate) fn direct_buffer_classes(snapshot: &Snapshot) -> Vec<ClassIndex> {
    let classes = snapshot.classes();
    let Some(&direct) = classes.by_name("java.nio.DirectByteBuffer").first() else {
        return Vec::new();
    };
    classes
        .iter()
        .map(|(i, _)| i)
        .filter(|&i| classes.is_subclass(i, direct))
        .collect()
}

/// Returns the direct buffers that own their memory, by trie node. These buffers have a cleaner, while slices and
/// duplicates of buffers have none. A memory-mapped file is in the same class, but has a file descriptor. Its pages
/// belong to the operating system and are not counted.
fn off_heap(snapshot: &Snapshot, holders: &Holders, trie: &Trie) -> BTreeMap<StepId, OffHeap> {
    let mut by_step: BTreeMap<StepId, OffHeap> = BTreeMap::new();
    let classes = direct_buffer_classes(snapshot);
    if classes.is_empty() {
        return by_step;
    }
    let mut buffers = snapshot.instances(&classes);
    buffers.retain(|&b| snapshot.tree().is_reachable(b));
    if buffers.is_empty() {
        return by_step;
    }
    let mut locator = Locator::new(snapshot, holders, trie);
    for part in buffers.chunks(BATCH) {
        let values = snapshot.field_values(part, ["capacity", "cleaner", "fd"]);
        for (&buffer, values) in part.iter().zip(values) {
            let Some([Some(capacity), Some(cleaner), file]) = values else {
                continue;
            };
            if file.and_then(Value::object).is_some() {
                continue;
            }
            let bytes = capacity.integer().and_then(|c| u64::try_from(c).ok());
            let (Some(bytes), Some(_)) = (bytes, cleaner.object()) else {
                continue;
            };
            if let Some(step) = locator.step(buffer) {
                let all = by_step.entry(step).or_default();
                all.buffers += 1;
                all.bytes += bytes;
            }
        }
    }
    by_step
}
