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
    let grows = |step| {
        let (first, last) = case.ends(step);
        last > first && case.is_kind(step, "java.lang.ClassLoader")
    };
    let content = case.candidate.content.iter().chain(&case.candidate.beside);
    let loader = case
        .steps
        .iter()
        .chain(content)
        .copied()
        .find(|&s| grows(s))?;
    let (first, last) = case.ends(loader);
    let class = case.class(loader);
    let [before, .., after] = case.summaries else {
        return None;
    };
    let duplicates = after.facts.defined_by.iter().map(|(name, &now)| {
        let grown = now.saturating_sub(before.facts.loaders_of(name));
        (grown, name, now)
    });
    let most = duplicates
        .filter(|d| d.0 > 0)
        .max_by_key(|&(grown, name, _)| (grown, std::cmp::Reverse(name)));
    let pin: Vec<Label> = trie
        .path(loader)
        .into_iter()
        .map(|s| (case.via(s).to_owned(), trie.names.kind(trie[s].via)))
        .collect();
    let pin = growth::holder(&pin).or_else(|| pin.last().map(|l| l.0.clone()));
    let pinned = pin.map(|via| format!("the loaders are pinned by {via}"));
    Some(match most {
        Some((grown, name, now)) => {
            let sentence = format!(
                "class loader leak: {name} is defined by {}",
                changed(now - grown, now, &format!("loaders of class {class}"))
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
