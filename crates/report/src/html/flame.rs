//! The tree of a flame graph. Stacks that begin with the same frames share the nodes of these frames.

use std::cmp::Reverse;

use crate::stacks::{StackLine, Stacks, Step};

/// A node without its children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Node {
    name: Step,
    /// The depth in the tree. The first step of a stack has depth 1.
    depth: u32,
    own: Figures,
}

/// Figures of a node, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Figures {
    /// Growth of the stacks that grew.
    grown: u64,
    /// Decrease of the stacks that shrank.
    shrunk: u64,
    /// Live bytes in the last dump.
    after: u64,
}

impl Figures {
    fn from_line(line: &StackLine) -> Self {
        Self {
            grown: line.after.bytes.saturating_sub(line.before.bytes),
            shrunk: line.before.bytes.saturating_sub(line.after.bytes),
            after: line.after.bytes,
        }
    }

    fn add(&mut self, other: Self) {
        self.grown = self.grown.saturating_add(other.grown);
        self.shrunk = self.shrunk.saturating_add(other.shrunk);
        self.after = self.after.saturating_add(other.after);
    }

    /// Returns the weight by which nodes are selected. For a single stack, this is the larger of its live bytes in the
    /// first and in the last dump.
    const fn weight(self) -> u64 {
        self.after.saturating_add(self.shrunk)
    }
}

/// The nodes that [`Tree::pruned`] removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Rest {
    /// Number of nodes.
    pub(super) frames: u64,
    /// Growth in bytes of the removed nodes. The growth of each removed node was added to its nearest remaining
    /// ancestor. If there is no such ancestor, the growth is only in the total.
    pub(super) grown: u64,
}

/// A tree as a list of nodes in preorder.
#[derive(Clone, Debug, Default)]
pub(super) struct Tree {
    nodes: Vec<Node>,
    /// Figures of removed nodes without a remaining ancestor. They are included only in the total.
    outside: Figures,
}

impl Tree {
    /// Builds the tree in one pass over the stacks. Stacks are sorted, so stacks with the same first steps are
    /// adjacent.
    pub(super) fn new(stacks: &Stacks) -> Self {
        let mut nodes: Vec<Node> = Vec::new();
        let mut previous: Vec<Step> = Vec::new();
        for line in &stacks.lines {
            let steps: Vec<Step> = stacks.steps(line).collect();
            let pairs = previous.iter().zip(&steps);
            let shared = pairs.take_while(|(a, b)| a == b).count();
            for (i, &step) in steps.iter().enumerate().skip(shared) {
                nodes.push(Node {
                    name: step,
                    depth: u32::try_from(i + 1).unwrap_or(u32::MAX),
                    own: Figures::default(),
                });
            }
            // The stacks are distinct, and each stack comes before the longer stacks that begin with it. So no other
            // stack ends at the last node.
            if let Some(last) = nodes.last_mut() {
                last.own.add(Figures::from_line(line));
            }
            previous = steps;
        }
        Self {
            nodes,
            outside: Figures::default(),
        }
    }

    /// Returns the parent of each node; `None` for roots.
    fn parents(&self) -> Vec<Option<usize>> {
        let mut open: Vec<usize> = Vec::new();
        let mut parents = Vec::with_capacity(self.nodes.len());
        for (i, node) in self.nodes.iter().enumerate() {
            open.truncate(node.depth as usize - 1);
            parents.push(open.last().copied());
            open.push(i);
        }
        parents
    }

    /// Keeps the `most` nodes with the largest weights. Adds the figures of each removed node to its nearest ancestor
    /// that is kept, or to the total if there is no such ancestor.
    ///
    /// A node weighs at least as much as each of its descendants. So if a node is kept, all its ancestors are kept.
    pub(super) fn pruned(mut self, most: usize) -> (Self, Rest) {
        let mut rest = Rest::default();
        if self.nodes.len() <= most {
            return (self, rest);
        }
        let parents = self.parents();
        let mut weights: Vec<u64> = self.nodes.iter().map(|n| n.own.weight()).collect();
        for i in (0..weights.len()).rev() {
            if let Some(parent) = parents[i] {
                weights[parent] = weights[parent].saturating_add(weights[i]);
            }
        }
        let mut order: Vec<usize> = (0..weights.len()).collect();
        order.sort_unstable_by_key(|&i| (Reverse(weights[i]), i));
        let mut stays = vec![false; weights.len()];
        for &i in &order[..most] {
            stays[i] = true;
        }
        for i in (0..self.nodes.len()).rev().filter(|&i| !stays[i]) {
            let own = self.nodes[i].own;
            rest.frames += 1;
            // Add the figures of a removed node to its parent. Nodes are visited from the last to the first, so the
            // figures already include those of removed descendants.
            let above = match parents[i] {
                Some(parent) => &mut self.nodes[parent].own,
                None => &mut self.outside,
            };
            above.add(own);
            if parents[i].is_none_or(|parent| stays[parent]) {
                rest.grown = rest.grown.saturating_add(own.grown);
            }
        }
        let mut stays = stays.into_iter();
        self.nodes.retain(|_| stays.next().unwrap_or(false));
        (self, rest)
    }

    /// Returns the encoded nodes, and the names that they refer to. Names of frames come before names of classes.
    ///
    /// The bytes begin with the three figures of `outside`: growth, decrease and live bytes. Each node is five numbers:
    /// its depth, the index of its name, and its own three figures. All numbers are LEB128.
    pub(super) fn encode(&self) -> (Vec<u8>, Vec<Step>) {
        let used = |wanted: fn(Step) -> Option<u32>| {
            let mut used: Vec<u32> = self.nodes.iter().filter_map(|n| wanted(n.name)).collect();
            used.sort_unstable();
            used.dedup();
            used
        };
        let frames = used(|n| match n {
            Step::Frame(f) => Some(f),
            Step::Class(_) => None,
        });
        let classes = used(|n| match n {
            Step::Class(c) => Some(c),
            Step::Frame(_) => None,
        });
        let number = |name| match name {
            Step::Frame(f) => frames.binary_search(&f).unwrap_or(0),
            Step::Class(c) => frames.len() + classes.binary_search(&c).unwrap_or(0),
        };
        let mut bytes = Vec::with_capacity(self.nodes.len() * 8 + 3);
        let Figures {
            grown,
            shrunk,
            after,
        } = self.outside;
        for value in [grown, shrunk, after] {
            leb128(value, &mut bytes);
        }
        for node in &self.nodes {
            let own = node.own;
            let name = number(node.name) as u64;
            for value in [node.depth.into(), name, own.grown, own.shrunk, own.after] {
                leb128(value, &mut bytes);
            }
        }
        let frames = frames.iter().map(|&f| Step::Frame(f));
        let names = frames.chain(classes.iter().map(|&c| Step::Class(c)));
        (bytes, names.collect())
    }
}

fn leb128(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stacks::Names;
    use crate::tests::allocated;

    fn tree() -> Tree {
        let all = allocated(&[
            ("a b", "X", [10, 110]),
            ("a b c", "X", [0, 5]),
            ("a b c", "Y", [9, 1]),
            ("d", "X", [0, 50]),
        ]);
        Tree::new(&Stacks::new(&all, None, Names::Functions))
    }

    fn depths(tree: &Tree) -> Vec<u32> {
        tree.nodes.iter().map(|n| n.depth).collect()
    }

    #[test]
    fn stacks_share_their_beginning() {
        // The expected tree in preorder, each name with its depth: a 1, b 2, c 3, X 4, Y 4, X 3 (allocated in b), d 1,
        // X 2.
        let tree = tree();
        assert_eq!(
            tree.nodes
                .iter()
                .filter(|n| matches!(n.name, Step::Class(_)))
                .count(),
            4
        );
        let mut sorted = depths(&tree);
        sorted.sort_unstable();
        assert_eq!(sorted, [1, 1, 2, 2, 3, 3, 4, 4]);
    }

    #[test]
    fn pruned_frames_count_in_their_parents() {
        let sum = |tree: &Tree| {
            let mut sum = tree.outside;
            tree.nodes.iter().for_each(|n| sum.add(n.own));
            sum
        };
        let whole = sum(&tree());
        let (pruned, rest) = tree().pruned(5);
        assert_eq!(pruned.nodes.len(), 5);
        assert_eq!(sum(&pruned), whole);
        assert_eq!(
            rest,
            Rest {
                frames: 3,
                grown: 5
            }
        );
        let again = pruned.parents();
        assert_eq!(again.iter().filter(|p| p.is_none()).count(), 2);
    }

    #[test]
    fn pruned_stacks_count_in_the_total() {
        let all = tree();
        let total = |tree: &Tree| {
            let mut sum = tree.outside;
            tree.nodes.iter().for_each(|n| sum.add(n.own));
            (sum.grown, sum.shrunk, sum.after)
        };
        assert_eq!(total(&all), (155, 8, 166));
        // Only the frame `a` is left. The frame `d` is a root, so its figures go to the total.
        let (pruned, rest) = all.pruned(1);
        assert_eq!(pruned.nodes.len(), 1);
        assert_eq!(total(&pruned), (155, 8, 166));
        assert_eq!(pruned.outside.grown, 50);
        assert_eq!((rest.frames, rest.grown), (7, 155));
        // The encoded total comes before the nodes.
        assert_eq!(pruned.encode().0[..3], [50, 0, 50]);
    }

    #[test]
    fn numbers_are_leb128() {
        let mut out = Vec::new();
        for value in [0, 127, 128, 300, u64::MAX] {
            leb128(value, &mut out);
        }
        assert_eq!(out[..6], [0, 127, 0x80, 1, 0xac, 2]);
        assert_eq!(out.len(), 16);
        let (bytes, names) = tree().encode();
        assert_eq!(names.len(), 4 + 2);
        assert_eq!(bytes.iter().filter(|b| **b < 0x80).count(), 3 + 8 * 5);
    }
}
