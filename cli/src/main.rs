//! `heapdiff`: two heap dumps in, the leaking call path out.
//!
//! Arguments become a job, the job a report, the report text.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod args;
mod capture;
mod classpath;
mod command;
mod failure;
mod fleet;
mod gates;
mod index;
mod interrupt;
mod known;
mod moment;
mod notes;
mod output;
#[cfg_attr(
    not(target_os = "linux"),
    allow(dead_code, reason = "waits and transfers are of what talks to JVMs")
)]
mod progress;
mod recorded;
mod render;
mod report;
mod span;
mod style;
mod trace;
mod ui;

use std::process::ExitCode;

use args::{Asked, Job};
use failure::{Exit, Failure, Result};
use heapdiff_report::size;

fn main() -> ExitCode {
    let exit = args::parse(std::env::args_os())
        .and_then(|asked| match asked {
            Asked::Job(job) => run(&job),
            Asked::Capture(capture) => capture::run(&capture),
            Asked::CleanIndexes(paths) => index::clean(&paths),
            Asked::Export(export) => trace::export(&export),
            Asked::Expunge(expunge) => trace::expunge(&expunge),
            Asked::Import(import) => trace::import(&import),
            Asked::Ui(job) => ui::run(&job),
            Asked::Fleet(fleet) => fleet::run(&fleet),
            Asked::Completions(shell) => output::completions(shell, &mut args::command_line()),
        })
        .unwrap_or_else(|failure| {
            notes::error(&failure);
            failure.exit
        });
    // The answer is out; the next is to come faster.
    index::write_pending();
    ExitCode::from(exit as u8)
}

fn run(job: &Job) -> Result<Exit> {
    interrupt::handle();
    use_threads(job.setup.threads)?;
    let report = command::run(job)?;
    notes::conditions(&report, &job.setup)?;
    if job.is_shown() {
        job.setup.output.write(&report)?;
    }
    gates::check(job, &report)
}

/// Sets how many threads the analysis works on.
fn use_threads(threads: Option<usize>) -> Result<()> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.unwrap_or(0));
    pool.build_global()
        .map_err(|e| Failure::usage(format!("--threads: {e}")))
}
