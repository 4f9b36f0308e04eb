//! `heapdiff hunt`: takes two dumps of a running JVM, and reports what grew between them.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser};
use heapdiff_diff::{SnapshotInfo, Suspect};
use heapdiff_report::{Format, Report, printable};
use heapdiff_units::{Size, Span, counted};

use super::agent_help::agent_help;
use super::diff;
use super::growth::{Question, each, formats};
use crate::args::{ReportArgs, listing};
use crate::capture::{self, Agent, Forking, JvmArgs, What, agent_options};
use crate::failure::{Failure, Result};
use crate::job::{Formats, Job, Output, Setup, Task};
use crate::messages;
use crate::style::When;
use crate::write;

/// Agent options that count allocations, record how collections are used, and take a dump before the JVM dies.
const COUNT_ON: &str = "count=on";
const USAGE_ON: &str = "usage=on";
const GUARD_HEAP: &str = "guard=90%";
const GUARD_CONTAINER: &str = "guard-container=90%";

const EXAMPLES: &str = "\
Examples:
  heapdiff hunt 4711 --for 10m    # two dumps, 10 minutes apart, and a report
  heapdiff hunt 4711 --no-files   # a hunt that writes no files
  heapdiff hunt 4711 --recording  # a hunt that uses Flight Recorder in place of the agent";

#[derive(Debug, Args)]
#[command(after_help = agent_help(EXAMPLES), mut_arg("format", listing(formats)))]
pub(crate) struct HuntArgs {
    #[command(flatten)]
    jvm: JvmArgs,
    /// Agent options, such as interval=64k,depth=32 (listed below)
    #[arg(value_name = "KEY=VALUE,...", value_parser = agent_options, default_value = "", hide_default_value = true, conflicts_with_all = ["no_attach", "recording"])]
    options: String,
    /// Count puts, removals and reads of large JDK collections, to distinguish leaks from caches
    /// (agent option usage=on)
    #[arg(long, conflicts_with_all = ["no_attach", "recording"])]
    usage: bool,
    /// How long to wait between the dumps; Ctrl-C takes the second dump now
    #[arg(
        long = "for",
        value_name = "TIME",
        default_value = "5m",
        alias = "duration"
    )]
    wait: Span,
    /// Folder for before.hprof, after.hprof and the report [default: hunt-PID, a new folder]
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Take the second dump earlier, as soon as a site has grown by this much with statistical
    /// confidence
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "1MiB",
        conflicts_with = "recording"
    )]
    enough: Size,
    /// Record no trace; the second dump is then taken after --for, never earlier
    #[arg(long, conflicts_with = "enough")]
    no_trace: bool,
    /// Agent library to use instead of the embedded one
    #[arg(long, value_name = "FILE", conflicts_with_all = ["no_attach", "recording"])]
    agent: Option<PathBuf>,
    /// Do not load the agent; the report then has no allocation sites, unless the agent is already
    /// loaded
    #[arg(long)]
    no_attach: bool,
    /// Record the allocating stacks with Flight Recorder, not the agent; with FILE, read this
    /// recording after the second dump; may be repeated
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "", value_parser = recording())]
    recording: Vec<PathBuf>,
    /// Also take a dump before the JVM runs out of memory (agent option guard=90%); if the JVM ends,
    /// compare with this dump
    #[arg(long, conflicts_with_all = ["no_attach", "recording", "no_files"])]
    guard: bool,
    /// Also count every allocation by line of code (agent option count=on)
    #[arg(long, conflicts_with_all = ["no_attach", "recording"])]
    count: bool,
    /// Write no files: forked children of the JVM send both dumps to heapdiff, which analyzes them
    /// in memory
    #[arg(long, conflicts_with_all = ["output", "enough", "no_fork", "no_attach", "recording", "all", "live", "gzip", "max_memory"])]
    no_files: bool,
    /// Fail if forked children of the JVM cannot write the dumps, instead of letting the JVM write
    /// them
    #[arg(long, conflicts_with_all = ["no_fork", "no_attach", "recording", "all", "live"])]
    fork: bool,
    /// Let the JVM write the dumps itself after a full GC; the JVM is paused meanwhile
    #[arg(long)]
    no_fork: bool,
    #[command(flatten)]
    what: What,
    #[command(flatten)]
    question: Question,
    #[command(flatten)]
    report: ReportArgs,
}

/// Parses the value of `--recording`. Without FILE, the value is empty, and the hunt itself makes the recording.
fn recording() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().try_map(|file| recording_file(PathBuf::from(file)))
}

/// Refuses a value that is probably the id or the name of the JVM: `hunt --recording 4711`.
fn recording_file(file: PathBuf) -> Result<PathBuf, String> {
    let text = file.to_string_lossy();
    let is_word = !text.is_empty() && !text.contains(['.', '/']);
    if is_word && !file.exists() {
        return Err(format!(
            "there is no such file; if {text} is the JVM, put it before the option: `heapdiff hunt {text} --recording`"
        ));
    }
    Ok(file)
}

/// Adds an option to the agent's options, unless they contain its key.
fn with_option(options: String, more: &str) -> String {
    let key = more.split_inclusive('=').next().unwrap_or(more);
    let bare = options.replace("\\,", "");
    let mut keys = bare.split(',').map(str::trim_start);
    match &*options {
        _ if keys.any(|option| option.starts_with(key)) => options,
        "" => more.to_owned(),
        _ => format!("{options},{more}"),
    }
}

impl HuntArgs {
    pub(crate) fn job(self) -> Result<Job> {
        let mut question = self.question.checked()?;
        let is_ours = |file: &&PathBuf| file.as_os_str().is_empty();
        let record = self.recording.iter().any(|file| is_ours(&file));
        let attaches = !self.no_attach && self.recording.is_empty();
        let files = self.recording.into_iter();
        question.recordings = files.filter(|file| !is_ours(&file)).collect();
        let mut options = self.options;
        for (asked, more) in [
            (self.count, COUNT_ON),
            (self.usage, USAGE_ON),
            (self.guard, GUARD_HEAP),
            (self.guard, GUARD_CONTAINER),
        ] {
            if asked {
                options = agent_options(&with_option(options, more)).map_err(Failure::usage)?;
            }
        }
        let agent = Agent {
            library: self.agent,
            options,
        };
        let mut setup = self.report.setup(None)?;
        // A hunt without files writes no indexes and no summaries either.
        setup.index &= !self.no_files;
        let hunt = capture::Hunt {
            jvm: self.jvm,
            agent: attaches.then_some(agent),
            record,
            needs_agent: self.fork || self.guard || setup.is_any(Format::has_only_stacks),
            what: self.what,
            fork: if self.fork {
                Forking::Always
            } else if self.no_fork || self.what.all || self.what.live {
                Forking::Never
            } else {
                Forking::WherePossible
            },
            wait: self.wait,
            folder: self.output,
            files: !self.no_files,
            guard: self.guard,
            enough: (!(self.no_trace || self.no_files)).then_some(self.enough.0),
        };
        Job::new(setup, Hunt { hunt, question })
    }
}

/// A hunt: two dumps of a running JVM and their comparison.
#[derive(Debug)]
struct Hunt {
    hunt: capture::Hunt,
    question: Question,
}

impl Task for Hunt {
    fn formats() -> Formats {
        formats
    }

    fn check(&self, setup: &Setup, _: Format) -> Result<()> {
        let has_agent = self.hunt.agent.is_some();
        if !has_agent && setup.is_any(Format::has_only_stacks) {
            return Err(Failure::usage(
                "this format shows only stacks of the agent's samples, and this hunt does not load the agent",
            )
            .with_hint("leave out --recording and --no-attach, or choose another format"));
        }
        self.question.check(setup)
    }

    /// Runs the hunt: takes the dumps, compares them, and writes the report beside the dumps unless the hunt writes no
    /// files.
    fn run(&self, setup: &Setup) -> Result<Vec<Report>> {
        let (hunt, question) = (&self.hunt, &self.question);
        if !hunt.files {
            return without_files(setup, hunt, question);
        }
        let kept = format!("report.{}", setup.output.format.extension());
        for file in question.recordings.iter().filter(|file| !file.exists()) {
            messages::warn(&format!(
                "{} does not exist yet; the hunt reads it after the second dump",
                file.display()
            ));
        }
        let hunted = capture::hunt(hunt, &[&kept], setup.progress)?;
        let trace = hunted.trace.as_deref();
        let given = &question.recordings;
        let compare = |files: &[PathBuf]| diff::run(setup, &hunted.dumps, (trace, files), question);
        let all: Vec<PathBuf> = given.iter().chain(&hunted.recording).cloned().collect();
        // If a recording cannot be used, the report is written nevertheless: first only with the hunt's own recording,
        // and if this fails, without any recording.
        let reports = compare(&all).or_else(|failure| {
            let reports = match &hunted.recording {
                None if given.is_empty() => return Err(failure),
                Some(ours) if !given.is_empty() => {
                    compare(std::slice::from_ref(ours)).or_else(|_| compare(&[]))
                }
                _ => compare(&[]),
            }?;
            messages::warn(&format!("{}; the report is without it", failure.message));
            Ok(reports)
        })?;
        let reports = each(reports, Report::Diff);
        let file = Output {
            file: Some(hunted.folder.join(kept)),
            color: When::Never,
            ..setup.output.clone()
        };
        for report in &reports {
            write::report(&file, report)?;
        }
        Ok(reports)
    }

    /// True if a report in this format is printed. If a hunt writes files, formats such as HTML are only written beside
    /// the dumps.
    fn is_shown(&self, format: Format) -> bool {
        !self.hunt.files || matches!(format, Format::Text | Format::Json | Format::Md)
    }

    /// Prints the names of the files that a hunt wrote, advice for the next hunt, and the command that shows more.
    fn end(&self, setup: &Setup, report: &Report) {
        let Report::Diff(report) = report else {
            return;
        };
        if setup.progress.quiet {
            return;
        }
        let suspect = report.suspects.first();
        if self.hunt.files {
            let dumps = report.data.snapshots.iter();
            let dumps = dumps.map(|snapshot| PathBuf::from(&snapshot.path));
            messages::print_done(&written(&dumps.collect::<Vec<_>>(), setup));
        }
        let has_agent = |dump: &SnapshotInfo| dump.agent.is_some();
        let sampled = suspect.filter(|_| report.data.snapshots.last().is_some_and(has_agent));
        if let Some(few) = sampled.and_then(|suspect| few_samples(suspect, &self.hunt)) {
            messages::print_done(&few);
        }
        let next = suspect.and_then(|suspect| suspect.next.first());
        if let Some(next) = next.filter(|_| self.hunt.files) {
            messages::print_done(&format!("next: {}", printable(next)));
        }
    }
}

/// Returns the sentence that names the files of a hunt. Only the first file is named with its folder.
fn written(dumps: &[PathBuf], setup: &Setup) -> String {
    let folder = dumps.first().and_then(|dump| dump.parent());
    let report = format!("report.{}", setup.output.format.extension());
    let others = [&report, capture::TRACE, capture::RECORDING]
        .map(|name| folder.map(|folder| folder.join(name)));
    let others = others.into_iter().flatten().filter(|path| path.is_file());
    let files = dumps.iter().cloned().chain(others).enumerate();
    let names = files.map(|(place, file)| match (place, file.file_name()) {
        (1.., Some(name)) => name.to_string_lossy().into_owned(),
        _ => file.display().to_string(),
    });
    let names: Vec<String> = names.collect();
    printable(&format!("wrote {}", names.join(", "))).into_owned()
}

/// If a suspect has too few samples, returns a sentence about this. The sentence contains the command for a hunt that
/// takes more samples.
fn few_samples(suspect: &Suspect, hunt: &capture::Hunt) -> Option<String> {
    let (samples, options) = (suspect.coverage.samples, &hunt.agent.as_ref()?.options);
    let option = |key: &str| {
        options
            .split(',')
            .find_map(|option| option.strip_prefix(key))
    };
    let given = option("interval=").map_or(Ok(DEFAULT), str::parse).ok()?;
    let grown = u64::try_from(suspect.growth.retained_bytes).ok()?;
    let interval = interval(grown);
    if samples >= ENOUGH || option("strategy=").is_some() || given.0 <= interval {
        return None;
    }
    Some(format!(
        "the report has only {samples} of the growth in {holder}: too few to find the allocating stacks; for more samples, run `heapdiff hunt {pid} interval={kib}k`",
        samples = counted(samples, "sample"),
        holder = printable(&suspect.holder),
        pid = printable(&hunt.jvm.pid.to_string()),
        kib = interval >> 10,
    ))
}

/// The default sampling interval of the agent.
const DEFAULT: Size = Size(512 << 10);
/// Minimum number of samples of a suspect with which the allocating stacks can be found.
const ENOUGH: u64 = 10;
/// Number of samples that the suspect gets, approximately, with the suggested sampling interval.
const WANTED: u64 = 32;

/// Returns the sampling interval, a power of two, at which growth of `grown` bytes yields enough samples.
fn interval(grown: u64) -> u64 {
    let most = (grown / WANTED).clamp(4 << 10, 256 << 10);
    1 << most.ilog2()
}

/// Runs a hunt (two dumps with a wait in between) that keeps the dumps in memory and writes no files. The first dump is
/// reduced to its summary before the second dump is taken.
fn without_files(setup: &Setup, hunt: &capture::Hunt, question: &Question) -> Result<Vec<Report>> {
    let reports = capture::hunt_without_files(
        hunt,
        setup.progress,
        |dump, name| diff::summary_of(setup, dump, name),
        |before, dump, name| diff::compare_with_earlier(setup, before, dump, name, question),
    )?;
    Ok(each(reports, Report::Diff))
}

#[cfg(test)]
mod tests {
    use super::{COUNT_ON, USAGE_ON, agent_options, with_option};

    #[test]
    fn a_hunt_adds_counting_unless_its_options_set_it() {
        for (given, expected) in [
            ("", "count=on"),
            ("interval=64k", "interval=64k,count=on"),
            ("interval=64k, count=jdk", "interval=64k, count=jdk"),
            ("service=a\\,count=b", "service=a\\,count=b,count=on"),
        ] {
            assert_eq!(with_option(given.to_owned(), COUNT_ON), expected);
        }
        assert_eq!(with_option("usage=off".to_owned(), USAGE_ON), "usage=off");
        assert_eq!(
            with_option("count=on".to_owned(), USAGE_ON),
            "count=on,usage=on"
        );
        assert!(agent_options(&with_option("x".repeat(1020), COUNT_ON)).is_err());
    }
}
