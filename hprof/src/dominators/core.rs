//! Which objects the dominator computation has to look at.
//!
//! An object with one referrer is dominated by it, and there is nothing to compute. In a usual heap
//! that is nearly every object. What remains is the core: objects with several referrers (joins),
//! the objects that refer to joins, and all that lie above these by single referrers. Every
//! dominator of a core object is in the core, so the core's dominators are those of the whole graph.
//!
//! References that lead back to an object's only referrer do not count (see `ways_back.rs`).
//!
//! A join from which no other is reached, and no class object by a field, changes nobody else's dominator: a string that
//! many share, say. Such sinks are left out, and with them all that is in the core for their sake only. What
//! dominates them is found when the rest is laid out (see `sinks.rs`).
//!
//! Every object also refers to its class (which no row says: the class is known without), and that
//! would put all objects into the core. But it
//! takes few of these references to find a class object's dominator: those of some witnesses. The
//! others change nothing when the dominator found also dominates them, which is checked for each
//! one when the tree is laid out; where it does not hold, the objects become witnesses as well.

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

/// The note of an object with several referrers.
pub(crate) const SEVERAL: u32 = NONE - 1;
/// The core of a graph. The notes of its objects are 0, those of others their only referrer, or
/// [`NONE`] where nothing refers to them.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) members: MappedBits,
    /// Members with several referrers, and those that roots or weaker references hold.
    pub(crate) joins: MappedBits,
    /// Members whose references to class objects take part.
    pub(crate) witnesses: MappedBits,
    pub(crate) count: u32,
    /// Members with long rows.
    pub(crate) long: Vec<u32>,
    /// Joins that are not members. The note of the first is [`SEVERAL`], that of the next one less, and so on.
    pub(crate) sinks: Array<u32>,
}

impl Core {
    /// The core of all objects: nothing is left out of the computation.
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

    /// Finds the core. `also` are witnesses that have proved necessary.
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
        let class_referrers = only_referrers(graph, class_of);
        let mut witnesses = MappedBits::new(inner, store)?;
        near_roots(graph, thresholds.near, &mut witnesses);
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
        ways_back::settle(cells, targets, held.clone(), classes, thresholds, store)?;
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
        let sinks = if worthwhile(&sinks, &joins, classes) {
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
        close_upwards(cells, &joins, &mut members);
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

/// The joins from which no other is reached. `reaching` are members for their own sake, and what refers to joins and to
/// class objects.
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
    close_upwards(cells, joins, &mut above);
    above
        .words_mut()
        .par_iter_mut()
        .zip(joins.words())
        .for_each(|(above, join)| *above = join & !*above);
    Ok(above)
}

/// Whether so many joins are sinks that it pays to lay them out by themselves.
fn worthwhile(sinks: &MappedBits, joins: &MappedBits, classes: u32) -> bool {
    let joins = joins.count().saturating_sub(u64::from(classes));
    // Notes tell sinks from other objects by their number.
    let fits = sinks.words().len() < 1 << 25;
    fits && sinks.count() * 8 >= joins
}

/// Notes for each object its only referrer, or [`SEVERAL`]. Returns how many references lead to each
/// class object.
fn only_referrers(graph: &mut AnnotatedGraph, class_of: &(impl Fn(u32) -> u32 + Sync)) -> Vec<u32> {
    /// References ahead of the pass whose targets are fetched.
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
            // Only another referrer's note can have come in between.
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

/// Makes the objects nearest to roots that are no classes witnesses, up to a limit.
fn near_roots(graph: &AnnotatedGraph, limit: usize, witnesses: &mut MappedBits) {
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

/// The criteria by which witnesses are chosen.
struct Choice<'a, F> {
    class_of: &'a F,
    /// How many references lead to each class object.
    class_referrers: &'a [u32],
    thresholds: Thresholds,
}

/// What one pass over the rows tells of objects.
struct Marks {
    /// Those in the core for their own sake: witnesses, and those with long rows.
    members: MappedBits,
    witnesses: MappedBits,
    /// Those that refer to joins.
    to_joins: MappedBits,
    /// Those whose row has class objects.
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

/// Marks what rows tell, and chooses witnesses. Returns members with long rows.
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

/// Adds what lies above the members by single referrers.
fn close_upwards(cells: Cells<'_>, joins: &MappedBits, members: &mut MappedBits) {
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
                // The task that has set the bit goes on from there.
                if shared[object as usize / 64].fetch_or(bit, Ordering::Relaxed) & bit != 0 {
                    break;
                }
            }
        });
    });
}
