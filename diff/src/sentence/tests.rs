//! Each sentence occurs in a golden case, and is absent from another.
//!
//! Golden cases are blocks of commands and their output, and the quotes in integration tests, which print reports of
//! dumps.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::Path;
use std::time::Duration;

use heapdiff_units::{Size, Span};
use regex::Regex;

use super::{Change, Evidence, Names, Verdict, Warning, Waste};

/// A name in an example. No golden case has it.
const NAME: &str = "§";
/// A number in an example.
const N: u64 = 7777;

/// The code with the enums.
const CODE: [&str; 4] = [
    include_str!("evidence.rs"),
    include_str!("verdict.rs"),
    include_str!("warning.rs"),
    include_str!("waste.rs"),
];

/// Number of words of a quote.
const QUOTED: usize = 4;

fn name() -> String {
    NAME.to_owned()
}

/// A change in a comparison, and a number in one dump.
fn changes() -> [Change; 2] {
    [Some(1), None].map(|first| Change {
        first,
        last: N,
        things: name(),
    })
}

fn evidence() -> Vec<Evidence> {
    let class = name;
    let field = name;
    let size = Size(N);
    let names = |names: &[&str]| names.iter().map(|&n| n.to_owned()).collect::<Vec<_>>();
    let usage = |put, removed, read| Evidence::Usage {
        span: Span(Duration::from_secs(60)),
        watched: 3,
        collections: N,
        put,
        removed,
        read,
    };
    let [change, number] = changes();
    let mut all = vec![
        Evidence::GrewInPlace { before: 1, now: 1 },
        Evidence::GrewInPlace { before: 0, now: 1 },
        Evidence::GrewInPlace { before: 1, now: N },
        Evidence::MoreObjects,
        Evidence::MoreHeld { before: 0, now: N },
        Evidence::MoreHeld { before: N, now: N },
        Evidence::MoreHeld { before: 1, now: N },
        Evidence::MostlyOne {
            holders: N,
            class: class(),
        },
        Evidence::SeveralPaths,
        Evidence::Shared {
            fields: Names(names(&[NAME, NAME])),
            grew: Names(Vec::new()),
        },
        Evidence::Shared {
            fields: Names(names(&[NAME, NAME])),
            grew: Names(names(&[NAME])),
        },
        Evidence::AlsoReachable {
            holder: field(),
            other: field(),
        },
        Evidence::CollectionGrew {
            field: field(),
            growth: size,
        },
        Evidence::CollectionHolds {
            field: field(),
            size,
        },
        Evidence::FiguresOfClass { dump: 2 },
        Evidence::FiguresInterpolated { dump: 2 },
        Evidence::OneLargeObject {
            class: class(),
            size,
        },
        Evidence::OneObject { class: class() },
        Evidence::SmallParts {
            objects: N,
            class: class(),
            mean: size,
        },
        Evidence::Objects {
            objects: N,
            class: class(),
            mean: size,
            largest: size,
        },
        Evidence::Chain {
            objects: N,
            class: class(),
            mean: size,
        },
        Evidence::Tree {
            objects: N,
            class: class(),
            mean: size,
        },
        Evidence::HeldInEach {
            field: field(),
            objects: N,
            class: class(),
        },
        Evidence::Metaspace,
        Evidence::ThreadStacks {
            threads: N,
            names: names(&[NAME]),
            states: vec![("WAITING", 7777)],
        },
        Evidence::ArraySlices {
            small: N,
            checked: N,
            class: class(),
            used: size,
            pinned: size,
        },
        Evidence::ListSlices {
            small: N,
            checked: N,
            class: class(),
            used: N,
            pinned: N,
        },
        Evidence::HashKeys {
            checked: N,
            alike: N,
            class: class(),
        },
        Evidence::MoreClassLoaders(change.clone()),
        Evidence::LoadersPinned { field: field() },
        Evidence::DeleteOnExit(change.clone()),
        Evidence::StuckThread {
            thread: name(),
            frame: name(),
        },
        Evidence::ThreadLocal,
        Evidence::KeptByThreads {
            names: names(&[NAME]),
            threads: 1,
            at_least: false,
        },
        Evidence::WeakMapValues {
            referring: N,
            checked: N,
        },
        Evidence::SoftReferences { class: class() },
        Evidence::MostlySoftReferences { class: class() },
        Evidence::StaysWhenCleared {
            class: class(),
            stays: size,
        },
        Evidence::WeakHashMap,
        Evidence::WeakReferences { class: class() },
        Evidence::EmptySlots { empty: N, slots: N },
        Evidence::EldestEntry { class: class() },
        Evidence::StatedBound {
            field: field(),
            bound: N,
            held: N,
            is_full: false,
            is_one: false,
        },
        Evidence::ClassesLoaded { classes: N },
        usage(N, N, N),
    ];
    for before in [Some(N), None] {
        all.push(Evidence::Spread {
            holders: N,
            class: class(),
            mean: N,
            before,
        });
    }
    for change in [change, number] {
        all.extend([
            Evidence::DirectBuffers {
                size,
                before: change.first.map(Size),
                buffers: change.clone(),
            },
            Evidence::ClassLoaders {
                class: class(),
                loaders: change.clone(),
            },
            Evidence::Finalizers(change.clone()),
            Evidence::CleaningActions(change.clone()),
            Evidence::TimerTasks(change.clone()),
            Evidence::Listeners {
                field: field(),
                listeners: change.clone(),
            },
            Evidence::PoolTasks(change.clone()),
            Evidence::Queue(change),
        ]);
    }
    for flag in [false, true] {
        all.extend([
            Evidence::CancelledTasks {
                cancelled: N,
                checked: N,
                is_timer: flag,
            },
            Evidence::VirtualThreads {
                threads: changes()[0].clone(),
                with_locals: flag,
            },
            Evidence::LibraryBound {
                class: class(),
                field: field(),
                bound: N,
                is_weighed: flag,
            },
            Evidence::StatedBound {
                field: field(),
                bound: N,
                held: N,
                is_full: flag,
                is_one: true,
            },
            Evidence::Samples {
                held: N,
                kept: N,
                permille: flag.then_some(N),
            },
            Evidence::KeptByThreads {
                names: names(&[NAME]),
                threads: 9,
                at_least: flag,
            },
        ]);
    }
    all
}

fn verdict() -> Vec<Verdict> {
    let least = Size(N);
    let (explained, grown) = (least, least);
    let (rises, steps) = (2, 3);
    let span = Some(Span(Duration::from_secs(60)));
    vec![
        Verdict::Steady { rises, steps },
        Verdict::Uneven { rises, steps },
        Verdict::Slowing { rises, steps },
        Verdict::Late,
        Verdict::Plateau,
        Verdict::NearlyPlateau { percent: 9 },
        Verdict::WarmUp,
        Verdict::NearlyWarmUp,
        Verdict::Jump,
        Verdict::Sawtooth,
        Verdict::RisingSawtooth,
        Verdict::TwoDumps,
        Verdict::ShortLevel { span },
        Verdict::ShortLevel { span: None },
        Verdict::IdleLevel,
        Verdict::SlightSteps { permille: N },
        Verdict::FewObjects { objects: N },
        Verdict::MayHaveMoved,
        Verdict::Replaced,
        Verdict::WithinTurnover,
        Verdict::CountedRemovals,
        Verdict::CountedReads,
        Verdict::Explained { explained, grown },
        Verdict::PartlyExplained { explained, grown },
        Verdict::Unexplained { grown },
        Verdict::NoGrowth,
        Verdict::NoLeak,
        Verdict::LeftOut { least },
        Verdict::NoneInReport { least },
        Verdict::NoAccumulation { least },
        Verdict::Accumulated {
            retained: least,
            reachable: least,
            share: name(),
            places: N,
            least,
        },
        Verdict::AccumulatedOffHeap {
            size: least,
            places: N,
        },
    ]
}

fn warning() -> Vec<Warning> {
    let path = name;
    let (first, second) = (name(), name());
    vec![
        Warning::Damaged { path: path() },
        Warning::NoParkedFrames { path: path() },
        Warning::NoRoots { path: path() },
        Warning::NamedTwice { path: path() },
        Warning::SameDump {
            first: path(),
            second: path(),
        },
        Warning::Order {
            first: path(),
            second: path(),
        },
        Warning::TwoPrograms {
            first: path(),
            second: path(),
            common: 7,
            of: 7777,
        },
        Warning::TwoJvms {
            first,
            second,
            why: name(),
        },
        Warning::Unwatched { collections: N },
    ]
}

fn waste() -> Vec<Waste> {
    let (size, share) = (name(), name());
    vec![
        Waste::Savings { size, share },
        Waste::SavingsSince {
            size: name(),
            change: name(),
            share: name(),
        },
        Waste::SmallKinds,
    ]
}

/// An example of each wording of each variant, with its `Debug` text.
fn examples() -> Vec<(String, String)> {
    fn texts<T: fmt::Debug + fmt::Display>(all: &[T]) -> Vec<(String, String)> {
        let texts = all.iter().map(|e| (format!("{e:?}"), e.to_string()));
        texts.collect()
    }
    [
        texts(&evidence()),
        texts(&verdict()),
        texts(&warning()),
        texts(&waste()),
    ]
    .concat()
}

/// The names of the variants in code.
fn variants(code: &str) -> BTreeSet<&str> {
    let body = code.split_once("enum ").unwrap().1;
    let body = body.split_once("\n}\n").unwrap().0;
    let is_name =
        |line: &&str| line.starts_with("    ") && line[4..].starts_with(char::is_uppercase);
    let lines = body.lines().filter(is_name);
    lines
        .map(|line| line.trim().split([' ', '(', ',']).next().unwrap())
        .collect()
}

#[test]
fn each_variant_has_an_example() {
    let examples = examples();
    let with: BTreeSet<&str> = examples
        .iter()
        .map(|(debug, _)| debug.split([' ', '(']).next().unwrap())
        .collect();
    let all: BTreeSet<&str> = CODE.iter().flat_map(|code| variants(code)).collect();
    assert!(all.len() > 40, "{all:?}");
    assert_eq!(with, all);
}

/// The runs of fixed words of a sentence, between its names and figures.
fn runs(text: &str) -> Vec<Vec<&str>> {
    let mut runs = vec![Vec::new()];
    for word in text.split(' ') {
        let is_value = word.contains(NAME) || word.contains(|c: char| c.is_ascii_digit());
        let is_unit = word
            .trim_matches(|c: char| !c.is_alphabetic())
            .ends_with('B');
        match is_value || is_unit {
            true => runs.push(Vec::new()),
            false => runs.last_mut().unwrap().push(word),
        }
    }
    runs
}

/// Patterns that identify a sentence: all of its fixed words, or some in a row that no other sentence has.
fn patterns(text: &str, all: &[String]) -> Vec<Regex> {
    let runs = runs(text);
    let parts = runs.iter().filter(|run| !run.is_empty());
    let parts: Vec<String> = parts.map(|run| regex::escape(&run.join(" "))).collect();
    let mut patterns = vec![parts.join(" [^\"]{1,400}? ")];
    let windows = runs.iter().flat_map(|run| run.windows(QUOTED));
    patterns.extend(windows.map(|words| regex::escape(&words.join(" "))));
    let patterns = patterns.iter().map(|p| Regex::new(p).unwrap());
    patterns
        .filter(|p| all.iter().filter(|text| p.is_match(text)).count() == 1)
        .collect()
}

/// All files below a folder with one of these extensions.
fn files(folder: &Path, extensions: &[&str], found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let extension = path.extension().and_then(|e| e.to_str()).unwrap_or("");
        if path.is_dir() {
            files(&path, extensions, found);
        } else if extensions.contains(&extension) {
            found.push(fs::read_to_string(&path).unwrap());
        }
    }
}

/// Golden cases: outputs of commands, and the quotes of one test each. Line breaks are spaces.
fn cases() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let (mut commands, mut pages, mut tests) = (Vec::new(), Vec::new(), Vec::new());
    files(&root.join("cli/tests/cmd"), &["trycmd"], &mut commands);
    files(&root.join("docs"), &["md"], &mut pages);
    pages.push(fs::read_to_string(root.join("README.md")).unwrap());
    for folder in ["diff/tests", "cli/tests", "testdata/tests"] {
        files(&root.join(folder), &["rs"], &mut tests);
    }
    let blocks = pages
        .iter()
        .flat_map(|page| page.split("```console\n").skip(1));
    let blocks = blocks.filter_map(|block| Some(block.split_once("\n```")?.0));
    let commands = commands.iter().map(String::as_str);
    let outputs = blocks.chain(commands).flat_map(|block| block.split("\n$ "));
    let quotes = tests.iter().flat_map(|code| code.split("\n#[test]\n"));
    let quotes = quotes.map(|test| test.replace("\\\n", ""));
    let all = outputs.map(str::to_owned).chain(quotes);
    all.map(|case| case.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect()
}

#[test]
fn each_sentence_is_in_one_golden_case_and_not_in_another() {
    let cases = cases();
    let texts: Vec<String> = examples().into_iter().map(|(_, text)| text).collect();
    let mut wrong = Vec::new();
    for text in &texts {
        let patterns = patterns(text, &texts);
        let is_quoted = |case: &&String| patterns.iter().any(|quote| quote.is_match(case));
        let with = cases.iter().filter(is_quoted).count();
        if with == 0 || with == cases.len() {
            wrong.push(format!("{with} of {} cases: {text}", cases.len()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_sentence_is_identified_by_its_fixed_words() {
    let texts = [
        "it grew in place: 7,777 objects",
        "it grew in place: § before the last dump",
    ];
    let texts = texts.map(str::to_owned);
    let is_found = |text: &str, case: &str| {
        let patterns = patterns(text, &texts);
        patterns.iter().any(|p| p.is_match(case))
    };
    assert!(is_found(&texts[0], "x it grew in place: 4 objects"));
    assert!(!is_found(&texts[0], "it grew in place: 4"));
    assert!(is_found(&texts[1], "before the last dump"));
    assert!(!is_found(&texts[1], "it grew in place: 4 objects"));
}
