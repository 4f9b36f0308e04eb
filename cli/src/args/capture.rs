//! Arguments of the commands that talk to a running JVM.

use std::path::PathBuf;

use clap::Args;
use heapdiff_diff::pattern;
use heapdiff_sites::attach::KEYS;
use heapdiff_units::{Size, Span};
use regex::Regex;

use super::common::{NamesArgs, ProgressArgs, ReportArgs, ViewArgs, with_names};
use super::diff::GrowthArgs;
use crate::failure::{Failure, Result};
use crate::job::{
    Agent, Capture, Count, Fork, Forking, Hunt, Job, Request, Setup, Target, Task, What,
    agent_options,
};

/// Have the agent count allocations, and uses of collections.
const COUNT_ON: &str = "count=on";
const USAGE_ON: &str = "usage=on";

/// Which JVM.
#[derive(Debug, Args)]
struct JvmArgs {
    /// The JVM: its process id, or a part of its main class's name
    #[arg(allow_negative_numbers = true)]
    pid: Target,
    /// How long to wait for a JVM that does not listen or makes no progress
    #[arg(long, value_name = "TIME", default_value = "10s")]
    timeout: Span,
}

/// What the agent can be told, and where it comes from.
fn agent_help() -> String {
    let mut text = "The agent's options, with their defaults:\n".to_owned();
    for (key, meaning) in KEYS {
        text += &format!("  {key:<11} {meaning}\n");
    }
    text + FILTER_HELP + AGENT_HELP
}

const FILTER_HELP: &str = r"
Filters go by the class of the object, and by the class whose code allocates, the innermost one
that is not of the JDK: include=^com\.pet\. samples what com.pet allocates, the byte[] of its lists
as well.

";

const AGENT_HELP: &str = "\
The library libheapdiff_agent.so is taken from --agent, from HEAPDIFF_AGENT, from beside this
program, or out of it (`heapdiff help agent` says where it is put then), and is copied to the JVM's
/tmp, or another folder that it can write to, where the JVM cannot read it in its place. Agents stay
loaded until the JVM ends: `attach` again changes the options, `detach` has the agent stop. From JDK
21 on the JVM warns of agents on its standard error unless it was started with
-XX:+EnableDynamicAgentLoading.";

#[derive(Debug, Args)]
#[command(after_help = agent_help())]
pub(super) struct AttachArgs {
    #[command(flatten)]
    jvm: JvmArgs,
    /// The agent's options, such as interval=64k,depth=32
    #[arg(value_name = "KEY=VALUE,...", value_parser = agent_options, default_value = "", hide_default_value = true)]
    options: String,
    /// The agent's library
    #[arg(long, value_name = "FILE")]
    agent: Option<PathBuf>,
    #[command(flatten)]
    progress: ProgressArgs,
}

impl AttachArgs {
    pub(super) fn capture(self) -> Capture {
        Capture {
            target: self.jvm.pid,
            timeout: self.jvm.timeout.0,
            wanted: self.progress.wanted(),
            request: Request::Attach(Agent {
                library: self.agent,
                options: self.options,
            }),
        }
    }
}

const COUNT_HELP: &str = "\
The agent rewrites the classes that are loaded and those that come, so that each allocation raises
a counter, and restores them in the end: a few classes at a time, some seconds for thousands. The
program is slower meanwhile, the most right after both, until its code is compiled again. Executed
allocations are counted, also those that the compiler then removes; clone, reflection, copies of
arrays and lambdas where they are called. What JNI, handles of constructors (Foo::new) and the JVM
itself make is not counted; nor is what a method that was running when the count began allocates,
until it is called anew. In the JDK's classes (--jdk) some counts are lower bounds: the compiler
replaces some methods by code of its own.";

#[derive(Debug, Args)]
#[command(after_help = COUNT_HELP)]
pub(super) struct CountArgs {
    #[command(flatten)]
    jvm: JvmArgs,
    /// How long to count; Ctrl-C ends it early
    #[arg(
        long = "for",
        value_name = "TIME",
        default_value = "30s",
        alias = "duration"
    )]
    time: Span,
    /// Count in the JDK's classes, too
    #[arg(long)]
    jdk: bool,
    /// Count only in classes that a regular expression finds
    #[arg(long, value_name = "RE", value_parser = pattern)]
    include: Option<Regex>,
    /// Count in no classes that a regular expression finds
    #[arg(long, value_name = "RE", value_parser = pattern)]
    exclude: Option<Regex>,
    /// The agent's library
    #[arg(long, value_name = "FILE")]
    agent: Option<PathBuf>,
    /// Sites to list [default: 20; all in JSON]
    #[arg(long, value_name = "N", help_heading = "Output")]
    top: Option<usize>,
    #[command(flatten)]
    names: NamesArgs,
    #[command(flatten)]
    view: ViewArgs,
}

impl CountArgs {
    pub(super) fn task(self) -> Result<(Setup, Task)> {
        let count = Count {
            target: self.jvm.pid,
            timeout: self.jvm.timeout.0,
            time: self.time,
            jdk: self.jdk,
            include: self.include,
            exclude: self.exclude,
            library: self.agent,
        };
        let setup = Setup {
            top: self.top,
            ..self.view.setup()?
        };
        Ok((with_names(setup, &self.names)?, Task::Count(count)))
    }
}

const DETACH_HELP: &str = "\
Sampling costs nothing from then on, a trace ends, and dumps are as without the agent. Its library
stays loaded, as the JVM has it; `heapdiff attach PID` begins anew, with other options if wanted.";

#[derive(Debug, Args)]
#[command(after_help = DETACH_HELP)]
pub(super) struct DetachArgs {
    #[command(flatten)]
    jvm: JvmArgs,
    #[command(flatten)]
    progress: ProgressArgs,
}

impl DetachArgs {
    pub(super) fn capture(self) -> Capture {
        Capture {
            target: self.jvm.pid,
            timeout: self.jvm.timeout.0,
            wanted: self.progress.wanted(),
            request: Request::Detach,
        }
    }
}

/// What a dump takes in.
#[derive(Debug, Args)]
struct WhatArgs {
    /// Garbage, too: leave out the collection that dumps of live objects begin with
    #[arg(long)]
    all: bool,
    /// As is done without `--all`; who knows `jmap -dump:live` may say so
    #[arg(long, hide = true, conflicts_with = "all")]
    live: bool,
    /// Compress it, 1 (fast) to 9 (small); the JVM does it from JDK 16 on; heapdiff does it before that, and where a
    /// child of the JVM writes
    #[arg(long, value_name = "LEVEL", value_parser = clap::value_parser!(u8).range(1..=9))]
    gz: Option<u8>,
}

impl WhatArgs {
    fn what(&self) -> What {
        What {
            all: self.all && !self.live,
            gzip: self.gz,
        }
    }
}

const DUMP_HELP: &str = "\
The JVM stands still while it writes, unless a child of it does (--fork). It writes beside the file
where it can, else to its own /tmp, from where the dump is moved; the file has its name only once it
is whole. For standard output it writes to $TMPDIR, else to its own /tmp, and nothing is left there.
A fork may be repeated, up to ten times, each with its pause: where a compiler thread of the JVM
held a lock at the fork the child cannot go on.
Works for JVMs of other users and in containers when heapdiff runs as root.";

#[derive(Debug, Args)]
#[command(after_help = DUMP_HELP)]
pub(super) struct DumpJvmArgs {
    #[command(flatten)]
    jvm: JvmArgs,
    /// The file to write, `-` for standard output, or the folder; a name with .gz means compressed
    /// [default: java_pidPID.hprof, numbered where it exists]
    #[arg(short, long, value_name = "FILE", alias = "file")]
    output: Option<PathBuf>,
    #[command(flatten)]
    what: WhatArgs,
    /// Have a forked child of the JVM write, while the JVM goes on after some milliseconds: all that is
    /// reachable, without a collection before
    #[arg(long, conflicts_with_all = ["all", "live"])]
    fork: bool,
    /// The agent's library, which --fork loads
    #[arg(long, value_name = "FILE", requires = "fork")]
    agent: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    progress: ProgressArgs,
}

impl DumpJvmArgs {
    pub(super) fn capture(self) -> Capture {
        Capture {
            target: self.jvm.pid,
            timeout: self.jvm.timeout.0,
            wanted: self.progress.wanted(),
            request: Request::Dump {
                output: self.output,
                what: self.what.what(),
                replace: self.force,
                fork: self.fork.then_some(Fork {
                    library: self.agent,
                }),
            },
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = agent_help())]
pub(super) struct HuntArgs {
    #[command(flatten)]
    jvm: JvmArgs,
    /// The agent's options, such as interval=64k,depth=32
    #[arg(value_name = "KEY=VALUE,...", value_parser = agent_options, default_value = "", hide_default_value = true, conflicts_with = "no_attach")]
    options: String,
    /// Have the agent count how large collections of the JDK's are used, as usage=on does: it tells what only fills from a
    /// cache
    #[arg(long, conflicts_with = "no_attach")]
    usage: bool,
    /// How long to wait between the dumps; Ctrl-C ends the wait early
    #[arg(
        long = "for",
        value_name = "TIME",
        default_value = "5m",
        alias = "duration"
    )]
    wait: Span,
    /// The folder for before.hprof, after.hprof and the report [default: hunt-PID, a new one]
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Take the second dump as soon as a site is seen to have grown by this much across collections, with a
    /// slope that is certain; the agent keeps a trace for it, trace.db in the folder
    #[arg(long, value_name = "SIZE", default_value = "1MiB")]
    enough: Size,
    /// Do not have the agent keep a trace: the second dump follows after --for
    #[arg(long, conflicts_with = "enough")]
    no_trace: bool,
    /// The agent's library
    #[arg(long, value_name = "FILE", conflicts_with = "no_attach")]
    agent: Option<PathBuf>,
    /// Do not load the agent: no allocation sites, unless one is loaded already
    #[arg(long)]
    no_attach: bool,
    /// Have the agent count every allocation as well, by line of code (its option count=on)
    #[arg(long, conflicts_with = "no_attach")]
    count: bool,
    /// Write no file to any disk: forked children of the JVM hand both dumps to heapdiff, which analyses each in
    /// memory and shows the report
    #[arg(long, conflicts_with_all = ["output", "enough", "no_fork", "no_attach", "all", "live", "gz", "max_memory"])]
    no_files: bool,
    /// Have forked children of the JVM write the dumps, or fail; without it the JVM writes where they cannot
    #[arg(long, conflicts_with_all = ["no_fork", "no_attach", "all", "live"])]
    fork: bool,
    /// Have the JVM write the dumps itself, after a collection; it stands still meanwhile
    #[arg(long)]
    no_fork: bool,
    #[command(flatten)]
    what: WhatArgs,
    #[command(flatten)]
    growth: GrowthArgs,
    #[command(flatten)]
    report: ReportArgs,
}

/// The agent's options with one more, unless they say it themselves.
fn with(options: String, more: &str) -> String {
    let key = more.split_inclusive('=').next().unwrap_or(more);
    let bare = options.replace("\\,", "");
    let mut keys = bare.split(',').map(str::trim_start);
    match &*options {
        _ if keys.any(|option| option.starts_with(key)) => options,
        "" => more.to_owned(),
        _ => format!("{options},{more}"),
    }
}

impl HuntArgs {
    pub(super) fn job(self) -> Result<Job> {
        let question = self.growth.checked()?;
        let mut options = self.options;
        for (asked, more) in [(self.count, COUNT_ON), (self.usage, USAGE_ON)] {
            if asked {
                options = agent_options(&with(options, more)).map_err(Failure::usage)?;
            }
        }
        let agent = Agent {
            library: self.agent,
            options,
        };
        let mut setup = self.report.setup(None)?;
        // What is kept for the next time is kept in files.
        setup.index &= !self.no_files;
        Ok(Job {
            setup,
            task: Task::Hunt {
                hunt: Hunt {
                    target: self.jvm.pid,
                    timeout: self.jvm.timeout.0,
                    agent: (!self.no_attach).then_some(agent),
                    what: self.what.what(),
                    fork: match (self.fork, self.no_fork || self.what.all || self.what.live) {
                        (true, _) => Forking::Always,
                        (false, false) => Forking::WherePossible,
                        (false, true) => Forking::Never,
                    },
                    wait: self.wait,
                    folder: self.output,
                    files: !self.no_files,
                    enough: (!(self.no_trace || self.no_files)).then_some(self.enough.0),
                },
                question,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{COUNT_ON, USAGE_ON, agent_options, with};

    #[test]
    fn a_hunt_counts_as_its_options_say() {
        for (given, expected) in [
            ("", "count=on"),
            ("interval=64k", "interval=64k,count=on"),
            ("interval=64k, count=jdk", "interval=64k, count=jdk"),
            ("service=a\\,count=b", "service=a\\,count=b,count=on"),
        ] {
            assert_eq!(with(given.to_owned(), COUNT_ON), expected);
        }
        assert_eq!(with("usage=off".to_owned(), USAGE_ON), "usage=off");
        assert_eq!(with("count=on".to_owned(), USAGE_ON), "count=on,usage=on");
        assert!(agent_options(&with("x".repeat(1020), COUNT_ON)).is_err());
    }
}
