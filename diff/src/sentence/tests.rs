//! Each sentence has an example.

use std::collections::BTreeSet;
use std::time::Duration;

use heapdiff_units::{Size, Span};

use super::{Change, Evidence, Names};

/// A name in an example. No golden case has it.
const NAME: &str = "§";
/// A number in an example.
const N: u64 = 7777;

/// The code with the enums.
const CODE: [&str; 1] = [include_str!("evidence.rs")];

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
        Evidence::ClassesLoaded { classes: N },
        usage(0, 0, 0),
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
            Evidence::StatedBound {
                field: field(),
                bound: N,
                held: N,
                is_full: false,
                is_one: flag,
            },
            Evidence::Samples {
                held: N,
                kept: N,
                permille: flag.then_some(N),
            },
            Evidence::KeptByThreads {
                names: names(&[NAME]),
                threads: 1,
                at_least: flag,
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

/// An example of each wording of each variant, with its `Debug` text.
fn examples() -> Vec<(String, String)> {
    let all = evidence();
    let all = all.iter().map(|e| (format!("{e:?}"), e.to_string()));
    all.collect()
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
