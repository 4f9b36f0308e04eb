//! The command line: parses arguments into one [`Command`].

mod files;
mod implicit_diff;
mod mistakes;
#[cfg(test)]
mod tests;

use std::ffi::OsString;

use clap::{CommandFactory, FromArgMatches, Parser};

use crate::command::{Command, DiffArgs};
use crate::failure::Result;

const USAGE: &str = "heapdiff [OPTIONS] BEFORE AFTER [LATER]...
       heapdiff [OPTIONS] DUMP
       heapdiff COMMAND [OPTIONS] ...";

const AFTER_HELP: &str = "\
Examples:
  heapdiff before.hprof after.hprof  # what grew, and what holds it
  heapdiff app.hprof                 # what retains the most in one dump
  heapdiff hunt 4711 --for 5m        # find a leak in the JVM with process id 4711

`heapdiff help COMMAND` shows the options and examples of a command. Sizes are written 10MiB, 1.5GiB
or 512m (as in -Xmx). If a dump is given as -, heapdiff reads it from standard input. If a dump has
the same name as a command, such as histo, write ./histo.

Exit codes: 0 = done, 1 = a gate (--fail-on-...) failed, 2 = wrong usage, 3 = an input could not be
read, or a JVM or a server could not be reached.";

/// Compares Java heap dumps and names the field that leaks. With its agent, it also names the code
/// that allocated the objects.
#[derive(Debug, Parser)]
#[command(
    version,
    // Without this name, messages on Windows would call the program `heapdiff.exe`.
    bin_name = "heapdiff",
    override_usage = USAGE,
    after_help = AFTER_HELP,
    max_term_width = 100,
    arg_required_else_help = true,
    args_conflicts_with_subcommands = true
)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    diff: DiffArgs,
}

/// Parses the arguments. Ends the process for `--help`, for `--version`, and for an error of clap.
pub(crate) fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Command> {
    let args = implicit_diff::move_command_first(args.into_iter().collect());
    let mut command_line = Cli::command();
    let (cli, matches) = command_line
        .try_get_matches_from_mut(&args)
        .and_then(|matches| Ok((Cli::from_arg_matches(&matches)?, matches)))
        .unwrap_or_else(|error| {
            mistakes::explain(error, &mut command_line, &args)
                .format(&mut command_line)
                .exit()
        });
    files::check(&command_line, &matches)?;
    if let Some(command) = cli.command {
        return Ok(command);
    }
    match cli.diff.first().and_then(implicit_diff::no_command) {
        Some(failure) => Err(failure),
        None => Ok(Command::Diff(cli.diff)),
    }
}

/// Returns the definition of all commands and options. Completion scripts and the manual are generated from it.
pub(crate) fn full_command() -> clap::Command {
    Cli::command()
}
