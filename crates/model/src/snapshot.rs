//! The dump that a report is of.

use serde::Serialize;

use crate::diff::{self, AgentInfo, AssumedRoots, LayoutInfo};

/// One dump, as every report describes it.
#[derive(Clone, Debug, Serialize)]
pub struct SnapshotInfo {
    /// The path as given.
    pub path: String,
    /// The file's size on disk.
    pub bytes: u64,
    /// When it was taken, milliseconds since 1970.
    pub taken_ms: u64,
    /// Bytes of an identifier in the file.
    pub id_size: u32,
    /// The JVM's version; `None` where nothing tells it.
    pub jvm: Option<String>,
    /// The JVM's object layout.
    pub layout: LayoutInfo,
    /// All objects of the dump, class objects included.
    pub objects: u64,
    /// `None` where no graph was built.
    pub reachable_objects: Option<u64>,
    /// Shallow bytes of the objects that GC roots reach; `None` where no graph was built.
    pub reachable_bytes: Option<u64>,
    /// Shallow bytes of garbage; `None` where no graph was built.
    pub unreachable_bytes: Option<u64>,
    /// True if damage or missing GC roots keep some of the dump out of the figures.
    pub partial: bool,
    /// What was damaged or missing.
    pub warnings: Vec<String>,
    /// Objects that count as GC roots because the dump lacks roots; `None` elsewhere, and where no graph was built.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assumed_roots: Option<AssumedRoots>,
    /// `None` without the agent, and where no graph was built.
    pub agent: Option<AgentInfo>,
}

impl From<&diff::SnapshotInfo> for SnapshotInfo {
    /// A dump whose graph was built, with weaker references as they count by default.
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
