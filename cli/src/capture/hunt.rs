//! `heapdiff hunt`: loads the agent or starts a recording, takes a dump, waits, and takes a second dump.
//! `command::hunt` compares them.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use heapdiff_agent::options::Options;
use heapdiff_sites::attach;
use heapdiff_trace::Trace;
use heapdiff_units::{Size, Span};

use super::agent::{self, Loaded, NotLoaded, State};
use super::checked;
use super::deadline::Deadline;
use super::dump::{self, DumpPlace, DumpResult, Forker, How};
use super::flight::Recorder;
use super::fork;
use super::guard_files::{GuardFiles, repair_hint};
use super::library::Library;
use super::process::{Process, unusable_failure};
use super::protocol::Jvm;
use super::request::{Agent, Forking, Hunt, Hunted};
use super::totals::Totals;
use super::trace_notes::{TraceNotes, trace_of};
use super::watch::{self, Watch};
use super::{RECORDING, TRACE};
use crate::failure::{Failure, Result, system_message};
use crate::interrupt::Wait;
use crate::messages;
use crate::progress::{Meter, Wanted};

/// Takes both dumps. `reports` are the names of the report files. It is an error if the folder already contains a file
/// with the name of one of the hunt's files.
pub(crate) fn hunt(hunt: &Hunt, reports: &[&str], wanted: Wanted) -> Result<Hunted> {
    let agent = match &hunt.agent {
        Some(agent) => {
            let checked = check_options(agent, hunt.guard)?;
            let library = Library::find(agent.library.as_deref()).map_err(|e| {
                with_default_hint(e, "add --no-attach for a hunt without allocation sites")
            })?;
            Some((library, agent.options.as_str(), checked))
        }
        None => None,
    };
    let suffix = if hunt.what.gzip.is_some() {
        ".hprof.gz"
    } else {
        ".hprof"
    };
    let names = ["before", "after"].map(|name| format!("{name}{suffix}"));
    let [before, after] = names.each_ref().map(String::as_str);
    let taken = [TRACE, RECORDING, before, after].into_iter();
    let taken = taken.chain(reports.iter().copied());
    if let Some(folder) = &hunt.folder {
        check_free(folder, taken)?;
    }
    let deadline = Deadline::new(hunt.jvm.timeout.0);
    let process = Process::find(&hunt.jvm.pid, &deadline)?;
    let jvm = Jvm::attach(&process, deadline)?;
    let folder = match &hunt.folder {
        Some(folder) => folder.clone(),
        None => default_folder(process.pid),
    };
    let made = Made::folder(&folder)?;
    let mut watch = None;
    let mut records = hunt.record;
    let forker = agent.as_ref().map(|(library, ..)| library.clone());
    let mut forker = forker.filter(|_| hunt.fork != Forking::Never);
    if let Some(agent) = agent {
        let options = agent.1;
        match start_agent(hunt, &jvm, &folder, agent, wanted) {
            Ok(watched) => watch = watched,
            Err(not) if not.is_impossible && !hunt.needs_agent => {
                if !wanted.quiet {
                    let why = not.failure.message.trim_end_matches('.');
                    messages::print_done(&format!(
                        "{why}; so the hunt records with Flight Recorder instead{}",
                        without(hunt.enough.is_some(), options)
                    ));
                }
                (forker, records) = (None, true);
            }
            Err(not) => {
                let hint = "add --recording for a hunt with Flight Recorder in place of the agent, or --no-attach for dumps alone";
                return Err(with_default_hint(not.failure, hint));
            }
        }
    }
    let recorder = if records {
        jvm.restart();
        start_recorder(&jvm, hunt.wait, wanted)?
    } else {
        None
    };
    let dumps = names.each_ref().map(|name| folder.join(name));
    let trace = watch.as_ref().map(|watch| watch.trace().to_owned());
    let how = How {
        what: hunt.what,
        forker: forker.as_ref().map(|library| Forker {
            library,
            only: hunt.fork == Forking::Always,
        }),
    };
    let taken = take_dumps((hunt, how), &jvm, (&folder, &dumps), watch, made, wanted);
    let trace = trace.filter(|path| path.is_file());
    let second = taken.or_else(|failure| match process.check_alive() {
        Ok(()) => Err(failure),
        Err(_) => {
            let [first, _] = &dumps;
            let began = fs::metadata(first).and_then(|data| data.modified()).ok();
            let files = began.filter(|_| hunt.guard);
            let files = files.map(|began| GuardFiles::new(&folder, process.inner_pid, began));
            let (dump, parts) = files.map_or((None, Vec::new()), last_dump);
            dump.ok_or_else(|| {
                let is_recorded = recorder.is_some();
                with_leftover_hint(failure, &dumps, trace.as_deref(), is_recorded, &parts)
            })
        }
    })?;
    let [first, planned] = dumps;
    if second != planned {
        messages::warn(&format!(
            "{process} has ended; the second dump is that of the guard, {}",
            second.display()
        ));
    }
    let dumps = [first, second];
    let recording = recorder.and_then(|recorder| {
        let file = folder.join(RECORDING);
        match recorder.finish(&file, wanted) {
            Ok(()) => Some(file),
            Err(failure) => {
                print_no_recording(&failure.message, wanted);
                None
            }
        }
    });
    Ok(Hunted {
        folder,
        dumps,
        trace,
        recording,
    })
}

/// Returns the end of a message about a `heapdiff hunt` that does not load the agent. The end names what is missing
/// without the agent: the trace, and the effect of the agent options.
fn without(trace: bool, options: &str) -> String {
    let trace = if trace { ", without a trace" } else { "" };
    if options.is_empty() {
        return trace.to_owned();
    }
    format!("{trace}, without the agent options {options}")
}

/// Starts a recording. If the JVM cannot record, prints the reason and returns `None`.
fn start_recorder<'a>(
    jvm: &'a Jvm<'a>,
    wait: Span,
    wanted: Wanted,
) -> Result<Option<Recorder<'a>>> {
    Ok(match Recorder::start(jvm, wait, wanted)? {
        Ok(recorder) => Some(recorder),
        Err(why) => {
            print_no_recording(&format!("{}: {why}", jvm.process), wanted);
            None
        }
    })
}

fn print_no_recording(why: &str, wanted: Wanted) {
    if !wanted.quiet {
        messages::print_done(&format!(
            "the hunt has no recording, so the report has no allocating stacks: {why}"
        ));
    }
}

/// The agent's library, its options as the user wrote them, and the same options after a check.
type CheckedAgent<'a> = (Library, &'a str, Option<Options>);

/// Loads the agent. If the hunt can end early, returns a watch on the trace that the agent writes.
fn start_agent(
    hunt: &Hunt,
    jvm: &Jvm<'_>,
    folder: &Path,
    (library, asked, checked): CheckedAgent<'_>,
    wanted: Wanted,
) -> Result<Option<Watch>, NotLoaded> {
    if let Some(checked) = checked {
        checked::trace(jvm, &checked)?;
    }
    let state = agent::state(jvm)?;
    let names_trace = names_trace(asked);
    let asked = &guarded(hunt, jvm, folder, asked)?;
    let (options, trace) = match hunt.enough {
        Some(_) if state.does(attach::TRACES) && !names_trace => {
            let unknown = "heapdiff cannot find the trace that the agent writes";
            let running = trace_of(jvm);
            (asked.to_owned(), running.ok_or_else(|| unknown.to_owned()))
        }
        Some(_) => watch::traced(jvm, folder, asked),
        None => (asked.to_owned(), Err(String::new())),
    };
    let loaded = load(jvm, &library, state, &options, wanted)?;
    note_unused(jvm, loaded, asked, wanted);
    let trace = match loaded {
        Loaded::Before if state == State::Unknown => {
            Err("an agent of another version is already loaded and keeps its options".to_owned())
        }
        _ => trace,
    };
    Ok(match (trace, hunt.enough) {
        (Ok(trace), Some(enough)) => Some(Watch::new(trace, enough)),
        (Err(why), Some(_)) => {
            if !wanted.quiet {
                messages::print_done(&format!(
                    "the hunt records no trace and cannot end early: {why}"
                ));
            }
            None
        }
        (_, None) => None,
    })
}

/// Checks the agent's options. Returns the parsed options if the caller must also call [`checked::trace`], which checks
/// that the JVM can write the trace file. Otherwise returns `None`.
fn check_options(agent: &Agent, has_guard: bool) -> Result<Option<Options>> {
    if !has_guard {
        return checked::options(agent);
    }
    // For this check, `/` is used as the guard's folder. When the agent is loaded, it gets the folder of the hunt
    // instead.
    let checked = checked::options(&Agent {
        library: agent.library.clone(),
        options: format!("{},guard-to=/", agent.options),
    })?;
    Ok(checked.filter(|_| names_trace(&agent.options)))
}

fn names_trace(options: &str) -> bool {
    let mut options = options.split(',');
    options.any(|option| option.starts_with("trace="))
}

/// If the hunt has a guard, adds the hunt's folder to the agent's options as the folder of the guard.
fn guarded(hunt: &Hunt, jvm: &Jvm<'_>, folder: &Path, options: &str) -> Result<String, NotLoaded> {
    if !hunt.guard {
        return Ok(options.to_owned());
    }
    let folder = watch::shared_folder(jvm, folder).map_err(|why| {
        unusable_failure(format!("--guard: {} {why}", folder.display())).with_hint(
            "give another folder with -o, or start the JVM with the agent option guard=90%",
        )
    })?;
    Ok(format!("{options},guard-to={}", folder.display()))
}

/// Loads the agent with these options. An agent that is already sampling keeps its own options, and these options are
/// added to them.
pub(super) fn load(
    jvm: &Jvm<'_>,
    library: &Library,
    state: State,
    options: &str,
    wanted: Wanted,
) -> Result<Loaded, NotLoaded> {
    if !state.does(attach::SAMPLES) {
        return agent::load(jvm, library, options, wanted);
    }
    if options.is_empty() {
        return Ok(Loaded::Before);
    }
    let loaded = agent::load_or_change(jvm, library, attach::ADD, options, wanted)?;
    if !wanted.quiet {
        messages::print_done(&format!(
            "{}: the agent was already loaded. Its earlier options still apply, {options} is added, and its earlier samples are discarded",
            jvm.process
        ));
    }
    Ok(loaded)
}

/// Prints which options the agent ignored, because an agent of its version cannot change options while it samples.
pub(super) fn note_unused(jvm: &Jvm<'_>, loaded: Loaded, asked: &str, wanted: Wanted) {
    if loaded == Loaded::Before && !asked.is_empty() && !wanted.quiet {
        messages::print_done(&format!(
            "{}: {asked} is not used, because the agent was loaded before and its version cannot change options; run `heapdiff detach {}` first",
            jvm.process, jvm.process.pid
        ));
    }
}

/// Takes both dumps, and waits between them.
fn take_dumps(
    (hunt, mut how): (&Hunt, How<'_>),
    jvm: &Jvm<'_>,
    (folder, [before, after]): (&Path, &[PathBuf; 2]),
    mut watch: Option<Watch>,
    made: Made<'_>,
    wanted: Wanted,
) -> Result<PathBuf> {
    let mut notes = TraceNotes::new(jvm);
    notes.hunt("the first dump is being taken");
    jvm.restart();
    let first = dump::take(jvm, &DumpPlace::new(before, false)?, how, wanted)?;
    made.keep();
    notes.dump(&first);
    print_fallback_reason(&first, wanted);
    // If forking failed for the first dump, it would fail again for the same reason, so do not try it for the second
    // dump.
    how.forker = how.forker.filter(|_| first.not_forked.is_none());
    let watching = match hunt.enough.filter(|_| watch.is_some()) {
        Some(enough) => format!(", or as soon as a site has grown by {}", Size(enough)),
        None => String::new(),
    };
    let span = hunt.wait;
    notes.hunt(&format!(
        "the first dump is taken; the second follows in {span}{watching}"
    ));
    let watch = watch.as_mut();
    let mut watched = watch.map(|watch| (watch, Totals::new(before.clone(), hunt.what.all)));
    let why = wait(
        jvm,
        span,
        folder,
        watched.as_mut(),
        Some(&mut notes),
        wanted,
    )?;
    notes.hunt(&format!("{why}; the second dump is being taken"));
    jvm.restart();
    let second = dump::take(jvm, &DumpPlace::new(after, false)?, how, wanted)?;
    notes.dump(&second);
    print_fallback_reason(&second, wanted);
    notes.hunt("both dumps are taken");
    Ok(after.clone())
}

/// Called after the end of the JVM. Waits until the guard has no incomplete dump that still grows, or until the user
/// ends the wait. Returns the last complete dump and all incomplete dumps.
fn last_dump(mut files: GuardFiles) -> (Option<PathBuf>, Vec<PathBuf>) {
    let wait = Wait::start();
    while !files.are_final() && wait.pause(Duration::from_millis(200)) {}
    (files.dumps().pop(), files.parts())
}

/// Prints the reason why the JVM itself wrote a dump although a child process was requested.
fn print_fallback_reason(dump: &DumpResult, wanted: Wanted) {
    if let (Some(why), false) = (&dump.not_forked, wanted.quiet) {
        let file = dump.file.display();
        messages::print_done(&fork::fallback_message(&file, why));
    }
}

/// Adds a hint to the failure of a hunt whose JVM has ended. The hint names the hunt's files that exist.
fn with_leftover_hint(
    failure: Failure,
    dumps: &[PathBuf; 2],
    trace: Option<&Path>,
    is_recorded: bool,
    parts: &[PathBuf],
) -> Failure {
    let mut left: Vec<_> = parts.iter().map(|part| repair_hint(part)).collect();
    // The agent may have ended before it wrote anything.
    let written = |path: &&Path| {
        let runs = Trace::open(path).and_then(|trace| trace.runs());
        runs.is_ok_and(|runs| !runs.is_empty())
    };
    if let Some(trace) = trace.filter(written) {
        left.push(format!(
            "`heapdiff trace top {}` shows what the agent recorded before the JVM ended",
            trace.display()
        ));
    }
    if let Some(first) = dumps.first().filter(|dump| dump.is_file()) {
        left.push(format!("the first dump is in {}", first.display()));
    }
    if is_recorded {
        left.push("the recording ended with the JVM and was not saved".to_owned());
    }
    match (&failure.hint, left.is_empty()) {
        (None, false) => failure.with_hint(left.join("\n          ")),
        _ => failure,
    }
}

fn with_default_hint(failure: Failure, hint: &str) -> Failure {
    match failure.hint {
        Some(_) => failure,
        None => failure.with_hint(hint),
    }
}

/// Waits until an allocation site has grown by the wanted number of bytes, the time is over, or the user ends the wait.
/// Returns a description of the event that ended the wait. Returns an error if the JVM ends.
pub(super) fn wait(
    jvm: &Jvm<'_>,
    span: Span,
    folder: &Path,
    mut watched: Option<&mut (&mut Watch, Totals)>,
    mut notes: Option<&mut TraceNotes<'_>>,
    wanted: Wanted,
) -> Result<String> {
    let wait = Wait::start();
    let meter = Meter::new(wanted, folder);
    let earlier = match &watched {
        Some((watch, _)) => format!(
            ", or as soon as a site has grown by {}",
            Size(watch.min_growth())
        ),
        None => String::new(),
    };
    let message =
        format!("heapdiff: the second dump follows in {span}{earlier}; Ctrl-C takes it now");
    meter.countdown(
        span,
        "until the second dump; Ctrl-C takes the second dump now",
        &message,
    );
    let start = Instant::now();
    loop {
        let left = span.0.saturating_sub(start.elapsed());
        if left.is_zero() {
            return Ok("the time between the dumps is over".to_owned());
        }
        if !wait.pause(left.min(Duration::from_millis(200))) {
            return Ok("the user ended the wait".to_owned());
        }
        meter.waited(start.elapsed());
        jvm.process.check_alive()?;
        if let Some(notes) = &mut notes {
            notes.try_again();
        }
        let Some((watch, totals)) = watched.as_deref_mut() else {
            continue;
        };
        let seen = watch.sites_grown_enough();
        if let Some(seen) = totals.first_confirmed(jvm, &seen, watch.min_growth()) {
            let said = format!(
                "an allocation site has grown by at least the size of --enough: {}",
                seen.said
            );
            if !wanted.quiet {
                messages::print_done(&said);
            }
            return Ok(said);
        }
    }
}

/// Checks that no file of the hunt exists in the folder: dumps are never replaced.
fn check_free<'a>(folder: &Path, names: impl IntoIterator<Item = &'a str>) -> Result<()> {
    if folder.exists() && !folder.is_dir() {
        return Err(Failure::usage(format!(
            "-o {}: this is not a folder",
            folder.display()
        )));
    }
    for name in names {
        let path = folder.join(name);
        if fs::symlink_metadata(&path).is_ok() {
            return Err(Failure::usage(format!(
                "-o {}: the folder already contains a file {name}",
                folder.display()
            ))
            .with_hint("give another folder, or leave out -o to get a new folder"));
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

/// The folder of a hunt. If the hunt created the folder and the folder is still empty, dropping this value removes the
/// folder.
struct Made<'a> {
    folder: Option<&'a Path>,
}

impl<'a> Made<'a> {
    fn folder(folder: &'a Path) -> Result<Self> {
        if folder.is_dir() {
            return Ok(Self { folder: None });
        }
        fs::create_dir_all(folder).map_err(|e| {
            Failure::usage(format!("-o {}: {}", folder.display(), system_message(&e)))
        })?;
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
            // If the folder is not empty, this call fails, as intended.
            let _ = fs::remove_dir(folder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_empty_folder_is_removed() {
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
