//! Tests a program that ProGuard shortened (`cargo xtask shrunk`), on a real JVM with the agent. If the mapping is
//! used, the report equals that on the original program.

use std::path::Path;
use std::sync::Arc;

use heapdiff_diff::{Comparison, Filter, Report, Summary};
use heapdiff_mapping::Mapping;
use hprof::{NameMapping, Options, Silent, Snapshot};
use testdata::jvm::{DumpOptions, Jdk, Launch, Selection};
use testdata::programs::{agent_library, shrunk};

const MAIN: &str = "com.acme.shop.Shop";

fn open(dump: &Path, mapping: Option<&Arc<Mapping>>) -> Snapshot {
    let mut options = Options::default();
    options.holders = true;
    options.mapping = mapping.map(|mapping| mapping.clone() as _);
    Snapshot::open(dump, &options, &Silent).unwrap()
}

/// Compares two dumps of a program. Also returns the program's frames in the second dump.
fn report(
    jdk: &Jdk,
    classpath: &Path,
    mapping: Option<&Arc<Mapping>>,
    folder: &Path,
) -> (Report, Vec<String>) {
    let launch = Launch::class(jdk, classpath, MAIN).flag("-Xmx64m");
    let mut target = launch
        .agent(&agent_library(), "interval=0")
        .start()
        .unwrap();
    let live = || DumpOptions {
        selection: Selection::Live,
        ..DumpOptions::default()
    };
    target.wait_ready(1).unwrap();
    let [before, after] = ["before", "after"].map(|name| folder.join(name));
    target.dump(&before, live()).unwrap();
    target.advance(2).unwrap();
    target.dump(&after, live()).unwrap();
    let dumps = [&before, &after];
    let summaries = dumps.map(|dump| Summary::new(&open(dump, mapping), String::new()).unwrap());
    let last = open(&after, mapping);
    let comparison = Comparison::new(&summaries, &last).unwrap();
    let report = comparison.report(&Filter::default());
    let threads = last.threads();
    let main = threads.iter().find(|t| t.name.as_deref() == Some("main"));
    let frames = main.unwrap().frames.iter().map(|f| f.frame.to_string());
    let own = frames.filter(|frame| frame.starts_with("com.acme.") || frame.starts_with("a."));
    (report, own.collect())
}

/// Returns the parts of a report that contain names.
fn summary_lines(report: &Report) -> Vec<String> {
    let mut summary_lines = Vec::new();
    for suspect in &report.suspects {
        summary_lines.push(format!(
            "{} {} {} {:?} {}",
            suspect.holder,
            suspect.class,
            suspect.root,
            suspect.objects,
            suspect.path.join(" ")
        ));
        let mut stacks: Vec<String> = suspect
            .stacks
            .iter()
            .map(|stack| {
                format!(
                    "{} {} {}",
                    stack.class,
                    stack.samples,
                    stack.frames.join(" ")
                )
            })
            .collect();
        stacks.sort();
        summary_lines.extend(stacks);
    }
    let all = report.classes.iter();
    let classes = all.filter(|c| c.class.starts_with("com.acme."));
    summary_lines.extend(classes.map(|c| format!("{} {:?}", c.class, c.objects)));
    summary_lines
}

#[test]
fn a_mapping_restores_the_names_of_a_shrunk_program() {
    let [jar, source, mapping] = shrunk();
    let mapping = Arc::new(Mapping::new([std::fs::read(mapping).unwrap()]).unwrap());
    let jdks = Jdk::all_for_scenarios();
    assert!(!jdks.is_empty(), "no JDK found");
    for jdk in jdks {
        let folder = |name: &str| {
            let folder = tempfile::Builder::new().prefix(name).tempdir().unwrap();
            let path = folder.path().to_owned();
            (folder, path)
        };
        let (_written, at) = folder("written");
        let classes = jdk.compile(&source).unwrap();
        let (written, frames) = report(&jdk, &classes, None, &at);
        let (_shrunk, at) = folder("shrunk");
        let (mapped, mapped_frames) = report(&jdk, &jar, Some(&mapping), &at);
        let suspect = &mapped.suspects[0];
        assert_eq!(suspect.holder, "com.acme.shop.Shop$Registry.carts");
        assert_eq!(suspect.class, "com.acme.shop.Shop$Cart");
        assert_eq!(suspect.root, "static com.acme.shop.Shop");
        assert_eq!(
            summary_lines(&mapped),
            summary_lines(&written),
            "JDK {}",
            jdk.major()
        );
        assert_eq!(mapped_frames, frames);
        // Methods that ProGuard inlined appear as frames of their own.
        let stacks = suspect.stacks.iter().flat_map(|s| &s.frames);
        let filled = "com.acme.shop.Shop.filled(Shop.java:58)";
        assert!(stacks.clone().any(|frame| frame == filled), "{suspect:#?}");
        assert!(mapping.fits());
        // Without the mapping, the report has the shortened names of the dump.
        let plain = open(&at.join("after"), None);
        assert!(
            plain
                .classes()
                .by_name("com.acme.shop.Shop$Cart")
                .is_empty()
        );
        assert_eq!(plain.classes().by_name("a").len(), 1);
    }
}
