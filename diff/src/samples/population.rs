//! Exact numbers of live objects of each size, for the classes that have samples.
//!
//! All instances of a class have the same size. Arrays are counted by size class.

use std::collections::BTreeMap;

use heapdiff_sites::{Known, size_class};
use hprof::{ClassIndex, ObjectIndex, Snapshot};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::names;
use crate::samples::{AgentObjects, Sample};

/// Number of objects that one parallel task counts.
const CHUNK: u32 = 1 << 16;
/// The size class of all instances of a class. One size class is enough for them, because they all have the same size.
const ONE_SIZE: u32 = 0;

/// A class that has live samples, with the number of its reachable objects.
#[derive(Clone, Debug)]
pub(crate) struct CountedClass {
    /// Name of the class, in the form that comparisons use.
    pub(crate) name: String,
    /// True if the class is an array class, whose objects have several sizes.
    pub(crate) is_array: bool,
    /// Reachable objects by size class.
    pub(crate) sizes: SizeClasses,
}

impl CountedClass {
    /// Returns the size class of an object of `bytes` bytes.
    pub(crate) fn size_class(&self, bytes: u64) -> u32 {
        if self.is_array {
            size_class(bytes)
        } else {
            ONE_SIZE
        }
    }

    /// Returns the size class of an array; `None` for an instance.
    pub(crate) fn array_size(&self, bytes: u64) -> Option<u32> {
        self.is_array.then(|| size_class(bytes))
    }
}

/// Objects by size class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SizeClasses(Vec<(u32, Known)>);

impl SizeClasses {
    /// Adds an object of `bytes` bytes.
    #[inline]
    pub(crate) fn add(&mut self, bytes: u64) {
        let one = Known { objects: 1, bytes };
        self.add_all(size_class(bytes), one);
    }

    /// Adds the numbers of objects and bytes in `known` to the size class `class`.
    pub(crate) fn add_all(&mut self, class: u32, known: Known) {
        match self.0.binary_search_by_key(&class, |c| c.0) {
            Ok(at) => self.0[at].1.add(known),
            Err(at) => self.0.insert(at, (class, known)),
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for &(class, known) in &other.0 {
            self.add_all(class, known);
        }
    }

    /// Returns the numbers of arrays and bytes in each size class. If there are no size classes, the objects are not
    /// arrays and have one size. Then the result has one entry: `known`, the numbers of all objects and bytes.
    pub(crate) fn by_size_class(&self, known: Known) -> BTreeMap<u32, Known> {
        if self.0.is_empty() {
            [(ONE_SIZE, known)].into()
        } else {
            self.iter().collect()
        }
    }

    /// Returns the size classes with their numbers of objects, sorted by size class.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, Known)> + '_ {
        self.0.iter().copied()
    }
}

/// Returns, by [`ClassIndex`], true for each class of a dump that is an array class.
pub(crate) fn array_classes(snapshot: &Snapshot) -> Vec<bool> {
    let classes = snapshot.classes().iter();
    classes
        .map(|(_, class)| class.name.ends_with("[]"))
        .collect()
}

/// Counts the reachable objects of the classes that have samples. The agent's objects are left out. Stores in each
/// sample the index of its class.
///
/// Cost: a parallel pass over all objects if there are samples of arrays. Otherwise reads the class histogram.
pub(super) fn count(
    snapshot: &Snapshot,
    agent_objects: &AgentObjects,
    live: &mut [Sample],
) -> Vec<CountedClass> {
    let is_array = array_classes(snapshot);
    let mut numbers: FxHashMap<ClassIndex, u32> = FxHashMap::default();
    let mut counted: Vec<(ClassIndex, CountedClass)> = Vec::new();
    for sample in live.iter_mut().filter(|s| !s.is_definition) {
        let Some(class) = snapshot.class_of(sample.object) else {
            continue;
        };
        sample.counted = *numbers.entry(class).or_insert_with(|| {
            let new = CountedClass {
                name: names::name_of(snapshot, sample.object),
                is_array: is_array.get(class.index()).copied().unwrap_or(false),
                sizes: SizeClasses::default(),
            };
            counted.push((class, new));
            u32::try_from(counted.len() - 1).unwrap_or(u32::MAX)
        });
    }
    if counted.is_empty() {
        return Vec::new();
    }
    let mut totals = snapshot.histogram();
    agent_objects.subtract_from(snapshot, &mut totals);
    for (class, counted) in counted.iter_mut().filter(|(_, c)| !c.is_array) {
        if let Some(total) = totals.get(class.index()) {
            let known = Known {
                objects: total.reachable.objects,
                bytes: total.reachable.bytes,
            };
            counted.sizes.add_all(ONE_SIZE, known);
        }
    }
    let mut wanted = vec![u32::MAX; is_array.len()];
    for ((class, counted), number) in counted.iter().zip(0..) {
        if let Some(wanted) = wanted.get_mut(class.index()).filter(|_| counted.is_array) {
            *wanted = number;
        }
    }
    if counted.iter().any(|(_, c)| c.is_array) {
        for ((number, class), known) in arrays(snapshot, agent_objects, &wanted) {
            counted[number as usize].1.sizes.add_all(class, known);
        }
    }
    counted.into_iter().map(|(_, counted)| counted).collect()
}

/// Returns the reachable objects of the wanted classes, by the index of the class and by size class.
fn arrays(
    snapshot: &Snapshot,
    agent_objects: &AgentObjects,
    wanted: &[u32],
) -> BTreeMap<(u32, u32), Known> {
    let count = u32::try_from(snapshot.object_count()).unwrap_or(u32::MAX);
    let tree = snapshot.tree();
    let parts: Vec<FxHashMap<(u32, u32), Known>> = (0..count.div_ceil(CHUNK))
        .into_par_iter()
        .map(|chunk| {
            let mut known: FxHashMap<(u32, u32), Known> = FxHashMap::default();
            let start = chunk * CHUNK;
            for object in (start..count.min(start.saturating_add(CHUNK))).map(ObjectIndex) {
                let (class, bytes) = snapshot.class_and_size(object);
                let number = class.and_then(|c| wanted.get(c.index()).copied());
                let Some(number) = number.filter(|&n| n != u32::MAX) else {
                    continue;
                };
                if tree.is_reachable(object) && !agent_objects.contains(object) {
                    let one = Known { objects: 1, bytes };
                    known
                        .entry((number, size_class(bytes)))
                        .or_default()
                        .add(one);
                }
            }
            known
        })
        .collect();
    let mut all: BTreeMap<(u32, u32), Known> = BTreeMap::new();
    for (key, known) in parts.into_iter().flatten() {
        all.entry(key).or_default().add(known);
    }
    all
}
