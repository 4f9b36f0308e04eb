//! Finds the field through which each object's dominator holds it.

use std::sync::atomic::{AtomicU16, Ordering};

use rayon::prelude::*;

use crate::bytes::array::Array;
use crate::bytes::mem;
use crate::dominators::held::code;
use crate::dominators::tree::Node;
use crate::error::Result;
use crate::ids::{ClassIndex, NONE, ObjectId, ObjectIndex};
use crate::records::classes::{RecordLayout, Reference};
use crate::records::outline::Segment;
use crate::records::record::Kind;
use crate::records::walk::{self, Object, Visitor, read_id};
use crate::snapshot::Snapshot;

/// The way in which an object's immediate dominator holds the object.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Hold {
    /// The dominator does not hold the object directly: several paths lead from the dominator to the object, and no
    /// object in between is on all of them.
    Shared,
    /// An element of an array holds the object.
    Element,
    /// An instance field of the dominator holds the object. The values are the class that declares the field, and the
    /// field's index among that class's fields.
    Field(ClassIndex, u16),
    /// The dominator is a class object, and a static field of its class holds the object. The values are the class, and
    /// the field's index among the class's static fields.
    Static(ClassIndex, u16),
    /// The object is a class object, and the dominator is an instance of the class.
    Class,
    /// The object is a class object, and the dominator is the loader of the class.
    Loader,
    /// The dominator is a class object, and the object is the superclass, loader, signers, protection domain or
    /// constant pool of the class.
    ClassPart,
    /// A local variable, or another reference from a thread's stack, holds the object.
    Local,
}

/// For every object, the way in which its immediate dominator holds it. See [`Snapshot::holders`].
#[derive(Debug)]
pub struct Holders {
    /// Indexed by object number: 0 if the dominator does not hold the object directly, otherwise the code of a
    /// reference (see [`code`]).
    slots: Array<u16>,
}

impl Snapshot {
    /// Finds, for every reachable object, the reference from its immediate dominator. If the dominator has several
    /// references to the object, the result is the first one in the dominator's record.
    ///
    /// Cost: two bytes for each object. If the option [`Options::holders`](crate::Options::holders) was set for the
    /// analysis, the first call takes almost no time. All other calls take one pass over the file.
    ///
    /// # Errors
    /// If there is not enough memory for the result.
    pub fn holders(&self) -> Result<Holders> {
        let noted = self.noted.lock().ok().and_then(|mut noted| noted.take());
        if let Some(mut slots) = noted {
            let shared = mem::as_atomic_u16(&mut slots);
            self.class_objects_hold(shared);
            self.instances_hold_classes(shared);
            self.record_implicit(shared);
            return Ok(Holders { slots });
        }
        let mut slots: Array<u16> = self.store.zeroed(self.object_count() as usize)?;
        let shared = mem::as_atomic_u16(&mut slots);
        self.class_objects_hold(shared);
        self.pieces.par_iter().for_each(|piece| {
            let Segment { start, end } = piece.segment;
            self.dump.source.advise_sequential(start, end - start);
            match self.dump.header.id_size {
                8 => self.hold_in::<8>(start, end, shared),
                _ => self.hold_in::<4>(start, end, shared),
            }
        });
        self.record_implicit(shared);
        Ok(Holders { slots })
    }

    /// Stores the codes of references that no record contains: references from a thread to its local variables, and
    /// from a loader to its classes. Call this function last: it does not replace a code that is already stored.
    fn record_implicit(&self, shared: &[AtomicU16]) {
        let threads: std::collections::HashMap<u32, ObjectIndex> = self
            .roots
            .iter()
            .filter(|r| r.kind == crate::records::walk::RootKind::Thread)
            .filter_map(|r| Some((r.thread, self.find(r.id)?)))
            .collect();
        for root in self.roots.iter().filter(|r| r.kind.belongs_to_thread()) {
            if let (Some(&thread), Some(object)) = (threads.get(&root.thread), self.find(root.id)) {
                self.hold(shared, self.tree().node(thread), object.0, code::LOCAL);
            }
        }
        let classes = self.classes().iter().take(self.split.classes as usize);
        for (i, class) in classes.filter(|(_, class)| class.held_by_loader) {
            let loader = self.find(class.loader).and_then(|l| self.tree().node(l));
            self.hold(shared, loader, i.0, code::LOADER);
        }
    }

    /// Stores [`code::CLASS`] for each class object whose dominator is an instance of the class. An instance refers to
    /// its class, but the graph's adjacency lists do not contain this reference.
    fn instances_hold_classes(&self, slots: &[AtomicU16]) {
        for class in (0..self.split.classes).map(ClassIndex) {
            let node = self.tree().dominator(ObjectIndex(class.0));
            let Some(above) = node.and_then(|n| self.tree().object(n)) else {
                continue;
            };
            let is_array = self.array_length(above).is_some();
            if above.0 >= self.split.classes
                && self.class_of(above) == Some(class)
                && (is_array || !self.classes()[class].loader.is_null())
            {
                self.hold(slots, node, class.0, code::CLASS);
            }
        }
    }

    /// Stores `code` for `target` if `from` is the target's dominator and no code is stored yet.
    #[inline(always)]
    fn hold(&self, slots: &[AtomicU16], from: Option<Node>, target: u32, code: u16) {
        let Some(from) = from else { return };
        if target != NONE && self.tree().dominator(ObjectIndex(target)) == Some(from) {
            // The load and the store need not be one atomic operation: only one task writes to a slot, the task that
            // reads the record of the target's dominator.
            let slot = &slots[target as usize];
            if slot.load(Ordering::Relaxed) == 0 {
                slot.store(code, Ordering::Relaxed);
            }
        }
    }

    /// Calls [`Snapshot::hold`] for each reference of `batch`, and empties `batch`. Each reference needs memory at four
    /// unrelated addresses. So three loops process the whole batch one after the other: the first two look up numbers
    /// and prefetch the memory that later loops read.
    fn record_batch(&self, slots: &[AtomicU16], batch: &mut Vec<FoundReference>) {
        for found in &mut *batch {
            let number = self.number(found.id);
            found.id = u64::from(number);
            if number != NONE {
                self.tree().fetch_dominator(ObjectIndex(number));
                mem::prefetch(slots, number as usize);
            }
        }
        for found in &*batch {
            self.tree().fetch_parent(ObjectIndex(found.id as u32));
        }
        for found in batch.drain(..) {
            self.hold(slots, Some(found.from), found.id as u32, found.code);
        }
    }

    fn class_objects_hold(&self, slots: &[AtomicU16]) {
        for (i, class) in self.classes().iter().take(self.split.classes as usize) {
            let from = self.tree().node(ObjectIndex(i.0));
            let refs = class.statics.iter().filter(|s| s.kind == Kind::Object);
            for (k, field) in refs.enumerate().take(code::LAST_FIELD as usize) {
                if let Some(target) = self.find(ObjectId(field.value)) {
                    self.hold(slots, from, target.0, k as u16 + 1);
                }
            }
            let superclass = class.superclass.map(|s| self.classes()[s].id);
            let parts = class.others.iter().map(|&id| ObjectId(id));
            for id in superclass.into_iter().chain([class.loader]).chain(parts) {
                if let Some(target) = self.find(id) {
                    self.hold(slots, from, target.0, code::CLASS_PART);
                }
            }
        }
    }

    fn hold_in<const ID: usize>(&self, start: usize, end: usize, slots: &[AtomicU16]) {
        let mut visitor = HoldVisitor::<ID> {
            snapshot: self,
            slots,
            batch: Vec::with_capacity(BATCH),
        };
        // Errors of the walk are ignored, because this damage was already reported when the dump was opened.
        let _ = walk::walk(&self.dump.source, start, end, ID, &mut visitor);
        self.record_batch(slots, &mut visitor.batch);
    }

    #[inline(always)]
    fn number(&self, id: u64) -> u32 {
        self.number_of(id)
    }

    /// Returns the way in which an object's dominator holds it.
    #[must_use]
    pub fn hold_of(&self, holders: &Holders, object: ObjectIndex) -> Hold {
        let slot = holders.slots[object.index()];
        match slot {
            0 => Hold::Shared,
            code::ELEMENT => Hold::Element,
            code::CLASS => Hold::Class,
            code::LOADER => Hold::Loader,
            code::CLASS_PART => Hold::ClassPart,
            code::LOCAL => Hold::Local,
            _ => {
                let dominator = self
                    .tree()
                    .dominator(object)
                    .and_then(|d| self.tree().object(d));
                dominator
                    .and_then(|d| self.field_of(d, slot))
                    .unwrap_or(Hold::Shared)
            }
        }
    }

    fn field_of(&self, holder: ObjectIndex, slot: u16) -> Option<Hold> {
        let classes = self.classes();
        if let Some(class) = self.represents(holder) {
            let fields = classes[class].statics.iter().enumerate();
            let (i, _) = fields
                .filter(|(_, f)| f.kind == Kind::Object)
                .nth(usize::from(slot) - 1)?;
            return Some(Hold::Static(class, i as u16));
        }
        let class = self.class_of(holder)?;
        let mut left = usize::from(slot) - 1;
        for c in classes.chain(class) {
            for (i, field) in classes[c]
                .fields
                .iter()
                .enumerate()
                .filter(|(_, f)| f.kind == Kind::Object)
            {
                let is_referent =
                    &*field.name == "referent" && &*classes[c].name == "java.lang.ref.Reference";
                if is_referent {
                    if slot == code::REFERENT {
                        return Some(Hold::Field(c, i as u16));
                    }
                } else if left == 0 && slot != code::REFERENT {
                    return Some(Hold::Field(c, i as u16));
                } else {
                    left = left.wrapping_sub(1);
                }
            }
        }
        None
    }
}

impl Holders {
    /// Returns a code for the way in which an object is held. Comparing two codes costs less than comparing two results
    /// of [`Snapshot::hold_of`]. If the dominators of two objects are instances of the same class, the codes are equal
    /// exactly if the objects are held in the same way. If the dominators are class objects, compare only objects with
    /// the same dominator, because static fields of different classes can have equal codes.
    #[inline]
    #[must_use]
    pub fn key(&self, object: ObjectIndex) -> u16 {
        self.slots[object.index()]
    }
}

/// Number of references in a batch.
const BATCH: usize = 256;

/// A reference found in a record: the node of the record's object, the target, and the code of the reference.
#[derive(Clone, Copy)]
struct FoundReference {
    from: Node,
    /// The target of the reference: first its id, later its object number.
    id: u64,
    code: u16,
}

struct HoldVisitor<'a, const ID: usize> {
    snapshot: &'a Snapshot,
    slots: &'a [AtomicU16],
    batch: Vec<FoundReference>,
}

impl<const ID: usize> HoldVisitor<'_, ID> {
    #[inline(always)]
    fn node(&self, id: u64) -> Option<Node> {
        let number = self.snapshot.number(id);
        if number < self.snapshot.split.inner {
            self.snapshot.tree().node(ObjectIndex(number))
        } else {
            None
        }
    }

    #[inline(always)]
    fn record_found(&mut self, from: Node, id: u64, code: u16) {
        if id == 0 {
            return;
        }
        self.snapshot.map.fetch(id);
        self.batch.push(FoundReference { from, id, code });
        if self.batch.len() == BATCH {
            self.snapshot.record_batch(self.slots, &mut self.batch);
        }
    }

    /// Adds the reference from an instance to its class. Call this function after all other references of the instance
    /// were added: the first reference that is added has precedence.
    fn found_class(&mut self, from: Node, class: ClassIndex, id: u64) {
        let above = self.snapshot.tree().dominator(ObjectIndex(class.0));
        if above == Some(from) {
            self.record_found(from, id, code::CLASS);
        }
    }
}

impl<const ID: usize> Visitor for HoldVisitor<'_, ID> {
    #[inline(always)]
    fn instance(&mut self, object: Object, class_id: u64, body: &[u8]) {
        let s = self.snapshot;
        let Some(node) = self.node(object.id) else {
            return;
        };
        let classes = &s.dump.classes;
        let Some(class) = classes.by_id(ObjectId(class_id)) else {
            return;
        };
        let layout = classes.layout(class.0);
        for (k, &at) in classes
            .ref_offsets(layout)
            .iter()
            .enumerate()
            .take(code::LAST_FIELD as usize)
        {
            let at = at as usize;
            if at + ID <= body.len() {
                self.record_found(node, read_id::<ID>(body, at), k as u16 + 1);
            }
        }
        let at = layout.referent as usize;
        if layout.referent != RecordLayout::NO_REFERENT && at + ID <= body.len() {
            let retains = match s.options.refs {
                crate::options::Refs::All => true,
                crate::options::Refs::Soft => {
                    !matches!(layout.reference, Reference::Weak | Reference::Phantom)
                }
                crate::options::Refs::Strong => layout.reference == Reference::No,
            };
            if retains {
                self.record_found(node, read_id::<ID>(body, at), code::REFERENT);
            }
        }
        if class.0 < s.split.classes && !classes[class].loader.is_null() {
            self.found_class(node, class, class_id);
        }
    }

    #[inline(always)]
    fn object_array(&mut self, object: Object, class_id: u64, elements: &[u8]) {
        let s = self.snapshot;
        let Some(node) = self.node(object.id) else {
            return;
        };
        for element in elements.chunks_exact(ID) {
            self.record_found(node, read_id::<ID>(element, 0), code::ELEMENT);
        }
        if let Some(class) = s.dump.classes.by_id(ObjectId(class_id))
            && class.0 < s.split.classes
        {
            self.found_class(node, class, class_id);
        }
    }
}

/// An object, and the node that immediately dominates it.
#[derive(Clone, Copy, Debug)]
pub struct Dominated {
    /// The node that immediately dominates the object.
    pub above: Node,
    /// The object's node in the dominator tree. `None` for an object without references.
    pub node: Option<Node>,
    /// The object.
    pub object: ObjectIndex,
    /// The object's class. `None` for class objects.
    pub class: Option<ClassIndex>,
    /// The object's shallow size.
    pub shallow_bytes: u64,
    /// The object's retained size.
    pub retained_bytes: u64,
    /// The code for the way in which the object is held. See [`Holders::key`].
    pub key: u16,
}

impl Snapshot {
    /// Visits all objects that `nodes` immediately dominate. If `visit` returns true for an object, also visits the
    /// objects that this object immediately dominates.
    ///
    /// Cost: linear in the number of visited objects. The data of each object is prefetched before the visit.
    pub fn dominated(
        &self,
        holders: &Holders,
        nodes: &[Node],
        mut visit: impl FnMut(Dominated) -> bool,
    ) {
        const AHEAD: usize = 16;
        let (tree, shapes) = (self.tree().view(), self.shapes_view());
        let slots: &[u16] = &holders.slots;
        let mut followed: Vec<Node> = Vec::new();
        let mut batch: Vec<Visited> = Vec::with_capacity(2 * BATCH);
        let mut flush = |batch: &mut Vec<Visited>, followed: &mut Vec<Node>| {
            for visited in batch.drain(..) {
                let object = visited.object;
                let (class, shallow_bytes) = shapes.class_and_size(object);
                let node = (visited.node != NONE).then_some(Node(visited.node));
                let child = Dominated {
                    above: Node(visited.above),
                    node,
                    object: ObjectIndex(object),
                    class,
                    shallow_bytes,
                    retained_bytes: node.map_or(shallow_bytes, |_| visited.retained),
                    key: slots[object as usize],
                };
                if visit(child) {
                    followed.extend(node);
                }
            }
        };
        let mut next = 0;
        loop {
            let above = if next < nodes.len() {
                if let Some(&soon) = nodes.get(next + AHEAD) {
                    tree.fetch_children(soon.0);
                }
                next += 1;
                nodes[next - 1].0
            } else {
                if followed.is_empty() {
                    flush(&mut batch, &mut followed);
                }
                match followed.pop() {
                    Some(node) => node.0,
                    None => break,
                }
            };
            let end = tree.end[above as usize];
            let mut node = above + 1;
            // The subtree of each child begins where the subtree of the previous child ends.
            let mut before = if node < end {
                tree.bytes_before(node)
            } else {
                0
            };
            while node < end {
                let object = tree.object[node as usize];
                shapes.fetch_inner(object);
                mem::prefetch(slots, object as usize);
                let after = tree.end[node as usize];
                let through = tree.bytes_before(after);
                batch.push(Visited {
                    above,
                    node,
                    object,
                    retained: through - before,
                });
                if batch.len() == 2 * BATCH {
                    flush(&mut batch, &mut followed);
                }
                (node, before) = (after, through);
            }
            for &leaf in tree.leaves(above) {
                shapes.fetch_leaf(leaf);
                mem::prefetch(slots, leaf as usize);
                batch.push(Visited {
                    above,
                    node: NONE,
                    object: leaf,
                    retained: 0,
                });
                if batch.len() == 2 * BATCH {
                    flush(&mut batch, &mut followed);
                }
            }
        }
    }
}

/// An object that waits for its visit while its data is prefetched.
#[derive(Clone, Copy)]
struct Visited {
    above: u32,
    /// The object's node in the dominator tree, or [`NONE`] for an object without references.
    node: u32,
    object: u32,
    /// The retained bytes of the object. Not used for an object without references.
    retained: u64,
}
