//! `heapdiff summarize`: what a comparison needs of a dump, in a file that stands for it.

use std::path::Path;

use heapdiff_diff::Summary;
use heapdiff_units::Size;
use hprof::IndexFault;

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
            "{}: its summary would be larger than a gigabyte, as it is where every allocation has a sample",
            job.dump.display()
        ))
    })?;
    let to = job.to.display();
    write::replace(&job.to, |out| out.write_all(&file))
        .map_err(|e| write::failed(&to.to_string(), &e))?;
    if !job.setup.progress.quiet {
        messages::said(&format!(
            "{to}: {} stand for a dump of {}",
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
    let summary = Summary::from_file(file, setup.names(), shown.to_string());
    Some(summary.map_err(|fault| {
        let failure = Failure {
            exit: Exit::Input,
            message: format!("{shown}: a summary that cannot be used: {fault}"),
            hint: None,
        };
        match fault {
            IndexFault::Other(_) => failure
                .with_hint("`heapdiff summarize DUMP -o FILE.heap` makes one anew, --refs and --mapping as here"),
            _ => failure,
        }
    }))
}

/// Why a summary cannot be the last of a comparison.
pub(super) fn not_the_last(file: &Path) -> Failure {
    let message = format!(
        "{}: the last dump of a comparison is looked into, and a summary has no objects",
        file.display()
    );
    Failure::usage(message)
        .with_hint("name a later dump itself; summaries stand for those before it")
}
