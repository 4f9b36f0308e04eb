//! What all commands have in common: how to work and how to show it.

use std::path::PathBuf;
use std::sync::Arc;

use clap::builder::{PathBufValueParser, PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, Args, ValueEnum};
use heapdiff_diff::Frames;
use heapdiff_report::Format;
use heapdiff_units::Size;
use hprof::NameMapping;

use crate::failure::{Failure, Result};
use crate::job::{Output, Setup};
use crate::mapping;
use crate::progress::Wanted;
use crate::style::When;

/// The formats by their names.
fn formats() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(Format::ALL.map(Format::name))
        .map(|name| Format::by_name(&name).unwrap_or_default())
}

/// Parses an argument that names a dump: `-` is standard input, and a segment means the whole dump.
pub(super) fn input() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().map(|path| {
        if path.as_os_str() == "-" && cfg!(unix) {
            PathBuf::from("/dev/stdin")
        } else {
            hprof::bytes::dump_of(&path)
        }
    })
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(super) struct CommonArgs {
    /// Write the report to a file, which is replaced only when the report is complete
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    report: ReportArgs,
}

/// All but where the report goes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(super) struct ReportArgs {
    /// Format of the report [default: text, or from the extension of -o]
    #[arg(long, value_parser = formats(), value_name = "FORMAT")]
    format: Option<Format>,
    /// Maximum rows of each list [default: one screen in text; all classes in JSON and HTML]
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// When to use colors
    #[arg(long, value_enum, value_name = "WHEN", default_value_t)]
    color: When,
    #[command(flatten)]
    frames: FramesArgs,
    #[command(flatten)]
    progress: ProgressArgs,
    #[command(flatten)]
    analysis: AnalysisArgs,
}

/// Which frames of a stack are shown.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
struct FramesArgs {
    /// Frames that text shows of each stack: all, application frames only (app), or at most N lines [default: 12
    /// lines, with JDK and framework frames folded]
    #[arg(long, value_name = "all|app|N", value_parser = frames)]
    frames: Option<Frames>,
    /// Also fold frames of classes whose names begin with PREFIX, like frames of known frameworks;
    /// may be repeated
    #[arg(long, value_name = "PREFIX")]
    framework: Vec<String>,
}

fn frames(text: &str) -> std::result::Result<Frames, String> {
    match text {
        "all" => Ok(Frames::All),
        "app" => Ok(Frames::Application),
        _ => match text.parse() {
            Ok(limit) if limit > 0 => Ok(Frames::Folded(limit)),
            _ => Err("expected `all`, `app` or a number of lines, such as 20".to_owned()),
        },
    }
}

impl FramesArgs {
    /// Returns the output with this choice, and adds the frameworks.
    fn choose(self, output: Output) -> Output {
        if !self.framework.is_empty() {
            heapdiff_diff::add_frameworks(self.framework);
        }
        Output {
            frames: self.frames,
            ..output
        }
    }
}

/// How a dump is analysed.
#[derive(Debug, Args)]
#[command(next_help_heading = "Analysis")]
pub(super) struct AnalysisArgs {
    /// Number of the dump to read, if the file contains several [default: 1, the first]
    #[arg(long = "dump", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    dump_number: Option<u32>,
    #[command(flatten)]
    names: NamesArgs,
    /// Number of worker threads [default: one per processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Maximum memory for large arrays; the rest goes to temporary files
    #[arg(long, value_name = "SIZE")]
    max_memory: Option<Size>,
    /// References that retain their referent: strong only, strong and soft, or all (weak included)
    #[arg(long, value_enum, default_value_t)]
    refs: Refs,
    /// Do not read or write the index (DUMP.hdx) and summary (DUMP.hds) that make later commands
    /// fast
    #[arg(long, action = ArgAction::SetTrue)]
    no_index: bool,
    /// Refuse damaged or truncated dumps (exit code 3)
    #[arg(long)]
    strict: bool,
}

/// Where names are from that a shrinker shortened.
#[derive(Debug, Args)]
#[command(next_help_heading = "Analysis")]
pub(super) struct NamesArgs {
    /// ProGuard or R8 mapping file, to show the original names of classes, fields and methods; may
    /// be repeated
    #[arg(long, value_name = "FILE")]
    mapping: Vec<PathBuf>,
}

impl NamesArgs {
    pub(super) fn read(&self) -> Result<Option<Arc<dyn NameMapping>>> {
        mapping::read(&self.mapping)
    }
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Refs {
    Strong,
    #[default]
    Soft,
    All,
}

impl CommonArgs {
    pub(super) fn setup(self) -> Result<Setup> {
        self.report.setup(self.output)
    }
}

/// As [`CommonArgs`], where one analysis can be written several times.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(super) struct OutputsArgs {
    /// Write the report to a file, in the format of its extension; may be repeated
    #[arg(short, long, value_name = "FILE")]
    output: Vec<PathBuf>,
    #[command(flatten)]
    report: ReportArgs,
}

impl OutputsArgs {
    pub(super) fn setup(self) -> Result<Setup> {
        let mut files = self.output.into_iter();
        let first = files.next();
        let more: Vec<PathBuf> = files.collect();
        if let (Some(format), [another, ..]) = (self.report.format, &more[..]) {
            let message = format!(
                "--format {} allows only one -o, but there is a second one: -o {}",
                format.name(),
                another.display()
            );
            return Err(Failure::usage(message).with_hint(
                "leave out --format; each file is written in the format of its extension",
            ));
        }
        let color = self.report.color;
        let setup = self.report.setup(first)?;
        let more = more.into_iter();
        let (frames, verbose) = (setup.output.frames, setup.output.verbose);
        let more = more.map(|file| {
            Ok(Output {
                frames,
                verbose,
                ..Output::new(None, Some(file), color)?
            })
        });
        Ok(Setup {
            more: more.collect::<Result<_>>()?,
            ..setup
        })
    }
}

impl ReportArgs {
    /// The format that was asked for, if one was.
    pub(super) const fn format(&self) -> Option<Format> {
        self.format
    }

    pub(super) fn setup(self, output: Option<PathBuf>) -> Result<Setup> {
        let output = self
            .frames
            .choose(Output::new(self.format, output, self.color)?);
        let progress = self.progress.wanted();
        let top = self.top;
        Ok(Setup {
            top,
            ..self.analysis.setup(output, progress)?
        })
    }
}

impl AnalysisArgs {
    pub(super) fn setup(self, output: Output, progress: Wanted) -> Result<Setup> {
        let mut analysis = hprof::Options::default();
        analysis.refs = match self.refs {
            Refs::Strong => hprof::Refs::Strong,
            Refs::Soft => hprof::Refs::Soft,
            Refs::All => hprof::Refs::All,
        };
        analysis.dump = self.dump_number.map_or(0, |n| n as usize - 1);
        analysis.mapping = self.names.read()?;
        analysis.max_memory = self.max_memory.map(|size| size.0);
        Ok(Setup {
            output: Output {
                verbose: progress.verbose,
                ..output
            },
            more: Vec::new(),
            top: None,
            progress,
            analysis,
            threads: self.threads.map(usize::from),
            strict: self.strict,
            index: !self.no_index,
        })
    }
}

/// How a report that needs no analysis of a dump is shown.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(super) struct ViewArgs {
    /// Write the report to a file, which is replaced only when the report is complete
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Format of the report [default: text, or from the extension of -o]
    #[arg(long, value_parser = formats(), value_name = "FORMAT")]
    format: Option<Format>,
    /// When to use colors
    #[arg(long, value_enum, value_name = "WHEN", default_value_t)]
    color: When,
    #[command(flatten)]
    frames: FramesArgs,
    #[command(flatten)]
    progress: ProgressArgs,
}

impl ViewArgs {
    pub(super) fn setup(self) -> Result<Setup> {
        Ok(Setup {
            output: self
                .frames
                .choose(Output::new(self.format, self.output, self.color)?),
            more: Vec::new(),
            top: None,
            progress: self.progress.wanted(),
            analysis: hprof::Options::default(),
            threads: None,
            strict: false,
            index: false,
        })
    }
}

/// The same of a report that is lists.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(super) struct ListArgs {
    #[command(flatten)]
    view: ViewArgs,
    /// Maximum rows of each list [default: 10; 100 in JSON]
    #[arg(long, value_name = "N")]
    top: Option<usize>,
}

impl ListArgs {
    pub(super) fn setup(self) -> Result<Setup> {
        let top = self.top;
        self.view.setup().map(|setup| Setup { top, ..setup })
    }
}

/// A setup whose report has the names of a mapping.
pub(super) fn with_names(mut setup: Setup, names: &NamesArgs) -> Result<Setup> {
    setup.analysis.mapping = names.read()?;
    Ok(setup)
}

/// What is seen of the work.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(super) struct ProgressArgs {
    /// When to show progress on standard error
    #[arg(long, value_enum, value_name = "WHEN", default_value_t)]
    progress: When,
    /// Print only errors to standard error: no progress, no warnings
    #[arg(short, long, conflicts_with = "verbose")]
    quiet: bool,
    /// Print the time of each phase to standard error; in text, show all frames, stacks and the
    /// layout
    #[arg(short, long)]
    verbose: bool,
}

impl ProgressArgs {
    pub(super) fn wanted(&self) -> Wanted {
        Wanted {
            when: self.progress,
            quiet: self.quiet,
            verbose: self.verbose,
        }
    }
}
