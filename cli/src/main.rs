//! `heapdiff`: two heap dumps in, the leaking call path out.
//!
//! Arguments become a job, the job a report, the report text.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod args;
mod capture;
mod classpath;
mod command;
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
mod leftovers;
mod mapping;
mod merge;
mod messages;
mod overwrite;
#[cfg_attr(
    not(target_os = "linux"),
    allow(
        dead_code,
        reason = "only the commands that attach to a JVM wait and transfer dumps"
    )
)]
mod progress;
mod report_file;
mod style;
mod time;
mod watch;
mod write;

use std::process::ExitCode;

use failure::{Exit, Failure, Result};
use heapdiff_report::Report;
use job::{Action, Job, Task};

fn main() -> ExitCode {
    inputs::watch();
    let exit = args::parse(std::env::args_os())
        .and_then(|action| match action {
            Action::Job(job) => run(&job),
            Action::Capture(capture) => capture::run(&capture),
            Action::CleanIndexes(paths) => index::clean(&paths),
            Action::ExportTrace(export) => command::trace::export(&export),
            Action::Prune(prune) => command::trace::prune(&prune),
            Action::Push(push) => command::trace::push(&push),
            Action::Import(import) => command::trace::import(&import),
            Action::Ui(job) => command::ui::run(&job),
            Action::Fleet(fleet) => command::fleet::run(&fleet),
            Action::Mcp(setup) => {
                use_threads(setup.threads).and_then(|()| command::mcp::run(*setup))
            }
            Action::Summarize(summarize) => use_threads(summarize.setup.threads)
                .and_then(|()| command::summarize::run(&summarize)),
            Action::Redact(redact) => command::redact::run(&redact),
            Action::Ps => capture::ps(),
            Action::Status(target, timeout) => capture::status(&target, timeout),
            Action::Agent(copy) => capture::agent(&copy),
            Action::Man(folder) => write::manual(&folder, args::command_line()),
            Action::Completions(shell) => write::completions(shell, &mut args::command_line()),
        })
        .unwrap_or_else(|failure| {
            messages::error(&failure);
            failure.exit
        });
    // Indexes are written after the answer, so that the next command is faster.
    index::write_pending();
    ExitCode::from(exit as u8)
}

fn run(job: &Job) -> Result<Exit> {
    interrupt::handle();
    use_threads(job.setup.threads)?;
    let reports = command::run(job)?;
    if let Some(report) = reports.first() {
        messages::conditions(report, &job.setup)?;
    }
    messages::mapping(&job.setup);
    if job.is_shown() {
        for (output, report) in job.setup.outputs().zip(&reports) {
            write::report(output, report)?;
        }
    }
    if let (Task::Hunt { hunt, .. }, Some(report)) = (&job.task, reports.first()) {
        command::hunt::end(&job.setup, hunt, report);
    }
    Ok(reports
        .first()
        .map_or(Exit::Done, |report| end(job, report)))
}

/// Prints which gates tripped, or why they do not decide, and returns how the run ends.
fn end(job: &Job, report: &Report) -> Exit {
    let Report::Diff(diff) = report else {
        return Exit::Done;
    };
    if let Some(why) = diff.undecided() {
        messages::undecided(why);
        return Exit::Input;
    }
    let tripped = diff
        .more
        .outcomes
        .iter()
        .filter_map(|gate| gate.tripped.as_deref());
    let tripped: Vec<&str> = tripped.collect();
    if tripped.is_empty() {
        return Exit::Done;
    }
    messages::gates(&tripped, &job.setup);
    Exit::Gate
}

/// Sets how many threads the analysis works on.
fn use_threads(threads: Option<usize>) -> Result<()> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.unwrap_or(0));
    pool.build_global()
        .map_err(|e| Failure::usage(format!("--threads: {e}")))
}
