//! Depth-first search from the GC roots through the core, the objects for which dominators are computed. The search is
//! iterative and uses flat arrays.

use std::sync::atomic::Ordering;

use crate::bytes::array::{Array, Store};
use crate::bytes::list::List;
use crate::dominators::annotated::{AnnotatedGraph, BitsView, PrefetchQueue};
use crate::dominators::core::Core;
use crate::error::Result;
use crate::ids::NONE;

/// Number of references between the prefetch of a target and its use.
pub(crate) const AHEAD: usize = 16;

/// A depth-first spanning tree of the core (see `core.rs`). The core's members are numbered in preorder from 1, and the
/// per-object word of each member is set to its number. The number of the super-root, which refers to every root, is 0.
/// Unreached members also have the word 0.
#[derive(Debug)]
pub(crate) struct SpanningTree {
    /// For each object that the search reached, the number of its parent in the tree. The index is the number of the
    /// object.
    pub(crate) parent: Array<u32>,
    /// Number of objects that the search reached, without the super-root.
    pub(crate) reached: u32,
}

/// Searches the core (see `core.rs`) from the GC roots, and returns the spanning tree.
///
/// Cost: one visit of each reference from an object of the core.
pub(crate) fn search(
    graph: &mut AnnotatedGraph,
    class_of: &impl Fn(u32) -> u32,
    core: &Core,
    store: &Store,
) -> Result<SpanningTree> {
    let inner = graph.split.inner;
    let roots: Vec<u32> = graph.roots.iter().map(|r| r.0).collect();
    let (cells, targets) = graph.shared();
    let is_member = Membership(inner, core.members.view());
    let witnesses = core.witnesses.view();
    let mut parent: Array<u32> = store.zeroed(core.count as usize + 1)?;
    let mut reached = 0_u32;
    {
        let parent = &mut parent[..];
        // For each node between the root and the current node, the part of its adjacency list that is still to be read:
        // start, end, and the number of the node.
        let mut stack: List<[u32; 3]> = List::new(store)?;
        let mut queue = PrefetchQueue::new(cells, targets);
        for root in roots {
            if !is_member.of(root) || cells.number(root) != 0 {
                continue;
            }
            // The root is treated as the last element of the super-root's list.
            let (mut cursor, mut end) = (0, 0);
            let mut current = 0;
            let mut entered = Some(root);
            loop {
                while let Some(object) = entered {
                    reached += 1;
                    cells.note(object).store(reached, Ordering::Relaxed);
                    parent[reached as usize] = current;
                    if end - cursor <= AHEAD as u32 {
                        while cursor < end && !is_member.of(targets[cursor as usize]) {
                            cursor += 1;
                        }
                    }
                    if cursor < end {
                        stack.push([cursor, end, current])?;
                    }
                    current = reached;
                    (cursor, end) = (cells.begin(object), cells.begin(object + 1));
                    entered = Some(object)
                        .filter(|&object| witnesses.contains(object))
                        .map(class_of)
                        .filter(|&class| class != NONE && cells.number(class) == 0);
                    for &next in targets[cursor as usize..end as usize].iter().take(AHEAD) {
                        if is_member.of(next) {
                            queue.fetch(next);
                        }
                    }
                }
                if cursor == end {
                    let Some(up) = stack.pop() else { break };
                    [cursor, end, current] = up;
                    continue;
                }
                let target = targets[cursor as usize];
                if is_member.of(target) && cells.number(target) == 0 {
                    entered = Some(target);
                } else if end - cursor > AHEAD as u32 {
                    let next = targets[cursor as usize + AHEAD];
                    if is_member.of(next) {
                        queue.fetch(next);
                    }
                }
                cursor += 1;
            }
        }
    }
    parent.cut(reached as usize + 1)?;
    Ok(SpanningTree { parent, reached })
}

/// Tests whether an object is a member of the core (see `core.rs`).
#[derive(Clone, Copy)]
struct Membership<'a>(u32, BitsView<'a>);

impl Membership<'_> {
    // This is a method and not a closure, because the compiler would not inline a closure at each of its calls.
    #[inline(always)]
    fn of(self, object: u32) -> bool {
        object < self.0 && self.1.contains(object)
    }
}
