//! Collects the facts about a dump, the evidence that its summary file stores.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use heapdiff_model::diff::least;
use hprof::records::Reference;
use hprof::{ClassIndex, ObjectIndex, Snapshot};

use super::{ClassFacts, Facts, PlaceFacts, StepClass};
use crate::evidence::bounds;
use crate::evidence::context::{Last, SuspectContext};
use crate::evidence::detect;
use crate::evidence::usage::Usages;
use crate::growth::{Aligned, Candidate};
use crate::joined;
use crate::names::LabelKind;
use crate::summary::Summary;
use crate::suspect::{self, SharedPath, Wanted, containers};
use crate::trie::{StepId, Trie};

/// Trie nodes are left out if they retain less than 1/`PART` of the smallest growth that a comparison reports.
const PART: u64 = 2;
/// Maximum number of trie nodes about which evidence for a summary file is collected. The largest nodes are used.
const PLACES: usize = 1 << 10;
/// Maximum number of trie nodes whose holder, paths and content are searched. The largest are used.
const SEARCHED: usize = 1 << 6;
/// Maximum number of searches for paths to shared trie nodes (whose objects several references hold). Repeated searches
/// count once.
const SEARCHES: usize = 1 << 4;
/// Maximum number of lines of a trie node's content to store.
const LINES: usize = 1 << 6;

impl Facts {
    /// Collects the evidence about a dump that its summary file stores. `summary` is the summary of the dump.
    ///
    /// Cost: inspects at most [`PLACES`] trie nodes. For each of them, reads a few thousand objects at most.
    pub(crate) fn gather(summary: &Summary, snapshot: &Snapshot) -> Option<Self> {
        let mut aligned = Aligned::new(std::slice::from_ref(summary))?;
        let trie = &summary.trie;
        let last = Last::Dump(snapshot);
        let limit = least(summary.info.reachable_bytes) / PART;
        let off_heap = off_heap(summary);
        let bytes = |s: StepId| {
            let outside = off_heap.get(&s).copied().unwrap_or(0);
            trie[s].retained_bytes.saturating_add(outside)
        };
        let mut steps: Vec<StepId> = (1..trie.len() as u32)
            .map(StepId)
            .filter(|&s| bytes(s) >= limit)
            .collect();
        steps.sort_by_key(|&s| (Reverse(bytes(s)), s));
        let least_bytes = steps.get(PLACES).map_or(limit, |&s| bytes(s));
        steps.truncate(PLACES);
        let fields = steps.iter().copied();
        let fields =
            fields.filter(|&s| trie.names.kind(trie[s].via) == LabelKind::ApplicationField);
        let containers = containers::containers_at(last, &aligned, fields);
        aligned.mark_containers(containers.iter().cloned());
        let usages = Usages::of(snapshot);
        let [command] = snapshot.system_properties(["sun.java.command"]);
        let (classes, of_step) = classes(snapshot, trie);
        let mut places = Places {
            usages: &usages,
            watched: usages.collections().map(|o| snapshot.name(o)).collect(),
            searches: HashMap::new(),
        };
        let mut found = BTreeMap::new();
        for (rank, &step) in steps.iter().enumerate() {
            let candidate = Candidate::of_step(trie, step);
            let summaries = std::slice::from_ref(summary);
            let context = SuspectContext::new(last, summaries, &aligned, &candidate);
            let facts = places.facts(&context, snapshot, step, rank < SEARCHED);
            if facts != PlaceFacts::default() {
                found.insert(step, facts);
            }
        }
        Some(Self {
            classes,
            of_step,
            places: found,
            least_bytes,
            containers,
            generated_alike: suspect::generated_alike(snapshot),
            shows_parked_frames: snapshot.shows_parked_frames(),
            unwatched: usages.unwatched(),
            unpacked_bytes: snapshot.source().len() as u64,
            command: command.map(|command| hprof::bytes::hash(command.trim().as_bytes())),
        })
    }
}

/// Returns, for each trie node, the memory outside of the heap that direct buffers in the node and its descendants own.
fn off_heap(summary: &Summary) -> BTreeMap<StepId, u64> {
    let mut all: BTreeMap<StepId, u64> = BTreeMap::new();
    for (&step, own) in &summary.stats.off_heap {
        for above in summary.trie.above(step) {
            let bytes = all.entry(above).or_default();
            *bytes = bytes.saturating_add(own.bytes);
        }
    }
    all
}

/// Collects the evidence about trie nodes that a summary file stores.
struct Places<'a> {
    usages: &'a Usages,
    /// Names of the classes of the collections that the agent watches.
    watched: BTreeSet<String>,
    /// The results of searches for paths to objects. The key is a flag and a list of objects. If the flag is false, the
    /// search was for paths to these objects. If it is true, the list has the samples of a trie node, and the search
    /// was for paths to all objects of this node.
    searches: HashMap<(bool, Vec<ObjectIndex>), Vec<SharedPath>>,
}

impl Places<'_> {
    fn facts(
        &mut self,
        context: &SuspectContext<'_>,
        snapshot: &Snapshot,
        step: StepId,
        is_searched: bool,
    ) -> PlaceFacts {
        let class = context.class(step);
        let reference = context.reference(step);
        let is_array = class.ends_with("[]");
        let is = |wanted: bool| wanted.then_some(());
        let paths = is_searched.then(|| self.paths(context, snapshot)).flatten();
        PlaceFacts {
            is_mostly_one: suspect::is_mostly_one(context, step),
            have_referents: reference == Some(Reference::Weak)
                && bounds::have_referents(context, step),
            is_linked_queue: detect::may_be_linked_queue(context, step)
                && detect::is_linked_queue(context, step),
            lack_queue: is(reference == Some(Reference::Soft))
                .and_then(|()| bounds::lack_queue(context, step)),
            held_elsewhere: is(detect::keeps_referent(class))
                .and_then(|()| detect::are_held_elsewhere(context, step)),
            empty_slots: is(is_array).and_then(|()| bounds::empty_slots(context, step)),
            self_holding: is(class == detect::WEAK_MAP_ENTRY)
                .and_then(|()| detect::self_holding_values(context, step)),
            cancelled: is(detect::is_task(context, step))
                .and_then(|()| detect::cancelled_tasks(context, step)),
            collections: bounds::collections_of_instance(context, step),
            limits: bounds::field_limits(context, step),
            maximum: bounds::library_maximum(context, step),
            equal_keys: is(detect::is_node(class)).and_then(|()| detect::equal_keys(context, step)),
            slices: is(detect::may_be_view(class)).and_then(|()| detect::slices(context, step)),
            watched: is(self.watched.contains(class))
                .and_then(|()| self.usages.of_step(context, step)),
            title: suspect::saved_title(context),
            holder: paths
                .as_ref()
                .map(|paths| suspect::holder_facts(context, paths)),
            paths,
            content: is_searched.then(|| {
                let mut content = joined::content(context, snapshot);
                content.truncate(LINES);
                content
            }),
        }
    }

    /// Returns the paths to the shared trie nodes (whose objects several references hold) on the path to a trie node.
    /// Returns `None` if all trie nodes together would need more searches than [`SEARCHES`].
    fn paths(
        &mut self,
        context: &SuspectContext<'_>,
        snapshot: &Snapshot,
    ) -> Option<Vec<suspect::PathsToShared>> {
        let searches = &mut self.searches;
        let mut is_complete = true;
        let mut find = |wanted: Wanted<'_>| {
            let key = match wanted {
                Wanted::These(objects) => (false, objects.to_vec()),
                Wanted::All { samples, .. } => (true, samples.to_vec()),
            };
            if let Some(known) = searches.get(&key) {
                return known.clone();
            }
            if searches.len() >= SEARCHES {
                is_complete = false;
                return Vec::new();
            }
            let found = suspect::find_shared_paths(snapshot, wanted);
            searches.insert(key, found.clone());
            found
        };
        let paths = suspect::paths_to_shared(context, &mut find);
        is_complete.then_some(paths)
    }
}

/// Returns two lists. The first has each class that objects of a trie node have, and its superclasses. The second has
/// the class of the objects of each trie node.
fn classes(snapshot: &Snapshot, trie: &Trie) -> (Vec<ClassFacts>, Vec<StepClass>) {
    let mut known: HashMap<ClassIndex, u32> = HashMap::new();
    let mut list: Vec<ClassFacts> = Vec::new();
    let mut number = |class: ClassIndex| {
        let mut chain: Vec<ClassIndex> = snapshot.classes().chain(class).collect();
        chain.reverse();
        let mut superclass = None;
        for class in chain {
            let number = *known.entry(class).or_insert_with(|| {
                let of = &snapshot.classes()[class];
                list.push(ClassFacts {
                    name: of.name.to_string(),
                    superclass,
                    is_of_boot: of.loader.is_null(),
                    reference: of.reference,
                    limits: bounds::static_limits(snapshot, class),
                });
                (list.len() - 1) as u32
            });
            superclass = Some(number);
        }
        superclass
    };
    let steps = (0..trie.len() as u32).map(StepId).map(|step| {
        let Some(&sample) = trie[step].samples.first() else {
            return StepClass::Unknown;
        };
        let of = match snapshot.represents(sample) {
            Some(class) => number(class).map(StepClass::Represented),
            None => snapshot
                .class_of(sample)
                .and_then(&mut number)
                .map(StepClass::Instance),
        };
        of.unwrap_or_default()
    });
    let steps = steps.collect();
    (list, steps)
}
