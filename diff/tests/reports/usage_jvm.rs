//! Tests that collections with the same growth get different verdicts if the program uses them differently. The agent
//! counts the use (`usage=on`) in real JVMs.

use heapdiff_diff::{Report, Suspect, Verdict};
use testdata::jvm::{DumpOptions, Jdk, Launch};
use testdata::programs;
use testdata::programs::agent_library as library;

use crate::common::of_files;

/// Compares two dumps of the program. The program runs one phase between the dumps.
fn diff(jdk: &Jdk, options: &str, crowd: u32) -> Report {
    let classes = jdk.compile(&programs::agent("Twins.java")).unwrap();
    let launch = Launch::class(jdk, classes, "Twins").agent(&library(), options);
    let launch = launch.arg(crowd.to_string());
    let mut target = launch.start().unwrap();
    target.wait_ready(1).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let [before, after] = ["before", "after"].map(|n| folder.path().join(format!("{n}.hprof")));
    target.dump(&before, DumpOptions::default()).unwrap();
    target.advance(2).unwrap();
    target.dump(&after, DumpOptions::default()).unwrap();
    let (well, errors) = target.finish_with_errors().unwrap();
    assert!(well && !errors.contains("Exception"), "{errors}");
    of_files(&[&before, &after])
}

fn of<'r>(report: &'r Report, holder: &str) -> &'r Suspect {
    let holder = format!("Twins.{holder}");
    let found = report.suspects.iter().find(|s| s.holder == holder);
    found.unwrap_or_else(|| panic!("{holder} is no suspect: {report:#?}"))
}

#[test]
fn two_dumps_distinguish_a_leak_from_a_collection_in_use() {
    for jdk in Jdk::all_for_scenarios() {
        let which = format!("JDK {}", jdk.version());
        // With this interval there are so few samples that they do not influence the verdict.
        let report = diff(&jdk, "interval=1g,usage=on", 0);
        let says = |s: &Suspect, part: &str| s.reasons.iter().any(|r| r.contains(part));
        let [forgotten, remembered] = ["forgotten", "remembered"].map(|name| of(&report, name));
        let differ = |(a, b): (&u64, &u64)| a.abs_diff(*b);
        let mut pairs = forgotten.objects.iter().zip(&remembered.objects);
        assert!(
            pairs.all(|pair| differ(pair) <= 8),
            "{which}: {forgotten:#?}"
        );
        let of = |s: &Suspect| s.usage.clone().unwrap_or_else(|| panic!("{which}: {s:#?}"));
        let (used, asked) = (of(forgotten), of(remembered));
        assert_eq!((used.removed, used.read), (0, 0), "{which}: {used:?}");
        assert!(
            used.put > 1000 && used.put.abs_diff(asked.put) <= 8,
            "{which}: {used:?} {asked:?}"
        );
        assert!(
            asked.read.abs_diff(3 * asked.put) <= 24 && asked.removed == 0,
            "{which}: {asked:?}"
        );
        assert_eq!(forgotten.verdict, Verdict::Leak, "{which}: {forgotten:#?}");
        assert!(
            says(forgotten, "before the dump, the agent counted")
                && says(forgotten, "0 removals and 0 reads"),
            "{which}: {forgotten:#?}"
        );
        assert_eq!(
            remembered.verdict,
            Verdict::Growth,
            "{which}: {remembered:#?}"
        );
        assert!(
            says(
                remembered,
                "the agent counted at least as many reads as puts"
            ),
            "{which}"
        );
        let passing = self::of(&report, "passing");
        let churn = of(passing);
        assert!(
            churn.removed * 8 >= churn.put * 6 && churn.removed < churn.put,
            "{churn:?}"
        );
        assert!(
            says(
                passing,
                "at least three quarters as many elements were removed as were added"
            ),
            "{which}"
        );
        assert_eq!(passing.verdict, Verdict::Growth, "{which}: {passing:#?}");
        for name in ["queued", "tabled"] {
            let suspect = self::of(&report, name);
            let used = of(suspect);
            assert_eq!((used.removed, used.read), (0, 0), "{which}: {used:?}");
            assert!(used.put > 1000, "{which}: {used:?}");
            assert_eq!(suspect.verdict, Verdict::Leak, "{which}: {suspect:#?}");
        }
        let sorted = self::of(&report, "sorted");
        let read = of(sorted);
        assert!(
            read.put > 1000 && read.read.abs_diff(read.put) <= 1,
            "{which}: {read:?}"
        );
        assert_eq!(sorted.verdict, Verdict::Growth, "{which}: {sorted:#?}");
        assert_eq!(report.warnings, [""; 0], "{which}");
    }
}

/// Without `usage=on`, the report contains nothing about the use of collections, and two dumps are not enough to detect
/// the leak.
#[test]
fn without_usage_counting_the_report_has_no_usage() {
    let jdk = Jdk::all_for_scenarios().pop().unwrap();
    let report = diff(&jdk, "interval=1g", 0);
    for name in ["forgotten", "remembered"] {
        let suspect = of(&report, name);
        assert_eq!((suspect.verdict, &suspect.usage), (Verdict::Growth, &None));
        assert!(
            !suspect
                .reasons
                .iter()
                .any(|r| r.contains("the agent counted"))
        );
    }
}

/// If the agent has no room for some large collections, a warning gives their number. The dumps can still be compared.
#[test]
fn unwatched_collections_are_reported() {
    let jdk = Jdk::all_for_scenarios().pop().unwrap();
    let report = diff(&jdk, "interval=1g,usage=on", 10_000);
    let [warning] = &report.warnings[..] else {
        panic!("{:?}", report.warnings);
    };
    let told = "the agent had no room to watch at least ";
    let number = warning.strip_prefix(told).and_then(|w| w.split(' ').next());
    let number: u32 = number.unwrap().replace(',', "").parse().unwrap();
    // The agent has room for about 4,100 collections. If the hashes of two collections begin with the same bits, one of
    // the two is added late, or is counted together with the other.
    assert!((4500..=6000).contains(&number), "{warning}");
    assert!(report.comparable);
}
