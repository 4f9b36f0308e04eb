//! `heapdiff summarize`: writes a summary file, which can be compared in place of the dump.

use std::path::{Path, PathBuf};

use clap::Args;
use heapdiff_diff::Summary;
use heapdiff_units::Size;
use hprof::index::IndexFault;

use super::diff;
use crate::args::{SetupArgs, WorkArgs, input};
use crate::failure::{Exit, Failure, Result};
use crate::interrupt;
use crate::job::{Setup, check_file};
use crate::joined;
use crate::messages;
use crate::write;

const HELP: &str = "\
Examples:
  heapdiff summarize monday.hprof -o monday.heap  # write the summary
  heapdiff monday.heap friday.hprof               # compare a later dump with the summary
  heapdiff monday.heap friday.heap                # compare two summaries

`heapdiff OUT.heap AFTER.hprof` then gives the same report as `heapdiff IN AFTER.hprof`, so you can
delete IN. The last argument can be a summary, too: the report lists what it leaves out.";

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct Summarize {
    /// Heap dump (HPROF), gzipped or not
    #[arg(value_name = "IN")]
    #[arg(value_parser = input())]
    dump: PathBuf,
    /// Summary file to write, such as before.heap
    #[arg(short, long, value_name = "OUT.heap")]
    output: PathBuf,
    /// Replace OUT.heap even if it is a heap dump, JFR recording or trace (a summary is always
    /// replaced)
    #[arg(long)]
    force: bool,
    /// Recording of the same JVM, from which later comparisons know the stacks that probably
    /// allocated each suspect; may be repeated
    #[arg(long, value_name = "FILE", value_parser = input())]
    recording: Vec<PathBuf>,
    /// Write a smaller summary, faster, which cannot be the last argument of a comparison
    #[arg(long, conflicts_with = "recording")]
    baseline: bool,
    #[command(flatten)]
    work: WorkArgs,
}

impl Summarize {
    pub(crate) fn run(self) -> Result<Exit> {
        check_file(&self.output)?;
        let setup = self.work.setup()?;
        setup.use_threads()?;
        interrupt::handle();
        let recordings = joined::read(&setup, &self.recording)?;
        let (snapshot, mut summary) = diff::open_and_summarize(&setup, None, &self.dump)?;
        messages::print_input_warnings(&self.dump, snapshot.warnings(), setup.progress);
        if setup.strict && summary.info.partial {
            let dump = self.dump.display();
            return Err(match summary.info.assumed_roots {
                Some(_) => messages::missing_roots_failure(&dump),
                None => messages::damaged_failure(&dump),
            });
        }
        messages::mapping(&setup);
        joined::save(recordings, &mut summary, &snapshot)?;
        let file = if self.baseline {
            summary.to_baseline(&snapshot)
        } else {
            summary.to_file(&snapshot)
        };
        let bytes = write_file(file, &self.dump, &self.output)?;
        let to = self.output.display();
        if !setup.progress.quiet {
            messages::print_done(&format!(
                "wrote the summary {to} ({}); the dump has {}",
                Size(bytes),
                Size(summary.info.bytes)
            ));
        }
        Ok(Exit::Done)
    }
}

/// Writes the summary of a dump, for `heapdiff guard`. Returns the size of the summary.
pub(super) fn of_dump(setup: &Setup, dump: &Path, output: &Path) -> Result<u64> {
    let (snapshot, summary) = diff::open_and_summarize(setup, None, dump)?;
    messages::print_input_warnings(dump, snapshot.warnings(), setup.progress);
    write_file(summary.to_file(&snapshot), dump, output)
}

/// Writes a summary file. `file` is its content; `None` if it would be too large. Returns its size.
fn write_file(file: Option<Vec<u8>>, dump: &Path, output: &Path) -> Result<u64> {
    let file = file.ok_or_else(|| {
        Failure::usage(format!(
            "{}: the summary would be larger than 1 GiB, because every allocation was sampled; set the agent option `interval` to sample fewer allocations",
            dump.display()
        ))
    })?;
    write::replace(output, |out| out.write_all(&file))
        .map_err(|e| write::failed(output.display(), &e))?;
    Ok(file.len() as u64)
}

/// Reads a summary file. Returns `None` if the file is not a summary.
pub(super) fn read(setup: &Setup, file: &Path) -> Option<Result<Summary>> {
    if !Summary::is_file(file) {
        return None;
    }
    let shown = file.display();
    let summary = Summary::from_file(file, &setup.analysis, shown.to_string());
    Some(summary.map_err(|fault| {
        let failure = Failure::bad_input(format!("{shown}: cannot use this summary: {fault}"));
        match fault {
            IndexFault::Other(_) => failure
                .with_hint("write a new summary with the options of this command (--refs, --mapping): heapdiff summarize DUMP -o FILE.heap"),
            _ => failure,
        }
    }))
}

/// Returns the failure of a comparison whose last argument is a summary file that lacks the data about suspects that a
/// report needs.
pub(super) fn old_summary_failure(summaries: &[Summary]) -> Failure {
    let last = summaries.last().map_or("", |summary| &summary.info.path);
    Failure::bad_input(format!(
        "{last}: this summary cannot be the last argument, because it was written with --baseline or by an earlier version of heapdiff"
    ))
    .with_hint("write a new summary of the dump: heapdiff summarize DUMP -o FILE.heap")
}
