//! Pending work that consists of objects linked by one field: Kotlin coroutines, subscriptions of Reactor, pipelines of
//! Netty.

use std::collections::{BTreeSet, HashMap};

use hprof::answers::Value;
use hprof::{ClassIndex, ObjectIndex, Snapshot};

use super::{Groups, LINES, PendingKind, class_name, instances};
use crate::values::objects;

/// Package of Reactor's operators.
const REACTOR: &str = "reactor.core.publisher.";

pub(super) fn add(
    snapshot: &Snapshot,
    suspended: &mut dyn FnMut(&str, i64) -> Option<String>,
    groups: &mut Groups,
) {
    coroutines(snapshot, suspended, groups);
    subscriptions(snapshot, groups);
    pipelines(snapshot, groups);
}

/// Chains of objects that one field links. `next` maps each object to the object that its field refers to.
struct Chains {
    next: HashMap<ObjectIndex, Option<ObjectIndex>>,
    /// The first object of each chain.
    heads: Vec<ObjectIndex>,
}

impl Chains {
    fn new(snapshot: &Snapshot, links: &[ObjectIndex], field: &str) -> Self {
        let next: HashMap<ObjectIndex, Option<ObjectIndex>> = links
            .iter()
            .copied()
            .zip(objects(snapshot, links, field))
            .collect();
        let targets: BTreeSet<ObjectIndex> = next.values().flatten().copied().collect();
        let heads = links.iter().filter(|link| !targets.contains(link));
        Self {
            heads: heads.copied().collect(),
            next,
        }
    }

    /// Returns the objects of the chain that begins with `head`. The last object need not be a link itself.
    fn from(&self, head: ObjectIndex) -> Vec<ObjectIndex> {
        let mut steps = vec![head];
        let mut at = head;
        while let Some(&Some(next)) = self.next.get(&at) {
            if steps.len() > LINES || steps.contains(&next) {
                break;
            }
            steps.push(next);
            at = next;
        }
        steps
    }
}

/// Groups suspended coroutines by the functions in which they are suspended. The field `label` of a coroutine has the
/// number of the suspension point in the function.
fn coroutines(
    snapshot: &Snapshot,
    suspended: &mut dyn FnMut(&str, i64) -> Option<String>,
    groups: &mut Groups,
) {
    let links = instances(
        snapshot,
        "kotlin.coroutines.jvm.internal.BaseContinuationImpl",
    );
    let chains = Chains::new(snapshot, &links, "completion");
    let labels = snapshot.field_values(&links, ["label"]).into_iter();
    let label = |value: Option<[Option<Value>; 1]>| value?[0]?.integer();
    let labels: HashMap<ObjectIndex, Option<i64>> =
        links.iter().copied().zip(labels.map(label)).collect();
    for &head in &chains.heads {
        // If the label of a coroutine is 0, its function has not started.
        if !matches!(labels[&head], Some(label) if label != 0) {
            continue;
        }
        let steps = chains.from(head);
        let mut line = |step: &ObjectIndex| {
            let class = class_name(snapshot, *step);
            let Some(&Some(label)) = labels.get(step) else {
                return class;
            };
            // While the function runs, the highest bit of its label is set. Clear this bit.
            let label = label & i64::from(i32::MAX);
            suspended(&class, label).unwrap_or_else(|| format!("{class} (label {label})"))
        };
        groups.add(
            PendingKind::Coroutines,
            steps.iter().map(&mut line).collect(),
            head,
        );
    }
}

/// Groups the subscriptions of Reactor by their operators and the class of the last subscriber's function.
fn subscriptions(snapshot: &Snapshot, groups: &mut Groups) {
    let classes = snapshot.classes();
    let is_operator = |class: ClassIndex| {
        let mut chain = classes.chain(class).map(|c| &classes[c]);
        chain.any(|class| {
            class.name.starts_with(REACTOR) && class.fields.iter().any(|f| &*f.name == "actual")
        })
    };
    let operators: Vec<ClassIndex> = classes
        .iter()
        .map(|c| c.0)
        .filter(|c| is_operator(*c))
        .collect();
    if operators.is_empty() {
        return;
    }
    let mut links = snapshot.instances(&operators);
    links.retain(|&link| snapshot.tree().is_reachable(link));
    let chains = Chains::new(snapshot, &links, "actual");
    let name = |object: ObjectIndex| {
        let name = class_name(snapshot, object);
        name.strip_prefix(REACTOR)
            .map(str::to_owned)
            .unwrap_or(name)
    };
    let steps: Vec<Vec<ObjectIndex>> = chains.heads.iter().map(|&h| chains.from(h)).collect();
    let ends: Vec<ObjectIndex> = steps.iter().filter_map(|s| s.last().copied()).collect();
    let consumers = objects(snapshot, &ends, "consumer");
    for ((&head, steps), consumer) in chains.heads.iter().zip(&steps).zip(consumers) {
        let mut shape: Vec<String> = steps.iter().map(|step| name(*step)).collect();
        if let (Some(consumer), Some(line)) = (consumer, shape.last_mut()) {
            *line += &format!(" {}", class_name(snapshot, consumer));
        }
        groups.add(PendingKind::Subscriptions, shape, head);
    }
}

/// Groups the channels of Netty by the handlers of their pipelines.
fn pipelines(snapshot: &Snapshot, groups: &mut Groups) {
    let links = instances(snapshot, "io.netty.channel.AbstractChannelHandlerContext");
    let chains = Chains::new(snapshot, &links, "next");
    let handlers: HashMap<ObjectIndex, Option<ObjectIndex>> = links
        .iter()
        .copied()
        .zip(objects(snapshot, &links, "handler"))
        .collect();
    let pipelines = objects(snapshot, &chains.heads, "pipeline");
    let (heads, pipelines): (Vec<ObjectIndex>, Vec<ObjectIndex>) = chains
        .heads
        .iter()
        .zip(pipelines)
        .filter_map(|(head, pipeline)| Some((*head, pipeline?)))
        .unzip();
    let channels = objects(snapshot, &pipelines, "channel");
    for ((head, pipeline), channel) in heads.into_iter().zip(pipelines).zip(channels) {
        let channel = channel.unwrap_or(pipeline);
        let steps = chains.from(head);
        let own = steps.iter().filter_map(|step| handlers.get(step)?.as_ref());
        let mut shape = vec![class_name(snapshot, channel)];
        shape.extend(own.map(|handler| class_name(snapshot, *handler)));
        groups.add(PendingKind::Pipelines, shape, channel);
    }
}
