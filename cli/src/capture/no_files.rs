//! `heapdiff hunt --no-files`: children of the JVM send both dumps, which are analyzed in memory one after the other.

use std::fs;
use std::path::Path;

use super::agent;
use super::checked;
use super::deadline::Deadline;
use super::held::Held;
use super::hunt::{load, note_unused, wait};
use super::library::Library;
use super::process::Process;
use super::protocol::Jvm;
use super::request::Hunt;
use crate::failure::{Failure, Result};
use crate::progress::Wanted;

/// Names of the two dumps in the report.
const NAMES: [&str; 2] = ["before (memory)", "after (memory)"];

/// Takes both dumps. Calls `first` with the path and name of the first dump. Then calls `second` with the path and name
/// of the second dump, and with the result of `first`. At that time the first dump no longer exists.
pub(crate) fn hunt_without_files<F, T>(
    hunt: &Hunt,
    wanted: Wanted,
    first: impl FnOnce(&Path, &Path) -> Result<F>,
    second: impl FnOnce(F, &Path, &Path) -> Result<T>,
) -> Result<T> {
    let Some(agent) = &hunt.agent else {
        return Err(Failure::usage(
            "--no-files does not work with --no-attach, because the agent must fork the JVM",
        ));
    };
    let options = checked::options(agent)?;
    if options.is_some_and(|options| options.trace.is_some()) {
        return Err(
            Failure::usage("--no-files does not work with trace=, which writes a file")
                .with_hint("leave out trace=, or leave out --no-files"),
        );
    }
    let library = Library::without_files(agent.library.as_deref())?;
    let deadline = Deadline::new(hunt.jvm.timeout.0);
    let process = Process::find(&hunt.jvm.pid, &deadline)?;
    let jvm = Jvm::attach(&process, deadline)?;
    let state = agent::state(&jvm)?;
    let loaded = load(&jvm, &library, state, &agent.options, wanted)?;
    note_unused(&jvm, loaded, &agent.options, wanted);
    // If memory runs out although it was checked, the kernel should kill heapdiff before it kills a JVM.
    let _ = fs::write("/proc/self/oom_score_adj", "1000");
    let [before, after] = NAMES.map(Path::new);
    jvm.restart();
    let held = Held::take(&jvm, &library, wanted, before)?;
    let made = first(&held.path(), before)?;
    drop(held);
    wait(&jvm, hunt.wait, before, None, None, wanted)?;
    jvm.restart();
    let held = Held::take(&jvm, &library, wanted, after)?;
    second(made, &held.path(), after)
}
