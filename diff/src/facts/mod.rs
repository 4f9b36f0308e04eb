//! Facts about the trie nodes of a dump. A summary file stores the facts, so that it can replace the last dump of a
//! comparison.
//!
//! A comparison reads evidence about each suspect from the last dump. Only the comparison finds the suspects. So a
//! summary file stores the evidence about all trie nodes that are large enough to become suspects. The facts contain no
//! strings of the heap except names of Clojure Vars, and no numbers in fields except limits of collections.

mod gather;
mod saved;

use std::collections::{BTreeMap, BTreeSet};

use hprof::ClassIndex;
use hprof::records::Reference;

use crate::evidence::bounds::{FieldLimit, Maximum, StaticLimits};
use crate::evidence::detect::{EqualKeys, Slices};
use crate::evidence::usage::Watched;
use crate::joined::ContentLine;
use crate::suspect::{PathsToShared, Title};
use crate::trie::StepId;

/// The evidence about one dump that its summary file stores.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    /// The classes of the trie nodes, and their superclasses. A superclass precedes its subclasses.
    classes: Vec<ClassFacts>,
    /// The class of each trie node's objects.
    of_step: Vec<StepClass>,
    places: BTreeMap<StepId, PlaceFacts>,
    /// No evidence is stored about trie nodes with fewer bytes than this. The bytes include memory outside of the heap.
    pub(crate) least_bytes: u64,
    /// Application classes that are containers: like JDK collections, they store objects of other classes, for several
    /// purposes.
    pub(crate) containers: BTreeSet<String>,
    /// Number of generated application classes whose names are equal except for the generated part. Counts the most
    /// frequent such name.
    pub(crate) generated_alike: u64,
    /// True if the dump has the frames of parked virtual threads.
    pub(crate) shows_parked_frames: bool,
    /// Number of collections that the agent did not watch because its table was full.
    pub(crate) unwatched: u64,
    /// Size of the decompressed dump in bytes.
    pub(crate) unpacked_bytes: u64,
    /// Hash of the JVM's command (`sun.java.command`).
    pub(crate) command: Option<u64>,
}

/// The class of a trie node's objects, as an index of the class list [`Facts::classes`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum StepClass {
    #[default]
    Unknown,
    /// The objects are instances of the class.
    Instance(u32),
    /// The objects are class objects.
    Represented(u32),
}

/// Facts about one class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClassFacts {
    pub(crate) name: String,
    /// Index of the superclass in the class list [`Facts::classes`].
    superclass: Option<u32>,
    /// True if the boot loader defines the class.
    pub(crate) is_of_boot: bool,
    pub(crate) reference: Reference,
    pub(crate) limits: Option<StaticLimits>,
}

/// Evidence about the objects of one trie node, for a summary file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PlaceFacts {
    /// True if one object retains most of the bytes.
    pub(crate) is_mostly_one: bool,
    /// True if most of the reference objects have a referent.
    pub(crate) have_referents: bool,
    /// True if the objects are queues with a field for each end.
    pub(crate) is_linked_queue: bool,
    /// True if no reference queue is registered with the soft references.
    pub(crate) lack_queue: Option<bool>,
    /// True if something other than a list of the JDK holds the referents of the cleaners.
    pub(crate) held_elsewhere: Option<bool>,
    /// Number of empty slots and of all slots, if most slots of the arrays are empty.
    pub(crate) empty_slots: Option<[u64; 2]>,
    /// Number of weak map entries whose values hold their own key, and number of entries that were read.
    pub(crate) self_holding: Option<[u64; 2]>,
    /// Number of cancelled tasks, and number of tasks that were read.
    pub(crate) cancelled: Option<[u64; 2]>,
    /// Number of collections in fields of the largest object.
    pub(crate) collections: u64,
    /// Numbers in fields that may be limits.
    pub(crate) limits: Vec<FieldLimit>,
    /// The maximum size that a well-known library enforces.
    pub(crate) maximum: Option<Maximum>,
    pub(crate) equal_keys: Option<EqualKeys>,
    pub(crate) slices: Option<Slices>,
    pub(crate) watched: Option<Watched>,
    /// The thread local, Clojure Var or local variable that holds the objects.
    pub(crate) title: Option<Title>,
    /// The paths to the shared trie nodes (whose objects several references hold) on the path to the objects. `None` if
    /// the paths were not searched.
    pub(crate) paths: Option<Vec<PathsToShared>>,
    pub(crate) holder: Option<HolderFacts>,
    /// The objects that the trie node's objects dominate, for a join with a recording. `None` if they were not read.
    pub(crate) content: Option<Vec<ContentLine>>,
}

/// The holder of the objects of a trie node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HolderFacts {
    pub(crate) name: String,
    /// Another field through which the largest object is reachable.
    pub(crate) other: Option<String>,
    /// Id of the object that has the holding field.
    pub(crate) id: Option<String>,
}

impl Facts {
    /// Returns the evidence about the objects of a trie node. `None` if no evidence was collected.
    pub(crate) fn place(&self, step: StepId) -> Option<&PlaceFacts> {
        self.places.get(&step)
    }

    pub(crate) fn class(&self, class: ClassIndex) -> Option<&ClassFacts> {
        self.classes.get(class.0 as usize)
    }

    /// Returns a class and its superclasses.
    pub(crate) fn chain(&self, class: ClassIndex) -> impl Iterator<Item = &ClassFacts> {
        std::iter::successors(self.class(class), |class| {
            self.class(ClassIndex(class.superclass?))
        })
    }

    /// Returns the class of a trie node's objects; `None` for class objects.
    pub(crate) fn class_of(&self, step: StepId) -> Option<ClassIndex> {
        match self.of_step.get(step.0 as usize)? {
            StepClass::Instance(class) => Some(ClassIndex(*class)),
            StepClass::Unknown | StepClass::Represented(_) => None,
        }
    }

    /// Returns the class that a trie node's object represents.
    pub(crate) fn represented(&self, step: StepId) -> Option<ClassIndex> {
        match self.of_step.get(step.0 as usize)? {
            StepClass::Represented(class) => Some(ClassIndex(*class)),
            StepClass::Unknown | StepClass::Instance(_) => None,
        }
    }
}

impl PlaceFacts {
    /// Returns another field that holds the same objects as `holder`.
    pub(crate) fn other_holder(&self, holder: &str) -> Option<String> {
        self.of_holder(holder)?.other.clone()
    }

    /// Returns the id of the object whose field `holder` holds the objects.
    pub(crate) fn holder_id(&self, holder: &str) -> Option<String> {
        self.of_holder(holder)?.id.clone()
    }

    /// True if the holder of the objects is known, and has the name `holder`.
    pub(crate) fn is_held_by(&self, holder: &str) -> bool {
        self.of_holder(holder).is_some()
    }

    fn of_holder(&self, holder: &str) -> Option<&HolderFacts> {
        self.holder.as_ref().filter(|of| of.name == holder)
    }
}
