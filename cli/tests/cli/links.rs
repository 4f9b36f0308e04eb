//! Checks that every relative link in the documents leads to a file, and every anchor to a heading.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::root;

#[test]
fn links_have_existing_targets() {
    let mut documents = Vec::new();
    for entry in fs::read_dir(root()).expect("the repository").flatten() {
        documents.extend(is_document(&entry.path()).then(|| entry.path()));
    }
    for folder in [
        "docs", "crates", "hprof", "diff", "agent", "cli", "xtask", "testdata", "fuzz",
    ] {
        collect(&root().join(folder), &mut documents);
    }
    assert!(documents.len() > 10, "{documents:?}");
    let page = root().join("docs/commands/diff.md");
    assert!(documents.contains(&page), "{documents:?}");
    let mut broken = Vec::new();
    let mut checked = 0;
    for document in &documents {
        let text = fs::read_to_string(document).expect("a document");
        for target in links(&text) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            checked += 1;
            let (file, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let folder = document.parent().expect("a folder");
            let path = match file {
                "" => document.clone(),
                _ => folder.join(file),
            };
            let is_there = path.exists();
            let has_anchor = || {
                let text = fs::read_to_string(&path).unwrap_or_default();
                anchor.is_empty() || anchors(&text).iter().any(|a| a == anchor)
            };
            if !is_there || !has_anchor() {
                broken.push(format!("{}: {target}", document.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
    assert!(
        checked > 50,
        "{checked} links are too few: are they still found?"
    );
}

#[test]
fn the_scanner_reads_markdown() {
    let text = "# The `code` & more!\n[a](x.md) ![b](y.png \"title\") `[c](z)`\n```sh\n# no heading\n[d](w)\n```\n# More\n# More\n";
    assert_eq!(links(text), ["x.md", "y.png"]);
    assert_eq!(anchors(text), ["the-code--more", "more", "more-1"]);
}

fn is_document(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "md")
}

fn collect(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_kept =
            !matches!(path.file_name(), Some(name) if name == "target" || name == "corpus");
        if path.is_dir() && is_kept {
            collect(&path, into);
        } else if is_document(&path) {
            into.push(path);
        }
    }
}

/// Returns the lines outside fenced code.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// Returns the targets of links and pictures, outside code.
fn links(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in prose(text) {
        // Split at backticks: every second part is code.
        let plain: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
        for rest in plain.split("](").skip(1) {
            let target = rest.split([')', ' ']).next().unwrap_or_default();
            found.push(target.to_owned());
        }
    }
    found
}

/// Returns the anchors of the headings, as GitHub generates them.
fn anchors(text: &str) -> Vec<String> {
    let mut seen: HashMap<String, usize> = HashMap::new();
    let headings = prose(text).filter_map(|line| {
        let title = line.trim_start_matches('#');
        (line.len() > title.len()).then(|| title.strip_prefix(' '))?
    });
    headings
        .map(|title| {
            let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
            let slug = title.trim().to_lowercase();
            let slug: String = slug.chars().filter(kept).collect();
            let slug = slug.replace(' ', "-");
            let count = seen.entry(slug.clone()).or_default();
            *count += 1;
            match *count {
                1 => slug,
                n => format!("{slug}-{}", n - 1),
            }
        })
        .collect()
}
