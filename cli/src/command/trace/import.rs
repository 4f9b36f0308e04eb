//! `heapdiff trace import`: converts JFR recordings to a trace.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use heapdiff_import::{ImportError, Origin};
use heapdiff_jfr::Recording;
use heapdiff_units::{Span, counted};

use crate::failure::{Exit, Failure, Result, system_message};
use crate::interrupt::{self, Unfinished};
use crate::jfr;
use crate::messages;
use crate::write::failed;

const HELP: &str = "\
Examples:
  heapdiff trace import app.jfr -o app.db                     # import one recording
  heapdiff trace import 1.jfr 2.jfr -o app.db --service shop  # import two files of one recording

All recordings must come from one JVM, for example files that JFR.dump wrote from one running
recording. Chunks that are in two recordings are counted once. A recording contains live objects,
with their allocation times, only for some points in time: JFR records live objects when it writes
a file (JFR.dump), and async-profiler when it stops.";

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct Import {
    /// JFR recordings of one JVM, gzipped or not
    #[arg(required = true, value_name = "RECORDING")]
    recordings: Vec<PathBuf>,
    /// Trace to create
    #[arg(short, long, value_name = "T.db")]
    output: PathBuf,
    /// Replace an existing file
    #[arg(long)]
    force: bool,
    /// Length of a tick [default: 1s, or longer so that there are at most 3,600 ticks]
    #[arg(long, value_name = "TIME")]
    tick: Option<Span>,
    /// Service name to record
    #[arg(long, value_name = "NAME")]
    service: Option<String>,
    /// Host name to record
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// Print only errors to standard error
    #[arg(short, long)]
    quiet: bool,
}

impl Import {
    /// Writes the trace and prints what it contains.
    pub(crate) fn run(&self) -> Result<Exit> {
        if self.tick.is_some_and(|tick| tick.0.as_millis() == 0) {
            return Err(Failure::usage("--tick must be longer than 0s"));
        }
        interrupt::handle();
        let output = &self.output;
        let shown = output.display();
        if output.exists() && !self.force {
            let message = format!("-o {shown}: the file exists");
            return Err(Failure::usage(message)
                .with_hint("give another file name, or replace this file with --force"));
        }
        if output.is_dir() {
            return Err(Failure::usage(format!(
                "-o {shown}: this is a directory; give a file name"
            )));
        }
        let mut log = output.as_os_str().to_owned();
        log.push("-wal");
        let log = PathBuf::from(log);
        if fs::metadata(&log).is_ok_and(|log| log.len() > 0) {
            // If a trace is replaced but its log remains, SQLite applies the log to the new file.
            let message = format!(
                "-o {shown}: the SQLite write-ahead log {} contains data that is not in the trace file yet",
                log.display()
            );
            return Err(Failure::usage(message)
                .with_hint("a JVM still writes to this trace, or was killed before it finished; give another file name"));
        }
        let recording = read(self)?;
        if !self.quiet {
            for warning in jfr::warnings(&recording) {
                messages::print_done(&format!("warning: {warning}"));
            }
        }
        let trace = heapdiff_import::Import::new(&recording, self.tick.map(|span| span.0));
        let trace = trace.map_err(|e| match e {
            ImportError::TooManyTicks { .. } => Failure::usage(format!("--tick is too short: {e}")),
            other => refused(&shown.to_string(), other),
        })?;
        write(self, &trace)?;
        if !self.quiet {
            messages::print_done(&format!(
                "wrote {shown} from {recordings}: {ticks} of {length}, {samples}, {collections}",
                recordings = counted(self.recordings.len() as u64, "recording"),
                ticks = counted(trace.ticks(), "tick"),
                length = Span(trace.tick_length()),
                samples = counted(recording.samples.len() as u64, "sample"),
                collections = counted(recording.collections.len() as u64, "GC"),
            ));
        }
        Ok(Exit::Done)
    }
}

/// Reads several recordings as one.
fn read(import: &Import) -> Result<Recording> {
    let mut all = Recording::default();
    let mut first = None;
    for path in &import.recordings {
        all.add(path).map_err(|e| jfr::failure(path, &e))?;
        let jvm = all.jvm.as_ref().map(|j| (j.pid, j.start_ms));
        if first.is_some_and(|first| jvm.is_some_and(|jvm| jvm != first)) {
            let message = format!(
                "{}: this recording and the one before it belong to different JVMs",
                path.display()
            );
            return Err(Failure::usage(message)
                .with_hint("import the recordings of each JVM into a separate trace"));
        }
        first = first.or(jvm);
    }
    if all.samples.is_empty() && all.heap.is_empty() {
        let message = "the recordings contain no allocations, live objects or heap sizes";
        return Err(Failure::usage(message)
            .with_hint("record them: jcmd PID JFR.start settings=profile, or async-profiler with -e alloc --live"));
    }
    Ok(all)
}

/// Writes the trace to a temporary folder beside the output file, and moves it there when it is complete.
fn write(import: &Import, trace: &heapdiff_import::Import<'_>) -> Result<()> {
    let output = &import.output;
    let shown = output.display().to_string();
    let io = |e: &io::Error| failed(&shown, e);
    let parent = output.parent().filter(|p| !p.as_os_str().is_empty());
    let (unfinished, folder) = Unfinished::new(|| {
        let folder = tempfile::Builder::new()
            .prefix(".heapdiff-")
            .tempdir_in(parent.unwrap_or_else(|| Path::new(".")))?;
        Ok((folder.path().to_path_buf(), folder))
    })
    .map_err(|e| io(&e))?;
    let path = folder.path().join("trace.db");
    let files = import.recordings.iter();
    let origin = Origin {
        files: files.map(|p| p.display().to_string()).collect(),
        service: import.service.clone(),
        host: import.host.clone(),
    };
    let written = trace.write(&path, &origin);
    written.map_err(|e| refused(&shown, e))?;
    unfinished
        .finish(|_| {
            if import.force {
                return fs::rename(&path, output);
            }
            // A rename could replace a file that appeared in the meantime. Creating a hard link never does.
            fs::hard_link(&path, output).or_else(|e| match e.kind() {
                io::ErrorKind::AlreadyExists => Err(e),
                _ if output.exists() => Err(io::ErrorKind::AlreadyExists.into()),
                // The file system does not support hard links.
                _ => fs::rename(&path, output),
            })
        })
        .map_err(|e| io(&e))?;
    folder
        .close()
        .map_err(|e| Failure::usage(format!("{shown}: {}", system_message(&e))))
}

/// The failure for a trace that cannot be written.
fn refused(shown: &str, error: ImportError) -> Failure {
    match error {
        ImportError::Held => failed(shown, &io::Error::other(error.to_string())),
        other => Failure::usage(format!("cannot write {shown}: {other}")),
    }
}
