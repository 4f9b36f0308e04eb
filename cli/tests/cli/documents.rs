//! Checks that the documents name existing commands, options and messages.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use crate::support::root;

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).expect(path)
}

/// Readers of the first page have little time, so it must be short.
#[test]
fn the_first_page_is_short() {
    let length = read("README.md").len();
    assert!(length <= 10 * 1024, "README.md has {length} bytes");
}

/// The first page must list every other page.
#[test]
fn every_page_is_listed() {
    let page = read("README.md");
    for entry in fs::read_dir(root().join("docs"))
        .expect("a folder")
        .flatten()
    {
        let name = entry.file_name().into_string().expect("a name");
        if name.ends_with(".md") {
            assert!(
                page.contains(&format!("(docs/{name})")),
                "README.md lacks {name}"
            );
        }
    }
}

/// The slogan is written in three places, which must agree.
#[test]
fn the_slogan_is_the_same_everywhere() {
    const SLOGAN: &str = "Compares Java heap dumps and names the field that leaks. \
        With its agent, it also names the code that allocated the objects";
    for text in [read("README.md"), read("cli/Cargo.toml"), help(&["--help"])] {
        let words: Vec<&str> = text.split_whitespace().collect();
        assert!(words.join(" ").contains(SLOGAN), "{text}");
    }
}

#[test]
fn every_option_of_the_agent_is_documented() {
    let page = read("docs/agent.md");
    for (key, _) in heapdiff_sites::attach::KEYS {
        let row = format!("| `{key}` |");
        assert!(page.contains(&row), "docs/agent.md has no row for {key}");
    }
}

#[test]
fn every_command_and_option_is_documented() {
    let page = read("docs/commands.md");
    let pages = page.clone() + &read("docs/agent.md");
    let headings: Vec<&str> = page
        .lines()
        .filter(|line| line.starts_with("## "))
        .collect();
    let mut missing = BTreeSet::new();
    let mut options = BTreeSet::new();
    let mut note_options = |text: &str| {
        let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
        options.extend(
            words
                .filter(|w| w.len() > 4 && w.starts_with("--") && !w.ends_with('-'))
                .map(str::to_owned),
        );
    };
    let top = help(&["--help"]);
    note_options(&top);
    let commands = listed(&top);
    assert!(commands.len() > 15, "{commands:?}");
    for command in &commands {
        let is_word = |heading: &&str| heading.split_whitespace().any(|w| w == command);
        if !headings.iter().any(is_word) {
            missing.insert(format!("the command {command}"));
        }
        let text = help(&["help", command]);
        note_options(&text);
        for below in listed(&text) {
            let both = format!("{command} {below}");
            if !page.contains(&both) {
                missing.insert(format!("the command {both}"));
            }
            note_options(&help(&["help", command, &below]));
        }
    }
    for option in options {
        let is_named = pages.match_indices(&option).any(|(at, _)| {
            let next = pages[at + option.len()..].chars().next();
            next.is_none_or(|c| !c.is_ascii_alphanumeric() && c != '-')
        });
        if !is_named {
            missing.insert(option);
        }
    }
    assert!(missing.is_empty(), "docs/commands.md lacks {missing:#?}");
}

/// Returns the commands that a help text lists, without `help` itself.
fn listed(help: &str) -> Vec<String> {
    let mut lines = help.lines().skip_while(|line| *line != "Commands:");
    lines.next();
    lines
        .take_while(|line| line.starts_with(' '))
        .filter(|line| !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|word| *word != "help")
        .map(str::to_owned)
        .collect()
}

fn help(args: &[&str]) -> String {
    let done = Command::new(env!("CARGO_BIN_EXE_heapdiff"))
        .args(args)
        .output()
        .expect("a run");
    assert!(done.status.success(), "{args:?}");
    String::from_utf8(done.stdout).expect("text")
}

/// Checks that every path in ARCHITECTURE.md exists. In its code map a name without a folder is in the folder of the
/// previous name.
#[test]
fn the_code_map_names_what_is_there() {
    const TOPS: [&str; 9] = [
        "hprof/",
        "agent/",
        "diff/",
        "cli/",
        "crates/",
        "xtask/",
        "testdata/",
        "docs/",
        "fuzz/",
    ];
    let page = read("ARCHITECTURE.md");
    let mut missing = BTreeSet::new();
    let code = |text: &str| -> Vec<String> {
        text.split('`')
            .skip(1)
            .step_by(2)
            .map(str::to_owned)
            .collect()
    };
    let mut named = 0;
    for path in page.lines().flat_map(code) {
        if TOPS.iter().any(|top| path.starts_with(top)) {
            named += 1;
            if !root().join(&path).exists() {
                missing.insert(path);
            }
        }
    }
    let map = page.split("## Code map").nth(1).expect("a code map");
    let map = map.split("\n## ").next().unwrap_or_default();
    for row in map.lines().filter(|line| line.starts_with("| `")) {
        let cell = row.split('|').nth(1).unwrap_or_default();
        let mut folder = root();
        for path in code(cell) {
            named += 1;
            let full = if TOPS.iter().any(|top| path.starts_with(top)) {
                root().join(&path)
            } else {
                folder.join(&path)
            };
            if !full.exists() {
                missing.insert(path);
            }
            folder = if full.is_dir() {
                full
            } else {
                full.parent().expect("a folder").to_path_buf()
            };
        }
    }
    assert!(missing.is_empty(), "ARCHITECTURE.md names {missing:?}");
    assert!(named > 40, "{named} paths");
}

/// Compares the list of crates in ARCHITECTURE.md with their manifests.
#[test]
fn crates_use_what_the_architecture_says() {
    let page = read("ARCHITECTURE.md");
    let list = page.split("the highest first:").nth(1).expect("a list");
    let list = list.split("```").nth(1).expect("a list");
    let mut checked = 0;
    for line in list.lines().skip(1) {
        let Some((name, used)) = line.split_once("  ") else {
            continue;
        };
        let folder = match name {
            "hprof" | "agent" | "diff" => name.to_owned(),
            "heapdiff (cli)" => continue,
            _ => format!("crates/{name}"),
        };
        // The last line lists the crates that use no other crate of the project.
        let used: BTreeSet<&str> = if used.contains("nothing of ours") {
            continue;
        } else {
            used.split_whitespace().collect()
        };
        let manifest = read(&format!("{folder}/Cargo.toml"));
        let section = manifest.split("\n[dependencies]\n").nth(1);
        let section = section.and_then(|text| text.split("\n[").next());
        let names = section.unwrap_or_default().lines().filter_map(|line| {
            let name = line.split(['=', '.', ' ']).next()?;
            (name == "hprof")
                .then_some(name)
                .or_else(|| name.strip_prefix("heapdiff-"))
        });
        assert_eq!(names.collect::<BTreeSet<_>>(), used, "{folder}");
        checked += 1;
    }
    assert!(checked > 7, "{checked} crates");
}

/// The tables of messages quote the source. `…` represents the variable parts.
#[test]
fn messages_are_those_of_the_program() {
    let mut sources = String::new();
    for folder in [
        "cli/src",
        "agent/src",
        "crates/import/src",
        "crates/push/src",
        "crates/query/src",
        "crates/trace/src",
        "hprof/src",
    ] {
        add_sources(&root().join(folder), &mut sources);
    }
    let page = read("docs/troubleshooting.md");
    let mut messages = 0;
    let mut gone = BTreeSet::new();
    // Messages of other programs are marked as such.
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    for row in rows.filter(|row| !row.contains("from the JVM")) {
        let message = row.split('`').nth(1).expect("a message");
        messages += 1;
        for part in message.split('…') {
            let part = part.trim_matches(|c: char| !c.is_alphanumeric());
            if !sources.contains(part) {
                gone.insert(format!("`{part}` of `{message}`"));
            }
        }
    }
    assert!(gone.is_empty(), "no source has {gone:#?}");
    assert!(messages > 25, "{messages} messages");
}

/// Appends the source text, with string literals over several lines joined.
fn add_sources(folder: &Path, into: &mut String) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            add_sources(&path, into);
        } else if path.extension().is_some_and(|e| e == "rs") {
            let text = fs::read_to_string(&path).expect("a source file");
            let mut pieces = text.split("\\\n");
            into.push_str(pieces.next().unwrap_or_default());
            for piece in pieces {
                into.push_str(piece.trim_start());
            }
        }
    }
}

/// Runs the examples with `jq`, and compares their output with the comment lines below each.
#[test]
fn examples_with_jq_print_what_is_shown() {
    let is_there = Command::new("jq").arg("--version").output().is_ok();
    if !is_there && std::env::var_os("CI").is_none() {
        let note = "jq is missing: its examples are not run";
        writeln!(std::io::stderr(), "{note}").expect("standard error");
        return;
    }
    let page = read("docs/json.md");
    let mut run = 0;
    for block in page.split("```sh\n").skip(1) {
        let block = block.split("```").next().unwrap_or_default();
        let (comments, command): (Vec<&str>, Vec<&str>) =
            block.lines().partition(|line| line.starts_with("# "));
        if comments.is_empty() {
            continue;
        }
        let program = Path::new(env!("CARGO_BIN_EXE_heapdiff"));
        let path = format!(
            "{}:{}",
            program.parent().expect("a folder").display(),
            std::env::var("PATH").unwrap_or_default()
        );
        let done = Command::new("sh")
            .args(["-c", &command.join("\n")])
            .env("PATH", path)
            .current_dir(root())
            .output()
            .expect("a run");
        let shown: String = comments
            .iter()
            .map(|line| format!("{}\n", &line[2..]))
            .collect();
        assert_eq!(String::from_utf8_lossy(&done.stdout), shown, "{done:?}");
        run += 1;
    }
    assert!(run > 1, "{run} examples");
}
