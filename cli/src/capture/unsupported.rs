//! Errors on systems where heapdiff cannot attach to JVMs. HotSpot's attach protocol and the information about
//! processes differ between systems, and only Linux is supported.

use std::path::Path;

use super::guard_files::GuardFiles;
use super::request::{
    Agent, AgentCopy, CountRequest, DumpRequest, GuardRequest, Hunt, Hunted, JvmArgs,
};
use crate::failure::{Exit, Failure, Result};
use crate::progress::Wanted;

pub(crate) fn attach(_: &JvmArgs, _: &Agent, _: Wanted) -> Result<Exit> {
    Err(unsupported_failure())
}

pub(crate) fn detach(_: &JvmArgs, _: Wanted) -> Result<Exit> {
    Err(unsupported_failure())
}

pub(crate) fn dump(_: &JvmArgs, _: &DumpRequest, _: Wanted) -> Result<Exit> {
    Err(unsupported_failure())
}

/// A JVM with a guard. This type has no values, because the agent runs on Linux only.
#[derive(Debug)]
pub(crate) enum Guarded {}

impl Guarded {
    pub(crate) fn name(&self) -> String {
        match *self {}
    }

    pub(crate) fn files(&self, _: &Path) -> GuardFiles {
        match *self {}
    }

    pub(crate) fn has_ended(&self) -> bool {
        match *self {}
    }
}

pub(crate) fn guard(_: &GuardRequest, _: Wanted) -> Result<Guarded> {
    Err(unsupported_failure())
}

pub(crate) fn agent(_: &AgentCopy) -> Result<Exit> {
    Err(unsupported_failure())
}

pub(crate) fn ps() -> Result<Exit> {
    Err(unsupported_failure())
}

pub(crate) fn status(_: &JvmArgs) -> Result<Exit> {
    Err(unsupported_failure())
}

pub(crate) fn count(
    _: &JvmArgs,
    _: &CountRequest,
    _: Wanted,
) -> Result<(String, heapdiff_sites::Counts)> {
    Err(unsupported_failure())
}

pub(crate) fn hunt(_: &Hunt, _: &[&str], _: Wanted) -> Result<Hunted> {
    Err(unsupported_failure())
}

pub(crate) fn hunt_without_files<F, T>(
    _: &Hunt,
    _: Wanted,
    _: impl FnOnce(&Path, &Path) -> Result<F>,
    _: impl FnOnce(F, &Path, &Path) -> Result<T>,
) -> Result<T> {
    Err(unsupported_failure())
}

fn unsupported_failure() -> Failure {
    Failure::bad_input("the agent runs on Linux only").with_hint(
        "take dumps with the JDK: jcmd PID GC.heap_dump FILE; heapdiff compares dumps on any system",
    )
}
