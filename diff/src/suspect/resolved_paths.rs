//! Resolves the shared trie nodes of a suspect's path. A trie node is shared if its objects are reachable on several
//! paths, so that no single reference holds them. Each shared trie node is replaced by a path of references found in
//! the dump.

use std::borrow::Cow;
use std::collections::BTreeMap;

use hprof::ObjectIndex;

use crate::evidence::context::SuspectContext;
use crate::growth;
use crate::names::{self, Label, LabelKind};
use crate::suspect::shared_paths::{self, SharedPath, Wanted};
use crate::trie::StepId;

/// Paths of references to the objects of shared trie nodes. Several references hold the objects of a shared trie node,
/// so the trie does not show how these objects are reached.
pub(crate) struct ResolvedPaths {
    /// For each shared trie node on the suspect's path, the labels of a path of references found in the dump. The
    /// reported path contains these labels in place of the trie node's label. The key is the index of the trie node in
    /// the path.
    found: BTreeMap<usize, Vec<Label>>,
    /// Describes the shared trie node nearest to the root: the parent of this trie node, and all paths of references
    /// that were found from the parent to the trie node's objects.
    ways: Option<(StepId, Vec<Vec<Label>>)>,
}

/// Maximum number of shared trie nodes on a suspect's path that are resolved. If there are more, the ones nearest to
/// the root are resolved.
const SHARED_STEPS: usize = 3;
/// Limits of [`has_class_chain`]: maximum number of children to check of one object, and maximum number of objects to
/// follow on one level.
const LOOKED_AT: usize = 1 << 12;
const FOLLOWED: usize = 64;
/// Maximum number of dominators to follow from the suspect's content up to a shared trie node.
const MOST_ABOVE: usize = 1 << 12;

impl ResolvedPaths {
    /// Resolves the shared trie nodes in `steps`, the suspect's path: finds a path of references for each of them.
    /// Resolves at most [`SHARED_STEPS`] of them, from the root on. `shared_steps` are their indices in `steps`.
    pub(crate) fn new(
        context: &SuspectContext<'_>,
        steps: &[StepId],
        shared_steps: &[usize],
    ) -> Self {
        let all = context.fact(
            steps.last().copied().unwrap_or(StepId::ROOT),
            |snapshot| {
                let mut find = |wanted: Wanted<'_>| shared_paths::find(snapshot, wanted);
                let least = least_of_one(context);
                let found = shared_paths_to(context, steps, shared_steps, least, &mut find);
                Some(Cow::Owned(found))
            },
            |facts| Some(Cow::Borrowed(&facts.paths.as_ref()?[..])),
        );
        Self::of_found(context, steps, &all.unwrap_or_default())
    }

    /// Selects the path that replaces each shared trie node. `all` are the paths that were found.
    pub(crate) fn of_found(
        context: &SuspectContext<'_>,
        steps: &[StepId],
        all: &[PathsToShared],
    ) -> Self {
        let trie = context.trie();
        let least = least_of_one(context);
        let mut resolved = Self {
            found: BTreeMap::new(),
            ways: None,
        };
        for of_step in all {
            let Some(&step) = steps.get(of_step.at) else {
                continue;
            };
            if of_step.of_one.is_some_and(|bytes| bytes < least) {
                continue;
            }
            let aligned = context.aligned;
            let seen_as = |(text, kind): &Label| (text.clone(), aligned.kind_of(text, *kind));
            let paths = of_step.paths.iter().map(|path| {
                let labels: Vec<Label> = path.labels.iter().map(seen_as).collect();
                (labels, path.is_usual)
            });
            let paths: Vec<(Vec<Label>, bool)> = paths.collect();
            if resolved.ways.is_none() {
                let all = paths.iter().map(|path| path.0.clone());
                resolved.ways = Some((trie[step].parent, all.collect()));
            }
            // Ignore a path that leads to fewer than half of the objects found, because it does not show how the other
            // objects are held.
            let usual = || paths.iter().filter(|path| path.1);
            let is_own = |p: &&(Vec<Label>, bool)| p.0.iter().any(|l| growth::is_application(l.1));
            if let Some(best) = usual().find(is_own).or(usual().next()) {
                resolved.found.insert(of_step.at, best.0.clone());
            }
        }
        resolved
    }

    /// Returns the parent of the shared trie node nearest to the root, and the paths of references from the parent to
    /// the objects of the shared trie node.
    pub(crate) fn paths_to_shared(&self) -> Option<(StepId, &[Vec<Label>])> {
        let (parent, paths) = self.ways.as_ref()?;
        Some((*parent, paths))
    }

    /// True if a path of references replaces the first trie node of the suspect's path, which is directly below the
    /// root.
    pub(crate) fn is_root_replaced(&self) -> bool {
        self.found.contains_key(&0)
    }

    /// Finds the deepest shared trie node whose path of references begins at a static field. Returns the index of the
    /// trie node, and the class that declares the field.
    pub(crate) fn static_field_step(&self) -> Option<(usize, &str)> {
        self.found
            .iter()
            .rev()
            .find_map(|(&at, path)| match path.first()? {
                (field, LabelKind::ApplicationStatic | LabelKind::RuntimeStatic) => {
                    Some((at, field.rsplit_once('.')?.0))
                }
                _ => None,
            })
    }

    /// Returns the labels of the suspect's path from the index `begin` on. `labels` are the labels of the path in the
    /// trie. The labels of shared trie nodes are replaced by the labels of the references found in the dump.
    pub(crate) fn path(&self, labels: &[Label], begin: usize) -> Vec<Label> {
        let mut path = Vec::new();
        for (at, label) in labels.iter().enumerate().skip(begin) {
            match self.found.get(&at) {
                Some(found) => path.extend_from_slice(found),
                _ => path.push(label.clone()),
            }
        }
        path
    }
}

/// Returns half of the growth in bytes. If a single object retains at least this much, it holds most of the growth by
/// itself.
fn least_of_one(context: &SuspectContext<'_>) -> u64 {
    u64::try_from(context.candidate.growth() / 2).unwrap_or(0)
}

/// The paths of references to the objects of one shared trie node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PathsToShared {
    /// Index of the trie node in the path of the suspect.
    pub(crate) at: usize,
    /// If the paths lead to only the largest object: the bytes that this object retains.
    pub(crate) of_one: Option<u64>,
    pub(crate) paths: Vec<SharedPath>,
}

/// Returns the paths of references to the objects of shared trie nodes, for at most [`SHARED_STEPS`] trie nodes from
/// the root on. `find` searches for the paths. If a single object retains at least `least` bytes, it holds most of the
/// growth by itself.
pub(crate) fn shared_paths_to(
    context: &SuspectContext<'_>,
    steps: &[StepId],
    shared_steps: &[usize],
    least: u64,
    find: &mut dyn FnMut(Wanted<'_>) -> Vec<SharedPath>,
) -> Vec<PathsToShared> {
    let trie = context.trie();
    // Objects of a general-purpose JDK class that only the virtual root dominates serve unrelated purposes. The path to
    // one of these objects does not show how the others are held, so no path is searched. Exception: one object holds
    // most of the growth by itself, such as a list that both a local variable and a field hold.
    let is_one_kind = |step: StepId| {
        trie[step].parent != StepId::ROOT || !names::is_general_purpose_class(context.class(step))
    };
    let retained = |&&o: &&ObjectIndex| context.dump()?.retained_bytes(o);
    let mut all_paths = Vec::new();
    for &at in shared_steps.iter().take(SHARED_STEPS) {
        let step = &trie[steps[at]];
        let alone = step.samples.first();
        let alone = alone.map(|one| (one, retained(&one).unwrap_or(0)));
        let alone = alone.filter(|(_, bytes)| *bytes >= least);
        let all = Wanted::All {
            samples: &step.samples,
            of: step.objects,
        };
        let above = content_dominators(context, steps, at);
        let is_content = at + 1 == steps.len();
        let (wanted, of_one) = match alone {
            _ if is_one_kind(steps[at]) && is_content => (all, None),
            _ if is_one_kind(steps[at]) && !above.is_empty() => (Wanted::These(&above), None),
            Some((one, bytes)) => (Wanted::These(std::slice::from_ref(one)), Some(bytes)),
            None => continue,
        };
        let mut paths = find(wanted);
        // The search reads a limited number of elements, so it may miss a path to these few objects. Then search for
        // paths to all objects of the trie node.
        if paths.is_empty() && above.len() == step.samples.len() {
            paths = find(all);
        }
        all_paths.push(PathsToShared { at, of_one, paths });
    }
    all_paths
}

/// Returns those objects of a shared trie node that dominate objects of the suspect's content. Selects them among the
/// largest objects of the trie node. If none of these dominates content, returns the objects that dominate the largest
/// objects of the content. Other objects of the trie node are left out, because they may hold something else. Returns
/// an empty list if the trie node itself is the suspect's content.
fn content_dominators(
    context: &SuspectContext<'_>,
    steps: &[StepId],
    at: usize,
) -> Vec<ObjectIndex> {
    let trie = context.trie();
    let Some(snapshot) = context.dump() else {
        return Vec::new();
    };
    let tree = snapshot.tree();
    let Some(&content) = steps.last().filter(|_| at + 1 < steps.len()) else {
        return Vec::new();
    };
    let below = &steps[at + 1..];
    let largest = trie[steps[at]].samples.iter().copied();
    let leading: Vec<ObjectIndex> = largest
        .filter(|&object| has_class_chain(context, object, below))
        .collect();
    if !leading.is_empty() {
        return leading;
    }
    let class = context.class(steps[at]);
    let above = |&object: &ObjectIndex| {
        let chain = std::iter::successors(Some(object), |&o| tree.object(tree.dominator(o)?));
        let chain = chain.skip(1).take(MOST_ABOVE);
        // Several dominators of the suspect's content may be of this class. The trie node represents the one that is
        // nearest to the root.
        let of_class = chain.filter(|&o| names::is_named(snapshot, o, class));
        of_class.last()
    };
    let mut above: Vec<ObjectIndex> = trie[content].samples.iter().filter_map(above).collect();
    let Some(&first) = above.first() else {
        return Vec::new();
    };
    above.retain(|&o| tree.dominator(o) == tree.dominator(first));
    above.sort_unstable();
    above.dedup();
    above
}

/// True if the dominator tree has a chain of objects below `object` whose classes are those of `steps`, in this order.
fn has_class_chain(context: &SuspectContext<'_>, object: ObjectIndex, steps: &[StepId]) -> bool {
    let Some(snapshot) = context.dump() else {
        return false;
    };
    let tree = snapshot.tree();
    let mut level = vec![object];
    for &step in steps {
        let class = context.class(step);
        let below = level.iter().filter_map(|&o| tree.node(o)).flat_map(|node| {
            let nodes = tree.children(node).filter_map(|child| tree.object(child));
            nodes.chain(tree.leaves(node)).take(LOOKED_AT)
        });
        let of_class = below.filter(|&o| names::is_named(snapshot, o, class));
        level = of_class.take(FOLLOWED).collect();
    }
    !level.is_empty()
}
