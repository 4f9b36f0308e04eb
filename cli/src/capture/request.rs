//! Arguments of the commands that attach to a running JVM. They are the same on every system.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::Args;
use heapdiff_diff::pattern;
use heapdiff_units::Span;
use regex::Regex;

use super::c_library::CLibrary;

/// Size of the buffer to which the JVM copies each argument of a command, in bytes.
pub(crate) const LONGEST_ARGUMENT: usize = 1024;

/// The user's choice of a process: its id, or a part of a name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Target {
    Pid(u32),
    /// A part of the name of the main class or jar.
    Name(String),
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pid(pid) => pid.fmt(f),
            Self::Name(name) => name.fmt(f),
        }
    }
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
        if digits.is_empty() {
            return Err("no process id or name was given".to_owned());
        }
        if !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Ok(Self::Name(text.to_owned()));
        }
        match text.parse() {
            Ok(pid @ 1..=0x7fff_ffff) => Ok(Self::Pid(pid)),
            _ => Err("a process id is a positive number; `heapdiff ps` lists the JVMs".to_owned()),
        }
    }
}

/// Options that select the JVM.
#[derive(Debug, Args)]
pub(crate) struct JvmArgs {
    /// JVM to use: its process id, or a part of the name of its main class or jar
    #[arg(allow_negative_numbers = true)]
    pub(crate) pid: Target,
    /// How long to wait for a JVM that does not respond or makes no progress
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub(crate) timeout: Span,
}

/// The agent library to load, and the options to load it with.
#[derive(Debug, Args)]
pub(crate) struct Agent {
    /// Agent options, such as interval=64k,depth=32 (listed below)
    #[arg(value_name = "KEY=VALUE,...", value_parser = agent_options, default_value = "", hide_default_value = true)]
    pub(crate) options: String,
    /// Agent library to use instead of the embedded one
    #[arg(long = "agent", value_name = "FILE")]
    pub(crate) library: Option<PathBuf>,
}

/// The JVM that `heapdiff guard` guards, and the options of the guard.
#[derive(Debug)]
pub(crate) struct GuardRequest {
    pub(crate) jvm: JvmArgs,
    /// The agent to load, with all options of the guard except its folder; `None` if the JVM was started with a guard.
    pub(crate) agent: Option<Agent>,
    /// The folder of the guard's files.
    pub(crate) folder: PathBuf,
}

/// Options for a copy of the agent library, to start a JVM with the agent.
#[derive(Debug, Args)]
pub(crate) struct AgentCopy {
    /// Copy the library to this file or folder, for example into a container image
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// C library of the JVM that will load the agent [default: the C library of this machine]
    #[arg(long = "libc", value_name = "NAME")]
    pub(crate) c_library: Option<CLibrary>,
    /// Agent library to use instead of the embedded one
    #[arg(long = "agent", value_name = "FILE")]
    pub(crate) library: Option<PathBuf>,
}

/// Options for the objects of a dump and its compression.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct What {
    /// Include unreachable objects: skip the full GC before the dump
    #[arg(long)]
    pub(crate) all: bool,
    /// Same as without `--all`, for users of `jmap -dump:live`
    #[arg(long, hide = true, conflicts_with = "all")]
    pub(crate) live: bool,
    /// gzip level, 1 (fast) to 9 (small)
    #[arg(long = "gz", value_name = "LEVEL", value_parser = clap::value_parser!(u8).range(1..=9))]
    pub(crate) gzip: Option<u8>,
}

impl What {
    /// The gzip level if compression is requested only by the file name. Level 1 is fast, which matters for large
    /// heaps.
    const FAST: u8 = 1;

    /// Returns these settings with compression enabled if the file name ends in `.gz`.
    pub(crate) fn with_file_compression(self, file: &Path) -> Self {
        let is_packed = file
            .extension()
            .is_some_and(|extension| extension.eq_ignore_ascii_case("gz"));
        Self {
            gzip: self.gzip.or_else(|| is_packed.then_some(Self::FAST)),
            ..self
        }
    }
}

/// Options for a dump and its file.
#[derive(Debug, Args)]
pub(crate) struct DumpRequest {
    /// File or folder to write, or `-` for standard output; a name ending in .gz is compressed
    /// [default: java_pidPID.hprof, numbered if it exists]
    #[arg(short, long, value_name = "FILE", alias = "file")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) what: What,
    /// Let a forked child of the JVM write all reachable objects, without a GC; the JVM is paused
    /// for milliseconds only
    #[arg(long, conflicts_with_all = ["all", "live"])]
    pub(crate) fork: bool,
    /// Agent library for --fork to use instead of the embedded one
    #[arg(long = "agent", value_name = "FILE", requires = "fork")]
    pub(crate) library: Option<PathBuf>,
    /// Replace an existing file
    #[arg(long)]
    pub(crate) force: bool,
}

/// Options that select the allocations to count.
#[derive(Debug, Args)]
#[cfg_attr(
    not(target_os = "linux"),
    allow(
        dead_code,
        reason = "heapdiff can attach only on Linux, so it can count only on Linux"
    )
)]
pub(crate) struct CountRequest {
    /// How long to count; Ctrl-C stops earlier
    #[arg(
        long = "for",
        value_name = "TIME",
        default_value = "30s",
        alias = "duration"
    )]
    pub(crate) time: Span,
    /// Also count allocations in the code of JDK classes
    #[arg(long)]
    pub(crate) jdk: bool,
    /// Count only allocations in the code of matching classes
    #[arg(long, value_name = "RE", value_parser = pattern)]
    pub(crate) include: Option<Regex>,
    /// Do not count allocations in the code of matching classes
    #[arg(long, value_name = "RE", value_parser = pattern)]
    pub(crate) exclude: Option<Regex>,
    /// Count only in classes whose methods are in stacks that the agent sampled
    #[arg(long = "sampled-classes")]
    pub(crate) sampled: bool,
    /// Agent library to use instead of the embedded one
    #[arg(long = "agent", value_name = "FILE")]
    pub(crate) library: Option<PathBuf>,
}

/// The process that writes the dumps of a hunt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Forking {
    /// A forked child writes the dump if possible, else the JVM itself.
    WherePossible,
    Always,
    Never,
}

/// The arguments of a hunt.
#[derive(Debug)]
pub(crate) struct Hunt {
    pub(crate) jvm: JvmArgs,
    /// The agent to load. If `None`, no agent is loaded. Then the dumps contain allocation sites only if the JVM has an
    /// agent already.
    pub(crate) agent: Option<Agent>,
    /// True if the JVM records with Flight Recorder during the hunt.
    pub(crate) record: bool,
    /// True if a recording cannot replace the agent. This is the case for `--fork` and `--guard`, and if the report's
    /// format shows only stacks from the agent.
    pub(crate) needs_agent: bool,
    pub(crate) what: What,
    pub(crate) fork: Forking,
    /// The time between the dumps.
    pub(crate) wait: Span,
    pub(crate) folder: Option<PathBuf>,
    /// True if the hunt writes files; false if it keeps the dumps in memory.
    pub(crate) files: bool,
    /// True if the agent takes a dump before the JVM dies.
    pub(crate) guard: bool,
    /// If an allocation site has grown by at least this number of bytes, the wait for the second dump ends early. If
    /// `None`, growth does not end the wait, and the agent writes no trace.
    pub(crate) enough: Option<u64>,
}

/// The files that a `heapdiff hunt` wrote.
#[derive(Debug)]
pub(crate) struct Hunted {
    pub(crate) folder: PathBuf,
    /// The first and the second dump.
    pub(crate) dumps: [PathBuf; 2],
    /// The trace that the agent wrote between the dumps.
    pub(crate) trace: Option<PathBuf>,
    /// The recording that the JVM saved after the second dump.
    pub(crate) recording: Option<PathBuf>,
}

/// Checks that the agent's options are not too long for the attach protocol, and contain no control characters. The
/// agent itself checks everything else.
pub(crate) fn agent_options(text: &str) -> Result<String, String> {
    if text.len() >= LONGEST_ARGUMENT {
        return Err(format!(
            "the agent options are longer than {} bytes",
            LONGEST_ARGUMENT - 1
        ));
    }
    match text.chars().find(|c| c.is_control()) {
        Some(c) => Err(format!("{c:?} cannot be part of an option")),
        None => Ok(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_ids_or_names() {
        assert_eq!("4711".parse(), Ok(Target::Pid(4711)));
        assert_eq!("Main".parse(), Ok(Target::Name("Main".to_owned())));
        assert_eq!(
            "7zip.Main".parse(),
            Ok(Target::Name("7zip.Main".to_owned()))
        );
        for bad in [
            "",
            "-",
            "0",
            "-1",
            "4294967296",
            "2147483648",
            "99999999999999999999",
        ] {
            assert!(bad.parse::<Target>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_gz_extension_selects_compression() {
        let level = |gzip, name: &str| {
            let what = What {
                gzip,
                ..What::default()
            };
            what.with_file_compression(Path::new(name)).gzip
        };
        assert_eq!(level(None, "a.hprof.gz"), Some(1));
        assert_eq!(level(None, "a.HPROF.GZ"), Some(1));
        assert_eq!(level(Some(9), "a.hprof.gz"), Some(9));
        assert_eq!(level(Some(9), "a.hprof"), Some(9));
        assert_eq!(level(None, "a.hprof"), None);
        assert_eq!(level(None, "gz"), None);
    }

    #[test]
    fn options_that_break_the_protocol_are_refused() {
        assert_eq!(
            agent_options("interval=64k,depth=8").unwrap(),
            "interval=64k,depth=8"
        );
        assert!(agent_options("a\nb").is_err());
        assert!(agent_options(&"x".repeat(1024)).is_err());
    }
}
