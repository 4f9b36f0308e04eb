//! Attaching and dumping on Linux.

use std::path::Path;

use heapdiff_units::Size;

use super::agent::{self, Loaded};
use super::dump::{self, DumpPlace};
use super::library::{copy_to, library};
use super::process::{Process, refused};
use super::protocol::Jvm;
use super::trace_notes::TraceNotes;
use crate::failure::{Exit, Result};
use crate::interrupt;
use crate::job::{Agent, AgentCopy, Capture, Request, What};
use crate::write;

/// Runs the request and says what was done.
pub(crate) fn run(capture: &Capture) -> Result<Exit> {
    interrupt::handle();
    let said = match &capture.request {
        Request::Attach(agent) => attach(capture, agent)?,
        Request::Dump {
            output,
            what,
            replace,
        } => dump(capture, output.as_deref(), *what, *replace)?,
    };
    if !capture.wanted.quiet {
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

fn attach(capture: &Capture, agent: &Agent) -> Result<String> {
    let library = library(agent.library.as_deref())?;
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
    // Mistakes in the file's name are reported before anything is asked of the process.
    let given = match output {
        Some(path) if !path.is_dir() => Some(DumpPlace::new(path, replace)?),
        _ => None,
    };
    let process = Process::find(&capture.target)?;
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
    let jvm = Jvm::attach(&process, capture.timeout)?;
    let taken = dump::take(&jvm, &place, what, capture.wanted)?;
    TraceNotes::new(&jvm).dump(&taken);
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
