//! Summaries. One dump is reduced to the data that a comparison needs, so that only one dump has to be in memory at a
//! time.

pub(crate) mod kept;
pub(crate) mod stats;

use std::collections::BTreeMap;

use heapdiff_model::diff::SnapshotInfo;
use heapdiff_sites::Known;
use hprof::Snapshot;
use hprof::dominators::Node;
use hprof::sizes::Total;

use crate::facts::Facts;
use crate::names;
use crate::origin::Origin;
use crate::samples::attribution::Attribution;
use crate::samples::{AgentObjects, Samples};
use crate::snapshot_info::{assumed_roots, layout_info};
use crate::summary::stats::DumpStats;
use crate::trie::Trie;

/// The key of a class across dumps: its name, and the class of its loader (`None` for the boot loader).
pub(crate) type ClassKey = (String, Option<String>);

/// Figures of a class in one dump.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClassFigures {
    pub(crate) reachable: Total,
    pub(crate) retained_bytes: u64,
}

/// One dump reduced to the data of a comparison: class totals, the folded dominator tree, samples. In the folded tree,
/// children of a node are merged if they have the same class and the same field holds them.
///
/// A summary takes a few megabytes for usual heaps, whatever their size. Once the summary exists, the dump is not
/// needed any more.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Description of the dump.
    pub info: SnapshotInfo,
    pub(crate) classes: BTreeMap<ClassKey, ClassFigures>,
    /// The folded dominator tree.
    pub(crate) trie: Trie,
    /// The samples, placed in the trie.
    pub(crate) allocated: Option<Attribution>,
    pub(crate) stats: DumpStats,
    /// The JVM process and the program from which the dump was taken.
    pub(crate) origin: Origin,
    /// The mapping (ProGuard, R8) that restored the names in the summary. `None` if there was no mapping.
    pub(crate) names: Option<Names>,
    /// The evidence that a comparison reads from its last dump. If the summary has it, the summary can replace the last
    /// dump. Only summary files have it.
    pub(crate) facts: Option<Facts>,
    /// The recordings that were matched with the dump. Only summary files have them.
    pub recordings: Vec<SavedRecording>,
}

/// A recording that was matched with a dump, as a summary file stores it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SavedRecording {
    /// The name that reports give the recording.
    pub path: String,
    /// How the recording was matched with the dump. The reader of recordings defines the words.
    pub matched: String,
    /// The evidence from the recording. The reader of recordings defines its format.
    pub evidence: Vec<u8>,
}

/// Identifies the mapping (ProGuard, R8) that restored the names in a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Names {
    /// Value of [`NameMapping::hash`](hprof::NameMapping::hash).
    pub(crate) hash: u64,
    /// True if the mapping contains at least one class of the dump.
    pub(crate) fits: bool,
}

impl Summary {
    /// Returns the number of reachable instances of all classes of this name.
    pub(crate) fn instances(&self, class: &str) -> u64 {
        self.reachable_instances(class).objects
    }

    /// Returns the number and the bytes of reachable instances of all classes of this name.
    pub(crate) fn reachable_instances(&self, class: &str) -> Known {
        let from = (class.to_owned(), None);
        let lines = self.classes.range(from..);
        let mut all = Known::default();
        for (_, figures) in lines.take_while(|(key, _)| key.0 == class) {
            all.add(Known {
                objects: figures.reachable.objects,
                bytes: figures.reachable.bytes,
            });
        }
        all
    }

    /// Returns the names of the classes that have reachable instances.
    #[doc(hidden)]
    pub fn class_names(&self) -> impl Iterator<Item = &str> {
        self.classes.keys().map(|(name, _)| &**name)
    }

    /// Returns the size of the decompressed dump in bytes. Only summaries from summary files have it.
    #[doc(hidden)]
    #[must_use]
    pub fn unpacked_bytes(&self) -> Option<u64> {
        Some(self.facts.as_ref()?.unpacked_bytes)
    }

    /// Returns the [hash](hprof::bytes::hash) of the JVM's command. Only summaries from summary files have it.
    #[doc(hidden)]
    #[must_use]
    pub fn command_hash(&self) -> Option<u64> {
        self.facts.as_ref()?.command
    }

    /// Summarizes a dump. `path` is the name that the report gives the dump.
    ///
    /// Cost: one pass over the file and one over the dominator tree, with two bytes of memory for each object during
    /// the passes.
    ///
    /// # Errors
    /// Returns an error if memory for the passes runs out.
    pub fn new(snapshot: &Snapshot, path: String) -> hprof::Result<Self> {
        let holders = snapshot.holders()?;
        let agent_objects = AgentObjects::find(snapshot);
        let trie = Trie::new(snapshot, &holders, &agent_objects);
        let (samples, fault) = Samples::from_snapshot(snapshot, &agent_objects);
        let agent = samples.as_ref().and_then(Samples::info);
        let allocated = samples.map(|s| Attribution::new(snapshot, &holders, &trie, s));
        let stats = DumpStats::new(snapshot, &holders, &trie);
        drop(holders);
        let mut classes: BTreeMap<ClassKey, ClassFigures> = BTreeMap::new();
        let mut all = Total::default();
        let mut totals = snapshot.histogram();
        agent_objects.subtract_from(snapshot, &mut totals);
        for ((_, class), total) in snapshot.classes().iter().zip(totals) {
            all += total.all;
            if total.reachable.objects == 0 {
                continue;
            }
            let loader = (!class.loader.is_null()).then(|| {
                snapshot.find(class.loader).map_or_else(
                    || "(unknown loader)".to_owned(),
                    |l| names::name_of(snapshot, l),
                )
            });
            // Loaders cannot be identified across dumps, because their ids change. If a web application is deployed
            // twice, two loaders of the same class define classes of the same name. The figures of such classes are
            // therefore added up. The figures of generated classes whose names differ only in an address or a number
            // are added up, too.
            let line = classes
                .entry((names::stable(&class.name).into_owned(), loader))
                .or_default();
            line.reachable += total.reachable;
            line.retained_bytes += total.retained_bytes;
        }
        let reachable = agent_objects.reachable(snapshot);
        let reachable_objects = snapshot.tree().retained_objects(Node::ROOT);
        let reachable_objects = reachable_objects.saturating_sub(reachable.objects);
        let reachable = snapshot
            .tree()
            .retained_bytes(Node::ROOT)
            .saturating_sub(reachable.bytes);
        let origin = Origin::from_snapshot(snapshot, agent.as_ref());
        let info = SnapshotInfo {
            path,
            bytes: snapshot.source().file_bytes(),
            taken_ms: snapshot.header().taken_ms,
            id_size: snapshot.header().id_size as u32,
            jvm: snapshot.jvm(),
            layout: layout_info(snapshot.layout()),
            objects: snapshot.object_count() - agent_objects.total(snapshot).objects,
            reachable_objects,
            reachable_bytes: reachable,
            unreachable_bytes: all.bytes.saturating_sub(reachable),
            partial: snapshot.is_partial(),
            warnings: snapshot
                .warnings()
                .iter()
                .chain(&snapshot.layout_doubt())
                .map(ToString::to_string)
                .chain(fault)
                .collect(),
            assumed_roots: assumed_roots(snapshot),
            agent,
        };
        Ok(Self {
            info,
            classes,
            trie,
            allocated,
            stats,
            origin,
            names: snapshot.mapping().map(|mapping| Names {
                hash: mapping.hash(),
                fits: mapping.fits(),
            }),
            facts: None,
            recordings: Vec::new(),
        })
    }
}
