//! Talking to running JVMs: loading the agent and taking dumps, without any tool of a JDK.
//!
//! What is wanted ([`request`]) is the same on every system; how it is done is known for Linux. A process is found
//! and checked (`process`), its listener woken and spoken to (`protocol`), as its user (`user`) and in its view
//! of the file system (`folder`).
//!
//! No process gets SIGQUIT that is not certainly a JVM which handles it. No file is written to or
//! read through a path that the other side could bend: their folders are held open, names in them
//! are created anew or not at all, and links are not followed.

#[cfg_attr(
    not(target_os = "linux"),
    allow(
        dead_code,
        reason = "parsed everywhere, acted upon where JVMs can be reached"
    )
)]
mod request;

#[cfg(target_os = "linux")]
mod agent;
#[cfg(target_os = "linux")]
mod dump;
#[cfg(target_os = "linux")]
mod folder;
#[cfg(target_os = "linux")]
mod hunt;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod process;
#[cfg(target_os = "linux")]
mod protocol;
#[cfg(target_os = "linux")]
mod remarks;
#[cfg(target_os = "linux")]
mod user;
#[cfg(target_os = "linux")]
mod watch;

#[cfg(not(target_os = "linux"))]
mod elsewhere;

#[cfg(not(target_os = "linux"))]
pub(crate) use elsewhere::{hunt, run};
#[cfg(target_os = "linux")]
pub(crate) use hunt::hunt;
#[cfg(target_os = "linux")]
pub(crate) use linux::run;
pub(crate) use request::{Action, Agent, Capture, Hunt, Target, What, agent_options};
