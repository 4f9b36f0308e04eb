//! `heapdiff`: two heap dumps in, the leaking call path out.
//!
//! The arguments become a command with a job, the job produces a report, and the report becomes text.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod args;
mod capture;
mod classpath;
mod command;
mod command_line;
mod dump_file;
mod failure;
mod fits;
mod frame;
mod gates;
mod ignore;
mod index;
mod inputs;
mod interrupt;
mod jfr;
mod job;
mod joined;
mod leftovers;
mod mapping;
mod merge;
mod messages;
mod overwrite;
#[cfg_attr(
    not(target_os = "linux"),
    allow(
        dead_code,
        reason = "only commands that attach to a JVM use all functions of this module"
    )
)]
mod progress;
mod report_file;
mod style;
mod time;
mod watch;
mod write;

use std::process::ExitCode;

/// An allocator that replaces musl's own, which is slow if many threads allocate.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    inputs::watch();
    let exit = command_line::parse(std::env::args_os())
        .and_then(|command| command.run(command_line::full_command))
        .unwrap_or_else(|failure| {
            messages::error(&failure);
            failure.exit
        });
    // Indexes make the next command faster. They are written after the answer, so that the user does not wait for them.
    index::write_pending();
    ExitCode::from(exit as u8)
}
