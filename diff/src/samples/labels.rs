//! The part of samples whose threads had certain labels.

use std::collections::{BTreeMap, BTreeSet};

use heapdiff_model::labels::{Label, LabelShare, Labels};
use heapdiff_sites::{labels, whole};

use crate::samples::Samples;

/// Maximum number of single labels to report.
const SHARES: usize = 10;
/// Minimum fraction for the first common label: the bytes of the samples with this label, divided by the bytes of all
/// samples.
const COMMON: f64 = 0.5;
/// Minimum fraction for each further common label: the bytes of samples with it, divided by the bytes of samples with
/// all earlier common labels.
const FURTHER: f64 = 0.9;

/// Returns the labels in the stored name of a thread.
pub fn labels_of_thread(name: &str) -> impl Iterator<Item = Label> {
    let (_, labels) = labels::split(name);
    labels::pairs(labels).map(|(key, value)| Label {
        key: key.to_owned(),
        value: value.to_owned(),
    })
}

/// The bytes and the number of samples of one set of labels.
#[derive(Clone, Copy, Debug, Default)]
struct Amount {
    bytes: f64,
    samples: u64,
}

/// Samples by the set of their labels. The empty set is that of samples without labels.
#[derive(Clone, Debug, Default)]
pub struct ByLabels(BTreeMap<BTreeSet<Label>, Amount>);

impl ByLabels {
    /// Adds `samples` samples, which represent `bytes` bytes. `thread` is the stored name of the thread, with its
    /// labels ([`labels`]).
    pub fn add(&mut self, thread: &str, bytes: f64, samples: u64) {
        let set = labels_of_thread(thread).collect();
        let amount = self.0.entry(set).or_default();
        amount.bytes += bytes.max(0.0);
        amount.samples += samples;
    }

    /// Returns the samples that have all of these labels.
    fn with(&self, labels: &[Label]) -> Amount {
        let mut sum = Amount::default();
        for (set, amount) in &self.0 {
            if labels.iter().all(|label| set.contains(label)) {
                sum.bytes += amount.bytes;
                sum.samples += amount.samples;
            }
        }
        sum
    }

    fn share(&self, labels: Vec<Label>, live: &Self) -> LabelShare {
        let amount = self.with(&labels);
        let live_permille = permille(live.with(&labels).bytes, live.with(&[]).bytes);
        LabelShare {
            permille: permille(amount.bytes, self.with(&[]).bytes),
            samples: amount.samples,
            live_permille,
            labels,
        }
    }

    /// Returns the report on these samples, or `None` if none of them has labels. `live` are all live samples.
    #[must_use]
    pub fn report(&self, live: &Self) -> Option<Labels> {
        let mut singles = self.other_labels(&[]);
        singles.truncate(SHARES);
        let shares = singles
            .iter()
            .map(|(_, label)| self.share(vec![(*label).clone()], live));
        let shares: Vec<LabelShare> = shares.collect();
        if shares.is_empty() {
            return None;
        }
        let all = self.with(&[]);
        let mut common: Vec<Label> = Vec::new();
        let mut least = all.bytes * COMMON;
        let is_enough = all.samples >= Labels::FEW_SAMPLES;
        while is_enough
            && let Some((bytes, next)) = self.other_labels(&common).into_iter().next()
            && bytes > 0.0
            && bytes >= least
        {
            least = bytes * FURTHER;
            common.push(next.clone());
        }
        Some(Labels {
            common: (!common.is_empty()).then(|| self.share(common, live)),
            shares,
            samples: all.samples,
        })
    }

    /// Returns each label that is not in `common`, with the bytes of the samples that have this label and all labels in
    /// `common`. The labels are sorted by bytes, descending.
    fn other_labels(&self, common: &[Label]) -> Vec<(f64, &Label)> {
        let mut others: BTreeMap<&Label, f64> = BTreeMap::new();
        for (set, amount) in &self.0 {
            if common.iter().all(|label| set.contains(label)) {
                for label in set.iter().filter(|label| !common.contains(label)) {
                    *others.entry(label).or_default() += amount.bytes;
                }
            }
        }
        let mut others: Vec<_> = others
            .into_iter()
            .map(|(label, bytes)| (bytes, label))
            .collect();
        others.sort_by(|a, b| b.0.total_cmp(&a.0));
        others
    }
}

fn permille(part: f64, whole_bytes: f64) -> u64 {
    if whole_bytes > 0.0 {
        whole(part * 1000.0 / whole_bytes).min(1000)
    } else {
        0
    }
}

impl Samples {
    /// Returns the name of a thread without its labels. `number` is the thread of a sample.
    #[must_use]
    pub fn thread_name(&self, number: u32) -> &str {
        labels::split(self.name(number)).0
    }

    /// Returns the labels of a thread as text: `tenant=acme, route=/book`. Returns `None` if it has none.
    #[must_use]
    pub fn label_text(&self, number: u32) -> Option<String> {
        let (_, labels) = labels::split(self.name(number));
        (!labels.is_empty()).then(|| labels.replace(labels::SEPARATOR, ", "))
    }

    /// True if at least one sample of the dump has labels.
    pub(super) fn have_labels(&self) -> bool {
        self.names
            .iter()
            .any(|name| name.contains(labels::SEPARATOR))
    }

    /// Returns all live samples by their labels.
    pub(super) fn live_by_labels(&self) -> ByLabels {
        let mut live = ByLabels::default();
        let mut threads: BTreeMap<u32, Amount> = BTreeMap::new();
        for sample in &self.live {
            let amount = threads.entry(sample.thread).or_default();
            amount.bytes += sample.weight.bytes;
            amount.samples += 1;
        }
        for (thread, amount) in threads {
            live.add(self.name(thread), amount.bytes, amount.samples);
        }
        live
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(text: &str) -> Label {
        labels_of_thread(&labels::join("", text)).next().unwrap()
    }

    fn by_labels(samples: &[(&str, u64)]) -> ByLabels {
        let mut all = ByLabels::default();
        for &(labels, count) in samples {
            let thread = match labels {
                "" => "worker-1".to_owned(),
                labels => labels::join("worker-1", &labels.replace(' ', "\u{1f}")),
            };
            let bytes = f64::from(u32::try_from(count).unwrap()) * 100.0;
            all.add(&thread, bytes, count);
        }
        all
    }

    #[test]
    fn common_labels_are_those_of_most_objects() {
        let grown = by_labels(&[
            ("tenant=acme route=/book", 90),
            ("tenant=acme route=/pay", 3),
            ("tenant=globex route=/book", 5),
            ("", 2),
        ]);
        let live = by_labels(&[("tenant=acme route=/book", 90), ("tenant=globex", 110)]);
        let report = grown.report(&live).unwrap();
        let common = report.common.unwrap();
        assert_eq!(common.labels, [label("route=/book"), label("tenant=acme")]);
        assert_eq!((common.permille, common.samples), (900, 90));
        assert_eq!(common.live_permille, 450);
        assert_eq!(report.samples, 100);
        let shares: Vec<_> = report
            .shares
            .iter()
            .map(|s| (&s.labels[0], s.permille))
            .collect();
        assert_eq!(
            shares,
            [
                (&label("route=/book"), 950),
                (&label("tenant=acme"), 930),
                (&label("tenant=globex"), 50),
                (&label("route=/pay"), 30)
            ]
        );
    }

    #[test]
    fn few_samples_have_no_common_labels() {
        let grown = by_labels(&[("tenant=acme", 9)]);
        let report = grown.report(&grown).unwrap();
        assert_eq!((report.common, report.samples), (None, 9));
        assert_eq!(report.shares[0].samples, 9);
    }

    #[test]
    fn labels_of_few_objects_are_not_common() {
        let grown = by_labels(&[("tenant=acme", 49), ("tenant=globex", 40), ("", 11)]);
        let report = grown.report(&grown).unwrap();
        assert_eq!(report.common, None);
        assert_eq!(report.shares[0].permille, 490);
        assert_eq!(by_labels(&[("", 9)]).report(&grown), None);
    }
}
