//! The report of a redacted pair is that of the pair, but for what strings held.

mod common;

use std::path::Path;

use heapdiff_diff::{Report, redaction_rules};
use hprof::redaction::Redaction;
use hprof::{Silent, Source};
use testdata::sampled::{AgentHeap, Sampled};
use testdata::writer::{HeapBuilder, Options, Root, Value};

const SECRET: &str = "Ann Lee's payments";

fn redacted(dump: &Source, numbers: bool) -> Source {
    let mut out = Vec::new();
    let redaction = Redaction::of(dump, redaction_rules(numbers)).unwrap();
    let done = redaction.write(&mut out, &Silent).unwrap();
    assert_eq!(done.warnings, []);
    Source::from_bytes(out)
}

/// The report as text, with each run of letters that stand for others, and of those in `names`, as one sign.
fn told(report: &Report, names: &[&str]) -> String {
    let mut text = format!("{report:#?}");
    for name in names {
        text = text.replace(name, "¤");
    }
    let mut out = String::new();
    for c in text.chars() {
        let is_token = c == '·' || ('à'..='ÿ').contains(&c);
        if !is_token {
            out.push(c);
        } else if !out.ends_with('¤') {
            out.push('¤');
        }
    }
    out
}

#[track_caller]
fn assert_same(dumps: &dyn Fn() -> Vec<Source>, names: &[&str]) -> String {
    let before = told(&common::report(dumps()), names);
    for numbers in [false, true] {
        let redacted = dumps().iter().map(|d| redacted(d, numbers)).collect::<Vec<_>>();
        let after = told(&common::report(redacted), &[]);
        if before != after {
            let differ = before.lines().zip(after.lines()).filter(|(a, b)| a != b);
            let differ: Vec<_> = differ.take(20).collect();
            panic!("numbers: {numbers}: {differ:#?}");
        }
    }
    before
}

fn committed(names: &'static [&'static str]) -> impl Fn() -> Vec<Source> {
    let open = |name: &&str| {
        let path = format!("{}/../testdata/{name}.hprof.gz", env!("CARGO_MANIFEST_DIR"));
        let bytes = testdata::dumps::unpacked(Path::new(&path));
        Source::from_bytes(bytes)
    };
    move || names.iter().map(open).collect()
}
