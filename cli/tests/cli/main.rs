//! Tests the program as its users run it.

#[cfg(target_os = "linux")]
mod changed;
mod commands;
mod contents;
mod documents;
mod formats;
mod incomplete;
mod index;
mod kept;
mod links;
mod mcp;
#[cfg(target_os = "linux")]
mod memory;
mod others;
mod output;
#[cfg(unix)]
mod overwrite;
#[cfg(unix)]
mod push;
mod push_tls;
mod queries;
#[cfg(unix)]
mod repair;
mod schema;
mod segments;
mod support;
mod tables;
mod thread_locals;
mod trace;
mod ui_dump;
mod unreachable;
mod workflows;
