//! Checks the labels of samples: nested scopes, scopes that are closed in another thread or in the wrong order, and
//! virtual threads.

use std::collections::BTreeMap;

use heapdiff_sites::labels;
use testdata::jvm::Launch;
use testdata::programs;
use testdata::programs::agent_library as library;

use crate::dumped::Dumped;
use crate::{CHECKED, jdks};

#[test]
fn each_sample_has_the_labels_of_its_thread() {
    for jdk in jdks() {
        let classes = jdk.compile_all(&programs::labelled()).unwrap();
        let launch = Launch::class(&jdk, classes, "Labelled")
            .agent(&library(), "interval=0,max_samples=100000")
            .flags(CHECKED);
        let mut target = launch.start().unwrap();
        // The program logs the number of its objects for each thread and each set of labels.
        let logged = target.lines_until_ready().unwrap();
        let logged = logged.iter().filter_map(|line| line.strip_prefix("ITEMS "));
        let logged: BTreeMap<String, u64> = logged
            .map(|line| {
                let (number, key) = line.split_once(' ').unwrap();
                (key.to_owned(), number.parse().unwrap())
            })
            .collect();
        let dumped = Dumped::of(&target);
        dumped.assert_complete();
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for sample in &dumped.samples {
            if sample.kind == "Labelled$Item" {
                let (thread, labels) = labels::split(&sample.thread);
                let labels = labels.replace(labels::SEPARATOR, ",");
                let key = format!("{thread} {labels}");
                *counts.entry(key.trim().to_owned()).or_default() += 1;
            }
        }
        assert!(logged.len() >= 30 && logged.values().sum::<u64>() > 1000);
        assert_eq!(counts, logged, "JDK {}", jdk.version());
        let (ended_well, errors) = target.finish_with_errors().unwrap();
        assert!(ended_well, "{errors}");
        let warning = "some samples lack labels: a thread has at most three labels";
        assert_eq!(errors.matches(warning).count(), 1, "{errors}");
        assert_eq!(errors.lines().count(), 1, "{errors}");
    }
}
