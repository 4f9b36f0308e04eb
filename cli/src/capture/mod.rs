//! Talking to running JVMs: loading the agent and taking dumps, without any tool of a JDK.
//!
//! A process is found and checked ([`process`]), its listener woken and spoken to ([`protocol`]), as
//! its user ([`user`]) and in its view of the file system ([`folder`]).
//!
//! No process gets SIGQUIT that is not certainly a JVM which handles it. No file is written to or
//! read through a path that the other side could bend: their folders are held open, names in them
//! are created anew or not at all, and links are not followed.

mod agent;
mod dump;
mod folder;
mod hunt;
mod process;
mod protocol;
mod user;

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(crate) use agent::options as agent_options;
pub(crate) use dump::What;
pub(crate) use hunt::{Hunt, hunt};
pub(crate) use process::Target;

use crate::failure::{Exit, Failure, Result, plain};
use crate::interrupt;
use crate::progress::Wanted;
use crate::size::Size;
use agent::Loaded;
use dump::Place;
use process::{Process, refused};
use protocol::Jvm;

/// Something to be done to a JVM that ends in no report.
#[derive(Debug)]
pub(crate) struct Capture {
    pub(crate) target: Target,
    /// For the JVM to start listening.
    pub(crate) timeout: Duration,
    pub(crate) wanted: Wanted,
    pub(crate) action: Action,
}

#[derive(Debug)]
pub(crate) enum Action {
    Attach(Agent),
    Dump {
        /// A file, or a folder for one with the default name.
        output: Option<PathBuf>,
        what: What,
        replace: bool,
    },
}

/// Which agent to load, and what to tell it.
#[derive(Debug)]
pub(crate) struct Agent {
    pub(crate) library: Option<PathBuf>,
    pub(crate) options: String,
}

/// Does it and says so.
pub(crate) fn run(capture: &Capture) -> Result<Exit> {
    interrupt::handle();
    let said = match &capture.action {
        Action::Attach(agent) => attach(capture, agent)?,
        Action::Dump {
            output,
            what,
            replace,
        } => dump(capture, output.as_deref(), *what, *replace)?,
    };
    if !capture.wanted.quiet {
        match writeln!(std::io::stdout().lock(), "{said}") {
            Err(e) if e.kind() != ErrorKind::BrokenPipe => {
                let message = format!("cannot write standard output: {}", plain(&e));
                return Err(Failure::usage(message));
            }
            _ => {}
        }
    }
    Ok(Exit::Done)
}

fn attach(capture: &Capture, agent: &Agent) -> Result<String> {
    let library = agent::library(agent.library.as_deref())?;
    let process = Process::find(&capture.target)?;
    let jvm = Jvm::attach(&process, capture.timeout)?;
    match agent::load(&jvm, &library, &agent.options)? {
        Loaded::Now => Ok(format!(
            "{process}: the agent is loaded; dumps from now on name allocation sites"
        )),
        Loaded::Before => Err(refused(format!("{process}: the agent is loaded already"))
            .with_hint("its options stay as they were given first")),
    }
}

fn dump(capture: &Capture, output: Option<&Path>, what: What, replace: bool) -> Result<String> {
    // What is wrong with the file is told before anything is asked of the process.
    let given = match output {
        Some(path) if !path.is_dir() => Some(Place::new(path, replace)?),
        _ => None,
    };
    let process = Process::find(&capture.target)?;
    let place = match given {
        Some(place) => place,
        None => {
            let folder = output.unwrap_or(Path::new(""));
            Place::new(
                &dump::default_name(folder, process.pid, what.gzip.is_some()),
                replace,
            )?
        }
    };
    let jvm = Jvm::attach(&process, capture.timeout)?;
    let taken = dump::take(&jvm, &place, what, capture.wanted)?;
    let not_gzipped = match what.gzip.is_some() && !taken.gzipped {
        true => " (not compressed: this JVM cannot)",
        false => "",
    };
    Ok(format!(
        "{}: {}, {} of {process}{not_gzipped}",
        taken.file.display(),
        Size(taken.bytes),
        if what.all {
            "all objects"
        } else {
            "live objects"
        },
    ))
}
