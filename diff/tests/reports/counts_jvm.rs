//! Tests the confidence intervals of stacks whose allocations are counted exactly. The dumps are of real JVMs with the
//! agent's `count=on`.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use crate::common::of_files;
use heapdiff_diff::samples::{AgentObjects, Allocations, Samples, StackAllocations};
use heapdiff_diff::{SampledBytes, Stack, by_site};
use hprof::{Options, Silent, Snapshot};
use testdata::jvm::{DumpOptions, Jdk, Launch, Target};
use testdata::programs;
use testdata::programs::agent_library as library;

fn launch(jdk: &Jdk, program: &str, options: &str) -> Launch {
    let classes = jdk
        .compile(&programs::agent(&format!("{program}.java")))
        .unwrap();
    Launch::class(jdk, classes, program)
        .flag("-Xmx256m")
        .agent(&library(), options)
        .timeout(Duration::from_secs(120))
}

/// Returns the true number of bytes of each large method, as the program prints it. Small methods are left out, because
/// they may have no sample.
fn truth(target: &mut Target) -> BTreeMap<String, u64> {
    let lines = target.lines_until_ready().unwrap();
    let large = lines.iter().filter(|line| !line.starts_with("rare"));
    let figures = large.filter_map(|line| {
        let (method, bytes) = line.split_once(' ')?;
        Some((method.to_owned(), bytes.parse().ok()?))
    });
    figures.collect()
}

/// Takes a dump after the agent has copied all of its counts to the heap.
fn dump(target: &Target, file: &Path) {
    std::thread::sleep(Duration::from_millis(2500));
    target.dump(file, DumpOptions::default()).unwrap();
}

fn samples(file: &Path) -> Samples {
    let snapshot = Snapshot::open(file, &Options::default(), &Silent).unwrap();
    let (samples, fault) = Samples::with_all_sites(&snapshot, &AgentObjects::find(&snapshot));
    assert_eq!(fault, None);
    samples.unwrap()
}

fn sites(samples: &Samples) -> Vec<Stack> {
    by_site(samples, &|_, _| true, u64::MAX).stacks
}

/// Returns the stack whose first frame is in this method of the test program.
fn of<'a>(stacks: &'a [Stack], program: &str, method: &str) -> &'a Stack {
    let start = format!("{program}.{method}(");
    let found = stacks.iter().find(|s| s.frames[0].starts_with(&start));
    found.unwrap_or_else(|| panic!("{method}: {stacks:#?}"))
}

fn allocations<'a>(samples: &Samples, all: &'a Allocations, start: &str) -> &'a StackAllocations {
    let leaf =
        |stack: &StackAllocations| samples.sites.frames(stack.site).next().map(str::to_owned);
    let mut stacks = all.stacks.iter();
    let found = stacks.find(|s| leaf(s).is_some_and(|frame| frame.starts_with(start)));
    found.unwrap_or_else(|| panic!("{start}: {all:#?}"))
}

#[derive(Default, Debug)]
struct Found {
    stacks: u32,
    held: u32,
    /// Sum of the widths of the confidence intervals of all stacks. The intervals use counts.
    width: u64,
    /// Sum of the widths of the confidence intervals of the same stacks, computed without counts.
    without: u64,
}

impl Found {
    fn add(&mut self, stack: &Stack, truth: u64) {
        self.add_interval(stack.ci95, stack.sampled, truth);
    }

    fn add_interval(&mut self, ci95: [u64; 2], sampled: Option<SampledBytes>, truth: u64) {
        let [low, high] = ci95;
        self.stacks += 1;
        self.held += u32::from(low <= truth && truth <= high);
        self.width += high - low;
        let [low, high] = sampled.map_or(ci95, |sampled| sampled.ci95);
        self.without += high - low;
    }
}

/// Samples show how many bytes a program keeps in total. Allocation counts show how much of this total belongs to each
/// stack.
#[test]
fn counts_narrow_the_estimates_from_samples() {
    for jdk in Jdk::all_for_scenarios() {
        let launch = launch(&jdk, "Shares", "interval=64k,count=on")
            .arg("7")
            .arg("8");
        let mut target = launch.start().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let files = ["before", "after"].map(|name| dir.path().join(format!("{name}.hprof")));
        let before = truth(&mut target);
        dump(&target, &files[0]);
        target.proceed().unwrap();
        let after = truth(&mut target);
        dump(&target, &files[1]);
        let last = samples(&files[1]);
        let stacks = sites(&last);
        let mut alive = Found::default();
        for (method, &bytes) in &after {
            alive.add(of(&stacks, "Shares", method), bytes);
        }
        let report = of_files(&files.each_ref().map(|file| &**file));
        let stacks: Vec<Stack> = report.suspects.into_iter().flat_map(|s| s.stacks).collect();
        let mut grown = Found::default();
        for (method, &bytes) in &after {
            grown.add(of(&stacks, "Shares", method), bytes - before[method]);
        }
        let mut allocated = Found::default();
        let all = last.allocations(&|_, _| true).unwrap();
        for (method, &bytes) in &after {
            let stack = allocations(&last, &all, &format!("Shares.{method}("));
            allocated.add_interval(stack.ci95.unwrap(), stack.sampled, bytes);
        }
        for found in [&alive, &grown, &allocated] {
            println!("JDK {}: {found:?}", jdk.major());
            // About one in twenty true values may be outside of its interval. The probability that five of twelve are
            // outside is about 1 in 100,000.
            assert!(found.stacks == 12 && found.held >= 8, "{found:?}");
            assert!(found.without > found.width * 11 / 10, "{found:?}");
        }
    }
}

/// Allocations that the compiler removed are included in the counts, but must not change the estimate of live bytes.
#[test]
fn removed_allocations_do_not_change_the_estimate() {
    for jdk in Jdk::all_for_scenarios() {
        // With -Xbatch, a call waits until its method is compiled. So only few calls run in the interpreter.
        let launch = launch(&jdk, "Escape", "interval=16k,count=on").flag("-Xbatch");
        let mut target = launch.start().unwrap();
        let truth = truth(&mut target);
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("heap.hprof");
        dump(&target, &file);
        let samples = samples(&file);
        let stacks = sites(&samples);
        for (method, &bytes) in &truth {
            let stack = of(&stacks, "Escape", method);
            println!("JDK {}: {bytes} of {stack:?}", jdk.major());
            let half = (stack.ci95[1] - stack.ci95[0]) / 2;
            let error = stack.estimated_bytes.abs_diff(bytes);
            // An error larger than this cannot be random variation.
            assert!(half > 0 && error <= 3 * half, "{bytes} of {stack:?}");
        }
        // If the estimate and the count of allocated bytes disagree, the report has both figures.
        let all = samples.allocations(&|_, _| true).unwrap();
        let of = |method: &str| all.disagreements.iter().find(|d| d.method == method);
        let removed = of("mostlyRemoved").unwrap();
        println!("JDK {}: {removed:?}", jdk.major());
        assert!(removed.counted_bytes > 4 * removed.ci99[1], "{removed:?}");
        let stack = |method| allocations(&samples, &all, &format!("Escape.{method}("));
        let removed = stack("mostlyRemoved");
        assert_eq!(removed.sampled, None, "{removed:?}");
        // By random variation, the samples of the method `allKept` may contradict the count of its allocations. In that
        // case, the estimate from the samples stays. Otherwise, the count replaces the estimate.
        let kept = stack("allKept");
        let exact = kept.sampled.is_none() || kept.bytes == truth["allKept"];
        assert!(
            exact && kept.sampled.is_none() == of("allKept").is_some(),
            "{kept:?}"
        );
    }
}
