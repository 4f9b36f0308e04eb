//! Selects the objects for which dominators have to be computed: the core.
//!
//! If an object has one referrer, that referrer is its immediate dominator, and nothing needs to be computed. Nearly
//! all objects of a usual heap are of this kind. The core consists of these objects:
//!
//! - merge nodes, which are objects with several referrers (`joins` in the code),
//! - objects that refer to merge nodes,
//! - for each of these objects, its only referrer, that object's only referrer, and so on up to a merge node.
//!
//! ```text
//! root -> A -> B -> D -> E      D has two referrers, so it is a merge node. B and C refer to it, A is above them.
//!         A -> C -> D           E has one referrer, D, which is its dominator. So E is not in the core.
//! ```
//!
//! Every dominator of a core object is in the core. So a core object has the same dominator in the core and in the
//! whole graph.
//!
//! References that lead back to an object's only referrer do not count (see `ways_back.rs`).
//!
//! A terminal merge node (`sink` in the code) is a merge node that leads to no merge node, not even back to itself. It
//! does not lead to a class object through fields either. An example is a string with many referrers. A terminal merge
//! node cannot change the dominator of any object outside of its subtree. So terminal merge nodes are left out of the
//! core. The objects that would be in the core only because they lead to one are left out, too. The dominators of
//! terminal merge nodes are computed when all other nodes of the tree are in preorder (see `sinks.rs`).
//!
//! Every object also refers to its class. The adjacency lists do not contain these references, since the class is known
//! without them. These references would put all objects into the core. To find the dominator of a class object, the
//! references from a few objects to the class are enough. These objects are called witnesses. All other references to
//! the class change nothing if the dominator that was found also dominates their sources. This is checked for each
//! object when the tree is put in preorder. Objects that fail the check become witnesses, and the computation is
//! repeated.

#[cfg(test)]
#[path = "core_tests.rs"]
mod tests;

use std::sync::atomic::Ordering;

use rayon::prelude::*;

use super::annotated::{AnnotatedGraph, CHUNK, Cells, MappedBits, each_bit};
use crate::bytes::array::{Array, Store};
use crate::bytes::mem;
use crate::dominators::thresholds::Thresholds;
use crate::dominators::ways_back;
use crate::error::Result;
use crate::ids::NONE;

/// The per-object word of an object with several referrers.
pub(crate) const SEVERAL: u32 = NONE - 1;
/// The core of a graph: the objects for which dominators have to be computed. The per-object word of an object in the
/// core is 0. The word of another object is its only referrer, or [`NONE`] if it has no referrer. The words of terminal
/// merge nodes differ (see `sinks`).
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) members: MappedBits,
    /// The merge nodes of the core. They are class objects, objects with several referrers, and objects held by a GC
    /// root, a soft reference or a final reference.
    pub(crate) joins: MappedBits,
    /// The objects of the core whose references to class objects the computation also follows. They are called
    /// witnesses.
    pub(crate) witnesses: MappedBits,
    pub(crate) count: u32,
    /// The objects of the core whose adjacency list has at least [`Thresholds::long`] elements. Empty for
    /// [`Core::all`].
    pub(crate) long: Vec<u32>,
    /// Terminal merge nodes: merge nodes that lead to no merge node. They are not in the core (`members`). The
    /// per-object word of the terminal merge node at index `n` is [`SEVERAL`]` - n`.
    pub(crate) sinks: Array<u32>,
}

impl Core {
    /// Returns a core that contains all objects, so that nothing is left out of the computation.
    pub(crate) fn all(graph: &mut AnnotatedGraph, store: &Store) -> Result<Self> {
        let inner = graph.split.inner;
        let all = || -> Result<MappedBits> {
            let mut bits = MappedBits::new(inner as usize, store)?;
            bits.words_mut().fill(u64::MAX);
            if let Some(last) = bits.words_mut().last_mut() {
                *last = (1 << (inner % 64)) - 1;
            }
            Ok(bits)
        };
        let core = Self {
            members: all()?,
            joins: all()?,
            witnesses: all()?,
            count: inner,
            long: Vec::new(),
            sinks: store.zeroed(0)?,
        };
        let (cells, _) = graph.shared();
        (0..inner)
            .into_par_iter()
            .for_each(|o| cells.note(o).store(0, Ordering::Relaxed));
        Ok(core)
    }

    /// Finds the core of the graph (see the top of this file). `also` has additional witnesses: objects whose
    /// references to class objects are followed. An earlier attempt found wrong dominators because it did not follow
    /// these references.
    ///
    /// Cost: two passes over all references.
    pub(crate) fn find(
        graph: &mut AnnotatedGraph,
        class_of: &(impl Fn(u32) -> u32 + Sync),
        also: &[u32],
        thresholds: Thresholds,
        store: &Store,
    ) -> Result<Self> {
        let inner = graph.split.inner as usize;
        let classes = graph.split.classes;
        let class_referrers = set_only_referrers(graph, class_of);
        let mut witnesses = MappedBits::new(inner, store)?;
        choose_witnesses(graph, thresholds.near, &mut witnesses);
        also.iter().for_each(|&object| witnesses.insert(object));
        let weaker = std::mem::take(&mut graph.weaker);
        let roots: Vec<u32> = graph.roots.iter().map(|r| r.0).collect();
        let (cells, targets) = graph.shared();
        let held = roots
            .into_iter()
            .chain(weaker.iter().flatten().map(|e| e.1))
            .filter(|&o| (o as usize) < inner);
        let held = held.chain(0..classes);
        held.clone()
            .for_each(|o| cells.note(o).store(SEVERAL, Ordering::Relaxed));
        ways_back::find_single_referrers(cells, targets, held.clone(), classes, thresholds, store)?;
        let mut joins = MappedBits::new(inner, store)?;
        joins
            .words_mut()
            .par_iter_mut()
            .enumerate()
            .for_each(|(at, word)| {
                let objects = (at * 64) as u32..((at + 1) * 64).min(inner) as u32;
                for object in objects {
                    let several = cells.number(object) == SEVERAL;
                    *word |= u64::from(several) << (object % 64);
                }
            });
        let choice = Choice {
            class_of,
            class_referrers: &class_referrers,
            thresholds,
        };
        let mut marks = Marks::new(inner, witnesses, store)?;
        let long = mark(cells, targets, &choice, &joins, &mut marks);
        thresholds.count(|tally| &tally.long, long.len());
        let Marks {
            mut members,
            witnesses,
            to_joins,
            to_classes,
        } = marks;
        for &(from, _) in weaker.iter().flatten() {
            members.insert(from);
        }
        held.for_each(|object| members.insert(object));
        let sinks = find_sinks(cells, &joins, [&members, &to_joins, &to_classes], store)?;
        drop(to_classes);
        let sinks = if are_sinks_worthwhile(&sinks, &joins, classes) {
            sinks
        } else {
            MappedBits::new(inner, store)?
        };
        let listed = sinks.list(store)?;
        joins
            .words_mut()
            .par_iter_mut()
            .zip(sinks.words())
            .for_each(|(join, sink)| *join &= !sink);
        drop(sinks);
        let near_joins = joins.view();
        let is_near = |object: u32| {
            let row = cells.begin(object) as usize..cells.begin(object + 1) as usize;
            let in_rows = |&target: &u32| (classes..inner as u32).contains(&target);
            targets[row]
                .iter()
                .filter(|t| in_rows(t))
                .any(|&target| near_joins.contains(target))
        };
        members
            .words_mut()
            .par_iter_mut()
            .zip(joins.words())
            .zip(to_joins.words())
            .enumerate()
            .for_each(|(at, ((member, join), to_join))| {
                *member |= join;
                if listed.is_empty() {
                    *member |= to_join
                } else {
                    each_bit(at, to_join & !*member, |o| {
                        *member |= u64::from(is_near(o)) << (o % 64)
                    })
                }
            });
        drop(to_joins);
        add_ancestors(cells, &joins, &mut members);
        let count = members.count() as u32;
        members.words().par_iter().enumerate().for_each(|(at, &w)| {
            each_bit(at, w, |o| cells.note(o).store(0, Ordering::Relaxed));
        });
        listed
            .par_iter()
            .zip(0..listed.len() as u32)
            .for_each(|(&sink, at)| {
                cells.note(sink).store(SEVERAL - at, Ordering::Relaxed);
            });
        graph.weaker = weaker;
        Ok(Self {
            members,
            joins,
            witnesses,
            count,
            long,
            sinks: listed,
        })
    }
}

/// Returns the terminal merge nodes: merge nodes that lead to no merge node. `reaching` has three sets: objects that
/// are always in the [`Core`], objects that refer to merge nodes, and objects that refer to class objects. The function
/// goes from each of these objects to its only referrer, to that object's only referrer, and so on, up to a merge node.
/// A merge node is terminal if it is not reached in this way, and is in none of the sets.
fn find_sinks(
    cells: Cells<'_>,
    joins: &MappedBits,
    reaching: [&MappedBits; 3],
    store: &Store,
) -> Result<MappedBits> {
    let mut above = MappedBits::new(cells.rows(), store)?;
    let [members, to_joins, to_classes] = reaching.map(MappedBits::words);
    above
        .words_mut()
        .par_iter_mut()
        .enumerate()
        .for_each(|(at, word)| {
            *word = members[at] | to_joins[at] | to_classes[at];
        });
    add_ancestors(cells, joins, &mut above);
    above
        .words_mut()
        .par_iter_mut()
        .zip(joins.words())
        .for_each(|(above, join)| *above = join & !*above);
    Ok(above)
}

/// Returns true if handling terminal merge nodes (merge nodes that lead to no merge node) separately saves time. This
/// is so if at least an eighth of all merge nodes are terminal, not counting class objects.
fn are_sinks_worthwhile(sinks: &MappedBits, joins: &MappedBits, classes: u32) -> bool {
    let joins = joins.count().saturating_sub(u64::from(classes));
    // A per-object word of at least 2^31, except [`NONE`], identifies a terminal merge node. Other words are object
    // numbers, so all object numbers must be smaller than 2^31.
    let fits = sinks.words().len() < 1 << 25;
    fits && sinks.count() * 8 >= joins
}

/// Sets the per-object word of each object to its only referrer, or to [`SEVERAL`] if it has several. Returns the
/// number of references to each class object.
fn set_only_referrers(
    graph: &mut AnnotatedGraph,
    class_of: &(impl Fn(u32) -> u32 + Sync),
) -> Vec<u32> {
    /// Number of references between the prefetch of a target and its use.
    const AHEAD: usize = 32;
    graph.clear_notes();
    let (inner, classes) = (graph.split.inner, graph.split.classes);
    let (cells, targets) = graph.shared();
    let note = |from: u32, to: u32| {
        let note = cells.note(to);
        let old = note.load(Ordering::Relaxed);
        if old == SEVERAL || old == from {
            return;
        }
        let swapped = old == NONE
            && note
                .compare_exchange(NONE, from, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok();
        if !swapped {
            // If the exchange failed, another thread has just stored another referrer.
            note.store(SEVERAL, Ordering::Relaxed);
        }
    };
    let none = || vec![0_u32; classes as usize];
    (0..cells.rows().div_ceil(CHUNK))
        .into_par_iter()
        .fold(none, |mut to_class, chunk| {
            let first = chunk * CHUNK;
            let last = (first + CHUNK).min(cells.rows());
            let mut ring = [(0_u32, NONE); AHEAD];
            let mut at = 0;
            let mut begin = cells.begin(first as u32) as usize;
            for from in first as u32..last as u32 {
                let end = cells.begin(from + 1) as usize;
                if let Some(referrers) = to_class.get_mut(class_of(from) as usize) {
                    *referrers += 1;
                }
                for &to in &targets[begin..end] {
                    if to < classes {
                        to_class[to as usize] += 1;
                    } else if to < inner && to != from {
                        cells.fetch(to);
                        let (from, to) = std::mem::replace(&mut ring[at], (from, to));
                        at = (at + 1) % AHEAD;
                        if to != NONE {
                            note(from, to);
                        }
                    }
                }
                begin = end;
            }
            for (from, to) in ring {
                if to != NONE {
                    note(from, to);
                }
            }
            to_class
        })
        .reduce(none, |mut sum, more| {
            sum.iter_mut()
                .zip(more)
                .for_each(|(sum, more)| *sum += more);
            sum
        })
}

/// Chooses the objects closest to GC roots as witnesses: objects whose references to class objects are followed.
/// Chooses at most `limit` objects, and no class objects.
fn choose_witnesses(graph: &AnnotatedGraph, limit: usize, witnesses: &mut MappedBits) {
    let (inner, classes) = (graph.split.inner, graph.split.classes);
    let roots = graph.roots.iter().map(|r| r.0);
    let mut found: Vec<u32> = Vec::new();
    let mut add = |object: u32, found: &mut Vec<u32>| {
        if object >= classes && object < inner && found.len() < limit && !witnesses.contains(object)
        {
            witnesses.insert(object);
            found.push(object);
        }
    };
    roots.for_each(|root| add(root, &mut found));
    let mut at = 0;
    while at < found.len() && found.len() < limit {
        for &target in graph.row(found[at]) {
            add(target, &mut found);
        }
        at += 1;
    }
}

/// The data that determines which objects become witnesses (objects whose references to class objects are followed).
struct Choice<'a, F> {
    class_of: &'a F,
    /// The number of references to each class object.
    class_referrers: &'a [u32],
    thresholds: Thresholds,
}

/// Sets of objects that one pass over the adjacency lists finds. They determine which objects are in the core.
struct Marks {
    /// Objects that are in the core even if they refer to no merge node: witnesses (objects whose references to class
    /// objects are followed), and objects with a long adjacency list.
    members: MappedBits,
    witnesses: MappedBits,
    /// Objects that refer to merge nodes (objects with several referrers).
    to_joins: MappedBits,
    /// Objects whose adjacency list contains class objects.
    to_classes: MappedBits,
}

impl Marks {
    fn new(objects: usize, witnesses: MappedBits, store: &Store) -> Result<Self> {
        Ok(Self {
            members: MappedBits::new(objects, store)?,
            witnesses,
            to_joins: MappedBits::new(objects, store)?,
            to_classes: MappedBits::new(objects, store)?,
        })
    }
}

/// Fills the sets of objects in `marks`. Chooses more witnesses (objects whose references to class objects are
/// followed), and adds them to `marks.witnesses`. Returns the objects with a long adjacency list.
fn mark(
    cells: Cells<'_>,
    targets: &[u32],
    choice: &Choice<'_, impl Fn(u32) -> u32 + Sync>,
    joins: &MappedBits,
    marks: &mut Marks,
) -> Vec<u32> {
    let rows = cells.rows();
    let Choice {
        class_of,
        class_referrers,
        thresholds,
    } = choice;
    let (inner, classes) = (rows as u32, class_referrers.len() as u32);
    let words = thresholds.every.div_ceil(64);
    let joins = joins.view();
    let mut long: Vec<u32> = marks
        .members
        .words_mut()
        .par_chunks_mut(words)
        .zip(marks.witnesses.words_mut().par_chunks_mut(words))
        .zip(
            marks
                .to_joins
                .words_mut()
                .par_chunks_mut(words)
                .zip(marks.to_classes.words_mut().par_chunks_mut(words)),
        )
        .enumerate()
        .map_init(
            || vec![usize::MAX; classes as usize],
            |sampled, (chunk, ((members, witnesses), (to_joins, to_classes)))| {
                let mut long = Vec::new();
                let first = chunk * words * 64;
                let last = (first + words * 64).min(rows);
                let mut begin = cells.begin(first.min(rows) as u32) as usize;
                for object in first..last {
                    let end = cells.begin(object as u32 + 1) as usize;
                    let (mut to_join, mut has_class) = (false, false);
                    let mut is_chosen = |class: u32| {
                        let seen = std::mem::replace(&mut sampled[class as usize], chunk);
                        seen != chunk || class_referrers[class as usize] <= thresholds.rare
                    };
                    let own = class_of(object as u32);
                    let mut to_class = object < classes as usize || own != NONE && is_chosen(own);
                    for &target in &targets[begin..end] {
                        if target < classes {
                            has_class = true;
                            to_class |= is_chosen(target);
                        } else if target < inner {
                            to_join |= joins.contains(target);
                        }
                    }
                    let at = (object - first) / 64;
                    let bit: u64 = 1 << (object % 64);
                    if to_class {
                        witnesses[at] |= bit;
                    }
                    let is_long = end - begin >= thresholds.long;
                    if is_long {
                        long.push(object as u32);
                    }
                    if is_long || witnesses[at] & bit != 0 {
                        members[at] |= bit;
                    }
                    to_joins[at] |= u64::from(to_join) << (object % 64);
                    to_classes[at] |= u64::from(has_class) << (object % 64);
                    begin = end;
                }
                long
            },
        )
        .flatten_iter()
        .collect();
    long.sort_unstable();
    long
}

/// For each object in the set `members`, adds its only referrer, that object's only referrer, and so on, up to and
/// including the next merge node.
fn add_ancestors(cells: Cells<'_>, joins: &MappedBits, members: &mut MappedBits) {
    let joins = joins.view();
    let shared = mem::as_atomic_u64(members.words_mut());
    shared.par_iter().enumerate().for_each(|(at, word)| {
        each_bit(at, word.load(Ordering::Relaxed), |object| {
            let mut object = object;
            while !joins.contains(object) {
                object = cells.number(object);
                if object == NONE {
                    break;
                }
                let bit = 1 << (object % 64);
                // If the bit was already set, the rest of the chain of referrers is already in the set, or another task
                // adds it.
                if shared[object as usize / 64].fetch_or(bit, Ordering::Relaxed) & bit != 0 {
                    break;
                }
            }
        });
    });
}
