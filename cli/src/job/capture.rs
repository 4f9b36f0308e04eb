//! What is asked of running JVMs, as the command line gives it. The same on every system.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use heapdiff_units::Span;
use regex::Regex;

use crate::progress::Wanted;

/// The JVM copies each argument of a command to a buffer of this size.
pub(crate) const LONGEST_ARGUMENT: usize = 1024;

/// A process as a user names it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Target {
    Pid(u32),
    /// A part of the main class's name, or of the jar's.
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

/// A request to a JVM that ends in no report.
#[derive(Debug)]
pub(crate) struct Capture {
    pub(crate) target: Target,
    /// How long the JVM may take to start listening.
    pub(crate) timeout: Duration,
    pub(crate) wanted: Wanted,
    pub(crate) request: Request,
}

#[derive(Debug)]
pub(crate) enum Request {
    Attach(Agent),
    Detach,
    Dump {
        /// A file, or a folder for one with the default name.
        output: Option<PathBuf>,
        what: What,
        replace: bool,
        fork: Option<Fork>,
    },
}

/// Which agent to load, and what to tell it.
#[derive(Debug)]
pub(crate) struct Agent {
    pub(crate) library: Option<PathBuf>,
    pub(crate) options: String,
}

/// A dump that a forked child writes.
#[derive(Debug)]
pub(crate) struct Fork {
    /// The agent's library.
    pub(crate) library: Option<PathBuf>,
}

/// Allocations of a running JVM to count.
#[derive(Debug)]
#[cfg_attr(
    not(target_os = "linux"),
    allow(dead_code, reason = "only Linux can attach, so only Linux can count")
)]
pub(crate) struct Count {
    pub(crate) target: Target,
    pub(crate) timeout: Duration,
    /// How long.
    pub(crate) time: Span,
    /// Whether in classes of the JDK's, too.
    pub(crate) jdk: bool,
    /// Only in classes that this finds.
    pub(crate) include: Option<Regex>,
    /// In no classes that this finds.
    pub(crate) exclude: Option<Regex>,
    /// Only in classes of stacks that the agent sampled.
    pub(crate) sampled: bool,
    /// The agent's library.
    pub(crate) library: Option<PathBuf>,
}

/// Who writes a hunt's dumps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Forking {
    /// A forked child where that is possible, else the JVM.
    WherePossible,
    Always,
    Never,
}

/// The agent's library as a file, for a JVM that is started with it.
#[derive(Debug)]
pub(crate) struct AgentCopy {
    pub(crate) library: Option<PathBuf>,
    /// A file, or a folder for one with the usual name; without it the library is where it is.
    pub(crate) output: Option<PathBuf>,
}

/// What a dump takes in, and how.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct What {
    /// Whether garbage is in it, too; without it the JVM collects first.
    pub(crate) all: bool,
    /// The level of compression, if it is to be compressed.
    pub(crate) gzip: Option<u8>,
}

impl What {
    /// The level for files whose names alone say that they are compressed: as large heaps are dumped, fast.
    const FAST: u8 = 1;

    /// Compressed, too, if the file's name says so.
    pub(crate) fn packed_as(self, file: &Path) -> Self {
        let is_packed = file
            .extension()
            .is_some_and(|extension| extension.eq_ignore_ascii_case("gz"));
        Self {
            gzip: self.gzip.or_else(|| is_packed.then_some(Self::FAST)),
            ..self
        }
    }
}

/// What to hunt in.
#[derive(Debug)]
pub(crate) struct Hunt {
    pub(crate) target: Target,
    pub(crate) timeout: Duration,
    /// The agent to load. Without one the dumps name allocation sites only if an agent is loaded already.
    pub(crate) agent: Option<Agent>,
    pub(crate) what: What,
    pub(crate) fork: Forking,
    /// The time between the dumps.
    pub(crate) wait: Span,
    pub(crate) folder: Option<PathBuf>,
    /// Whether there are to be files at all; without them the dumps are in memory.
    pub(crate) files: bool,
    /// Growth, in bytes, that ends the wait; without one the agent keeps no trace.
    pub(crate) enough: Option<u64>,
}

/// The files that a hunt made.
#[derive(Debug)]
pub(crate) struct Hunted {
    pub(crate) folder: PathBuf,
    /// The first dump and the second.
    pub(crate) dumps: [PathBuf; 2],
    /// The trace that the agent recorded in between.
    pub(crate) trace: Option<PathBuf>,
}

/// Checks the agent's options as far as the protocol goes; the agent checks the rest.
pub(crate) fn agent_options(text: &str) -> Result<String, String> {
    if text.len() >= LONGEST_ARGUMENT {
        return Err(format!(
            "the options are longer than {} bytes",
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
    fn a_name_says_that_a_file_is_compressed() {
        let level = |gzip, name: &str| What { all: true, gzip }.packed_as(Path::new(name)).gzip;
        assert_eq!(level(None, "a.hprof.gz"), Some(1));
        assert_eq!(level(None, "a.HPROF.GZ"), Some(1));
        assert_eq!(level(Some(9), "a.hprof.gz"), Some(9));
        assert_eq!(level(Some(9), "a.hprof"), Some(9));
        assert_eq!(level(None, "a.hprof"), None);
        assert_eq!(level(None, "gz"), None);
    }

    #[test]
    fn options_fit_the_protocol() {
        assert_eq!(
            agent_options("interval=64k,depth=8").unwrap(),
            "interval=64k,depth=8"
        );
        assert!(agent_options("a\nb").is_err());
        assert!(agent_options(&"x".repeat(1024)).is_err());
    }
}
