//! Merges paths to many objects into one tree with a limited number of lines.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use crate::answers::objects::reference::Via;
use crate::answers::paths::Paths;
use crate::answers::paths::forest::PathForest;
use crate::ids::{ClassIndex, NONE, ObjectIndex};
use crate::records::classes::Reference;
use crate::records::walk::RootKind;
use crate::snapshot::Snapshot;

/// How objects are merged into the lines of a tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Merge {
    /// One line for all objects of one class that are reached by the same fields.
    #[default]
    Class,
    /// No merging: each object has its own line.
    Object,
}

/// A line of a merged tree. It stands for one or more objects on the paths.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct PathNode {
    /// Depth in the tree. 0 for objects that GC roots hold.
    pub depth: u32,
    /// The reference from the objects of the parent line. `None` at depth 0.
    pub via: Option<Via>,
    /// The kind of the reference objects, if `via` leads from reference objects to their referents. [`Reference::No`]
    /// for all other references, which are strong.
    pub strength: Reference,
    /// At depth 0, the kind of GC root. `None` for static fields of the application.
    pub root: Option<RootKind>,
    /// The object of this line that the search reached first. With [`Merge::Object`], it is the line's only object.
    pub object: ObjectIndex,
    /// Number of objects on the line.
    pub objects: u64,
    /// True if this line contains objects that are reached through other objects of the line, such as the nodes of a
    /// linked list.
    pub folded: bool,
    /// Number of targets among the objects of this line and of all its descendants, including the lines that the limit
    /// left out.
    pub targets: u64,
    /// Number of targets among the objects of this line.
    pub own_targets: u64,
    /// Shallow bytes of the targets that `targets` counts.
    pub target_bytes: u64,
    /// The child lines that the limit left out, with all their descendants: the number of these lines, and the number
    /// of targets that they lead to.
    pub hidden: (u64, u64),
}

/// The tree of merged paths.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct PathTree {
    /// The lines of the tree. Each line is followed by its descendants. If a line has several child lines, those that
    /// lead to the most targets come first.
    pub nodes: Vec<PathNode>,
    /// The first number counts the lines at depth 0 that the limit left out, together with all their descendants. The
    /// second number counts the targets to which these lines lead.
    pub hidden: (u64, u64),
}

/// A line of the tree, before the limit on the number of lines is applied.
#[derive(Clone, Copy)]
struct Group {
    parent: u32,
    via: Via,
    strength: Reference,
    object: u32,
    objects: u64,
    /// The field through which objects of the line refer to other objects of the line, as in a linked list. `None` if
    /// there is no such field.
    link: Option<Via>,
    targets: u64,
    own_targets: u64,
    bytes: u64,
}

#[derive(PartialEq, Eq, Hash)]
struct LineKey {
    parent: u32,
    /// For a class object: true and the number of the class that it represents, so that each class object has its own
    /// line. For any other object: false and the number of its class.
    class: (bool, u32),
    via: Option<Via>,
}

impl Paths {
    /// Merges the paths of all targets into a tree with at most `limit` lines. The tree has the lines that lead to the
    /// most targets.
    #[must_use]
    pub fn merged(&self, snapshot: &Snapshot, merge: Merge, limit: usize) -> PathTree {
        let mut groups: Vec<Group> = Vec::new();
        let mut keys: HashMap<LineKey, u32> = HashMap::new();
        let mut add = |forest: &PathForest, targets: &[(u32, u32)]| {
            let on_way = forest.flag_paths_to(targets);
            let mut own = vec![false; forest.objects.len()];
            targets.iter().for_each(|t| own[t.1 as usize] = true);
            let mut place: Vec<u32> = vec![NONE; forest.objects.len()];
            for at in (0..forest.objects.len()).filter(|&at| on_way[at]) {
                let (object, up) = (forest.objects[at], forest.parents[at]);
                let parent = if up == NONE { NONE } else { place[up as usize] };
                let (via, strength) = forest.vias[at];
                let class = match snapshot.represents(ObjectIndex(object)) {
                    Some(class) => (true, class.0),
                    None => (false, class_number(snapshot, object)),
                };
                let new = Group {
                    parent,
                    via: if merge == Merge::Class {
                        via.merged()
                    } else {
                        via
                    },
                    strength,
                    object,
                    objects: 0,
                    link: None,
                    targets: 0,
                    own_targets: 0,
                    bytes: 0,
                };
                let group = match merge {
                    Merge::Object => None,
                    Merge::Class => merge_into_line(snapshot, &groups, &new, class),
                };
                let group = group.unwrap_or_else(|| {
                    let via = (parent != NONE).then_some(new.via);
                    let mut push = || {
                        groups.push(new);
                        groups.len() as u32 - 1
                    };
                    match merge {
                        Merge::Object => push(),
                        Merge::Class => *keys
                            .entry(LineKey { parent, class, via })
                            .or_insert_with(push),
                    }
                });
                let line = &mut groups[group as usize];
                if up != NONE && place[up as usize] == group {
                    line.link.get_or_insert(via);
                }
                line.objects += 1;
                if own[at] {
                    line.own_targets += 1;
                    line.bytes += snapshot.shallow_bytes(ObjectIndex(object));
                }
                place[at] = group;
            }
        };
        add(&self.near, &self.near.targets);
        let asked = self.targets_without_near_path();
        add(&self.full, &asked);
        // A group comes after its parent group, so one backward pass computes the sums.
        for at in (0..groups.len()).rev() {
            let Group {
                parent,
                own_targets,
                ..
            } = groups[at];
            groups[at].targets += own_targets;
            let (targets, bytes) = (groups[at].targets, groups[at].bytes);
            if let Some(up) = groups.get_mut(parent as usize) {
                up.targets += targets;
                up.bytes += bytes;
            }
        }
        cut(snapshot, &groups, limit)
    }

    /// Returns the requested targets to which no path in `near` leads. Each pair is the target and its index in the
    /// forest `full`.
    fn targets_without_near_path(&self) -> Vec<(u32, u32)> {
        let full = self.full.targets.iter().copied();
        full.filter(|t| self.asked.binary_search(&ObjectIndex(t.0)).is_ok())
            .filter(|t| {
                self.near
                    .targets
                    .binary_search_by_key(&t.0, |n| n.0)
                    .is_err()
            })
            .collect()
    }
}

impl PathForest {
    /// Returns a flag for each object of the forest: true if a path to one of these targets goes through it.
    fn flag_paths_to(&self, targets: &[(u32, u32)]) -> Vec<bool> {
        let mut leading = vec![false; self.objects.len()];
        targets.iter().for_each(|t| leading[t.1 as usize] = true);
        for at in (0..leading.len()).rev() {
            if leading[at]
                && let Some(up) = leading.get_mut(self.parents[at] as usize)
            {
                *up = true;
            }
        }
        leading
    }
}

fn class_number(snapshot: &Snapshot, object: u32) -> u32 {
    let class: Option<ClassIndex> = snapshot.class_of(ObjectIndex(object));
    class.map_or(NONE, |c| c.0)
}

/// Returns the parent line if the new object belongs to this line. The conditions are:
///
/// - The object has the class of the line.
/// - An instance field leads to the object.
/// - No other field links the objects of the line so far. The fields `left` and `right` count as one field.
///
/// So the nodes of a list or of a tree form one line. But a map in an element of another map has its own line.
fn merge_into_line(
    snapshot: &Snapshot,
    groups: &[Group],
    new: &Group,
    (is_class_object, class): (bool, u32),
) -> Option<u32> {
    let line = groups.get(new.parent as usize)?;
    let is_same = !is_class_object
        && snapshot.represents(ObjectIndex(line.object)).is_none()
        && class_number(snapshot, line.object) == class;
    let is_link =
        |link: Via| link == new.via || is_branch(snapshot, link) && is_branch(snapshot, new.via);
    let links = is_same && matches!(new.via, Via::Field(..)) && line.link.is_none_or(is_link);
    links.then_some(new.parent)
}

/// True if the field leads from a node of a binary tree to one of its children.
fn is_branch(snapshot: &Snapshot, via: Via) -> bool {
    let Via::Field(class, field) = via else {
        return false;
    };
    let fields = &snapshot.classes()[class].fields;
    let name = fields.get(usize::from(field)).map(|f| &*f.name);
    matches!(name, Some("left" | "right"))
}

/// Keeps the lines that lead to the most targets. Sorts these lines so that each line is followed by its descendants.
fn cut(snapshot: &Snapshot, groups: &[Group], limit: usize) -> PathTree {
    let mut below: Vec<(u32, Reverse<u64>, u32)> = groups
        .iter()
        .zip(0..)
        .map(|(g, i)| (g.parent, Reverse(g.targets), i))
        .collect();
    below.sort_unstable();
    let children = |parent: u32| {
        let first = below.partition_point(|b| b.0 < parent);
        let rest = &below[first..];
        &rest[..rest.partition_point(|b| b.0 == parent)]
    };
    let mut kept = vec![false; groups.len()];
    let mut best: BinaryHeap<(u64, Reverse<u32>)> = BinaryHeap::new();
    let offer = |best: &mut BinaryHeap<_>, parent: u32| {
        let lines = children(parent).iter().take(limit);
        best.extend(lines.map(|&(_, Reverse(targets), i)| (targets, Reverse(i))));
    };
    offer(&mut best, NONE);
    let mut count = 0;
    while count < limit
        && let Some((_, Reverse(at))) = best.pop()
    {
        kept[at as usize] = true;
        count += 1;
        offer(&mut best, at);
    }
    // Number of lines in each group's subtree. A group comes after its parent group.
    let mut sizes: Vec<u64> = vec![1; groups.len()];
    for at in (0..groups.len()).rev() {
        let size = sizes[at];
        if let Some(above) = sizes.get_mut(groups[at].parent as usize) {
            *above += size;
        }
    }
    let hidden = |parent: u32| {
        let lines = children(parent).iter().filter(|b| !kept[b.2 as usize]);
        lines.fold((0, 0), |sum, b| {
            (sum.0 + sizes[b.2 as usize], sum.1 + b.1.0)
        })
    };
    let mut nodes = Vec::with_capacity(count);
    let mut stack: Vec<(u32, u32)> = Vec::new();
    let push = |stack: &mut Vec<(u32, u32)>, parent: u32, depth: u32| {
        let lines = children(parent).iter().rev().filter(|b| kept[b.2 as usize]);
        stack.extend(lines.map(|b| (b.2, depth)));
    };
    push(&mut stack, NONE, 0);
    while let Some((at, depth)) = stack.pop() {
        let group = &groups[at as usize];
        let object = ObjectIndex(group.object);
        nodes.push(PathNode {
            depth,
            via: (depth > 0).then_some(group.via),
            strength: group.strength,
            root: Some(depth)
                .filter(|&d| d == 0)
                .and_then(|_| snapshot.tree().root_kind(object)),
            object,
            objects: group.objects,
            folded: group.link.is_some(),
            targets: group.targets,
            own_targets: group.own_targets,
            target_bytes: group.bytes,
            hidden: hidden(at),
        });
        push(&mut stack, at, depth + 1);
    }
    PathTree {
        nodes,
        hidden: hidden(NONE),
    }
}
