//! Attaching and dumping on Linux.

use std::io::{self, IsTerminal};
use std::path::Path;

use heapdiff_sites::attach;
use heapdiff_units::Size;

use super::agent::{self, Loaded};
use super::checked;
use super::deadline::Deadline;
use super::dump::{self, DumpPlace, Forker, How};
use super::library::{Library, copy_to};
use super::process::{Process, unusable_failure};
use super::protocol::Jvm;
use super::request::{Agent, AgentCopy, DumpRequest, JvmArgs};
use super::trace_notes::TraceNotes;
use crate::failure::{Exit, Failure, Result};
use crate::interrupt;
use crate::progress::Wanted;
use crate::{messages, write};

/// Prints a message about a completed action to standard output.
fn print_done(wanted: Wanted, text: &str) -> Result<Exit> {
    if !wanted.quiet {
        write::print(&format!("{text}\n"))?;
    }
    Ok(Exit::Done)
}

/// Prints the path of the agent library, after copying it if requested.
pub(crate) fn agent(copy: &AgentCopy) -> Result<Exit> {
    let mut library = Library::find(copy.library.as_deref())?.path(copy.c_library)?;
    if let Some(output) = &copy.output {
        library = copy_to(&library, output)?;
    }
    write::print(&format!("{}\n", library.display()))?;
    Ok(Exit::Done)
}

/// Loads the agent, or changes its options.
pub(crate) fn attach(jvm: &JvmArgs, agent: &Agent, wanted: Wanted) -> Result<Exit> {
    interrupt::handle();
    let options = checked::options(agent)?;
    let library = Library::find(agent.library.as_deref())?;
    let deadline = Deadline::new(jvm.timeout.0);
    let process = Process::find(&jvm.pid, &deadline)?;
    let jvm = Jvm::attach(&process, deadline)?;
    if let Some(options) = options {
        checked::trace(&jvm, &options)?;
    }
    let loaded = agent::load_or_change(&jvm, &library, attach::CHANGE, &agent.options, wanted)?;
    let what = match loaded {
        Loaded::Now => "the agent is loaded; dumps taken from now on contain allocation sites",
        Loaded::Changed => "the agent uses these options now and discarded earlier samples",
        _ => return Err(unusable_failure(format!("{process}: the agent is loaded already"))
            .with_hint("the loaded version of the agent cannot change its options; restart the JVM to change the options")),
    };
    print_done(wanted, &format!("{process}: {what}"))
}

/// Stops the agent.
pub(crate) fn detach(jvm: &JvmArgs, wanted: Wanted) -> Result<Exit> {
    interrupt::handle();
    let deadline = Deadline::new(jvm.timeout.0);
    let process = Process::find(&jvm.pid, &deadline)?;
    let jvm = Jvm::attach(&process, deadline)?;
    let what = match agent::detach(&jvm, wanted)? {
        None => return Err(unusable_failure(format!("{process}: no agent is loaded"))
            .with_hint("`heapdiff ps` shows which JVMs have the agent loaded")),
        Some(Loaded::Detached) => "the agent stopped sampling and discarded its samples",
        Some(Loaded::DetachedBefore) => "the agent was not sampling, so there was nothing to stop",
        Some(_) => return Err(unusable_failure(format!("{process}: the agent did not stop"))
            .with_hint("the loaded version of the agent cannot stop before the JVM ends; restart the JVM to stop the agent")),
    };
    print_done(wanted, &format!("{process}: {what}"))
}

/// The file name that means standard output.
const STANDARD_OUTPUT: &str = "-";

/// Takes a dump.
pub(crate) fn dump(jvm: &JvmArgs, request: &DumpRequest, wanted: Wanted) -> Result<Exit> {
    interrupt::handle();
    let forker = if request.fork {
        Some(Library::find(request.library.as_deref())?)
    } else {
        None
    };
    let forker = forker.as_ref().map(|library| Forker {
        library,
        only: true,
    });
    let (output, what) = (request.output.as_deref(), request.what);
    if output == Some(Path::new(STANDARD_OUTPUT)) {
        return stream(jvm, How { what, forker }, wanted);
    }
    // Check the file name before a request is sent to the process. So a wrong name is reported before anything else.
    let given = match output {
        Some(path) if !path.is_dir() => Some(DumpPlace::new(path, request.force)?),
        _ => None,
    };
    let what = match output {
        Some(path) if given.is_some() => what.with_file_compression(path),
        _ => what,
    };
    let deadline = Deadline::new(jvm.timeout.0);
    let process = Process::find(&jvm.pid, &deadline)?;
    let place = match given {
        Some(place) => place,
        None => {
            let folder = output.unwrap_or(Path::new(""));
            DumpPlace::new(
                &dump::default_name(folder, process.pid, what.gzip.is_some()),
                request.force,
            )?
        }
    };
    let jvm = Jvm::attach(&process, deadline)?;
    let how = How { what, forker };
    let taken = dump::take(&jvm, &place, how, wanted)?;
    TraceNotes::new(&jvm).dump(&taken);
    let file = taken.file.display().to_string();
    print_done(
        wanted,
        &dump_written_message(&process, &file, taken.bytes, how),
    )
}

/// Writes a dump to standard output. Messages go to standard error.
fn stream(jvm: &JvmArgs, how: How<'_>, wanted: Wanted) -> Result<Exit> {
    let out = io::stdout();
    if out.is_terminal() {
        let message = "cannot write a dump to a terminal, because a dump is not text";
        return Err(Failure::usage(message)
            .with_hint("write the dump to a file with -o FILE, or pipe it into a program: `heapdiff dump PID -o - | ...`"));
    }
    let deadline = Deadline::new(jvm.timeout.0);
    let process = Process::find(&jvm.pid, &deadline)?;
    let jvm = Jvm::attach(&process, deadline)?;
    let bytes = dump::stream(&jvm, how, wanted, out.lock())?;
    if !wanted.quiet {
        messages::print_done(&dump_written_message(
            &process,
            "standard output",
            bytes,
            how,
        ));
    }
    Ok(Exit::Done)
}

/// Returns the message that a dump was written, with its size and process.
fn dump_written_message(process: &Process, file: &str, bytes: u64, how: How<'_>) -> String {
    let objects = match (how.forker, how.what.all) {
        (Some(_), _) => "reachable objects",
        (None, true) => "all objects",
        (None, false) => "live objects",
    };
    format!("{file}: {}, {objects} of {process}", Size(bytes))
}
