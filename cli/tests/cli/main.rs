//! The program as a user meets it.

#[cfg(target_os = "linux")]
mod changed;
mod commands;
mod documents;
mod formats;
mod index;
mod kept;
mod links;
mod output;
mod schema;
mod support;
mod tables;
mod trace;
mod workflows;
