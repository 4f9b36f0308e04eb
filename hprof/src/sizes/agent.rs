//! Infers the layout from the allocation sites in dumps of the hprof agent of JDK 5 to 8.
//!
//! The agent numbers objects, so ids are not addresses and their distances show no sizes. But together with a heap, the
//! agent may write for each class the number of live objects and their bytes, as the JVM reported them. These figures
//! include the class object, whose size is the same for most classes. So with the JVM's own layout, the following
//! equation gives the same number for most classes. With other layouts, it does not:
//!
//! ```text
//! size of the class object = bytes - (objects - 1) * size of an instance
//! ```

use rustc_hash::FxHashMap as HashMap;

use crate::ids::{ClassIndex, ObjectId};
use crate::records::classes::Classes;
use crate::records::outline::LiveObjects;
use crate::sizes::fields::{Model, Order};
use crate::sizes::layout::{COMPRESSED, Gap, Layouts};

/// Minimum number of instances that a class must have to compute the size of an instance. With fewer instances, an
/// unusually large class object could make the instances appear larger.
const MANY: u64 = 64;
/// Minimum number of classes that must agree. Fewer classes might agree by coincidence.
const LEAST: usize = 8;

/// The object layouts of JVMs with the hprof agent: 64 bits with compressed references, 64 bits without, and 32 bits.
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

/// An object layout, and the number of classes that agree with it. `of` is the number of classes that were compared.
pub(super) struct Agreed {
    pub(super) model: Model,
    pub(super) classes: usize,
    pub(super) of: usize,
    /// The size of most class objects, in bytes.
    class_object: u64,
}

impl Agreed {
    /// Finds the object layout with which the most classes agree. Returns `None` unless at least [`LEAST`] classes, and
    /// more than half of the compared classes, agree with it.
    pub(super) fn new(classes: &Classes, gaps: &[Gap], live: &LiveObjects) -> Option<Self> {
        // A class without instances (its only live object is the class object) agrees with any layout, so it is left
        // out.
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

    /// Returns the size of an instance of a class, computed from the number and the total bytes of its live objects.
    /// `None` if the figures do not determine it.
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
