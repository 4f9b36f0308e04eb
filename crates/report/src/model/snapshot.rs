//! The dump that a report is of.

use heapdiff_diff::{AgentInfo, AssumedRoots, LayoutInfo};
use serde::Serialize;

use super::Condition;

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
    pub id_size: usize,
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
    /// Whether weak and phantom references, too, count as holding (`--refs all`).
    #[serde(skip)]
    pub holds_weakly: bool,
}

impl From<&heapdiff_diff::SnapshotInfo> for SnapshotInfo {
    /// A dump whose graph was built, with weaker references as they count by default.
    fn from(info: &heapdiff_diff::SnapshotInfo) -> Self {
        Self {
            path: info.path.clone(),
            bytes: info.bytes,
            taken_ms: info.taken_ms,
            id_size: info.id_size as usize,
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
            holds_weakly: false,
        }
    }
}

impl SnapshotInfo {
    /// The state of the dump.
    #[must_use]
    pub fn condition(&self) -> Condition<'_> {
        Condition {
            path: &self.path,
            partial: self.partial,
            lacks_roots: self.assumed_roots.is_some(),
            warnings: &self.warnings,
        }
    }
}
