//! Detects class loaders of former deployments of an application that are still reachable.

use super::Finding;
use crate::evidence::bounds::is_softly_held;
use crate::evidence::context::SuspectContext;
use crate::growth;
use crate::names::Label;
use crate::sentence::Evidence;
use crate::trie::StepId;

/// If at least this number of loaders of one class was added, the leak is certain.
const SEVERAL: u64 = 3;

pub(super) fn find(context: &SuspectContext<'_>) -> Option<Finding> {
    let trie = context.trie();
    let after = context.summaries.last()?;
    // In a single dump, each class is expected to have one loader.
    let then = |class: &str| match context.summaries {
        [before, _, ..] => before.stats.loaders_of(class),
        _ => 1,
    };
    let more = |class: &str| after.stats.loaders_of(class).saturating_sub(then(class));
    let below = growing_subtree(context);
    let steps = || context.steps.iter().chain(&below).copied();
    let grows = |step| {
        let (first, last) = context.ends(step);
        if context.is_alone() {
            last > SEVERAL
        } else {
            last > first
        }
    };
    // Search for a growing trie node whose objects are class loaders. If no such node exists, search for a trie node
    // that grows and whose class several loaders define. The last dump must have at least [`SEVERAL`] more of these loaders than
    // the first.
    let loader = steps().find(|&s| grows(s) && context.is_kind(s, "java.lang.ClassLoader"));
    let instance = || steps().find(|&s| grows(s) && more(context.class(s)) >= SEVERAL);
    let step = loader.or_else(instance)?;
    // Only soft references hold the loaders. The JVM clears these references before memory runs out, and then frees the
    // loaders.
    if is_softly_held(context, step) {
        return None;
    }
    let (first, last) = context.ends(step);
    let class = context.class(step);
    let is_told = |grown: u64| grown >= if context.is_alone() { SEVERAL } else { 1 };
    let duplicates = after.stats.defined_by.iter();
    let most = match loader {
        Some(_) => duplicates
            .map(|(name, &now)| (more(name), &**name, now))
            .filter(|d| is_told(d.0))
            .max_by_key(|&(grown, name, _)| (grown, std::cmp::Reverse(name))),
        None => Some((more(class), class, after.stats.loaders_of(class))),
    };
    let pin: Vec<Label> = trie
        .path(step)
        .into_iter()
        .map(|s| (context.via(s).to_owned(), trie.names.kind(trie[s].via)))
        .collect();
    let pin = growth::holder(&pin).or_else(|| pin.last().map(|l| l.0.clone()));
    let pinned = pin.map(|field| Evidence::LoadersPinned { field });
    Some(match most {
        Some((grown, name, now)) => {
            let loaders = match loader {
                Some(_) => format!("loaders of class {class}"),
                None => "loaders".to_owned(),
            };
            let sentence = Evidence::ClassLoaders {
                class: name.to_owned(),
                loaders: context.changed(now - grown, now, loaders),
            };
            let finding = Finding::new("class-loader", sentence).with_evidence(pinned);
            if grown >= SEVERAL {
                finding.mark_certain()
            } else {
                finding
            }
        }
        None if context.is_alone() => return None,
        // One or two additional loaders may belong to start-up, so they are no evidence of a leak.
        None if last - first < SEVERAL => return None,
        None => {
            let loaders = context.changed(first, last, format!("of class {class}"));
            let sentence = Evidence::MoreClassLoaders(loaders);
            Finding::new("class-loader", sentence).with_evidence(pinned)
        }
    })
}

/// Returns the growing trie nodes and those of their descendants that grow as well. Such a descendant gained at least
/// half as many objects as the first growing trie node. Example: the number of plugins grows, and each plugin holds its
/// loader. Then the trie node of the loaders is a descendant.
fn growing_subtree(context: &SuspectContext<'_>) -> Vec<StepId> {
    const LOOKED_AT: usize = 1 << 10;
    let trie = context.trie();
    let candidate = context.candidate;
    let mut found: Vec<StepId> = [&candidate.content[..], &candidate.beside].concat();
    let top = found.len();
    let mut at = 0;
    while at < found.len() && found.len() < LOOKED_AT {
        found.extend_from_slice(&trie[found[at]].children);
        at += 1;
    }
    let more = |step: StepId| {
        let (first, last) = context.ends(step);
        last.saturating_sub(first)
    };
    let came = found.first().map_or(0, |&head| more(head));
    let inner = found.split_off(top);
    found.extend(inner.into_iter().filter(|&s| more(s) * 2 >= came));
    found
}
