//! The dump that a report describes.

use schemars::JsonSchema;
use serde::Serialize;

use crate::diff::{self, AgentInfo, AssumedRoots, LayoutInfo};

/// One dump, as every report describes it.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct SnapshotInfo {
    /// Path of the dump as given on the command line.
    pub path: String,
    /// Size of the file on disk in bytes. For a compressed file, this is the compressed size.
    pub bytes: u64,
    /// When the dump was taken, in milliseconds since 1970, UTC.
    pub taken_ms: u64,
    /// Bytes of an object id in the file.
    #[schemars(extend("enum" = [4, 8]))]
    pub id_size: u32,
    /// Version of the JVM: java.vm.version in the system properties of the heap; null if it was not found, or
    /// not searched for.
    pub jvm: Option<String>,
    /// The JVM's object layout, on which shallow sizes are based.
    pub layout: LayoutInfo,
    /// Number of objects in the dump, class objects included, reachable or not.
    pub objects: u64,
    /// Number of objects that a GC root reaches by references that retain (--refs); null if no graph was built
    /// (histo without --retained).
    pub reachable_objects: Option<u64>,
    /// Shallow bytes of the reachable objects; null if no graph was built.
    pub reachable_bytes: Option<u64>,
    /// Shallow bytes of the objects that no GC root reaches; null if no graph was built.
    pub unreachable_bytes: Option<u64>,
    /// True if the figures lack some of the dump's content because of damage or missing GC roots.
    pub partial: bool,
    /// Damage, missing data and oddities of the dump, one sentence each.
    pub warnings: Vec<String>,
    /// Objects without referrers that are treated as GC roots, because the dump is complete but lacks roots. Such dumps
    /// have no frames of parked virtual threads (JDK 19 to 21), or were written by jhsdb. Missing for other dumps, and
    /// if no graph was built.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "AssumedRoots")]
    pub assumed_roots: Option<AssumedRoots>,
    /// The agent. Null if it was not loaded, or if no graph was built.
    pub agent: Option<AgentInfo>,
}

impl From<&diff::SnapshotInfo> for SnapshotInfo {
    /// Converts the description of a dump of a comparison. The comparison has built the dump's graph, so the figures of
    /// the graph are known.
    fn from(info: &diff::SnapshotInfo) -> Self {
        Self {
            path: info.path.clone(),
            bytes: info.bytes,
            taken_ms: info.taken_ms,
            id_size: info.id_size,
            jvm: info.jvm.clone(),
            layout: info.layout.clone(),
            objects: info.objects,
            reachable_objects: Some(info.reachable_objects),
            reachable_bytes: Some(info.reachable_bytes),
            unreachable_bytes: Some(info.unreachable_bytes),
            partial: info.partial,
            warnings: info.warnings.clone(),
            assumed_roots: info.assumed_roots.clone(),
            agent: info.agent.clone(),
        }
    }
}
