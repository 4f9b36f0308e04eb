//! Communication with running JVMs: loads the agent and takes dumps, without any tool of a JDK.
//!
//! The arguments (`request`) are the same on every system. Most of this module is implemented only for Linux. The Linux
//! code has these parts:
//!
//! - `process` finds and checks a process.
//! - `protocol` wakes the attach listener of the process and sends commands to it.
//! - `user` acts as the user of the process.
//! - `folder` opens files as the process sees them.
//!
//! SIGQUIT would end a process that does not handle it. So only a JVM that certainly handles SIGQUIT gets this signal.
//!
//! The user of the JVM could replace parts of a path. So no file is written or read by its path alone. Folders are held
//! open, files in them are never overwritten, and links are not followed.

#[cfg(target_os = "linux")]
mod agent;
#[cfg_attr(
    not(target_os = "linux"),
    allow(
        dead_code,
        reason = "all systems parse the argument, but only Linux uses it"
    )
)]
mod c_library;
#[cfg(target_os = "linux")]
mod checked;
#[cfg(target_os = "linux")]
mod child;
#[cfg(target_os = "linux")]
mod count;
#[cfg(target_os = "linux")]
mod deadline;
#[cfg(target_os = "linux")]
mod dump;
#[cfg(target_os = "linux")]
mod flight;
#[cfg(target_os = "linux")]
mod folder;
#[cfg(target_os = "linux")]
mod fork;
#[cfg(target_os = "linux")]
mod guard;
mod guard_files;
#[cfg(target_os = "linux")]
mod held;
#[cfg(target_os = "linux")]
mod hunt;
#[cfg(target_os = "linux")]
mod library;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod list;
#[cfg(target_os = "linux")]
mod no_files;
#[cfg(target_os = "linux")]
mod perf_data;
#[cfg(target_os = "linux")]
mod places;
#[cfg(target_os = "linux")]
mod process;
#[cfg(target_os = "linux")]
mod protocol;
#[cfg_attr(
    not(target_os = "linux"),
    allow(
        dead_code,
        reason = "all systems parse these arguments, but only Linux uses them"
    )
)]
mod request;
#[cfg(target_os = "linux")]
mod totals;
#[cfg(target_os = "linux")]
mod trace_notes;
#[cfg(target_os = "linux")]
mod user;
#[cfg(target_os = "linux")]
mod watch;

#[cfg(not(target_os = "linux"))]
mod unsupported;

/// The file name of the agent's trace in the folder of a hunt.
pub(crate) const TRACE: &str = "trace.db";
/// The file name of the recording in the folder of a hunt.
pub(crate) const RECORDING: &str = "recording.jfr";

#[cfg(target_os = "linux")]
pub(crate) use count::count;
#[cfg(target_os = "linux")]
pub(crate) use guard::guard;
pub(crate) use guard_files::{dumps as guard_dumps, repair_hint};
#[cfg(target_os = "linux")]
pub(crate) use hunt::hunt;
#[cfg(target_os = "linux")]
pub(crate) use linux::{agent, attach, detach, dump};
#[cfg(target_os = "linux")]
pub(crate) use list::{ps, status};
#[cfg(target_os = "linux")]
pub(crate) use no_files::hunt_without_files;
pub(crate) use request::{
    Agent, AgentCopy, CountRequest, DumpRequest, Forking, GuardRequest, Hunt, JvmArgs, What,
    agent_options,
};
#[cfg(not(target_os = "linux"))]
pub(crate) use unsupported::{
    agent, attach, count, detach, dump, guard, hunt, hunt_without_files, ps, status,
};
