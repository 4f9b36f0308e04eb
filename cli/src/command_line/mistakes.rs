//! Tips for unknown options: the most similar known option, or the commands that have the option.

use std::ffi::OsString;
use std::path::Path;

use clap::Command;
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};

/// Options of other programs. Each entry has the names of the option, the name of heapdiff's equivalent option, and how
/// to use it. The tip is printed only if the command has the equivalent option.
const OTHERS: [(&[&str], &str, &str); 6] = [
    (
        &["-n", "-k", "--limit", "--max", "--rows", "--lines"],
        "top",
        "--top N",
    ),
    (&["--json"], "format", "--format json"),
    (&["--csv"], "format", "--format csv"),
    (&["--markdown", "--md"], "format", "--format md"),
    (&["--html"], "output", "-o report.html"),
    (&["-j", "--jobs"], "threads", "--threads N"),
];

/// An unknown option and the suggested option differ by at most this many edits.
const EDITS: usize = 2;

/// Maximum number of commands that are named in a tip about an unknown option.
const NAMED: usize = 3;

/// Replaces clap's suggestion for an unknown option with a better tip. Also adds a tip if a file name is given instead
/// of a subcommand.
pub(super) fn explain(mut error: Error, line: &mut Command, args: &[OsString]) -> Error {
    // Clap's `build` adds the options that all commands share, such as `--help`.
    line.build();
    let (names, command) = command_of(line, args);
    match error.kind() {
        ErrorKind::UnknownArgument => {
            let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidArg) else {
                return error;
            };
            let (unknown, given) = (unknown.clone(), args.iter().map(|arg| arg.to_str()));
            let value = given.skip_while(|arg| *arg != Some(&*unknown)).nth(1);
            let number = value.flatten().filter(|v| v.parse::<u32>().is_ok());
            let tips = tips(&unknown, number, line, command, &names);
            let usage = command.clone().render_usage();
            // clap's usage text also contains the option that clap guessed, so the usage text is replaced, too.
            error.insert(ContextKind::Usage, ContextValue::StyledStr(usage));
            error.remove(ContextKind::SuggestedArg);
            if tips.is_empty() {
                return error;
            }
            let tips = tips.into_iter().map(Into::into).collect();
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
        }
        ErrorKind::InvalidSubcommand => {
            if let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand)
                && Path::new(word).exists()
                && let Some(first) = names.first()
            {
                let below = command.get_subcommands().map(Command::get_name);
                let below: Vec<&str> = below.filter(|name| *name != "help").collect();
                let tip = format!(
                    "write the command before the file: `heapdiff {first} {}`",
                    below.join("|")
                );
                let tip = ContextValue::StyledStrs(vec![tip.into()]);
                error.insert(ContextKind::Suggested, tip);
            }
        }
        _ => {}
    }
    error
}

/// Returns the command that the arguments name, and the names that lead to it: `trace top` gives `["trace", "top"]`.
fn command_of<'c>(line: &'c Command, args: &[OsString]) -> (Vec<String>, &'c Command) {
    let (mut names, mut command) = (Vec::new(), line);
    for arg in args.iter().skip(1) {
        let word = arg.to_str().unwrap_or_default();
        let Some(below) = command.find_subcommand(word) else {
            break;
        };
        names.push(below.get_name().to_owned());
        command = below;
    }
    (names, command)
}

/// Returns tips for an unknown option. `number` is the number that follows the option, if there is one.
fn tips(
    unknown: &str,
    number: Option<&str>,
    line: &Command,
    command: &Command,
    names: &[String],
) -> Vec<String> {
    let has = |command: &Command, long: &str| longs(command).any(|l| l == long);
    let other = OTHERS.iter().find(|(all, ..)| all.contains(&unknown));
    if let Some((_, long, use_)) = other
        && has(command, long)
    {
        return vec![format!(
            "use `{}`",
            use_.replace('N', number.unwrap_or("N"))
        )];
    }
    let Some(long) = unknown.strip_prefix("--") else {
        return Vec::new();
    };
    let close = |command: &Command| {
        let distance = |known: &str| strsim::osa_distance(long, known);
        let known = longs(command).min_by_key(|known| distance(known))?;
        // Two edits can turn a short word into any other short word, so fewer edits are allowed for short words.
        let is_close = distance(known) <= EDITS.min(long.len() / 2);
        is_close.then(|| known.to_owned())
    };
    if let Some(known) = close(command) {
        return vec![format!("did you mean `--{known}`?")];
    }
    let mut found = Vec::new();
    for_each_visible(line, &mut Vec::new(), &mut |path, command| {
        if path != names && has(command, long) {
            found.push(format!("`heapdiff {}`", path.join(" ")));
        }
    });
    let more = match found.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more commands"),
    };
    found.truncate(NAMED);
    if found.is_empty() {
        Vec::new()
    } else {
        vec![format!(
            "`--{long}` is an option of {}{more}",
            found.join(", ")
        )]
    }
}

/// Calls `each` for every visible command.
fn for_each_visible(
    command: &Command,
    path: &mut Vec<String>,
    each: &mut impl FnMut(&[String], &Command),
) {
    for below in command.get_subcommands().filter(|c| !c.is_hide_set()) {
        path.push(below.get_name().to_owned());
        each(path, below);
        for_each_visible(below, path, each);
        path.pop();
    }
}

fn longs(command: &Command) -> impl Iterator<Item = &str> {
    let shown = command.get_arguments().filter(|arg| !arg.is_hide_set());
    shown.filter_map(clap::Arg::get_long)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    use super::super::Cli;

    fn error_text(text: &str) -> String {
        let args: Vec<OsString> = text.split(' ').map(OsString::from).collect();
        let mut line = Cli::command();
        let error = line.try_get_matches_from_mut(&args).unwrap_err();
        explain(error, &mut line, &args).to_string()
    }

    #[test]
    fn a_misspelt_option_gets_a_suggestion() {
        for (text, tip) in [
            ("heapdiff histo a --tpo 5", "did you mean `--top`?"),
            (
                "heapdiff a b --fail-on-suspct",
                "did you mean `--fail-on-suspect`?",
            ),
            ("heapdiff histo a -n 5", "use `--top 5`"),
            ("heapdiff histo a --limit=5", "use `--top N`"),
            ("heapdiff a b --json", "use `--format json`"),
            ("heapdiff a b --html", "use `-o report.html`"),
            (
                "heapdiff a --retained",
                "`--retained` is an option of `heapdiff histo`",
            ),
            (
                "heapdiff trace info a --window 1h",
                "`--window` is an option of `heapdiff trace top`",
            ),
        ] {
            let error_text = error_text(text);
            assert!(error_text.contains(&format!("tip: {tip}")), "{error_text}");
        }
    }

    #[test]
    fn unknown_options_get_no_suggestion() {
        for text in [
            "heapdiff histo a --bogus",
            "heapdiff histo a -z",
            "heapdiff ps --top 5x",
            "heapdiff histo a --x",
        ] {
            let error_text = error_text(text);
            assert!(
                !error_text.contains("did you mean") && !error_text.contains("use `"),
                "{error_text}"
            );
        }
    }

    #[test]
    fn a_file_in_place_of_a_command_is_explained() {
        let error_text = error_text("heapdiff trace Cargo.toml");
        assert!(
            error_text.contains("write the command before the file: `heapdiff trace info|top|"),
            "{error_text}"
        );
    }
}
