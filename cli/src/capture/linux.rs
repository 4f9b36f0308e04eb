//! Attaching and dumping on Linux.

use std::io::{self, IsTerminal};
use std::path::Path;

use heapdiff_sites::attach;
use heapdiff_units::Size;

use super::agent::{self, Loaded};
use super::checked;
use super::deadline::Deadline;
use super::dump::{self, DumpPlace, Forker, How};
use super::library::{copy_to, library};
use super::process::{Process, refused};
use super::protocol::Jvm;
use super::trace_notes::TraceNotes;
use crate::failure::{Exit, Failure, Result};
use crate::interrupt;
use crate::job::{Agent, AgentCopy, Capture, Fork, Request, What};
use crate::{messages, write};

/// Runs the request and says what was done.
pub(crate) fn run(capture: &Capture) -> Result<Exit> {
    interrupt::handle();
    let said = match &capture.request {
        Request::Attach(agent) => load(capture, agent)?,
        Request::Detach => detach(capture)?,
        Request::Dump {
            output,
            what,
            replace,
            fork,
        } => dump(capture, output.as_deref(), (*what, fork.as_ref()), *replace)?,
    };
    if !capture.wanted.quiet && !said.is_empty() {
        write::print(&format!("{said}\n"))?;
    }
    Ok(Exit::Done)
}

/// Says where the agent's library is, after it was copied if that is wanted.
pub(crate) fn agent(copy: &AgentCopy) -> Result<Exit> {
    let mut library = library(copy.library.as_deref())?;
    if let Some(output) = &copy.output {
        library = copy_to(&library, output)?;
    }
    write::print(&format!("{}\n", library.display()))?;
    Ok(Exit::Done)
}

fn load(capture: &Capture, agent: &Agent) -> Result<String> {
    let options = checked::options(agent)?;
    let library = library(agent.library.as_deref())?;
    let deadline = Deadline::new(capture.timeout);
    let process = Process::find(&capture.target, &deadline)?;
    let jvm = Jvm::attach(&process, deadline)?;
    if let Some(options) = options {
        checked::trace(&jvm, &options)?;
    }
    match agent::load_or_change(
        &jvm,
        &library,
        (attach::CHANGE, &agent.options),
        capture.wanted,
    )? {
        Loaded::Now => Ok(format!(
            "{process}: the agent is loaded; dumps taken from now on contain allocation sites"
        )),
        Loaded::Changed => Ok(format!(
            "{process}: the agent uses these options now and discarded earlier samples"
        )),
        _ => Err(refused(format!("{process}: the agent is loaded already"))
            .with_hint("the loaded version of the agent cannot change its options; restart the JVM to change the options")),
    }
}

fn detach(capture: &Capture) -> Result<String> {
    let deadline = Deadline::new(capture.timeout);
    let process = Process::find(&capture.target, &deadline)?;
    let jvm = Jvm::attach(&process, deadline)?;
    match agent::detach(&jvm, capture.wanted)? {
        None => Err(refused(format!("{process}: no agent is loaded"))
            .with_hint("`heapdiff ps` shows which JVMs have the agent loaded")),
        Some(Loaded::Detached) => Ok(format!(
            "{process}: the agent stopped sampling and discarded its samples"
        )),
        Some(Loaded::DetachedBefore) => Ok(format!("{process}: the agent was not sampling, so there was nothing to stop")),
        Some(_) => Err(refused(format!("{process}: the agent did not stop"))
            .with_hint("the loaded version of the agent cannot stop before the JVM ends; restart the JVM to stop the agent")),
    }
}

/// How a name is written that means standard output.
const STANDARD_OUTPUT: &str = "-";

fn dump(
    capture: &Capture,
    output: Option<&Path>,
    (what, fork): (What, Option<&Fork>),
    replace: bool,
) -> Result<String> {
    let forker = fork
        .map(|fork| library(fork.library.as_deref()))
        .transpose()?;
    let forker = forker.as_deref().map(|library| Forker {
        library,
        only: true,
    });
    if output == Some(Path::new(STANDARD_OUTPUT)) {
        return stream(capture, How { what, forker });
    }
    // Mistakes in the file's name are reported before anything is asked of the process.
    let given = match output {
        Some(path) if !path.is_dir() => Some(DumpPlace::new(path, replace)?),
        _ => None,
    };
    let what = match output {
        Some(path) if given.is_some() => what.packed_as(path),
        _ => what,
    };
    let deadline = Deadline::new(capture.timeout);
    let process = Process::find(&capture.target, &deadline)?;
    let place = match given {
        Some(place) => place,
        None => {
            let folder = output.unwrap_or(Path::new(""));
            DumpPlace::new(
                &dump::default_name(folder, process.pid, what.gzip.is_some()),
                replace,
            )?
        }
    };
    let jvm = Jvm::attach(&process, deadline)?;
    let how = How { what, forker };
    let taken = dump::take(&jvm, &place, how, capture.wanted)?;
    TraceNotes::new(&jvm).dump(&taken);
    let file = taken.file.display().to_string();
    Ok(taken_of(&process, &file, taken.bytes, how))
}

/// A dump to standard output. What is said of it goes to standard error.
fn stream(capture: &Capture, how: How<'_>) -> Result<String> {
    let out = io::stdout();
    if out.is_terminal() {
        let message = "cannot write a dump to a terminal, because a dump is not text";
        return Err(Failure::usage(message)
            .with_hint("write the dump to a file with -o FILE, or pipe it into a program: `heapdiff dump PID -o - | ...`"));
    }
    let deadline = Deadline::new(capture.timeout);
    let process = Process::find(&capture.target, &deadline)?;
    let jvm = Jvm::attach(&process, deadline)?;
    let bytes = dump::stream(&jvm, how, capture.wanted, out.lock())?;
    if !capture.wanted.quiet {
        messages::said(&taken_of(&process, "standard output", bytes, how));
    }
    Ok(String::new())
}

/// What was written, and of what.
fn taken_of(process: &Process, file: &str, bytes: u64, how: How<'_>) -> String {
    let objects = match (how.forker, how.what.all) {
        (Some(_), _) => "reachable objects",
        (None, true) => "all objects",
        (None, false) => "live objects",
    };
    format!("{file}: {}, {objects} of {process}", Size(bytes))
}
