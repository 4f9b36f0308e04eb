//! `heapdiff top`: lists the objects that retain the most.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::PathBuf;

use clap::Args;
use heapdiff_diff::samples::AgentObjects;
use heapdiff_diff::unreachable_summary;
use heapdiff_model::top::{TopObject, TopReport, Under};
use heapdiff_report::Report;
use hprof::answers::Selector;
use hprof::dominators::Node;
use hprof::{ObjectId, ObjectIndex, Progress, Snapshot};

use super::dump_info;
use super::opened::{Selection, open, select};
use crate::args::{SELECTOR_HELP, input};
use crate::failure::{Failure, Result};
use crate::job::{Setup, Task};
use crate::progress::Meter;

const ROWS: usize = 20;
/// Maximum number of classes of unreachable objects.
const UNREACHABLE_ROWS: usize = 10;

const EXAMPLES: &str = "\
Examples:
  heapdiff top app.hprof --top 20                # the 20 objects that retain the most
  heapdiff top app.hprof --under 0x7f0012345678  # the objects that this object dominates directly
  heapdiff top app.hprof --unreachable           # what would hold the unreachable objects\n\n";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES.to_owned() + SELECTOR_HELP)]
pub(crate) struct Top {
    /// Heap dump (HPROF), gzipped or not
    #[arg(value_parser = input())]
    dump: PathBuf,
    /// Show only the objects that these objects dominate directly (one level of the dominator tree)
    #[arg(long, value_name = "SELECTOR")]
    under: Option<Selector>,
    /// Show the unreachable objects that would hold the most
    #[arg(long, conflicts_with = "under")]
    unreachable: bool,
}

impl Task for Top {
    fn run(&self, setup: &Setup) -> Result<Vec<Report>> {
        let dump = &self.dump;
        let (snapshot, meter) = open(setup, dump)?;
        meter.phase("finding the largest objects", 0);
        let limit = setup.top.unwrap_or(ROWS);
        if self.unreachable {
            return self.unreachable(setup, &snapshot, &meter);
        }
        let (biggest, under, own) = match &self.under {
            None => {
                let own = AgentObjects::find(&snapshot);
                (largest_retained(&snapshot, &own, limit), None, own)
            }
            Some(selector) => {
                let selection = select(&snapshot, dump, selector)?;
                let objects = &selection.objects;
                let under = Under {
                    selector: selector.to_string(),
                    objects: objects.len() as u64,
                    retained_bytes: snapshot
                        .retained_by_all(objects, &meter)
                        .map_err(|e| Failure::input(dump, &e))?
                        .map_or(0, |retained| retained.bytes),
                };
                let biggest = largest_children(&snapshot, &selection, limit);
                (biggest, Some(under), selection.own)
            }
        };
        let rows = biggest.iter().zip(snapshot.ids(&biggest));
        let row = |(&object, id): (&ObjectIndex, Option<ObjectId>)| TopObject {
            id: id.unwrap_or_default().to_string(),
            class: snapshot.name(object),
            shallow_bytes: snapshot.shallow_bytes(object),
            retained_bytes: snapshot.retained_bytes(object).unwrap_or(0),
            retained_objects: snapshot.retained_objects(object).unwrap_or(0),
        };
        Ok(vec![Report::Top(TopReport {
            schema: TopReport::SCHEMA,
            snapshot: dump_info::of(&snapshot, &own),
            under,
            unreachable: None,
            objects: rows.map(row).collect(),
        })])
    }
}

impl Top {
    /// Creates the task that lists the largest objects of a dump, or the largest objects that the selected objects
    /// dominate directly.
    pub(super) fn new(dump: PathBuf, under: Option<Selector>) -> Self {
        Self {
            dump,
            under,
            unreachable: false,
        }
    }

    fn unreachable(
        &self,
        setup: &Setup,
        snapshot: &Snapshot,
        meter: &Meter,
    ) -> Result<Vec<Report>> {
        let own = AgentObjects::find(snapshot);
        let unreachable = snapshot
            .unreachable_objects(meter)
            .map_err(|e| Failure::input(&self.dump, &e))?;
        let summary = unreachable_summary(snapshot, &unreachable, UNREACHABLE_ROWS);
        let tree = unreachable
            .into_tree(snapshot, meter)
            .map_err(|e| Failure::input(&self.dump, &e))?;
        let limit = setup.top.unwrap_or(ROWS);
        let largest = tree.largest(limit, |object| !own.contains(object));
        let objects: Vec<ObjectIndex> = largest.iter().map(|row| row.object).collect();
        let rows = largest.iter().zip(snapshot.ids(&objects));
        let objects = rows.map(|(row, id)| TopObject {
            id: id.unwrap_or_default().to_string(),
            class: snapshot.name(row.object),
            shallow_bytes: snapshot.shallow_bytes(row.object),
            retained_bytes: row.retained.bytes,
            retained_objects: row.retained.objects,
        });
        Ok(vec![Report::Top(TopReport {
            schema: TopReport::SCHEMA,
            snapshot: dump_info::of(snapshot, &own),
            under: None,
            unreachable: Some(summary),
            objects: objects.collect(),
        })])
    }
}

/// Returns the objects that retain the most, largest first. Objects of equal size are in the order of the dump. The
/// agent's objects are left out.
///
/// An object retains at least as much as each object that it dominates. So in the dominator tree, the next largest
/// object is always a child of a root or of an object that was already found.
///
/// Cost: visits the children of the tree's root and of each returned object.
fn largest_retained(snapshot: &Snapshot, own: &AgentObjects, limit: usize) -> Vec<ObjectIndex> {
    let tree = snapshot.tree();
    let mut candidates: BinaryHeap<(u64, Reverse<u32>)> = BinaryHeap::new();
    let mut found = Vec::new();
    let mut holder = Some(Node::ROOT);
    while found.len() < limit {
        if let Some(node) = holder {
            // Search the dominator tree from the root down. Of each node's children, only the largest can be among the
            // largest objects, so only these become candidates.
            let mut best = Best::new(limit - found.len());
            collect_largest(snapshot, node, &|o| !own.contains(o), &mut best);
            candidates.extend(best.heap.drain().map(|Reverse(candidate)| candidate));
        }
        let Some((_, Reverse(object))) = candidates.pop() else {
            break;
        };
        found.push(ObjectIndex(object));
        holder = tree.node(ObjectIndex(object));
    }
    found
}

/// Returns the largest children of the selected objects in the dominator tree.
fn largest_children(snapshot: &Snapshot, selection: &Selection, limit: usize) -> Vec<ObjectIndex> {
    let tree = snapshot.tree();
    let mut best = Best::new(limit);
    for node in selection.objects.iter().filter_map(|&o| tree.node(o)) {
        collect_largest(snapshot, node, &|o| !selection.hides(o), &mut best);
    }
    best.into_sorted()
}

fn collect_largest(
    snapshot: &Snapshot,
    node: Node,
    wanted: &dyn Fn(ObjectIndex) -> bool,
    best: &mut Best,
) {
    let tree = snapshot.tree();
    for child in tree.children(node) {
        let bytes = tree.retained_bytes(child);
        if best.would_keep(bytes)
            && let Some(object) = tree.object(child)
            && wanted(object)
        {
            best.push(bytes, object);
        }
    }
    for leaf in tree.leaves(node) {
        let bytes = snapshot.shallow_bytes(leaf);
        if best.would_keep(bytes) && wanted(leaf) {
            best.push(bytes, leaf);
        }
    }
}

/// Collects objects, and keeps only the `limit` largest.
pub(crate) struct Best {
    limit: usize,
    /// A binary heap with the objects that are kept. Its top is the smallest of these objects. If several objects have
    /// this size, the top is the object that comes last in the dump.
    heap: BinaryHeap<Reverse<(u64, Reverse<u32>)>>,
}

impl Best {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            heap: BinaryHeap::new(),
        }
    }

    /// True if an object of this size can be among the largest objects.
    #[inline]
    pub(crate) fn would_keep(&self, bytes: u64) -> bool {
        self.heap.len() < self.limit || self.heap.peek().is_some_and(|least| bytes >= least.0.0)
    }

    pub(crate) fn push(&mut self, bytes: u64, object: ObjectIndex) {
        self.heap.push(Reverse((bytes, Reverse(object.0))));
        if self.heap.len() > self.limit {
            self.heap.pop();
        }
    }

    pub(crate) fn into_sorted(self) -> Vec<ObjectIndex> {
        let sorted = self.heap.into_sorted_vec();
        sorted
            .into_iter()
            .map(|Reverse((_, Reverse(object)))| ObjectIndex(object))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn best(limit: usize, sizes: &[u64]) -> Vec<u32> {
        let mut best = Best::new(limit);
        for (i, &bytes) in sizes.iter().enumerate() {
            if best.would_keep(bytes) {
                best.push(bytes, ObjectIndex(i as u32));
            }
        }
        best.into_sorted().into_iter().map(|o| o.0).collect()
    }

    #[test]
    fn keeps_the_largest_and_the_first_of_equals() {
        assert_eq!(best(3, &[5, 9, 5, 1, 5, 9]), [1, 5, 0]);
        assert_eq!(best(9, &[1, 2]), [1, 0]);
        assert_eq!(best(0, &[1, 2]), [] as [u32; 0]);
    }
}
