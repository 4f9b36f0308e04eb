//! One dump reduced to what a comparison needs, so that a diff takes the memory of one dump.

pub(crate) mod kept;
pub(crate) mod stats;

use std::collections::BTreeMap;

use heapdiff_model::diff::SnapshotInfo;
use heapdiff_sites::Known;
use hprof::Snapshot;
use hprof::dominators::Node;
use hprof::sizes::Total;

use crate::names;
use crate::origin::Origin;
use crate::samples::attribution::Attribution;
use crate::samples::{AgentObjects, Samples};
use crate::snapshot_info::{assumed_roots, layout_info};
use crate::summary::stats::DumpStats;
use crate::trie::Trie;

/// A class among several dumps: its name and its loader's class (`None` for the boot loader).
pub(crate) type ClassKey = (String, Option<String>);

/// A class's figures in one dump.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClassFigures {
    pub(crate) reachable: Total,
    pub(crate) retained_bytes: u64,
}

/// One dump reduced to what a comparison needs of it: class totals, the folded dominator tree, samples.
///
/// It takes a few megabytes for usual heaps, of any size, and does not need the dump any more.
#[derive(Clone, Debug)]
pub struct Summary {
    /// The dump.
    pub info: SnapshotInfo,
    pub(crate) classes: BTreeMap<ClassKey, ClassFigures>,
    /// Its dominator tree, folded.
    pub(crate) trie: Trie,
    /// Where its samples are in the trie.
    pub(crate) allocated: Option<Attribution>,
    pub(crate) stats: DumpStats,
    /// The JVM that it is of.
    pub(crate) origin: Origin,
    /// The mapping that names are from.
    pub(crate) names: Option<Names>,
}

/// A mapping that names are from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Names {
    /// Its [`NameMapping::hash`](hprof::NameMapping::hash).
    pub(crate) hash: u64,
    /// Whether it has any class of the dump.
    pub(crate) fits: bool,
}

impl Summary {
    /// Reachable instances of the classes of this name.
    pub(crate) fn instances(&self, class: &str) -> u64 {
        self.known(class).objects
    }

    /// Reachable instances of the classes of this name with their bytes.
    pub(crate) fn known(&self, class: &str) -> Known {
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

    /// Reduces a dump. `path` is the name that the report gives it.
    ///
    /// Cost: one pass over the file and one over the dominator tree; two bytes an object meanwhile.
    ///
    /// # Errors
    /// When there is no memory for the pass.
    pub fn new(snapshot: &Snapshot, path: String) -> hprof::Result<Self> {
        let holders = snapshot.holders()?;
        let agent_objects = AgentObjects::of(snapshot);
        let trie = Trie::new(snapshot, &holders, &agent_objects);
        let (samples, fault) = Samples::of(snapshot, &agent_objects);
        let agent = samples.as_ref().and_then(Samples::info);
        let allocated = samples.map(|s| Attribution::new(snapshot, &holders, &trie, s));
        let stats = DumpStats::new(snapshot, &holders, &trie);
        drop(holders);
        let mut classes: BTreeMap<ClassKey, ClassFigures> = BTreeMap::new();
        let mut all = Total::default();
        let mut totals = snapshot.histogram();
        agent_objects.take_from(snapshot, &mut totals);
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
            // Classes of one name by loaders of one class (a web application deployed twice) are one line,
            // because loaders cannot be told apart across dumps: their ids change. So are generated classes that
            // only an address or a number tells apart.
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
        let origin = Origin::of(snapshot, agent.as_ref());
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
        })
    }
}
