//! `heapdiff summarize`: what a comparison needs of a dump, in a file that stands for it.

use std::path::Path;

use heapdiff_diff::Summary;
use heapdiff_units::Size;
use hprof::index::IndexFault;

use super::diff;
use crate::failure::{Exit, Failure, Result};
use crate::interrupt;
use crate::job::{Setup, Summarize};
use crate::messages;
use crate::write;

pub(crate) fn run(job: &Summarize) -> Result<Exit> {
    interrupt::handle();
    let (snapshot, summary) = diff::reduced(&job.setup, None, &job.dump)?;
    messages::of_input(&job.dump, snapshot.warnings(), job.setup.progress);
    if job.setup.strict && summary.info.partial {
        let dump = job.dump.display();
        return Err(match summary.info.assumed_roots {
            Some(_) => messages::rootless(&dump),
            None => messages::refused(&dump),
        });
    }
    messages::mapping(&job.setup);
    let file = summary.to_file(&snapshot).ok_or_else(|| {
        Failure::usage(format!(
            "{}: the summary would be larger than 1 GiB, because every allocation was sampled; set the agent option `interval` to sample fewer allocations",
            job.dump.display()
        ))
    })?;
    let to = job.to.display();
    write::replace(&job.to, |out| out.write_all(&file))
        .map_err(|e| write::failed(&to.to_string(), &e))?;
    if !job.setup.progress.quiet {
        messages::said(&format!(
            "wrote {to} ({}) from a dump of {}",
            Size(file.len() as u64),
            Size(summary.info.bytes)
        ));
    }
    Ok(Exit::Done)
}

/// The summary in a file, if it is one.
pub(super) fn read(setup: &Setup, file: &Path) -> Option<Result<Summary>> {
    if !Summary::is_file(file) {
        return None;
    }
    let shown = file.display();
    let summary = Summary::from_file(file, &setup.analysis, shown.to_string());
    Some(summary.map_err(|fault| {
        let failure = Failure {
            exit: Exit::Input,
            message: format!("{shown}: cannot use this summary: {fault}"),
            hint: None,
        };
        match fault {
            IndexFault::Other(_) => failure
                .with_hint("write a new summary with the options of this command (--refs, --mapping): heapdiff summarize DUMP -o FILE.heap"),
            _ => failure,
        }
    }))
}

/// Why a summary cannot be the last of a comparison.
pub(super) fn not_the_last(file: &Path) -> Failure {
    let message = format!(
        "{}: the last argument must be a full dump, not a summary",
        file.display()
    );
    Failure::usage(message)
        .with_hint("only earlier dumps can be summaries: heapdiff BEFORE.heap AFTER.hprof")
}
