//! `heapdiff guard`: takes a dump before the JVM dies, and summarizes and uploads it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use heapdiff_push::{Patience, PushError, Upload};
use heapdiff_report::printable;
use heapdiff_trace::Trace;
use heapdiff_units::Size;

use super::summarize;
use super::trace::headers_of;
use crate::args::{SetupArgs, WorkArgs};
use crate::capture::{self, Agent, GuardRequest, JvmArgs, repair_hint};
use crate::failure::{Exit, Failure, Result, system_message};
use crate::interrupt::{self, Wait};
use crate::job::Setup;
use crate::messages;

/// The time between two checks for new dumps in the folder.
const CHECK: Duration = Duration::from_millis(500);

const HELP: &str = "\
Examples:
  heapdiff guard 4711 --to /dumps                # until the JVM ends, or Ctrl-C
  heapdiff guard 1 --no-attach --to /dumps --upload https://store.example/dumps/

The agent takes a dump at the limits, and if the JVM throws OutOfMemoryError. This command waits for
the dumps, and writes a summary beside each. It also summarizes dumps that the guard of an earlier
JVM left in the folder. If this command ends, the guard stays on.

Only --upload sends anything to another machine: the summary, which has names of classes and methods
and sizes, but no content. If URL ends in /, the name of the file is added. Redirects to other
servers are refused.

Exit codes: 0 = done, 2 = wrong usage, 3 = the JVM cannot be guarded, or a dump was incomplete or
could not be read or uploaded.";

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct GuardArgs {
    #[command(flatten)]
    jvm: JvmArgs,
    /// Share of the maximum heap in use after a full GC at which to take a dump
    #[arg(long, value_name = "PERCENT", default_value = "90%")]
    heap: String,
    /// Share of the container's memory limit at which to take a dump
    #[arg(long, value_name = "PERCENT", default_value = "90%")]
    container: String,
    /// Folder for the dumps, their summaries and the trace; the JVM must be able to write there
    #[arg(long, value_name = "DIR", default_value = ".")]
    to: PathBuf,
    /// Maximum size of all dumps in the folder [default: twice the maximum heap]
    #[arg(long, value_name = "SIZE")]
    disk: Option<Size>,
    /// Agent library to use instead of the embedded one
    #[arg(long, value_name = "FILE")]
    agent: Option<PathBuf>,
    /// Do not load the agent: the JVM was started with a guard that writes to DIR
    #[arg(long, conflicts_with_all = ["heap", "container", "disk", "agent"])]
    no_attach: bool,
    /// Upload each summary to this URL (HTTP PUT)
    #[arg(long, value_name = "URL")]
    upload: Option<String>,
    /// Upload the dumps, too, with the content of all strings; URL must end in /
    #[arg(long, requires = "upload")]
    upload_dump: bool,
    /// Header to add to each upload, or @FILE with one header per line; may be repeated
    #[arg(long, value_name = "NAME: VALUE", requires = "upload")]
    header: Vec<String>,
    /// File of CA certificates (PEM) to trust instead of those of this machine
    #[arg(long, value_name = "FILE", requires = "upload")]
    cacert: Option<PathBuf>,
    #[command(flatten)]
    work: WorkArgs,
}

impl GuardArgs {
    pub(crate) fn run(self) -> Result<Exit> {
        let upload = self.uploads()?;
        let setup = self.work.setup()?;
        setup.use_threads()?;
        let request = GuardRequest {
            jvm: self.jvm,
            agent: (!self.no_attach).then(|| Agent {
                library: self.agent,
                options: options(&self.heap, &self.container, self.disk),
            }),
            folder: self.to,
        };
        interrupt::handle();
        let guarded = capture::guard(&request, setup.progress)?;
        let watched = Watched {
            folder: &request.folder,
            setup: &setup,
            upload: upload.as_ref(),
            upload_dump: self.upload_dump,
        };
        watched.say(&format!(
            "{}: guarded until it ends; dumps and summaries go to {}",
            guarded.name(),
            request.folder.display()
        ));
        let wait = Wait::start();
        let (mut faults, mut done) = (0, BTreeSet::new());
        let mut files = guarded.files(&request.folder);
        loop {
            // Check for the end of the JVM before searching for new dumps. In the reverse order, a dump that is
            // completed between these two steps would be missed.
            let has_ended = guarded.has_ended() && files.are_final();
            faults += watched.summarize_new(&mut done);
            if has_ended {
                break;
            }
            if !wait.pause(CHECK) {
                return Ok(exit(faults));
            }
        }
        watched.say(&format!("{} has ended", guarded.name()));
        let parts = files.parts();
        for part in &parts {
            messages::warn(&repair_hint(part));
        }
        faults += parts.len();
        if files.dumps().is_empty()
            && let Some(trace) = files.trace()
            && let Err(failure) = watched.handle_trace(&trace)
        {
            faults += 1;
            messages::warn(&failure.message);
        }
        Ok(exit(faults))
    }

    fn uploads(&self) -> Result<Option<Upload>> {
        let Some(url) = &self.upload else {
            return Ok(None);
        };
        let usage = |e: PushError| Failure::usage(e.to_string());
        let headers = headers_of(&self.header)?;
        let upload = Upload::new(url, headers, self.cacert.as_deref(), Patience::default())
            .map_err(usage)?;
        if self.upload_dump && !upload.is_folder() {
            return Err(Failure::usage(format!(
                "--upload-dump sends several files, so {} must end in /",
                upload.target()
            )));
        }
        Ok(Some(upload))
    }
}

const fn exit(faults: usize) -> Exit {
    if faults == 0 { Exit::Done } else { Exit::Input }
}

/// Returns the agent's options for a guard, except the option for its folder.
fn options(heap: &str, container: &str, disk: Option<Size>) -> String {
    let mut options = format!("guard={heap},guard-container={container}");
    if let Some(disk) = disk {
        options.push_str(&format!(",guard-disk={}", disk.0));
    }
    options
}

/// A folder to which guards write dumps, with the settings for summarizing and uploading the dumps.
struct Watched<'a> {
    folder: &'a Path,
    setup: &'a Setup,
    upload: Option<&'a Upload>,
    upload_dump: bool,
}

impl Watched<'_> {
    /// Summarizes and uploads the dumps that have no summary yet. Returns the number of dumps for which an error
    /// occurred.
    fn summarize_new(&self, done: &mut BTreeSet<PathBuf>) -> usize {
        let mut faults = 0;
        for dump in capture::guard_dumps(self.folder) {
            let summary = dump.with_extension("heap");
            if summary.exists() || !done.insert(dump.clone()) {
                continue;
            }
            if let Err(failure) = self.handle(&dump, &summary) {
                faults += 1;
                messages::warn(&failure.message);
            }
        }
        faults
    }

    fn handle(&self, dump: &Path, summary: &Path) -> Result<()> {
        let bytes = summarize::of_dump(self.setup, dump, summary)?;
        let dump_bytes = fs::metadata(dump).map_or(0, |data| data.len());
        self.say(&format!(
            "wrote the summary {} ({}) of {} ({}); next: heapdiff {}",
            summary.display(),
            Size(bytes),
            dump.display(),
            Size(dump_bytes),
            dump.display()
        ));
        let Some(upload) = self.upload else {
            return Ok(());
        };
        self.put(upload, summary, summary)?;
        if self.upload_dump {
            self.put(upload, dump, dump)?;
        }
        Ok(())
    }

    /// Called if the JVM left no complete dump. Prints the path of the trace, and uploads the trace.
    fn handle_trace(&self, path: &Path) -> Result<()> {
        let shown = path.display();
        let trace = Trace::open(path).map_err(|e| Failure::bad_input(e.to_string()))?;
        if trace.runs().is_ok_and(|runs| runs.is_empty()) {
            return Err(Failure::bad_input(format!(
                "{shown} is empty: the JVM ended before the agent wrote anything"
            )));
        }
        self.say(&format!(
            "no complete dump was written; the trace shows what grew: heapdiff trace top {shown}"
        ));
        let Some(upload) = self.upload else {
            return Ok(());
        };
        if !upload.is_folder() {
            return Err(Failure::bad_input(format!(
                "{shown} was not uploaded: {} is the place of a summary; a URL that ends in / takes traces, too",
                upload.target()
            )));
        }
        let failed = |why: String| {
            Failure::bad_input(format!("{shown} cannot be copied for the upload: {why}"))
        };
        let copies = tempfile::tempdir().map_err(|e| failed(system_message(&e)))?;
        let copy = copies.path().join(path.file_name().unwrap_or_default());
        trace
            .copy_without_arguments(&copy)
            .map_err(|e| failed(e.to_string()))?;
        self.put(upload, &copy, path)
    }

    /// Uploads a file. `name` is its name in messages.
    fn put(&self, upload: &Upload, file: &Path, name: &Path) -> Result<()> {
        let name = name.display();
        let to = upload
            .put(file)
            .map_err(|e| Failure::bad_input(format!("{name} was not uploaded: {e}")))?;
        self.say(&format!("uploaded {name} to {to}"));
        Ok(())
    }

    fn say(&self, text: &str) {
        if !self.setup.progress.quiet {
            messages::print_done(&printable(text));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agents_options_are_those_of_the_command() {
        let all = options("80%", "75%", Some(Size(1 << 30)));
        assert_eq!(all, "guard=80%,guard-container=75%,guard-disk=1073741824");
        assert_eq!(options("90%", "90%", None), "guard=90%,guard-container=90%");
    }
}
