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
    Action, Agent, Capture, Count, Fork, Forking, Hunt, Job, Request, Setup, Target, Task, What,
    agent_options,
};

/// Have the agent count allocations, and uses of collections.
const COUNT_ON: &str = "count=on";
const USAGE_ON: &str = "usage=on";

/// Which JVM.
#[derive(Debug, Args)]
struct JvmArgs {
    /// JVM to use: its process id, or a part of the name of its main class or jar
    #[arg(allow_negative_numbers = true)]
    pid: Target,
    /// How long to wait for a JVM that does not respond or makes no progress
    #[arg(long, value_name = "TIME", default_value = "10s")]
    timeout: Span,
}

/// Returns the agent's options and where heapdiff finds the library.
fn agent_help() -> String {
    let mut text = "Agent options:\n".to_owned();
    for (key, meaning) in KEYS {
        text += &format!("  {key:<11} {meaning}\n");
    }
    text + FILTER_HELP + AGENT_HELP
}

const FILTER_HELP: &str = r"
The options `include` and `exclude` are compared with two classes: the class of the object, and the
class whose code allocates the object (the innermost frame outside the JDK). For example,
include=^com\.pet\. also samples a byte[] that the JDK allocates in a call from com.pet.

";

const AGENT_HELP: &str = "\
heapdiff uses the first agent library (libheapdiff_agent.so) that it finds: --agent, the environment
variable HEAPDIFF_AGENT, a library next to the executable, or the one embedded in it. If the JVM
cannot read this library, heapdiff copies the library to the JVM's /tmp or another folder.

The agent stays loaded until the JVM ends. Run `heapdiff attach` again to change the options of the
agent, and `heapdiff detach` to stop the agent. JDK 21 and later print a warning about agents,
unless the JVM was started with -XX:+EnableDynamicAgentLoading.";

#[derive(Debug, Args)]
#[command(after_help = agent_help())]
pub(super) struct AttachArgs {
    #[command(flatten)]
    jvm: JvmArgs,
    /// Agent options, such as interval=64k,depth=32 (listed below)
    #[arg(value_name = "KEY=VALUE,...", value_parser = agent_options, default_value = "", hide_default_value = true)]
    options: String,
    /// Agent library to use instead of the embedded one
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

const STATUS_HELP: &str = "\
Shows whether the agent samples, counts or writes a trace. `heapdiff ps` lists all JVMs.";

#[derive(Debug, Args)]
#[command(after_help = STATUS_HELP)]
pub(super) struct StatusArgs {
    #[command(flatten)]
    jvm: JvmArgs,
}

impl StatusArgs {
    pub(super) fn action(self) -> Action {
        Action::Status(self.jvm.pid, self.jvm.timeout.0)
    }
}

const COUNT_HELP: &str = "\
The agent inserts counters into all loaded classes and into classes loaded later, and removes the
counters at the end: a few classes at a time, with pauses. The program is slower until the count
ends. The program is slowest when the agent changes the first class: HotSpot then discards all
compiled code, unless an agent was loaded at the start (-agentpath). --sampled-classes changes fewer
classes, but needs samples: run `heapdiff attach` a few minutes before.

Every executed allocation is counted, even if the JIT removes the allocation. Allocations by clone,
reflection, array copies and lambdas are counted at the line that calls them. Not counted:
allocations by JNI, by constructor references (Foo::new) and by the JVM itself. A method that is
running when the count begins is counted from its next call.
With --jdk some counts are lower bounds, because the JIT replaces some JDK methods with intrinsics.";

#[derive(Debug, Args)]
#[command(after_help = COUNT_HELP)]
pub(super) struct CountArgs {
    #[command(flatten)]
    jvm: JvmArgs,
    /// How long to count; Ctrl-C stops earlier
    #[arg(
        long = "for",
        value_name = "TIME",
        default_value = "30s",
        alias = "duration"
    )]
    time: Span,
    /// Count in JDK classes as well
    #[arg(long)]
    jdk: bool,
    /// Count only allocations in the code of matching classes
    #[arg(long, value_name = "RE", value_parser = pattern)]
    include: Option<Regex>,
    /// Do not count allocations in the code of matching classes
    #[arg(long, value_name = "RE", value_parser = pattern)]
    exclude: Option<Regex>,
    /// Count only in classes whose methods are in stacks that the agent sampled
    #[arg(long)]
    sampled_classes: bool,
    /// Agent library to use instead of the embedded one
    #[arg(long, value_name = "FILE")]
    agent: Option<PathBuf>,
    /// Maximum number of sites to list [default: 20; all in JSON]
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
            sampled: self.sampled_classes,
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
After this, the program runs without the cost of sampling, the trace ends, and dumps contain no
samples. The JVM keeps the library loaded; `heapdiff attach PID` starts sampling again, with other
options if given.";

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
    /// Include unreachable objects: skip the full GC before the dump
    #[arg(long)]
    all: bool,
    /// Same as without `--all`, for users of `jmap -dump:live`
    #[arg(long, hide = true, conflicts_with = "all")]
    live: bool,
    /// gzip level, 1 (fast) to 9 (small)
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
The JVM is paused while it writes, except with --fork. If the JVM cannot write to the folder of the
output file, it writes to its own /tmp (that of its container), and heapdiff moves the dump. The
file gets its name only when it is complete. With `-o -` the dump passes through $TMPDIR or the
JVM's /tmp, and no file remains.

--fork tries up to ten times, and each try pauses the JVM for some milliseconds: a child cannot
continue if a JIT compiler thread held a lock at the fork.

If you run dump as root, it also works for JVMs of other users and in containers.";

#[derive(Debug, Args)]
#[command(after_help = DUMP_HELP)]
pub(super) struct DumpJvmArgs {
    #[command(flatten)]
    jvm: JvmArgs,
    /// File or folder to write, or `-` for standard output; a name ending in .gz is compressed
    /// [default: java_pidPID.hprof, numbered if it exists]
    #[arg(short, long, value_name = "FILE", alias = "file")]
    output: Option<PathBuf>,
    #[command(flatten)]
    what: WhatArgs,
    /// Let a forked child of the JVM write all reachable objects, without a GC; the JVM is paused
    /// for milliseconds only
    #[arg(long, conflicts_with_all = ["all", "live"])]
    fork: bool,
    /// Agent library for --fork to use instead of the embedded one
    #[arg(long, value_name = "FILE", requires = "fork")]
    agent: Option<PathBuf>,
    /// Replace an existing file
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
    /// Agent options, such as interval=64k,depth=32 (listed below)
    #[arg(value_name = "KEY=VALUE,...", value_parser = agent_options, default_value = "", hide_default_value = true, conflicts_with = "no_attach")]
    options: String,
    /// Count puts, removals and reads of large JDK collections, to distinguish leaks from caches
    /// (agent option usage=on)
    #[arg(long, conflicts_with = "no_attach")]
    usage: bool,
    /// How long to wait between the dumps; Ctrl-C takes the second dump now
    #[arg(
        long = "for",
        value_name = "TIME",
        default_value = "5m",
        alias = "duration"
    )]
    wait: Span,
    /// Folder for before.hprof, after.hprof and the report [default: hunt-PID, a new folder]
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Take the second dump earlier, as soon as a site has grown by this much with statistical
    /// confidence
    #[arg(long, value_name = "SIZE", default_value = "1MiB")]
    enough: Size,
    /// Record no trace; the second dump is then taken after --for, never earlier
    #[arg(long, conflicts_with = "enough")]
    no_trace: bool,
    /// Agent library to use instead of the embedded one
    #[arg(long, value_name = "FILE", conflicts_with = "no_attach")]
    agent: Option<PathBuf>,
    /// Do not load the agent; the report then has no allocation sites, unless the agent is already
    /// loaded
    #[arg(long)]
    no_attach: bool,
    /// Also count every allocation by line of code (agent option count=on)
    #[arg(long, conflicts_with = "no_attach")]
    count: bool,
    /// Write no files: forked children of the JVM send both dumps to heapdiff, which analyzes them
    /// in memory
    #[arg(long, conflicts_with_all = ["output", "enough", "no_fork", "no_attach", "all", "live", "gz", "max_memory"])]
    no_files: bool,
    /// Fail if forked children of the JVM cannot write the dumps, instead of letting the JVM write
    /// them
    #[arg(long, conflicts_with_all = ["no_fork", "no_attach", "all", "live"])]
    fork: bool,
    /// Let the JVM write the dumps itself after a full GC; the JVM is paused meanwhile
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
