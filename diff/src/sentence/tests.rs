//! Checks that each sentence occurs in at least one golden case, and is absent from at least one other.
//!
//! Golden cases are blocks of commands with their output, and quoted strings in tests.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::Path;

use regex::Regex;

use super::examples::{self, NAME};

/// Source code of the enums whose variants are sentences.
const CODE: [&str; 6] = [
    include_str!("../../../hprof/src/flaw.rs"),
    include_str!("evidence.rs"),
    include_str!("samples.rs"),
    include_str!("verdict.rs"),
    include_str!("warning.rs"),
    include_str!("waste.rs"),
];

/// Number of consecutive words in a pattern that is only a part of a sentence.
const QUOTED: usize = 4;

/// Returns the examples of all sentences. Each example consists of the `Debug` output of the enum's value and of the
/// sentence.
fn all_examples() -> Vec<(String, String)> {
    fn texts<T: fmt::Debug + fmt::Display>(all: &[T]) -> Vec<(String, String)> {
        let texts = all.iter().map(|e| (format!("{e:?}"), e.to_string()));
        texts.collect()
    }
    [
        texts(&examples::evidence()),
        texts(&examples::flaw()),
        texts(&examples::samples()),
        texts(&examples::verdict()),
        texts(&examples::warning()),
        texts(&examples::waste()),
    ]
    .concat()
}

/// Returns the names of the variants of the enum in this code.
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
    let examples = all_examples();
    let with: BTreeSet<&str> = examples
        .iter()
        .map(|(debug, _)| debug.split([' ', '(']).next().unwrap())
        .collect();
    let all: BTreeSet<&str> = CODE.iter().flat_map(|code| variants(code)).collect();
    assert!(all.len() > 40, "{all:?}");
    assert_eq!(with, all);
}

/// Splits a sentence at the names and figures in it. Returns the fixed words between these.
fn runs(text: &str) -> Vec<Vec<&str>> {
    let mut runs = vec![Vec::new()];
    for word in text.split(' ') {
        let is_value = word.contains(NAME) || word.contains(|c: char| c.is_ascii_digit());
        let is_unit = word
            .trim_matches(|c: char| !c.is_alphabetic())
            .ends_with('B');
        if is_value || is_unit {
            runs.push(Vec::new());
        } else {
            runs.last_mut().unwrap().push(word);
        }
    }
    runs
}

/// Returns patterns that identify a sentence: all of its fixed words, or [`QUOTED`] consecutive ones. Each returned
/// pattern matches no other sentence.
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

/// Finds all files below a folder with one of these extensions.
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

/// Returns the part of a source file that contains its unit tests. The rest of the file contains no golden cases. The
/// examples of this test are not golden cases.
fn unit_tests(code: &str) -> &str {
    let tests = code.find("mod tests {").map(|at| &code[at..]);
    let is_test_file = !code.contains("#[cfg(test)]") && code.contains("#[test]\n");
    tests.unwrap_or(if is_test_file { code } else { "" })
}

/// Returns the expected outputs that the tests contain. Each is the output of one command, or the code of one test.
/// Line breaks are replaced by spaces.
fn cases() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let (mut commands, mut pages, mut tests) = (Vec::new(), Vec::new(), Vec::new());
    files(&root.join("cli/tests/cmd"), &["trycmd"], &mut commands);
    files(&root.join("docs"), &["md"], &mut pages);
    pages.push(fs::read_to_string(root.join("README.md")).unwrap());
    for folder in ["diff/tests", "hprof/tests", "cli/tests", "testdata/tests"] {
        files(&root.join(folder), &["rs"], &mut tests);
    }
    let mut code = Vec::new();
    for folder in ["diff/src/samples", "hprof/src", "crates/report/src"] {
        files(&root.join(folder), &["rs"], &mut code);
    }
    let tests = code
        .iter()
        .map(|code| unit_tests(code))
        .chain(tests.iter().map(String::as_str));
    let blocks = pages
        .iter()
        .flat_map(|page| page.split("```console\n").skip(1));
    let blocks = blocks.filter_map(|block| Some(block.split_once("\n```")?.0));
    let commands = commands.iter().map(String::as_str);
    let outputs = blocks.chain(commands).flat_map(|block| block.split("\n$ "));
    let quotes = tests.flat_map(|code| code.split("#[test]\n"));
    let quotes = quotes.map(|test| test.replace("\\\n", ""));
    let all = outputs.map(str::to_owned).chain(quotes);
    all.map(|case| case.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect()
}

#[test]
fn each_sentence_is_in_one_golden_case_and_not_in_another() {
    let cases = cases();
    let texts: Vec<String> = all_examples().into_iter().map(|(_, text)| text).collect();
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
