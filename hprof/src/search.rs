//! Depth-first search of the heap graph from its roots: iterative, over flat arrays.

pub(crate) mod sinks;

use self::sinks::{Codes, Sinks};
use crate::error::Result;
use crate::graph::HeapGraph;
use crate::ids::NONE;
use crate::mem::{self, Array, Store};

/// How many references ahead of the search their targets are fetched.
const AHEAD: usize = 16;

/// Objects that the search will come to. The search is one long chain of cache misses unless they
/// are fetched before: first where an object's row begins, and some objects later, when that has
/// arrived, the row itself.
#[derive(Default)]
struct Soon {
    ring: [u32; Soon::DELAY],
    at: usize,
}

impl Soon {
    const DELAY: usize = 4;

    #[inline(always)]
    fn fetch(&mut self, object: u32, rows: &[[u32; 2]], targets: &[u32]) {
        mem::prefetch(rows, object as usize);
        let ready = std::mem::replace(&mut self.ring[self.at], object);
        self.at = (self.at + 1) % Self::DELAY;
        if let Some(&[begin, 0]) = rows.get(ready as usize) {
            mem::prefetch(targets, begin as usize);
        }
    }
}

/// A depth-first spanning tree. Nodes are numbered in preorder from 1; 0 is the super-root that
/// refers to every root. Leaves and sinks take no part.
#[derive(Debug)]
pub(crate) struct Search {
    /// For each object with references its preorder number, 0 when unreached, its code (see
    /// [`Codes`]) when it is a sink.
    pub(crate) number: Array<u32>,
    /// For each number the parent's number.
    pub(crate) parent: Array<u32>,
    /// Nodes reached, the super-root excluded.
    pub(crate) reached: u32,
    pub(crate) sinks: Sinks,
}

/// Searches the graph, and on the way rewrites the rows of reached objects: a target that holds
/// references becomes its preorder number less one, a class object and a sink become their codes
/// (see [`Codes`]), a target that the search entered through this very reference becomes [`NONE`].
/// What the dominator computation needs of each reference is then in the row itself, and tree
/// edges (nearly all) are gone from it.
///
/// A sink that is the first way to its class is searched like any object.
///
/// Cost: one visit of each reference.
pub(crate) fn search(graph: &mut HeapGraph, with_sinks: bool, store: &Store) -> Result<Search> {
    let (inner, classes) = (graph.split.inner, graph.split.classes);
    // What reading the dump left behind.
    mem::trim_heap();
    let codes = graph.codes();
    // Where a row begins and its object's number lie side by side: one miss instead of two.
    let mut number: Array<u32> = store.zeroed((inner as usize + 1) * 2)?;
    let rows: &mut [[u32; 2]] = bytemuck::cast_slice_mut(&mut number);
    let sinks = Sinks::find(graph, with_sinks, rows, store)?;
    // A sink is searched when it leads to a new class.
    let nodes = (inner - sinks.count() + classes).min(inner);
    let mut parent: Array<u32> = store.zeroed(nodes as usize + 1)?;
    let mut reached = 0_u32;
    {
        let parent = &mut parent[..];
        let targets = &mut graph.targets[..];
        // Cursor and end of the rows between the root and the current node.
        let mut stack: Vec<(u32, u32)> = Vec::new();
        let mut soon = Soon::default();
        for &(root, _) in &graph.roots {
            if root >= inner || !is_due(rows[root as usize][1], rows, codes) {
                continue;
            }
            reached += 1;
            let (mut cursor, mut end) = (rows[root as usize][0], rows[root as usize + 1][0]);
            rows[root as usize][1] = reached;
            let mut current = reached;
            loop {
                if cursor == end {
                    let Some(up) = stack.pop() else { break };
                    (cursor, end) = up;
                    current = parent[current as usize];
                    continue;
                }
                let target = targets[cursor as usize];
                if target < inner {
                    let [begin, seen] = rows[target as usize];
                    if is_due(seen, rows, codes) {
                        targets[cursor as usize] = NONE;
                        reached += 1;
                        rows[target as usize][1] = reached;
                        parent[reached as usize] = current;
                        stack.push((cursor + 1, end));
                        current = reached;
                        (cursor, end) = (begin, rows[target as usize + 1][0]);
                        for &next in targets[cursor as usize..end as usize].iter().take(AHEAD) {
                            if next < inner {
                                soon.fetch(next, rows, targets);
                            }
                        }
                        continue;
                    }
                    targets[cursor as usize] = if target < classes {
                        codes.class(target)
                    } else if codes.is_sink(seen) {
                        codes.sink(target, seen)
                    } else {
                        seen - 1
                    };
                }
                if end - cursor > AHEAD as u32 {
                    let next = targets[cursor as usize + AHEAD];
                    if next < inner {
                        soon.fetch(next, rows, targets);
                    }
                }
                cursor += 1;
            }
        }
    }
    // The numbers stay where they are but move together.
    for object in 0..inner as usize {
        number[object] = number[object * 2 + 1];
    }
    number.cut(inner as usize)?;
    parent.cut(reached as usize + 1)?;
    Ok(Search {
        number,
        parent,
        reached,
        sinks,
    })
}

/// Whether the search has to enter an object: it was not seen before, or it is a sink whose class
/// was not.
#[inline(always)]
fn is_due(seen: u32, rows: &[[u32; 2]], codes: Codes) -> bool {
    seen == 0
        || codes
            .class_of_sink(seen)
            .is_some_and(|class| rows[class as usize][1] == 0)
}
