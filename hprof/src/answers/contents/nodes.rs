//! Reads chains, hash tables and trees of nodes.

use std::collections::HashSet;
use std::ops::Range;

use super::Entry;
use crate::answers::objects::object::{ArrayView, Raw, Value};
use crate::ids::{ObjectId, ObjectIndex};
use crate::snapshot::Snapshot;

/// Maximum number of pieces of the file (about a megabyte each) whose objects are in memory at a time.
const PIECES: usize = 8;

/// Maximum number of nodes that are followed one after the other. Each may need a walk over a piece of the file.
const NODES: u64 = 10_000;

/// The entries found in a chain, a hash table or a tree.
#[derive(Debug, Default)]
pub(super) struct FollowedNodes {
    /// The entries in the requested range.
    pub(super) entries: Vec<Entry>,
    /// Number of entries visited, including the entries before the range.
    pub(super) total: u64,
    /// True if all entries of the structure were visited.
    pub(super) complete: bool,
    /// True if each node exists, has the expected fields and occurs only once.
    pub(super) whole: bool,
}

impl FollowedNodes {
    fn new() -> Self {
        Self {
            whole: true,
            ..Self::default()
        }
    }

    /// Creates the result for a structure whose entries will all be visited.
    pub(super) fn all() -> Self {
        Self {
            complete: true,
            ..Self::new()
        }
    }

    pub(super) fn take(&mut self, entry: Entry, range: &Range<u64>) {
        if range.contains(&self.total) {
            self.entries.push(entry);
        }
        self.total += 1;
    }
}

/// The names of a node's fields.
#[derive(Clone, Copy, Debug)]
pub(super) struct Names {
    /// The name of the field with the key. `None` if nodes hold single elements.
    pub(super) key: Option<&'static str>,
    pub(super) value: &'static str,
    pub(super) next: &'static str,
    /// True to skip nodes without an element: the ends of queues, and nodes that were just removed.
    pub(super) skips_null: bool,
}

impl Names {
    /// Returns the entry in a node (key and value, or a single element) and the reference to the next node. Returns
    /// `None` if the node does not have the fields.
    fn read(&self, fields: [Option<Value>; 3]) -> Option<(Option<Entry>, Value)> {
        let [key, value, next] = fields;
        let value = value?;
        let key = match self.key {
            Some(_) => Some(key?),
            None => None,
        };
        let entry = Entry { key, value };
        let null = |v: Value| matches!(v, Value::Object(ObjectId::NULL, _));
        let empty = self.skips_null && (null(value) || key.is_some_and(null));
        // In some hash tables, nodes have no `next` field. Such a node ends its chain.
        let next = next.unwrap_or(Value::Object(ObjectId::NULL, None));
        Some(((!empty).then_some(entry), next))
    }

    fn list(&self) -> [&'static str; 3] {
        [self.key.unwrap_or(""), self.value, self.next]
    }
}

/// Reads nodes one after the other. Nodes that were created together are mostly close together in the file. So when a
/// piece of the file is walked, all its objects are cached. If there is an index, it locates each object, and no pieces
/// are cached.
struct NodeReader<'a> {
    snapshot: &'a Snapshot,
    pieces: Vec<(u32, Vec<(u32, Raw<'a>)>)>,
}

impl<'a> NodeReader<'a> {
    const fn new(snapshot: &'a Snapshot) -> Self {
        Self {
            snapshot,
            pieces: Vec::new(),
        }
    }

    fn raw(&mut self, node: ObjectIndex) -> Option<Raw<'a>> {
        let walked = self.snapshot.positions.is_none();
        let piece = walked.then(|| self.snapshot.piece_of_linked(node));
        let Some(piece) = piece.flatten() else {
            return self.snapshot.records_of(&[node]).pop().flatten();
        };
        let known = self.pieces.iter().position(|p| p.0 == piece);
        let at = known.unwrap_or_else(|| {
            if self.pieces.len() == PIECES {
                self.pieces.remove(0);
            }
            let objects = self.snapshot.linked_objects_in(piece);
            self.pieces.push((piece, objects));
            self.pieces.len() - 1
        });
        let objects = &self.pieces[at].1;
        let at = objects.binary_search_by_key(&node.0, |o| o.0).ok()?;
        Some(objects[at].1)
    }

    /// Returns the values of a node's fields. `None` if the node has no record.
    fn fields<const N: usize>(
        &mut self,
        node: ObjectIndex,
        names: [&str; N],
    ) -> Option<[Option<Value>; N]> {
        let raw = self.raw(node)?;
        Some(names.map(|name| self.snapshot.field_in(&raw, name)))
    }
}

impl Snapshot {
    /// Follows the nodes of a chain, until the next node is null, damaged or already visited.
    pub(super) fn chain(
        &self,
        first: Option<Value>,
        names: Names,
        range: &Range<u64>,
    ) -> FollowedNodes {
        let mut found = FollowedNodes::new();
        let mut nodes = NodeReader::new(self);
        let mut visited = HashSet::new();
        let mut at = first;
        for _ in 0..NODES {
            let node = match at {
                None | Some(Value::Object(ObjectId::NULL, _)) => {
                    found.complete = true;
                    return found;
                }
                Some(_) if found.total >= range.end => return found,
                Some(value) => value.object(),
            };
            let fields = node
                .filter(|node| visited.insert(*node))
                .and_then(|node| nodes.fields(node, names.list()))
                .and_then(|fields| names.read(fields));
            let Some((entry, next)) = fields else {
                found.whole = false;
                return found;
            };
            if let Some(entry) = entry {
                found.take(entry, range);
            }
            at = Some(next);
        }
        found
    }

    /// Follows the chains of a hash table, bucket by bucket.
    ///
    /// In each step, the next nodes of all chains are read together. `head` returns the first node of the chain for
    /// each object in the table.
    pub(super) fn buckets(
        &self,
        table: ArrayView<'_>,
        names: Names,
        range: &Range<u64>,
        head: impl Fn(&[ObjectIndex]) -> Vec<Option<ObjectIndex>>,
    ) -> FollowedNodes {
        let wanted = usize::try_from(range.end).unwrap_or(usize::MAX);
        let mut found = FollowedNodes::new();
        let mut heads = Vec::new();
        let mut more = false;
        for element in table.elements(0..u32::MAX) {
            match element {
                Value::Object(ObjectId::NULL, _) => {}
                _ if heads.len() == wanted => {
                    more = true;
                    break;
                }
                Value::Object(_, Some(node)) => heads.push(node),
                _ => found.whole = false,
            }
        }
        let mut chains: Vec<(Vec<Entry>, Option<ObjectIndex>)> = head(&heads)
            .into_iter()
            .map(|node| (Vec::new(), node))
            .collect();
        found.whole &= chains.iter().all(|c| c.1.is_some());
        let mut visited: HashSet<ObjectIndex> = HashSet::new();
        for _ in 0..NODES {
            // Only the first chains are needed, until the number of their entries reaches the end of `range`.
            let mut sum = 0;
            let needed = chains.iter().take_while(|(entries, _)| {
                let before = sum;
                sum += entries.len();
                before < wanted
            });
            let needed = needed.count();
            let going: Vec<(usize, ObjectIndex)> = chains[..needed]
                .iter()
                .enumerate()
                .filter_map(|(i, (entries, node))| {
                    Some((i, (*node)?)).filter(|_| entries.len() < wanted)
                })
                .collect();
            if going.is_empty() {
                break;
            }
            let nodes: Vec<ObjectIndex> = going.iter().map(|g| g.1).collect();
            let fields = self.field_values(&nodes, names.list());
            for ((i, node), fields) in going.into_iter().zip(fields) {
                let fields = fields.filter(|_| visited.insert(node));
                let Some((entry, next)) = fields.and_then(|f| names.read(f)) else {
                    found.whole = false;
                    chains[i].1 = None;
                    continue;
                };
                chains[i].0.extend(entry);
                chains[i].1 = next.object();
                found.whole &=
                    matches!(next, Value::Object(id, node) if id.is_null() || node.is_some());
            }
        }
        found.complete = !more && chains.iter().all(|c| c.1.is_none());
        for entry in chains.into_iter().flat_map(|c| c.0).take(wanted) {
            found.take(entry, range);
        }
        found
    }

    /// Returns the entries of a binary tree in the order of their keys: left subtree, node, right subtree.
    pub(super) fn tree_entries(&self, root: Option<Value>, range: &Range<u64>) -> FollowedNodes {
        let names = ["key", "value", "left", "right"];
        let mut found = FollowedNodes::new();
        let mut nodes = NodeReader::new(self);
        let mut visited = HashSet::new();
        // Nodes whose entry is not in the result yet, because their left subtree comes first. Each element has the
        // entry and the right subtree of a node.
        let mut above: Vec<(Entry, Value)> = Vec::new();
        let mut at = root;
        for _ in 0..NODES {
            let node = match at {
                None | Some(Value::Object(ObjectId::NULL, _)) => {
                    let Some((entry, right)) = above.pop() else {
                        found.complete = true;
                        return found;
                    };
                    if found.total >= range.end {
                        return found;
                    }
                    found.take(entry, range);
                    at = Some(right);
                    continue;
                }
                Some(value) => value.object(),
            };
            let fields = node
                .filter(|node| visited.insert(*node))
                .and_then(|node| nodes.fields(node, names));
            let Some([Some(key), Some(value), Some(left), Some(right)]) = fields else {
                found.whole = false;
                return found;
            };
            let key = Some(key);
            above.push((Entry { key, value }, right));
            at = Some(left);
        }
        found
    }
}
