//! Finds the agent's own objects in a dump. They are left out of all figures about the program's heap.

use std::collections::BTreeSet;

use heapdiff_sites::{CLASS, FORMAT, LABELS_CLASS, statics};
use hprof::answers::{Content, Value};
use hprof::records::RootKind;
use hprof::sizes::{ClassTotal, Total};
use hprof::{ClassIndex, ObjectIndex, Snapshot};

/// Name of the agent's thread.
pub(crate) const THREAD: &str = "heapdiff agent";
/// Number of references to follow from the objects in the agent's static fields. The longest path has three references:
/// array of chunks -> chunk -> object that watches a collection -> its array of counts.
const DEEP: usize = 3;
/// Maximum number of dominators of an agent object to visit. 64 is enough, because these objects are close to the GC
/// roots.
const DEPTH: usize = 64;

/// Returns the class whose static fields lead to all of the agent's objects. Returns `None` if the dump was taken
/// without the agent, or before the agent was set up.
pub(crate) fn agent_class(snapshot: &Snapshot) -> Option<ClassIndex> {
    let classes = snapshot.classes();
    let of_boot = |&&c: &&ClassIndex| classes[c].loader.is_null();
    let class = classes.by_name(CLASS).iter().find(of_boot).copied()?;
    let format = snapshot.static_value(class, statics::FORMAT)?.integer()?;
    (format != 0).then_some(class)
}

/// True if a class belongs to the agent.
#[must_use]
pub fn is_agent_class(class: &hprof::records::Class) -> bool {
    class.loader.is_null() && [CLASS, LABELS_CLASS].contains(&&*class.name)
}

/// The agent's objects in a dump: its classes, the samples, its thread, and the arrays and other parts of the table to
/// which its static fields lead.
#[derive(Clone, Debug, Default)]
pub struct AgentObjects {
    objects: Vec<ObjectIndex>,
    /// A bit set with a bit for each object of the dump, set if the object is the agent's. Empty if there is no agent.
    bits: Vec<u64>,
}

impl AgentObjects {
    /// Finds the objects in the dump that belong to the agent.
    ///
    /// Cost: nothing in a dump without the agent. Otherwise, checks the class of each object and reads the agent's
    /// arrays from the file. The result has one bit for each object of the dump.
    #[must_use]
    pub fn find(snapshot: &Snapshot) -> Self {
        let Some(class) = agent_class(snapshot) else {
            return Self::default();
        };
        let known = snapshot.static_value(class, statics::FORMAT);
        if known.and_then(Value::integer) != Some(i64::from(FORMAT)) {
            // The dump was written by an agent with another version of the format. This program cannot read its arrays.
            return Self::new(snapshot, snapshot.instances(&[class]));
        }
        let mut objects: BTreeSet<ObjectIndex> = snapshot.instances(&[class]).into_iter().collect();
        let classes = snapshot.classes();
        let labels = classes.by_name(LABELS_CLASS).iter().copied();
        let own = labels
            .filter(|&c| is_agent_class(&classes[c]))
            .chain([class]);
        objects.extend(own.map(|class| ObjectIndex(class.0)));
        // The agent's static fields hold arrays of chunks, and a reference queue with its lock.
        let fields = snapshot.classes()[class].statics.iter();
        let mut level: Vec<ObjectIndex> = fields
            .filter_map(|f| snapshot.static_value(class, &f.name)?.object())
            .filter(|&o| snapshot.represents(o).is_none())
            .collect();
        for _ in 0..DEEP {
            level.retain(|o| !objects.contains(o));
            objects.extend(&level);
            let below: BTreeSet<ObjectIndex> = snapshot
                .read_all(&level)
                .into_iter()
                .flatten()
                .flat_map(|record| targets(&record.content))
                .filter(|&o| is_table_part(snapshot, o))
                .collect();
            level = below.into_iter().collect();
        }
        objects.extend(level);
        objects.extend(thread(snapshot));
        Self::new(snapshot, objects.into_iter().collect())
    }

    fn new(snapshot: &Snapshot, objects: Vec<ObjectIndex>) -> Self {
        let words = snapshot.object_count().div_ceil(64);
        let mut bits = vec![0_u64; usize::try_from(words).unwrap_or(0)];
        for object in &objects {
            if let Some(word) = bits.get_mut(object.index() / 64) {
                *word |= 1 << (object.0 % 64);
            }
        }
        Self { objects, bits }
    }

    /// True if an object belongs to the agent.
    #[inline]
    #[must_use]
    pub fn contains(&self, object: ObjectIndex) -> bool {
        let word = self.bits.get(object.index() / 64);
        word.is_some_and(|word| word >> (object.0 % 64) & 1 != 0)
    }

    /// Returns the agent's objects, ascending.
    #[must_use]
    pub fn objects(&self) -> &[ObjectIndex] {
        &self.objects
    }

    /// True if the dump contains no object of the agent.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// Returns the number and the bytes of the agent's objects.
    #[must_use]
    pub fn total(&self, snapshot: &Snapshot) -> Total {
        sum(snapshot, self.objects.iter())
    }

    /// Returns the number and the bytes of the agent's reachable objects.
    #[must_use]
    pub fn reachable(&self, snapshot: &Snapshot) -> Total {
        let tree = snapshot.tree();
        sum(
            snapshot,
            self.objects.iter().filter(|&&o| tree.is_reachable(o)),
        )
    }

    /// Subtracts the agent's objects from a class histogram.
    ///
    /// The retained size of a class includes each object that an instance of the class dominates. The bytes of an agent
    /// object are therefore also subtracted from the classes of its dominators.
    pub fn subtract_from(&self, snapshot: &Snapshot, totals: &mut [ClassTotal]) {
        let tree = snapshot.tree();
        let class = |object| snapshot.class_of(object).or_else(|| snapshot.class_class());
        for &object in &self.objects {
            let bytes = snapshot.shallow_bytes(object);
            let Some(own) = class(object).and_then(|c| totals.get_mut(c.index())) else {
                continue;
            };
            take(&mut own.all, bytes);
            if !tree.is_reachable(object) {
                continue;
            }
            take(&mut own.reachable, bytes);
            let above = std::iter::successors(Some(object), |&o| tree.object(tree.dominator(o)?));
            let classes: BTreeSet<usize> = above
                .take(DEPTH)
                .filter_map(class)
                .map(ClassIndex::index)
                .collect();
            for class in classes {
                if let Some(total) = totals.get_mut(class) {
                    total.retained_bytes = total.retained_bytes.saturating_sub(bytes);
                }
            }
        }
    }
}

fn take(total: &mut Total, bytes: u64) {
    total.objects = total.objects.saturating_sub(1);
    total.bytes = total.bytes.saturating_sub(bytes);
}

fn sum<'a>(snapshot: &Snapshot, objects: impl Iterator<Item = &'a ObjectIndex>) -> Total {
    let mut total = Total::default();
    for &object in objects {
        let bytes = snapshot.shallow_bytes(object);
        total += Total { objects: 1, bytes };
    }
    total
}

fn targets(content: &Content<'_>) -> Vec<ObjectIndex> {
    match content {
        Content::Array(array) => array
            .elements(0..array.len)
            .filter_map(Value::object)
            .collect(),
        Content::Instance(fields) => {
            let values = fields.iter().filter_map(|f| f.value);
            values.filter_map(Value::object).collect()
        }
        Content::Class(_) => Vec::new(),
    }
}

/// True if the object can be part of the structure that holds the agent's samples: an array, a reference queue with its
/// lock, or an object that counts collection usage. False for samples: they have a class of their own.
fn is_table_part(snapshot: &Snapshot, object: ObjectIndex) -> bool {
    const PARTS: [&str; 8] = [
        heapdiff_sites::usage::CLASS,
        "java.lang.Object[]",
        "byte[]",
        "int[]",
        "long[]",
        "java.lang.ref.ReferenceQueue",
        "java.lang.ref.ReferenceQueue$Lock",
        "java.util.concurrent.locks.ReentrantLock",
    ];
    snapshot.represents(object).is_none()
        && snapshot
            .class(object)
            .is_some_and(|c| PARTS.contains(&&*c.name))
}

/// Returns the agent's thread object, its name string with the string's array, and the object in its field `holder`,
/// which newer JDKs have.
fn thread(snapshot: &Snapshot) -> Vec<ObjectIndex> {
    let roots = snapshot.tree().roots();
    let threads: Vec<ObjectIndex> = roots
        .filter(|&(object, kind)| {
            let is_plain =
                |c: &hprof::records::Class| c.loader.is_null() && &*c.name == "java.lang.Thread";
            kind == RootKind::Thread && snapshot.class(object).is_some_and(is_plain)
        })
        .map(|(object, _)| object)
        .collect();
    let fields = snapshot.field_values(&threads, ["name", "holder"]);
    let object = |value: Option<Value>| value.and_then(Value::object);
    let mut found = Vec::new();
    for (&thread, fields) in threads.iter().zip(fields) {
        let Some([name, holder]) = fields else {
            continue;
        };
        let Some(name) = object(name) else { continue };
        if snapshot.string(name, 2 * THREAD.len()).as_deref() != Some(THREAD) {
            continue;
        }
        let text = snapshot.field_values(&[name], ["value"]);
        let text = text.into_iter().flatten().flatten().next().flatten();
        found.extend([Some(thread), Some(name), object(text), object(holder)]);
    }
    found.into_iter().flatten().collect()
}
