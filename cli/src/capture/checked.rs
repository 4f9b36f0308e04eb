//! Checks of the agent's options before the agent is loaded: invalid options, and a trace file that the JVM cannot
//! write.

use std::io;
use std::path::Path;

use heapdiff_agent::options::Options;
use rustix::fs::{Access, AtFlags, CWD, accessat};

use super::process::unusable_failure;
use super::protocol::Jvm;
use super::request::Agent;
use crate::failure::{Failure, Result, system_message};

/// Parses the options. Returns `None` if they are invalid but the user named a library. That library may have another
/// version, and its version may accept the options.
pub(super) fn options(agent: &Agent) -> Result<Option<Options>> {
    let options = match Options::parse(&agent.options) {
        Ok(options) => options,
        Err(_) if agent.library.is_some() => return Ok(None),
        Err(error) => return Err(Failure::usage(format!("{error}"))),
    };
    if let Some(guard) = &options.guard
        && !guard.folder.is_absolute()
    {
        let message = format!(
            "guard-to={}: this path is relative, but the JVM that writes the dumps has another working directory",
            guard.folder.display()
        );
        return Err(
            Failure::usage(message).with_hint("give an absolute path, such as guard-to=/dumps")
        );
    }
    if let Some(trace) = &options.trace {
        let path = trace.path_in(0);
        if !path.is_absolute() {
            let message = format!(
                "trace={}: this path is relative, but the JVM that writes the trace has another working directory",
                path.display()
            );
            return Err(Failure::usage(message)
                .with_hint("give an absolute path, such as trace=/tmp/app.db"));
        }
    }
    Ok(Some(options))
}

/// Checks that the JVM can write the trace file that the options name.
pub(super) fn trace(jvm: &Jvm<'_>, options: &Options) -> Result<()> {
    let Some(trace) = &options.trace else {
        return Ok(());
    };
    let process = jvm.process;
    let path = trace.path_in(process.inner_pid);
    writable(jvm, &path).map_err(|e| {
        let (path, user) = (path.display(), process.user.name());
        unusable_failure(format!(
            "{process}: trace={path}: the user {user} cannot write this file: {}",
            system_message(&e)
        ))
    })
}

fn writable(jvm: &Jvm<'_>, path: &Path) -> io::Result<()> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::IsADirectory.into());
    };
    let folder = jvm.root.open_in_root(folder)?;
    if jvm.root.open_in_root(path).is_ok() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    jvm.process.user.run_as(|| {
        // SQLite creates more files beside the database while it writes.
        folder.is_writable()?;
        match accessat(CWD, folder.path(name), Access::WRITE_OK, AtFlags::EACCESS) {
            Err(rustix::io::Errno::NOENT) => Ok(()),
            done => Ok(done?),
        }
    })?
}
