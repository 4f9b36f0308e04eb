//! Finds the files on a command line: the files to read, and the files to write.

use std::any::TypeId;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};

use crate::failure::{Failure, Result};
use crate::overwrite::{self, Replaces, Rule};

/// Names of the arguments that are files or folders to write.
const OUTPUTS: [&str; 3] = ["output", "folder", "save"];
/// The value that means standard output.
const STANDARD: &str = "-";
/// Name of the option that allows an output to replace a dump, a recording or a trace.
const FORCE: &str = "force";
/// Commands that replace a file only with `--force`, and that check this themselves.
const STRICT: [&str; 2] = ["dump", "import"];

/// Refuses outputs that would overwrite an input, or a file that is only replaced with `--force`.
pub(super) fn check(mut command: &Command, mut matches: &ArgMatches) -> Result<()> {
    while let Some((name, below)) = matches.subcommand()
        && let Some(found) = command.find_subcommand(name)
    {
        (command, matches) = (found, below);
    }
    let has_force = command.get_arguments().any(|arg| arg.get_id() == FORCE);
    let is_strict = STRICT.contains(&command.get_name());
    let mut rule = Rule {
        inputs: Vec::new(),
        replaces: if has_force && (is_strict || matches.get_flag(FORCE)) {
            Replaces::Always
        } else if has_force {
            Replaces::WithForce
        } else {
            Replaces::Never
        },
    };
    let (mut options, mut outputs) = (Vec::new(), Vec::new());
    for arg in command.get_arguments() {
        let id = arg.get_id().as_str();
        if matches.value_source(id) != Some(ValueSource::CommandLine) {
            continue;
        }
        for value in matches.get_raw(id).into_iter().flatten() {
            if !OUTPUTS.contains(&id) {
                rule.inputs.extend(paths(arg, value));
            } else if value != STANDARD {
                options.push(match id {
                    "save" => "--save",
                    _ => "-o",
                });
                outputs.push(PathBuf::from(value));
            }
        }
    }
    overwrite::set(rule);
    if let Some(twice) = overwrite::find_duplicate(&outputs) {
        let message = format!("-o {} was given twice", twice.display());
        return Err(Failure::usage(message));
    }
    options
        .into_iter()
        .zip(&outputs)
        .try_for_each(|(option, output)| overwrite::check(option, output))
}

/// Returns the paths in a value. The list is empty if the argument does not name files.
fn paths(arg: &Arg, value: &OsStr) -> Vec<PathBuf> {
    let kind = arg.get_value_parser().type_id();
    let is_path = kind == TypeId::of::<PathBuf>() || kind == TypeId::of::<OsString>();
    match (arg.get_id().as_str(), value.to_str()) {
        // The value is a list of paths. `folder/*` means all archives of `folder`.
        ("classpath", _) => std::env::split_paths(value)
            .map(|path| {
                if path.file_name() == Some("*".as_ref()) {
                    path.parent().map(PathBuf::from).unwrap_or(path)
                } else {
                    path
                }
            })
            .collect(),
        ("named", Some(text)) => {
            let named = text.split_once('=');
            named.map(|(_, dump)| dump.into()).into_iter().collect()
        }
        (_, Some("-")) if is_path => vec![PathBuf::from(hprof::bytes::STDIN)],
        _ if is_path => vec![PathBuf::from(value)],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::super::Cli;
    use super::*;

    /// Every argument that names a file must be recognized. The program recognizes an output by the argument's name,
    /// and an input by the argument's type.
    #[test]
    fn every_file_argument_is_recognized() {
        fn check(command: &Command) {
            for arg in command.get_arguments() {
                let names = arg.get_value_names().unwrap_or_default();
                let is_file = |name: &str| {
                    let words = [
                        "FILE", "DIR", "PATH", "OUT", "DUMP", "TRACE", "IN", ".db", "JSON",
                    ];
                    words.iter().any(|word| name.ends_with(word))
                };
                let id = arg.get_id().as_str();
                // The source folder is only text that is put in front of paths. Nothing is read from this folder.
                let is_known = OUTPUTS.contains(&id)
                    || id == "source_root"
                    || !paths(arg, OsStr::new("a=b")).is_empty();
                let takes_file =
                    arg.get_action().takes_values() && names.iter().any(|name| is_file(name));
                assert!(
                    is_known || !takes_file,
                    "{}: {id} {names:?}",
                    command.get_name()
                );
            }
            command.get_subcommands().for_each(check);
        }
        check(&Cli::command());
    }
}
