//! `heapdiff guard`: takes a dump before the JVM dies, and summarizes and uploads it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use heapdiff_push::{Patience, PushError, Upload};
use heapdiff_report::printable;
use heapdiff_units::Size;

use super::summarize;
use super::trace::headers_of;
use crate::args::{SetupArgs, WorkArgs};
use crate::capture::{self, Agent, GuardRequest, JvmArgs};
use crate::failure::{Exit, Failure, Result};
use crate::interrupt::{self, Wait};
use crate::job::Setup;
use crate::messages;

/// Start of the names of the files that the agent's guard writes.
const PREFIX: &str = "heapdiff-guard-";
const DUMP: &str = ".hprof";
const PART: &str = ".hprof.part";
/// Time between two looks into the folder.
const CHECK: Duration = Duration::from_millis(500);
/// Maximum time for which a dump of a JVM that ended may not grow, before it counts as given up.
const GIVEN_UP: Duration = Duration::from_secs(10);

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
        let mut end = End::new(guarded.inner_pid());
        loop {
            // This comes first, so that a dump that is finished in this moment is not missed.
            let has_ended = guarded.has_ended() && end.is_over(&request.folder);
            faults += watched.summarize_new(&mut done);
            if has_ended {
                break;
            }
            if !wait.pause(CHECK) {
                return Ok(exit(faults));
            }
        }
        let parts = files(&request.folder, &format!("{}-", guarded.inner_pid()), PART);
        for part in &parts {
            let shown = part.display();
            let whole = part.with_extension("");
            messages::warn(&format!(
                "{shown} is incomplete; `heapdiff repair {shown} -o {}` makes a readable dump of it",
                whole.display()
            ));
        }
        watched.say(&format!("{} has ended", guarded.name()));
        Ok(exit(faults + parts.len()))
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

/// Returns the agent's options for a guard, without the folder.
fn options(heap: &str, container: &str, disk: Option<Size>) -> String {
    let mut options = format!("guard={heap},guard-container={container}");
    if let Some(disk) = disk {
        options.push_str(&format!(",guard-disk={}", disk.0));
    }
    options
}

/// Finds out when the dump of a JVM that ended will not grow any more.
struct End {
    pid: u32,
    bytes: u64,
    since: Option<Instant>,
}

impl End {
    const fn new(pid: u32) -> Self {
        Self {
            pid,
            bytes: 0,
            since: None,
        }
    }

    fn is_over(&mut self, folder: &Path) -> bool {
        let parts = files(folder, &format!("{}-", self.pid), PART);
        let size = |part: &PathBuf| fs::metadata(part).map_or(0, |data| data.len());
        let bytes = parts.iter().map(size).sum();
        if parts.is_empty() {
            return true;
        }
        if self.since.is_none() || bytes != self.bytes {
            (self.bytes, self.since) = (bytes, Some(Instant::now()));
        }
        self.since.is_some_and(|since| since.elapsed() >= GIVEN_UP)
    }
}

/// A folder of guards, and what happens with the dumps in it.
struct Watched<'a> {
    folder: &'a Path,
    setup: &'a Setup,
    upload: Option<&'a Upload>,
    upload_dump: bool,
}

impl Watched<'_> {
    /// Summarizes and uploads the dumps that have no summary yet. Returns the number of dumps with an error.
    fn summarize_new(&self, done: &mut BTreeSet<PathBuf>) -> usize {
        let mut faults = 0;
        for dump in files(self.folder, "", DUMP) {
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
        for file in [Some(summary), self.upload_dump.then_some(dump)] {
            let Some(file) = file else {
                continue;
            };
            let to = upload.put(file).map_err(|e| {
                Failure::bad_input(format!("{} was not uploaded: {e}", file.display()))
            })?;
            self.say(&format!("uploaded {} to {to}", file.display()));
        }
        Ok(())
    }

    fn say(&self, text: &str) {
        if !self.setup.progress.quiet {
            messages::print_done(&printable(text));
        }
    }
}

/// Returns the files of guards whose names continue with `start` and end in `end`, in the order of their names.
fn files(folder: &Path, start: &str, end: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let is_ours = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.and_then(|name| name.strip_prefix(PREFIX))
            .is_some_and(|rest| rest.starts_with(start) && rest.ends_with(end))
    };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut paths: Vec<PathBuf> = paths.filter(is_ours).collect();
    paths.sort();
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dump_that_grows_is_awaited_after_the_end_of_its_jvm() {
        let folder = tempfile::tempdir().unwrap();
        let mut end = End::new(7);
        assert!(end.is_over(folder.path()), "no dump");
        fs::write(
            folder.path().join("heapdiff-guard-77-1-heap.hprof.part"),
            "x",
        )
        .unwrap();
        assert!(end.is_over(folder.path()), "the dump of another JVM");
        let part = folder.path().join("heapdiff-guard-7-1-heap.hprof.part");
        fs::write(&part, "x").unwrap();
        assert!(!end.is_over(folder.path()));
        end.since = Instant::now().checked_sub(GIVEN_UP);
        assert!(end.is_over(folder.path()), "it did not grow");
        fs::write(&part, "xy").unwrap();
        assert!(!end.is_over(folder.path()));
    }

    #[test]
    fn the_agents_options_are_those_of_the_command() {
        let all = options("80%", "75%", Some(Size(1 << 30)));
        assert_eq!(all, "guard=80%,guard-container=75%,guard-disk=1073741824");
        assert_eq!(options("90%", "90%", None), "guard=90%,guard-container=90%");
    }
}
