//! What all commands have in common: how to work and how to show it.

use std::path::PathBuf;
use std::sync::Arc;

use clap::builder::{PathBufValueParser, PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, Args, ValueEnum};
use heapdiff_mapping::Mapping;
use heapdiff_report::Format;
use heapdiff_units::Size;

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
    PathBufValueParser::new().map(|path| match path.as_os_str() == "-" && cfg!(unix) {
        true => PathBuf::from("/dev/stdin"),
        false => hprof::bytes::dump_of(&path),
    })
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(super) struct CommonArgs {
    /// Write to a file, replacing it once the report is complete
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    report: ReportArgs,
}

/// All but where the report goes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(super) struct ReportArgs {
    /// How to write the report [default: text, or from the extension of -o]
    #[arg(long, value_parser = formats(), value_name = "FORMAT")]
    format: Option<Format>,
    /// Rows of each list [default: enough for a screen; all classes in JSON and HTML]
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// Use colours
    #[arg(long, value_enum, value_name = "WHEN", default_value_t)]
    color: When,
    #[command(flatten)]
    progress: ProgressArgs,
    #[command(flatten)]
    analysis: AnalysisArgs,
}

/// How a dump is analysed.
#[derive(Debug, Args)]
#[command(next_help_heading = "Analysis")]
pub(super) struct AnalysisArgs {
    /// The dump to read in a file that holds several, one after the other [default: the first]
    #[arg(long = "dump", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    dump_number: Option<u32>,
    #[command(flatten)]
    names: NamesArgs,
    /// Threads to work on [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Memory for the large arrays; the rest goes to temporary files
    #[arg(long, value_name = "SIZE")]
    max_memory: Option<Size>,
    /// Which java.lang.ref objects retain what they refer to; weak ones only with `all`
    #[arg(long, value_enum, default_value_t)]
    refs: Refs,
    /// Neither read nor write an index (DUMP.hdx) or a summary (DUMP.hds), which make the next command on a dump fast
    #[arg(long, action = ArgAction::SetTrue)]
    no_index: bool,
    /// Treat a damaged dump as one that cannot be read
    #[arg(long)]
    strict: bool,
}

/// Where names are from that a shrinker shortened.
#[derive(Debug, Args)]
#[command(next_help_heading = "Analysis")]
pub(super) struct NamesArgs {
    /// Show the names that classes, fields and methods had before ProGuard or R8 shortened them; may be repeated, for
    /// programs of several parts
    #[arg(long, value_name = "FILE")]
    mapping: Vec<PathBuf>,
}

impl NamesArgs {
    pub(super) fn read(&self) -> Result<Option<Arc<Mapping>>> {
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
    /// Write to a file, replacing it once the report is complete; may be repeated: each file's extension says its format
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
                "--format {} is for one file, and -o {} is another",
                format.name(),
                another.display()
            );
            return Err(Failure::usage(message)
                .with_hint("leave it out: each file's extension says its format"));
        }
        let color = self.report.color;
        let setup = self.report.setup(first)?;
        let more = more.into_iter();
        let more = more.map(|file| Output::new(None, Some(file), color));
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
        let output = Output::new(self.format, output, self.color)?;
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
        Ok(Setup {
            output,
            more: Vec::new(),
            top: None,
            progress,
            analysis: hprof::Options {
                refs: match self.refs {
                    Refs::Strong => hprof::Refs::Strong,
                    Refs::Soft => hprof::Refs::Soft,
                    Refs::All => hprof::Refs::All,
                },
                holders: false,
                dump: self.dump_number.map_or(0, |n| n as usize - 1),
                mapping: self.names.read()?,
                max_memory: self.max_memory.map(|size| size.0),
                ..hprof::Options::default()
            },
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
    /// Write to a file, replacing it once the report is complete
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// How to write the report [default: text, or from the extension of -o]
    #[arg(long, value_parser = formats(), value_name = "FORMAT")]
    format: Option<Format>,
    /// Use colours
    #[arg(long, value_enum, value_name = "WHEN", default_value_t)]
    color: When,
    #[command(flatten)]
    progress: ProgressArgs,
}

impl ViewArgs {
    pub(super) fn setup(self) -> Result<Setup> {
        Ok(Setup {
            output: Output::new(self.format, self.output, self.color)?,
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
    /// Rows of each list [default: 10; 100 in JSON]
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
pub(super) fn with_names(setup: Setup, names: &NamesArgs) -> Result<Setup> {
    let analysis = hprof::Options {
        mapping: names.read()?,
        ..setup.analysis
    };
    Ok(Setup { analysis, ..setup })
}

/// What is seen of the work.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(super) struct ProgressArgs {
    /// Show progress on standard error
    #[arg(long, value_enum, value_name = "WHEN", default_value_t)]
    progress: When,
    /// Errors only on standard error: no progress, no warnings
    #[arg(short, long, conflicts_with = "verbose")]
    quiet: bool,
    /// Each phase with its time on standard error; in text, frames and stacks that are left out otherwise
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
