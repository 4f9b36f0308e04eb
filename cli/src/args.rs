//! The command line: what clap parses, turned once into a [`Job`] whose options are valid.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgAction, Args, CommandFactory, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use hprof::Selector;
use regex::Regex;

use crate::failure::{Failure, Result};
use crate::output::Output;
use crate::progress::Wanted;
use crate::render::Format;
use crate::size::Size;
use crate::style::When;

/// What to do, checked.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) setup: Setup,
    pub(crate) task: Task,
}

/// The question, with the dumps that it is asked of.
#[derive(Debug)]
pub(crate) enum Task {
    Diff {
        /// Two or more, oldest first.
        dumps: Vec<PathBuf>,
        classes: ClassFilter,
        gates: Gates,
    },
    Histo {
        dump: PathBuf,
        retained: bool,
    },
    Top {
        dump: PathBuf,
        under: Option<Selector>,
    },
    Show {
        dump: PathBuf,
        selector: Selector,
    },
    Paths {
        dump: PathBuf,
        selector: Selector,
    },
    Threads {
        dump: PathBuf,
    },
}

/// Which classes and suspects a diff speaks of.
#[derive(Debug, Default)]
pub(crate) struct ClassFilter {
    include: Vec<Regex>,
    exclude: Vec<Regex>,
}

impl ClassFilter {
    /// Whether what bears these class names is reported: any `--include` matches one of them, no
    /// `--exclude` does.
    pub(crate) fn admits(&self, names: &[&str]) -> bool {
        let any = |list: &[Regex]| list.iter().any(|re| names.iter().any(|n| re.is_match(n)));
        (self.include.is_empty() || any(&self.include)) && !any(&self.exclude)
    }
}

/// What makes a diff end with exit code 1.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Gates {
    pub(crate) growth: Option<Size>,
    pub(crate) suspect: bool,
}

impl Gates {
    /// Whether there are any.
    pub(crate) const fn any(&self) -> bool {
        self.growth.is_some() || self.suspect
    }
}

/// How to work and how to show it: the same for all commands.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) output: Output,
    /// Rows of each list, where the user says.
    pub(crate) top: Option<usize>,
    pub(crate) progress: Wanted,
    pub(crate) analysis: hprof::Options,
    pub(crate) threads: Option<usize>,
    pub(crate) strict: bool,
}

impl Setup {
    /// How many rows a list has: what the user says, else all in JSON and `text` in text.
    pub(crate) fn rows(&self, text: usize) -> usize {
        let default = match self.output.format {
            Format::Text => text,
            Format::Json => usize::MAX,
        };
        self.top.unwrap_or(default)
    }
}

/// What the arguments ask for.
#[derive(Debug)]
pub(crate) enum Asked {
    Job(Box<Job>),
    Completions(Shell),
}

const USAGE: &str = "heapdiff [OPTIONS] BEFORE AFTER [LATER]...
       heapdiff COMMAND [OPTIONS] ...";

const AFTER_HELP: &str = "\
Sizes are written 10MB, 1.5GiB, or 512m as in -Xmx. A dump that is named like a command is written
./histo. `heapdiff help COMMAND` tells more.

Exit codes: 0 done, 1 a gate (--fail-on-...) tripped, 2 wrong usage, 3 an input could not be read.";

const SELECTOR_HELP: &str = "\
SELECTOR: 0x7f0012345678 (an object), com.acme.Foo (all its instances), com.acme.Foo.field (what a
static field holds), 'class com.acme.Foo' (the class itself), /regex/ (classes by name).";

/// Diffs JVM heap dumps and names what holds the growth; answers questions about one dump
#[derive(Debug, Parser)]
#[command(
    version,
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

#[derive(Debug, Subcommand)]
enum Command {
    /// What grew between dumps, and what holds it (the same without the word `diff`)
    #[command(override_usage = "heapdiff [diff] [OPTIONS] BEFORE AFTER [LATER]...")]
    Diff(DiffArgs),
    /// Objects and bytes of each class
    Histo(HistoArgs),
    /// The objects that retain most, or what lies directly below one
    Top(TopArgs),
    /// Objects with their fields, elements and what holds them
    Show(SelectArgs),
    /// Shortest paths from GC roots to objects, merged for many
    Paths(SelectArgs),
    /// Threads, their frames and what their local variables retain
    Threads(DumpArgs),
    /// A completion script for a shell, on standard output
    Completions {
        /// The shell
        shell: Shell,
    },
}

#[derive(Debug, Args)]
struct DiffArgs {
    /// The first heap dump (HPROF, gzipped or not)
    before: Option<PathBuf>,
    /// A dump of the same program, taken later
    after: Option<PathBuf>,
    /// More dumps, oldest first: what grows at every step stands out
    later: Vec<PathBuf>,
    /// Report only classes that a regular expression matches, and suspects that consist of them or
    /// that a field of theirs holds (may be repeated)
    #[arg(long, value_name = "RE", value_parser = pattern, help_heading = "Diff")]
    include: Vec<Regex>,
    /// Leave out classes that a regular expression matches, and suspects that consist of them or
    /// that a field of theirs holds (may be repeated)
    #[arg(long, value_name = "RE", value_parser = pattern, help_heading = "Diff")]
    exclude: Vec<Regex>,
    /// Exit with 1 when the heap, or what one suspect retains, grew by this much or more
    #[arg(long, value_name = "SIZE", help_heading = "Diff")]
    fail_on_growth: Option<Size>,
    /// Exit with 1 when something is taken for a leak or for growth
    #[arg(long, help_heading = "Diff")]
    fail_on_suspect: bool,
    #[command(flatten)]
    common: CommonArgs,
}

impl DiffArgs {
    fn job(self) -> Result<Job> {
        let dumps: Vec<PathBuf> = [self.before, self.after]
            .into_iter()
            .flatten()
            .chain(self.later)
            .collect();
        match &dumps[..] {
            [] => return Err(too_few("a diff needs two dumps".to_owned())),
            [one] => {
                let one = one.display();
                return Err(too_few(format!("a diff needs two dumps, and {one} is one"))
                    .with_hint(format!(
                        "for a single dump: `heapdiff histo {one}` or `heapdiff top {one}`"
                    )));
            }
            _ => {}
        }
        Ok(Job {
            setup: self.common.setup(&dumps)?,
            task: Task::Diff {
                dumps,
                classes: ClassFilter {
                    include: self.include,
                    exclude: self.exclude,
                },
                gates: Gates {
                    growth: self.fail_on_growth,
                    suspect: self.fail_on_suspect,
                },
            },
        })
    }
}

/// A regular expression, or in one line why it is none.
fn pattern(text: &str) -> std::result::Result<Regex, String> {
    Regex::new(text).map_err(|e| {
        let text = e.to_string();
        let last = text.lines().last().unwrap_or_default();
        last.strip_prefix("error: ").unwrap_or(last).to_owned()
    })
}

fn too_few(message: String) -> Failure {
    Failure::usage(message).with_hint("usage: heapdiff BEFORE AFTER [LATER]...")
}

#[derive(Debug, Args)]
struct HistoArgs {
    /// A heap dump (HPROF), gzipped or not
    dump: PathBuf,
    /// Also what each class retains as a set, and sort by it (takes longer: links all objects)
    #[arg(long)]
    retained: bool,
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Debug, Args)]
#[command(after_help = SELECTOR_HELP)]
struct TopArgs {
    /// A heap dump (HPROF), gzipped or not
    dump: PathBuf,
    /// Only what these objects dominate directly: one level of the dominator tree
    #[arg(long, value_name = "SELECTOR")]
    under: Option<Selector>,
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Debug, Args)]
struct DumpArgs {
    /// A heap dump (HPROF), gzipped or not
    dump: PathBuf,
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Debug, Args)]
#[command(after_help = SELECTOR_HELP)]
struct SelectArgs {
    /// A heap dump (HPROF), gzipped or not
    dump: PathBuf,
    /// Which objects
    selector: Selector,
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
struct CommonArgs {
    /// How to write the report [default: text, or from the extension of -o]
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<Format>,
    /// Write to a file, replacing it once the report is complete
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Rows of each list [default: enough for a screen; all classes in JSON]
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// Use colours
    #[arg(long, value_enum, value_name = "WHEN", default_value_t)]
    color: When,
    /// Show progress on standard error
    #[arg(long, value_enum, value_name = "WHEN", default_value_t)]
    progress: When,
    /// Errors only on standard error: no progress, no warnings
    #[arg(short, long, conflicts_with = "verbose")]
    quiet: bool,
    /// Each phase with its time on standard error
    #[arg(short, long)]
    verbose: bool,
    /// Threads to work on [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..), help_heading = "Analysis")]
    threads: Option<u16>,
    /// Memory for the large arrays; what is beyond lives in temporary files
    #[arg(long, value_name = "SIZE", help_heading = "Analysis")]
    max_memory: Option<Size>,
    /// Which java.lang.ref objects retain what they refer to; never weak ones but with `all`
    #[arg(long, value_enum, default_value_t, help_heading = "Analysis")]
    refs: Refs,
    /// Neither read nor write an index beside a dump (this version has none: always so)
    #[arg(long, action = ArgAction::SetTrue, help_heading = "Analysis")]
    no_index: bool,
    /// Take a damaged dump for one that cannot be read
    #[arg(long, help_heading = "Analysis")]
    strict: bool,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Refs {
    Strong,
    #[default]
    Soft,
    All,
}

impl CommonArgs {
    fn setup(self, dumps: &[PathBuf]) -> Result<Setup> {
        Ok(Setup {
            output: Output::new(self.format, self.output, self.color, dumps)?,
            top: self.top,
            progress: Wanted {
                when: self.progress,
                quiet: self.quiet,
                verbose: self.verbose,
            },
            analysis: hprof::Options {
                refs: match self.refs {
                    Refs::Strong => hprof::Refs::Strong,
                    Refs::Soft => hprof::Refs::Soft,
                    Refs::All => hprof::Refs::All,
                },
                max_memory: self.max_memory.map(|size| size.0),
            },
            threads: self.threads.map(usize::from),
            strict: self.strict,
        })
    }
}

/// Parses the arguments. Ends the process for `--help`, `--version` and what clap refuses.
pub(crate) fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Asked> {
    let args = lead_with_command(args.into_iter().collect())?;
    let cli = Cli::try_parse_from(args).unwrap_or_else(|e| e.exit());
    let (setup, task) = match cli.command {
        None => return Ok(Asked::Job(Box::new(cli.diff.job()?))),
        Some(Command::Diff(diff)) => return Ok(Asked::Job(Box::new(diff.job()?))),
        Some(Command::Histo(HistoArgs {
            dump,
            retained,
            common,
        })) => (
            common.setup(std::slice::from_ref(&dump))?,
            Task::Histo { dump, retained },
        ),
        Some(Command::Threads(DumpArgs { dump, common })) => (
            common.setup(std::slice::from_ref(&dump))?,
            Task::Threads { dump },
        ),
        Some(Command::Paths(SelectArgs {
            dump,
            selector,
            common,
        })) => (
            common.setup(std::slice::from_ref(&dump))?,
            Task::Paths { dump, selector },
        ),
        Some(Command::Show(SelectArgs {
            dump,
            selector,
            common,
        })) => (
            common.setup(std::slice::from_ref(&dump))?,
            Task::Show { dump, selector },
        ),
        Some(Command::Top(TopArgs {
            dump,
            under,
            common,
        })) => (
            common.setup(std::slice::from_ref(&dump))?,
            Task::Top { dump, under },
        ),
        Some(Command::Completions { shell }) => return Ok(Asked::Completions(shell)),
    };
    Ok(Asked::Job(Box::new(Job { setup, task })))
}

/// The whole command line, for completion scripts.
pub(crate) fn command_line() -> clap::Command {
    Cli::command()
}

/// Commands of later versions. Not offered, but told apart from names of dumps.
const PLANNED: [&str; 7] = ["attach", "dump", "hunt", "sites", "sizeof", "trace", "ui"];

/// Moves the command to the front, so that options may stand before it: `heapdiff -q histo A`.
///
/// The first word that is no option decides. A dump that is named like a command is written
/// `./histo`, or follows the command `diff`.
fn lead_with_command(mut args: Vec<OsString>) -> Result<Vec<OsString>> {
    let command_line = command_line();
    let Some(at) = first_word(&args, &command_line) else {
        return Ok(args);
    };
    let Some(word) = args[at].to_str() else {
        return Ok(args);
    };
    if PLANNED.contains(&word) {
        let message = format!("the command `{word}` is not in this version");
        return Err(Failure::usage(message).with_hint(format!(
            "`heapdiff --help` lists the commands; a dump of that name is written ./{word}"
        )));
    }
    if word == "help" || command_line.find_subcommand(word).is_some() {
        let word = args.remove(at);
        args.insert(1, word);
    }
    Ok(args)
}

/// The place of the first argument that is neither an option nor an option's value.
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
            // In `-qo FILE` the value follows, in `-oFILE` it is there.
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

    fn led(line: &str) -> String {
        let args = line.split(' ').map(OsString::from).collect();
        let args = lead_with_command(args).unwrap();
        let words: Vec<&str> = args.iter().filter_map(|a| a.to_str()).collect();
        words.join(" ")
    }

    #[test]
    fn the_command_may_follow_options() {
        assert_eq!(led("heapdiff -q histo a"), "heapdiff histo -q a");
        assert_eq!(led("heapdiff --top 5 histo a"), "heapdiff histo --top 5 a");
        assert_eq!(led("heapdiff --top=5 histo a"), "heapdiff histo --top=5 a");
        assert_eq!(led("heapdiff -qo histo top a"), "heapdiff top -qo histo a");
        assert_eq!(led("heapdiff -ohisto a top"), "heapdiff -ohisto a top");
        assert_eq!(led("heapdiff a histo"), "heapdiff a histo");
        assert_eq!(
            led("heapdiff --include a diff b"),
            "heapdiff diff --include a b"
        );
        assert_eq!(led("heapdiff -- histo top"), "heapdiff -- histo top");
        assert_eq!(led("heapdiff ./histo b"), "heapdiff ./histo b");
    }

    #[test]
    fn later_commands_are_told_apart() {
        let args = ["heapdiff", "sizeof", "a"].map(OsString::from).to_vec();
        assert!(lead_with_command(args).is_err());
    }

    #[test]
    fn the_command_line_is_sound() {
        command_line().debug_assert();
    }
}
