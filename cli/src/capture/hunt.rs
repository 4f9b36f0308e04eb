//! `heapdiff hunt`: loads the agent, takes a dump, waits, and takes another. The comparison is `command::hunt`'s.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use heapdiff_units::{Size, Span};

use super::agent::{self, Loaded};
use super::dump::{self, DumpPlace};
use super::library::library;
use super::process::Process;
use super::protocol::Jvm;
use super::trace_notes::TraceNotes;
use super::watch::{self, Watch};
use crate::failure::{Failure, Result, plain};
use crate::interrupt::Wait;
use crate::job::{Hunt, Hunted};
use crate::messages;
use crate::progress::{Meter, Wanted};

/// Takes both dumps. `reports` are the names that must be free in the folder, too.
pub(crate) fn hunt(hunt: &Hunt, reports: &[&str], wanted: Wanted) -> Result<Hunted> {
    let agent = match &hunt.agent {
        Some(agent) => {
            let library = library(agent.library.as_deref())
                .map_err(|e| or_without(e, "--no-attach hunts without allocation sites"))?;
            Some((library, &agent.options))
        }
        None => None,
    };
    let suffix = if hunt.what.gzip.is_some() {
        ".hprof.gz"
    } else {
        ".hprof"
    };
    let names = ["before", "after"].map(|name| format!("{name}{suffix}"));
    let taken = std::iter::once(watch::NAME)
        .chain(names.iter().map(String::as_str))
        .chain(reports.iter().copied());
    if let Some(folder) = &hunt.folder {
        check_free(folder, taken)?;
    }
    let process = Process::find(&hunt.target)?;
    let jvm = Jvm::attach(&process, hunt.timeout)?;
    let folder = match &hunt.folder {
        Some(folder) => folder.clone(),
        None => default_folder(process.pid),
    };
    let made = Made::folder(&folder)?;
    let mut watch = None;
    if let Some((library, options)) = agent {
        let (options, trace) = match hunt.enough {
            Some(_) => watch::traced(&jvm, &folder, options),
            None => (options.clone(), None),
        };
        let loaded = agent::load(&jvm, &library, &options)
            .map_err(|e| or_without(e, "--no-attach goes without"))?;
        // An agent that was loaded before keeps its options.
        let trace = trace.filter(|_| loaded == Loaded::Now);
        watch = trace
            .zip(hunt.enough)
            .map(|(t, enough)| Watch::new(t, enough));
    }
    let [before, after] = names.map(|name| folder.join(name));
    let mut notes = TraceNotes::new(&jvm);
    notes.hunt("the first dump is being taken");
    notes.dump(&dump::take(
        &jvm,
        &DumpPlace::new(&before, false)?,
        hunt.what,
        wanted,
    )?);
    made.keep();
    let watching = match hunt.enough.filter(|_| watch.is_some()) {
        Some(enough) => format!(", or when something has grown by {}", Size(enough)),
        None => String::new(),
    };
    let span = hunt.wait;
    notes.hunt(&format!(
        "the first dump is taken; the second follows in {span}{watching}"
    ));
    let why = wait(
        &process,
        span,
        &folder,
        (watch.as_mut(), &mut notes),
        wanted,
    )?;
    notes.hunt(&format!("{why}; the second dump is being taken"));
    notes.dump(&dump::take(
        &jvm,
        &DumpPlace::new(&after, false)?,
        hunt.what,
        wanted,
    )?);
    notes.hunt("both dumps are taken");
    let trace = watch.map(Watch::into_trace).filter(|path| path.is_file());
    Ok(Hunted {
        folder,
        dumps: [before, after],
        trace,
    })
}

fn or_without(failure: Failure, hint: &str) -> Failure {
    match failure.hint {
        Some(_) => failure,
        None => failure.with_hint(hint),
    }
}

/// Waits until enough growth was seen, the time is over, the user ends the wait, or the JVM ends. Returns which
/// of these it was.
fn wait(
    process: &Process,
    span: Span,
    folder: &Path,
    (mut watch, notes): (Option<&mut Watch>, &mut TraceNotes<'_>),
    wanted: Wanted,
) -> Result<String> {
    let wait = Wait::start();
    let meter = Meter::new(wanted, folder);
    let mut message = format!("heapdiff: the second dump follows in {span}; Ctrl-C takes it now");
    if watch.is_some() {
        message += ", as does enough growth";
    }
    meter.countdown(span, &message);
    let start = Instant::now();
    loop {
        let left = span.0.saturating_sub(start.elapsed());
        if left.is_zero() {
            return Ok("the time is over".to_owned());
        }
        if !wait.pause(left.min(Duration::from_millis(200))) {
            return Ok("the wait was ended".to_owned());
        }
        meter.waited(start.elapsed());
        process.check_alive()?;
        notes.try_again();
        if let Some(seen) = watch.as_mut().and_then(|watch| watch.enough()) {
            let said = format!("enough growth was seen: {seen}");
            if !wanted.quiet {
                messages::said(&said);
            }
            return Ok(said);
        }
    }
}

/// Checks that no file of the hunt exists in the folder: dumps are never replaced.
fn check_free<'a>(folder: &Path, names: impl IntoIterator<Item = &'a str>) -> Result<()> {
    if folder.exists() && !folder.is_dir() {
        return Err(Failure::usage(format!(
            "-o {}: is not a folder",
            folder.display()
        )));
    }
    for name in names {
        let path = folder.join(name);
        if fs::symlink_metadata(&path).is_ok() {
            return Err(
                Failure::usage(format!("-o {}: {name} exists already", folder.display()))
                    .with_hint("name another folder, or none for a new one"),
            );
        }
    }
    Ok(())
}

fn default_folder(pid: u32) -> PathBuf {
    std::iter::once(format!("hunt-{pid}"))
        .chain((2_u32..).map(|n| format!("hunt-{pid}-{n}")))
        .map(PathBuf::from)
        .find(|path| fs::symlink_metadata(path).is_err())
        .unwrap_or_default()
}

/// A folder that is removed in the end if it is still empty.
struct Made<'a> {
    folder: Option<&'a Path>,
}

impl<'a> Made<'a> {
    fn folder(folder: &'a Path) -> Result<Self> {
        if folder.is_dir() {
            return Ok(Self { folder: None });
        }
        fs::create_dir_all(folder)
            .map_err(|e| Failure::usage(format!("-o {}: {}", folder.display(), plain(&e))))?;
        Ok(Self {
            folder: Some(folder),
        })
    }

    fn keep(mut self) {
        self.folder = None;
    }
}

impl Drop for Made<'_> {
    fn drop(&mut self) {
        if let Some(folder) = self.folder {
            // This fails, as it should, when the folder is not empty.
            let _ = fs::remove_dir(folder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_empty_folder_goes_again() {
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| home.path().join(name);
        drop(Made::folder(&at("empty")).unwrap());
        assert!(!at("empty").exists());
        let made = at("full");
        let guard = Made::folder(&made).unwrap();
        fs::write(made.join("before.hprof"), "x").unwrap();
        drop(guard);
        assert!(made.exists());
        drop(Made::folder(&made).unwrap());
        assert!(check_free(&made, ["after.hprof"]).is_ok());
        assert!(check_free(&made, ["before.hprof"]).is_err());
        assert!(check_free(&made.join("before.hprof"), ["x"]).is_err());
    }
}
