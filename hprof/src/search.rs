//! Depth-first search of the heap graph from its roots: iterative, over flat arrays.

use crate::error::Result;
use crate::graph::HeapGraph;
use crate::ids::NONE;
use crate::mem::{Array, Store};

/// A depth-first spanning tree. Nodes are numbered in preorder from 1; 0 is the super-root that
/// refers to every root. Leaves take no part.
#[derive(Debug)]
pub(crate) struct Search {
    /// For each object with references its preorder number, 0 when unreached.
    pub(crate) number: Array<u32>,
    /// For each number the parent's number.
    pub(crate) parent: Array<u32>,
    /// Nodes reached, the super-root excluded.
    pub(crate) reached: u32,
}

/// Searches the graph, and on the way rewrites the rows of reached objects: a target that holds
/// references becomes its preorder number less one, a class object becomes [`class_mark`], a target
/// that the search entered through this very reference becomes [`NONE`]. What the dominator
/// computation needs of each reference is then in the row itself, and tree edges (nearly all) are
/// gone from it.
///
/// Cost: one visit of each reference.
pub(crate) fn search(graph: &mut HeapGraph, store: &Store) -> Result<Search> {
    let (inner, classes) = (graph.split.inner, graph.split.classes);
    let mut number: Array<u32> = store.zeroed(inner as usize)?;
    let mut parent: Array<u32> = store.zeroed(inner as usize + 1)?;
    let mut reached = 0_u32;
    {
        let number = &mut number[..];
        let parent = &mut parent[..];
        let offsets = &graph.offsets[..];
        let targets = &mut graph.targets[..];
        // Cursor and end of the rows between the root and the current node.
        let mut stack: Vec<(u32, u32)> = Vec::new();
        for &(root, _) in &graph.roots {
            if root >= inner || number[root as usize] != 0 {
                continue;
            }
            reached += 1;
            number[root as usize] = reached;
            parent[reached as usize] = 0;
            let mut current = reached;
            let mut cursor = offsets[root as usize];
            let mut end = offsets[root as usize + 1];
            loop {
                if cursor == end {
                    let Some(up) = stack.pop() else { break };
                    (cursor, end) = up;
                    current = parent[current as usize];
                    continue;
                }
                let target = targets[cursor as usize];
                if target < inner {
                    let seen = number[target as usize];
                    if seen == 0 {
                        targets[cursor as usize] = NONE;
                        reached += 1;
                        number[target as usize] = reached;
                        parent[reached as usize] = current;
                        stack.push((cursor + 1, end));
                        current = reached;
                        cursor = offsets[target as usize];
                        end = offsets[target as usize + 1];
                        continue;
                    }
                    targets[cursor as usize] = if target < classes {
                        class_mark(target)
                    } else {
                        seen - 1
                    };
                }
                cursor += 1;
            }
        }
    }
    parent.cut(reached as usize + 1)?;
    Ok(Search {
        number,
        parent,
        reached,
    })
}

/// How a searched row names a class object. Marks are the largest values below [`NONE`], above all
/// object numbers.
#[inline(always)]
pub(crate) const fn class_mark(class: u32) -> u32 {
    NONE - 1 - class
}
