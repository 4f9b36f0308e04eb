//! Handles command lines without a command, which mean `diff`. Also handles command lines with options before the
//! command, and command lines with a dump that has the name of a command.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::Path;

use clap::CommandFactory;

use super::Cli;
use crate::failure::{Failure, system_message};

/// Moves the command to the front, because options may precede it: `heapdiff -q histo A`.
///
/// If the first word that is not an option is the name of a command, it is the command. If a dump has the name of a
/// command, the user can write `./histo`, or put the command `diff` before the dump.
pub(super) fn move_command_first(mut args: Vec<OsString>) -> Vec<OsString> {
    let command_line = Cli::command();
    let Some(at) = first_word(&args, &command_line) else {
        return args;
    };
    let Some(word) = args[at].to_str() else {
        return args;
    };
    if word == "help" || command_line.find_subcommand(word).is_some() {
        let word = args.remove(at);
        args.insert(1, word);
    }
    args
}

/// Returns the error for a word that looks like a command, because no such file exists and the word has no dot and no
/// slash. The hint names the most similar command, if there is one.
pub(super) fn no_command(dump: &Path) -> Option<Failure> {
    let word = dump.to_str()?;
    let error = dump.metadata().err()?;
    if error.kind() != ErrorKind::NotFound || word.contains(['.', '/', '\\']) {
        return None;
    }
    let hint = match suggest_command(word) {
        Some(command) => format!("no such command or file; did you mean `heapdiff {command}`?"),
        None => {
            format!(
                "`{word}` is neither a file nor a command; `heapdiff --help` lists the commands"
            )
        }
    };
    Some(Failure::bad_input(format!("{word}: {}", system_message(&error))).with_hint(hint))
}

/// Returns the command whose name is most similar to a word; `None` if the Jaro-Winkler similarity is at most 0.85.
fn suggest_command(word: &str) -> Option<String> {
    let command_line = Cli::command();
    let shown = command_line.get_subcommands().filter(|c| !c.is_hide_set());
    let likeness = |name: &str| strsim::jaro_winkler(word, name);
    let most = shown
        .map(clap::Command::get_name)
        .max_by(|a, b| likeness(a).total_cmp(&likeness(b)))?;
    (likeness(most) > 0.85).then(|| most.to_owned())
}

/// Returns the index of the first argument that is neither an option nor the value of an option.
fn first_word(args: &[OsString], command_line: &clap::Command) -> Option<usize> {
    let takes_value = |matches: &dyn Fn(&clap::Arg) -> bool| {
        std::iter::once(command_line)
            .chain(command_line.get_subcommands())
            .flat_map(clap::Command::get_arguments)
            .any(|arg| arg.get_action().takes_values() && matches(arg))
    };
    let mut at = 1;
    while at < args.len() {
        let Some(arg) = args[at].to_str() else {
            return Some(at);
        };
        if arg == "--" {
            return None;
        }
        let value_follows = if let Some(long) = arg.strip_prefix("--") {
            takes_value(&|a| a.get_long() == Some(long))
        } else if let Some(shorts) = arg.strip_prefix('-').filter(|s| !s.is_empty()) {
            // In `-qo FILE`, the value of `o` is the next argument. In `-oFILE`, the value is part of this argument.
            let with_value = shorts
                .char_indices()
                .find(|&(_, c)| takes_value(&|a| a.get_short() == Some(c)));
            with_value.is_some_and(|(i, c)| i + c.len_utf8() == shorts.len())
        } else {
            return Some(at);
        };
        at += 1 + usize::from(value_follows);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(line: &str) -> String {
        let args = line.split(' ').map(OsString::from).collect();
        let args = move_command_first(args);
        let words: Vec<&str> = args.iter().filter_map(|a| a.to_str()).collect();
        words.join(" ")
    }

    #[test]
    fn the_command_may_follow_options() {
        assert_eq!(sorted("heapdiff -q histo a"), "heapdiff histo -q a");
        assert_eq!(
            sorted("heapdiff --top 5 histo a"),
            "heapdiff histo --top 5 a"
        );
        assert_eq!(
            sorted("heapdiff --top=5 histo a"),
            "heapdiff histo --top=5 a"
        );
        assert_eq!(
            sorted("heapdiff -qo histo top a"),
            "heapdiff top -qo histo a"
        );
        assert_eq!(sorted("heapdiff -ohisto a top"), "heapdiff -ohisto a top");
        assert_eq!(sorted("heapdiff a histo"), "heapdiff a histo");
        assert_eq!(
            sorted("heapdiff --include a diff b"),
            "heapdiff diff --include a b"
        );
        assert_eq!(sorted("heapdiff -- histo top"), "heapdiff -- histo top");
        assert_eq!(sorted("heapdiff ./histo b"), "heapdiff ./histo b");
    }

    #[test]
    fn a_misspelt_command_gets_a_hint() {
        let hint = |word: &str| no_command(Path::new(word)).and_then(|failure| failure.hint);
        let told = hint("histoo").unwrap();
        assert_eq!(
            told,
            "no such command or file; did you mean `heapdiff histo`?"
        );
        let told = hint("qqq").unwrap();
        assert!(
            told.starts_with("`qqq` is neither a file nor a command"),
            "{told}"
        );
        assert_eq!(hint("nowhere.hprof"), None);
        assert_eq!(hint("src"), None);
    }

    #[test]
    fn the_command_line_definition_is_valid() {
        Cli::command().debug_assert();
    }
}
