//! Checks that each sentence of a report is quoted in a test or a golden case.
//!
//! A sentence is a string literal with at least three words in the code that writes reports. Three consecutive words of
//! the sentence must occur in a string literal of a test, or in the output of a golden case. Placeholders such as
//! `{name}` divide a sentence into parts. If all parts have fewer than three words, two consecutive words suffice.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is a failure")]

use std::collections::HashSet;
use std::fs;
use std::path::Path;

/// Folders and files that contain tests and expected outputs.
const TESTS: [&str; 13] = [
    "agent/tests",
    "cli/src",
    "cli/tests",
    "crates",
    "diff/src",
    "diff/tests",
    "docs",
    "hprof/src",
    "hprof/tests",
    "testdata/tests",
    "xtask/src/browser",
    "xtask/src/browser.rs",
    "README.md",
];

/// The code that writes reports and the warnings in them.
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

/// Files in the folders above that are not checked. They generate reports for tests, and contain no sentences of
/// reports.
const UNREAD: [&str; 1] = ["crates/report/src/synthetic.rs"];

/// Lines whose string literals are not part of a report: progress messages, usage errors, reasons for allowing a lint,
/// labels of page elements, and fonts for the browser.
const UNREPORTED: [&str; 7] = [
    ".phase(\"",
    "Failure::usage(\"",
    "reason = \"",
    "\"aria-label\": ",
    "label: \"",
    "fact(facts, \"",
    "context.font = \"",
];

/// Reads a file of the workspace.
fn text(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    fs::read_to_string(root.join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// Returns the files at or below a path, relative to the workspace.
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

/// Returns a file's code in two parts: the code before its test modules, and the test modules.
fn parts(code: &str) -> (&str, &str) {
    let tests = ["mod ", "pub(super) mod ", "pub(crate) mod "];
    let tests = tests.map(|begin| format!("#[cfg(test)]\n{begin}"));
    let end = tests.iter().filter_map(|begin| code.find(begin)).min();
    code.split_at(end.unwrap_or(code.len()))
}

/// Returns the string literals in code.
fn literals(code: &str) -> Vec<String> {
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
    // Leave out the content security policy of a page, because only browsers read it.
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

/// Returns the parts of a text between its placeholders, in the order of the text.
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

/// Returns all sequences of `count` consecutive words in a text that contain no placeholder.
fn runs(text: &str, count: usize) -> HashSet<Vec<String>> {
    let mut found = HashSet::new();
    for part in fixed(text) {
        let words = part.split_whitespace().map(|w| {
            w.trim_matches(|c: char| !c.is_alphanumeric())
                .to_lowercase()
        });
        let words: Vec<String> = words.filter(|w| !w.is_empty()).collect();
        found.extend(words.windows(count).map(<[String]>::to_vec));
    }
    found
}

/// Returns the string literals of all tests, and the outputs of all golden cases.
fn quoted() -> Vec<String> {
    let mut quoted: Vec<String> = Vec::new();
    for file in TESTS.iter().flat_map(|p| files(p)) {
        let extension = file.rsplit('.').next();
        if !matches!(extension, Some("rs" | "trycmd" | "md" | "txt")) {
            continue;
        }
        let code = text(&file);
        match extension {
            Some("rs") if file.contains("/tests/") || file.contains("browser") => {
                quoted.extend(literals(&code));
            }
            Some("rs") => quoted.extend(literals(parts(&code).1)),
            // In documents, only the blocks of commands with their output are tested. So only these blocks count as
            // quotes.
            Some("md") => {
                let blocks = code.split("```console\n").skip(1);
                let blocks = blocks.filter_map(|block| Some(block.split_once("\n```")?.0));
                quoted.extend(blocks.map(joined));
            }
            _ => quoted.push(joined(&code)),
        }
    }
    quoted
}

/// Returns the text with its braces replaced by spaces.
fn joined(output: &str) -> String {
    output.replace(['{', '}'], " ")
}

#[test]
fn each_sentence_is_quoted_in_a_test() {
    let quoted = quoted();
    let known = [2, 3].map(|count| {
        let runs = quoted.iter().flat_map(|text| runs(text, count));
        runs.collect::<HashSet<_>>()
    });
    let mut wrong: Vec<String> = Vec::new();
    let all = WORDED.iter().flat_map(|p| files(p));
    for file in all.filter(|f| !UNREAD.contains(&&**f)) {
        let code = text(&file);
        let code = match file.ends_with(".js") {
            // Template literals (in backquotes) are string literals with placeholders, too.
            true => code.replace('`', "\"").replace("${", "{"),
            false => code,
        };
        for literal in literals(parts(&code).0).iter().filter(|l| is_sentence(l)) {
            let [two, three] = [2, 3].map(|count| runs(literal, count));
            // The tests must quote a part of each message: two or three successive words between its placeholders.
            // Single words are not searched for in the tests, because they are too common.
            let is_quoted = match (two.is_empty(), three.is_empty()) {
                (true, _) => true,
                (false, true) => !two.is_disjoint(&known[0]),
                (false, false) => !three.is_disjoint(&known[1]),
            };
            if !is_quoted {
                wrong.push(format!("{file}: no test quotes: {literal}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn sentences_are_distinguished_from_names() {
    let code = "// \"it is no sentence at all\"\nlet a = \"it {grew} in\\\n    place {n}\";\nlet b = \"java.lang.ref.Reference\";\n\
                #[cfg(test)]\nmod tests { \"and this is none\" }";
    let (before, tests) = parts(code);
    assert_eq!(
        literals(before),
        ["it {grew} inplace {n}", "java.lang.ref.Reference"]
    );
    assert_eq!(literals(tests), ["and this is none"]);
    assert!(is_sentence("the thread {name} is in {frame}") && !is_sentence("{} of {}"));
    assert!(!is_sentence("java.lang.ref.Reference") && !is_sentence("static {a long name here}"));
}

#[test]
fn figures_and_names_separate_runs_of_words() {
    let three = runs("held by many {} threads, and by one", 3);
    let run = |words: &str| words.split(' ').map(str::to_owned).collect::<Vec<_>>();
    assert!(three.contains(&run("held by many")) && three.contains(&run("threads and by")));
    assert!(!three.contains(&run("by many threads")));
    assert!(runs("by {} threads", 2).is_empty());
}
