//! The commands that `cargo xtask bench` measures.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::measure::{self, Measurement};
use super::peers::{Kind, Peer};

/// A group of commands that answer the same question. They are compared with one another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Group {
    /// Class histogram of one dump.
    Histogram,
    /// Dominators and retained sizes of one dump.
    Retained,
    /// Changes between two dumps.
    Diff,
    /// Changes between two dumps, computed from summaries that an earlier comparison cached.
    Kept,
    /// Questions about one dump that has an index.
    Indexed,
    /// Deep size and retained size of a set of more than a million objects.
    Sizes,
    /// Wasted memory in one dump.
    Waste,
}

/// A measured command, or several commands that do one task together.
#[derive(Debug)]
pub(super) struct Job {
    /// Name in the tables.
    pub(super) name: String,
    /// True for heapdiff, false for another tool.
    pub(super) ours: bool,
    /// The question that the job answers.
    pub(super) group: Group,
    /// The file to which the last step writes its report.
    pub(super) report: PathBuf,
    steps: Vec<(PathBuf, Vec<OsString>)>,
    /// A file that is deleted before the job begins.
    without: Option<PathBuf>,
}

impl Job {
    fn new(name: impl Into<String>, ours: bool, group: Group, scratch: &Path) -> Self {
        let name = name.into();
        let stem: String = name
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
            .collect();
        Self {
            report: scratch.join(format!("{stem}.out")),
            name,
            ours,
            group,
            steps: Vec::new(),
            without: None,
        }
    }

    fn step<A: Into<OsString>>(
        mut self,
        program: &Path,
        args: impl IntoIterator<Item = A>,
    ) -> Self {
        let args = args.into_iter().map(Into::into).collect();
        self.steps.push((program.to_owned(), args));
        self
    }

    /// Runs the steps of the job. Returns the sum of their times and the maximum of their memory.
    pub(super) fn measure(&self, limit: Duration) -> Result<Measurement> {
        let mut total = Measurement::default();
        if let Some(file) = &self.without {
            match fs::remove_file(file) {
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                    return Err(e).with_context(|| format!("cannot delete {}", file.display()));
                }
                _ => {}
            }
        }
        for (program, args) in &self.steps {
            let errors = self.report.with_extension("err");
            let mut command = Command::new(program);
            command.args(args).stdin(Stdio::null());
            command.stdout(File::create(self.report.with_extension("txt"))?);
            command.stderr(File::create(&errors)?);
            let (status, measured) = measure::measure(&mut command, limit)?;
            if !status.success() {
                let said = fs::read_to_string(&errors).unwrap_or_default();
                bail!("{status}: {}", said.lines().next().unwrap_or_default());
            }
            total.add(&measured);
        }
        Ok(total)
    }

    /// Returns the standard output of the command.
    pub(super) fn stdout(&self) -> Result<String> {
        let file = self.report.with_extension("txt");
        fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))
    }
}

/// A class with many objects in every dump. The generated heap has 1.75 million objects of this class. They refer to
/// most of the other objects.
const MANY: &str = "java.util.HashMap$Node";

fn heapdiff_job(heapdiff: &Path, what: &str, group: Group, dumps: &[&Path], scratch: &Path) -> Job {
    let suffix = match group {
        Group::Indexed => " (indexed)",
        Group::Kept => " (kept both)",
        _ => "",
    };
    let job = Job::new(format!("heapdiff {what}{suffix}"), true, group, scratch);
    let mut words = what.split(' ').map(OsString::from);
    let mut args: Vec<OsString> = words.by_ref().take(1).collect();
    args.extend(dumps.iter().map(OsString::from));
    args.extend(words);
    if group == Group::Sizes {
        args.push(MANY.into());
    }
    args.extend(["--format", "json", "--progress", "never"].map(Into::into));
    if !matches!(group, Group::Indexed | Group::Kept) {
        args.push("--no-index".into());
    }
    args.push("-o".into());
    args.push(job.report.clone().into());
    job.step(heapdiff, args)
}

/// Returns the job that runs `heapdiff top`.
pub(super) fn top(heapdiff: &Path, dump: &Path, scratch: &Path) -> Job {
    heapdiff_job(heapdiff, "top", Group::Retained, &[dump], scratch)
}

/// Returns the jobs that run heapdiff.
pub(super) fn heapdiff(heapdiff: &Path, before: &Path, after: &Path, scratch: &Path) -> Vec<Job> {
    vec![
        heapdiff_job(heapdiff, "histo", Group::Histogram, &[before], scratch),
        top(heapdiff, before, scratch),
        heapdiff_job(heapdiff, "diff", Group::Diff, &[before, after], scratch),
        heapdiff_job(heapdiff, "sizeof", Group::Sizes, &[before], scratch),
        heapdiff_job(heapdiff, "waste", Group::Waste, &[before], scratch),
    ]
}

/// Returns two comparisons that use summaries cached by an earlier comparison. For the first job, only the summary of
/// BEFORE is cached, as if BEFORE had been compared with another dump. For the second job, the summaries of both dumps
/// are cached.
pub(super) fn cached_comparisons(
    heapdiff: &Path,
    before: &Path,
    after: &Path,
    scratch: &Path,
) -> [Job; 2] {
    let both = || heapdiff_job(heapdiff, "diff", Group::Kept, &[before, after], scratch);
    let mut first = both();
    first.name = "heapdiff diff (BEFORE is a cached summary)".to_owned();
    let mut summary = after.as_os_str().to_owned();
    summary.push(".hds");
    first.without = Some(summary.into());
    [first, both()]
}

/// Runs a comparison that caches the summaries of both dumps.
pub(super) fn keep_summaries(
    heapdiff: &Path,
    before: &Path,
    after: &Path,
    limit: Duration,
) -> Result<()> {
    let scratch = before.parent().unwrap_or(Path::new("."));
    heapdiff_job(heapdiff, "diff", Group::Kept, &[before, after], scratch)
        .measure(limit)
        .map(|_| ())
}

/// Returns the jobs that run `heapdiff top` and `heapdiff diff` with this number of threads.
pub(super) fn with_threads(
    heapdiff: &Path,
    before: &Path,
    after: &Path,
    scratch: &Path,
    threads: usize,
) -> [Job; 2] {
    let job = |what: &str, group, dumps: &[&Path]| {
        let what = format!("{what} --threads {threads}");
        heapdiff_job(heapdiff, &what, group, dumps, scratch)
    };
    [
        job("top", Group::Retained, &[before]),
        job("diff", Group::Diff, &[before, after]),
    ]
}

/// Commands that use an index.
const INDEXED: [&str; 8] = [
    "histo",
    "histo --retained",
    "top",
    "threads",
    "show java.lang.Thread",
    "show java.lang.System.props",
    "sizeof java.lang.System.props",
    "paths java.lang.System.props",
];

/// Writes the index of a dump.
pub(super) fn write_index(heapdiff: &Path, dump: &Path, limit: Duration) -> Result<()> {
    let scratch = dump.parent().unwrap_or(Path::new("."));
    heapdiff_job(heapdiff, "top", Group::Indexed, &[dump], scratch)
        .measure(limit)
        .map(|_| ())
}

/// Returns the benchmark jobs in which heapdiff analyzes a dump that has an index.
pub(super) fn indexed(heapdiff: &Path, dump: &Path, scratch: &Path) -> Vec<Job> {
    let job = |what: &&str| heapdiff_job(heapdiff, what, Group::Indexed, &[dump], scratch);
    INDEXED.iter().map(job).collect()
}

/// Returns the benchmark jobs of other tools that answer the same questions as the jobs of heapdiff.
pub(super) fn peers(peers: &[Peer], before: &Path, after: &Path, scratch: &Path) -> Vec<Job> {
    let mut jobs = Vec::new();
    for peer in peers {
        let (name, program) = (peer.kind.name(), peer.program.as_path());
        match peer.kind {
            Kind::Slurp => {
                let job = Job::new(name, false, Group::Histogram, scratch);
                jobs.push(job.step(program, [before]));
                let job = Job::new(format!("{name} diff"), false, Group::Diff, scratch);
                jobs.push(job.step(program, [Path::new("diff"), before, after]));
            }
            Kind::Analyzer => {
                let job = Job::new(name, false, Group::Retained, scratch);
                let report = job.report.with_extension("json");
                jobs.push(job.step(program, [before, report.as_path()]));

                // This tool compares its reports instead of dumps, so a diff consists of two analyses and a comparison.
                let job = Job::new(format!("{name} diff"), false, Group::Diff, scratch);
                let reports = [before, after]
                    .map(|dump| job.report.with_extension(format!("{}.json", stem(dump))));
                let [first, second] = reports.each_ref().map(PathBuf::as_path);
                let output = job.report.clone();
                let compare = ["compare", "reports", "--format", "json", "--output"].map(Path::new);
                let job = job
                    .step(program, [before, first])
                    .step(program, [after, second]);
                jobs.push(job.step(
                    program,
                    compare.into_iter().chain([output.as_path(), first, second]),
                ));
            }
        }
    }
    jobs
}

fn stem(dump: &Path) -> String {
    let stem = dump.file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}
