//! Attach, dump and hunt with real JVMs, each on the JDKs of this machine from 17 on.
#![cfg(target_os = "linux")]

mod attach;
mod cgroup;
mod copies;
mod count;
mod counts;
mod detach;
mod dump;
mod elsewhere;
mod fork;
mod hunt;
mod jhsdb;
mod kubectl;
mod list;
mod no_files;
mod refusals;
mod silence;
mod support;
mod trace;
