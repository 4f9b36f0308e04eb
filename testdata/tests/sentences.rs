//! Each sentence of a report has a test that makes it appear and one in which it does not: the lists beside this name both.
//!
//! A sentence is a text of three words or more in the code that words reports. One that is new has to be added to the
//! list, with its tests, and each test has to quote it: two words of it in their order. Golden cases have the whole part
//! in one and not in another. Whether it asserts what it quotes is for its reader to judge.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The lists of sentences: of evidence and verdicts, of how reports are written, of dumps, of commands.
const LISTS: [&str; 4] = [
    "testdata/tests/sentences.txt",
    "testdata/tests/sentences-report.txt",
    "testdata/tests/sentences-dump.txt",
    "testdata/tests/sentences-cli.txt",
];

/// The code that words reports, and the warnings that they print.
const WORDED: &[&str] = &[
    "cli/src/capture/child.rs",
    "cli/src/capture/fork.rs",
    "cli/src/capture/held.rs",
    "cli/src/capture/no_files.rs",
    "cli/src/capture/watch.rs",
    "cli/src/command/diff.rs",
    "cli/src/command/history.rs",
    "cli/src/command/recording.rs",
    "cli/src/command/sites.rs",
    "cli/src/fits.rs",
    "cli/src/gates.rs",
    "cli/src/jfr.rs",
    "cli/src/messages.rs",
    "crates/jfr/src/error.rs",
    "crates/report/assets/classes.js",
    "crates/report/assets/flame.js",
    "crates/report/assets/page.js",
    "crates/report/assets/stacks.js",
    "crates/report/assets/suspects.js",
    "crates/report/assets/tree.js",
    "crates/report/src",
    "crates/trend/src/series.rs",
    "diff/src/comparable.rs",
    "diff/src/evidence",
    "diff/src/origin.rs",
    "diff/src/samples/agent.rs",
    "diff/src/samples/mod.rs",
    "diff/src/suspect",
    "hprof/src/answers/jvm.rs",
    "hprof/src/bytes/gzip.rs",
    "hprof/src/bytes/segments.rs",
    "hprof/src/graph/build.rs",
    "hprof/src/graph/implicit_refs.rs",
    "hprof/src/graph/missing_roots.rs",
    "hprof/src/graph/scan.rs",
    "hprof/src/records/outline.rs",
    "hprof/src/records/walk.rs",
    "hprof/src/sizes/layout.rs",
    "hprof/src/snapshot.rs",
];

/// Files among these that word no report: made-up ones that tests start from.
const UNREAD: [&str; 1] = ["crates/report/src/synthetic.rs"];

/// How code begins whose texts are no report's: what is under way is told to who waits, and what cannot be asked for
/// to who asks; why a lint is allowed, to who reads code. Labels name what stands beside them, and fonts are a browser's.
const UNREPORTED: [&str; 7] = [
    ".phase(\"",
    "Failure::usage(\"",
    "reason = \"",
    "\"aria-label\": ",
    "label: \"",
    "fact(facts, \"",
    "context.font = \"",
];

/// A file of the workspace, as text.
fn text(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    fs::read_to_string(root.join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// The Rust files at or below a path, as the workspace names them.
fn files(path: &str) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    if root.join(path).is_file() {
        return vec![path.to_owned()];
    }
    let entries = fs::read_dir(root.join(path)).unwrap();
    let mut below: Vec<String> = entries
        .map(|e| format!("{path}/{}", e.unwrap().file_name().to_str().unwrap()))
        .collect();
    below.sort();
    below.iter().flat_map(|p| files(p)).collect()
}

/// The texts in a file's code before its tests.
fn literals(code: &str) -> Vec<String> {
    let tests = ["mod ", "pub(super) mod "].map(|begin| format!("#[cfg(test)]\n{begin}"));
    let end = tests.iter().filter_map(|begin| code.find(begin)).min();
    let code = &code[..end.unwrap_or(code.len())];
    let is_reported = |line: &&str| !UNREPORTED.iter().any(|begin| line.contains(begin));
    let lines = code.lines().filter(|l| !l.trim_start().starts_with("//"));
    let lines = lines.filter(is_reported);
    let code = lines.collect::<Vec<_>>().join("\n").replace("'\"'", "");
    let mut found = Vec::new();
    let mut chars = code.chars();
    while chars.by_ref().any(|c| c == '"') {
        let mut text = String::new();
        while let Some(c) = chars.next() {
            match c {
                '"' => break,
                '\\' => match chars.next() {
                    Some('\n') => {
                        let rest = chars.as_str().trim_start();
                        chars = rest.chars();
                    }
                    Some(c) => text.push(c),
                    None => break,
                },
                _ => text.push(c),
            }
        }
        found.push(text);
    }
    found
}

fn is_sentence(literal: &str) -> bool {
    // What a page's policy allows is said to browsers.
    if literal.contains("-src '") {
        return false;
    }
    let is_word = |w: &&str| {
        let w = w.trim_matches(|c: char| !c.is_alphanumeric());
        w.len() > 1 && w.chars().all(|c| c.is_alphabetic() || "-'".contains(c))
    };
    fixed(literal)
        .concat()
        .split_whitespace()
        .filter(is_word)
        .count()
        >= 3
}

/// The test of this name, from its name to its last brace; empty where a file has none.
fn body<'a>(code: &'a str, test: &str) -> &'a str {
    let name = format!("fn {test}(");
    let Some(at) = code.find(&name) else {
        return "";
    };
    let line = code[..at].rfind('\n').map_or(0, |end| end + 1);
    let end = format!("\n{}}}", &code[line..at]);
    let code = &code[at..];
    &code[..code.find(&end).unwrap_or(code.len())]
}

/// What a text has between the figures and names that are filled in, in their order.
fn fixed(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut depth = 0_u32;
    for c in text.chars() {
        match c {
            '{' => {
                depth += 1;
                parts.push(String::new());
            }
            '}' => depth = depth.saturating_sub(1),
            _ if depth == 0 => parts.last_mut().unwrap().push(c),
            _ => {}
        }
    }
    parts
}

/// Each two words that follow each other in a text.
fn pairs(text: &str) -> BTreeSet<[String; 2]> {
    let mut found = BTreeSet::new();
    for part in fixed(text) {
        let words = part
            .split_whitespace()
            .map(|w| w.trim_matches(|c: char| !c.is_alphanumeric()));
        let words: Vec<&str> = words.filter(|w| !w.is_empty()).collect();
        found.extend(words.windows(2).map(|w| [w[0].to_owned(), w[1].to_owned()]));
    }
    found
}

/// Whether a line has these parts in their order.
fn says(line: &str, parts: &[String]) -> bool {
    let mut rest = line;
    parts.iter().all(|part| match rest.find(part.as_str()) {
        Some(at) => {
            rest = &rest[at + part.len()..];
            true
        }
        None => false,
    })
}

/// What is wrong with the test that a sentence is said (`+`) or not said (`-`): `None` where it quotes the sentence.
fn fault(sign: char, test: &str, sentence: &str) -> Option<&'static str> {
    let Some((file, test)) = test.split_once(' ') else {
        let parts = fixed(sentence);
        let golden = text(test);
        let mut cases = golden.split("\n$ ").skip(1);
        let is_said = |case: &str| case.lines().any(|l| says(l, &parts));
        return match sign {
            '+' => (!cases.any(is_said)).then_some("is in no golden case"),
            _ => cases.all(is_said).then_some("is in each golden case"),
        };
    };
    let code = text(file);
    let quoted = literals(body(&code, test));
    let wanted = pairs(sentence);
    let is_quoted = quoted.iter().any(|l| match wanted.is_empty() {
        // Single words between figures: all of them, in their order.
        true => says(l, &fixed(sentence.trim())),
        false => !wanted.is_disjoint(&pairs(l)),
    });
    (!is_quoted).then_some("is not quoted there")
}

/// One sentence of the list: a part of it, and the tests in which it appears and does not.
struct Listed {
    part: String,
    tests: BTreeMap<char, String>,
}

fn listed() -> Vec<Listed> {
    let list = LISTS.map(text).concat();
    let mut all: Vec<Listed> = Vec::new();
    for line in list
        .lines()
        .filter(|l| !l.is_empty() && !l.starts_with("# "))
    {
        match line.strip_prefix("  ") {
            None => all.push(Listed {
                part: line.to_owned(),
                tests: BTreeMap::new(),
            }),
            Some(test) => {
                let (sign, test) = test.split_once(' ').unwrap();
                let sign = sign.parse().unwrap();
                all.last_mut().unwrap().tests.insert(sign, test.to_owned());
            }
        }
    }
    all
}

#[test]
fn each_sentence_has_its_tests() {
    let list = listed();
    let mut used = vec![false; list.len()];
    let mut wrong: Vec<String> = Vec::new();
    let all = WORDED.iter().flat_map(|p| files(p));
    for file in all.filter(|f| !UNREAD.contains(&&**f)) {
        let code = text(&file);
        let code = match file.ends_with(".js") {
            // Texts with figures in them.
            true => code.replace('`', "\"").replace("${", "{"),
            false => code,
        };
        for literal in literals(&code).iter().filter(|l| is_sentence(l)) {
            // The longest part tells a sentence from one that begins alike.
            let fits = list
                .iter()
                .enumerate()
                .filter(|(_, l)| literal.contains(&l.part));
            match fits.max_by_key(|(_, l)| l.part.len()) {
                Some((at, _)) => used[at] = true,
                None => wrong.push(format!("{file}: not in sentences.txt: {literal}")),
            }
        }
    }
    for (one, used) in list.iter().zip(used) {
        if !used {
            wrong.push(format!("no code says: {}", one.part));
        }
        for sign in ['+', '-'] {
            let Some(test) = one.tests.get(&sign) else {
                wrong.push(format!("{sign} no test for: {}", one.part));
                continue;
            };
            if let Some(fault) = fault(sign, test, &one.part) {
                wrong.push(format!("{sign} {fault}, {test}: {}", one.part));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn sentences_are_told_from_names() {
    let code = "// \"it is no sentence at all\"\nlet a = \"it {grew} in\\\n    place {n}\";\nlet b = \"java.lang.ref.Reference\";\n\
                #[cfg(test)]\nmod tests { \"and this is none\" }";
    assert_eq!(
        literals(code),
        ["it {grew} inplace {n}", "java.lang.ref.Reference"]
    );
    let shared = code.replace("mod tests", "pub(super) mod tests");
    assert_eq!(literals(&shared), literals(code));
    assert!(is_sentence("the thread {name} is in {frame}") && !is_sentence("{} of {}"));
    assert!(!is_sentence("java.lang.ref.Reference") && !is_sentence("static {a long name here}"));
}

#[test]
fn a_test_is_known_by_what_it_quotes() {
    let code = "fn a() {\n}\n    fn one(x: u8) {\n        assert!(says(\"held by {} threads\"));\n    }\n    fn two() {}";
    let quoted = literals(body(code, "one"));
    assert_eq!(quoted, ["held by {} threads"]);
    assert_eq!(body(code, "three"), "");
    assert!(!pairs("is held by").is_disjoint(&pairs(&quoted[0])));
    assert!(pairs("by threads").is_disjoint(&pairs(&quoted[0])));
    let parts = fixed("{n} in {} from {of}");
    assert!(says("3 in 4 from 5", &parts) && !says("3 from 4 in 5", &parts));
}
