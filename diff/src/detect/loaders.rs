//! Class loaders of former deployments that something keeps.

use super::Finding;
use crate::case::Case;
use crate::figures::changed;
use crate::growth;
use crate::shared::Label;

/// So many more loaders of one class are no coincidence.
const SEVERAL: u64 = 3;

pub(super) fn find(case: &Case<'_>) -> Option<Finding> {
    let trie = case.trie();
    let [before, .., after] = case.summaries else {
        return None;
    };
    let more = |class: &str| {
        let (then, now) = (
            before.facts.loaders_of(class),
            after.facts.loaders_of(class),
        );
        now.saturating_sub(then)
    };
    let content = case.candidate.content.iter().chain(&case.candidate.beside);
    let steps = || case.steps.iter().chain(content.clone()).copied();
    let grows = |step| {
        let (first, last) = case.ends(step);
        last > first
    };
    // The loaders themselves, or instances of a class that many of them define.
    let loader = steps().find(|&s| grows(s) && case.is_kind(s, "java.lang.ClassLoader"));
    let instance = || steps().find(|&s| grows(s) && more(case.class(s)) >= SEVERAL);
    let step = loader.or_else(instance)?;
    let (first, last) = case.ends(step);
    let class = case.class(step);
    let duplicates = after.facts.defined_by.iter();
    let most = match loader {
        Some(_) => duplicates
            .map(|(name, &now)| (more(name), &**name, now))
            .filter(|d| d.0 > 0)
            .max_by_key(|&(grown, name, _)| (grown, std::cmp::Reverse(name))),
        None => Some((more(class), class, after.facts.loaders_of(class))),
    };
    let pin: Vec<Label> = trie
        .path(step)
        .into_iter()
        .map(|s| (case.via(s).to_owned(), trie.names.kind(trie[s].via)))
        .collect();
    let pin = growth::holder(&pin).or_else(|| pin.last().map(|l| l.0.clone()));
    let pinned = pin.map(|via| format!("the loaders are pinned by {via}"));
    Some(match most {
        Some((grown, name, now)) => {
            let sentence = format!(
                "class loader leak: {name} is defined by {}",
                match loader {
                    Some(_) => changed(now - grown, now, &format!("loaders of class {class}")),
                    None => changed(now - grown, now, "loaders"),
                }
            );
            let finding = Finding::new("class-loader", sentence).and(pinned);
            match grown >= SEVERAL {
                true => finding.certain(),
                false => finding,
            }
        }
        None => {
            let sentence = format!(
                "more class loaders than before: {}",
                changed(first, last, &format!("of class {class}"))
            );
            Finding::new("class-loader", sentence).and(pinned)
        }
    })
}
