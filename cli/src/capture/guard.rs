//! `heapdiff guard`: lets the agent take a dump before the JVM dies.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::agent;
use super::checked;
use super::deadline::Deadline;
use super::guard_files::GuardFiles;
use super::library::Library;
use super::process::{Process, unusable_failure, uptime};
use super::protocol::Jvm;
use super::request::{Agent, GuardRequest};
use super::watch::shared_folder;
use crate::failure::{Failure, Result, system_message};
use crate::progress::Wanted;

/// A JVM with a guard.
#[derive(Debug)]
pub(crate) struct Guarded {
    process: Process,
}

impl Guarded {
    /// Returns a description of the JVM for messages.
    pub(crate) fn name(&self) -> String {
        self.process.to_string()
    }

    /// Returns the guard's files in a folder.
    pub(crate) fn files(&self, folder: &Path) -> GuardFiles {
        let began = uptime(self.process.pid).and_then(|up| SystemTime::now().checked_sub(up));
        // Subtract one second, because the machine's clock may have been adjusted since the JVM began.
        let began = began.and_then(|began| began.checked_sub(Duration::from_secs(1)));
        GuardFiles::new(folder, self.process.inner_pid, began.unwrap_or(UNIX_EPOCH))
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.process.check_alive().is_err()
    }
}

/// Starts the guard in the agent, unless the JVM was started with a guard. The agent's other options stay as they are.
pub(crate) fn guard(request: &GuardRequest, wanted: Wanted) -> Result<Guarded> {
    let Some(given) = &request.agent else {
        let deadline = Deadline::new(request.jvm.timeout.0);
        let process = Process::find(&request.jvm.pid, &deadline)?;
        return Ok(Guarded { process });
    };
    let folder = &request.folder;
    let unusable = |e| Failure::usage(format!("{}: {}", folder.display(), system_message(&e)));
    let absolute = std::path::absolute(folder).map_err(unusable)?;
    let with_folder = |folder: &Path| Agent {
        library: given.library.clone(),
        options: format!("{},guard-to={}", given.options, folder.display()),
    };
    checked::options(&with_folder(&absolute))?;
    let deadline = Deadline::new(request.jvm.timeout.0);
    let process = Process::find(&request.jvm.pid, &deadline)?;
    let library = Library::find(given.library.as_deref())?;
    fs::create_dir_all(folder).map_err(unusable)?;
    let jvm = Jvm::attach(&process, deadline)?;
    let inside = shared_folder(&jvm, folder)
        .map_err(|why| unusable_failure(format!("{process}: {} {why}", folder.display())))?;
    let state = agent::state(&jvm)?;
    let options = with_folder(&inside).options;
    super::hunt::load(&jvm, &library, state, &options, wanted)?;
    drop(jvm);
    Ok(Guarded { process })
}
