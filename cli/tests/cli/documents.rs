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

/// Readers of `README.md` have little time, so it must be short.
#[test]
fn the_first_page_is_short() {
    let length = read("README.md").len();
    assert!(length <= 10 * 1024, "README.md has {length} bytes");
}

/// `README.md` must have a link to every page of `docs/`. `docs/commands.md` must have a link to every page of
/// `docs/commands/`.
#[test]
fn every_page_is_listed() {
    for (index, folder, link) in [
        ("README.md", "docs", "docs"),
        ("docs/commands.md", "docs/commands", "commands"),
    ] {
        let page = read(index);
        let names = page_names(folder);
        assert!(names.len() > 10, "{folder}: {names:?}");
        for name in names {
            let link = format!("({link}/{name}");
            let is_listed = [")", "#"].map(|end| page.contains(&format!("{link}{end}")));
            assert!(is_listed.contains(&true), "{index} lacks {name}");
        }
    }
}

/// Returns the names of the Markdown files in a folder.
fn page_names(folder: &str) -> Vec<String> {
    let entries = fs::read_dir(root().join(folder)).expect(folder).flatten();
    entries
        .map(|entry| entry.file_name().into_string().expect("a name"))
        .filter(|name| name.ends_with(".md"))
        .collect()
}

/// The slogan of heapdiff is in `README.md`, in `cli/Cargo.toml` and in the output of `--help`. All three must be
/// equal.
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

/// The index names every command and option. Each command has a page, which names its options or links to the page of
/// common options.
#[test]
fn every_command_and_option_is_documented() {
    let index = read("docs/commands.md");
    let common = read("docs/commands/options.md");
    let headings: Vec<&str> = index
        .lines()
        .filter(|line| line.starts_with("## "))
        .collect();
    let top = help(&["--help"]);
    let commands = listed(&top);
    assert!(commands.len() > 15, "{commands:?}");
    let mut missing = BTreeSet::new();
    let mut options = options_of(&top);
    for command in &commands {
        let is_word = |heading: &&str| heading.split_whitespace().any(|w| w == command);
        if !headings.iter().any(is_word) {
            missing.insert(format!("docs/commands.md: the command {command}"));
        }
        let name = format!("docs/commands/{command}.md");
        let page = fs::read_to_string(root().join(&name)).unwrap_or_default();
        let text = help(&["help", command]);
        let mut of_command = options_of(&text);
        for below in listed(&text) {
            let both = format!("{command} {below}");
            for (path, content) in [("docs/commands.md", &index), (name.as_str(), &page)] {
                if !content.contains(&both) {
                    missing.insert(format!("{path}: the command {both}"));
                }
            }
            of_command.extend(options_of(&help(&["help", command, &below])));
        }
        if !page.starts_with(&format!("# {command}\n")) {
            missing.insert(format!("{name}: a title"));
        }
        let links_to_common = page.contains("(options.md");
        for option in &of_command {
            // Every command has the option `--help`, so it need not be on the command's page.
            let is_common = option == "--help" || (links_to_common && names(&common, option));
            if !names(&page, option) && !is_common {
                missing.insert(format!("{name}: {option}"));
            }
        }
        options.extend(of_command);
    }
    assert!(options.len() > 80, "{options:?}");
    for option in options {
        if !names(&index, &option) {
            missing.insert(format!("docs/commands.md: {option}"));
        }
    }
    assert!(missing.is_empty(), "not documented: {missing:#?}");
}

/// Returns the long options that a help text lists.
fn options_of(help: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for line in help.lines() {
        let entry = line.trim_start();
        // If the description of an option continues on the next line, that line has a larger indent.
        if line.len() - entry.len() <= 6 && entry.starts_with('-') {
            let words = entry.split([' ', ',']);
            found.extend(
                words
                    .take(3)
                    .find(|w| w.starts_with("--"))
                    .map(str::to_owned),
            );
        }
    }
    found
}

/// True if a page of the manual contains exactly this option, not only a longer option that begins with it.
fn names(page: &str, option: &str) -> bool {
    page.match_indices(option).any(|(at, _)| {
        let next = page[at + option.len()..].chars().next();
        next.is_none_or(|c| !c.is_ascii_alphanumeric() && c != '-')
    })
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

/// Checks that every path in ARCHITECTURE.md exists. If its code map lists a name without a folder, the file is in the
/// folder of the previous name.
#[test]
fn the_code_map_lists_existing_paths() {
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
fn crate_dependencies_match_the_architecture_page() {
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
        // The last line lists the crates that do not use any other crate of the project.
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

/// The tables in `docs/troubleshooting.md` contain the messages as they are in the source code. `…` stands for the
/// variable parts of a message.
#[test]
fn documented_messages_are_in_the_source_code() {
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
    // Skip rows with messages of the JVM. These rows contain `from the JVM`.
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

/// Appends the source text to a string. String literals that span several lines are joined.
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
fn jq_examples_print_the_documented_output() {
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
