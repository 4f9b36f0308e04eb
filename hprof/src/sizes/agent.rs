//! The layout that the allocation sites of the hprof agent of JDK 5 to 8 speak for.
//!
//! The agent numbers objects, so distances between ids say nothing; but it may write, beside a heap, for each class the
//! number of live objects and their bytes as the JVM told them. Among these is the class object, whose size is one
//! figure for most classes. So under the JVM's own layout the bytes that a class's instances leave over are that figure
//! for most classes, and under another layout they are not.

use rustc_hash::FxHashMap as HashMap;

use crate::ids::{ClassIndex, ObjectId};
use crate::records::classes::Classes;
use crate::records::outline::LiveObjects;
use crate::sizes::fields::{Model, Order};
use crate::sizes::layout::{COMPRESSED, Gap, Layouts};

/// With fewer instances a larger class object may pass for larger instances.
const MANY: u64 = 64;
/// Fewer classes may agree by chance.
const LEAST: usize = 8;

/// The layouts of the JVMs that had this agent: of 64 bits with and without compressed references, of 32 bits.
const MODELS: [Model; 3] = [
    COMPRESSED,
    Model {
        reference: 8,
        header: 16,
        array_header: 24,
        align: 8,
        order: Order::Classic,
    },
    Model {
        reference: 4,
        header: 8,
        array_header: 12,
        align: 8,
        order: Order::Classic,
    },
];

/// A layout, and how many of how many classes speak for it.
pub(super) struct Agreed {
    pub(super) model: Model,
    pub(super) classes: usize,
    pub(super) of: usize,
    /// Bytes of most class objects.
    class_object: u64,
}

impl Agreed {
    /// `None` where no more than half of the classes agree with any layout.
    pub(super) fn new(classes: &Classes, gaps: &[Gap], live: &LiveObjects) -> Option<Self> {
        // With one object alone, which is the class object, any layout agrees.
        let told: Vec<(ClassIndex, u64, u64)> = live
            .iter()
            .filter(|&(_, &(objects, _))| objects > 1)
            .filter_map(|(&id, &(objects, bytes))| {
                let class = classes.by_id(ObjectId(id))?;
                (&*classes[class].name != "java.lang.Class").then_some((class, objects, bytes))
            })
            .collect();
        let mut best: Option<Self> = None;
        for model in MODELS {
            let mut layouts = Layouts::new(classes, &model, gaps, false);
            let mut left: HashMap<u64, usize> = HashMap::default();
            for &(class, objects, bytes) in &told {
                let size = model.size(&layouts.of(class));
                let instances = (objects - 1).saturating_mul(size);
                if let Some(rest) = bytes.checked_sub(instances) {
                    *left.entry(rest).or_default() += 1;
                }
            }
            let most = left.into_iter().max_by_key(|&(rest, n)| (n, rest));
            let (class_object, agree) = most.unwrap_or_default();
            if best.as_ref().is_none_or(|b| agree > b.classes) {
                best = Some(Self {
                    model,
                    classes: agree,
                    of: told.len(),
                    class_object,
                });
            }
        }
        best.filter(|b| b.classes >= LEAST && b.classes * 2 > b.of)
    }

    /// The size of an instance of a class with so many live objects of so many bytes; `None` where it does not show.
    pub(super) fn instance(&self, (objects, bytes): (u64, u64)) -> Option<u64> {
        let instances = objects.checked_sub(1).filter(|&n| n >= MANY)?;
        let bytes = bytes.checked_sub(self.class_object)?;
        let size = bytes / instances;
        let is_size = size * instances == bytes
            && size.is_multiple_of(u64::from(self.model.align))
            && size >= u64::from(self.model.header);
        is_size.then_some(size)
    }
}
