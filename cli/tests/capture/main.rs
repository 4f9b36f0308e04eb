//! Tests attach, dump and hunt with real JVMs. Each test runs on all JDKs of this machine since JDK 17.
#![cfg(target_os = "linux")]

mod aarch64;
mod ages;
mod attach;
mod copies;
mod count;
mod counts;
mod detach;
mod dump;
mod elsewhere;
mod empty_root;
mod fork;
mod guard;
mod hunt;
mod jhsdb;
mod kubectl;
mod labels;
mod list;
mod musl;
mod no_files;
mod owners;
mod pending;
mod recording;
mod refusals;
mod silence;
mod support;
mod trace;
