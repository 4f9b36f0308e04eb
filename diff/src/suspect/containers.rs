//! Detects application containers: classes that hold what other classes put into them, as JDK collections do. The
//! fields of a container are internals. Readers want to know the field that holds the container.
//!
//! A container is recognized by structure, not by name:
//!
//! - The growing objects are held by an array of any objects (`Object[]`), or by nodes nested in the class.
//! - The objects in it are of other classes.
//! - The class serves several purposes: fields of other classes hold several instances of it, or a class of another
//!   loader holds an instance.
//!
//! A registry that an application wrote for itself serves one purpose, and is named in the report.

use std::collections::{BTreeMap, BTreeSet};

use hprof::{ObjectIndex, Snapshot};

use crate::evidence::context::Last;
use crate::growth::{self, Aligned, Candidate};
use crate::names::LabelKind;
use crate::suspect::shared_paths;
use crate::trie::StepId;

/// Maximum number of instances of a class to check in order to find the fields that hold them.
const ASKED: usize = 1 << 12;
/// Maximum number of trie nodes to go down in search of a container's content.
const DEPTH: usize = 6;

/// Returns the application classes that are containers: classes that store objects of other classes, for several
/// purposes. Checks the classes that declare the fields by which the given candidates are held.
///
/// Cost: reads at most some thousand objects for each class.
pub(crate) fn container_classes(
    last: Last<'_>,
    aligned: &Aligned<'_>,
    candidates: &[Candidate],
) -> BTreeSet<String> {
    let steps = candidates
        .iter()
        .filter_map(|candidate| aligned.application_field_step(candidate));
    containers_at(last, aligned, steps)
}

/// Returns the containers among the classes whose fields hold the objects of these trie nodes.
pub(crate) fn containers_at(
    last: Last<'_>,
    aligned: &Aligned<'_>,
    steps: impl Iterator<Item = StepId>,
) -> BTreeSet<String> {
    let trie = aligned.last();
    let mut asked: BTreeSet<&str> = BTreeSet::new();
    let mut found = BTreeSet::new();
    for step in steps {
        let (field, kind) = (
            trie.names.text(trie[step].via),
            trie.names.kind(trie[step].via),
        );
        let Some((class, _)) = field.rsplit_once('.') else {
            continue;
        };
        if kind == LabelKind::ApplicationField
            && is_generic(aligned, step, class)
            && asked.insert(class)
            && match last {
                Last::Dump(snapshot) => is_multi_purpose(snapshot, class),
                Last::Summary(facts) => facts.containers.contains(class),
            }
        {
            found.insert(class.to_owned());
        }
    }
    found
}

/// True if a class is `outer`, or is nested in it.
fn is_of(class: &str, outer: &str) -> bool {
    class
        .strip_prefix(outer)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('$') || rest.starts_with("[]"))
}

/// True if the objects of the trie node `step` are the inside of a container of the class `class`. They must be arrays
/// (`Object[]` or `Comparable[]`), objects of the class itself or of a class nested in it, or arrays of such objects.
/// In addition, objects of other classes must be below them, at most [`DEPTH`] levels down.
fn is_generic(aligned: &Aligned<'_>, step: StepId, class: &str) -> bool {
    let trie = aligned.last();
    let text = |s: StepId| trie.names.text(trie[s].class);
    let held = text(step);
    let of_anything = matches!(held, "java.lang.Object[]" | "java.lang.Comparable[]");
    if !of_anything && !is_of(held, class) {
        return false;
    }
    let mut level = vec![step];
    for _ in 0..DEPTH {
        let below = level.iter().flat_map(|&s| trie[s].children.iter().copied());
        let (nodes, others): (Vec<StepId>, Vec<StepId>) =
            below.partition(|&s| is_of(text(s), class) || text(s).ends_with("[]"));
        if !others.is_empty() {
            return true;
        }
        level = nodes;
    }
    false
}

/// True if the class serves several purposes. One of two conditions must be met: several fields of other classes hold
/// instances, or a class of another loader holds an instance.
fn is_multi_purpose(snapshot: &Snapshot, class: &str) -> bool {
    let classes = snapshot.classes();
    let tree = snapshot.tree();
    let of = classes.by_name(class);
    let mut instances = snapshot.instances(of);
    instances.truncate(ASKED);
    let mut held: BTreeMap<ObjectIndex, Vec<ObjectIndex>> = BTreeMap::new();
    for instance in instances {
        if let Some(holder) = tree.dominator(instance).and_then(|d| tree.object(d)) {
            held.entry(holder).or_default().push(instance);
        }
    }
    let loader = of.first().map(|&c| classes[c].loader);
    let is_elsewhere = |declaring: &str| {
        let mut declaring = classes
            .by_name(declaring)
            .iter()
            .map(|&c| classes[c].loader);
        declaring.all(|l| !l.is_null() && Some(l) != loader)
    };
    let holders: Vec<ObjectIndex> = held.keys().copied().collect();
    let mut fields: BTreeSet<String> = BTreeSet::new();
    for record in snapshot.read_all(&holders).into_iter().flatten() {
        let Some(instances) = held.get(&record.object) else {
            continue;
        };
        for (target, (field, kind)) in shared_paths::references(snapshot, &record) {
            let declaring = field.rsplit_once('.').map_or("", |(class, _)| class);
            let is_other = growth::is_application(kind) && !is_of(declaring, class);
            if is_other && instances.contains(&target) {
                if is_elsewhere(declaring) {
                    return true;
                }
                fields.insert(field);
            }
        }
    }
    fields.len() > 1
}
