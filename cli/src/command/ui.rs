//! `heapdiff ui`: serves a page until the user stops it.

mod dump;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use heapdiff_report::{DiffReport, html};
use heapdiff_ui::{Server, Subject, UiError};
use hprof::NameMapping;

use self::dump::DumpPages;
use super::trace::read::readable;
use crate::args::NamesArgs;
use crate::failure::{Exit, Failure, Result, system_message};
use crate::interrupt;
use crate::job::Setup;
use crate::mapping::{self, originals};
use crate::overwrite::is_dump;
use crate::report_file::{self, ReportFile, is_json};

/// Time for which a temporary file exists. This file redirects the browser to the page.
const OPENING: Duration = Duration::from_secs(20);

const HELP: &str = "\
Examples:
  heapdiff ui /tmp/app.db --open  # watch a running JVM in the browser
  heapdiff ui before.hprof after.hprof  # objects, paths and owners of dumps, with links
  heapdiff ui report.json         # show a report of two dumps

Prints a URL with a secret token; the page is served on 127.0.0.1 only, and anybody with the URL can
see it. The server needs no network and writes no files. Traces may be complete or still being
written. One web page shows all traces. Ctrl-C stops the server.";

#[derive(Debug, Args)]
#[command(
    after_help = HELP,
    override_usage = "heapdiff ui [OPTIONS] TRACE...\n       heapdiff ui [OPTIONS] DUMP [AFTER]\n       heapdiff ui [OPTIONS] REPORT.json"
)]
pub(crate) struct Ui {
    /// Traces that the agent writes (agent option trace=FILE), heap dumps, or one JSON report
    #[arg(required = true, value_name = "TRACE|DUMP|REPORT.json")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    names: NamesArgs,
    /// Port to listen on [default: any free port]
    #[arg(long, value_name = "N", default_value_t, hide_default_value = true)]
    port: u16,
    /// Open the page in the browser
    #[arg(long)]
    open: bool,
    /// Print only errors to standard error
    #[arg(short, long)]
    quiet: bool,
}

impl Ui {
    /// Serves the page, and prints its URL.
    pub(crate) fn run(&self) -> Result<Exit> {
        let mapping = self.names.read()?;
        interrupt::handle();
        let server =
            Server::start(self.subject(mapping.as_ref())?, self.port).map_err(|e| match e {
                UiError::Trace(error) if error.not_a_database().is_some() => {
                    Failure::bad_input(error.to_string())
                        .with_hint("`ui` shows heap dumps, traces, and JSON reports of two dumps")
                }
                UiError::Trace(error) => Failure::trace(&error),
                UiError::Listen { .. } => {
                    Failure::usage(e.to_string()).with_hint("leave out --port to use any free port")
                }
                _ => Failure::usage(e.to_string()),
            })?;
        let url = server.url();
        let mut out = io::stdout().lock();
        let written = writeln!(out, "{url}").and_then(|()| out.flush());
        written.map_err(|e| Failure::usage(format!("standard output: {}", system_message(&e))))?;
        drop(out);
        if !self.quiet {
            let _ = writeln!(io::stderr(), "heapdiff: the server runs until Ctrl-C");
        }
        if self.open {
            open(&url)?;
        }
        server.wait();
        Ok(Exit::Done)
    }

    /// Returns what the page shows: traces, dumps, or one report.
    fn subject(&self, mapping: Option<&Arc<dyn NameMapping>>) -> Result<Subject> {
        let files = &*self.files;
        let mut reports = files.iter().filter(|file| is_json(file));
        let (dumps, others): (Vec<&PathBuf>, Vec<&PathBuf>) = files
            .iter()
            .partition(|file| is_dump(file).unwrap_or(false));
        if let Some(dump) = dumps.first() {
            if let Some(other) = others.first() {
                let (dump, other) = (dump.display(), other.display());
                return Err(Failure::usage(format!(
                    "{dump} is a heap dump, but {other} is not; `ui` shows dumps alone"
                )));
            }
            let mut setup = Setup {
                index: true,
                ..Setup::default()
            };
            setup.analysis.mapping = mapping.cloned();
            let pages = DumpPages::open(files, setup)?;
            return Ok(Subject::Pages(pages));
        }
        match (reports.next(), files) {
            (None, traces) => {
                traces.iter().try_for_each(|path| is_shown(path))?;
                Ok(Subject::Traces {
                    files: traces.to_vec(),
                    names: originals(mapping),
                })
            }
            (Some(report), _) if mapping.is_some() => {
                Err(mapping::mapping_of_report_failure(report))
            }
            (Some(report), [_]) => Ok(Subject::Page(page(report)?)),
            (Some(report), _) => Err(Failure::usage(format!(
                "{}: `ui` shows one report at a time; leave out the other files",
                report.display()
            ))),
        }
    }
}

/// Refuses JFR recordings. The hint names the right command.
fn is_shown(path: &Path) -> Result<()> {
    readable(path)?;
    let shown = path.display();
    if !heapdiff_jfr::is_recording(path).unwrap_or(false) {
        return Ok(());
    }
    let message =
        format!("{shown}: `ui` shows traces, dumps and reports, but this is a JFR recording");
    let hint = format!("convert it to a trace: heapdiff trace import {shown} -o trace.db");
    Err(Failure::bad_input(message).with_hint(hint))
}

fn page(path: &Path) -> Result<Vec<u8>> {
    let wrong = |why: String| Failure::bad_input(format!("{}: {why}", path.display()));
    let ReportFile::Growth(report) = report_file::open(path)? else {
        return Err(wrong(
            "this report is about one dump, but `ui` shows reports of two dumps; for a page use `heapdiff DUMP -o report.html`".to_owned(),
        ));
    };
    let mut page = Vec::new();
    html::render(&DiffReport::from(*report), &mut page).map_err(|e| wrong(system_message(&e)))?;
    Ok(page)
}

/// Opens the page in the browser. The URL contains a secret, and all users can see command lines. So the URL is passed
/// in a file that only this user can read.
fn open(url: &str) -> Result<()> {
    let failed = |e: &io::Error| {
        Failure::usage(format!("--open: {}", system_message(e)))
            .with_hint("open the URL above in a browser yourself")
    };
    let mut file = tempfile::Builder::new()
        .prefix("heapdiff-")
        .suffix(".html")
        .tempfile()
        .map_err(|e| failed(&e))?;
    writeln!(
        file,
        "<!DOCTYPE html><meta charset=utf-8><title>heapdiff</title>\
         <meta http-equiv=refresh content=\"0;url={url}\"><a href=\"{url}\">the live view</a>"
    )
    .and_then(|()| file.flush())
    .map_err(|e| failed(&e))?;
    open::that_detached(file.path()).map_err(|e| failed(&e))?;
    std::thread::sleep(OPENING);
    Ok(())
}
